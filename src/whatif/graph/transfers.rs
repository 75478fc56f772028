//! Transfers between stages: which pass each one belongs to, and which two are one rendezvous.

use super::{Graph, Model};
use crate::whatif::error::WhatIfError;
use crate::whatif::trace::Kind;

/// Slack in telling records that belong to no pass, seconds.
const STRAY_SLACK: f64 = 5e-5;

/// A direction of the pipeline with its types of operations.
#[derive(Clone, Copy)]
struct Direction {
    compute: Kind,
    send: Kind,
    recv: Kind,
    /// What a send adds to the number of the model chunk.
    ahead: i64,
}

const DIRECTIONS: [Direction; 2] = [
    Direction {
        compute: Kind::ForwardCompute,
        send: Kind::ForwardSend,
        recv: Kind::ForwardRecv,
        ahead: 1,
    },
    Direction {
        compute: Kind::BackwardCompute,
        send: Kind::BackwardSend,
        recv: Kind::BackwardRecv,
        ahead: -1,
    },
];

impl Graph<'_> {
    /// Streams of a stage's sends and receives, and their passes.
    pub(super) fn transfers_of_stage(&mut self, stage: usize) -> Result<(), WhatIfError> {
        for direction in DIRECTIONS {
            for kind in [direction.send, direction.recv] {
                let stream = self.of(stage, &[kind]);
                self.builder.chain(&stream);
            }
            let passes = self.numbered(stage, direction.compute);
            let sends = self.matched(stage, direction, direction.send)?;
            for &(send, pass) in &sends {
                self.builder.after(send, passes[pass]);
            }
            for (recv, pass) in self.matched(stage, direction, direction.recv)? {
                self.builder.after(passes[pass], recv);
                if let Some(before) = pass.checked_sub(1) {
                    self.builder.after(recv, passes[before]);
                }
            }
        }
        Ok(())
    }

    /// Sends or receives of a stage that belong to a pass, with the place of the pass among those of its direction.
    fn matched(&self, stage: usize, direction: Direction, kind: Kind) -> Result<Vec<(usize, usize)>, WhatIfError> {
        let passes = self.numbered(stage, direction.compute);
        let by_time = self.of(stage, &[direction.compute]);
        let receives = kind == direction.recv;
        let mut kept = self.numbered(stage, kind);
        if let (Some(&first), Some(&last)) = (by_time.first(), by_time.last()) {
            kept.retain(|&op| {
                if receives {
                    self.ops[op].start <= self.ops[last].start + STRAY_SLACK
                } else {
                    self.ops[op].end >= self.ops[first].end - STRAY_SLACK
                }
            });
        }
        let offset = usize::from(receives && kept.len() + 1 == passes.len());
        let on_an_end = stage == 0 || stage + 1 == self.shape.stages;
        let fits = kept.len() == passes.len() || on_an_end && (kept.is_empty() || kept.len() + 1 == passes.len());
        if !fits && self.model == Model::Published || kept.len() > passes.len() {
            return Err(WhatIfError::Unmatched {
                stage,
                kind: kind.name(),
                found: kept.len(),
                passes: passes.len(),
            });
        }
        Ok(kept.into_iter().enumerate().map(|(k, op)| (op, k + offset)).collect())
    }

    /// Matched sends or receives that have another end: not those of what enters or leaves the model.
    fn with_peer(&self, stage: usize, direction: Direction, kind: Kind) -> Vec<usize> {
        let passes = self.numbered(stage, direction.compute);
        let chunks = (self.shape.stages * self.shape.chunks) as i64;
        let ahead = if kind == direction.send {
            direction.ahead
        } else {
            -direction.ahead
        };
        let mut found: Vec<usize> = self
            .matched(stage, direction, kind)
            .unwrap_or_default()
            .into_iter()
            .filter(|&(_, pass)| {
                let chunk = match self.ops[passes[pass]].global_chunk {
                    -1 => stage as i64,
                    chunk => i64::from(chunk),
                };
                (0..chunks).contains(&(chunk + ahead))
            })
            .map(|(op, _)| op)
            .collect();
        found.sort_by(|&a, &b| {
            let (a, b) = (&self.ops[a], &self.ops[b]);
            a.start.total_cmp(&b.start).then(a.sequence.cmp(&b.sequence))
        });
        found
    }

    /// The n-th send of a stage and the n-th receive of the stage that it sends to are one.
    pub(super) fn pair_transfers(&mut self) -> Vec<usize> {
        let stages = self.shape.stages;
        let mut paired = vec![false; self.ops.len()];
        for stage in 0..stages {
            for direction in DIRECTIONS {
                let to = if direction.ahead > 0 {
                    stage + 1
                } else {
                    stage + stages - 1
                } % stages;
                let sends = self.with_peer(stage, direction, direction.send);
                let receives = self.with_peer(to, direction, direction.recv);
                for (send, recv) in sends.into_iter().zip(receives) {
                    self.builder.rendezvous(&[send, recv], false);
                    (paired[send], paired[recv]) = (true, true);
                }
            }
        }
        (0..self.ops.len())
            .filter(|&op| self.ops[op].kind.is_transfer() && !paired[op])
            .collect()
    }

    /// Sends and receives of a stage with the same times are one call, which is over when both are.
    pub(super) fn fused_calls(&mut self) {
        for stage in 0..self.shape.stages {
            let kinds = DIRECTIONS.map(|direction| [direction.send, direction.recv]);
            let transfers = self.of(stage, kinds.as_flattened());
            for pair in transfers.windows(2) {
                let (one, other) = (&self.ops[pair[0]], &self.ops[pair[1]]);
                if one.kind != other.kind && (one.start, one.end) == (other.start, other.end) {
                    self.builder.fuse(pair[0], pair[1]);
                }
            }
        }
    }
}
