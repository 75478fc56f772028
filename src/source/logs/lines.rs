//! Bytes -> chunks of whole lines in bounded memory, and the lines of a chunk, whatever ends them: LF, CR LF, or the CR of a
//! progress bar.

use std::io::{ErrorKind, Read, Result};
use std::ops::Range;

use memchr::{memchr2, memrchr2};

use super::utf16::as_utf8;

/// Bytes of a chunk, about: what a processor keeps near it.
const CHUNK: usize = 1 << 18;
/// A longer line is no log line: it is passed over and counted.
const LONGEST: usize = 1 << 16;

/// Chunks of an input, each of which ends where a line does.
pub(super) struct Chunks {
    input: Box<dyn Read + Send>,
    /// What was read behind the last line's end.
    rest: Vec<u8>,
    size: usize,
    /// Whether the begin of the line at hand was passed over.
    skipping: bool,
    too_long: u64,
    finished: bool,
}

impl Chunks {
    /// Chunks of an input.
    ///
    /// # Errors
    /// An input that can't be read.
    pub fn new(input: Box<dyn Read + Send>) -> Result<Self> {
        Self::of_size(input, CHUNK)
    }

    fn of_size(input: Box<dyn Read + Send>, size: usize) -> Result<Self> {
        Ok(Self {
            input: as_utf8(input)?,
            rest: Vec::new(),
            size,
            skipping: false,
            too_long: 0,
            finished: false,
        })
    }

    /// Takes the number of lines that were passed over for their length because no chunk holds them.
    pub fn take_too_long(&mut self) -> u64 {
        std::mem::take(&mut self.too_long)
    }

    /// The next chunk; `None` at the end of the input.
    ///
    /// # Errors
    /// An input that can't be read.
    pub fn next(&mut self) -> Result<Option<Vec<u8>>> {
        let mut chunk = std::mem::take(&mut self.rest);
        loop {
            if self.finished && chunk.is_empty() {
                // A line that had no end was the last.
                self.too_long += u64::from(std::mem::take(&mut self.skipping));
                return Ok(None);
            }
            self.fill(&mut chunk)?;
            let Some(end) = self.end_of_lines(&chunk) else {
                if self.finished {
                    if std::mem::take(&mut self.skipping) {
                        self.too_long += 1;
                        return Ok(None);
                    }
                    return Ok(Some(chunk).filter(|chunk| !chunk.is_empty()));
                }
                if chunk.len() > LONGEST {
                    // A CR at the very end may be half of a line's end.
                    let kept = chunk.split_off(chunk.len() - usize::from(chunk.ends_with(b"\r")));
                    self.skipping = true;
                    chunk = kept;
                }
                continue;
            };
            self.rest = chunk.split_off(end);
            if std::mem::take(&mut self.skipping) {
                self.too_long += 1;
                let stop = memchr2(b'\n', b'\r', &chunk).unwrap_or_default();
                chunk.drain(..end_of_break(&chunk, stop));
                if chunk.is_empty() {
                    chunk = std::mem::take(&mut self.rest);
                    continue;
                }
            }
            return Ok(Some(chunk));
        }
    }

    /// Where the last whole line of a chunk ends, its break included.
    fn end_of_lines(&self, chunk: &[u8]) -> Option<usize> {
        let mut end = memrchr2(b'\n', b'\r', chunk)?;
        // What follows a CR at the end is not read yet.
        if chunk[end] == b'\r' && end + 1 == chunk.len() && !self.finished {
            end = memrchr2(b'\n', b'\r', &chunk[..end])?;
        }
        Some(end + 1)
    }

