//! The messages of an Arrow IPC file, looked at before anything is decoded by them: what they claim is held against the bytes
//! that are there, so that a damaged length takes no memory.

mod body;
mod buffers;
mod types;

use std::fs::File;
use std::io::{Read, Seek, SeekFrom};

use polars_arrow::datatypes::ArrowSchema;
use polars_arrow::io::ipc::IpcSchema;
use polars_arrow::io::ipc::read::deserialize_schema;
use polars_arrow_format::ipc::planus::ReadAsRoot;
use polars_arrow_format::ipc::{MessageHeaderRef, MessageRef};

use self::body::Body;
use self::types::Types;

/// What begins a message, but for those of old writers.
const MARK: [u8; 4] = [0xff; 4];
/// Bytes of the description of a message, which names its buffers: more than any has.
const LONGEST: u64 = 64 << 20;
/// Where the first message of a file begins, behind its mark.
const FIRST: u64 = 8;
/// Bytes at the end of a file: the length of the footer, and the mark again.
const LAST: u64 = 10;
/// Bytes that may lie between two messages: padding, or the end mark of a stream.
const BETWEEN: u64 = 64 + 8;

/// Where a message lies: what its description takes, its mark included, and its body.
#[derive(Debug, Clone, Copy)]
pub(super) struct MessageSpan {
    pub offset: i64,
    pub description: i32,
    pub body: i64,
}

/// Checks the messages of a file: they lie one behind the other between its two marks, and its schema, which stands in front and
/// in the footer, is the same in both places.
///
/// # Errors
/// Messages that can't be read, or that claim what can't be.
pub(super) fn check_file(
    mut file: &File,
    schema: &ArrowSchema,
    ipc: &IpcSchema,
    places: impl IntoIterator<Item = MessageSpan>,
) -> Result<(), String> {
    let length = file.metadata().map_err(|error| error.to_string())?.len();
    file.seek(SeekFrom::Start(FIRST)).map_err(|error| error.to_string())?;
    let first = Message::read(&mut file, length)?.ok_or("it has no schema in front")?;
    let (front, _) = first.schema()?;
    if !is_same(&front, schema) {
        return Err("the schema in front is another one than in the footer".to_owned());
    }
    let types = Types::of(schema, ipc);
    let mut places: Vec<MessageSpan> = places.into_iter().collect();
    places.sort_by_key(|place| place.offset);
    let mut end = first.begin;
    for (number, place) in places.into_iter().enumerate() {
        let damaged = |reason: String| format!("message {number}: {reason}");
        let beyond = || damaged("it lies beyond the end of the file".to_owned());
        let (offset, body) = (u64::try_from(place.offset), u64::try_from(place.body));
        let (Ok(offset), Ok(body), Ok(description)) = (offset, body, u64::try_from(place.description)) else {
            return Err(beyond());
        };
        follows(end, offset).map_err(damaged)?;
        file.seek(SeekFrom::Start(offset)).map_err(|error| error.to_string())?;
        let Some(message) = Message::read(&mut file, length).map_err(damaged)? else {
            return Err(damaged("it is empty".to_owned()));
        };
        if offset.checked_add(description) != Some(message.begin) {
            return Err(damaged(
                "its description is of another length than the footer says".to_owned(),
            ));
        }
        if message.body().map_err(damaged)? != body {
            return Err(damaged("its body is of another length than the footer says".to_owned()));
        }
        end = match message.begin.checked_add(body) {
            Some(end) if end <= length => end,
            _ => return Err(beyond()),
        };
        message.check(file, &types).map_err(damaged)?;
    }
    follows(end, begin_of_footer(file, length)?).map_err(|_| "there is more in it than its footer names".to_owned())
}

/// Whether what begins there lies right behind what ends there.
fn follows(end: u64, begin: u64) -> Result<(), String> {
    match begin.checked_sub(end) {
        Some(between) if between <= BETWEEN => Ok(()),
        Some(between) => Err(format!("{between} bytes before it belong to none")),
        None => Err("it overlaps with another one".to_owned()),
    }
}

fn begin_of_footer(mut file: &File, length: u64) -> Result<u64, String> {
    let behind = length.checked_sub(LAST).ok_or("it is too short")?;
    let mut size = [0; 4];
    let read = file.seek(SeekFrom::Start(behind));
    read.and_then(|_| file.read_exact(&mut size))
        .map_err(|error| error.to_string())?;
    let size = u64::from(u32::from_le_bytes(size));
    behind
        .checked_sub(size)
        .ok_or_else(|| "its footer is longer than the file".to_owned())
}

fn is_same(one: &ArrowSchema, other: &ArrowSchema) -> bool {
    let of = |schema: &ArrowSchema| -> Vec<_> {
        let fields = schema.iter_values();
        fields.map(|field| (field.name.clone(), field.dtype.clone())).collect()
    };
    of(one) == of(other)
}

/// Checks the messages of a stream, one after the other until its end.
///
/// # Errors
/// The same, and a stream that was cut.
pub(super) fn check_stream(mut file: &File) -> Result<(), String> {
    let length = file.metadata().map_err(|error| error.to_string())?.len();
    file.rewind().map_err(|error| error.to_string())?;
    let mut number = 0;
    let mut types = None;
    while file.stream_position().map_err(|error| error.to_string())? < length {
        let damaged = |reason: String| format!("message {number}: {reason}");
        let Some(message) = Message::read(&mut file, length).map_err(damaged)? else {
            break;
        };
        let end = message.begin.saturating_add(message.body().map_err(damaged)?);
        if end > length {
            return Err(damaged("it ends behind the file: the file was cut short".to_owned()));
        }
        match &types {
            None => {
                let (schema, ipc) = message.schema().map_err(damaged)?;
                types = Some(Types::of(&schema, &ipc));
            }
            Some(types) => message.check(file, types).map_err(damaged)?,
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

    fn parsed(&self) -> Result<MessageRef<'_>, String> {
        MessageRef::read_as_root(&self.description).map_err(|error| unreadable(&error))
    }

    /// Bytes of its body.
    fn body(&self) -> Result<u64, String> {
        let body = self.parsed()?.body_length().map_err(|error| unreadable(&error))?;
        u64::try_from(body).map_err(|_| "its body is shorter than nothing".to_owned())
    }

    fn schema(&self) -> Result<(ArrowSchema, IpcSchema), String> {
        let (schema, ipc, _) = deserialize_schema(&self.description).map_err(|error| unreadable(&error))?;
        Ok((schema, ipc))
    }

    /// Checks what it says of its body, which is there.
    fn check(&self, file: &File, types: &Types) -> Result<(), String> {
        let message = self.parsed()?;
        let body = Body {
            file,
            begin: self.begin,
            length: self.body()?,
            version: message.version().map_err(|error| unreadable(&error))?,
        };
        match message.header().map_err(|error| unreadable(&error))? {
            Some(MessageHeaderRef::RecordBatch(batch)) => buffers::check(batch, types.columns(), &body),
            Some(MessageHeaderRef::DictionaryBatch(dictionary)) => {
                let id = dictionary.id().map_err(|error| unreadable(&error))?;
                let types = types.of_dictionary(id);
                let types = types.ok_or_else(|| format!("no column has the dictionary {id}"))?;
                match dictionary.data().map_err(|error| unreadable(&error))? {
                    Some(batch) => buffers::check(batch, types, &body),
                    None => Err("it is a dictionary without words".to_owned()),
                }
            }
            _ => Err("it holds neither rows nor a dictionary".to_owned()),
        }
    }
}

fn unreadable(error: &dyn std::fmt::Display) -> String {
    format!("its description can't be read ({error})")
}
