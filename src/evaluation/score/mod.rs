//! A benchmark: verdicts on labelled jobs, held against what is true.
//!
//! Data flows [`labelled_jobs`] or [`suite_jobs`] -> [`run()`], which loads or simulates each [`Case`], asks each set of
//! rules and marks its [`Answer`] -> [`Outcome`]s -> [`Report`] -> [`text()`] or JSON.
//!
//! In: labelled jobs and settings. Out: marks and sums. May use: `suite`, `simulate`, `rules` and what is below.

mod cases;
mod error;
mod judge;
mod lines;
mod mark;
mod network;
mod report;
mod run;
mod sensitivity;
mod text;
mod text_network;
mod truth;

pub use cases::{Case, LabelledJobs, Origin, labelled_jobs, simulated_job, suite_jobs};
pub use error::{CaseError, ScoreError};
pub use judge::{Answer, judge};
pub use mark::{Marks, mark};
pub use network::{NetworkMarks, NetworkTally, SoundShare, blames_network};
pub use report::{HealthyShare, Miss, Report, RuleScore, Tally};
pub use run::{Outcome, run};
pub use sensitivity::{FACTORS, Moved, MovedConstant, Sensitivity, Sums, sensitivity, sensitivity_text};
pub use text::text;
pub use truth::Truth;
