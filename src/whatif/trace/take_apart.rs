//! Starts and durations made into delays and what operations take by themselves: a duration, or in a rendezvous the transfer
//! that is left when everybody is there.

use super::kind::Kind;
use super::table::Op;
use crate::whatif::model::Model;
use crate::whatif::replay::Program;

/// A transfer that is over this much before its rendezvous began was measured by clocks that do not agree: it counts
/// as no time.
const CLOCK_ERROR: f64 = -0.010;
/// From the first start of a step to the end of its last optimizer, or of anything where there is none.
pub(super) fn length(ops: &[Op], lanes: usize, start: &[f64], seconds: &[f64]) -> f64 {
    let first = start
        .iter()
        .copied()
        .filter(|start| !start.is_nan())
        .fold(f64::INFINITY, f64::min);
    let last = |of: &dyn Fn(&Op) -> bool| {
        (0..start.len())
            .filter(|cell| of(&ops[cell / lanes]) && !start[*cell].is_nan())
            .map(|cell| start[cell] + seconds[cell])
            .fold(f64::NEG_INFINITY, f64::max)
    };
    let end = Some(last(&|op| op.kind == Kind::Optimizer)).filter(|end| end.is_finite());
    (end.unwrap_or_else(|| last(&|_| true)) - first).max(0.0)
}

pub(super) struct Step<'a> {
    pub ops: &'a [Op],
    pub lanes: usize,
    pub program: &'a Program,
    pub model: Model,
}

impl Step<'_> {
    /// Takes the shorter end of each transfer for both: the other one's call posted more and waited for that too.
    fn shorten_transfers(&self, seconds: &mut [f64]) {
        for (members, across) in self.program.groups() {
            let &[one, other] = members else { continue };
            let (one, other) = (one as usize, other as usize);
            if across || !self.ops.get(one).is_some_and(|op| op.kind.is_transfer()) {
                continue;
            }
            for lane in 0..self.lanes {
                let (one, other) = (one * self.lanes + lane, other * self.lanes + lane);
                let shorter = seconds[one].min(seconds[other]);
                (seconds[one], seconds[other]) = (shorter, shorter);
            }
        }
    }

    /// Makes starts and durations of a step into delays and what operations take by themselves.
    pub fn take_apart(&self, start: &mut [f64], seconds: &mut [f64]) {
        let lanes = self.lanes;
        let first = start
            .iter()
            .copied()
            .filter(|start| !start.is_nan())
            .fold(f64::INFINITY, f64::min);
        let mut ends = vec![f64::NAN; self.program.nodes() * lanes];
        for (cell, end) in ends.iter_mut().enumerate().take(start.len()) {
            *end = start[cell] + seconds[cell];
        }
        // Operations that only join others stand behind those of the trace: they are over with the last of them.
        for (members, across) in self.program.groups() {
            for node in members
                .iter()
                .map(|node| *node as usize)
                .filter(|node| *node >= self.ops.len())
            {
                for lane in 0..lanes {
                    let waits = self.program.waits(node).iter().map(|wait| *wait as usize);
                    let of = |lane: usize| {
                        waits
                            .clone()
                            .map(|wait| ends[wait * lanes + lane])
                            .fold(f64::NAN, f64::max)
                    };
                    ends[node * lanes + lane] = if across {
                        (0..lanes).map(of).fold(f64::NAN, f64::max)
                    } else {
                        of(lane)
                    };
                }
            }
        }
        for (members, across) in self.program.groups() {
            let members: Vec<usize> = members
                .iter()
                .map(|m| *m as usize)
                .filter(|m| *m < self.ops.len())
                .collect();
            if !members.iter().any(|&member| self.ops[member].kind.meets_others()) {
                continue;
            }
            let of_lane = |lane: usize| members.iter().map(move |member| member * lanes + lane);
            // NaN where a member is lost: nobody knows when the rendezvous began. Over all replicas, those that are left tell.
            let latest_of = |lane: usize| {
                let lost = !across && of_lane(lane).any(|cell| start[cell].is_nan());
                let latest = of_lane(lane).map(|cell| start[cell]).fold(f64::NAN, f64::max);
                if lost { f64::NAN } else { latest }
            };
            let over_all = (0..lanes).map(latest_of).fold(f64::NAN, f64::max);
            for lane in 0..lanes {
                let latest = if across { over_all } else { latest_of(lane) };
                for cell in of_lane(lane) {
                    let transfer = ends[cell] - latest;
                    seconds[cell] = if transfer <= CLOCK_ERROR { 0.0 } else { transfer };
                }
            }
        }
        if self.model == Model::Measured {
            self.shorten_transfers(seconds);
        }
        for node in 0..self.ops.len() {
            for lane in 0..lanes {
                let waits = self
                    .program
                    .waits(node)
                    .iter()
                    .map(|wait| ends[*wait as usize * lanes + lane]);
                let ready = waits.fold(f64::NAN, f64::max);
                let ready = if ready.is_nan() { first } else { ready };
                let delay = start[node * lanes + lane] - ready;
                start[node * lanes + lane] = if delay.is_nan() || delay <= CLOCK_ERROR {
                    0.0
                } else {
                    delay
                };
            }
        }
    }
}
