//! What goes wrong between a rank and the table: lost, odd and doubled rows.

use super::plan::PlannedStep;
use super::rows::{Metric, Rows, Stamp};
use super::scenario::Scenario;
use crate::contract::Timer;
use crate::stats::random::Random;

/// The timer that a third of the ranks reports as 0.
const ZEROED: Timer = Timer::OptimizerInnerStep;
/// Share of each oddity, relative to the share of lost rows.
const ODD: f64 = 0.25;

/// Adds an iteration's rows as the collector would have stored them.
#[derive(Debug)]
pub struct DirtyRows {
    share: f64,
    noise: Random,
    trace_share: f64,
    trace_noise: Random,
}

impl DirtyRows {
    /// The collector of one step.
    pub fn new(scenario: &Scenario, at: PlannedStep) -> Self {
        let position = [at.run as u64, u64::from(at.iteration)];
        Self {
            share: scenario.dirty,
            noise: Random::stream(scenario.seed, "dirt", &position),
            trace_share: scenario.dirty_trace,
            trace_noise: Random::stream(scenario.seed, "dirty trace", &position),
        }
    }

    /// A timer's duration.
    pub fn timer(&mut self, rows: &mut Rows, stamp: Stamp, timer: Timer, rank: usize, value: f64) {
        let name = timer.name();
        let mut push = |timestamp: i64, value: f64| {
            let stamp = Stamp { timestamp, ..stamp };
            rows.push(stamp, Metric::Timer, name, rank, [value]);
        };
        if self.share <= 0.0 {
            return push(stamp.timestamp, value);
        }
        let value = if timer == ZEROED && rank % 3 == 2 { 0.0 } else { value };
        let odd = ODD * self.share;
        let draw = self.noise.uniform();
        if draw < self.share {
            // Lost.
        } else if draw < self.share + odd {
            push(stamp.timestamp, f64::NAN);
        } else if draw < self.share + 2.0 * odd {
            push(stamp.timestamp, -value);
        } else if draw < self.share + 3.0 * odd {
            // Doubled: first half-filled, then whole. The later row is the right one.
            push(stamp.timestamp, 0.5 * value);
            push(stamp.timestamp + 1000, value);
        } else {
            push(stamp.timestamp, value);
        }
    }

    /// A timer's calls, on the rank's own clock.
    pub fn trace(
        &mut self,
        rows: &mut Rows,
        stamp: Stamp,
        timer: Timer,
        rank: usize,
        calls: impl Iterator<Item = f64>,
    ) {
        if self.share > 0.0 && self.noise.uniform() < self.share {
            return;
        }
        let mut push = |calls: &mut dyn Iterator<Item = f64>| {
            rows.push(stamp, Metric::Trace, timer.name(), rank, calls);
        };
        let mut calls = calls;
        if self.trace_share <= 0.0 || self.trace_noise.uniform() >= self.trace_share {
            return push(&mut calls);
        }
        let mut calls: Vec<f64> = calls.collect();
        let call = (self.trace_noise.uniform() * (calls.len() / 2) as f64) as usize * 2;
        match (self.trace_noise.uniform() * 4.0) as u32 {
            0 => return,
            // The call was still open when the row was written.
            1 => calls.truncate(call + 1),
            2 => calls.swap(call, call + 1),
            // It begins inside the call before it.
            _ => calls[call] -= 10.0,
        }
        push(&mut calls.into_iter());
    }
}
