//! A job's steps replayed from its timers: the schedule from its shape, the durations from single calls or from the sums
//! of an iteration.
//!
//! Data flows a [`crate::job::Job`] -> `shape` (workers, microbatches) -> `schedule` (a program) -> `work` (what
//! each operation takes) -> `mend` (what it would take) -> `cost` (what that saves). A *worker* is the ranks of one
//! stage and pipeline: they wait for each other in every pass.

mod collectives;
pub mod cost;
mod mend;
mod schedule;
mod shape;
mod transfers;
mod work;

pub use cost::{Basis, FaultCost, WhatIf, what_if};
pub use mend::{Fault, Target};
pub use shape::Asked;
