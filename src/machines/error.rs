//! What can go wrong with machine metrics.

use std::path::{Path, PathBuf};

use thiserror::Error;

/// Why machine metrics could not be read, judged or written.
#[derive(Debug, Error)]
pub enum MachinesError {
    /// A file or folder could not be read.
    #[error("failed to read {}: {source}", .path.display())]
    Read {
        /// The file.
        path: PathBuf,
        /// The operating system's reason.
        source: std::io::Error,
    },
    /// A file is not what its ending says, or lacks a column.
    #[error("{}: {reason}", .path.display())]
    Content {
        /// The file.
        path: PathBuf,
        /// What is wrong, and what would do.
        reason: String,
    },
    /// The files hold several jobs and none was chosen.
    #[error("the files hold {count} jobs ({names}): choose one with --job-id")]
    SeveralJobs {
        /// Number of jobs.
        count: usize,
        /// Their first names.
        names: String,
    },
    /// Nothing to judge.
    #[error("{0}")]
    NoSamples(String),
    /// A file could not be written.
    #[error("failed to write {}: {reason}", .path.display())]
    Write {
        /// The file.
        path: PathBuf,
        /// Why.
        reason: String,
    },
}

impl MachinesError {
    pub(super) fn content(path: &Path, reason: impl Into<String>) -> Self {
        Self::Content {
            path: path.to_owned(),
            reason: reason.into(),
        }
    }

    pub(super) fn read(path: &Path) -> impl FnOnce(std::io::Error) -> Self {
        let path = path.to_owned();
        move |source| Self::Read { path, source }
    }

    pub(super) fn write(path: &Path, reason: impl std::fmt::Display) -> Self {
        Self::Write {
            path: path.to_owned(),
            reason: reason.to_string(),
        }
    }
}
