//! NDJSON (ClickHouse's `JSONEachRow`) from a file or standard input, read line by line.

use std::borrow::Cow;
use std::io::{BufRead, BufReader, ErrorKind, Read};
use std::path::PathBuf;

use serde::Deserialize;
use serde_json::value::RawValue;

use super::attributes;
use super::bounded::LONGEST;
use super::calls::{all_of_text_array, keeps_list};
use super::columns::Columns;
use super::compressed;
use super::discover::SourceFile;
use super::error::SourceError;
use super::rows::{Rows, TextColumn, first_of_text_array, integer_of_text, whole};
use super::timestamp;
use crate::contract::columns::REQUIRED;

/// What some editors write before the first letter.
const BYTE_ORDER_MARK: char = '\u{feff}';

/// Opens a file or standard input.
///
/// # Errors
/// A file that can't be read or is empty.
pub(super) fn open(file: &SourceFile, columns: Columns) -> Result<NdjsonBatches, SourceError> {
    if !file.is_stdin() {
        let length = std::fs::metadata(&file.path)
            .map_err(SourceError::io(&file.path))?
            .len();
        if length == 0 {
            return Err(SourceError::Empty(file.path.clone()));
        }
    }
    let input = BufReader::with_capacity(1 << 18, compressed::open(file)?);
    Ok(NdjsonBatches {
        path: file.path.clone(),
        columns,
        input,
        line: 0,
        buffer: String::new(),
        done: false,
    })
}

/// The batches of one file.
pub(super) struct NdjsonBatches {
    path: PathBuf,
    columns: Columns,
    input: BufReader<Box<dyn Read + Send>>,
    line: u64,
    buffer: String,
    done: bool,
}

#[derive(Deserialize)]
struct Line<'a> {
    #[serde(borrow)]
    timestamp: Option<Cell<'a>>,
    #[serde(borrow)]
    job: Option<Cow<'a, str>>,
    #[serde(borrow)]
    metric_name: Option<Cow<'a, str>>,
    #[serde(borrow)]
    subname: Option<Cow<'a, str>>,
    #[serde(borrow)]
    rank: Option<Cell<'a>>,
    #[serde(borrow)]
    iteration: Option<Cell<'a>>,
    #[serde(borrow)]
    metric_values: Option<&'a RawValue>,
    #[serde(borrow)]
    node: Option<Cow<'a, str>>,
    #[serde(borrow)]
    rerun_uuid: Option<Cow<'a, str>>,
}

/// What an analysis does not look at: read apart, so that it can't stumble over it either.
#[derive(Deserialize)]
struct StoredLine<'a> {
    #[serde(borrow)]
    cluster: Option<Cow<'a, str>>,
    #[serde(borrow)]
    attributes: Option<&'a RawValue>,
}

/// The line with null for each `NaN` and `Infinity` outside of its strings, as Python writes them; `None` where it has none.
fn without_bare_numbers(line: &str) -> Option<String> {
    const WORDS: [&str; 4] = ["NaN", "-Infinity", "Infinity", "nan"];
    let mut text = String::with_capacity(line.len());
    let (mut rest, mut in_string, mut found) = (line, false, false);
    while let Some(letter) = rest.chars().next() {
        let word = WORDS.into_iter().find(|word| !in_string && rest.starts_with(word));
        if let Some(word) = word {
            text.push_str("null");
            found = true;
            rest = &rest[word.len()..];
            continue;
        }
        let length = match letter {
            '\\' if in_string => 1 + rest[1..].chars().next().map_or(0, char::len_utf8),
            _ => letter.len_utf8(),
        };
        in_string ^= letter == '"';
        text.push_str(&rest[..length]);
        rest = &rest[length..];
    }
    found.then_some(text)
}

/// A number, or a number or time in quotes.
#[derive(Deserialize)]
#[serde(untagged)]
enum Cell<'a> {
    Integer(i64),
    Float(f64),
    #[serde(borrow)]
    Text(Cow<'a, str>),
}

