//! Arrow IPC, the file and the stream form, read record batch by record batch.

use std::fs::File;
use std::io::{BufReader, Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};

use polars::prelude::{Column, DataFrame, Series};
use polars_arrow::array::Array;
use polars_arrow::datatypes::ArrowSchema;
use polars_arrow::io::ipc::read::common::read_record_batch;
use polars_arrow::io::ipc::read::{
    Dictionaries, FileMetadata, StreamMetadata, read_batch, read_file_metadata, read_stream_metadata,
};
use polars_arrow::record_batch::RecordBatchT;
use polars_arrow_format::ipc::planus::ReadAsRoot;
use polars_arrow_format::ipc::{MessageHeaderRef, MessageRef};

use super::columns::Columns;
use super::dictionaries::read_dictionary;
use super::discover::SourceFile;
use super::error::SourceError;
use super::frame::rows_of;
use super::guard::guarded;
use super::messages::{self, MessageSpan};
use super::names::Places;
use super::plain::plain;
use super::rows::Rows;

type Input = BufReader<File>;
type RecordBatch = RecordBatchT<Box<dyn Array>>;

/// Opens a file, whichever of the two forms it has.
///
/// # Errors
/// A file that can't be read, is empty, is no Arrow file, or lacks a column.
pub(super) fn open(source: &SourceFile, columns: Columns) -> Result<ArrowBatches, SourceError> {
    let path = source.path.as_path();
    let file = File::open(path).map_err(SourceError::io(path))?;
    let mut input = BufReader::with_capacity(1 << 18, file);
    let mut head = Vec::new();
    input
        .by_ref()
        .take(8)
        .read_to_end(&mut head)
        .map_err(SourceError::io(path))?;
    input.rewind().map_err(SourceError::io(path))?;
    let blocks = match head.as_slice() {
        [] => return Err(SourceError::Empty(path.to_owned())),
        [b'A', b'R', b'R', b'O', b'W', b'1', ..] => open_file(path, input)?,
        [0xff, 0xff, 0xff, 0xff, ..] => open_stream(path, input)?,
        _ => {
            return Err(SourceError::WrongFormat {
                path: path.to_owned(),
                expected: "Arrow IPC",
                advice: "it begins with neither ARROW1 nor a stream's mark".to_owned(),
            });
        }
    };
    let there: Vec<&str> = blocks.schema().iter_names().map(|name| name.as_str()).collect();
    let mut places = source.options.names.places(path, &there, columns)?;
    let notes = std::mem::take(&mut places.notes);
    Ok(ArrowBatches {
        path: path.to_owned(),
        columns,
        projection: projection(&places),
        places,
        blocks,
        number: 0,
        rest: DataFrame::empty(),
        batch: 1,
        notes,
        done: false,
    })
}

/// The batches of one file.
pub(super) struct ArrowBatches {
    path: PathBuf,
    columns: Columns,
    places: Places,
    /// Places of the columns that are read, ascending.
    projection: Vec<usize>,
    blocks: Blocks,
    number: usize,
    /// What is left of the record batch at hand.
    rest: DataFrame,
    /// How many of its rows are taken at a time.
    batch: usize,
    /// What is to be told with the first batch.
    notes: Vec<String>,
    done: bool,
}

enum Blocks {
    File(Box<FileBlocks>),
    Stream(Box<StreamBlocks>),
}

/// The record batches of a file, at the places that its footer names.
struct FileBlocks {
    input: Input,
    metadata: FileMetadata,
    /// Read with the first batch.
    dictionaries: Option<Dictionaries>,
    next: usize,
}

/// The record batches of a stream, one after the other.
struct StreamBlocks {
    input: Input,
    metadata: StreamMetadata,
    dictionaries: Dictionaries,
}

fn open_file(path: &Path, mut input: Input) -> Result<Blocks, SourceError> {
    let metadata = guarded(|| read_file_metadata(&mut input))
        .map_err(|reason| SourceError::corrupt(path, "the footer", reason))?;
    let blocks = metadata.dictionaries.iter().flatten().chain(&metadata.blocks);
    let places = blocks.map(|block| MessageSpan {
        offset: block.offset,
        description: block.meta_data_length,
        body: block.body_length,
    });
    guarded(|| messages::check_file(input.get_ref(), places))
        .map_err(|reason| SourceError::corrupt(path, "the record batches", reason))?;
    input.rewind().map_err(SourceError::io(path))?;
    Ok(Blocks::File(Box::new(FileBlocks {
        input,
        metadata,
        dictionaries: None,
        next: 0,
    })))
}

