//! Every job of a span of time, each analysed by a process of its own: one that fails, hangs or dies takes no other
//! with it.
//!
//! In: listed jobs and a budget. Out: a folder. May use: everything below `cli`; it runs the program, not its folders.
//!
//! Data flows jobs of the source -> [`Plan`] (which of them, under which folder) -> [`run()`] (processes side by side,
//! within their budgets) -> [`Ledger`], which [`folder`] keeps as `sweep.json`, `sweep.csv` and `index.html`.

mod children;
mod error;
pub mod folder;
mod job_folders;
mod ledger;
mod page;
mod run;

pub use error::SweepError;
pub use job_folders::prune;
pub use ledger::{JobCost, JobResult, LEDGER_VERSION, Ledger, ListedJob, News, Status};
pub use run::{Budget, Plan, named, run};
