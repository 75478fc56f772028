//! Why there is no answer.

use std::path::PathBuf;

use thiserror::Error;

/// A question that can't be answered from what there is.
#[derive(Debug, Error)]
pub enum WhatIfError {
    /// A trace that can't be read.
    #[error("failed to read {path}: {reason}", path = path.display())]
    Read {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        reason: String,
    },
    /// A column that an op trace must have.
    #[error("{path}: column `{column}` is missing; an op trace has dp_rank, stage, rank, step, optype, start_ts, duration and seq_id; found {found}", path = path.display())]
    MissingColumn {
        /// The file.
        path: PathBuf,
        /// The column.
        column: &'static str,
        /// The columns that are there.
        found: String,
    },
    /// A file that describes the job and can't be understood.
    #[error("{path}: line {line}: {reason}", path = path.display())]
    Meta {
        /// The file.
        path: PathBuf,
        /// 1-based.
        line: usize,
        /// What is wrong, and what would do.
        reason: String,
    },
    /// A trace without an operation that can be used.
    #[error("the trace holds no operation that can be used: {0}")]
    NothingToReplay(String),
    /// Operations that wait for each other.
    #[error(
        "{operations} operations wait for each other in a circle: the order of the operations in the trace makes no schedule"
    )]
    Circle {
        /// How many.
        operations: usize,
    },
    /// Sends and receives that do not fit the passes.
    #[error(
        "stage {stage}: {found} of type {kind} beside {passes} passes; a pipeline has one each, or one less on its ends"
    )]
    Unmatched {
        /// Pipeline stage.
        stage: usize,
        /// Type of operation.
        kind: &'static str,
        /// How many there are.
        found: usize,
        /// Passes in that direction.
        passes: usize,
    },
    /// Something to mend that is not there.
    #[error("{asked} can't be mended: {reason}")]
    NothingToMend {
        /// As it was asked for.
        asked: String,
        /// What is there.
        reason: String,
    },
}
