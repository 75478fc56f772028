//! The messages of an Arrow IPC file, looked at before anything is decoded by them: what they claim is held against the bytes
//! that are there, so that a damaged length takes no memory.

use std::fs::File;
use std::io::{Read, Seek, SeekFrom};

use polars_arrow_format::ipc::planus::ReadAsRoot;
use polars_arrow_format::ipc::{CompressionType, MessageHeaderRef, MessageRef, RecordBatchRef};

/// What begins a message, but for those of old writers.
const MARK: [u8; 4] = [0xff; 4];
/// Bytes of the description of a message, which names its buffers: more than any has.
const LONGEST: u64 = 64 << 20;
/// Bytes that a compressed buffer decodes to at most.
const LARGEST_BUFFER: u64 = 1 << 30;

/// Where a message lies: what its description takes, its mark included, and its body.
#[derive(Debug, Clone, Copy)]
pub(super) struct MessageSpan {
    pub offset: i64,
    pub description: i32,
    pub body: i64,
}

/// Checks the messages of a file at the places that its footer names.
///
/// # Errors
/// Messages that can't be read, or that claim what can't be.
pub(super) fn check_file(mut file: &File, places: impl IntoIterator<Item = MessageSpan>) -> Result<(), String> {
    let length = file.metadata().map_err(|error| error.to_string())?.len();
    for (number, place) in places.into_iter().enumerate() {
        let damaged = |reason: String| format!("message {number}: {reason}");
        let beyond = || damaged("it lies beyond the end of the file".to_owned());
        let (offset, body) = (u64::try_from(place.offset), u64::try_from(place.body));
        let (Ok(offset), Ok(body), Ok(_)) = (offset, body, u32::try_from(place.description)) else {
            return Err(beyond());
        };
        file.seek(SeekFrom::Start(offset)).map_err(|error| error.to_string())?;
        let Some(message) = Message::read(&mut file, length).map_err(damaged)? else {
            return Err(damaged("it is empty".to_owned()));
        };
        if message.begin.checked_add(body).is_none_or(|end| end > length) {
            return Err(beyond());
        }
        message.check(&mut file, Some(body)).map_err(damaged)?;
    }
    Ok(())
}

/// Checks the messages of a stream, one after the other until its end or where it was cut.
///
/// # Errors
/// The same.
pub(super) fn check_stream(mut file: &File) -> Result<(), String> {
    let length = file.metadata().map_err(|error| error.to_string())?.len();
    file.rewind().map_err(|error| error.to_string())?;
    let mut number = 0;
    while file.stream_position().map_err(|error| error.to_string())? < length {
        let damaged = |reason: String| format!("message {number}: {reason}");
        let Some(message) = Message::read(&mut file, length).map_err(damaged)? else {
            break;
        };
        let end = message.check(&mut file, None).map_err(damaged)?;
        if end > length {
            // Cut: the reader finds that out, and says so.
            break;
        }
        file.seek(SeekFrom::Start(end)).map_err(|error| error.to_string())?;
        number += 1;
    }
    file.rewind().map_err(|error| error.to_string())
}

struct Message {
    description: Vec<u8>,
    /// Where its body begins.
    begin: u64,
}

impl Message {
    /// Reads the description at the file's position; `None` where the stream ends.
    fn read(file: &mut &File, length: u64) -> Result<Option<Self>, String> {
        let position = |file: &mut &File| file.stream_position().map_err(|error| error.to_string());
        let mut word = [0; 4];
        if file.read_exact(&mut word).is_err() {
            return Ok(None);
        }
        if word == MARK && file.read_exact(&mut word).is_err() {
            return Ok(None);
        }
        let size = i32::from_le_bytes(word);
        if size == 0 {
            return Ok(None);
        }
        let begin = position(file)?;
        let size = u64::try_from(size).map_err(|_| "its description is shorter than nothing")?;
        if size > LONGEST || begin.saturating_add(size) > length {
            return Err(format!("its description would take {size} bytes"));
        }
        let mut description = Vec::new();
        let read = file.take(size).read_to_end(&mut description);
        read.map_err(|error| error.to_string())?;
        Ok(Some(Self {
            description,
            begin: begin + size,
        }))
    }

    /// Checks what it says of its body, and gives where that ends.
    fn check(&self, file: &mut &File, expected: Option<u64>) -> Result<u64, String> {
        let unreadable = |error: &dyn std::fmt::Display| format!("its description can't be read ({error})");
        let message = MessageRef::read_as_root(&self.description).map_err(|error| unreadable(&error))?;
        let body = message.body_length().map_err(|error| unreadable(&error))?;
        let body = u64::try_from(body).map_err(|_| "its body is shorter than nothing")?;
        if expected.is_some_and(|expected| expected != body) {
            return Err("its body is of another length than the footer says".to_owned());
        }
        match message.header().map_err(|error| unreadable(&error))? {
            Some(MessageHeaderRef::RecordBatch(batch)) => self.check_batch(file, batch, body)?,
            Some(MessageHeaderRef::DictionaryBatch(dictionary)) => {
                if let Some(batch) = dictionary.data().map_err(|error| unreadable(&error))? {
                    self.check_batch(file, batch, body)?;
                }
            }
            _ => {}
        }
        Ok(self.begin.saturating_add(body))
    }

    fn check_batch(&self, file: &mut &File, batch: RecordBatchRef<'_>, body: u64) -> Result<(), String> {
        let unreadable = |error: &dyn std::fmt::Display| format!("its description can't be read ({error})");
        let codec = match batch.compression().map_err(|error| unreadable(&error))? {
            Some(compression) => Some(compression.codec().map_err(|error| unreadable(&error))?),
            None => None,
        };
        let mut decoded: u64 = 0;
        for buffer in batch
            .buffers()
            .map_err(|error| unreadable(&error))?
            .into_iter()
            .flatten()
        {
            let (offset, length) = (u64::try_from(buffer.offset()), u64::try_from(buffer.length()));
            let (Ok(offset), Ok(length)) = (offset, length) else {
                return Err("a buffer begins or ends before its body".to_owned());
            };
            if offset.checked_add(length).is_none_or(|end| end > body) {
                return Err("a buffer ends behind its body".to_owned());
            }
            let size = match codec {
                Some(codec) if length > 0 => self.decoded_size(file, offset, length, codec)?,
                _ => length,
            };
            decoded = decoded.saturating_add(size);
        }
        let rows = batch.length().map_err(|error| unreadable(&error))?;
        // A cell takes a bit at least, and some columns more.
        if u64::try_from(rows).ok().is_none_or(|rows| rows.div_ceil(8) > decoded) {
            return Err(format!("it says that it holds {rows} rows in {decoded} bytes"));
        }
        Ok(())
    }

    /// What a compressed buffer says that it decodes to, in its first eight bytes.
    fn decoded_size(&self, file: &mut &File, offset: u64, length: u64, codec: CompressionType) -> Result<u64, String> {
        if length < 8 {
            return Err(format!("a compressed buffer has {length} bytes"));
        }
        let mut size = [0; 8];
        let read = file.seek(SeekFrom::Start(self.begin.saturating_add(offset)));
        if read.and_then(|_| file.read_exact(&mut size)).is_err() {
            // Cut: the reader finds that out, and says so.
            return Ok(0);
        }
        let packed = length - 8;
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
}
