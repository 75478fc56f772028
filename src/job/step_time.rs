//! How long each step of a job took.

use std::borrow::Cow;

use super::steps::{StepMeasure, Steps};
use super::tables::Job;
use super::timer_table::TimerTable;
use crate::contract::timers::{INTERVAL_TIME, PASSES};

/// The timers that tell the steps of a job, of those that it `has`; and what they measure, `None` where it has none.
pub(super) fn timers(has: impl Fn(&str) -> bool) -> (Option<StepMeasure>, Vec<&'static str>) {
    if has(INTERVAL_TIME) {
        return (Some(StepMeasure::IntervalTime), vec![INTERVAL_TIME]);
    }
    let passes: Vec<&str> = PASSES.into_iter().filter(|name| has(name)).collect();
    (Some(StepMeasure::Compute).filter(|_| !passes.is_empty()), passes)
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
        let (measure, names) = timers(|name| self.timer(name).is_some());
        let tables: Vec<&TimerTable> = names.iter().filter_map(|name| self.timer(name)).collect();
        let seconds = match measure {
            None => vec![f64::NAN; self.iterations.len()],
            Some(_) => largest_sums(&tables),
        };
        (measure, seconds)
    }

    /// How long each iteration took, also where a column of the tables stands for several.
    pub(super) fn steps(&self) -> Cow<'_, Steps> {
        if let Some(reduced) = &self.reduced {
            return Cow::Borrowed(&reduced.steps);
        }
        let (measure, seconds) = self.step_seconds();
        Cow::Owned(Steps {
            measure,
            iterations: self.iterations.clone(),
            times: self.iteration_times.clone(),
            seconds,
        })
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
