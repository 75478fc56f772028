//! Bytes -> lines in bounded memory, whatever ends them: LF, CR LF, or the CR of a progress bar; UTF-16 is undone.

use std::io::{Read, Result};

use memchr::memchr2;

/// Bytes that are read at once.
const BUFFER: usize = 1 << 20;
/// A longer line is no log line: it is passed over and counted.
const LONGEST: usize = 1 << 16;

/// Lines of an input.
pub(super) struct Lines {
    input: Box<dyn Read + Send>,
    buffer: Vec<u8>,
    begin: usize,
    end: usize,
    bytes: u64,
    too_long: u64,
    finished: bool,
}

impl Lines {
    /// Looks at the first bytes: a mark tells UTF-16, that of UTF-8 is passed over.
    ///
    /// # Errors
    /// An input that can't be read.
    pub fn new(mut input: Box<dyn Read + Send>) -> Result<Self> {
        let mut head = Vec::new();
        input.by_ref().take(4).read_to_end(&mut head)?;
        let (skip, order) = match head.as_slice() {
            [0xff, 0xfe, ..] => (2, Some(false)),
            [0xfe, 0xff, ..] => (2, Some(true)),
            [0xef, 0xbb, 0xbf, ..] => (3, None),
            _ => (0, None),
        };
        let whole = std::io::Cursor::new(head.split_off(skip)).chain(input);
        let input: Box<dyn Read + Send> = match order {
            Some(big_endian) => Box::new(Utf16::new(Box::new(whole), big_endian)),
            None => Box::new(whole),
        };
        Ok(Self {
            input,
            buffer: vec![0; BUFFER],
            begin: 0,
            end: 0,
            bytes: 0,
            too_long: 0,
            finished: false,
        })
    }

    /// Bytes passed so far.
    pub fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Lines that were passed over for their length.
    pub fn too_long(&self) -> u64 {
        self.too_long
    }

    /// The next line without its end; `None` at the end of the input.
    ///
    /// # Errors
    /// An input that can't be read.
    pub fn next(&mut self) -> Result<Option<&[u8]>> {
        let mut searched = self.begin;
        let mut skipping = false;
        loop {
            if let Some(at) = memchr2(b'\n', b'\r', &self.buffer[searched..self.end]) {
                let stop = searched + at;
                let is_cr = self.buffer[stop] == b'\r';
                // What follows a CR at the end of the buffer is not read yet.
                if is_cr && stop + 1 == self.end && !self.finished {
                    searched = stop;
                    self.fill(&mut searched)?;
                    continue;
                }
                let crlf = is_cr && stop + 1 < self.end && self.buffer[stop + 1] == b'\n';
                let line = self.begin..stop;
                self.bytes += (stop + 1 - self.begin) as u64;
                self.begin = stop + 1 + usize::from(crlf);
                if skipping || line.len() > LONGEST {
                    self.too_long += 1;
                    (searched, skipping) = (self.begin, false);
                    continue;
                }
                return Ok(Some(&self.buffer[line]));
            }
            if self.finished {
                let line = self.begin..self.end;
                self.begin = self.end;
                self.bytes += line.len() as u64;
                return match line.len() {
                    _ if skipping => {
                        self.too_long += 1;
                        Ok(None)
                    }
                    0 => Ok(None),
                    length if length > LONGEST => {
                        self.too_long += 1;
                        Ok(None)
                    }
                    _ => Ok(Some(&self.buffer[line])),
                };
            }
            searched = self.end;
            if self.end - self.begin > LONGEST {
                skipping = true;
                self.bytes += (self.end - self.begin) as u64;
                (self.begin, self.end, searched) = (0, 0, 0);
            }
            self.fill(&mut searched)?;
        }
    }

