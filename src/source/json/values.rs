//! JSON values cut out of a stream one after the other, so that a document of any length takes the memory of one row.

use std::io::{BufRead, ErrorKind, Read};

use memchr::memchr2;

use crate::source::bounded::LONGEST;

/// What is wrong with a document, and in which line.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(in crate::source) struct Broken {
    pub line: u64,
    pub reason: String,
}

/// A stream of JSON text.
pub(in crate::source) struct JsonValues<R> {
    input: R,
    line: u64,
}

impl<R: BufRead> JsonValues<R> {
    pub fn new(input: R) -> Self {
        Self { input, line: 1 }
    }

    /// The line that is being read, from 1.
    pub fn line(&self) -> u64 {
        self.line
    }

    fn broken(&self, reason: impl Into<String>) -> Broken {
        Broken {
            line: self.line,
            reason: reason.into(),
        }
    }

    fn buffer(&mut self) -> Result<&[u8], Broken> {
        loop {
            match self.input.fill_buf() {
                Ok(_) => break,
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) => return Err(self.broken(error.to_string())),
            }
        }
        let line = self.line;
        let broken = |error: std::io::Error| Broken {
            line,
            reason: error.to_string(),
        };
        self.input.fill_buf().map_err(broken)
    }

    /// The next byte that is no blank; `None` at the end. It is not taken.
    ///
    /// # Errors
    /// An input that can't be read.
    pub fn peek(&mut self) -> Result<Option<u8>, Broken> {
        loop {
            let buffer = self.buffer()?;
            if buffer.is_empty() {
                return Ok(None);
            }
            let blanks = buffer.iter().take_while(|byte| byte.is_ascii_whitespace()).count();
            let next = buffer.get(blanks).copied();
            let lines = memchr::memchr_iter(b'\n', &buffer[..blanks]).count() as u64;
            self.line += lines;
            self.input.consume(blanks);
            if next.is_some() {
                return Ok(next);
            }
        }
    }

    /// Takes the next byte if it is this one.
    ///
    /// # Errors
    /// Another one, or the end.
    pub fn expect(&mut self, byte: u8) -> Result<(), Broken> {
        match self.peek()? {
            Some(next) if next == byte => {
                self.input.consume(1);
                Ok(())
            }
            Some(next) => Err(self.broken(format!(
                "expected `{}`, found `{}`",
                char::from(byte),
                char::from(next).escape_default()
            ))),
            None => Err(self.broken("the file breaks off here")),
        }
    }

    /// Copies the next value as it is written; `false` at the end. Whether it is sound inside is for whoever reads it.
    ///
    /// # Errors
    /// A value that does not end, or is longer than any row.
    pub fn value(&mut self, text: &mut Vec<u8>) -> Result<bool, Broken> {
        text.clear();
        if self.peek()?.is_none() {
            return Ok(false);
        }
        let (mut depth, mut in_string, mut escaped) = (0_usize, false, false);
        loop {
            let buffer = self.buffer()?;
            if buffer.is_empty() {
                // A number may end a file.
                let ended = depth == 0 && !in_string && !text.is_empty();
                return if ended {
                    Ok(true)
                } else {
                    Err(self.broken("the file breaks off here"))
                };
            }
            let (mut taken, mut done) = (0, false);
            while let Some(&byte) = buffer.get(taken) {
                if in_string {
                    if escaped {
                        escaped = false;
                        taken += 1;
                        continue;
                    }
                    match memchr2(b'"', b'\\', &buffer[taken..]) {
                        None => taken = buffer.len(),
                        Some(at) => {
                            escaped = buffer[taken + at] == b'\\';
                            in_string = escaped;
                            taken += at + 1;
                            done = !in_string && depth == 0;
                        }
                    }
                } else {
                    match byte {
                        b'"' => in_string = true,
                        b'{' | b'[' => depth += 1,
                        b'}' | b']' if depth == 0 => {
                            done = true;
                            break;
                        }
                        b'}' | b']' => {
                            depth -= 1;
                            done = depth == 0;
                        }
                        // A number or a word ends where something else begins.
                        b',' | b':' if depth == 0 => {
                            done = true;
                            break;
                        }
                        _ if depth == 0 && byte.is_ascii_whitespace() => {
                            done = true;
                            break;
                        }
                        _ => {}
                    }
                    taken += 1;
                }
                if done {
                    break;
                }
            }
            text.extend_from_slice(&buffer[..taken]);
            let lines = memchr::memchr_iter(b'\n', &buffer[..taken]).count() as u64;
            self.line += lines;
            self.input.consume(taken);
            if done {
                return if text.is_empty() {
                    Err(self.broken("a value is missing"))
                } else {
                    Ok(true)
                };
            }
            if text.len() as u64 > LONGEST {
                return Err(self.broken("a value does not end within 64 MB"));
            }
        }
    }

    /// The rest of the line, for forms that go line by line.
    pub fn into_input(self) -> R {
        self.input
    }
}

/// The first value of a text that begins with one, if all of it is there, and what follows it.
pub(super) fn first_value(text: &[u8]) -> Option<(&[u8], &[u8])> {
    let begin = text.iter().position(|byte| !byte.is_ascii_whitespace())?;
    let mut values = JsonValues::new(&text[begin..]);
    let mut value = Vec::new();
    let whole = values.value(&mut value).ok()?;
    let mut rest = Vec::new();
    let left = values.into_input().read_to_end(&mut rest).ok()?;
    let end = text.len() - left;
    whole.then(|| (&text[begin..end], &text[end..]))
}

#[cfg(test)]
mod tests {
    use std::io::BufReader;

    use super::*;

    fn values(text: &str, buffer: usize) -> (Vec<String>, Option<Broken>) {
        let mut values = JsonValues::new(BufReader::with_capacity(buffer, text.as_bytes()));
        let (mut found, mut value) = (Vec::new(), Vec::new());
        loop {
            match values.value(&mut value) {
                Ok(true) => found.push(String::from_utf8_lossy(&value).into_owned()),
                Ok(false) => return (found, None),
                Err(broken) => return (found, Some(broken)),
            }
        }
    }

    #[test]
    fn values_are_cut_where_they_end_whatever_the_buffer() {
        let text = " {\"a\": [1, {\"b\": \"}\\\\\\\"]\"}]}\n[1,\n2] \"x\\\"y\" 12 true";
        let expected = [
            "{\"a\": [1, {\"b\": \"}\\\\\\\"]\"}]}",
            "[1,\n2]",
            "\"x\\\"y\"",
            "12",
            "true",
        ];
        for buffer in 1..20 {
            let (found, broken) = values(text, buffer);
            assert_eq!(
                (found.as_slice(), broken),
                (&expected.map(str::to_owned)[..], None),
                "{buffer}"
            );
        }
    }

    #[test]
    fn what_does_not_end_is_an_error_with_its_line() {
        let (found, broken) = values("{\"a\":1}\n{\"a\":\n1", 7);
        assert_eq!((found.len(), broken.map(|broken| broken.line)), (1, Some(3)));
        assert!(values("{} ]", 7).1.is_some());
    }

    #[test]
    fn the_first_value_has_what_follows() {
        let (value, rest) = first_value(b" {\"a\":1}\n{").expect("a value");
        assert_eq!((value, rest), (&b"{\"a\":1}"[..], &b"\n{"[..]));
        assert!(first_value(b"{\"a\":").is_none());
    }
}
