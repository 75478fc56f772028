//! CSV and TSV with a header line, read row by row.

use std::borrow::Cow;
use std::io::{Cursor, Read};
use std::path::Path;

use super::bounded::{Bounded, LONGEST};
use super::calls::{all_of_text_array, keeps_list};
use super::columns::Columns;
use super::compressed;
use super::discover::SourceFile;
use super::error::SourceError;
use super::rows::{Rows, TextColumn, first_of_text_array, integer_of_text};
use super::timestamp;
use crate::contract::columns::{OPTIONAL, REQUIRED, STORED};

/// Opens a file and reads its header.
///
/// # Errors
/// A file that can't be read, is empty, or lacks a column.
pub(super) fn open(file: &SourceFile, delimiter: u8, columns: Columns) -> Result<CsvBatches, SourceError> {
    let path = file.path.as_path();
    let mut input = compressed::open(file)?;
    let mut head = Vec::new();
    input
        .by_ref()
        .take(HEAD)
        .read_to_end(&mut head)
        .map_err(SourceError::io(path))?;
    if head.is_empty() {
        return Err(SourceError::Empty(path.to_owned()));
    }
    let delimiter = delimiter_of(
        &head,
        delimiter,
        file.options.names.given("metric_values").map(str::as_bytes),
    );
    let input: Input = Box::new(Cursor::new(head).chain(input));
    let mut reader = csv::ReaderBuilder::new()
        .delimiter(delimiter)
        .buffer_capacity(1 << 18)
        .from_reader(Bounded::new(input, LONGEST));
    let header = reader
        .headers()
        .map_err(|error| corrupt(path, "the header", &error))?
        .clone();
    let there: Vec<&str> = header.iter().collect();
    let places = match file.options.names.places(path, &there, columns) {
        Ok(places) => places,
        Err(SourceError::MissingColumn { .. }) if has_no_names(&there) => {
            return Err(SourceError::WrongFormat {
                path: path.to_owned(),
                expected: "readable CSV or TSV",
                advice: "its first line does not name the columns; write it with a header, as CSVWithNames".to_owned(),
            });
        }
        Err(error) => return Err(error),
    };
    let position = |column: &str| places.of(column);
    let required = REQUIRED.map(|column| position(column).unwrap_or_default());
    Ok(CsvBatches {
        file: file.clone(),
        columns,
        delimiter,
        reader,
        required,
        optional: OPTIONAL.map(position),
        stored: STORED.map(|column| position(column).filter(|_| columns.all())),
        notes: places.notes.clone(),
        begun: false,
        last: None,
        done: false,
    })
}

type Input = Box<dyn Read + Send>;

/// What the column of values is called.
const VALUES: [&str; 4] = ["metric_values", "metric_value", "values", "value"];
/// Bytes in which the delimiter shows.
const HEAD: u64 = 1 << 14;

/// The byte between the fields of a header: that of the file's name, unless another one tells its columns apart.
fn delimiter_of(head: &[u8], named: u8, named_values: Option<&[u8]>) -> u8 {
    let header = head.split(|&byte| byte == b'\n').next().unwrap_or_default();
    let tells = |delimiter: &u8| {
        let mut fields = header.split(|byte| byte == delimiter);
        fields.any(|field| {
            let name = field.trim_ascii();
            let quoted = name.strip_prefix(b"\"").and_then(|name| name.strip_suffix(b"\""));
            let name = quoted.unwrap_or(name).to_ascii_lowercase();
            VALUES.iter().any(|known| name == known.as_bytes())
                || named_values.is_some_and(|named| name.eq_ignore_ascii_case(named))
        })
    };
    [named, b',', b'\t', b';', b'|']
        .into_iter()
        .find(tells)
        .unwrap_or(named)
}

/// Whether a header holds cells: one of them is a time or a number.
fn has_no_names(header: &[&str]) -> bool {
    header.iter().any(|name| timestamp::parse(name).is_some())
}

