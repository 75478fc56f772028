//! Thrift's compact protocol, as far as the headers of Parquet's pages need it: the fields of a struct, one after the other,
//! without trust in any length.

/// Structs and lists in each other that are followed at most; headers hold three.
const DEEPEST: u32 = 16;

/// The fields of a struct.
#[derive(Debug, Clone, Copy)]
pub(super) struct Fields<'a> {
    bytes: &'a [u8],
    last: i16,
}

/// What a field holds.
#[derive(Debug, Clone, Copy)]
pub(super) enum Value<'a> {
    /// An integer of any width.
    Number(i64),
    /// A struct.
    Struct(Fields<'a>),
    /// Something else, which was passed over.
    Other,
}

impl<'a> Fields<'a> {
    /// Of the struct at the beginning of some bytes.
    pub fn of(bytes: &'a [u8]) -> Self {
        Self { bytes, last: 0 }
    }

    /// The next field's number and value, `Some(None)` behind the last one; `None` of bytes that are no struct.
    #[allow(clippy::option_option, reason = "an end is no error")]
    pub fn next(&mut self) -> Option<Option<(i16, Value<'a>)>> {
        let head = byte(&mut self.bytes)?;
        if head == 0 {
            return Some(None);
        }
        self.last = match head >> 4 {
            0 => i16::try_from(number(&mut self.bytes)?).ok()?,
            step => self.last.checked_add(i16::from(step))?,
        };
        let value = match head & 15 {
            kind::I16 | kind::I32 | kind::I64 => Value::Number(number(&mut self.bytes)?),
            kind::STRUCT => {
                let inner = Self::of(self.bytes);
                skip(&mut self.bytes, kind::STRUCT, DEEPEST)?;
                Value::Struct(inner)
            }
            // Truth values stand in the head itself.
            kind::TRUE | kind::FALSE => Value::Other,
            other => {
                skip(&mut self.bytes, other, DEEPEST)?;
                Value::Other
            }
        };
        Some(Some((self.last, value)))
    }

    /// The bytes behind the fields that were read.
    pub fn rest(&self) -> &'a [u8] {
        self.bytes
    }
}

mod kind {
    pub const TRUE: u8 = 1;
    pub const FALSE: u8 = 2;
    pub const BYTE: u8 = 3;
    pub const I16: u8 = 4;
    pub const I32: u8 = 5;
    pub const I64: u8 = 6;
    pub const DOUBLE: u8 = 7;
    pub const BYTES: u8 = 8;
    pub const LIST: u8 = 9;
    pub const SET: u8 = 10;
    pub const STRUCT: u8 = 12;
}

fn byte(bytes: &mut &[u8]) -> Option<u8> {
    let (&first, rest) = bytes.split_first()?;
    *bytes = rest;
    Some(first)
}

fn pass(bytes: &mut &[u8], count: u64) -> Option<()> {
    *bytes = bytes.get(usize::try_from(count).ok()?..)?;
    Some(())
}

/// Seven bits a byte, the lowest first.
fn unsigned(bytes: &mut &[u8]) -> Option<u64> {
    let mut value = 0;
    for place in 0..10 {
        let byte = byte(bytes)?;
        value |= u64::from(byte & 0x7f).checked_shl(7 * place)?;
        if byte < 0x80 {
            return Some(value);
        }
    }
    None
}

/// A zigzag number: even ones are positive.
fn number(bytes: &mut &[u8]) -> Option<i64> {
    unsigned(bytes).map(|value| (value >> 1) as i64 ^ -((value & 1) as i64))
}

/// Passes over a value.
fn skip(bytes: &mut &[u8], of: u8, depth: u32) -> Option<()> {
    let depth = depth.checked_sub(1)?;
    match of {
        kind::TRUE | kind::FALSE | kind::BYTE => pass(bytes, 1),
        kind::I16 | kind::I32 | kind::I64 => unsigned(bytes).map(drop),
        kind::DOUBLE => pass(bytes, 8),
        kind::BYTES => {
            let count = unsigned(bytes)?;
            pass(bytes, count)
        }
        kind::LIST | kind::SET => {
            let head = byte(bytes)?;
            let count = match head >> 4 {
                15 => unsigned(bytes)?,
                count => u64::from(count),
            };
            (0..count).try_for_each(|_| skip(bytes, head & 15, depth))
        }
        kind::STRUCT => loop {
            let head = byte(bytes)?;
            if head == 0 {
                return Some(());
            }
            if head >> 4 == 0 {
                number(bytes)?;
            }
            match head & 15 {
                kind::TRUE | kind::FALSE => {}
                other => skip(bytes, other, depth)?,
            }
        },
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_are_read_and_unknown_ones_passed_over() {
        // 1: i32 2, 2: i32 300, 3: list of two bytes strings, 7: struct { 1: i32 12, 3: true }, then the end and more.
        let bytes = [
            0x15, 4, 0x15, 0xd8, 4, 0x19, 0x28, 1, b'a', 0, 0x4c, 0x15, 24, 0x21, 0, 0, 99,
        ];
        let mut fields = Fields::of(&bytes);
        let mut read = Vec::new();
        while let Some((field, value)) = fields.next().expect("fields") {
            match value {
                Value::Number(number) => read.push((field, number)),
                Value::Struct(mut inner) => {
                    let first = inner.next().expect("a field").expect("not the end");
                    assert!(matches!(first, (1, Value::Number(12))));
                    read.push((field, -1));
                }
                Value::Other => read.push((field, -2)),
            }
        }
        assert_eq!(read, [(1, 2), (2, 300), (3, -2), (7, -1)]);
        assert_eq!(fields.rest(), [99]);
    }

    #[test]
    fn cut_and_endless_bytes_are_no_struct() {
        let whole = [0x15, 4, 0x4c, 0x15, 24, 0, 0];
        for end in 0..whole.len() {
            let mut fields = Fields::of(&whole[..end]);
            let ended = loop {
                match fields.next() {
                    None => break false,
                    Some(None) => break true,
                    Some(Some(_)) => {}
                }
            };
            assert!(!ended, "{end}");
        }
        // A struct in a struct in a struct...
        assert!(Fields::of(&[0x1c; 10_000]).next().is_none());
        // A list of 2^63 values of no bytes.
        assert!(
            Fields::of(&[0x19, 0xf0, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x7f])
                .next()
                .is_none()
        );
    }
}
