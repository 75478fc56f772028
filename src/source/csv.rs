//! CSV and TSV with a header line, read row by row.

use std::fs::File;
use std::path::{Path, PathBuf};

use super::calls::{all_of_text_array, keeps_list};
use super::error::SourceError;
use super::rows::{OPTIONAL, REQUIRED, Rows, TextColumn, first_of_text_array, integer_of_text};
use super::scan::BATCH_ROWS;
use super::timestamp;

/// Opens a file and reads its header.
///
/// # Errors
/// A file that can't be read, is empty, or lacks a column.
pub(super) fn open(path: &Path, delimiter: u8) -> Result<CsvBatches, SourceError> {
    let file = File::open(path).map_err(SourceError::io(path))?;
    if file.metadata().map_err(SourceError::io(path))?.len() == 0 {
        return Err(SourceError::Empty(path.to_owned()));
    }
    let mut reader = csv::ReaderBuilder::new()
        .delimiter(delimiter)
        .buffer_capacity(1 << 18)
        .from_reader(file);
    let header = reader.headers().map_err(|error| corrupt(path, &error))?.clone();
    let twice = |column: &&str| header.iter().filter(|name| name.trim() == *column).count() > 1;
    if let Some(column) = REQUIRED.into_iter().chain(OPTIONAL).find(twice) {
        return Err(SourceError::DoubleColumn {
            path: path.to_owned(),
            column,
        });
    }
    let position = |column: &str| header.iter().position(|name| name.trim() == column);
    let mut required = [0; REQUIRED.len()];
    for (slot, column) in required.iter_mut().zip(REQUIRED) {
        *slot = position(column).ok_or_else(|| SourceError::MissingColumn {
            path: path.to_owned(),
            column,
            found: header.iter().collect::<Vec<_>>().join(", "),
        })?;
    }
    Ok(CsvBatches {
        path: path.to_owned(),
        reader,
        required,
        optional: OPTIONAL.map(position),
        done: false,
    })
}

/// The batches of one file.
pub(super) struct CsvBatches {
    path: PathBuf,
    reader: csv::Reader<File>,
    /// Positions of [`REQUIRED`] in a record.
    required: [usize; REQUIRED.len()],
    /// Positions of [`OPTIONAL`] in a record.
    optional: [Option<usize>; OPTIONAL.len()],
    done: bool,
}

impl CsvBatches {
    fn batch(&mut self) -> Result<Rows, SourceError> {
        let [timestamp, job, metric_name, subname, rank, iteration, values] = self.required;
        let [node, rerun_uuid] = self.optional;
        let mut rows = Rows {
            node: node.map(|_| TextColumn::default()),
            rerun_uuid: rerun_uuid.map(|_| TextColumn::default()),
            ..Rows::default()
        };
        let mut record = csv::StringRecord::new();
        while rows.len() < BATCH_ROWS {
            let more = self
                .reader
                .read_record(&mut record)
                .map_err(|error| corrupt(&self.path, &error))?;
            if !more {
                self.done = true;
                break;
            }
            let field = |position: usize| record.get(position);
            let text = |position: usize| field(position).filter(|&cell| cell != NULL);
            rows.timestamp.push(text(timestamp).and_then(timestamp::parse));
            rows.job.push(text(job));
            rows.metric_name.push(text(metric_name));
            rows.subname.push(text(subname));
            rows.rank.push(text(rank).and_then(integer_of_text));
            rows.iteration.push(text(iteration).and_then(integer_of_text));
            let first = text(values).map_or(Ok(None), first_of_text_array).map_err(|reason| {
                let line = record.position().map_or(0, csv::Position::line);
                SourceError::corrupt(&self.path, format!("line {line}, column `metric_values`"), reason)
            })?;
            rows.value.push(first);
            let list = text(values).filter(|_| keeps_list(text(metric_name), text(subname)));
            rows.calls.push(list.into_iter().flat_map(all_of_text_array));
            if let (Some(column), Some(position)) = (&mut rows.node, node) {
                column.push(text(position));
            }
            if let (Some(column), Some(position)) = (&mut rows.rerun_uuid, rerun_uuid) {
                column.push(text(position));
            }
        }
        Ok(rows)
    }
}

/// How ClickHouse writes a null in CSV.
const NULL: &str = "\\N";

impl Iterator for CsvBatches {
    type Item = Result<Rows, SourceError>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.done {
            return None;
        }
        let batch = self.batch();
        self.done |= batch.is_err();
        Some(batch)
    }
}

fn corrupt(path: &Path, error: &csv::Error) -> SourceError {
    let place = match error.position() {
        Some(position) => format!("line {}", position.line()),
        None => "the header".to_owned(),
    };
    SourceError::corrupt(path, place, error)
}
