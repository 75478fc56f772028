//! Steps that are far longer than those around them, and gaps between steps that no step accounts for.

use schemars::JsonSchema;
use serde::Serialize;

use super::runs::Run;
use super::steps::{StepMeasure, Steps};
use super::tables::Job;
use crate::source::Micros;
use crate::stats::median;

/// Steps around a step that tell what is usual there.
const AROUND: usize = 5;
/// Seconds beyond the steps around it from which a step is a stall, if it also takes [`STALL_FACTOR`] times as long.
const STALL_SECONDS: f64 = 10.0;
/// Times the steps around it.
const STALL_FACTOR: f64 = 2.0;
/// Seconds beyond the step time from which a gap between rows is a stall: rows are stamped when they are written, which may
/// be late.
const GAP_SECONDS: f64 = 60.0;

/// A step that was much longer than those around it, or that began much later than the one before it ended.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct Stall {
    /// The long step, or the one after the gap.
    pub iteration: i64,
    /// Seconds lost.
    pub seconds: f64,
}

/// A step that was far longer than those around it.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct LongStep {
    /// Which iteration.
    pub iteration: i64,
    /// Seconds that it took.
    pub seconds: f64,
    /// Seconds that those around it took.
    pub usual_seconds: f64,
}

/// The steps that are stalls, in order.
#[must_use]
pub fn long_steps(job: &Job) -> Vec<LongStep> {
    let of = KnownSteps::of(&job.steps());
    (0..of.seconds.len())
        .filter(|&step| of.stalled[step])
        .map(|step| LongStep {
            iteration: of.iterations[step],
            seconds: of.seconds[step],
            usual_seconds: of.usual[step],
        })
        .collect()
}

/// The steps whose time is known, in order; all lists are parallel.
pub(super) struct KnownSteps {
    /// What their length was read from.
    pub measure: Option<StepMeasure>,
    /// Which iteration.
    pub iterations: Vec<i64>,
    /// Time of the latest row of each.
    pub times: Vec<Micros>,
    /// Seconds that each took.
    pub seconds: Vec<f64>,
    /// Seconds that those around it took.
    pub usual: Vec<f64>,
    /// Whether it is a stall.
    pub stalled: Vec<bool>,
}

impl KnownSteps {
    pub fn of(steps: &Steps) -> Self {
        let known = || (0..steps.seconds.len()).filter(|&step| steps.seconds[step].is_finite());
        let seconds: Vec<f64> = known().map(|step| steps.seconds[step]).collect();
        let usual = usual(&seconds);
        Self {
            measure: steps.measure,
            iterations: known().map(|step| steps.iterations[step]).collect(),
            times: known().map(|step| steps.times[step]).collect(),
            stalled: stalled(&seconds, &usual),
            seconds,
            usual,
        }
    }
}

/// Whether each step is a stall.
fn stalled(steps: &[f64], usual: &[f64]) -> Vec<bool> {
    let is_stall = |(step, usual): (&f64, &f64)| *step > STALL_FACTOR * usual && step - usual > STALL_SECONDS;
    steps.iter().zip(usual).map(is_stall).collect()
}

/// The usual length at each step: the median of the five around it.
fn usual(steps: &[f64]) -> Vec<f64> {
    let width = AROUND.min(steps.len());
    (0..steps.len())
        .map(|step| {
            let first = step.saturating_sub(width / 2).min(steps.len() - width);
            median(steps[first..first + width].iter().copied())
        })
        .collect()
}

/// Long steps, and gaps that no step accounts for.
///
/// `threshold` is the share beyond the baseline up to which a step is not slow.
pub(super) fn stalls(of: &KnownSteps, runs: &[Run], threshold: f64) -> Vec<Stall> {
    let KnownSteps {
        iterations,
        times,
        seconds: steps,
        usual,
        stalled,
        ..
    } = of;
    let mut stalls: Vec<Stall> = (0..steps.len())
        .filter(|&step| stalled[step])
        .map(|step| Stall {
            iteration: iterations[step],
            seconds: steps[step] - usual[step],
        })
        .collect();
    let lapse = |step: usize| {
        let passed = iterations[step + 1].saturating_sub(iterations[step]) as f64;
        (passed, times[step + 1].saturating_sub(times[step]) as f64 / 1e6)
    };
    let gaps = 0..iterations.len().saturating_sub(1);
    // Compute timers leave out waiting, and an exporter may have its own idea of time.
    let paces = gaps.clone().map(|step| {
        let (passed, seconds) = lapse(step);
        seconds / passed
    });
    // NaN of a single step, which has no neighbour to be far from.
    let pace = median(paces);
    for step in gaps {
        let (passed, seconds) = lapse(step);
        let expected = pace.max(usual[step]).max(usual[step + 1]);
        let unseen = threshold * (passed - 1.0) * expected;
        let beyond = seconds - passed * expected;
        let restarted = runs
            .iter()
            .skip(1)
            .any(|run| iterations[step] < run.first_iteration && run.first_iteration <= iterations[step + 1]);
        // The row of a step is written at its begin or at its end: its length shows before or after it.
        let told = stalled[step] || stalled[step + 1];
        if beyond > GAP_SECONDS + unseen && !restarted && !told {
            stalls.push(Stall {
                iteration: iterations[step + 1],
                seconds: beyond,
            });
        }
    }
    stalls.sort_by_key(|stall| stall.iteration);
    stalls
}
