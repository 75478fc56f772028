//! What training programs print, as rows: Megatron-LM and its forks, DeepSpeed, StragglerDetector, NVRx, FlagScale.
//!
//! In: bytes of logs. Out: batches of [`Rows`]. May use: the readers' common parts in `source`, `contract`.
//!
//! Data flows `lines` (bytes -> lines, bounded) -> `clean` (colours, launchers' prefixes) -> `grammar`, `one_line`, `setup`,
//! `reports` (a line -> an event) -> `reading` (events -> rows: which run, which iteration, which block) -> `builder`
//! (rows -> a batch). What a format can't tell has no row: a rank that is not named is never guessed.

mod builder;
mod clean;
#[cfg(test)]
mod fuzz;
mod grammar;
mod lines;
mod measures;
pub mod nodes;
mod one_line;
mod placing;
mod reading;
mod reports;
mod setup;
mod sniff;
mod steps;
mod tail;

use std::path::PathBuf;

use super::columns::Columns;
use super::discover::SourceFile;
use super::error::SourceError;
use super::rows::Rows;
use lines::Lines;
use reading::Reading;
pub(super) use sniff::{Sniffed, holds_a_log, sniff};
pub use tail::LogTail;

/// Opens logs that are read one after the other as parts of one job, or of several where their sizes differ.
///
/// # Errors
/// A file that can't be read.
pub(super) fn open(files: &[&SourceFile], columns: Columns) -> Result<LogBatches, SourceError> {
    let name = files.first().map_or_else(|| "log".to_owned(), |file| job_name(file));
    let nodes = files.iter().find_map(|file| file.nodes.clone());
    Ok(LogBatches {
        files: files.iter().rev().map(|&file| file.clone()).collect(),
        paths: files.iter().map(|file| file.path.clone()).collect(),
        current: None,
        reading: Reading::new(&name, nodes, columns),
        columns,
        done: false,
    })
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

/// The batches of some logs.
pub(super) struct LogBatches {
    /// Those that are still to be read, the next one last.
    files: Vec<SourceFile>,
    paths: Vec<PathBuf>,
    current: Option<(PathBuf, Lines)>,
    reading: Reading,
    columns: Columns,
    done: bool,
}

impl LogBatches {
    fn batch(&mut self) -> Result<Rows, SourceError> {
        loop {
            let Some((path, lines)) = &mut self.current else {
                let Some(file) = self.files.pop() else {
                    self.done = true;
                    self.reading.end();
                    return self.last();
                };
                let input = super::compressed::open(&file)?;
                let lines = Lines::new(input).map_err(SourceError::io(&file.path))?;
                self.current = Some((file.path, lines));
                continue;
            };
            let broken = |error: std::io::Error| match error.kind() {
                std::io::ErrorKind::InvalidData | std::io::ErrorKind::InvalidInput | std::io::ErrorKind::Other => {
                    SourceError::corrupt(path.as_path(), "the compressed data", error)
                }
                _ => SourceError::io(path.as_path())(error),
            };
            let begin = lines.bytes();
            loop {
                match lines.next().map_err(broken)? {
                    Some(line) => self.reading.line(line),
                    None => {
                        self.reading.counts.too_long += lines.too_long();
                        self.reading.end_of_file();
                        self.current = None;
                        break;
                    }
                }
                if self.reading.may_be_cut()
                    && self
                        .columns
                        .is_full(self.reading.rows(), lines.bytes().saturating_sub(begin))
                {
                    return Ok(self.reading.take_rows());
                }
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
