//! Who waits for whom in an op trace: the graph of one replica's step, built from the times of the reference replica.
//!
//! [`Model::Published`] is the model of "Understanding Stragglers in Large Model Training Using What-if Analysis" (OSDI
//! 2025), edge by edge. [`Model::Measured`], the default, adds what real traces show beyond it: a call that posts a send
//! and a receive is over when both are; parameters are gathered before the first receive of their chunk, not only before
//! its first pass; the reduction of the loss on the last stage joins all replicas.

mod collectives;
mod transfers;

use super::error::WhatIfError;
pub use super::model::Model;
use super::replay::{Builder, Program};
use super::trace::{Kind, Op};

/// Shape of the job as far as the graph depends on it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Shape {
    /// Pipeline stages.
    pub stages: usize,
    /// Model chunks a stage.
    pub chunks: usize,
    /// Whether there is more than one replica to reduce gradients over.
    pub replicated: bool,
}

/// Builds the graph of the operations of one replica.
///
/// # Errors
/// Sends and receives that do not fit the passes, or operations that wait for each other in a circle.
pub fn build(ops: &[Op], shape: Shape, model: Model) -> Result<Program, WhatIfError> {
    let mut graph = Graph {
        builder: Builder::new(ops.len()),
        ops,
        shape,
        model,
    };
    for stage in 0..shape.stages {
        graph.compute_stream(stage);
        graph.transfers_of_stage(stage)?;
        if shape.replicated {
            graph.data_parallel(stage);
        }
        graph.tail(stage);
    }
    graph.rendezvous();
    if model == Model::Measured {
        graph.fused_calls();
    }
    let optimizers = graph.all(Kind::Optimizer);
    let lasts = if optimizers.is_empty() {
        (0..ops.len()).collect()
    } else {
        optimizers
    };
    graph.builder.finish(&lasts)
}

struct Graph<'a> {
    builder: Builder,
    ops: &'a [Op],
    shape: Shape,
    model: Model,
}

impl Graph<'_> {
    /// Operations of a type on a stage, by their time.
    fn of(&self, stage: usize, kinds: &[Kind]) -> Vec<usize> {
        let of = |op: &Op| op.stage == stage && kinds.contains(&op.kind);
        let mut found: Vec<usize> = (0..self.ops.len()).filter(|&op| of(&self.ops[op])).collect();
        found.sort_by(|&a, &b| {
            let (a, b) = (&self.ops[a], &self.ops[b]);
            let by_time = a.start.total_cmp(&b.start);
            by_time.then_with(|| (a.sequence, a.kind).cmp(&(b.sequence, b.kind)))
        });
        found
    }

    /// Operations of a type on a stage, by their number.
    fn numbered(&self, stage: usize, kind: Kind) -> Vec<usize> {
        let mut found = self.of(stage, &[kind]);
        found.sort_by_key(|&op| self.ops[op].sequence);
        found
    }

    /// Operations of a type on all stages.
    fn all(&self, kind: Kind) -> Vec<usize> {
        (0..self.ops.len()).filter(|&op| self.ops[op].kind == kind).collect()
    }

    /// Passes of a stage, by their time.
    fn computes(&self, stage: usize) -> Vec<usize> {
        self.of(stage, &[Kind::ForwardCompute, Kind::BackwardCompute])
    }

    /// The pass that ends last.
    fn last_pass(&self, passes: &[usize]) -> Option<usize> {
        passes
            .iter()
            .copied()
            .max_by(|&a, &b| self.ops[a].end.total_cmp(&self.ops[b].end))
    }

    /// Passes of a stage run one after the other; the first backward transfers come after the pass that makes room for
    /// them.
    fn compute_stream(&mut self, stage: usize) {
        let stream = self.computes(stage);
        self.builder.chain(&stream);
        let first_backward = stream.iter().position(|&op| self.ops[op].kind == Kind::BackwardCompute);
        if let Some(before) = first_backward.and_then(|first| first.checked_sub(2)) {
            for kind in [Kind::BackwardRecv, Kind::BackwardSend] {
                if let Some(&first) = self.numbered(stage, kind).first() {
                    self.builder.after(first, stream[before]);
                }
            }
        }
    }
}