/// Whether a record holds the types that ClickHouse's `WithNamesAndTypes` writes below the names.
fn is_of_types(record: &csv::StringRecord, position: usize) -> bool {
    record.get(position).is_some_and(|cell| {
        let of = cell
            .trim_start_matches("Nullable(")
            .trim_start_matches("LowCardinality(");
        of.starts_with("Array(") || of.starts_with("Float") || of == "String"
    })
}

/// The batches of one file.
pub(super) struct CsvBatches {
    file: SourceFile,
    columns: Columns,
    delimiter: u8,
    reader: csv::Reader<Bounded<Input>>,
    /// Positions of [`REQUIRED`] in a record.
    required: [usize; REQUIRED.len()],
    /// Positions of [`OPTIONAL`] in a record.
    optional: [Option<usize>; OPTIONAL.len()],
    /// Positions of [`STORED`] in a record.
    stored: [Option<usize>; STORED.len()],
    /// What is to be told with the first batch.
    notes: Vec<String>,
    /// Whether a record was read.
    begun: bool,
    /// Where the last record began, if all of it is stored.
    last: Option<csv::Position>,
    done: bool,
}

impl CsvBatches {
    fn batch(&mut self) -> Result<Rows, SourceError> {
        let [timestamp, job, metric_name, subname, rank, iteration, values] = self.required;
        let [node, rerun_uuid] = self.optional;
        let [cluster, attributes] = self.stored;
        let column = |position: Option<usize>| position.map(|_| TextColumn::default());
        let mut rows = Rows {
            node: column(node),
            rerun_uuid: column(rerun_uuid),
            cluster: column(cluster),
            attributes: column(attributes),
            notes: std::mem::take(&mut self.notes),
            ..Rows::default()
        };
        let all = self.columns.all();
        let begin = self.reader.position().byte();
        let mut record = csv::StringRecord::new();
        while !self.columns.is_full(rows.len(), self.reader.position().byte() - begin) {
            let line = self.reader.position().line();
            let more = self
                .reader
                .read_record(&mut record)
                .map_err(|error| corrupt(&self.file.path, &format!("line {line}"), &error))?;
            self.reader.get_mut().renew();
            if !more {
                self.done = true;
                break;
            }
            if !std::mem::replace(&mut self.begun, true) && is_of_types(&record, values) {
                continue;
            }
            if all {
                self.last = record.position().cloned();
            }
            let field = |position: usize| record.get(position);
            let cell = |position: usize| field(position).filter(|&cell| cell != NULL);
            let escapes = self.delimiter == b'\t';
            let text = |position: usize| {
                let unescaped = |cell| if escapes { unescaped(cell) } else { Cow::Borrowed(cell) };
                cell(position).map(unescaped)
            };
            let (name, subname) = (text(metric_name), text(subname));
            let (time, whole) = (cell(timestamp), [(rank, "rank"), (iteration, "iteration")]);
            let read = time.and_then(timestamp::parse);
            if let (None, Some(cell)) = (read, time) {
                rows.unread.note("timestamp", cell);
            }
            rows.timestamp.push(read);
            rows.job.push(text(job).as_deref());
            rows.metric_name.push(name.as_deref());
            rows.subname.push(subname.as_deref());
            for ((position, name), column) in whole.into_iter().zip([&mut rows.rank, &mut rows.iteration]) {
                let read = cell(position).and_then(integer_of_text);
                if let (None, Some(cell)) = (read, cell(position)) {
                    rows.unread.note(name, cell);
                }
                column.push(read);
            }
            let first = cell(values).map_or(Ok(None), first_of_text_array).map_err(|reason| {
                let line = record.position().map_or(0, csv::Position::line);
                SourceError::corrupt(&self.file.path, format!("line {line}, column `metric_values`"), reason)
            })?;
            rows.value.push(first);
            let list = cell(values).filter(|_| all || keeps_list(name.as_deref(), subname.as_deref()));
            rows.calls.push(list.into_iter().flat_map(all_of_text_array));
            for (column, position) in [
                (&mut rows.node, node),
                (&mut rows.rerun_uuid, rerun_uuid),
                (&mut rows.cluster, cluster),
                (&mut rows.attributes, attributes),
            ] {
                if let (Some(column), Some(position)) = (column, position) {
                    column.push(text(position).as_deref());
                }
            }
        }
        if all && self.done && !self.file.is_stdin() {
            self.check_end()?;
        }
        Ok(rows)
    }

