//! A log that still grows: each look reads what was appended since the one before.

use std::fs::File;
use std::io::{ErrorKind, Read, Result as IoResult, Seek, SeekFrom};

use super::super::compressed::Packing;
use super::job_name;
use super::lines::Chunks;
use super::prepare::PreparedChunk;
use super::reading::Reading;
use crate::source::columns::Columns;
use crate::source::discover::SourceFile;
use crate::source::error::SourceError;
use crate::source::rows::Rows;

/// Bytes in which the end of the last whole line is looked for at once.
const BLOCK: u64 = 1 << 16;
/// First bytes of text in UTF-16.
const UTF_16: [&[u8]; 2] = [&[0xff, 0xfe], &[0xfe, 0xff]];

/// A log, how far it was read, and what its lines so far tell about the next ones.
pub struct LogTail {
    file: SourceFile,
    /// Bytes that were read: a number of whole lines.
    read: u64,
    reading: Reading,
}

impl LogTail {
    /// A log of which nothing was read; `None` where it can't be read from its middle, as what is compressed or in UTF-16.
    ///
    /// # Errors
    /// A file that can't be read.
    pub fn of(file: &SourceFile) -> Result<Option<Self>, SourceError> {
        if file.is_stdin() {
            return Ok(None);
        }
        let mut head = Vec::new();
        File::open(&file.path)
            .and_then(|log| log.take(8).read_to_end(&mut head))
            .map_err(SourceError::io(&file.path))?;
        let from_its_middle = Packing::of(&head).is_none() && !UTF_16.iter().any(|mark| head.starts_with(mark));
        Ok(from_its_middle.then(|| Self {
            file: file.clone(),
            read: 0,
            reading: Self::reading(file),
        }))
    }

    fn reading(file: &SourceFile) -> Reading {
        Reading::new(&job_name(file), file.options.nodes.clone(), Columns::Analysed)
    }

    /// Hands the rows of the lines that were appended to `each`; a line is read once its end is there, and a log that became
    /// shorter was written anew.
    ///
    /// # Errors
    /// A file that can't be read; what was read before is not lost.
    pub fn read_on(&mut self, each: &mut dyn FnMut(&Rows)) -> Result<(), SourceError> {
        self.try_read_on(each).map_err(SourceError::io(&self.file.path))
    }

    fn try_read_on(&mut self, each: &mut dyn FnMut(&Rows)) -> IoResult<()> {
        let mut log = File::open(&self.file.path)?;
        let length = log.metadata()?.len();
        if length < self.read {
            (self.read, self.reading) = (0, Self::reading(&self.file));
        }
        let end = end_of_last_line(&mut log, self.read, length)?;
        log.seek(SeekFrom::Start(self.read))?;
        let mut chunks = Chunks::new(Box::new(log.take(end - self.read)))?;
        while let Some(bytes) = chunks.next()? {
            let chunk = PreparedChunk::of(bytes);
            chunk.lines.iter().for_each(|line| self.reading.line(&chunk, line));
            if self.reading.may_be_cut() && Columns::Analysed.is_full(self.reading.rows(), 0) {
                each(&self.reading.take_rows());
            }
        }
        self.read = end;
        if self.reading.may_be_cut() {
            each(&self.reading.take_rows());
        }
        Ok(())
    }
}

/// Behind the last line that has its end between two places of a file; the first place where there is none.
fn end_of_last_line(log: &mut File, begin: u64, end: u64) -> IoResult<u64> {
    let mut stop = end;
    let mut block = vec![0; BLOCK as usize];
    while stop > begin {
        let start = stop.saturating_sub(BLOCK).max(begin);
        let bytes = &mut block[..(stop - start) as usize];
        log.seek(SeekFrom::Start(start))?;
        match log.read_exact(bytes) {
            // It became shorter meanwhile, which the next look sees.
            Err(error) if error.kind() == ErrorKind::UnexpectedEof => return Ok(begin),
            other => other?,
        }
        if let Some(last) = memchr::memrchr(b'\n', bytes) {
            return Ok(start + last as u64 + 1);
        }
        stop = start;
    }
    Ok(begin)
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use super::*;
    use crate::contract::timers::INTERVAL_TIME;
    use crate::source::Format;

    fn iteration(number: u32, milliseconds: f64) -> String {
        format!(
            " [2026-01-01 00:{:02}:{:02}] iteration {number:8}/    5000 | consumed samples: {:12} | elapsed time per iteration (ms): \
             {milliseconds:.1} | learning rate: 1.0E-04 | global batch size:    16 |\n",
            number / 60,
            number % 60,
            16 * number
        )
    }

    /// Iterations and seconds of a look.
    fn look(tail: &mut LogTail) -> Vec<(i64, f64)> {
        let mut steps = Vec::new();
        tail.read_on(&mut |rows| {
            for row in 0..rows.len() {
                if rows.subname.get(row) == Some(INTERVAL_TIME) {
                    steps.extend(rows.iteration.get(row).zip(rows.value.get(row)));
                }
            }
        })
        .expect("a log");
        steps
    }

    #[test]
    fn only_whole_lines_that_are_new_are_read() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("train.log");
        let mut log = File::create(&path).expect("a log");
        let mut tail = LogTail::of(&SourceFile::new(path.clone(), Format::Log))
            .expect("a log")
            .expect("plain text");
        assert_eq!(look(&mut tail), []);
        let text: String = (1..=20).map(|number| iteration(number, 2000.0)).collect();
        log.write_all(text.as_bytes()).expect("written");
        let seen = look(&mut tail);
        assert_eq!((seen.len(), seen.last()), (20, Some(&(20, 2.0))));
        assert_eq!(look(&mut tail), []);
        let (half, rest) = (iteration(21, 3000.0), iteration(22, 2000.0));
        let (half, end) = half.split_at(60);
        log.write_all(half.as_bytes()).expect("written");
        assert_eq!(look(&mut tail), [], "half a line tells nothing");
        log.write_all((end.to_owned() + &rest).as_bytes()).expect("written");
        assert_eq!(look(&mut tail), [(21, 3.0), (22, 2.0)]);
        // Written anew.
        std::fs::write(
            &path,
            (1..=3).map(|number| iteration(number, 1000.0)).collect::<String>(),
        )
        .expect("written");
        assert_eq!(look(&mut tail), [(1, 1.0), (2, 1.0), (3, 1.0)]);
    }

    #[test]
    fn what_has_no_middle_is_told() {
        let folder = tempfile::tempdir().expect("a folder");
        for head in [&[0x1f, 0x8b, 8, 0][..], &[0xff, 0xfe, b'a', 0]] {
            let path = folder.path().join("train.log");
            std::fs::write(&path, head).expect("written");
            let file = SourceFile::new(path, Format::Log);
            assert!(LogTail::of(&file).expect("a file").is_none());
        }
    }
}
