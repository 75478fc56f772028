//! From labels to names: timers vote inside an algorithm, algorithms vote on ranks.
//!
//! Data flows [`ballot()`] (one algorithm's labels over timers) -> [`SlowStepGate`] (pipelines: is it slow enough to
//! matter) -> [`elect`] (over algorithms).

mod ballot;
mod election;
mod gate;

pub use ballot::{Ballot, RankBallot, TimerVote, ballot};
pub use election::{Election, elect};
pub use gate::SlowStepGate;
