//! What stays the same over all steps of a job: who works with whom, and how ranks differ.

use super::conditions::Prepared;
use super::error::ScenarioError;
use super::rendezvous::Schedule;
use super::scenario::Scenario;
use crate::contract::rank_order::{Coordinates, Layout};
use crate::stats::random::Random;
use crate::whatif::schedule::{Interleaved, Op, one_f_one_b};

/// Lasting differences of the timers of an optimizer step, relative to those of compute.
const SMALL_TIMER_SPREAD: f64 = 1.7;
/// Lasting differences of collectives.
const COLLECTIVE_SPREAD: f64 = 0.005;
/// Largest difference of two nodes' clocks, seconds.
const CLOCK_SKEW: f64 = 0.25;

/// Own timers of the optimizer step that have a level of their own a rank.
pub const OPTIMIZER_PARTS: usize = 6;

/// Groups of ranks that communicate together, with a lasting level each, about 1.
#[derive(Debug, Default)]
pub struct Collectives {
    /// The members of each group.
    pub groups: Vec<Vec<usize>>,
    /// The groups' levels.
    pub levels: Vec<f64>,
}

impl Collectives {
    fn new(groups: Vec<Vec<usize>>, noise: &mut Random) -> Self {
        let levels = groups.iter().map(|_| noise.factor(COLLECTIVE_SPREAD)).collect();
        Self { groups, levels }
    }
}

/// The fixed part of a simulation.
#[derive(Debug)]
pub struct World {
    /// Coordinates of each rank.
    pub at: Vec<Coordinates>,
    /// Position in the expert group of each rank.
    pub expert: Vec<usize>,
    /// Ranks that leave each pass together.
    pub lockstep: Vec<Vec<usize>>,
    /// Ranks that reduce gradients together (data- and context-parallel ranks).
    pub data_groups: Vec<Vec<usize>>,
    /// The same, or the parts of them in which each instance of the distributed optimizer reduces.
    pub parts: Collectives,
    /// Ranks of different parts that add up what their parts reduced; none where there is one part.
    pub between_parts: Collectives,
    /// Ranks that hold the same experts and reduce their gradients; none without expert parallelism.
    pub expert_groups: Collectives,
    /// What else acts on the job.
    pub conditions: Vec<Prepared>,
    /// Ranks of each replica, indexed by `stage * lanes + lane`.
    pub replicas: Vec<Vec<usize>>,
    /// Tensor-parallel rank 0 of each rank's group: it loads the data.
    pub loader: Vec<usize>,
    /// Operations of each stage, and who waits for whom.
    pub schedule: Schedule,
    /// Lasting compute level of each rank, about 1.
    pub compute: Vec<f64>,
    /// Lasting levels of each rank's optimizer parts, about 1.
    pub optimizer: Vec<[f64; OPTIMIZER_PARTS]>,
    /// Lasting level of what each rank sends, forward and backward, about 1.
    pub link: Vec<[f64; 2]>,
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
        Self::prepared(scenario)
    }

    /// The same for a scenario whose values are known to be possible.
    pub(super) fn prepared(scenario: &Scenario) -> Result<Self, ScenarioError> {
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
        let (within, between) = instances(&data_groups, scenario.optimizer_instances);
        let parts = Collectives::new(within, &mut noise);
        let mut noise = Random::stream(scenario.seed, "parts", &[]);
        let between_parts = Collectives::new(between, &mut noise);
        let mut noise = Random::stream(scenario.seed, "expert groups", &[]);
        let expert_groups = Collectives::new(expert_groups(scenario, &at, &experts), &mut noise);
        let mut noise = Random::stream(scenario.seed, "clocks", &[]);
        let nodes: Vec<f64> = (0..scenario.nodes()).map(|_| CLOCK_SKEW * noise.uniform()).collect();
        let clock = (0..ranks).map(|rank| nodes[rank / scenario.ranks_per_node]).collect();
        Ok(Self {
            expert: (0..ranks).map(|r| experts.coordinates(r).ep).collect(),
            loader: at.iter().map(|c| layout.rank(Coordinates { tp: 0, ..*c })).collect(),
            schedule: Schedule::new((0..scenario.pp).map(|stage| operations(scenario, stage)).collect())
                .map_err(|error| ScenarioError::new("pp", error.to_string(), "stages that make a schedule"))?,
            at,
            lockstep,
            data_groups,
            replicas,
            compute,
            optimizer,
            link,
            parts,
            between_parts,
            expert_groups,
            conditions: (scenario.conditions.iter())
                .map(|condition| condition.prepare(scenario))
                .collect(),
            clock,
        })
    }
}

/// Splits data groups into as many parts as there are optimizer instances: the parts, and across them the ranks at the
/// same place in each. One instance leaves the groups whole.
fn instances(groups: &[Vec<usize>], instances: usize) -> (Vec<Vec<usize>>, Vec<Vec<usize>>) {
    if instances < 2 {
        return (groups.to_vec(), Vec::new());
    }
    let mut within = Vec::new();
    let mut between = Vec::new();
    for group in groups {
        let size = group.len().div_ceil(instances).max(1);
        within.extend(group.chunks(size).map(<[usize]>::to_vec));
        between.extend((0..size).map(|place| group.iter().skip(place).step_by(size).copied().collect()));
    }
    (within, between)
}

/// Ranks of one stage and tensor position that hold the same experts.
fn expert_groups(scenario: &Scenario, at: &[Coordinates], experts: &Layout) -> Vec<Vec<usize>> {
    if scenario.ep == 1 {
        return Vec::new();
    }
    let mut groups = vec![Vec::new(); scenario.pp * scenario.tp * scenario.ep];
    for (rank, c) in at.iter().enumerate() {
        groups[(c.pp * scenario.tp + c.tp) * scenario.ep + experts.coordinates(rank).ep].push(rank);
    }
    groups
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn instances_split_groups_and_join_the_same_places() {
        let (within, between) = instances(&[vec![0, 2, 4, 6], vec![1, 3, 5, 7]], 2);
        assert_eq!(within, [[0, 2], [4, 6], [1, 3], [5, 7]]);
        assert_eq!(between, [[0, 4], [2, 6], [1, 5], [3, 7]]);
        let (whole, none) = instances(&[vec![0, 2]], 1);
        assert_eq!((whole, none), (vec![vec![0, 2]], vec![]));
    }

    #[test]
    fn expert_groups_hold_the_ranks_with_the_same_experts() {
        let scenario = Scenario {
            tp: 1,
            pp: 2,
            dp: 8,
            ep: 4,
            ..Scenario::default()
        };
        let world = World::new(&scenario).expect("a world");
        let groups = &world.expert_groups.groups;
        assert_eq!(groups.len(), 8);
        assert_eq!(groups[..2], [[0, 4], [1, 5]]);
        let all = groups.iter().flatten().count();
        assert_eq!(all, scenario.ranks());
    }

    #[test]
    fn context_ranks_reduce_gradients_with_the_replicas() {
        let scenario = Scenario {
            tp: 2,
            cp: 2,
            pp: 2,
            dp: 4,
            ..Scenario::default()
        };
        let world = World::new(&scenario).expect("a world");
        assert_eq!(world.data_groups[0], [0, 2, 4, 6, 8, 10, 12, 14]);
    }
}
