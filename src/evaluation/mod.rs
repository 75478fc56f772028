//! How well the verdicts are: jobs with known faults, and verdicts held against them.
//!
//! In: scenarios, or labelled jobs. Out: rows of `megatron_metrics` with labels; scores. May use: everything below `cli`.

pub mod score;
pub mod simulate;
pub mod suite;
