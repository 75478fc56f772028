//! How long transfers take, without the waiting around them.
//!
//! A send and its receive are one rendezvous: both end together, and the one that was posted earlier waits. So the
//! shorter of the two durations is at most the transfer, whatever the clocks say. Megatron's 1F1B schedule gives four
//! series of pairs a link, each in the order of its timers:
//!
//! | upper rank | lower rank | tells |
//! |---|---|---|
//! | k-th `forward-send` | k-th `forward-recv` | forward, warm-up |
//! | k-th last `backward-recv` | k-th last `backward-send` | backward, cool-down |
//! | k-th `forward-send-backward-recv` | k-th `backward-send-forward-recv` | the slower direction, steady state |
//!
//! Without single calls the timers' sums over an iteration stand in: the smaller of two sums bounds the transfers from
//! above, and is the transfer itself where each side made one call.

use rayon::prelude::*;

use super::links::{Direction, Link};
use crate::contract::timers::{
    BACKWARD_RECV, BACKWARD_SEND, BACKWARD_SEND_FORWARD_RECV, FORWARD_RECV, FORWARD_SEND, FORWARD_SEND_BACKWARD_RECV,
};
use crate::job::{CallTable, Job, TimerTable};
use crate::stats::median;

/// The timers of the upper and the lower end of each series of pairs.
const SERIES: [(&str, &str); 3] = [
    (FORWARD_SEND, FORWARD_RECV),
    (BACKWARD_RECV, BACKWARD_SEND),
    (FORWARD_SEND_BACKWARD_RECV, BACKWARD_SEND_FORWARD_RECV),
];

/// A series of pairs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Series {
    /// Plain forward calls of the warm-up.
    Forward,
    /// Plain backward calls of the cool-down.
    Backward,
    /// Fused calls of the steady state.
    Fused,
}

impl Series {
    /// The plain series of a direction.
    pub fn plain(direction: Direction) -> Self {
        match direction {
            Direction::Forward => Self::Forward,
            Direction::Backward => Self::Backward,
        }
    }

    /// The timer of the upper and that of the lower rank.
    pub fn timers(self) -> (&'static str, &'static str) {
        SERIES[self as usize]
    }
}

/// What an end of a link spends in calls over it, seconds an iteration.
#[derive(Debug, Default, Clone, Copy, PartialEq)]
pub struct Spent {
    /// Time in which data can move.
    pub transfer: f64,
    /// Time in which the other end was not there yet.
    pub waiting: f64,
}

/// What was measured on one link.
#[derive(Debug, Clone)]
pub struct Measured {
    /// By [`Series`]: the transfer of each iteration, seconds; NaN where there is no pair.
    pub seconds: [Vec<f64>; 3],
    /// By [`Series`]: pairs an iteration where there are any, the median.
    pub pairs: [f64; 3],
    /// Whether the plain series are transfers; else they only bound them.
    pub exact: bool,
    /// What the upper and the lower end spend.
    pub spent: [Spent; 2],
}

/// What tells the transfers of a job.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Basis {
    /// Single calls.
    Calls,
    /// Sums of an iteration.
    Sums,
}

/// Measures every link by single calls where the job has them, else by the timers' sums; in parallel.
#[must_use]
pub fn measure(job: &Job, links: &[Link]) -> (Basis, Vec<Measured>) {
    let calls = |name: &str| job.calls.iter().find(|table| table.name == name);
    let by_calls = SERIES.map(|(up, down)| calls(up).zip(calls(down)));
    if by_calls.iter().any(Option::is_some) {
        let measured = links.par_iter().map(|link| of_calls(job, link, &by_calls));
        return (Basis::Calls, measured.collect());
    }
    let by_sums = SERIES.map(|(up, down)| job.timer(up).zip(job.timer(down)));
    let stages = job.topology.pipeline_stages();
    let measured = links.par_iter().map(|link| of_sums(job, link, &by_sums, stages));
    (Basis::Sums, measured.collect())
}

fn of_calls(job: &Job, link: &Link, series: &[Option<(&CallTable, &CallTable)>; 3]) -> Measured {
    let steps = job.iterations.len();
    let mut seconds = [(); 3].map(|()| vec![f64::NAN; steps]);
    let mut pairs = [0.0; 3];
    let mut spent = Sums::default();
    for (place, tables) in series.iter().enumerate() {
        let Some((up, down)) = tables else { continue };
        let mut counts = Vec::new();
        for (step, cell) in seconds[place].iter_mut().enumerate() {
            let (up, down) = (up.of(link.up, step), down.of(link.down, step));
            let count = up.len().min(down.len());
            // A row that is missing on one side tells nothing.
            if count == 0 {
                continue;
            }
            let (up, down) = match place {
                // Warm-up begins, and cool-down ends, at the same transfer on both sides.
                0 => (&up[..count], &down[..count]),
                1 => (&up[up.len() - count..], &down[down.len() - count..]),
                _ if up.len() == down.len() => (up, down),
                _ => continue,
            };
            counts.push(count as f64);
            *cell = median(up.iter().zip(down).map(|(&up, &down)| shorter(up, down)));
            for (&up, &down) in up.iter().zip(down) {
                spent.add(up, down);
            }
        }
        pairs[place] = or_zero(median(counts));
    }
    Measured {
        seconds,
        pairs,
        exact: true,
        spent: spent.per_step(steps),
    }
}

fn of_sums(job: &Job, link: &Link, series: &[Option<(&TimerTable, &TimerTable)>; 3], stages: u32) -> Measured {
    let steps = job.iterations.len();
    // Stages before the last begin with as many forward passes as stages follow.
    let plain = f64::from((stages - 1).saturating_sub(link.stage).max(1));
    let mut seconds = [(); 3].map(|()| vec![f64::NAN; steps]);
    let mut spent = Sums::default();
    for (place, tables) in series.iter().enumerate() {
        let Some((up, down)) = tables else { continue };
        let calls = if place < 2 { plain } else { 1.0 };
        for (step, cell) in seconds[place].iter_mut().enumerate() {
            let (up, down) = (up.seconds[(link.up, step)], down.seconds[(link.down, step)]);
            // 0 says that the timer did not run.
            if up > 0.0 && down > 0.0 {
                *cell = up.min(down) / calls;
                spent.add(up, down);
            }
        }
    }
    Measured {
        seconds,
        pairs: [plain, plain, 0.0],
        exact: plain == 1.0,
        spent: spent.per_step(steps),
    }
}

/// The shorter of two calls; NaN where one of them is not known, for the other may have waited.
fn shorter(up: f64, down: f64) -> f64 {
    if up <= down || up.is_nan() { up } else { down }
}

fn or_zero(value: f64) -> f64 {
    if value.is_finite() { value } else { 0.0 }
}

/// Sums over the calls of both ends.
#[derive(Default)]
struct Sums {
    transfer: f64,
    up: f64,
    down: f64,
}

impl Sums {
    fn add(&mut self, up: f64, down: f64) {
        if up.is_finite() && down.is_finite() {
            let transfer = up.min(down);
            self.transfer += transfer;
            self.up += up - transfer;
            self.down += down - transfer;
        }
    }

    fn per_step(&self, steps: usize) -> [Spent; 2] {
        let steps = steps.max(1) as f64;
        [self.up, self.down].map(|waiting| Spent {
            transfer: self.transfer / steps,
            waiting: waiting / steps,
        })
    }
}
