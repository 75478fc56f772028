//! What each operation takes by itself: its duration, or in a rendezvous the transfer that is left when everybody is
//! there; what is lost filled in with what is usual.

use rayon::prelude::*;

use super::kind::Kind;
use super::table::{Op, OpTable, TraceQuality};
use crate::whatif::graph::Model;
use crate::whatif::replay::{Durations, Program};

/// A transfer that is over this much before its rendezvous began was measured by clocks that do not agree: it counts
/// as no time.
const CLOCK_ERROR: f64 = -0.010;
/// A collective of which a member is lost counts as usual where it takes longer than this many usual ones: the lost
/// member came last.
const MEMBER_LOST: f64 = 3.0;

/// Durations and transfers of all steps, to be replayed.
#[derive(Debug, Clone)]
pub struct Values {
    /// The operations.
    pub ops: Vec<Op>,
    /// The steps, ascending.
    pub steps: Vec<i64>,
    /// The replicas, ascending.
    pub replicas: Vec<u32>,
    /// Number of stages.
    pub stages: usize,
    /// Rank of each worker, stage after stage; negative where it is not told.
    pub ranks: Vec<i32>,
    /// What was read, used and filled in.
    pub quality: TraceQuality,
    /// Measured length of each step.
    pub measured: Vec<f64>,
    /// Seconds, `[step][operation][lane]`.
    pub seconds: Vec<f64>,
    /// Delays with which operations start, likewise.
    delays: Vec<f64>,
    /// Whether a lane never runs an operation, `[operation][lane]`; empty where all run all.
    absent: Vec<bool>,
}

impl Values {
    /// Takes the waiting out of a table by the program that tells who waits for whom.
    #[must_use]
    pub fn new(table: OpTable, program: &Program, model: Model) -> Self {
        let OpTable {
            ops,
            steps,
            replicas,
            stages,
            ranks,
            mut quality,
            mut start,
            mut seconds,
            absent,
        } = table;
        let lanes = replicas.len();
        let size = ops.len() * lanes;
        let (measured, lost): (Vec<f64>, Vec<u64>) = start
            .par_chunks_mut(size)
            .zip(seconds.par_chunks_mut(size))
            .map(|(start, seconds)| {
                let measured = length(&ops, lanes, start, seconds);
                let lost = start
                    .iter()
                    .zip(&absent)
                    .filter(|(start, absent)| start.is_nan() && !**absent)
                    .count();
                Step {
                    ops: &ops,
                    lanes,
                    program,
                    model,
                }
                .take_apart(start, seconds);
                (measured, lost as u64)
            })
            .unzip();
        quality.filled_operations = lost.iter().sum();
        let mut values = Self {
            ops,
            steps,
            replicas,
            stages,
            ranks,
            quality,
            measured,
            seconds,
            delays: start,
            absent: if absent.contains(&true) { absent } else { Vec::new() },
        };
        values.fill(program);
        values
    }

    /// Number of replicas.
    #[must_use]
    pub fn lanes(&self) -> usize {
        self.replicas.len()
    }

    /// What an operation takes in a step, a number a lane.
    #[must_use]
    pub fn row(&self, step: usize, op: usize) -> &[f64] {
        let from = (step * self.ops.len() + op) * self.lanes();
        &self.seconds[from..from + self.lanes()]
    }

    /// Whether a replica never runs an operation that the others do.
    #[must_use]
    pub fn is_absent(&self, op: usize, lane: usize) -> bool {
        self.absent.get(op * self.lanes() + lane).copied().unwrap_or_default()
    }

    /// Whether some replica lacks operations that the others run.
    #[must_use]
    pub fn has_absent(&self) -> bool {
        !self.absent.is_empty()
    }

    /// The ideal of each operation: of all operations of its type, or of its type and stage.
    #[must_use]
    pub fn ideals(&self, by_stage: bool) -> Vec<f64> {
        let of = |op: &Op| (op.kind, if by_stage { op.stage } else { 0 });
        let mut sorts: Vec<(Kind, usize)> = self.ops.iter().map(of).collect();
        sorts.sort_unstable();
        sorts.dedup();
        let ideals: Vec<f64> = sorts
            .par_iter()
            .map(|sort| {
                let ops: Vec<usize> = (0..self.ops.len()).filter(|&op| of(&self.ops[op]) == *sort).collect();
                let mut values = Vec::with_capacity(ops.len() * self.steps.len() * self.lanes());
                for step in 0..self.steps.len() {
                    for &op in &ops {
                        let row = self.row(step, op).iter().enumerate();
                        let there = row.filter(|(lane, seconds)| !seconds.is_nan() && !self.is_absent(op, *lane));
                        values.extend(there.map(|(_, seconds)| *seconds));
                    }
                }
                typical(sort.0, &mut values)
            })
            .collect();
        self.ops
            .iter()
            .map(|op| sorts.binary_search(&of(op)).map_or(0.0, |sort| ideals[sort]))
            .collect()
    }

