//! What a user reads: the summary as a value, as text, as JSON, and the result folder.
//!
//! In: a job with its verdict. Out: a [`Report`] (a [`Summary`], of several slow windows with one for each), its [`text()`] or
//! [`json_line`], and a [`ResultFolder`] of the files that `exporters` lists. May use: `rules` and what is below.
//!
//! Nothing is computed here that a verdict does not hold.

mod comm_tables;
mod csv_table;
mod error;
mod exporters;
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
mod text_cost;

pub use error::WriteError;
pub use folder::ResultFolder;
pub use json::{json_line, json_pretty};
pub use report::Report;
pub use summary::{AlgorithmSummary, Asked, RankVotes, SCHEMA_VERSION, Summary, TimerSummary, WindowSummary};
pub use text::text;
pub(crate) use text_cost::cost as cost_in_words;

#[cfg(test)]
mod tests;
