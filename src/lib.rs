//! Says which ranks of a finished Megatron-LM training job were slow, on which nodes, since when and why, from its per-rank timers.
//!
//! The floors of the house, each of which uses only those below it:
//!
//! - [`cli`]: arguments and exit codes, one file a command;
//! - [`service`]: jobs watched while they run;
//! - [`sweep`]: every job of a span of time;
//! - [`evaluation`]: simulated jobs with known faults, and verdicts held against the truth;
//! - [`machines`]: the faulty machine from hardware metrics, beside the folders for timers;
//! - [`report`]: verdict -> text, JSON, tables, the result folder;
//! - [`rules`]: the detectors; the default rules compare a rank with its peers, the classic ones put the folders
//!   [`features`] -> [`algos`] -> [`vote`] together;
//! - [`comm`], [`vote`], [`algos`], [`features`]: what the detectors are made of;
//! - [`whatif`]: a job's schedule replayed, as measured and with something mended: what faults cost;
//! - [`job`]: rows -> one ranks x iterations table a timer;
//! - [`source`]: files and servers -> rows;
//! - [`verdict`], [`contract`], [`stats`]: findings as plain data, names and numbers agreed on, statistics.

pub mod algos;
mod building;
pub mod cli;
pub mod comm;
pub mod contract;
pub mod evaluation;
pub mod features;
mod interrupt;
pub mod job;
pub mod machines;
pub mod report;
pub mod rules;
pub mod service;
pub mod source;
pub mod stats;
pub mod sweep;
pub mod verdict;
pub mod vote;
pub mod whatif;