    /// Fills in what is lost: a pass as the others of its worker in that step, anything else as usual.
    fn fill(&mut self, program: &Program) {
        let lanes = self.lanes();
        let size = self.ops.len() * lanes;
        // Known before what is absent counts as no time.
        let ideals = if self.quality.filled_operations > 0 {
            self.ideals(false)
        } else {
            Vec::new()
        };
        for step in self.seconds.chunks_mut(size) {
            for (seconds, _) in step.iter_mut().zip(&self.absent).filter(|(_, absent)| **absent) {
                *seconds = 0.0;
            }
        }
        if ideals.is_empty() {
            return;
        }
        let fill = Fill {
            ops: &self.ops,
            ideals: &ideals,
            absent: &self.absent,
            workers: self.stages * lanes,
            lanes,
        };
        self.seconds.par_chunks_mut(size).for_each(|step| {
            fill.collectives(step, program);
            fill.lost(step);
        });
    }

    /// The durations of a step as they were measured, with or without the delays.
    #[must_use]
    pub fn as_measured(&self, step: usize, delays: bool) -> Measured<'_> {
        Measured {
            values: self,
            step,
            delays,
        }
    }
}

struct Fill<'a> {
    ops: &'a [Op],
    ideals: &'a [f64],
    absent: &'a [bool],
    workers: usize,
    lanes: usize,
}

impl Fill<'_> {
    /// Takes collectives over replicas as usual that seem long because their last member is lost.
    fn collectives(&self, step: &mut [f64], program: &Program) {
        for (members, _) in program.groups().filter(|(_, across)| *across) {
            for op in members.iter().map(|op| *op as usize).filter(|op| *op < self.ops.len()) {
                let row = &mut step[op * self.lanes..(op + 1) * self.lanes];
                if row.iter().any(|seconds| seconds.is_nan()) {
                    let long = |seconds: &&mut f64| **seconds > MEMBER_LOST * self.ideals[op];
                    row.iter_mut()
                        .filter(long)
                        .for_each(|seconds| *seconds = self.ideals[op]);
                }
            }
        }
    }

    fn lost(&self, step: &mut [f64]) {
        let lanes = self.lanes;
        let mut usual = vec![(0.0, 0_usize); self.workers * Kind::ALL.len()];
        let place = |op: &Op, lane: usize| (op.stage * lanes + lane) * Kind::ALL.len() + op.kind as usize;
        for (number, op) in self.ops.iter().enumerate() {
            for lane in 0..lanes {
                let cell = number * lanes + lane;
                if !step[cell].is_nan() && !self.absent.get(cell).copied().unwrap_or_default() {
                    let (sum, count) = &mut usual[place(op, lane)];
                    *sum += step[cell];
                    *count += 1;
                }
            }
        }
        for (number, op) in self.ops.iter().enumerate() {
            for lane in 0..lanes {
                let seconds = &mut step[number * lanes + lane];
                if seconds.is_nan() {
                    *seconds = match usual[place(op, lane)] {
                        (sum, count @ 1..) if !op.kind.meets_others() => sum / count as f64,
                        _ => self.ideals[number],
                    };
                }
            }
        }
    }
}

/// Mean or median of what operations of a type take.
fn typical(kind: Kind, values: &mut [f64]) -> f64 {
    if values.is_empty() {
        return 0.0;
    }
    if kind.ideal_is_mean() {
        return values.iter().sum::<f64>() / values.len() as f64;
    }
    let (middle, odd) = (values.len() / 2, values.len() % 2 == 1);
    let (below, upper, _) = values.select_nth_unstable_by(middle, f64::total_cmp);
    let upper = *upper;
    if odd {
        return upper;
    }
    let lower = below.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    (lower + upper) / 2.0
}

/// From the first start of a step to the end of its last optimizer, or of anything where there is none.
fn length(ops: &[Op], lanes: usize, start: &[f64], seconds: &[f64]) -> f64 {
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

struct Step<'a> {
    ops: &'a [Op],
    lanes: usize,
    program: &'a Program,
    model: Model,
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
    fn take_apart(&self, start: &mut [f64], seconds: &mut [f64]) {
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

/// A step as it was measured.
#[derive(Debug, Clone, Copy)]
pub struct Measured<'a> {
    values: &'a Values,
    step: usize,
    delays: bool,
}

impl Durations for Measured<'_> {
    fn add(&self, node: usize, times: &mut [f64]) {
        if node < self.values.ops.len() {
            for (time, seconds) in times.iter_mut().zip(self.values.row(self.step, node)) {
                *time += seconds;
            }
        }
    }

    fn delay(&self, node: usize, times: &mut [f64]) {
        if self.delays && node < self.values.ops.len() {
            let lanes = self.values.lanes();
            let from = (self.step * self.values.ops.len() + node) * lanes;
            for (time, delay) in times.iter_mut().zip(&self.values.delays[from..from + lanes]) {
                *time += delay;
            }
        }
    }
}
