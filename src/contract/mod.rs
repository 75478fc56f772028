//! What the outside world has agreed on: names of metrics, columns and timers, Megatron's order of ranks, and the numbers
//! that users know from the documents.
//!
//! In: nothing. Out: constants and small lookups that every other folder spells by name. May use: nothing of this crate.

pub mod columns;
pub mod constant;
pub mod defaults;
pub mod metrics;
pub mod printable;
pub mod rank_order;
mod timer;
pub mod timers;

pub use timer::Timer;
