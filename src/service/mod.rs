//! A job while it runs: what is new is looked at every few seconds, a slow window is analysed as soon as it is one, and the state
//! of every job is there to be asked for.
//!
//! In: a table that grows. Out: states, verdicts, alerts, pages. May use: everything below `cli`; it runs the program for an analysis,
//! not its folders.
//!
//! Data flows [`feed`] (new iterations of all jobs, of a table or of [`files`]) -> [`watched`] (one job: its states; [`known`] is what it holds) -> [`watcher`] (all jobs, kept in
//! [`state`]) -> [`analysis`] (slow windows through `analyze`) -> [`alerts`]. [`http`] shows it: [`answers`], `prometheus`,
//! `page`, `openapi`.

pub mod alerts;
pub mod analysis;
pub mod answers;
mod error;
pub mod feed;
pub mod files;
pub mod health;
pub mod http;
pub mod known;
mod openapi;
pub mod page;
mod prometheus;
pub mod state;
pub mod watched;
pub mod watcher;

pub use error::ServiceError;
