//! Which ranks the faults of a scenario sit on, by cause, and what each cause costs the job.

use std::collections::BTreeSet;

use super::effects::acts;
use super::plan::{PlannedStep, plan};
use super::scenario::Scenario;
use super::step::step;
use super::world::World;
use crate::contract::defaults::WARMUP_ITERATIONS;

/// Steps that are simulated again to find a cost.
const SAMPLED_STEPS: usize = 4;

/// What makes a job slow, as far as a fault does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fault {
    /// Ranks or nodes that compute slowly.
    Compute,
    /// Ranks, links or nodes that communicate slowly.
    Network,
    /// Ranks that load data slowly.
    Loading,
}

impl Fault {
    const ALL: [Self; 3] = [Self::Compute, Self::Network, Self::Loading];

    /// The cause in the label.
    pub fn cause(self) -> &'static str {
        match self {
            Self::Compute => "compute",
            Self::Network => "network",
            Self::Loading => "data-loading",
        }
    }

    /// The ranks that the faults of this sort sit on.
    fn ranks(self, scenario: &Scenario) -> BTreeSet<usize> {
        match self {
            Self::Compute => (scenario.slow_ranks.iter().map(|f| f.rank))
                .chain(scenario.slow_nodes.iter().flat_map(|f| scenario.ranks_of_node(f.node)))
                .collect(),
            Self::Network => {
                let cards = scenario.slow_send.iter().chain(&scenario.slow_recv);
                let links = scenario.slow_links.iter().chain(&scenario.slow_links_one_way);
                let nodes = scenario.slow_node_networks.iter();
                (cards.map(|f| f.rank))
                    .chain(links.flat_map(|l| [l.a, l.b]))
                    .chain(nodes.flat_map(|f| scenario.ranks_of_node(f.node)))
                    .collect()
            }
            Self::Loading => scenario.slow_loaders.iter().map(|f| f.rank).collect(),
        }
    }

    fn remove(self, scenario: &mut Scenario) {
        match self {
            Self::Compute => {
                scenario.slow_ranks.clear();
                scenario.slow_nodes.clear();
            }
            Self::Network => {
                scenario.slow_send.clear();
                scenario.slow_recv.clear();
                scenario.slow_links.clear();
                scenario.slow_links_one_way.clear();
                scenario.slow_node_networks.clear();
            }
            Self::Loading => scenario.slow_loaders.clear(),
        }
    }
}

/// The faults of one sort.
#[derive(Debug)]
pub struct Culprits {
    /// The sort.
    pub fault: Fault,
    /// The ranks that they sit on.
    pub ranks: BTreeSet<usize>,
    /// Seconds that they add to a step in which they act; 0 where no other sort competes.
    pub seconds: f64,
}

/// The faults of a scenario, one entry a sort that it has.
pub fn culprits(scenario: &Scenario, world: &World) -> Vec<Culprits> {
    let mut all: Vec<Culprits> = Fault::ALL
        .into_iter()
        .map(|fault| Culprits {
            fault,
            ranks: fault.ranks(scenario),
            seconds: 0.0,
        })
        .filter(|culprits| !culprits.ranks.is_empty())
        .collect();
    if all.len() > 1 {
        let faults: Vec<Fault> = all.iter().map(|culprits| culprits.fault).collect();
        for culprits in &mut all {
            culprits.seconds = cost(scenario, world, &faults, culprits.fault);
        }
    }
    all
}

/// What one sort of faults adds to a step: the mean of what it adds to a healthy job and of what its
/// mending saves. Two faults in a row both count then, and of two that hide each other neither counts whole.
fn cost(scenario: &Scenario, world: &World, faults: &[Fault], fault: Fault) -> f64 {
    let steps = sample(scenario);
    let seconds = |removed: &dyn Fn(Fault) -> bool| {
        let mut rest = Scenario {
            trace: false,
            ..scenario.clone()
        };
        for fault in faults.iter().filter(|fault| removed(**fault)) {
            fault.remove(&mut rest);
        }
        steps.iter().map(|&at| step(&rest, world, at).interval).sum::<f64>()
    };
    let saved = seconds(&|_| false) - seconds(&|one| one == fault);
    let added = seconds(&|one| one != fault) - seconds(&|_| true);
    (saved + added) / 2.0 / steps.len().max(1) as f64
}

