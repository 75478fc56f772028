//! What faults cost: a job's own schedule is replayed with what was measured, and with something mended.
//!
//! Data flows [`trace`] (an op trace) -> [`graph`] (who waits for whom) -> [`replay`] (the engine) -> [`slowdown`] (by type,
//! replica, stage and worker). [`timers`] replays a [`crate::job::Job`] with the same engine and tells what its faults cost.
//!
//! In: an op trace, or a job with its findings. Out: step times as measured and as they would be. May use: `job`, `source`,
//! `stats`, `verdict`, `contract`.

pub mod error;
pub mod graph;
pub mod model;
pub mod question;
pub mod replay;
pub mod scenario;
pub mod schedule;
pub mod slowdown;
pub mod timeline;
pub mod timers;
pub mod trace;

pub use error::WhatIfError;

/// Median of finite numbers; `None` of none.
fn middle(values: impl IntoIterator<Item = f64>) -> Option<f64> {
    Some(crate::stats::median(values)).filter(|median| !median.is_nan())
}
