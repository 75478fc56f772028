//! The description of a simulated job.

use std::ops::Range;

use serde::{Deserialize, Serialize};

use super::faults::{LinkFactor, NodeFactor, RankFactor, RankSeconds, Rerun, StageFactor, Stall, Transient};
use crate::contract::rank_order::{DEFAULT_ORDER, Sizes};

/// A job to simulate: its shape, its noise and what is wrong with it.
///
/// [`Scenario::default`] is a healthy job of 32 ranks; [`Scenario::validate`] says which values
/// are possible. Factors multiply healthy times; shares are between 0 and 1.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Scenario {
    /// Job id and name of its file.
    pub job: String,
    /// Kind of job in the label; `None` derives it from the faults.
    pub kind: Option<String>,
    /// Name in the column `cluster`.
    pub cluster: String,
    /// Tensor-parallel size.
    pub tp: usize,
    /// Pipeline-parallel size (stages).
    pub pp: usize,
    /// Data-parallel size (replicas).
    pub dp: usize,
    /// Context-parallel size.
    pub cp: usize,
    /// Expert-parallel size; expert groups lie across the context- and data-parallel ranks.
    pub ep: usize,
    /// Order of the axes in the rank number, fastest first.
    pub order: String,
    /// Ranks a node.
    pub ranks_per_node: usize,
    /// Model chunks a rank; above 1 the schedule is interleaved.
    pub virtual_stages: usize,
    /// In an interleaved schedule, sends and receives are issued beside the passes of the other direction.
    pub overlap_p2p: bool,
    /// Microbatches a step and replica.
    pub microbatches: usize,
    /// Number of iterations.
    pub iterations: u32,
    /// Number of the first iteration.
    pub first_iteration: u32,
    /// Forward time of one microbatch on a middle stage, seconds; backward takes twice as long.
    pub stage_seconds: f64,
    /// Transfer of one microbatch between two stages, seconds.
    pub transfer_seconds: f64,
    /// The same between stages on one node, which then does not use the network; `None`: all
    /// transfers are alike.
    pub intra_node_seconds: Option<f64>,
    /// Relative standard deviation of a single transfer.
    pub transfer_noise: f64,
    /// Share of transfers that take 2 to 30 times as long, mostly little.
    pub transfer_outliers: f64,
    /// Relative standard deviation of the links' lasting differences.
    pub link_spread: f64,
    /// Relative standard deviation of a single call.
    pub noise: f64,
    /// Relative standard deviation of the ranks' lasting differences.
    pub rank_spread: f64,
    /// Share of calls that take 1.5 to 3 times as long.
    pub outliers: f64,
    /// Extra time of the first step of a run, relative; fades over the first 10 steps.
    pub startup: f64,
    /// Seed of all randomness.
    pub seed: u64,
    /// Start of the job, seconds since 1970 (UTC).
    pub start: i64,
    /// Write the calls of compute and point-to-point timers.
    pub trace: bool,
    /// Write the ranks' positions in the parallel groups.
    pub topology: bool,
    /// Write `self-attention-linear-qkv`, the one timer that is a rank's own.
    pub qkv: bool,
    /// Write the optimizer's finer timers too.
    pub optimizer_timers: bool,
    /// Time a rank's wait for late tensor-parallel peers inside its compute timers.
    pub entry_wait: bool,
    /// Ranks that compute slowly.
    pub slow_ranks: Vec<RankFactor>,
    /// Nodes all of whose ranks compute slowly.
    pub slow_nodes: Vec<NodeFactor>,
    /// Ranks that send slowly.
    pub slow_send: Vec<RankFactor>,
    /// Ranks that receive slowly.
    pub slow_recv: Vec<RankFactor>,
    /// Slow links between pipeline neighbours.
    pub slow_links: Vec<LinkFactor>,
    /// Links that are slow from the first rank to the second only.
    pub slow_links_one_way: Vec<LinkFactor>,
    /// Nodes whose network is slow: what their ranks send and receive, and collectives over it.
    pub slow_node_networks: Vec<NodeFactor>,
    /// Ranks whose data loader is slow.
    pub slow_loaders: Vec<RankSeconds>,
    /// Stages with more work.
    pub heavy_stages: Vec<StageFactor>,
    /// Coefficient of variation of a replica's load, drawn anew each step.
    pub sequence_spread: f64,
    /// Coefficient of variation of a rank's expert load, drawn anew each step.
    pub expert_spread: f64,
    /// First iteration with the lasting faults.
    pub onset: Option<u32>,
    /// Last iteration with the lasting faults.
    pub until: Option<u32>,
    /// Share of steps in which the lasting faults act; `None` = all.
    pub flaky: Option<f64>,
    /// Ranks that are slow for a few steps.
    pub transients: Vec<Transient>,
    /// Steps that are longer on all ranks.
    pub stalls: Vec<Stall>,
    /// A restart from a checkpoint.
    pub rerun: Option<Rerun>,
    /// Share of rows lost; above 0 also a timer that is 0 on a third of the ranks, and a quarter
    /// of the share each of NaN, negative and doubled rows.
    pub dirty: f64,
    /// Share of trace rows that are lost or damaged: a call without end, ends before starts, calls
    /// that overlap.
    pub dirty_trace: f64,
}