/// A few steps that count and in which the faults act, evenly over the job.
fn sample(scenario: &Scenario) -> Vec<PlannedStep> {
    let mut steps: Vec<PlannedStep> = plan(scenario)
        .into_iter()
        .filter(|at| !at.lost && acts(scenario, *at))
        .collect();
    // Start-up is sampled only where there is nothing else.
    if steps.iter().any(|at| at.position >= WARMUP_ITERATIONS) {
        steps.retain(|at| at.position >= WARMUP_ITERATIONS);
    }
    let every = steps.len().div_ceil(SAMPLED_STEPS).max(1);
    steps.into_iter().step_by(every).collect()
}

/// The places of the network's faults: of each the names of the nodes any of which is right, in the order of the
/// faults, each place once.
pub fn network_places(scenario: &Scenario) -> Vec<Vec<String>> {
    let cards = scenario.slow_send.iter().chain(&scenario.slow_recv);
    let links = scenario.slow_links.iter().chain(&scenario.slow_links_one_way);
    let nodes = scenario.slow_node_networks.iter();
    let ends = (cards.map(|f| vec![f.rank]))
        .chain(links.map(|l| vec![l.a, l.b]))
        .chain(nodes.map(|f| vec![scenario.ranks_of_node(f.node).start]));
    let mut places: Vec<Vec<String>> = Vec::new();
    for ranks in ends {
        let nodes: BTreeSet<usize> = ranks.into_iter().map(|rank| scenario.node(rank)).collect();
        let names = nodes
            .into_iter()
            .map(|node| scenario.node_name(node * scenario.ranks_per_node))
            .collect();
        if !places.contains(&names) {
            places.push(names);
        }
    }
    places
}

#[cfg(test)]
mod tests {
    use super::super::faults::*;
    use super::*;

    fn with(change: impl FnOnce(&mut Scenario)) -> Scenario {
        let mut scenario = Scenario::default();
        change(&mut scenario);
        scenario
    }

    fn costs(scenario: &Scenario) -> Vec<f64> {
        let world = World::new(scenario).unwrap();
        culprits(scenario, &world).iter().map(|c| c.seconds).collect()
    }

    #[test]
    fn a_single_sort_needs_no_cost() {
        let scenario = with(|s| s.slow_send = vec![RankFactor { rank: 3, factor: 8.0 }]);
        assert_eq!(costs(&scenario), [0.0]);
    }

    #[test]
    fn costs_are_what_mending_saves() {
        let scenario = with(|s| {
            s.slow_ranks = vec![RankFactor { rank: 3, factor: 1.5 }];
            s.slow_links = vec!["20-28:4".parse().unwrap()];
        });
        let costs = costs(&scenario);
        // Eight microbatches of 0.6 s, half as much again, less what the first stage waited before; transfers hardly show.
        assert!((1.2..2.4).contains(&costs[0]), "{costs:?}");
        assert!((0.0..0.5).contains(&costs[1]), "{costs:?}");
    }

    #[test]
    fn faults_that_never_act_cost_nothing() {
        let scenario = with(|s| {
            s.slow_ranks = vec![RankFactor { rank: 3, factor: 1.5 }];
            s.slow_send = vec![RankFactor { rank: 9, factor: 8.0 }];
            s.flaky = Some(0.0);
        });
        assert_eq!(costs(&scenario), [0.0, 0.0]);
    }

    #[test]
    fn places_are_nodes_and_links_have_two() {
        let scenario = with(|s| {
            s.slow_send = vec![RankFactor { rank: 3, factor: 8.0 }];
            s.slow_recv = vec![RankFactor { rank: 3, factor: 8.0 }];
            s.slow_links_one_way = vec!["17-25:9".parse().unwrap()];
            s.slow_node_networks = vec![NodeFactor { node: 1, factor: 5.0 }];
        });
        let places = network_places(&scenario);
        assert_eq!(
            places,
            [vec!["gpu-000"], vec!["gpu-002", "gpu-003"], vec!["gpu-001"]]
                .map(|names| names.into_iter().map(str::to_owned).collect::<Vec<_>>())
        );
    }
}
