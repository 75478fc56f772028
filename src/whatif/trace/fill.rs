//! What is lost, filled in with what is usual.

use super::kind::Kind;
use super::table::Op;
use crate::whatif::replay::Program;

/// A collective of which a member is lost counts as usual where it takes longer than this many usual ones: the lost
/// member came last.
const MEMBER_LOST: f64 = 3.0;

pub(super) struct Fill<'a> {
    pub ops: &'a [Op],
    pub ideals: &'a [f64],
    pub absent: &'a [bool],
    pub workers: usize,
    pub lanes: usize,
}

impl Fill<'_> {
    /// Takes collectives over replicas as usual that seem long because their last member is lost.
    pub fn collectives(&self, step: &mut [f64], program: &Program) {
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

    pub fn lost(&self, step: &mut [f64]) {
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
