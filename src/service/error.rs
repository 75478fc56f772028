//! What keeps a service from starting or going on.

use std::path::PathBuf;

use thiserror::Error;

/// Why the service ended.
#[derive(Debug, Error)]
pub enum ServiceError {
    /// The address can't be listened at.
    #[error("can't listen at {address}: {source}; is another program there, or the address another machine's?")]
    Listen {
        /// As it was given.
        address: String,
        /// The operating system's word.
        source: std::io::Error,
    },
    /// The state can't be read or kept.
    #[error("the state in {}: {reason}", .path.display())]
    State {
        /// The file or folder.
        path: PathBuf,
        /// Why.
        reason: String,
    },
    /// The system gives no threads.
    #[error("no threads: {0}")]
    Threads(std::io::Error),
}
