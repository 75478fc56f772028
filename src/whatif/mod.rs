//! What faults cost: a job's own schedule is replayed with what was measured, and with something mended.
//!
//! Data flows [`trace`] (an op trace) -> [`graph`] (who waits for whom) -> [`replay`] (the engine) -> [`slowdown`] (by type,
//! replica, stage and worker). [`timers`] replays a [`crate::job::Job`] with the same engine and tells what its faults cost.

pub mod error;
pub mod graph;
pub mod replay;
pub mod scenario;
pub mod slowdown;
pub mod timers;
pub mod trace;

pub use error::WhatIfError;
