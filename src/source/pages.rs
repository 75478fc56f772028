//! The page headers of a Parquet column, looked at before anything is decoded by them: what they claim is held against the
//! row group and against what their bytes can hold, so that a damaged one loses no row and takes no memory.

use std::io::Cursor;

use polars_buffer::Buffer;
use polars_parquet::parquet::compression::Compression;
use polars_parquet::parquet::metadata::ColumnChunkMetadata;
use polars_parquet::parquet::page::CompressedPage;
use polars_parquet::read::PageReader;

/// Bytes that a page decodes to at most: writers make pages of a megabyte, some of a whole row group.
const LARGEST_PAGE: u64 = 1 << 29;

/// Walks over the pages of a column in a group of so many rows; `bytes` are those of the column.
///
/// # Errors
/// Headers that can't be read, or that claim what can't be.
pub(super) fn check(bytes: &Buffer<u8>, chunk: &ColumnChunkMetadata, rows: usize) -> Result<(), String> {
    let values = u64::try_from(chunk.num_values()).map_err(|_| "it says that it holds less than no value")?;
    let is_flat = chunk.descriptor().descriptor.max_rep_level == 0;
    if is_flat && values != rows as u64 {
        return Err(format!(
            "it says that it holds {values} values in a row group of {rows} rows"
        ));
    }
    let codec = chunk.compression();
    let mut found: u64 = 0;
    for page in PageReader::new(Cursor::new(bytes.clone()), chunk, Vec::new(), bytes.len()) {
        match page.map_err(|error| error.to_string())? {
            CompressedPage::Data(page) => {
                check_size(codec, page.compressed_size() as u64, page.uncompressed_size() as u64)?;
                found = found.saturating_add(page.num_values() as u64);
                if page.num_rows().is_some_and(|in_page| in_page > rows) {
                    return Err("a page says that it holds more rows than the row group".to_owned());
                }
            }
            CompressedPage::Dict(_) => check_dictionary(codec, bytes)?,
        }
    }
    if found != values {
        return Err(format!("its pages hold {found} values where it says {values}"));
    }
    Ok(())
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
        return Err(format!(
            "a page of {compressed} bytes says that it decodes to {decoded}"
        ));
    }
    Ok(())
}

/// The dictionary is the first page. Its sizes are not to be had from the reader.
fn check_dictionary(codec: Compression, bytes: &[u8]) -> Result<(), String> {
    let Some(header) = DictionaryHeader::read(bytes) else {
        return Err("the header of its dictionary can't be read".to_owned());
    };
    check_size(codec, header.compressed, header.decoded)?;
    // No word takes less than a byte, but for truth values, of which there are no dictionaries.
    if header.words > header.decoded {
        let DictionaryHeader { words, decoded, .. } = header;
        return Err(format!(
            "its dictionary of {decoded} bytes says that it holds {words} words"
        ));
    }
    Ok(())
}

#[derive(Debug, PartialEq, Eq)]
struct DictionaryHeader {
    decoded: u64,
    compressed: u64,
    words: u64,
}

impl DictionaryHeader {
    /// Reads the fields of a PageHeader in Thrift's compact protocol, in the order in which they are written: type,
    /// uncompressed size, compressed size, perhaps a checksum, then the header of the dictionary.
    fn read(mut bytes: &[u8]) -> Option<Self> {
        const NUMBER: u8 = 5;
        const STRUCT: u8 = 12;
        let (mut field, mut decoded, mut compressed) = (0, None, None);
        loop {
            let (&head, rest) = bytes.split_first()?;
            bytes = rest;
            field += head >> 4;
            match (field, head & 15) {
                (2, NUMBER) => decoded = u64::try_from(number(&mut bytes)?).ok(),
                (3, NUMBER) => compressed = u64::try_from(number(&mut bytes)?).ok(),
                (1 | 4, NUMBER) => drop(number(&mut bytes)?),
                (7, STRUCT) => break,
                _ => return None,
            }
        }
        let (&head, mut rest) = bytes.split_first()?;
        let words = if head == 0x10 | NUMBER {
            number(&mut rest)?
        } else {
            return None;
        };
        Some(Self {
            decoded: decoded?,
            compressed: compressed?,
            words: u64::try_from(words).ok()?,
        })
    }
}

/// A zigzag number of seven bits a byte.
fn number(bytes: &mut &[u8]) -> Option<i64> {
    let mut value: u64 = 0;
    for place in 0..10 {
        let (&byte, rest) = bytes.split_first()?;
        *bytes = rest;
        value |= u64::from(byte & 0x7f).checked_shl(7 * place)?;
        if byte < 0x80 {
            return Some((value >> 1) as i64 ^ -((value & 1) as i64));
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_dictionarys_header_is_read() {
        // Type 2, 300 bytes, 200 compressed, 12 words.
        let bytes = [0x15, 4, 0x15, 0xd8, 4, 0x15, 0x90, 3, 0x4c, 0x15, 24, 0x15, 0, 0, 0];
        let header = DictionaryHeader::read(&bytes).expect("a header");
        assert_eq!((header.decoded, header.compressed, header.words), (300, 200, 12));
        for end in 0..10 {
            assert_eq!(DictionaryHeader::read(&bytes[..end]), None);
        }
        // Less than no word.
        let negative = [0x15, 4, 0x15, 0xd8, 4, 0x15, 0x90, 3, 0x4c, 0x15, 23];
        assert_eq!(DictionaryHeader::read(&negative), None);
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
