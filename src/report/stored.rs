//! A result folder as `explain` and `compare` read it back.

use std::fs;
use std::path::{Path, PathBuf};

use serde::Deserialize;
use thiserror::Error;

use super::comparison_json::COMPARISON_JSON;
use super::json::SUMMARY_JSON;
use super::summary::SCHEMA_VERSION;
use crate::verdict::comparison::Comparison;
use crate::verdict::{Finding, Status};

/// A folder that can't be read as a result.
#[derive(Debug, Error)]
pub enum StoredError {
    /// The operating system refused.
    #[error("failed to read {path}", path = path.display())]
    Io {
        /// The file.
        path: PathBuf,
        /// Its answer.
        source: std::io::Error,
    },
    /// It holds something else.
    #[error("{path} is no result of this program: {reason}", path = path.display())]
    Content {
        /// The file.
        path: PathBuf,
        /// Why.
        reason: String,
    },
    /// A result of another layout.
    #[error("{path} has layout {found}, this program reads {SCHEMA_VERSION}; analyse the job again", path = path.display())]
    Version {
        /// The file.
        path: PathBuf,
        /// Its layout.
        found: u32,
    },
    /// What was asked for is not in it.
    #[error("{what} is not in {path}: {there}", path = path.display())]
    NotThere {
        /// What.
        what: String,
        /// The folder.
        path: PathBuf,
        /// What there is.
        there: String,
    },
}

/// What is read of a result folder.
#[derive(Debug)]
pub struct Stored {
    /// Where it is.
    pub path: PathBuf,
    /// Of its `summary.json`.
    pub(super) summary: StoredSummary,
    /// Of its `comparison.json`; `None` where ranks were not compared with peers.
    pub(super) comparison: Option<Comparison>,
}

#[derive(Debug, Deserialize)]
struct Layout {
    schema_version: u32,
}

/// The parts of a summary that are read back.
#[derive(Debug, Deserialize)]
pub(super) struct StoredSummary {
    pub job: String,
    pub status: Status,
    pub unjudged: Option<String>,
    pub cause: String,
    pub anomaly_ranks: Vec<u32>,
    pub anomaly_nodes: Vec<String>,
    pub findings: Vec<Finding>,
    pub window: StoredWindow,
    pub step_times: StoredSteps,
    pub what_if: Option<StoredCost>,
    pub timers: Vec<StoredTimer>,
    pub windows: Vec<StoredPart>,
}

#[derive(Debug, Deserialize)]
pub(super) struct StoredWindow {
    pub ranks: usize,
    pub iterations: usize,
    pub first_iteration: i64,
    pub last_iteration: i64,
    pub first_time: Option<String>,
    pub last_time: Option<String>,
}

#[derive(Debug, Deserialize)]
pub(super) struct StoredSteps {
    pub baseline_seconds: Option<f64>,
}

#[derive(Debug, Deserialize)]
pub(super) struct StoredCost {
    pub reason: Option<String>,
    pub step_seconds: Option<f64>,
    pub faults_share: Option<f64>,
    pub seconds: Option<f64>,
    pub gpu_hours: Option<f64>,
}

#[derive(Debug, Deserialize)]
pub(super) struct StoredTimer {
    pub timer: String,
    pub median_seconds: Option<f64>,
}

/// A slow window that has a folder of its own.
#[derive(Debug, Deserialize)]
pub(super) struct StoredPart {
    pub window: StoredWindow,
}

impl Stored {
    /// Reads a result folder.
    ///
    /// # Errors
    /// A folder that is not there, that holds something else, or whose layout is another.
    pub fn open(path: &Path) -> Result<Self, StoredError> {
        let file = path.join(SUMMARY_JSON);
        let text = read(&file)?;
        let Layout { schema_version } = parse(&file, &text)?;
        if schema_version != SCHEMA_VERSION {
            return Err(StoredError::Version {
                path: file,
                found: schema_version,
            });
        }
        let summary = parse(&file, &text)?;
        let file = path.join(COMPARISON_JSON);
        let comparison = if file.exists() {
            Some(parse(&file, &read(&file)?)?)
        } else {
            None
        };
        Ok(Self {
            path: path.to_owned(),
            summary,
            comparison,
        })
    }

    /// What is not in it.
    pub(super) fn lacks(&self, what: String, there: String) -> StoredError {
        StoredError::NotThere {
            what,
            path: self.path.clone(),
            there,
        }
    }
}

fn read(file: &Path) -> Result<Vec<u8>, StoredError> {
    fs::read(file).map_err(|source| StoredError::Io {
        path: file.to_owned(),
        source,
    })
}

fn parse<T: serde::de::DeserializeOwned>(file: &Path, text: &[u8]) -> Result<T, StoredError> {
    serde_json::from_slice(text).map_err(|error| StoredError::Content {
        path: file.to_owned(),
        reason: error.to_string(),
    })
}

impl StoredCost {
    /// Whether it holds numbers.
    pub fn is_told(&self) -> bool {
        self.reason.is_none()
    }
}
