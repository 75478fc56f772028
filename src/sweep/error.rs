//! What can keep a sweep from starting or from being kept.

use std::path::PathBuf;

use thiserror::Error;

/// A sweep that can't run or can't be kept.
#[derive(Debug, Error)]
pub enum SweepError {
    /// Another sweep works on the folder.
    #[error("another sweep is at work in {path}", path = path.display())]
    Locked {
        /// The folder.
        path: PathBuf,
    },
    /// The folder holds something else.
    #[error("{path} holds files and is no folder of a sweep (it has no sweep.json); choose another folder", path = path.display())]
    NotASweep {
        /// The folder.
        path: PathBuf,
    },
    /// The operating system refused.
    #[error("failed to write {path}", path = path.display())]
    Io {
        /// The file or folder.
        path: PathBuf,
        /// Its answer.
        source: std::io::Error,
    },
    /// An earlier ledger that can't be read.
    #[error("failed to read {path}: {reason}; sweep without resuming", path = path.display())]
    Unreadable {
        /// The file.
        path: PathBuf,
        /// Why.
        reason: String,
    },
    /// No process could be started.
    #[error("failed to start a process for a job")]
    Start(#[source] std::io::Error),
}

impl SweepError {
    pub(super) fn io(path: impl Into<PathBuf>) -> impl FnOnce(std::io::Error) -> Self {
        let path = path.into();
        move |source| Self::Io { path, source }
    }
}
