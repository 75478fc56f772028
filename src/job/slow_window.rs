//! When a job's steps were slow: windows against a moving baseline, stalls, restarts, drift.
//!
//! The steps are walked in order. Their baseline is the median of the last [`MEMORY`] normal ones, normal being below
//! 1.1 times that median; a step is slow when it exceeds the median by more than a threshold, and five slow ones in a
//! row open a window, which ends with the last slow one. What that leaves open is decided so:
//!
//! - the walk starts from the median of the first five steps. A window that the job begins with can be told only from
//!   what comes after it: the steps are walked backwards too, for that window alone;
//! - a few steps that are not slow do not end a window; as many in a row as open one do;
//! - one step that is more than 60 s longer than those around it is a stall: the walk passes over it;
//! - a gap between iterations of which some are missing (sampling, a restart's start-up) is measured by how many lie
//!   between; one in which a restart lies is that restart and no stall.

use std::collections::VecDeque;

use schemars::JsonSchema;
use serde::Serialize;

use super::runs::Run;
use super::stalls::{KnownSteps, Stall, stalls};
use super::steps::StepMeasure;
use super::tables::Job;
use super::window::IterationRange;
use crate::contract::defaults::SLOW_STEPS_IN_A_ROW;
use crate::source::timestamp;
use crate::stats::median;

/// Normal steps that the baseline remembers.
const MEMORY: usize = 5;
/// Times the baseline below which a step is normal.
const NORMAL: f64 = 1.1;
/// Slow steps in a row that open a window, and other steps in a row that end it.
const IN_A_ROW: usize = SLOW_STEPS_IN_A_ROW;
/// Times the early steps that the late ones take from which the job drifts.
const DRIFT: f64 = 1.1;
/// Fewest steps in which a drift is looked for.
const DRIFT_STEPS: usize = 20;

/// Iterations in which the steps were slow.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct SlowWindow {
    /// First slow iteration.
    pub first: i64,
    /// Last slow iteration.
    pub last: i64,
    /// Iterations of the job from the first to the last, slow or not.
    pub iterations: usize,
    /// Median of the normal steps before it (after it, where the job begins with it), seconds.
    pub baseline_seconds: f64,
    /// Median of its slow steps, seconds.
    pub slow_seconds: f64,
    /// The one over the other.
    pub factor: f64,
}

impl SlowWindow {
    /// Its iterations as a range, for [`Job::window`].
    #[must_use]
    pub fn range(&self) -> IterationRange {
        IterationRange {
            first: Some(self.first),
            last: Some(self.last),
        }
    }
}

/// A step time that rose over the job without a slow window.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct Drift {
    /// Median of the first fifth of the steps outside of slow windows, seconds.
    pub first_seconds: f64,
    /// Median of the last fifth, seconds.
    pub last_seconds: f64,
    /// The one over the other.
    pub factor: f64,
}

/// A restart between or in front of the job's iterations.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct Restart {
    /// The run that it began; empty where the rows name none.
    pub run: String,
    /// First iteration of that run.
    pub iteration: i64,
    /// Iterations of the run before that it ran again.
    pub repeated: i64,
    /// Seconds from the last row of the run before to its first; `None` where they overlap.
    pub seconds: Option<f64>,
}

/// What the step times of a job tell.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct StepTimes {
    /// What they were read from; `None` where the job has no timer that tells them, and then nothing else is known.
    pub measure: Option<StepMeasure>,
    /// Steps whose time is known.
    pub steps: usize,
    /// Median of the steps outside of slow windows and stalls, seconds.
    pub baseline_seconds: Option<f64>,
    /// Slow windows, in order.
    pub windows: Vec<SlowWindow>,
    /// Stalls, in order.
    pub stalls: Vec<Stall>,
    /// Restarts, in order.
    pub restarts: Vec<Restart>,
    /// Whether the rest of the steps got longer.
    pub drift: Option<Drift>,
}

/// Finds the slow windows of a job, with what else its step times tell.
///
/// `threshold` is the share beyond the baseline from which a step is slow, above 0; [`SLOWDOWN_THRESHOLD`](crate::contract::defaults::SLOWDOWN_THRESHOLD) is usual.
#[must_use]
pub fn slow_windows(job: &Job, threshold: f64) -> StepTimes {
    let all = job.steps();
    let known = KnownSteps::of(&all);
    let KnownSteps {
        seconds: steps,
        stalled,
        ..
    } = &known;
    let spans = spans(steps, stalled, threshold);
    let quiet: Vec<f64> = (0..steps.len())
        .filter(|&step| !stalled[step] && !spans.iter().any(|span| span.contains(step)))
        .map(|step| steps[step])
        .collect();
    let windows = spans
        .iter()
        .map(|span| {
            let (first, last) = (known.iterations[span.first()], known.iterations[span.last()]);
            let slow_seconds = median(span.slow.iter().map(|&step| steps[step]));
            SlowWindow {
                first,
                last,
                iterations: all.between(first, last),
                baseline_seconds: span.baseline,
                slow_seconds,
                factor: slow_seconds / span.baseline,
            }
        })
        .collect();
    StepTimes {
        measure: known.measure,
        steps: steps.len(),
        baseline_seconds: Some(median(quiet.iter().copied())).filter(|seconds| seconds.is_finite()),
        windows,
        stalls: stalls(&known, &job.runs, threshold),
        restarts: restarts(&all.iterations, &job.runs),
        drift: drift(&quiet),
    }
}

