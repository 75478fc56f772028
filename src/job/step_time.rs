//! How long each step of a job took.

use schemars::JsonSchema;
use serde::Serialize;

use super::{Job, TimerTable};
use crate::contract::timers::{INTERVAL_TIME, PASSES};

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

/// The timers that tell the steps of a job, of those that it `has`.
pub(super) fn timers(has: impl Fn(&str) -> bool) -> Vec<&'static str> {
    if has(INTERVAL_TIME) {
        return vec![INTERVAL_TIME];
    }
    PASSES.into_iter().filter(|name| has(name)).collect()
}

impl Job {
    /// Length of each column of the tables in seconds, NaN where no rank tells; and what it was read from, `None` where the
    /// job has none of the timers. Everything that asks how long a step took asks here.
    #[must_use]
    pub fn step_seconds(&self) -> (Option<StepMeasure>, Vec<f64>) {
        if self.timer(INTERVAL_TIME).is_none()
            && let Some(told) = self.job_wide.timer(INTERVAL_TIME)
        {
            return (Some(StepMeasure::IntervalTime), told.most.clone());
        }
        let names = timers(|name| self.timer(name).is_some());
        let tables: Vec<&TimerTable> = names.iter().filter_map(|name| self.timer(name)).collect();
        match names.as_slice() {
            [] => (None, vec![f64::NAN; self.iterations.len()]),
            [INTERVAL_TIME] => (Some(StepMeasure::IntervalTime), largest_sums(&tables)),
            _ => (Some(StepMeasure::Compute), largest_sums(&tables)),
        }
    }
}

/// The largest sum over the tables of any rank, a value an iteration. A rank that lacks one of the tables' values in
/// an iteration tells nothing there; 0 is a timer that did not run.
fn largest_sums(tables: &[&TimerTable]) -> Vec<f64> {
    let Some(first) = tables.first() else {
        return Vec::new();
    };
    let (ranks, iterations) = first.seconds.dim();
    (0..iterations)
        .map(|iteration| {
            (0..ranks)
                .filter_map(|rank| {
                    tables
                        .iter()
                        .map(|table| Some(table.seconds[(rank, iteration)]).filter(|seconds| *seconds > 0.0))
                        .sum::<Option<f64>>()
                })
                .fold(f64::NAN, f64::max)
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use ndarray::array;

    use super::*;

    #[test]
    fn the_slowest_rank_makes_the_step() {
        let table = |seconds| TimerTable {
            name: String::new(),
            seconds,
        };
        let forward = table(array![[1.0, 2.0, f64::NAN, 0.0], [1.5, f64::NAN, 1.0, 0.0]]);
        let backward = table(array![[3.0, 3.0, 1.0, 1.0], [2.0, 9.0, f64::NAN, 1.0]]);
        let known = |tables: &[&TimerTable]| -> Vec<Option<f64>> {
            let seconds = largest_sums(tables).into_iter();
            seconds
                .map(|seconds| Some(seconds).filter(|seconds| seconds.is_finite()))
                .collect()
        };
        assert_eq!(known(&[&forward]), [Some(1.5), Some(2.0), Some(1.0), None]);
        assert_eq!(known(&[&forward, &backward]), [Some(4.0), Some(5.0), None, None]);
    }
}