    fn fill(&mut self, chunk: &mut Vec<u8>) -> Result<()> {
        let begin = chunk.len();
        if self.finished {
            return Ok(());
        }
        let size = self.size.max(begin + self.size / 2);
        chunk.resize(size, 0);
        let mut filled = begin;
        while filled < size {
            match self.input.read(&mut chunk[filled..]) {
                Ok(0) => {
                    self.finished = true;
                    break;
                }
                Ok(read) => filled += read,
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        chunk.truncate(filled);
        Ok(())
    }
}

/// What follows the break of a line that stops there.
fn end_of_break(chunk: &[u8], stop: usize) -> usize {
    let crlf = chunk[stop..].starts_with(b"\r\n");
    stop + 1 + usize::from(crlf)
}

/// The lines of a chunk: where each stands without its break, and where the next one begins. Those that are too long are
/// counted.
pub(super) struct Lines<'a> {
    chunk: &'a [u8],
    begin: usize,
    pub too_long: u64,
}

impl<'a> Lines<'a> {
    pub fn of(chunk: &'a [u8]) -> Self {
        Self {
            chunk,
            begin: 0,
            too_long: 0,
        }
    }
}

impl Iterator for Lines<'_> {
    type Item = Range<usize>;

    fn next(&mut self) -> Option<Range<usize>> {
        loop {
            let rest = self.chunk.get(self.begin..).filter(|rest| !rest.is_empty())?;
            let line = match memchr2(b'\n', b'\r', rest) {
                Some(at) => {
                    let stop = self.begin + at;
                    let line = self.begin..stop;
                    self.begin = end_of_break(self.chunk, stop);
                    line
                }
                None => {
                    let line = self.begin..self.chunk.len();
                    self.begin = self.chunk.len();
                    line
                }
            };
            if line.len() <= LONGEST {
                return Some(line);
            }
            self.too_long += 1;
        }
    }
}

#[cfg(test)]
mod tests {
    use std::io::Cursor;

    use super::*;

    /// Gives a few bytes at a time.
    struct Slow(Cursor<Vec<u8>>, usize);

    impl Read for Slow {
        fn read(&mut self, buffer: &mut [u8]) -> Result<usize> {
            let few = buffer.len().min(self.1);
            self.0.read(&mut buffer[..few])
        }
    }

    fn lines_in(bytes: &[u8], size: usize, few: usize) -> (Vec<String>, u64) {
        let input = Slow(Cursor::new(bytes.to_vec()), few);
        let mut chunks = Chunks::of_size(Box::new(input), size).expect("opened");
        let (mut all, mut too_long) = (Vec::new(), 0);
        while let Some(chunk) = chunks.next().expect("read") {
            let mut lines = Lines::of(&chunk);
            for line in lines.by_ref() {
                all.push(String::from_utf8_lossy(&chunk[line]).into_owned());
            }
            too_long += lines.too_long;
        }
        (all, too_long + chunks.take_too_long())
    }

    fn lines(bytes: &[u8]) -> (Vec<String>, u64) {
        lines_in(bytes, CHUNK, CHUNK)
    }

    #[test]
    fn every_end_of_a_line_is_one() {
        assert_eq!(lines(b"a\r\nb\rc\n\nd").0, ["a", "b", "c", "", "d"]);
        assert_eq!(lines(b"").0, [""; 0]);
        assert_eq!(lines(b"\xef\xbb\xbfa").0, ["a"]);
    }

    #[test]
    fn chunks_of_any_size_have_the_same_lines() {
        let text = b"a\r\nbb\rccc\n\n\r\n\r\rd\n\re\nlast";
        let expected = lines(text);
        for size in 2..40 {
            for few in 1..6 {
                assert_eq!(lines_in(text, size, few), expected, "{size} {few}");
            }
        }
    }

    #[test]
    fn a_line_without_end_takes_no_memory() {
        let mut bytes = vec![b'a'; 5 * CHUNK + 17];
        bytes.extend(b"\r\nnext\n");
        bytes.extend(vec![b'b'; LONGEST + 1]);
        for few in [CHUNK, 4099] {
            assert_eq!(lines_in(&bytes, CHUNK, few), (vec!["next".to_owned()], 2));
            assert_eq!(lines_in(&bytes, LONGEST + 9, few), (vec!["next".to_owned()], 2));
        }
        // One that is as long as may be is taken whole, whatever the chunks.
        let long = [vec![b'c'; LONGEST], b"\nend".to_vec()].concat();
        for size in [100, 4096, LONGEST, CHUNK] {
            let (found, too_long) = lines_in(&long, size, CHUNK);
            assert_eq!((found.len(), found[0].len(), too_long), (2, LONGEST, 0), "{size}");
        }
    }
}
