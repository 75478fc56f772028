//! The bytes of a record batch, and what its buffers decode to.

use std::fs::File;
use std::io::{Read, Seek, SeekFrom};

use polars_arrow_format::ipc::{CompressionType, MetadataVersion};

/// Bytes that a compressed buffer decodes to at most.
const LARGEST_BUFFER: u64 = 1 << 30;

/// Where the bytes of a batch are.
pub(super) struct Body<'f> {
    pub file: &'f File,
    pub begin: u64,
    pub length: u64,
    pub version: MetadataVersion,
}

/// A part of the body.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Span {
    pub offset: u64,
    pub length: u64,
}

impl Body<'_> {
    /// Bytes that a buffer decodes to: a compressed one says it in its first eight.
    pub fn decoded_size(&self, codec: Option<CompressionType>, span: Span) -> Result<u64, String> {
        let Some(codec) = codec.filter(|_| span.length > 0) else {
            return Ok(span.length);
        };
        if span.length < 8 {
            return Err(format!("a compressed buffer has {} bytes", span.length));
        }
        let mut size = [0; 8];
        self.at(span)?
            .read_exact(&mut size)
            .map_err(|error| error.to_string())?;
        let packed = span.length - 8;
        let most = match codec {
            // A length grows by 255 with each byte.
            CompressionType::Lz4Frame => packed.saturating_mul(256).saturating_add(64),
            CompressionType::Zstd => LARGEST_BUFFER,
        };
        match i64::from_le_bytes(size) {
            // Not compressed after all.
            -1 => Ok(packed),
            size => match u64::try_from(size) {
                Ok(size) if size <= most.min(LARGEST_BUFFER) => Ok(size),
                _ => Err(format!("a buffer of {packed} bytes says that it decodes to {size}")),
            },
        }
    }

    /// The first bytes of a buffer, decoded.
    pub fn decoded(&self, codec: Option<CompressionType>, span: Span, needed: u64) -> Result<Vec<u8>, String> {
        let found = self.decoded_size(codec, span)?;
        if found < needed {
            return Err(format!("its nulls take {found} bytes where its rows need {needed}"));
        }
        let mut input = self.at(span)?.take(span.length);
        let mut decoded = Vec::new();
        let unreadable = |error: std::io::Error| format!("its nulls can't be decoded ({error})");
        if let Some(codec) = codec {
            let mut size = [0; 8];
            input.read_exact(&mut size).map_err(unreadable)?;
            if i64::from_le_bytes(size) != -1 {
                let read = match codec {
                    CompressionType::Lz4Frame => lz4_flex::frame::FrameDecoder::new(input)
                        .take(needed)
                        .read_to_end(&mut decoded),
                    CompressionType::Zstd => zstd::stream::read::Decoder::new(input)
                        .and_then(|input| input.take(needed).read_to_end(&mut decoded)),
                };
                read.map_err(unreadable)?;
                return whole(decoded, needed);
            }
        }
        input.take(needed).read_to_end(&mut decoded).map_err(unreadable)?;
        whole(decoded, needed)
    }

    fn at(&self, span: Span) -> Result<&File, String> {
        let mut file = self.file;
        file.seek(SeekFrom::Start(self.begin.saturating_add(span.offset)))
            .map_err(|error| error.to_string())?;
        Ok(file)
    }
}

fn whole(decoded: Vec<u8>, needed: u64) -> Result<Vec<u8>, String> {
    if (decoded.len() as u64) < needed {
        return Err(format!("its nulls decode to {} bytes of {needed}", decoded.len()));
    }
    Ok(decoded)
}

/// Ones among the first bits.
pub(super) fn ones(bytes: &[u8], bits: u64) -> u64 {
    let full = bytes.iter().take((bits / 8) as usize);
    let full: u64 = full.map(|byte| u64::from(byte.count_ones())).sum();
    let rest = bits % 8;
    let last = bytes.get((bits / 8) as usize).copied().unwrap_or(0);
    full + u64::from((last & ((1_u8 << rest) - 1)).count_ones())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ones_are_counted_up_to_the_last_row() {
        assert_eq!(ones(&[0xff, 0xff], 11), 11);
        assert_eq!(ones(&[0b1010_1010, 0b0000_0101], 9), 5);
        assert_eq!(ones(&[0xff], 8), 8);
        assert_eq!(ones(&[], 0), 0);
    }
}
