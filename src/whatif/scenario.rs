//! A step with some operations as they were measured and the others as they should be.

use super::replay::Durations;
use super::trace::{Op, Values};

/// Which operations are as measured; the others are ideal.
#[derive(Debug, Clone)]
pub enum Kept {
    /// None: everything is ideal.
    Nothing,
    /// All.
    All,
    /// Those of the marked operations, on all replicas.
    Ops(Vec<bool>),
    /// Those of the marked workers, `[stage * replicas + replica]`.
    Workers(Vec<bool>),
    /// Each replica's own in a job in which all other replicas are ideal: lane `i` is replica `i`, lane `replicas + i` is
    /// all the others, which are alike.
    EachReplica,
}

impl Kept {
    /// Those of operations that fit.
    pub fn ops(ops: &[Op], fits: impl Fn(&Op) -> bool) -> Self {
        Self::Ops(ops.iter().map(fits).collect())
    }

    /// Number of lanes in which it is played.
    #[must_use]
    pub fn lanes(&self, replicas: usize) -> usize {
        match self {
            Self::EachReplica => 2 * replicas,
            // All replicas are alike.
            Self::Nothing => 1,
            _ => replicas,
        }
    }
}

/// Durations of a step in a scenario.
#[derive(Debug, Clone, Copy)]
pub struct Scenario<'a> {
    values: &'a Values,
    ideals: &'a [f64],
    kept: &'a Kept,
    step: usize,
}

impl<'a> Scenario<'a> {
    /// A step of a trace; `ideals` is what each operation should take.
    #[must_use]
    pub fn new(values: &'a Values, ideals: &'a [f64], kept: &'a Kept, step: usize) -> Self {
        Self {
            values,
            ideals,
            kept,
            step,
        }
    }

    fn ideal(&self, op: usize, times: &mut [f64]) {
        let seconds = self.ideals[op];
        if self.values.has_absent() && times.len() == self.values.lanes() {
            for (lane, time) in times.iter_mut().enumerate() {
                *time += if self.values.is_absent(op, lane) { 0.0 } else { seconds };
            }
        } else {
            for time in times {
                *time += seconds;
            }
        }
    }

    fn measured(&self, op: usize, times: &mut [f64]) {
        for (time, seconds) in times.iter_mut().zip(self.values.row(self.step, op)) {
            *time += seconds;
        }
    }
}

impl Durations for Scenario<'_> {
    fn add(&self, op: usize, times: &mut [f64]) {
        // Operations behind those of the trace only join others.
        if op >= self.ideals.len() {
            return;
        }
        match self.kept {
            Kept::Nothing => self.ideal(op, times),
            Kept::All => self.measured(op, times),
            Kept::Ops(kept) if kept[op] => self.measured(op, times),
            Kept::Ops(_) => self.ideal(op, times),
            Kept::Workers(kept) => {
                let lanes = times.len();
                let stage = self.values.ops[op].stage;
                let kept = &kept[stage * lanes..(stage + 1) * lanes];
                let row = self.values.row(self.step, op);
                for (lane, time) in times.iter_mut().enumerate() {
                    *time += match (kept[lane], self.values.is_absent(op, lane)) {
                        (true, _) => row[lane],
                        (false, false) => self.ideals[op],
                        (false, true) => 0.0,
                    };
                }
            }
            Kept::EachReplica => {
                let (own, others) = times.split_at_mut(self.values.lanes());
                self.measured(op, own);
                for time in others {
                    *time += self.ideals[op];
                }
            }
        }
    }
}
