//! What stays the same over all steps of a job: who works with whom, and how ranks differ.

use super::error::ScenarioError;
use super::interleaved::Interleaved;
use super::scenario::Scenario;
use super::schedule::{Op, one_f_one_b};
use crate::contract::rank_order::{Coordinates, Layout};
use crate::stats::random::Random;

/// Lasting differences of the timers of an optimizer step, relative to those of compute.
const SMALL_TIMER_SPREAD: f64 = 1.7;
/// Lasting differences of collectives.
const COLLECTIVE_SPREAD: f64 = 0.005;
/// Largest difference of two nodes' clocks, seconds.
const CLOCK_SKEW: f64 = 0.25;

/// Own timers of the optimizer step that have a level of their own a rank.
pub const OPTIMIZER_PARTS: usize = 6;

/// The fixed part of a simulation.
#[derive(Debug)]
pub struct World {
    /// Coordinates of each rank.
    pub at: Vec<Coordinates>,
    /// Position in the expert group of each rank.
    pub expert: Vec<usize>,
    /// Ranks that leave each pass together.
    pub lockstep: Vec<Vec<usize>>,
    /// Ranks that reduce gradients together.
    pub data_groups: Vec<Vec<usize>>,
    /// Ranks of each replica, indexed by `stage * lanes + lane`.
    pub replicas: Vec<Vec<usize>>,
    /// Tensor-parallel rank 0 of each rank's group: it loads the data.
    pub loader: Vec<usize>,
    /// Operations of each stage.
    pub lists: Vec<Vec<Op>>,
    /// Lasting compute level of each rank, about 1.
    pub compute: Vec<f64>,
    /// Lasting levels of each rank's optimizer parts, about 1.
    pub optimizer: Vec<[f64; OPTIMIZER_PARTS]>,
    /// Lasting level of what each rank sends, forward and backward, about 1.
    pub link: Vec<[f64; 2]>,
    /// Lasting level of each data group's collectives, about 1.
    pub collective: Vec<f64>,
    /// Offset of each rank's clock (one a node), seconds.
    pub clock: Vec<f64>,
}

impl World {
    /// Works out groups and lasting differences.
    ///
    /// # Errors
    /// As [`Scenario::validate`].
    pub fn new(scenario: &Scenario) -> Result<Self, ScenarioError> {
        scenario.validate()?;
        let layout = Layout::new(&scenario.order, scenario.sizes())?;
        let experts = Layout::new(&scenario.order, scenario.expert_sizes())?;
        let ranks = scenario.ranks();
        let lanes = scenario.tp * scenario.cp;
        let at: Vec<Coordinates> = (0..ranks).map(|r| layout.coordinates(r)).collect();
        // Expert groups that are wider than a context-parallel group tie replicas together.
        let wide = scenario.ep > scenario.cp;
        let sets = if wide { scenario.expert_sizes().dp } else { scenario.dp };
        let mut lockstep = vec![Vec::new(); scenario.pp * sets];
        let mut data_groups = vec![Vec::new(); scenario.pp * scenario.tp];
        let mut replicas = vec![vec![0; scenario.pp * lanes]; scenario.dp];
        for (rank, c) in at.iter().enumerate() {
            let set = if wide { experts.coordinates(rank).dp } else { c.dp };
            lockstep[c.pp * sets + set].push(rank);
            data_groups[c.pp * scenario.tp + c.tp].push(rank);
            replicas[c.dp][c.pp * lanes + c.cp * scenario.tp + c.tp] = rank;
        }
        let mut noise = Random::stream(scenario.seed, "ranks", &[]);
        let spread = scenario.rank_spread;
        let compute = (0..ranks).map(|_| noise.factor(spread)).collect();
        let mut noise = Random::stream(scenario.seed, "optimizer", &[]);
        let optimizer = (0..ranks)
            .map(|_| std::array::from_fn(|_| noise.factor(SMALL_TIMER_SPREAD * spread)))
            .collect();
        let mut noise = Random::stream(scenario.seed, "links", &[]);
        let link = (0..ranks)
            .map(|_| [noise.factor(scenario.link_spread), noise.factor(scenario.link_spread)])
            .collect();
        let collective = data_groups.iter().map(|_| noise.factor(COLLECTIVE_SPREAD)).collect();
        let mut noise = Random::stream(scenario.seed, "clocks", &[]);
        let nodes: Vec<f64> = (0..scenario.nodes()).map(|_| CLOCK_SKEW * noise.uniform()).collect();
        let clock = (0..ranks).map(|rank| nodes[rank / scenario.ranks_per_node]).collect();
        Ok(Self {
            expert: (0..ranks).map(|r| experts.coordinates(r).ep).collect(),
            loader: at.iter().map(|c| layout.rank(Coordinates { tp: 0, ..*c })).collect(),
            lists: (0..scenario.pp).map(|stage| operations(scenario, stage)).collect(),
            at,
            lockstep,
            data_groups,
            replicas,
            compute,
            optimizer,
            link,
            collective,
            clock,
        })
    }
}

fn operations(scenario: &Scenario, stage: usize) -> Vec<Op> {
    if !scenario.interleaved() {
        return one_f_one_b(stage, scenario.pp, scenario.microbatches);
    }
    let shape = Interleaved {
        stages: scenario.pp,
        chunks: scenario.virtual_stages,
        microbatches: scenario.microbatches,
        overlap: scenario.overlap_p2p,
    };
    shape.operations(stage)
}