    /// Refuses a last record that may have been cut: half a cell would be stored as if it were whole, and the row that
    /// is meant would come beside it with the next load. What is read anew here was held as a record just before.
    fn check_end(&mut self) -> Result<(), SourceError> {
        let Some(last) = self.last.take() else { return Ok(()) };
        let mut tail = Vec::new();
        compressed::open(&self.file).and_then(|mut input| {
            let skipped = std::io::copy(&mut input.by_ref().take(last.byte()), &mut std::io::sink());
            skipped
                .and_then(|_| input.read_to_end(&mut tail))
                .map_err(SourceError::io(&self.file.path))
        })?;
        if ends_whole(&tail, self.delimiter) {
            return Ok(());
        }
        let reason = "the file breaks off in this line, or lacks the line break at its end; export it again, or add \
                      the line break if the line is whole";
        Err(SourceError::corrupt(
            &self.file.path,
            format!("line {}", last.line()),
            reason,
        ))
    }
}

/// Whether what follows the text would be a record of its own: its last line is ended and no quote is open.
fn ends_whole(text: &[u8], delimiter: u8) -> bool {
    const NEXT: &[u8] = b"\0";
    let mut reader = csv::ReaderBuilder::new()
        .delimiter(delimiter)
        .has_headers(false)
        .flexible(true)
        .from_reader(text.chain(NEXT));
    let last = reader.byte_records().last();
    matches!(last, Some(Ok(record)) if record.len() == 1 && record.get(0) == Some(NEXT))
}

/// Undoes the escapes of ClickHouse's TabSeparated.
fn unescaped(cell: &str) -> Cow<'_, str> {
    if !cell.contains('\\') {
        return Cow::Borrowed(cell);
    }
    let mut text = String::with_capacity(cell.len());
    let mut letters = cell.chars();
    while let Some(letter) = letters.next() {
        if letter != '\\' {
            text.push(letter);
            continue;
        }
        match letters.next() {
            Some('b') => text.push('\u{8}'),
            Some('f') => text.push('\u{c}'),
            Some('n') => text.push('\n'),
            Some('r') => text.push('\r'),
            Some('t') => text.push('\t'),
            Some('0') => text.push('\0'),
            Some(itself @ ('\\' | '\'' | '"')) => text.push(itself),
            // Not of ClickHouse: the backslash means itself.
            Some(other) => text.extend(['\\', other]),
            None => text.push('\\'),
        }
    }
    Cow::Owned(text)
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

/// The reader's own place, if it knows one, or where the record began.
fn corrupt(path: &Path, begin: &str, error: &csv::Error) -> SourceError {
    let place = error.position().map(|position| format!("line {}", position.line()));
    SourceError::corrupt(path, place.unwrap_or_else(|| begin.to_owned()), error)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn escapes_of_tab_separated_text_are_undone() {
        assert_eq!(unescaped(r"a\tb\\t\'c\0"), "a\tb\\t'c\0");
        assert_eq!(unescaped(r"C:\Users\"), r"C:\Users\");
        assert!(matches!(unescaped("plain"), Cow::Borrowed("plain")));
    }

    #[test]
    fn a_record_that_was_cut_is_told_from_a_whole_one() {
        for whole in [
            "a,b\n",
            "a,b\r\n",
            "\na,\"b\n\"\n",
            "a,\"\"\"\"\n",
            "a,b\n\n",
            "a,b\"\n",
        ] {
            assert!(ends_whole(whole.as_bytes(), b','), "{whole:?}");
        }
        for cut in ["a,b", "a,", "a", "a,\"b", "a,\"b\n", "a,\"b\"", "a,\"\"\"\n"] {
            assert!(!ends_whole(cut.as_bytes(), b','), "{cut:?}");
        }
    }
}
