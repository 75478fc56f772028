//! The pages of a Parquet column, looked at before anything is decoded by them: what their headers claim is held against the
//! row group and against what their bytes can hold, and their bytes against checksums where there are some, so that a damaged
//! one loses no row, changes no value and takes no memory.

use polars_parquet::parquet::compression::Compression;
use polars_parquet::parquet::metadata::ColumnChunkMetadata;

use super::thrift::{Fields, Value};

/// Bytes that a page decodes to at most: writers make pages of a megabyte, some of a whole row group.
const LARGEST_PAGE: u64 = 1 << 29;

/// Walks over the pages of a column in a group of so many rows; `bytes` are those of the column.
///
/// # Errors
/// Headers that can't be read, or that claim what can't be; bytes that their checksum denies.
pub(super) fn check(bytes: &[u8], chunk: &ColumnChunkMetadata, rows: usize) -> Result<(), String> {
    let values = u64::try_from(chunk.num_values()).map_err(|_| "it says that it holds less than no value")?;
    let is_flat = chunk.descriptor().descriptor.max_rep_level == 0;
    if is_flat && values != rows as u64 {
        return Err(format!(
            "it says that it holds {values} values in a row group of {rows} rows"
        ));
    }
    let mut rest = bytes;
    let mut found: u64 = 0;
    let mut number = 0_u64;
    while found < values {
        let page = Page::read(&mut rest).ok_or_else(|| format!("the header of page {number} can't be read"))?;
        page.check(chunk.compression(), rows)
            .map_err(|reason| format!("page {number} {reason}"))?;
        found = found.saturating_add(page.header.values());
        number += 1;
    }
    if found != values {
        return Err(format!("its pages hold {found} values where it says {values}"));
    }
    Ok(())
}

/// A page: what its header says, and its bytes as they are stored.
#[derive(Debug, PartialEq, Eq)]
struct Page<'a> {
    header: Header,
    body: &'a [u8],
}

/// The fields of a PageHeader that are held against something.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
struct Header {
    decoded: u64,
    compressed: u64,
    checksum: Option<u32>,
    kind: Option<Kind>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Kind {
    Dictionary {
        words: u64,
    },
    Data {
        values: u64,
    },
    DataV2 {
        values: u64,
        nulls: u64,
        rows: u64,
        levels: u64,
    },
}

impl Header {
    /// Values that belong to rows.
    fn values(&self) -> u64 {
        match self.kind {
            Some(Kind::Data { values } | Kind::DataV2 { values, .. }) => values,
            Some(Kind::Dictionary { .. }) | None => 0,
        }
    }
}

impl<'a> Page<'a> {
    /// Reads a page and leaves what follows it.
    fn read(bytes: &mut &'a [u8]) -> Option<Self> {
        const DICTIONARY: u64 = 2;
        const DATA: u64 = 0;
        const DATA_V2: u64 = 3;
        let mut header = Header::default();
        let mut kind = None;
        let mut kinds = Vec::new();
        let mut fields = Fields::of(bytes);
        while let Some((field, value)) = fields.next()? {
            match (field, value) {
                (1, Value::Number(number)) => kind = u64::try_from(number).ok(),
                (2, Value::Number(number)) => header.decoded = u64::try_from(number).ok()?,
                (3, Value::Number(number)) => header.compressed = u64::try_from(number).ok()?,
                // Written as a signed number of 32 bits.
                (4, Value::Number(number)) => header.checksum = Some(i32::try_from(number).ok()?.cast_unsigned()),
                (5, Value::Struct(inner)) => kinds.push((
                    DATA,
                    Kind::Data {
                        values: numbers(inner)?[0],
                    },
                )),
                (7, Value::Struct(inner)) => kinds.push((
                    DICTIONARY,
                    Kind::Dictionary {
                        words: numbers(inner)?[0],
                    },
                )),
                (8, Value::Struct(inner)) => {
                    let [values, nulls, rows, _, definition, repetition] = numbers(inner)?;
                    let levels = definition.checked_add(repetition)?;
                    kinds.push((
                        DATA_V2,
                        Kind::DataV2 {
                            values,
                            nulls,
                            rows,
                            levels,
                        },
                    ));
                }
                _ => {}
            }
        }
        *bytes = fields.rest();
        header.kind = kinds
            .into_iter()
            .find(|(number, _)| Some(*number) == kind)
            .map(|(_, kind)| kind);
        let (body, rest) = bytes.split_at_checked(usize::try_from(header.compressed).ok()?)?;
        *bytes = rest;
        Some(Self { header, body })
    }

