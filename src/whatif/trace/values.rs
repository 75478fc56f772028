//! What each operation takes by itself, what is usual, and what is lost filled in with it.

use rayon::prelude::*;

use super::fill::Fill;
use super::kind::Kind;
use super::table::{Op, OpTable, TraceQuality};
use super::take_apart::{Step, length};
use crate::whatif::model::Model;
use crate::whatif::replay::{Durations, Program};

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
