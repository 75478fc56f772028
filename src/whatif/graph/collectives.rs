//! Collectives: parameters before the passes, and the chain from the last pass to the optimizer.

use super::{Graph, Model};
use crate::whatif::trace::Kind;

impl Graph<'_> {
    /// Gathering of parameters and reduction of gradients over the replicas.
    pub(super) fn data_parallel(&mut self, stage: usize) {
        let stream = self.of(stage, &[Kind::ParamsAllGather, Kind::GradsReduceScatter]);
        self.builder.chain(&stream);
        let chunks = {
            let mut chunks: Vec<i16> = stream.iter().map(|&op| self.ops[op].chunk).collect();
            chunks.sort_unstable();
            chunks.dedup();
            chunks
        };
        let overlaps = !self.of(stage, &[Kind::SeparateAllReduce]).is_empty();
        for chunk in chunks {
            let gathered = self.numbered(stage, Kind::ParamsAllGather);
            let gathered = gathered.into_iter().rfind(|&op| self.ops[op].chunk == chunk);
            let forward = self.of(stage, &[Kind::ForwardCompute]);
            let forward = forward.into_iter().find(|&op| self.ops[op].chunk == chunk);
            if let (Some(gathered), Some(forward)) = (gathered, forward) {
                self.builder.after(forward, gathered);
                if self.model == Model::Measured {
                    self.gather_before_receiving(stage, gathered, forward);
                }
            }
            if overlaps {
                let reduced = self.numbered(stage, Kind::GradsReduceScatter);
                let reduced = reduced.into_iter().find(|&op| self.ops[op].chunk == chunk);
                let mut backward = self.of(stage, &[Kind::BackwardCompute]);
                backward.retain(|&op| self.ops[op].chunk == chunk);
                if let (Some(reduced), Some(backward)) = (reduced, self.last_pass(&backward)) {
                    self.builder.after(reduced, backward);
                }
            }
        }
    }

    /// The receive of a chunk's first input is posted when its parameters are there.
    fn gather_before_receiving(&mut self, stage: usize, gathered: usize, forward: usize) {
        let first = self.ops[forward].sequence;
        let receives = self.numbered(stage, Kind::ForwardRecv);
        let receive = receives.into_iter().find(|&op| self.ops[op].sequence == first);
        if let Some(receive) = receive.filter(|&op| self.ops[op].start >= self.ops[gathered].start) {
            self.builder.after(receive, gathered);
        }
    }

    /// From the last pass of a stage to its optimizer.
    pub(super) fn tail(&mut self, stage: usize) {
        let passes = self.computes(stage);
        let last_pass = self.last_pass(&passes);
        let collection = self.numbered(stage, Kind::Gc).first().copied();
        if let (Some(collection), Some(last_pass)) = (collection, last_pass) {
            self.builder.after(collection, last_pass);
        }
        let mut before = collection.or(last_pass);
        if let (Some(done), Model::Measured) = (before, self.model)
            && stage + 1 == self.shape.stages
            && self.shape.replicated
        {
            let loss = self.builder.push();
            self.builder.after(loss, done);
            self.builder.rendezvous(&[loss], true);
            before = Some(loss);
        }
        let separate = self.of(stage, &[Kind::SeparateAllReduce]);
        let reduced = self.of(stage, &[Kind::GradsReduceScatter]);
        let mut chain = self.of(stage, &[Kind::LayernormAllReduce]);
        if stage == 0 || stage + 1 == self.shape.stages {
            chain.extend(self.of(stage, &[Kind::EmbeddingAllReduce]));
        }
        let last_reduced = reduced.last().copied().filter(|_| !separate.is_empty());
        if !separate.is_empty() {
            chain.extend(separate);
        } else if self.shape.replicated {
            chain.extend(reduced);
        }
        chain.extend(self.of(stage, &[Kind::OptimizerClip]));
        chain.extend(self.of(stage, &[Kind::Optimizer]));
        self.builder.chain(&chain);
        if let Some(&first) = chain.first() {
            for done in before.into_iter().chain(last_reduced) {
                if first != done {
                    self.builder.after(first, done);
                }
            }
        }
    }

    /// Everything that is over together.
    pub(super) fn rendezvous(&mut self) {
        for alone in self.pair_transfers() {
            self.builder.rendezvous(&[alone], false);
        }
        let last = self.shape.stages - 1;
        let numbers = |graph: &Self, kind| {
            let mut numbers: Vec<i32> = graph.all(kind).iter().map(|&op| graph.ops[op].sequence).collect();
            numbers.sort_unstable();
            numbers.dedup();
            numbers
        };
        for number in numbers(self, Kind::EmbeddingAllReduce) {
            let mut members = self.all(Kind::EmbeddingAllReduce);
            members.retain(|&op| self.ops[op].sequence == number);
            let (ends, others): (Vec<usize>, Vec<usize>) = members
                .into_iter()
                .partition(|&op| [0, last].contains(&self.ops[op].stage));
            if !ends.is_empty() {
                self.builder.rendezvous(&ends, false);
            }
            for other in others {
                self.builder.rendezvous(&[other], false);
            }
        }
        for number in numbers(self, Kind::OptimizerClip) {
            let mut members = self.all(Kind::OptimizerClip);
            members.retain(|&op| self.ops[op].sequence == number);
            self.builder.rendezvous(&members, true);
        }
        for kind in [Kind::ParamsAllGather, Kind::GradsReduceScatter, Kind::SeparateAllReduce] {
            for op in self.all(kind) {
                self.builder.rendezvous(&[op], true);
            }
        }
    }
}
