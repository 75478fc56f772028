//! Files and standard input as plain bytes, whatever they are packed with: the first bytes tell, not the name.

use std::fs::File;
use std::io::{BufReader, Cursor, Read, Result as IoResult};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

use super::discover::SourceFile;
use super::error::SourceError;

/// Bytes by which a packing is known.
const MAGIC: usize = 6;
/// Bytes of standard input that are looked at before it is read.
const HEAD: usize = 1 << 16;

/// Counts the bytes that are read of some files as they lie there, packed or not.
#[derive(Debug, Default, Clone)]
pub struct BytesRead(Arc<AtomicU64>);

impl BytesRead {
    /// Bytes so far.
    #[must_use]
    pub fn get(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }
}

/// A counter is no part of what a file is.
impl PartialEq for BytesRead {
    fn eq(&self, _: &Self) -> bool {
        true
    }
}

impl Eq for BytesRead {}

/// Counts what passes.
struct Counted<R> {
    input: R,
    bytes: BytesRead,
}

impl<R: Read> Read for Counted<R> {
    fn read(&mut self, buffer: &mut [u8]) -> IoResult<usize> {
        let read = self.input.read(buffer)?;
        self.bytes.0.fetch_add(read as u64, Ordering::Relaxed);
        Ok(read)
    }
}

/// What a file is packed with.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Packing {
    /// gzip.
    Gzip,
    /// Zstandard.
    Zstd,
    /// xz.
    Xz,
    /// The older form of xz, `.lzma`.
    Lzma,
    /// bzip2.
    Bzip2,
    /// LZ4 frames.
    Lz4,
}

/// Every packing with its first bytes.
const PACKINGS: [(Packing, &[u8]); 6] = [
    (Packing::Gzip, &[0x1f, 0x8b]),
    (Packing::Zstd, &[0x28, 0xb5, 0x2f, 0xfd]),
    (Packing::Xz, &[0xfd, b'7', b'z', b'X', b'Z', 0]),
    (Packing::Lzma, &[0x5d, 0, 0]),
    (Packing::Bzip2, b"BZh"),
    (Packing::Lz4, &[0x04, 0x22, 0x4d, 0x18]),
];

/// The endings that packed files have.
pub(super) const ENDINGS: [&str; 7] = ["gz", "zst", "zstd", "xz", "lzma", "bz2", "lz4"];

impl Packing {
    /// The packing that a file begins like.
    pub(super) fn of(head: &[u8]) -> Option<Self> {
        PACKINGS
            .iter()
            .find(|(_, magic)| head.starts_with(magic))
            .map(|&(packing, _)| packing)
    }

    fn unpacked(self, input: Box<dyn Read + Send>) -> IoResult<Box<dyn Read + Send>> {
        // Parts that were packed one by one and put together are one file.
        Ok(match self {
            Self::Gzip => Box::new(flate2::read::MultiGzDecoder::new(input)),
            Self::Zstd => Box::new(zstd::stream::read::Decoder::new(input)?),
            Self::Xz => Box::new(liblzma::read::XzDecoder::new_multi_decoder(input)),
            Self::Lzma => {
                let decoder = liblzma::stream::Stream::new_lzma_decoder(MOST_MEMORY).map_err(std::io::Error::other)?;
                Box::new(liblzma::read::XzDecoder::new_stream(input, decoder))
            }
            Self::Bzip2 => Box::new(bzip2::read::MultiBzDecoder::new(input)),
            Self::Lz4 => Box::new(lz4_flex::frame::FrameDecoder::new(input)),
        })
    }
}

/// Memory that a decoder may take.
const MOST_MEMORY: u64 = 256 << 20;

/// The plain bytes of a file or of standard input.
///
/// # Errors
/// A file that can't be opened or whose packing is damaged at its begin.
pub(super) fn open(file: &SourceFile) -> Result<Box<dyn Read + Send>, SourceError> {
    let io = |error| SourceError::io(&file.path)(error);
    if file.is_stdin() {
        let head = std::mem::take(&mut *peeked());
        let whole: Box<dyn Read + Send> = Box::new(Cursor::new(head).chain(std::io::stdin()));
        return plain(whole).map_err(io);
    }
    let input = File::open(&file.path).map_err(io)?;
    let bytes = file.options.bytes.clone();
    plain(Box::new(Counted { input, bytes })).map_err(io)
}

/// Unpacks an input, if it is packed.
fn plain(mut input: Box<dyn Read + Send>) -> IoResult<Box<dyn Read + Send>> {
    let mut head = Vec::new();
    input.by_ref().take(MAGIC as u64).read_to_end(&mut head)?;
    let packing = Packing::of(&head);
    let whole: Box<dyn Read + Send> = Box::new(Cursor::new(head).chain(input));
    match packing {
        Some(packing) => packing.unpacked(Box::new(BufReader::with_capacity(1 << 18, whole))),
        None => Ok(whole),
    }
}

