//! Errors, split by who can mend them: the caller (values) or the machine (files).

use std::path::PathBuf;

use polars::error::PolarsError;
use thiserror::Error;

use crate::contract::rank_order::{ORDERS, OrderError};

/// A scenario that cannot be simulated. The command line maps it to "bad arguments".
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("{setting}: {problem} (allowed: {allowed})")]
pub struct ScenarioError {
    /// The setting that is not possible, as the command line calls it: `slow-rank`.
    pub setting: &'static str,
    /// What was wrong, with the value given.
    pub problem: String,
    /// What would have been accepted.
    pub allowed: String,
}

impl ScenarioError {
    pub(super) fn new(setting: &'static str, problem: impl Into<String>, allowed: impl Into<String>) -> Self {
        Self {
            setting,
            problem: problem.into(),
            allowed: allowed.into(),
        }
    }
}

impl From<OrderError> for ScenarioError {
    fn from(error: OrderError) -> Self {
        Self::new("order", error.to_string(), ORDERS)
    }
}

/// A job that was simulated but could not be stored. The command line maps it to "not written".
#[derive(Debug, Error)]
pub enum WriteError {
    /// The job's file is there already and may not be replaced.
    #[error("{} exists already and is not replaced unless that is asked for", path.display())]
    Exists {
        /// The file in the way.
        path: PathBuf,
    },
    /// Reading or writing a file or folder failed.
    #[error("{}: {source}", path.display())]
    Io {
        /// The file or folder.
        path: PathBuf,
        /// What the system said.
        source: std::io::Error,
    },
    /// The Parquet encoder failed.
    #[error("{}: {source}", path.display())]
    Parquet {
        /// The file that was being written.
        path: PathBuf,
        /// What the encoder said.
        source: PolarsError,
    },
    /// An existing `labels.json` is not a JSON object of jobs; it is left as it is.
    #[error("{}: not a JSON object of labelled jobs: {source}", path.display())]
    Labels {
        /// The labels file.
        path: PathBuf,
        /// Where the JSON is wrong.
        source: serde_json::Error,
    },
}

/// Anything that stops a simulation.
#[derive(Debug, Error)]
pub enum SimulateError {
    /// The scenario is not possible.
    #[error(transparent)]
    Scenario(#[from] ScenarioError),
    /// The rows do not form a frame.
    #[error("cannot build the table of timers: {0}")]
    Frame(#[from] PolarsError),
    /// The job could not be stored.
    #[error(transparent)]
    Write(#[from] WriteError),
}
