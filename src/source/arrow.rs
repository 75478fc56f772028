//! Arrow IPC, the file and the stream form, read record batch by record batch.

use std::fs::File;
use std::io::{BufReader, Read, Seek};
use std::path::{Path, PathBuf};

use polars::prelude::DataFrame;
use polars_arrow::array::Array;
use polars_arrow::datatypes::ArrowSchema;
use polars_arrow::io::ipc::read::{FileReader, StreamReader, StreamState, read_file_metadata, read_stream_metadata};
use polars_arrow::record_batch::RecordBatchT;

use super::columns::Columns;
use super::error::SourceError;
use super::frame::{rows_of, wanted_columns};
use super::guard::guarded;
use super::messages::{self, MessageSpan};
use super::rows::Rows;

type Input = BufReader<File>;
type RecordBatch = RecordBatchT<Box<dyn Array>>;

/// Opens a file, whichever of the two forms it has.
///
/// # Errors
/// A file that can't be read, is empty, is no Arrow file, or lacks a column.
pub(super) fn open(path: &Path, columns: Columns) -> Result<ArrowBatches, SourceError> {
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
        [b'A', b'R', b'R', b'O', b'W', b'1', ..] => open_file(path, input, columns)?,
        [0xff, 0xff, 0xff, 0xff, ..] => open_stream(path, input, columns)?,
        _ => {
            return Err(SourceError::WrongFormat {
                path: path.to_owned(),
                expected: "Arrow IPC",
                advice: "it begins with neither ARROW1 nor a stream's mark".to_owned(),
            });
        }
    };
    Ok(ArrowBatches {
        path: path.to_owned(),
        columns,
        blocks,
        number: 0,
        rest: DataFrame::empty(),
        batch: 1,
        done: false,
    })
}

/// The batches of one file.
pub(super) struct ArrowBatches {
    path: PathBuf,
    columns: Columns,
    blocks: Blocks,
    number: usize,
    /// What is left of the record batch at hand.
    rest: DataFrame,
    /// How many of its rows are taken at a time.
    batch: usize,
    done: bool,
}

enum Blocks {
    File(Box<FileReader<Input>>),
    Stream(Box<StreamReader<Input>>),
}

fn open_file(path: &Path, mut input: Input, columns: Columns) -> Result<Blocks, SourceError> {
    let metadata = guarded(|| read_file_metadata(&mut input))
        .map_err(|reason| SourceError::corrupt(path, "the footer", reason))?;
    let blocks = metadata.dictionaries.iter().flatten().chain(&metadata.blocks);
    let places = blocks.map(|block| MessageSpan {
        offset: block.offset,
        description: block.meta_data_length,
        body: block.body_length,
    });
    guarded(|| messages::check_file(input.get_ref(), &metadata.schema, &metadata.ipc_schema, places))
        .map_err(|reason| SourceError::corrupt(path, "the record batches", reason))?;
    input.rewind().map_err(SourceError::io(path))?;
    let projection = projection(path, &metadata.schema, columns)?;
    let reader = guarded(|| Ok::<_, String>(FileReader::new(input, metadata, Some(projection), None)))
        .map_err(|reason| SourceError::corrupt(path, "the schema", reason))?;
    Ok(Blocks::File(Box::new(reader)))
}

fn open_stream(path: &Path, mut input: Input, columns: Columns) -> Result<Blocks, SourceError> {
    guarded(|| messages::check_stream(input.get_ref()))
        .map_err(|reason| SourceError::corrupt(path, "the record batches", reason))?;
    input.rewind().map_err(SourceError::io(path))?;
    let metadata = guarded(|| read_stream_metadata(&mut input))
        .map_err(|reason| SourceError::corrupt(path, "the schema", reason))?;
    let projection = projection(path, &metadata.schema, columns)?;
    let reader = guarded(|| Ok::<_, String>(StreamReader::new(input, metadata, Some(projection))))
        .map_err(|reason| SourceError::corrupt(path, "the schema", reason))?;
    Ok(Blocks::Stream(Box::new(reader)))
}

/// Positions of the wanted columns, ascending.
fn projection(path: &Path, schema: &ArrowSchema, columns: Columns) -> Result<Vec<usize>, SourceError> {
    let names: Vec<&str> = schema.iter_names().map(|name| name.as_str()).collect();
    let wanted = wanted_columns(path, &names, columns)?;
    let positions = names
        .iter()
        .enumerate()
        .filter(|(_, name)| wanted.iter().any(|wanted| wanted == *name));
    Ok(positions.map(|(position, _)| position).collect())
}

impl Blocks {
    fn next(&mut self) -> Result<Option<RecordBatch>, String> {
        match self {
            Self::File(reader) => reader.next().transpose().map_err(|error| error.to_string()),
            Self::Stream(reader) => match reader.next() {
                None => Ok(None),
                Some(Ok(StreamState::Some(batch))) => Ok(Some(batch)),
                Some(Ok(StreamState::Waiting)) => {
                    Err("the stream stops without its end mark: the file was cut short".to_owned())
                }
                Some(Err(error)) => Err(error.to_string()),
            },
        }
    }
}

impl Iterator for ArrowBatches {
    type Item = Result<Rows, SourceError>;

    fn next(&mut self) -> Option<Self::Item> {
        // A frame that was written in one piece is one record batch; its rows are taken a part at a time.
        while self.rest.height() == 0 {
            if self.done {
                return None;
            }
            let blocks = &mut self.blocks;
            match guarded(|| blocks.next().map(|batch| batch.map(DataFrame::from))) {
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
        let rows = rows_of(&self.path, &part, self.columns);
        if rows.is_err() {
            self.done = true;
            self.rest = DataFrame::empty();
        }
        Some(rows)
    }
}
