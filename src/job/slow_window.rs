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

use super::step_time::StepMeasure;
use super::{IterationRange, Job};
use crate::contract::defaults::SLOW_STEPS_IN_A_ROW;
use crate::source::timestamp;
use crate::stats::median;

/// Normal steps that the baseline remembers.
const MEMORY: usize = 5;
/// Times the baseline below which a step is normal.
const NORMAL: f64 = 1.1;
/// Slow steps in a row that open a window, and other steps in a row that end it.
const IN_A_ROW: usize = SLOW_STEPS_IN_A_ROW;
/// Seconds beyond the steps around it from which a step is a stall, if it also takes [`STALL_FACTOR`] times as long.
const STALL_SECONDS: f64 = 10.0;
/// Times the steps around it.
const STALL_FACTOR: f64 = 2.0;
/// Seconds beyond the step time from which a gap between rows is a stall: rows are stamped when they are written, which may
/// be late.
const GAP_SECONDS: f64 = 60.0;
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

/// A step that was much longer than those around it, or that began much later than the one before it ended.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct Stall {
    /// The long step, or the one after the gap.
    pub iteration: i64,
    /// Seconds lost.
    pub seconds: f64,
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
    let KnownSteps {
        measure,
        known,
        steps,
        usual,
        stalled,
    } = KnownSteps::of(job);
    let spans = spans(&steps, &stalled, threshold);
    let quiet: Vec<f64> = (0..steps.len())
        .filter(|&step| !stalled[step] && !spans.iter().any(|span| span.contains(step)))
        .map(|step| steps[step])
        .collect();
    let windows = spans
        .iter()
        .map(|span| {
            let (first, last) = (known[span.first()], known[span.last()]);
            let slow_seconds = median(span.slow.iter().map(|&step| steps[step]));
            SlowWindow {
                first: job.iterations[first],
                last: job.iterations[last],
                iterations: last - first + 1,
                baseline_seconds: span.baseline,
                slow_seconds,
                factor: slow_seconds / span.baseline,
            }
        })
        .collect();
    StepTimes {
        measure,
        steps: steps.len(),
        baseline_seconds: Some(median(quiet.iter().copied())).filter(|seconds| seconds.is_finite()),
        windows,
        stalls: stalls(job, &known, &steps, &usual, &stalled, threshold),
        restarts: restarts(job),
        drift: drift(&quiet),
    }
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
    let of = KnownSteps::of(job);
    (0..of.steps.len())
        .filter(|&step| of.stalled[step])
        .map(|step| LongStep {
            iteration: job.iterations[of.known[step]],
            seconds: of.steps[step],
            usual_seconds: of.usual[step],
        })
        .collect()
}

/// The steps whose time is known, in order; all lists are parallel.
struct KnownSteps {
    measure: Option<StepMeasure>,
    /// Their positions in the job's iterations.
    known: Vec<usize>,
    /// Seconds that each took.
    steps: Vec<f64>,
    /// Seconds that those around it took.
    usual: Vec<f64>,
    /// Whether it is a stall.
    stalled: Vec<bool>,
}

impl KnownSteps {
    fn of(job: &Job) -> Self {
        let (measure, seconds) = job.step_seconds();
        let known: Vec<usize> = (0..seconds.len()).filter(|&place| seconds[place].is_finite()).collect();
        let steps: Vec<f64> = known.iter().map(|&place| seconds[place]).collect();
        let usual = usual(&steps);
        let stalled = stalled(&steps, &usual);
        Self {
            measure,
            known,
            steps,
            usual,
            stalled,
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
    let width = MEMORY.min(steps.len());
    (0..steps.len())
        .map(|step| {
            let first = step.saturating_sub(width / 2).min(steps.len() - width);
            median(steps[first..first + width].iter().copied())
        })
        .collect()
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

/// Long steps, and gaps that no step accounts for.
fn stalls(job: &Job, known: &[usize], steps: &[f64], usual: &[f64], stalled: &[bool], threshold: f64) -> Vec<Stall> {
    let mut stalls: Vec<Stall> = (0..steps.len())
        .filter(|&step| stalled[step])
        .map(|step| Stall {
            iteration: job.iterations[known[step]],
            seconds: steps[step] - usual[step],
        })
        .collect();
    let lapse = |pair: &[usize]| {
        let iterations = job.iterations[pair[1]].saturating_sub(job.iterations[pair[0]]) as f64;
        let micros = job.iteration_times[pair[1]].saturating_sub(job.iteration_times[pair[0]]);
        (iterations, micros as f64 / 1e6)
    };
    // Compute timers leave out waiting, and an exporter may have its own idea of time.
    let paces = known.windows(2).map(|pair| {
        let (iterations, seconds) = lapse(pair);
        seconds / iterations
    });
    // NaN of a single step, which has no neighbour to be far from.
    let pace = median(paces);
    for (step, pair) in known.windows(2).enumerate() {
        let (iterations, seconds) = lapse(pair);
        let expected = pace.max(usual[step]).max(usual[step + 1]);
        let unseen = threshold * (iterations - 1.0) * expected;
        let beyond = seconds - iterations * expected;
        let restarted =
            job.runs.iter().skip(1).any(|run| {
                job.iterations[pair[0]] < run.first_iteration && run.first_iteration <= job.iterations[pair[1]]
            });
        // The row of a step is written at its begin or at its end: its length shows before or after it.
        let told = stalled[step] || stalled[step + 1];
        if beyond > GAP_SECONDS + unseen && !restarted && !told {
            stalls.push(Stall {
                iteration: job.iterations[pair[1]],
                seconds: beyond,
            });
        }
    }
    stalls.sort_by_key(|stall| stall.iteration);
    stalls
}

/// The restarts whose run has iterations in the window.
fn restarts(job: &Job) -> Vec<Restart> {
    let (Some(&first), Some(&last)) = (job.iterations.first(), job.iterations.last()) else {
        return Vec::new();
    };
    job.runs
        .windows(2)
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
