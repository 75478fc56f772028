//! From a job's tables to what is clustered: four features a rank and timer, the timers that tell nothing set
//! aside, the columns scaled.
//!
//! Data flows [`aggregate()`] -> [`select`] -> [`robust_scale`].

mod aggregate;
mod filter;
mod scale;

pub use aggregate::{Feature, RankFeatures, aggregate};
pub use filter::{TimerFate, TimerRules, TimerVerdict, select};
pub use scale::robust_scale;