impl Cell<'_> {
    fn integer(&self) -> Option<i64> {
        match self {
            Self::Integer(number) => Some(*number),
            Self::Float(number) => whole(*number),
            Self::Text(text) => integer_of_text(text),
        }
    }

    fn time(&self) -> Option<timestamp::Micros> {
        match self {
            Self::Integer(number) => timestamp::from_epoch(*number as f64),
            Self::Float(number) => timestamp::from_epoch(*number),
            Self::Text(text) => timestamp::parse(text),
        }
    }
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
            self.buffer.clear();
            let read = self.input.by_ref().take(LONGEST).read_line(&mut self.buffer);
            self.line += 1;
            let read = read.map_err(|error| match error.kind() {
                // Bytes that are no text, such as half a letter where a file was cut.
                ErrorKind::InvalidData => SourceError::corrupt(&self.path, self.place(), error),
                _ => SourceError::io(&self.path)(error),
            })?;
            bytes += read as u64;
            if read == 0 {
                self.done = true;
                break;
            }
            if read as u64 == LONGEST {
                let reason = "the line does not end within 64 MB; is this one JSON object a line?";
                return Err(SourceError::corrupt(&self.path, self.place(), reason));
            }
            if self.line == 1 && self.buffer.starts_with(BYTE_ORDER_MARK) {
                self.buffer.drain(..BYTE_ORDER_MARK.len_utf8());
            }
            if !self.buffer.trim().is_empty() {
                self.push(&mut rows)?;
            }
        }
        if self.done && self.line == 1 {
            return Err(SourceError::Empty(self.path.clone()));
        }
        Ok(rows)
    }

    fn push(&self, rows: &mut Rows) -> Result<(), SourceError> {
        // A list would be read by the places of its cells, whatever their order.
        if !self.buffer.trim_start().starts_with('{') {
            let reason = "it is no JSON object; columns are read by name only, as JSONEachRow writes them";
            return Err(SourceError::corrupt(&self.path, self.place(), reason));
        }
        let mended;
        let (line, text): (Line, &str) = match serde_json::from_str(&self.buffer) {
            Ok(line) => (line, &self.buffer),
            Err(error) => {
                mended = without_bare_numbers(&self.buffer).ok_or_else(|| self.no_row(&error))?;
                (serde_json::from_str(&mended).map_err(|_| self.no_row(&error))?, &mended)
            }
        };
        let there = [
            line.timestamp.is_some(),
            line.job.is_some(),
            line.metric_name.is_some(),
            line.subname.is_some(),
            line.rank.is_some(),
            line.iteration.is_some(),
            line.metric_values.is_some(),
        ];
        if let Some(column) = REQUIRED
            .iter()
            .zip(there)
            .find_map(|(column, there)| (!there).then_some(*column))
        {
            self.check_key(column)?;
        }
        let values = line.metric_values.map(|values| values.get().trim_matches('"'));
        let first = values.map_or(Ok(None), first_of_text_array);
        rows.value.push(first.map_err(|reason| {
            SourceError::corrupt(&self.path, format!("{}, column `metric_values`", self.place()), reason)
        })?);
        let all = self.columns.all();
        let list = values.filter(|_| all || keeps_list(line.metric_name.as_deref(), line.subname.as_deref()));
        rows.calls.push(list.into_iter().flat_map(all_of_text_array));
        rows.timestamp.push(line.timestamp.and_then(|cell| cell.time()));
        rows.job.push(line.job.as_deref());
        rows.metric_name.push(line.metric_name.as_deref());
        rows.subname.push(line.subname.as_deref());
        rows.rank.push(line.rank.and_then(|cell| cell.integer()));
        rows.iteration.push(line.iteration.and_then(|cell| cell.integer()));
        if let Some(column) = &mut rows.node {
            column.push(line.node.as_deref());
        }
        if let Some(column) = &mut rows.rerun_uuid {
            column.push(line.rerun_uuid.as_deref());
        }
        if let (Some(cluster), Some(attributes)) = (&mut rows.cluster, &mut rows.attributes) {
            let line: StoredLine = serde_json::from_str(text).map_err(|error| self.no_row(&error))?;
            cluster.push(line.cluster.as_deref());
            let text = line.attributes.map(attributes::text_of).transpose();
            let text = text.map_err(|reason| {
                SourceError::corrupt(&self.path, format!("{}, column `attributes`", self.place()), reason)
            })?;
            attributes.push(text.as_deref());
        }
        Ok(())
    }

    /// The decoder knows of one line only, whose number would mislead.
    fn no_row(&self, error: &serde_json::Error) -> SourceError {
        let reason = error.to_string().replace(" at line 1 column ", " at column ");
        let reason = match error.is_eof() && !self.buffer.ends_with('\n') {
            true => format!("the file breaks off in this line ({reason})"),
            false => reason,
        };
        SourceError::corrupt(&self.path, self.place(), reason)
    }

    /// A key may be null in a row; a key that is not there means another kind of file.
    fn check_key(&self, column: &'static str) -> Result<(), SourceError> {
        let keys: serde_json::Map<String, serde_json::Value> =
            serde_json::from_str(&self.buffer).map_err(|error| self.no_row(&error))?;
        if keys.contains_key(column) {
            return Ok(());
        }
        Err(SourceError::MissingColumn {
            path: self.path.clone(),
            column,
            found: format!(
                "{} ({})",
                keys.keys().cloned().collect::<Vec<_>>().join(", "),
                self.place()
            ),
        })
    }

    fn place(&self) -> String {
        format!("line {}", self.line)
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
