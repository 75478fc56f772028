//! What a verdict is made of, as plain data: findings with their evidence, the kinds that they are of, causes, what lasts, and
//! the words that people read.
//!
//! In: nothing. Out: types that detectors fill and reports print. May use: `contract`, `stats`.

mod cause;
mod finding;
mod kind;
mod lasting;
mod status;
pub mod words;

pub use cause::Cause;
pub use finding::{Finding, LinkEvidence, TimerEvidence};
pub use kind::FindingKind;
pub use lasting::{Lasting, Persistence, SlowSteps, lasting, runs};
pub use status::Status;

use crate::contract::constant::Movable;

/// The numbers that say what lasts.
pub(crate) fn constants() -> impl Iterator<Item = &'static dyn Movable> {
    lasting::CONSTANTS.iter().copied()
}
