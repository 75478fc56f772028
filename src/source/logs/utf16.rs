//! Logs that a Windows shell has redirected: UTF-16 is undone, marks at the begin are passed over.

use std::io::{Cursor, Read, Result};

/// An input as UTF-8, by the mark that it begins with.
///
/// # Errors
/// An input that can't be read.
pub(super) fn as_utf8(mut input: Box<dyn Read + Send>) -> Result<Box<dyn Read + Send>> {
    let mut head = Vec::new();
    input.by_ref().take(4).read_to_end(&mut head)?;
    let (skip, order) = match head.as_slice() {
        [0xff, 0xfe, ..] => (2, Some(false)),
        [0xfe, 0xff, ..] => (2, Some(true)),
        [0xef, 0xbb, 0xbf, ..] => (3, None),
        _ => (0, None),
    };
    let whole = Cursor::new(head.split_off(skip)).chain(input);
    Ok(match order {
        Some(big_endian) => Box::new(Utf16::new(Box::new(whole), big_endian)),
        None => Box::new(whole),
    })
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
            let mut read = String::new();
            let mut input = as_utf8(Box::new(Cursor::new(bytes))).expect("opened");
            input.read_to_string(&mut read).expect("text");
            assert_eq!(read, text);
        }
    }
}