impl Default for Scenario {
    fn default() -> Self {
        Self {
            job: "simulated".into(),
            kind: None,
            cluster: "sim".into(),
            tp: 2,
            pp: 4,
            dp: 4,
            cp: 1,
            ep: 1,
            order: DEFAULT_ORDER.into(),
            ranks_per_node: 8,
            virtual_stages: 1,
            overlap_p2p: false,
            microbatches: 8,
            iterations: 40,
            first_iteration: 1,
            stage_seconds: 0.2,
            transfer_seconds: 0.004,
            intra_node_seconds: None,
            transfer_noise: 0.05,
            transfer_outliers: 0.0,
            link_spread: 0.02,
            noise: 0.009,
            rank_spread: 0.006,
            outliers: 0.0,
            startup: 0.3,
            seed: 0,
            start: 1_767_254_400, // 2026-01-01 08:00:00
            trace: true,
            topology: true,
            qkv: true,
            optimizer_timers: false,
            entry_wait: false,
            slow_ranks: Vec::new(),
            slow_nodes: Vec::new(),
            slow_send: Vec::new(),
            slow_recv: Vec::new(),
            slow_links: Vec::new(),
            slow_links_one_way: Vec::new(),
            slow_node_networks: Vec::new(),
            slow_loaders: Vec::new(),
            heavy_stages: Vec::new(),
            sequence_spread: 0.0,
            expert_spread: 0.0,
            onset: None,
            until: None,
            flaky: None,
            transients: Vec::new(),
            stalls: Vec::new(),
            rerun: None,
            dirty: 0.0,
            dirty_trace: 0.0,
        }
    }
}

impl Scenario {
    /// Number of ranks (saturating: a product that overflows is refused by `validate`).
    pub fn ranks(&self) -> usize {
        [self.tp, self.cp, self.dp, self.pp]
            .into_iter()
            .fold(1, usize::saturating_mul)
    }

    /// Number of nodes; the last may be partly used.
    pub fn nodes(&self) -> usize {
        self.ranks().div_ceil(self.ranks_per_node.max(1))
    }

    /// Name of the node of a rank.
    pub fn node_name(&self, rank: usize) -> String {
        format!("gpu-{:03}", rank / self.ranks_per_node.max(1))
    }

    /// The last iteration.
    pub fn last_iteration(&self) -> u32 {
        self.first_iteration.saturating_add(self.iterations.saturating_sub(1))
    }

    /// Passes a step of a rank in one direction: one a microbatch and model chunk.
    pub fn passes(&self) -> usize {
        self.virtual_stages * self.microbatches
    }

    /// Whether the model's chunks are interleaved over the stages.
    pub fn interleaved(&self) -> bool {
        self.virtual_stages > 1
    }

    /// Links of a pipeline: link `i` leads from stage `i` to the next, in an interleaved one the last back to the first.
    pub fn links(&self) -> usize {
        if self.interleaved() { self.pp } else { self.pp - 1 }
    }

    /// Sizes of the dense grid (experts do not take part in it).
    pub fn sizes(&self) -> Sizes {
        Sizes {
            tp: self.tp,
            cp: self.cp,
            ep: 1,
            dp: self.dp,
            pp: self.pp,
        }
    }

    /// Sizes of the expert grid: expert groups lie across the context- and data-parallel ranks.
    pub fn expert_sizes(&self) -> Sizes {
        Sizes {
            tp: self.tp,
            cp: 1,
            ep: self.ep,
            dp: self.cp * self.dp / self.ep.max(1),
            pp: self.pp,
        }
    }

    /// Whether a fault that `onset`, `until` and `flaky` govern is set.
    pub fn has_lasting_fault(&self) -> bool {
        self.has_network_fault()
            || !(self.slow_ranks.is_empty() && self.slow_nodes.is_empty() && self.slow_loaders.is_empty())
    }

    /// Whether something communicates slowly.
    pub fn has_network_fault(&self) -> bool {
        !(self.slow_send.is_empty()
            && self.slow_recv.is_empty()
            && self.slow_links.is_empty()
            && self.slow_links_one_way.is_empty()
            && self.slow_node_networks.is_empty())
    }

    /// The node of a rank.
    pub fn node(&self, rank: usize) -> usize {
        rank / self.ranks_per_node.max(1)
    }

    /// The ranks of a node.
    pub fn ranks_of_node(&self, node: usize) -> Range<usize> {
        let first = node * self.ranks_per_node;
        first..(first + self.ranks_per_node).min(self.ranks())
    }

    /// Whether what two ranks send each other goes over the network.
    pub fn over_network(&self, one: usize, other: usize) -> bool {
        self.intra_node_seconds.is_none() || self.node(one) != self.node(other)
    }
}
