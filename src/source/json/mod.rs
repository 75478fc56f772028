//! Rows in JSON from a file or standard input, one at a time: ClickHouse's `JSONEachRow` and its relatives, documents with all rows.
//!
//! In: bytes. Out: batches of [`Rows`]. May use: the readers' common parts in `source`, `contract`.
//!
//! `form` tells which form a text has, `values` cuts values out of it, `document` goes through a document around all rows, `cells`
//! finds the columns in a row.

mod cells;
mod document;
mod form;
pub(in crate::source) mod values;

use std::io::{BufRead, BufReader, Cursor, ErrorKind, Read};
use std::path::{Path, PathBuf};

use serde_json::value::RawValue;

use super::attributes;
use super::bounded::LONGEST;
use super::calls::{all_of_text_array, keeps_list};
use super::columns::Columns;
use super::compressed;
use super::discover::SourceFile;
use super::error::SourceError;
use super::names::ColumnNames;
use super::rows::{Rows, TextColumn, first_of_text_array, integer_of_text};
use super::timestamp;
use crate::contract::columns::REQUIRED;
use cells::{COLUMNS, Cells, Keys, cells_of, is_null, keys_of, text_of};
use document::{Document, without_bare_numbers};
pub(super) use form::may_be_json;
use form::{Form, are_types, form_of};
use values::Broken;

/// What some editors write before the first letter.
const BYTE_ORDER_MARK: &[u8] = "\u{feff}".as_bytes();
/// Bytes in which the form shows.
const HEAD: u64 = 1 << 18;
/// Bytes that are read at once.
const BUFFER: usize = 1 << 18;

type Input = BufReader<Box<dyn Read + Send>>;

/// Opens a file or standard input.
///
/// # Errors
/// A file that can't be read or is empty, a form of JSON that names no columns.
pub(super) fn open(file: &SourceFile, columns: Columns) -> Result<NdjsonBatches, SourceError> {
    let path = file.path.as_path();
    let mut input = compressed::open(file)?;
    let damaged = |error: std::io::Error| match error.kind() {
        ErrorKind::InvalidData | ErrorKind::InvalidInput | ErrorKind::Other => {
            SourceError::corrupt(path, "the compressed data", error)
        }
        _ => SourceError::io(path)(error),
    };
    let mut head = Vec::new();
    let read = input.by_ref().take(HEAD).read_to_end(&mut head);
    read.map_err(damaged)?;
    if head.is_empty() {
        return Err(SourceError::Empty(path.to_owned()));
    }
    let mark = if head.starts_with(BYTE_ORDER_MARK) {
        BYTE_ORDER_MARK.len()
    } else {
        0
    };
    let form = form_of(&head).map_err(|advice| SourceError::WrongFormat {
        path: path.to_owned(),
        expected: "readable",
        advice,
    })?;
    head.drain(..mark);
    let whole: Box<dyn Read + Send> = Box::new(Cursor::new(head).chain(input));
    let input = BufReader::with_capacity(BUFFER, whole);
    let source = match form {
        Form::Lines | Form::CompactLines => Source::Lines {
            input,
            line: 0,
            compact: form == Form::CompactLines,
        },
        Form::Values | Form::Array | Form::Table => Source::Document(Document::new(input, form)),
    };
    Ok(NdjsonBatches {
        path: path.to_owned(),
        columns,
        names: std::sync::Arc::clone(&file.options.names),
        source,
        header: None,
        keys: None,
        buffer: Vec::new(),
        place: String::new(),
        ended: true,
        saw: false,
        done: false,
    })
}

/// The batches of one file.
pub(super) struct NdjsonBatches {
    path: PathBuf,
    columns: Columns,
    names: std::sync::Arc<ColumnNames>,
    source: Source,
    /// The names of the cells, where rows are lists.
    header: Option<Vec<String>>,
    /// The names of the columns, once a row told them.
    keys: Option<Keys>,
    buffer: Vec<u8>,
    /// Where the row at hand stands.
    place: String,
    /// Whether the line at hand has an end.
    ended: bool,
    /// Whether anything but blanks was there.
    saw: bool,
    done: bool,
}

enum Source {
    Lines { input: Input, line: u64, compact: bool },
    Document(Document<Input>),
}

