//! From labels to names: timers vote inside an algorithm, algorithms vote on ranks.
//!
//! Data flows [`ballot()`] (one algorithm's labels over timers) -> [`SlowStepGate`] (pipelines: is it slow enough to
//! matter) -> [`elect`] (over algorithms).
//!
//! In: labels and weights. Out: ballots and the elected. May use: `job`.

mod ballot;
mod election;
mod gate;

pub use ballot::{Ballot, RankBallot, TimerVote, ballot};
pub use election::{Election, elect};
pub use gate::SlowStepGate;
