//! What a user reads: the summary as a value, as text, as JSON, and the result folder.
//!
//! In: a job with its verdict. Out: a [`Report`] (a [`Summary`], of several slow windows with one for each), its [`text()`] or
//! [`json_line`], and a [`ResultFolder`] of the files that `exporters` lists. May use: `rules` and what is below.
//!
//! Nothing is computed here that a verdict does not hold.

mod comm_tables;
pub mod compare;
mod comparison_json;
mod cordon;
mod csv_table;
mod error;
pub mod explain;
mod exporters;
mod folder;
mod headline;
mod job_folder;
mod json;
pub mod machines;
mod page;
mod picture;
mod prometheus;
#[expect(
    clippy::module_inception,
    reason = "the folder is what a user reads, the file the value behind it"
)]
mod report;
mod screen;
pub mod stored;
mod summary;
mod tables;
mod text;
mod trace_view;

pub use error::WriteError;
pub use folder::ResultFolder;
pub use headline::{Headline, WorstRank};
pub use job_folder::{job_folder, job_folder_with_hash};
pub use json::{json_line, json_pretty};
pub use prometheus::prometheus;
pub use report::Report;
pub use screen::{Look, screen};
pub use summary::{AlgorithmSummary, Asked, RankVotes, SCHEMA_VERSION, Sources, Summary, TimerSummary, WindowSummary};
pub(crate) use text::cost::cost as cost_in_words;
pub use text::{lines_for_scripts, text};

#[cfg(test)]
mod tests;