impl NdjsonBatches {
    fn batch(&mut self) -> Result<Rows, SourceError> {
        let mut rows = Rows {
            node: Some(TextColumn::default()),
            rerun_uuid: Some(TextColumn::default()),
            cluster: self.columns.all().then(TextColumn::default),
            attributes: self.columns.all().then(TextColumn::default),
            ..Rows::default()
        };
        let mut bytes = 0;
        while !self.columns.is_full(rows.len(), bytes) {
            let mut buffer = std::mem::take(&mut self.buffer);
            let more = self.next_row(&mut buffer)?;
            if !more {
                self.done = true;
                break;
            }
            bytes += buffer.len() as u64;
            let text = std::str::from_utf8(&buffer)
                .map_err(|_| self.corrupt("the row holds bytes that are no text (UTF-8)"))?;
            if !text.trim().is_empty() {
                self.saw = true;
                self.push(text.trim(), &mut rows)?;
            }
            self.buffer = buffer;
        }
        if self.done && !self.saw && matches!(self.source, Source::Lines { .. }) {
            return Err(SourceError::Empty(self.path.clone()));
        }
        Ok(rows)
    }

    /// Reads the next row as it is written, or a blank line; `false` at the end.
    fn next_row(&mut self, buffer: &mut Vec<u8>) -> Result<bool, SourceError> {
        let broken =
            |path: &Path, broken: Broken| SourceError::corrupt(path, format!("line {}", broken.line), broken.reason);
        match &mut self.source {
            Source::Lines { input, line, .. } => {
                buffer.clear();
                let read = input.take(LONGEST).read_until(b'\n', buffer);
                *line += 1;
                self.place = format!("line {line}");
                self.ended = buffer.ends_with(b"\n");
                let read = read.map_err(|error| match error.kind() {
                    ErrorKind::InvalidData | ErrorKind::InvalidInput | ErrorKind::Other => {
                        SourceError::corrupt(&self.path, self.place.clone(), error)
                    }
                    _ => SourceError::io(&self.path)(error),
                })?;
                if read as u64 == LONGEST {
                    return Err(self.corrupt("the line does not end within 64 MB; is this one JSON object a line?"));
                }
                Ok(read > 0)
            }
            Source::Document(document) => {
                let header = &mut self.header;
                let more = document
                    .next(buffer, header)
                    .map_err(|error| broken(&self.path, error))?;
                self.place = format!("line {}", document.line());
                Ok(more)
            }
        }
    }

    fn push(&mut self, text: &str, rows: &mut Rows) -> Result<(), SourceError> {
        if text.starts_with('[') && self.takes_lists() {
            return self.push_list(text, rows);
        }
        if text.starts_with('[') && matches!(self.source, Source::Document(_)) {
            return Err(
                self.corrupt("rows are lists, and nothing before them names their columns; write it as JSONEachRow")
            );
        }
        if !text.starts_with('{') {
            return Err(self.corrupt("it is no JSON object; columns are read by name only, as JSONEachRow writes them"));
        }
        let keys = match self.keys.take() {
            Some(keys) => keys,
            None => {
                let there = match keys_of(text) {
                    Ok(there) => there,
                    Err(error) => {
                        let mended = without_bare_numbers(text).ok_or_else(|| self.no_row(&error))?;
                        keys_of(&mended).map_err(|_| self.no_row(&error))?
                    }
                };
                self.keys(&there, rows)?
            }
        };
        let mended;
        let cells = match cells_of(text, &keys) {
            Ok(cells) => cells,
            Err(error) => {
                mended = without_bare_numbers(text).ok_or_else(|| self.no_row(&error))?;
                cells_of(&mended, &keys).map_err(|_| self.no_row(&error))?
            }
        };
        // A key may be null in a row; a key that is not there means another kind of file.
        if let Some(missing) = (0..REQUIRED.len()).find(|&column| cells[column].is_none()) {
            let there = keys_of(text).unwrap_or_default();
            return Err(SourceError::MissingColumn {
                path: self.path.clone(),
                column: COLUMNS[missing],
                found: format!("{} ({})", there.join(", "), self.place),
            });
        }
        self.keys = Some(keys);
        self.push_cells(&cells, rows)
    }

    /// Whether rows may be lists: something told the names of their cells, or is about to.
    fn takes_lists(&self) -> bool {
        self.header.is_some() || matches!(self.source, Source::Lines { compact: true, .. })
    }

    /// A row whose cells have the places of the names, or the line of names itself, or that of types.
    fn push_list(&mut self, text: &str, rows: &mut Rows) -> Result<(), SourceError> {
        let Some(header) = &self.header else {
            let names: Vec<String> = serde_json::from_str(text).map_err(|error| self.no_row(&error))?;
            self.header = Some(names);
            return Ok(());
        };
        let keys = match self.keys.take() {
            Some(keys) => keys,
            None => {
                let there = header.clone();
                let keys = self.keys(&there, rows)?;
                if serde_json::from_str::<Vec<String>>(text).is_ok_and(|texts| are_types(&texts)) {
                    self.keys = Some(keys);
                    return Ok(());
                }
                keys
            }
        };
        let header = self.header.as_deref().unwrap_or_default();
        let mended;
        let list: Vec<&RawValue> = match serde_json::from_str(text) {
            Ok(list) => list,
            Err(error) => {
                mended = without_bare_numbers(text).ok_or_else(|| self.no_row(&error))?;
                serde_json::from_str(&mended).map_err(|_| self.no_row(&error))?
            }
        };
        if list.len() != header.len() {
            return Err(self.corrupt(&format!(
                "the row has {} cells where there are {} names",
                list.len(),
                header.len()
            )));
        }
        let mut cells: Cells<'_> = [None; COLUMNS.len()];
        for (cell, name) in cells.iter_mut().zip(&keys.0) {
            let place = name
                .as_ref()
                .and_then(|name| header.iter().position(|there| there == name));
            *cell = place.map(|place| list[place]);
        }
        self.keys = Some(keys);
        self.push_cells(&cells, rows)
    }