fn open_stream(path: &Path, mut input: Input) -> Result<Blocks, SourceError> {
    guarded(|| messages::check_stream(input.get_ref()))
        .map_err(|reason| SourceError::corrupt(path, "the record batches", reason))?;
    input.rewind().map_err(SourceError::io(path))?;
    let metadata = guarded(|| read_stream_metadata(&mut input))
        .map_err(|reason| SourceError::corrupt(path, "the schema", reason))?;
    Ok(Blocks::Stream(Box::new(StreamBlocks {
        input,
        metadata,
        dictionaries: Dictionaries::default(),
    })))
}

/// Places of the wanted columns, ascending.
fn projection(places: &Places) -> Vec<usize> {
    let mut projection: Vec<usize> = places.iter().map(|(_, place)| place).collect();
    projection.sort_unstable();
    projection
}

impl Blocks {
    fn schema(&self) -> &ArrowSchema {
        match self {
            Self::File(file) => &file.metadata.schema,
            Self::Stream(stream) => &stream.metadata.schema,
        }
    }

    fn next(&mut self, projection: &[usize]) -> Result<Option<RecordBatch>, String> {
        match self {
            Self::File(file) => file.next(projection),
            Self::Stream(stream) => stream.next(projection),
        }
    }
}

impl FileBlocks {
    fn next(&mut self, projection: &[usize]) -> Result<Option<RecordBatch>, String> {
        if self.next == self.metadata.blocks.len() {
            return Ok(None);
        }
        let dictionaries = match self.dictionaries.take() {
            Some(dictionaries) => dictionaries,
            None => self.read_dictionaries()?,
        };
        let dictionaries = self.dictionaries.insert(dictionaries);
        let batch = read_batch(
            &mut self.input,
            dictionaries,
            &self.metadata,
            Some(projection),
            None,
            self.next,
            false,
            &mut Vec::new(),
            &mut Vec::new(),
            Default::default(),
        );
        self.next += 1;
        batch.map(Some).map_err(|error| error.to_string())
    }

    fn read_dictionaries(&mut self) -> Result<Dictionaries, String> {
        let mut dictionaries = Dictionaries::default();
        for block in self.metadata.dictionaries.iter().flatten() {
            let negative = || "a dictionary lies before the file".to_owned();
            let offset = u64::try_from(block.offset).map_err(|_| negative())?;
            let description = u64::try_from(block.meta_data_length).map_err(|_| negative())?;
            self.input
                .seek(SeekFrom::Start(offset))
                .map_err(|error| error.to_string())?;
            let message = description_of(&mut self.input)?.ok_or("a dictionary is empty")?;
            let message = MessageRef::read_as_root(&message).map_err(|error| error.to_string())?;
            let Ok(Some(MessageHeaderRef::DictionaryBatch(dictionary))) = message.header() else {
                return Err("the footer names a dictionary where there is none".to_owned());
            };
            read_dictionary(
                dictionary,
                &self.metadata.schema,
                &self.metadata.ipc_schema,
                &mut dictionaries,
                &mut self.input,
                offset + description,
            )?;
        }
        Ok(dictionaries)
    }
}

