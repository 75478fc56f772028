//! What a user reads: the summary as a value, as text, as JSON, and the result folder.
//!
//! Data flows [`Report`] (a [`Summary`], of several slow windows with one for each) -> [`text()`] or [`json_line`] ->
//! standard output, or [`ResultFolder`] with a table for each algorithm and those of communication beside them. Nothing is computed here that a
//! verdict does not hold.

mod comm_tables;
mod error;
mod folder;
mod json;
#[expect(
    clippy::module_inception,
    reason = "the folder is what a user reads, the file the value behind it"
)]
mod report;
mod summary;
mod tables;
mod text;

pub use error::WriteError;
pub use folder::ResultFolder;
pub use json::{json_line, json_pretty};
pub use report::Report;
pub use summary::{AlgorithmSummary, Asked, RankVotes, SCHEMA_VERSION, Summary, TimerSummary, WindowSummary};
pub use text::text;