    fn check(&self, codec: Compression, rows: usize) -> Result<(), String> {
        let Header {
            decoded, compressed, ..
        } = self.header;
        check_size(codec, compressed, decoded)?;
        match self.header.kind {
            // No word takes less than a byte, but for truth values, of which there are no dictionaries.
            Some(Kind::Dictionary { words }) if words > decoded => {
                return Err(format!(
                    "is a dictionary of {decoded} bytes and says that it holds {words} words"
                ));
            }
            Some(Kind::DataV2 { rows: in_page, .. }) if in_page > rows as u64 => {
                return Err("says that it holds more rows than the row group".to_owned());
            }
            Some(Kind::DataV2 {
                values, nulls, levels, ..
            }) if nulls > values || levels > compressed.min(decoded) => {
                return Err("says that it holds more nulls than values, or more levels than bytes".to_owned());
            }
            None => return Err("is of no kind that holds values".to_owned()),
            Some(_) => {}
        }
        if self
            .header
            .checksum
            .is_some_and(|checksum| checksum != checksum_of(self.body))
        {
            return Err("is damaged: its checksum is another one".to_owned());
        }
        Ok(())
    }
}

/// The checksum of a page: that of gzip.
fn checksum_of(bytes: &[u8]) -> u32 {
    let mut checksum = flate2::Crc::new();
    checksum.update(bytes);
    checksum.sum()
}

/// The first six fields of a struct that are numbers; what is missing is 0.
fn numbers(mut fields: Fields<'_>) -> Option<[u64; 6]> {
    let mut numbers = [0; 6];
    while let Some((field, value)) = fields.next()? {
        if let (1..=6, Value::Number(number)) = (field, value) {
            numbers[field as usize - 1] = u64::try_from(number).ok()?;
        }
    }
    Some(numbers)
}

/// What so many bytes of a codec decode to at most.
fn check_size(codec: Compression, compressed: u64, decoded: u64) -> Result<(), String> {
    let factor = match codec {
        Compression::Uncompressed => 1,
        // A copy of up to 64 bytes takes two at least.
        Compression::Snappy => 64,
        // A length grows by 255 with each byte.
        Compression::Lz4 | Compression::Lz4Raw | Compression::Lzo => 256,
        // 258 bytes take two bits at least.
        Compression::Gzip => 1_040,
        Compression::Brotli | Compression::Zstd => u64::MAX,
    };
    // Headers of frames and short pages.
    let most = compressed.saturating_mul(factor).saturating_add(64).min(LARGEST_PAGE);
    if decoded > most {
        return Err(format!("of {compressed} bytes says that it decodes to {decoded}"));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_header_is_read_with_its_page() {
        // A dictionary of 300 bytes, 3 compressed, of 12 words, and what follows.
        let bytes = [
            0x15, 4, 0x15, 0xd8, 4, 0x15, 6, 0x4c, 0x15, 24, 0x15, 0, 0, 0, 7, 8, 9, 99,
        ];
        let mut rest = bytes.as_slice();
        let page = Page::read(&mut rest).expect("a page");
        assert_eq!(page.body, [7, 8, 9]);
        assert_eq!(page.header.kind, Some(Kind::Dictionary { words: 12 }));
        assert_eq!(rest, [99]);
        for end in 0..bytes.len() - 1 {
            assert_eq!(Page::read(&mut &bytes[..end]), None, "{end}");
        }
        // Less than no word.
        let mut negative = bytes;
        negative[9] = 23;
        assert_eq!(Page::read(&mut negative.as_slice()), None);
    }

    #[test]
    fn a_page_that_its_checksum_denies_is_damaged() {
        let page = |checksum| Page {
            header: Header {
                decoded: 3,
                compressed: 3,
                checksum,
                kind: Some(Kind::Data { values: 1 }),
            },
            body: &[7, 8, 9],
        };
        assert!(page(None).check(Compression::Uncompressed, 1).is_ok());
        let right = checksum_of(&[7, 8, 9]);
        assert!(page(Some(right)).check(Compression::Uncompressed, 1).is_ok());
        assert!(page(Some(right ^ 1)).check(Compression::Uncompressed, 1).is_err());
    }

    #[test]
    fn no_page_decodes_to_more_than_its_codec_can() {
        assert!(check_size(Compression::Snappy, 1_000, 20_000).is_ok());
        assert!(check_size(Compression::Snappy, 1_000, i32::MAX as u64).is_err());
        assert!(check_size(Compression::Zstd, 1_000, 1 << 28).is_ok());
        assert!(check_size(Compression::Zstd, 1_000, i32::MAX as u64).is_err());
        assert!(check_size(Compression::Uncompressed, 1_000, 2_000).is_err());
    }
}
