//! Says which ranks of a finished Megatron-LM training job were slow, on which nodes, from its per-rank timers.
//!
//! Data flows through the modules in this order: [`source`] (files -> rows), [`job`] (rows -> tables of one job's
//! window), [`features`] (tables -> scaled features of each timer), [`algos`] (features -> slow or fast),
//! [`vote`] (labels -> ranks), with [`rules`] saying how the steps are put together, and [`report`] (verdict ->
//! text, JSON, folder). [`simulate`] makes jobs with known faults, [`suite`] draws many of them by kind, and [`score`]
//! holds verdicts against the truth. [`sweep`] analyses every job of a span of time. [`cli`] is the command line over all of it.

pub mod algos;
pub mod cli;
pub mod comm;
pub mod features;
mod interrupt;
pub mod job;
pub mod machines;
pub mod report;
pub mod rules;
pub mod score;
pub mod simulate;
pub mod source;
pub mod suite;
pub mod sweep;
pub mod vote;