/// A slow window as positions of its slow steps.
#[derive(Debug, Clone, PartialEq)]
struct Span {
    slow: Vec<usize>,
    baseline: f64,
}

impl Span {
    fn first(&self) -> usize {
        self.slow.first().copied().unwrap_or_default()
    }

    fn last(&self) -> usize {
        self.slow.last().copied().unwrap_or_default()
    }

    fn contains(&self, step: usize) -> bool {
        (self.first()..=self.last()).contains(&step)
    }
}

/// The windows of both walks, in order.
fn spans(steps: &[f64], stalled: &[bool], threshold: f64) -> Vec<Span> {
    let all = steps.len();
    let mut spans = walk(steps, stalled, threshold);
    let backwards = |values: &[f64]| values.iter().rev().copied().collect::<Vec<_>>();
    let stalled_backwards: Vec<bool> = stalled.iter().rev().copied().collect();
    let at_start = walk(&backwards(steps), &stalled_backwards, threshold)
        .pop()
        .map(|span| Span {
            slow: span.slow.iter().rev().map(|&step| all - 1 - step).collect(),
            baseline: span.baseline,
        });
    // A window that does not reach the start is the forward walk's to find or to leave.
    let begun_slow = |span: &Span| (0..span.first()).all(|step| stalled[step]);
    let alone = |span: &Span| spans.first().is_none_or(|first| span.last() < first.first());
    if let Some(span) = at_start.filter(|span| begun_slow(span) && alone(span)) {
        spans.insert(0, span);
    }
    spans
}

fn walk(steps: &[f64], stalled: &[bool], threshold: f64) -> Vec<Span> {
    let passed = || (0..steps.len()).filter(|&step| !stalled[step]);
    let start = median(passed().take(MEMORY).map(|step| steps[step]));
    if start.is_nan() {
        return Vec::new();
    }
    // With a threshold below a tenth a slow step must not be normal as well.
    let normal = NORMAL.min(1.0 + threshold);
    let mut memory = VecDeque::from([start; MEMORY]);
    let mut found = Vec::new();
    let mut slow: Vec<usize> = Vec::new();
    let mut baseline = start;
    let mut others = 0;
    for step in passed() {
        let usual = median(memory.iter().copied());
        if steps[step] > usual * (1.0 + threshold) {
            if slow.is_empty() {
                baseline = usual;
            }
            slow.push(step);
            others = 0;
        } else if slow.len() < IN_A_ROW {
            slow.clear();
        } else {
            others += 1;
            if others == IN_A_ROW {
                let slow = std::mem::take(&mut slow);
                found.push(Span { slow, baseline });
            }
        }
        if steps[step] < usual * normal {
            memory.pop_front();
            memory.push_back(steps[step]);
        }
    }
    if slow.len() >= IN_A_ROW {
        found.push(Span { slow, baseline });
    }
    found
}

/// The restarts of `runs` whose run has some of the window's iterations.
fn restarts(iterations: &[i64], runs: &[Run]) -> Vec<Restart> {
    let (Some(&first), Some(&last)) = (iterations.first(), iterations.last()) else {
        return Vec::new();
    };
    runs.windows(2)
        .filter(|pair| pair[1].first_iteration <= last && first <= pair[1].last_iteration)
        .map(|pair| {
            let (before, after) = (&pair[0], &pair[1]);
            let end = timestamp::parse(&before.last_time);
            let begin = timestamp::parse(&after.first_time);
            Restart {
                run: after.uuid.clone(),
                iteration: after.first_iteration,
                repeated: (before.last_iteration - after.first_iteration + 1).max(0),
                seconds: begin
                    .zip(end)
                    .map(|(begin, end)| (begin - end) as f64 / 1e6)
                    .filter(|seconds| *seconds >= 0.0),
            }
        })
        .collect()
}

fn drift(steps: &[f64]) -> Option<Drift> {
    if steps.len() < DRIFT_STEPS {
        return None;
    }
    let part = (steps.len() / 5).max(MEMORY);
    let first_seconds = median(steps[..part].iter().copied());
    let last_seconds = median(steps[steps.len() - part..].iter().copied());
    let factor = last_seconds / first_seconds;
    (factor > DRIFT).then_some(Drift {
        first_seconds,
        last_seconds,
        factor,
    })
}

#[cfg(test)]
#[path = "slow_window_tests.rs"]
mod tests;
