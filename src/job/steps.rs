//! How long each iteration took, beside what it was read from.

use schemars::JsonSchema;
use serde::Serialize;

use crate::source::Micros;

/// What a step's length was read from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum StepMeasure {
    /// The largest `interval-time` of any rank.
    IntervalTime,
    /// The largest sum of `forward-compute` and `backward-compute` of any rank, where the job has no `interval-time`.
    /// It leaves out waiting, so that it shows changes of the step and not its length.
    Compute,
}

/// The steps of a job; all lists are parallel.
#[derive(Debug, Clone)]
pub struct Steps {
    /// What their length was read from; `None` where nothing tells it.
    pub(super) measure: Option<StepMeasure>,
    /// Which iteration, ascending.
    pub(super) iterations: Vec<i64>,
    /// Time of the latest row of each.
    pub(super) times: Vec<Micros>,
    /// Seconds that each took; NaN where no rank tells.
    pub(super) seconds: Vec<f64>,
}

impl Steps {
    /// How many of its iterations lie between two of them, both included.
    pub(super) fn between(&self, first: i64, last: i64) -> usize {
        let before = |limit: i64| self.iterations.partition_point(|&iteration| iteration < limit);
        before(last.saturating_add(1)).saturating_sub(before(first))
    }
}
