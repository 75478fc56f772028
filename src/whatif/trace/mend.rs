//! The durations of a trace with something mended.

use super::kind::Kind;
use super::table::Op;
use super::values::Values;
use crate::whatif::error::WhatIfError;
use crate::whatif::middle;
use crate::whatif::question::Question;

impl Values {
    /// The same steps with what is asked for mended; launch delays stay.
    ///
    /// # Errors
    /// A rank that the trace does not hold, two that no transfer joins, or a rank without peers.
    pub fn mended(&self, question: Question) -> Result<Self, WhatIfError> {
        let mut mended = self.clone();
        match question {
            Question::Rank(rank) => {
                let (stage, lane) = self.worker_of(rank, question)?;
                mended.like_peers(self, lane, |op| op.stage == stage, question)?;
            }
            Question::Link(one, other) => {
                let (one, other) = (self.worker_of(one, question)?, self.worker_of(other, question)?);
                let neighbours = one.0.abs_diff(other.0) == 1 || one.0.abs_diff(other.0) + 1 == self.stages;
                if one.1 != other.1 || one.0 == other.0 || !neighbours {
                    return Err(WhatIfError::NothingToMend {
                        asked: question.to_string(),
                        reason: "no transfer joins the two: they must be neighbouring stages of one replica".to_owned(),
                    });
                }
                let (up, down) = if one.0 < other.0 {
                    (one.0, other.0)
                } else {
                    (other.0, one.0)
                };
                // Around the end of the pipeline the last stage sends to the first.
                let (up, down) = if down - up == 1 { (up, down) } else { (down, up) };
                let joins = |op: &Op| match op.kind {
                    Kind::ForwardSend | Kind::BackwardRecv => op.stage == up,
                    Kind::ForwardRecv | Kind::BackwardSend => op.stage == down,
                    _ => false,
                };
                mended.like_peers(self, one.1, joins, question)?;
            }
            Question::Stages => mended.level_stages(),
            Question::Data => mended.level_data(),
        }
        Ok(mended)
    }

    fn worker_of(&self, rank: u32, question: Question) -> Result<(usize, usize), WhatIfError> {
        let worker = self.ranks.iter().position(|&known| i64::from(known) == i64::from(rank));
        worker
            .map(|worker| (worker / self.lanes(), worker % self.lanes()))
            .ok_or_else(|| {
                let mut known: Vec<i32> = self.ranks.iter().copied().filter(|rank| *rank >= 0).collect();
                known.sort_unstable();
                let listed: Vec<String> = known.iter().take(16).map(i32::to_string).collect();
                let more = if known.len() > 16 { ", ..." } else { "" };
                WhatIfError::NothingToMend {
                    asked: question.to_string(),
                    reason: format!("the trace holds no rank {rank}; it holds {}{more}", listed.join(", ")),
                }
            })
    }

    /// Operations of a lane take what they take on the others in the same step.
    fn like_peers(
        &mut self,
        measured: &Self,
        lane: usize,
        fits: impl Fn(&Op) -> bool,
        question: Question,
    ) -> Result<(), WhatIfError> {
        let lanes = self.lanes();
        if lanes < 2 {
            return Err(WhatIfError::NothingToMend {
                asked: question.to_string(),
                reason: "the trace holds one replica: there are no peers to be like".to_owned(),
            });
        }
        let ops: Vec<usize> = (0..self.ops.len()).filter(|&op| fits(&self.ops[op])).collect();
        for step in 0..self.steps.len() {
            for &op in &ops {
                let row = measured.row(step, op).iter().enumerate();
                let peers = row.filter(|(peer, _)| *peer != lane && !measured.is_absent(op, *peer));
                if let Some(usual) = middle(peers.map(|(_, seconds)| *seconds))
                    && !measured.is_absent(op, lane)
                {
                    self.seconds[(step * self.ops.len() + op) * lanes + lane] = usual;
                }
            }
        }
        Ok(())
    }

    /// Seconds that each worker computes in each step, `[step][stage * lanes + lane]`.
    fn computing(&self) -> Vec<Vec<f64>> {
        let lanes = self.lanes();
        (0..self.steps.len())
            .map(|step| {
                let mut sums = vec![0.0; self.stages * lanes];
                for (number, op) in self.ops.iter().enumerate().filter(|(_, op)| is_pass(op)) {
                    for (lane, seconds) in self.row(step, number).iter().enumerate() {
                        sums[op.stage * lanes + lane] += seconds;
                    }
                }
                sums
            })
            .collect()
    }

    fn scale_passes(&mut self, factor: impl Fn(usize, usize) -> f64) {
        let lanes = self.lanes();
        let size = self.ops.len();
        for step in 0..self.steps.len() {
            for op in (0..size).filter(|&op| is_pass(&self.ops[op])) {
                for lane in 0..lanes {
                    let factor = factor(step, self.ops[op].stage * lanes + lane);
                    self.seconds[(step * size + op) * lanes + lane] *= factor;
                }
            }
        }
    }

    /// Stages with more work get that of the others; of two the lighter one's.
    fn level_stages(&mut self) {
        let lanes = self.lanes();
        let computing = self.computing();
        let levels: Vec<f64> = (0..self.stages)
            .map(|stage| {
                let cells = computing
                    .iter()
                    .flat_map(|sums| sums[stage * lanes..(stage + 1) * lanes].iter().copied());
                middle(cells).unwrap_or_default()
            })
            .collect();
        let mut sorted = levels.clone();
        sorted.sort_unstable_by(f64::total_cmp);
        let usual = sorted[(sorted.len() - 1) / 2];
        self.scale_passes(|_, worker| {
            let level = levels[worker / lanes];
            if level > usual { usual / level } else { 1.0 }
        });
    }

    /// Every worker computes as long in all steps, as far as its stage does not vary as a whole.
    fn level_data(&mut self) {
        let computing = self.computing();
        let means: Vec<f64> = computing
            .iter()
            .map(|sums| sums.iter().sum::<f64>() / sums.len().max(1) as f64)
            .collect();
        let level = |step: usize, worker: usize| computing[step][worker] / means[step];
        let steps = self.steps.len();
        let usual: Vec<f64> = (0..self.stages * self.lanes())
            .map(|worker| (0..steps).map(|step| level(step, worker)).sum::<f64>() / steps.max(1) as f64)
            .collect();
        self.scale_passes(|step, worker| {
            let factor = usual[worker] / level(step, worker);
            if factor.is_finite() { factor } else { 1.0 }
        });
    }
}

fn is_pass(op: &Op) -> bool {
    matches!(op.kind, Kind::ForwardCompute | Kind::BackwardCompute)
}
