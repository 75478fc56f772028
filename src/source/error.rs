//! What can go wrong between a path and its rows.

use std::path::PathBuf;

use thiserror::Error;

use super::clickhouse::ServerError;

/// A source that could not be read, or that holds nothing of what was asked for.
///
/// [`SourceError::NoRows`], [`SourceError::UnknownJob`] and [`SourceError::SeveralJobs`] mean that the source
/// is sound and the question does not fit it; all the others mean that the source itself failed.
#[derive(Debug, Error)]
pub enum SourceError {
    /// A path or pattern that names nothing.
    #[error("no such file, folder or pattern: {0}")]
    NotFound(String),
    /// A folder or pattern in which no file has a known ending.
    #[error("no file of a known format in {0} (known endings: {1})")]
    NoFiles(String, String),
    /// A file that holds no byte.
    #[error("{0} is empty")]
    Empty(PathBuf),
    /// A file whose first bytes belong to none of the formats.
    #[error("{path}: no {expected} file; {advice}", path = path.display())]
    WrongFormat {
        /// The file.
        path: PathBuf,
        /// The format that its ending or its neighbours promised.
        expected: &'static str,
        /// What to do about it.
        advice: String,
    },
    /// The operating system refused.
    #[error("failed to read {path}", path = path.display())]
    Io {
        /// The file.
        path: PathBuf,
        /// Its answer.
        source: std::io::Error,
    },
    /// A file that starts well and can't be decoded.
    #[error("failed to decode {path} at {place}: {reason}", path = path.display())]
    Corrupt {
        /// The file.
        path: PathBuf,
        /// Where in it: "row group 3", "line 17", "the footer".
        place: String,
        /// The decoder's words.
        reason: String,
    },
    /// A column of the contract that the file lacks.
    #[error("{path}: column `{column}` is missing; found {found}", path = path.display())]
    MissingColumn {
        /// The file.
        path: PathBuf,
        /// The column.
        column: &'static str,
        /// The columns that are there.
        found: String,
    },
    /// A column that the user has named, and that the file lacks.
    #[error("{path}: there is no column `{name}` to be read as `{column}`; found {found}", path = path.display())]
    UnknownName {
        /// The file.
        path: PathBuf,
        /// The column of the contract.
        column: &'static str,
        /// What the user calls it.
        name: String,
        /// The columns that are there.
        found: String,
    },
    /// A column that the file has twice: which one is meant?
    #[error("{path}: column `{column}` is there twice", path = path.display())]
    DoubleColumn {
        /// The file.
        path: PathBuf,
        /// The column.
        column: &'static str,
    },
    /// A column whose type can't be read as what the contract asks for.
    #[error("{path}: column `{column}` has type {found}, expected {expected}", path = path.display())]
    WrongType {
        /// The file.
        path: PathBuf,
        /// The column.
        column: &'static str,
        /// Its type.
        found: String,
        /// What would do.
        expected: &'static str,
    },
    /// No row of the job is left in the window.
    #[error("no rows: {0}")]
    NoRows(String),
    /// The asked job is not in the input.
    #[error("no rows of job `{asked}`; the input holds {there}")]
    UnknownJob {
        /// The job that was asked for.
        asked: String,
        /// The jobs that are there.
        there: String,
    },
    /// No job was asked for and the input holds several.
    #[error("the input holds several jobs, choose one of them: {0}")]
    SeveralJobs(String),
    /// A ClickHouse server that could not be asked, or refused.
    #[error(transparent)]
    Server(#[from] Box<ServerError>),
    /// The rows of the window would need a table that is nearly all holes.
    #[error(
        "the window is too sparse to tabulate: {rows} rows spread over {ranks} ranks x {iterations} iterations; \
         ask for fewer iterations or less time"
    )]
    TooSparse {
        /// Rows in the window.
        rows: usize,
        /// Distinct ranks.
        ranks: usize,
        /// Distinct iterations.
        iterations: usize,
    },
}

impl SourceError {
    /// Whether the source is sound and merely holds nothing that fits the question.
    #[must_use]
    pub fn is_no_rows(&self) -> bool {
        matches!(self, Self::NoRows(_) | Self::UnknownJob { .. } | Self::SeveralJobs(_))
    }

    pub(crate) fn io(path: impl Into<PathBuf>) -> impl FnOnce(std::io::Error) -> Self {
        let path = path.into();
        move |source| Self::Io { path, source }
    }

    pub(crate) fn corrupt(path: impl Into<PathBuf>, place: impl Into<String>, reason: impl std::fmt::Display) -> Self {
        Self::Corrupt {
            path: path.into(),
            place: place.into(),
            reason: reason.to_string(),
        }
    }
}