impl StreamBlocks {
    fn next(&mut self, projection: &[usize]) -> Result<Option<RecordBatch>, String> {
        let io = |error: std::io::Error| error.to_string();
        loop {
            let length = self.input.get_ref().metadata().map_err(io)?.len();
            let cut = || "the stream stops without its end mark: the file was cut short".to_owned();
            if self.input.stream_position().map_err(io)? >= length {
                return Err(cut());
            }
            let Some(message) = description_of(&mut self.input)? else {
                return Ok(None);
            };
            let message = MessageRef::read_as_root(&message).map_err(|error| error.to_string())?;
            let begin = self.input.stream_position().map_err(io)?;
            let body = message.body_length().map_err(|error| error.to_string())?;
            let body = u64::try_from(body).map_err(|_| "a message's body is shorter than nothing")?;
            let end = begin.checked_add(body).filter(|&end| end <= length).ok_or_else(cut)?;
            let header = message.header().map_err(|error| error.to_string())?;
            let batch = match header {
                Some(MessageHeaderRef::RecordBatch(batch)) => {
                    let batch = read_record_batch(
                        batch,
                        &self.metadata.schema,
                        &self.metadata.ipc_schema,
                        Some(projection),
                        None,
                        &self.dictionaries,
                        self.metadata.version,
                        &mut self.input,
                        begin,
                        &mut Vec::new(),
                        Default::default(),
                    );
                    Some(batch.map_err(|error| error.to_string())?)
                }
                Some(MessageHeaderRef::DictionaryBatch(dictionary)) => {
                    read_dictionary(
                        dictionary,
                        &self.metadata.schema,
                        &self.metadata.ipc_schema,
                        &mut self.dictionaries,
                        &mut self.input,
                        begin,
                    )?;
                    None
                }
                _ => return Err("a message is neither a record batch nor a dictionary".to_owned()),
            };
            self.input.seek(SeekFrom::Start(end)).map_err(io)?;
            if batch.is_some() {
                return Ok(batch);
            }
        }
    }
}

/// The description of the message at the input's place; `None` where it is the end mark.
fn description_of(input: &mut Input) -> Result<Option<Vec<u8>>, String> {
    let mut word = [0; 4];
    let mut read = |word: &mut [u8; 4]| input.read_exact(word).map_err(|error| error.to_string());
    read(&mut word)?;
    if word == [0xff; 4] {
        read(&mut word)?;
    }
    let size = i32::from_le_bytes(word);
    if size == 0 {
        return Ok(None);
    }
    let size = u64::try_from(size).map_err(|_| "a message's description is shorter than nothing")?;
    let mut description = Vec::new();
    let read = input.by_ref().take(size).read_to_end(&mut description);
    let read = read.map_err(|error| error.to_string())? as u64;
    if read < size {
        return Err("the file breaks off in a message's description".to_owned());
    }
    Ok(Some(description))
}

/// A record batch as a frame with the names of the contract.
fn frame_of(batch: RecordBatch, projection: &[usize], places: &Places) -> Result<DataFrame, String> {
    let height = batch.len();
    let (schema, arrays) = batch.into_schema_and_arrays();
    let mut columns = Vec::with_capacity(arrays.len());
    for ((field, array), place) in schema.iter_values().zip(arrays).zip(projection) {
        let named = places.iter().filter(|(_, named)| named == place);
        let array = plain(array).map_err(|reason| format!("column `{}`: {reason}", field.name))?;
        let mut field = field.clone();
        field.dtype = array.dtype().clone();
        let series = guarded(|| Series::try_from((&field, array)));
        let series = series.map_err(|reason| format!("column `{}`: {reason}", field.name))?;
        for (name, _) in named {
            columns.push(Column::from(series.clone().with_name(name.into())));
        }
    }
    DataFrame::new(height, columns).map_err(|error| error.to_string())
}

impl Iterator for ArrowBatches {
    type Item = Result<Rows, SourceError>;

    fn next(&mut self) -> Option<Self::Item> {
        // A frame that was written in one piece is one record batch; its rows are taken a part at a time.
        while self.rest.height() == 0 {
            if self.done {
                return None;
            }
            let (blocks, projection, places) = (&mut self.blocks, &self.projection, &self.places);
            let next = guarded(|| {
                let batch = blocks.next(projection)?;
                batch.map(|batch| frame_of(batch, projection, places)).transpose()
            });
            match next {
                Ok(Some(frame)) => {
                    self.batch = self.columns.batch(frame.height(), frame.estimated_size());
                    self.rest = frame;
                }
                Ok(None) => self.done = true,
                Err(reason) => {
                    self.done = true;
                    let place = format!("record batch {}", self.number);
                    return Some(Err(SourceError::corrupt(&self.path, place, reason)));
                }
            }
            self.number += 1;
        }
        let (part, rest) = self.rest.split_at(self.batch.min(self.rest.height()) as i64);
        self.rest = rest;
        let mut rows = rows_of(&self.path, &part, self.columns);
        match &mut rows {
            Ok(rows) => rows.notes.append(&mut self.notes),
            Err(_) => {
                self.done = true;
                self.rest = DataFrame::empty();
            }
        }
        Some(rows)
    }
}