    /// Finds the columns among the names that the first row has.
    fn keys(&self, there: &[String], rows: &mut Rows) -> Result<Keys, SourceError> {
        let places = self
            .names
            .places(&self.path, there, self.columns)
            .map_err(|error| match error {
                SourceError::MissingColumn { path, column, found } => SourceError::MissingColumn {
                    path,
                    column,
                    found: format!("{found} ({})", self.place),
                },
                other => other,
            })?;
        let known: Vec<&str> = self.columns.known().collect();
        let keys = COLUMNS.map(|column| {
            let named = places.of(column).map(|place| there[place].clone());
            // A column that may be missing may stand in a later row.
            let later = known.contains(&column) && !there.iter().any(|name| name == column);
            named.or_else(|| later.then(|| column.to_owned()))
        });
        rows.notes.extend(places.notes);
        Ok(Keys(keys))
    }

    fn push_cells(&self, cells: &Cells<'_>, rows: &mut Rows) -> Result<(), SourceError> {
        let [
            timestamp,
            job,
            metric_name,
            subname,
            rank,
            iteration,
            values,
            node,
            rerun_uuid,
            cluster,
            attributes,
        ] = *cells;
        fn text(cell: Option<&RawValue>) -> Option<std::borrow::Cow<'_, str>> {
            cell.and_then(text_of)
        }
        let values = text(values);
        let first = values.as_deref().map_or(Ok(None), first_of_text_array);
        rows.value.push(first.map_err(|reason| {
            SourceError::corrupt(&self.path, format!("{}, column `metric_values`", self.place), reason)
        })?);
        let (metric_name, subname) = (text(metric_name), text(subname));
        let all = self.columns.all();
        let list = values.filter(|_| all || keeps_list(metric_name.as_deref(), subname.as_deref()));
        rows.calls.push(list.as_deref().into_iter().flat_map(all_of_text_array));
        rows.job.push(text(job).as_deref());
        rows.metric_name.push(metric_name.as_deref());
        rows.subname.push(subname.as_deref());
        let time = text(timestamp);
        let read = time.as_deref().and_then(timestamp::parse);
        if let (None, Some(cell)) = (read, &time) {
            rows.unread.note("timestamp", cell);
        }
        rows.timestamp.push(read);
        for (column, cell, name) in [
            (&mut rows.rank, rank, "rank"),
            (&mut rows.iteration, iteration, "iteration"),
        ] {
            let cell = text(cell);
            let read = cell.as_deref().and_then(integer_of_text);
            if let (None, Some(cell)) = (read, &cell) {
                rows.unread.note(name, cell);
            }
            column.push(read);
        }
        for (column, cell) in [
            (&mut rows.node, node),
            (&mut rows.rerun_uuid, rerun_uuid),
            (&mut rows.cluster, cluster),
        ] {
            if let Some(column) = column {
                column.push(text(cell).as_deref());
            }
        }
        if let Some(column) = &mut rows.attributes {
            let attributes = attributes.filter(|cell| !is_null(cell));
            let text = attributes.map(attributes::text_of).transpose();
            let text = text.map_err(|reason| {
                SourceError::corrupt(&self.path, format!("{}, column `attributes`", self.place), reason)
            })?;
            column.push(text.as_deref());
        }
        Ok(())
    }

    fn corrupt(&self, reason: &str) -> SourceError {
        SourceError::corrupt(&self.path, self.place.clone(), reason)
    }

    /// The decoder knows of one line only, whose number would mislead.
    fn no_row(&self, error: &serde_json::Error) -> SourceError {
        let reason = error.to_string();
        let reason = match reason.rsplit_once(" at line ") {
            Some((what, place)) => match place.split_once(" column ") {
                Some(("1", column)) => format!("{what} at column {column}"),
                _ => what.to_owned(),
            },
            None => reason,
        };
        let reason = match error.is_eof() && !self.ended {
            true => format!("the file breaks off in this line ({reason})"),
            false => reason,
        };
        self.corrupt(&reason)
    }
}

impl Iterator for NdjsonBatches {
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