    /// Reads more behind what is there, which moves to the front.
    fn fill(&mut self, searched: &mut usize) -> Result<()> {
        if self.begin > 0 {
            self.buffer.copy_within(self.begin..self.end, 0);
            *searched -= self.begin;
            self.end -= self.begin;
            self.begin = 0;
        }
        loop {
            match self.input.read(&mut self.buffer[self.end..]) {
                Ok(0) => self.finished = true,
                Ok(read) => self.end += read,
                Err(error) if error.kind() == std::io::ErrorKind::Interrupted => continue,
                Err(error) => return Err(error),
            }
            return Ok(());
        }
    }
}

/// UTF-16 as UTF-8; what is no letter becomes the replacement character.
struct Utf16 {
    input: Box<dyn Read + Send>,
    big_endian: bool,
    raw: Vec<u8>,
    high: Option<u16>,
    ready: Vec<u8>,
    given: usize,
}

impl Utf16 {
    fn new(input: Box<dyn Read + Send>, big_endian: bool) -> Self {
        Self {
            input,
            big_endian,
            raw: Vec::new(),
            high: None,
            ready: Vec::new(),
            given: 0,
        }
    }
}

impl Read for Utf16 {
    fn read(&mut self, buffer: &mut [u8]) -> Result<usize> {
        if self.given == self.ready.len() {
            self.ready.clear();
            self.given = 0;
            while self.ready.is_empty() {
                let read = self.input.by_ref().take(1 << 16).read_to_end(&mut self.raw)?;
                if read == 0 {
                    return Ok(0);
                }
                let odd = self.raw.split_off(self.raw.len() & !1);
                let unit = |pair: &[u8]| {
                    let pair = [pair[0], pair[1]];
                    if self.big_endian {
                        u16::from_be_bytes(pair)
                    } else {
                        u16::from_le_bytes(pair)
                    }
                };
                let units: Vec<u16> = self
                    .high
                    .take()
                    .into_iter()
                    .chain(self.raw.chunks_exact(2).map(unit))
                    .collect();
                self.raw = odd;
                let whole = match units.split_last() {
                    Some((&last, rest)) if (0xd800..0xdc00).contains(&last) => {
                        self.high = Some(last);
                        rest
                    }
                    _ => &units,
                };
                let letters = char::decode_utf16(whole.iter().copied());
                let text: String = letters
                    .map(|letter| letter.unwrap_or(char::REPLACEMENT_CHARACTER))
                    .collect();
                self.ready = text.into_bytes();
            }
        }
        let give = buffer.len().min(self.ready.len() - self.given);
        buffer[..give].copy_from_slice(&self.ready[self.given..self.given + give]);
        self.given += give;
        Ok(give)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lines(bytes: &[u8]) -> (Vec<String>, u64) {
        let mut lines = Lines::new(Box::new(std::io::Cursor::new(bytes.to_vec()))).expect("opened");
        let mut all = Vec::new();
        while let Some(line) = lines.next().expect("read") {
            all.push(String::from_utf8_lossy(line).into_owned());
        }
        (all, lines.too_long())
    }

    #[test]
    fn every_end_of_a_line_is_one() {
        assert_eq!(lines(b"a\r\nb\rc\n\nd").0, ["a", "b", "c", "", "d"]);
        assert_eq!(lines(b"").0, [""; 0]);
        assert_eq!(lines(b"\xef\xbb\xbfa").0, ["a"]);
    }

    #[test]
    fn utf_16_is_undone() {
        let text = "rank 1: 3.90\n😀 end\n";
        for big_endian in [false, true] {
            let units = std::iter::once(0xfeff).chain(text.encode_utf16());
            let bytes: Vec<u8> = units
                .flat_map(|unit| {
                    if big_endian {
                        unit.to_be_bytes()
                    } else {
                        unit.to_le_bytes()
                    }
                })
                .collect();
            assert_eq!(lines(&bytes).0, ["rank 1: 3.90", "😀 end"]);
        }
    }

    #[test]
    fn a_line_without_end_takes_no_memory() {
        let mut bytes = vec![b'a'; 5 * BUFFER + 17];
        bytes.extend(b"\nnext\n");
        bytes.extend(vec![b'b'; LONGEST + 1]);
        assert_eq!(lines(&bytes), (vec!["next".to_owned()], 2));
    }
}
