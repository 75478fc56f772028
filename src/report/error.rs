//! What can go wrong on the way out.

use std::path::PathBuf;

use thiserror::Error;

/// Results that could not be written.
#[derive(Debug, Error)]
pub enum WriteError {
    /// The result folder is there already.
    #[error("{path} exists; choose another folder, or ask to replace an earlier result", path = path.display())]
    Exists {
        /// The folder.
        path: PathBuf,
    },
    /// Replacing something that is no result folder.
    #[error("{path} is not a result folder (it holds no summary.json), so it is never replaced", path = path.display())]
    NotAResult {
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
    /// A value that can't be written as JSON or CSV.
    #[error("failed to format {what}: {reason}")]
    Format {
        /// What it is.
        what: &'static str,
        /// Why.
        reason: String,
    },
    /// Standard output refused.
    #[error("failed to write to standard output")]
    Stdout(#[source] std::io::Error),
}

impl WriteError {
    pub(crate) fn io(path: impl Into<PathBuf>) -> impl FnOnce(std::io::Error) -> Self {
        let path = path.into();
        move |source| Self::Io { path, source }
    }
}
