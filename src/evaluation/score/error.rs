//! What can go wrong before a job is scored.

use std::path::PathBuf;

use thiserror::Error;

use crate::evaluation::simulate::SimulateError;
use crate::job::JobError;
use crate::source::SourceError;

/// A folder that can't be scored, or nothing to score.
#[derive(Debug, Error)]
pub enum ScoreError {
    /// The folder or its labels can't be read.
    #[error("failed to read {path}: {source}", path = path.display())]
    Io {
        /// The folder or file.
        path: PathBuf,
        /// The operating system's answer.
        source: std::io::Error,
    },
    /// The labels are no JSON object of jobs.
    #[error("{path}: not a JSON object of labelled jobs: {source}", path = path.display())]
    Labels {
        /// The labels file.
        path: PathBuf,
        /// Where the JSON is wrong.
        source: serde_json::Error,
    },
    /// No labelled job with a file, or none of the kinds asked for.
    #[error("nothing to score: {0}")]
    Nothing(String),
}

/// Why one job could not be scored.
#[derive(Debug, Error)]
pub enum CaseError {
    /// Its label can't be read.
    #[error("its label can't be read: {0}")]
    Label(serde_json::Error),
    /// Its rows can't be read, or there are none.
    #[error(transparent)]
    Source(#[from] SourceError),
    /// Its rows make no job.
    #[error(transparent)]
    Job(#[from] JobError),
    /// It could not be simulated.
    #[error(transparent)]
    Simulate(#[from] SimulateError),
    /// The analysis broke off.
    #[error("the analysis panicked; please report it")]
    Panicked,
}
