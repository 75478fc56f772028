//! What training programs print, as rows: Megatron-LM and its forks, DeepSpeed, StragglerDetector, NVRx, FlagScale.
//!
//! In: bytes of logs. Out: batches of [`Rows`]. May use: the readers' common parts in `source`, `contract`.
//!
//! Data flows `lines` (bytes -> chunks of lines, bounded) -> `prepare` (in parallel: what each line says on its own) -> `grammar`,
//! `one_line`, `setup`, `reports` (a line -> an event) -> `reading` (events -> rows: which run, which iteration, which block) ->
//! `builder` (rows -> a batch). What a format can't tell has no row: a rank that is not named is never guessed.

mod builder;
mod clean;
mod counts;
mod deepspeed;
#[cfg(test)]
mod fuzz;
mod grammar;
mod lines;
mod measures;
pub mod nodes;
mod one_line;
mod placing;
mod prepare;
pub mod print;
mod reading;
mod reports;
mod setup;
mod sniff;
mod steps;
mod stream;
mod tail;
mod utf16;

use std::collections::VecDeque;
use std::path::PathBuf;

use super::columns::Columns;
use super::discover::SourceFile;
use super::error::SourceError;
use super::rows::Rows;
use prepare::PreparedChunk;
use reading::Reading;
pub(super) use sniff::{Sniffed, holds_a_log, sniff};
use stream::Stream;
pub use tail::LogTail;

/// Opens logs that are read one after the other as parts of one job, or of several where their sizes differ.
pub(super) fn open(files: &[&SourceFile], columns: Columns) -> LogBatches {
    let name = files.first().map_or_else(|| "log".to_owned(), |file| job_name(file));
    let nodes = files.iter().find_map(|file| file.options.nodes.clone());
    LogBatches {
        stream: Stream::new(files),
        ready: VecDeque::new(),
        next_line: 0,
        paths: files.iter().map(|file| file.path.clone()).collect(),
        reading: Reading::new(&name, nodes, columns),
        columns,
        done: false,
    }
}

/// The job that a log is of where nothing names it: its file's name without endings.
fn job_name(file: &SourceFile) -> String {
    if file.is_stdin() {
        return "stdin".to_owned();
    }
    let name = file.path.file_name().unwrap_or_default().to_string_lossy();
    let plain = name.split_once('.').map_or(&*name, |(stem, _)| stem);
    if plain.is_empty() {
        "log".to_owned()
    } else {
        plain.to_owned()
    }
}

/// Bytes after which a batch ends that has few rows, so that somebody hears of it.
const QUIET: u64 = 64 << 20;

/// The batches of some logs.
pub(super) struct LogBatches {
    stream: Stream,
    /// Chunks that are prepared and not all taken.
    ready: VecDeque<PreparedChunk>,
    /// The line of the first of them that is next.
    next_line: usize,
    paths: Vec<PathBuf>,
    reading: Reading,
    columns: Columns,
    done: bool,
}

impl LogBatches {
    fn batch(&mut self) -> Result<Rows, SourceError> {
        let mut bytes = 0;
        loop {
            if self.ready.is_empty() {
                self.ready.extend(self.stream.next()?);
                if self.ready.is_empty() {
                    self.done = true;
                    self.reading.end();
                    return self.last();
                }
            }
            // While the lines of some chunks are put where they belong, those of the next ones are looked at.
            let (stream, wanted) = (&mut self.stream, self.ready.len() < 8 * rayon::current_num_threads());
            let (reading, ready, next_line) = (&mut self.reading, &mut self.ready, &mut self.next_line);
            let columns = self.columns;
            let (is_full, next) = rayon::join(
                || take(reading, ready, next_line, columns, &mut bytes),
                || if wanted { stream.next() } else { Ok(Vec::new()) },
            );
            self.ready.extend(next?);
            if is_full {
                return Ok(self.reading.take_rows());
            }
        }
    }

    /// The last rows with what was noticed on the way.
    fn last(&mut self) -> Result<Rows, SourceError> {
        if self.reading.saw_nothing() {
            let names: Vec<String> = self.paths.iter().map(|path| path.display().to_string()).collect();
            return Err(SourceError::NoRows(format!(
                "{}: no iteration or timer line was found, nor a report of slow ranks; is it the standard output of the \
                 rank that prints them (Megatron-LM: the last one)?",
                names.join(", ")
            )));
        }
        let mut rows = self.reading.take_rows();
        rows.notes = self.reading.notes();
        Ok(rows)
    }
}

/// Puts the lines of chunks where they belong, until there are enough rows for a batch; whether there are.
fn take(
    reading: &mut Reading,
    ready: &mut VecDeque<PreparedChunk>,
    next_line: &mut usize,
    columns: Columns,
    bytes: &mut u64,
) -> bool {
    while let Some(chunk) = ready.front() {
        while let Some(line) = chunk.lines.get(*next_line) {
            *next_line += 1;
            *bytes += u64::from(line.bytes);
            reading.line(chunk, line);
            let is_full = columns.is_full(reading.rows(), *bytes) || *bytes >= QUIET;
            if is_full && reading.may_be_cut() {
                return true;
            }
        }
        reading.counts.too_long += chunk.too_long;
        if chunk.ends_file {
            reading.end_of_file();
        }
        ready.pop_front();
        *next_line = 0;
    }
    false
}

impl Iterator for LogBatches {
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
