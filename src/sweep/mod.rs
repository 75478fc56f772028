//! Every job of a span of time, each analysed by a process of its own: one that fails, hangs or dies takes no other
//! with it.
//!
//! In: listed jobs and a budget. Out: a folder. May use: everything below `cli`; it runs the program, not its folders.
//!
//! Data flows jobs of the source -> [`Plan`] (which of them, under which folder) -> [`run()`] (processes side by side,
//! within their budgets) -> [`Ledger`], which [`folder`] keeps as `sweep.json`, `sweep.csv` and `index.html`.

mod error;
pub mod folder;
mod html;
mod ledger;
mod run;

pub use error::SweepError;
pub use ledger::{JobResult, LEDGER_VERSION, Ledger, ListedJob, Status};
pub use run::{Budget, Plan, named, run};