/// The first bytes of what a file holds, unpacked, and whether these are all; the packing if there is one.
///
/// # Errors
/// A file that can't be read. A damaged packing gives what could be unpacked.
pub(super) fn head(file: &SourceFile, length: usize) -> Result<Head, SourceError> {
    let io = |error| SourceError::io(&file.path)(error);
    let mut magic = Vec::new();
    File::open(&file.path)
        .and_then(|opened| opened.take(MAGIC as u64).read_to_end(&mut magic))
        .map_err(io)?;
    let packing = Packing::of(&magic);
    let mut bytes = Vec::new();
    let read = open(file)?.take(length as u64).read_to_end(&mut bytes);
    if packing.is_none() {
        read.map_err(io)?;
    }
    Ok(Head {
        all: bytes.len() < length,
        bytes,
        packing,
    })
}

/// The first bytes of what a file holds.
pub(super) struct Head {
    pub bytes: Vec<u8>,
    /// Whether there are no more.
    pub all: bool,
    pub packing: Option<Packing>,
}

static PEEKED: Mutex<Vec<u8>> = Mutex::new(Vec::new());

fn peeked() -> std::sync::MutexGuard<'static, Vec<u8>> {
    PEEKED.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
}

/// The first bytes of standard input, unpacked; [`open`] gives them again. A line is enough.
///
/// # Errors
/// Standard input that can't be read.
pub(super) fn peek_stdin() -> IoResult<Vec<u8>> {
    let mut head = peeked();
    let mut buffer = vec![0; HEAD];
    let mut stdin = std::io::stdin();
    while head.len() < HEAD && !(head.len() > MAGIC && (head.contains(&b'\n') || Packing::of(&head).is_some())) {
        match stdin.read(&mut buffer) {
            Ok(0) => break,
            Ok(read) => head.extend_from_slice(&buffer[..read]),
            Err(error) if error.kind() == std::io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    if Packing::of(&head).is_none() {
        return Ok(head.clone());
    }
    // A packed head may end in mid-block: what it gives is enough to know the format.
    let mut bytes = Vec::new();
    let mut begin = plain(Box::new(Cursor::new(head.clone())))?;
    let _ = begin.by_ref().take(HEAD as u64).read_to_end(&mut bytes);
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use super::*;

    const TEXT: &[u8] = b"iteration 1/ 2 | a line that repeats itself, a line that repeats itself\n";

    fn packed(packing: Packing) -> Vec<u8> {
        let text = TEXT.repeat(100);
        let mut out = Vec::new();
        match packing {
            Packing::Gzip => {
                // Two members, as appended logs have.
                for half in text.chunks(text.len() / 2) {
                    let mut encoder = flate2::write::GzEncoder::new(&mut out, flate2::Compression::fast());
                    encoder.write_all(half).expect("packed");
                    encoder.finish().expect("packed");
                }
            }
            Packing::Zstd => out = zstd::encode_all(text.as_slice(), 1).expect("packed"),
            Packing::Xz => {
                let mut encoder = liblzma::write::XzEncoder::new(&mut out, 1);
                encoder.write_all(&text).expect("packed");
                encoder.finish().expect("packed");
            }
            Packing::Lzma => {
                let options = liblzma::stream::LzmaOptions::new_preset(1).expect("options");
                let stream = liblzma::stream::Stream::new_lzma_encoder(&options).expect("an encoder");
                let mut encoder = liblzma::write::XzEncoder::new_stream(&mut out, stream);
                encoder.write_all(&text).expect("packed");
                encoder.finish().expect("packed");
            }
            Packing::Bzip2 => {
                let mut encoder = bzip2::write::BzEncoder::new(&mut out, bzip2::Compression::fast());
                encoder.write_all(&text).expect("packed");
                encoder.finish().expect("packed");
            }
            Packing::Lz4 => {
                let mut encoder = lz4_flex::frame::FrameEncoder::new(&mut out);
                encoder.write_all(&text).expect("packed");
                encoder.finish().expect("packed");
            }
        }
        out
    }

    #[test]
    fn every_packing_is_known_by_its_content() {
        for (packing, _) in PACKINGS {
            let bytes = packed(packing);
            assert_eq!(Packing::of(&bytes), Some(packing));
            let mut text = Vec::new();
            plain(Box::new(Cursor::new(bytes)))
                .and_then(|mut input| input.read_to_end(&mut text))
                .expect("unpacked");
            assert_eq!(text, TEXT.repeat(100), "{packing:?}");
        }
    }

    #[test]
    fn a_cut_file_is_an_error() {
        for (packing, _) in PACKINGS {
            let mut bytes = packed(packing);
            bytes.truncate(bytes.len() - 8);
            let mut text = Vec::new();
            let read = plain(Box::new(Cursor::new(bytes))).and_then(|mut input| input.read_to_end(&mut text));
            assert!(read.is_err(), "{packing:?}");
        }
    }
}
