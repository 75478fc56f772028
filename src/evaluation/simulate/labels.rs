//! What is true about a simulated job.

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};

use super::conditions::Guilt;
use super::culprits::{Culprits, Fault, culprits, network_places};
use super::error::ScenarioError;
use super::kinds::kind;
use super::scenario::Scenario;
use super::world::World;

/// The truth about a job, the value of its entry in `labels.json`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Label {
    /// Kind of job, e.g. `gpu-slow`.
    pub kind: String,
    /// Tensor-parallel size.
    pub tp: usize,
    /// Pipeline-parallel size.
    pub pp: usize,
    /// Data-parallel size.
    pub dp: usize,
    /// Context-parallel size.
    pub cp: usize,
    /// Expert-parallel size.
    pub ep: usize,
    /// Virtual stages a rank; above 1 the schedule is interleaved.
    #[serde(default = "one", skip_serializing_if = "is_one")]
    pub virtual_stages: usize,
    /// Order of the axes in the rank number.
    pub order: String,
    /// Ranks with a lasting fault in the run that counts, ascending; without those of `network_ranks`.
    pub slow_ranks: Vec<usize>,
    /// Largest factor of these faults; `None` without any (and for loaders, which add seconds).
    pub strength: Option<f64>,
    /// Nodes of the ranks with a fault, those of `network_ranks` included.
    pub slow_nodes: Vec<String>,
    /// The cause that costs the job most: `none`, `compute`, `network`, `data-loading`,
    /// `stage-imbalance` or `data-imbalance`.
    pub cause: String,
    /// Stages with more work than the others.
    pub slow_stages: Vec<usize>,
    /// Ranks that the timers cannot tell from the slow ones, these included.
    pub same_as: Vec<usize>,
    /// Ranks whose network is at fault beside others that are slow themselves; where the network alone is at fault,
    /// its ranks are the `slow_ranks`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub network_ranks: Vec<usize>,
    /// The places of several faults of the network, or of one beside another fault: of each the nodes any of which is
    /// right. Empty: any of `slow_nodes` is.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub network_places: Vec<Vec<String>>,
    /// What each cause costs a step in which its faults act, seconds; only where several causes have faults.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub cost_seconds: BTreeMap<String, f64>,
    /// Both ends of the slow links, the sending one first where only one way is slow.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub slow_links: Vec<[usize; 2]>,
    /// What a verdict's status should be: `fault`, `imbalance` or `healthy`.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub status: String,
    /// Nodes that may be named beside the slow ones: those of ranks that the timers can't tell from the slow ones.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub also_nodes: Vec<String>,
    /// The nodes that a fault of the network must name; empty where its cause can be told and no member can.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub network_nodes: Option<Vec<String>>,
    /// Rows of every so many iterations only.
    #[serde(default = "one_iteration", skip_serializing_if = "is_one_iteration")]
    pub every: u32,
    /// Parts into which the distributed optimizer splits each data group.
    #[serde(default = "one", skip_serializing_if = "is_one")]
    pub optimizer_instances: usize,
    /// Largest number of seconds that a slow loader adds to a microbatch.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub loader_seconds: Option<f64>,
    /// First iteration with the faults.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub onset: Option<u32>,
    /// Last iteration with the faults.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub until: Option<u32>,
    /// Share of steps with the faults.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub flaky: Option<f64>,
    /// Iterations with a stall.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub stalls: Vec<u32>,
    /// First iteration that ran twice.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rerun_from: Option<u32>,
    /// Ranks that were slow only in the run that was lost: to name one is wrong.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub lost_ranks: Vec<usize>,
    /// Microbatches a step.
    pub microbatches: usize,
    /// Number of iterations.
    pub iterations: u32,
    /// First iteration.
    pub first_iteration: u32,
    /// Seed.
    pub seed: u64,
}

fn one() -> usize {
    1
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes a reference")]
fn is_one(value: &usize) -> bool {
    *value == 1
}

fn one_iteration() -> u32 {
    1
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes a reference")]
fn is_one_iteration(value: &u32) -> bool {
    *value == 1
}

impl Label {
    /// The label of a scenario.
    ///
    /// # Errors
    /// As [`Scenario::validate`].
    pub fn of(scenario: &Scenario) -> Result<Self, ScenarioError> {
        Ok(Self::with_world(scenario, &World::new(scenario)?))
    }

    pub(super) fn with_world(scenario: &Scenario, world: &World) -> Self {
        let culprits = culprits(scenario, world);
        let ranks = |holds: &dyn Fn(Fault) -> bool| -> BTreeSet<usize> {
            let some = culprits.iter().filter(|c| holds(c.fault));
            some.flat_map(|c| c.ranks.iter().copied()).collect()
        };
        let all = ranks(&|_| true);
        // Who computes slowly is named by rank, whose network is slow by node: beside each other they stand apart.
        let mixed = culprits.len() > 1 && scenario.has_network_fault();
        let slow = ranks(&|fault| !mixed || fault != Fault::Network);
        let network = ranks(&|fault| mixed && fault == Fault::Network);
        let guilts: Vec<Guilt> = scenario.conditions.iter().map(|c| c.guilt(scenario)).collect();
        let cause = cause(scenario, &culprits, &guilts);
        let named = |ranks: &BTreeSet<usize>| -> Vec<String> {
            let nodes: BTreeSet<(usize, String)> = (ranks.iter())
                .map(|rank| (scenario.node(*rank), scenario.last_node_name(*rank)))
                .collect();
            nodes.into_iter().map(|(_, name)| name).collect()
        };
        let nodes = named(&all);
        let same_as = same_as(scenario, world, &culprits, mixed);
        // Where the fault is anywhere in a group, the cause is all that can be told.
        let nowhere = culprits.is_empty() && guilts.iter().any(|guilt| guilt.fault == Some(Fault::Network));
        let places = network_places(scenario);
        let links = scenario.slow_links.iter().chain(&scenario.slow_links_one_way);
        let stages: BTreeSet<usize> = scenario.heavy_stages.iter().map(|h| h.stage).collect();
        Self {
            kind: scenario.kind.clone().unwrap_or_else(|| kind(scenario).to_owned()),
            tp: scenario.tp,
            pp: scenario.pp,
            dp: scenario.dp,
            cp: scenario.cp,
            ep: scenario.ep,
            virtual_stages: scenario.virtual_stages,
            order: scenario.order.clone(),
            strength: strength(scenario, &guilts),
            status: status(cause, &culprits, nowhere).to_owned(),
            also_nodes: (named(&same_as).into_iter())
                .filter(|node| !nodes.contains(node))
                .collect(),
            slow_nodes: nodes,
            network_nodes: nowhere.then(Vec::new),
            every: scenario.every,
            optimizer_instances: scenario.optimizer_instances,
            cause: cause.to_owned(),
            slow_stages: stages.into_iter().collect(),
            same_as: same_as.into_iter().collect(),
            lost_ranks: (scenario.rerun.and_then(|rerun| rerun.lost).into_iter())
                .map(|lost| lost.rank)
                .filter(|rank| !slow.contains(rank))
                .collect(),
            slow_ranks: slow.into_iter().collect(),
            network_ranks: network.into_iter().collect(),
            network_places: if mixed || places.len() > 1 { places } else { Vec::new() },
            cost_seconds: (culprits.iter().filter(|_| culprits.len() > 1))
                .map(|c| (c.fault.cause().to_owned(), (c.seconds * 1e6).round() / 1e6))
                .collect(),
            slow_links: links.map(|l| [l.a, l.b]).collect(),
            loader_seconds: scenario.slow_loaders.iter().map(|l| l.seconds).reduce(f64::max),
            onset: scenario.onset,
            until: scenario.until,
            flaky: scenario.flaky,
            stalls: scenario.stalls.iter().map(|s| s.iteration).collect(),
            rerun_from: scenario.rerun.map(|r| r.from),
            microbatches: scenario.microbatches,
            iterations: scenario.iterations,
            first_iteration: scenario.first_iteration,
            seed: scenario.seed,
        }
    }
}

fn strength(scenario: &Scenario, guilts: &[Guilt]) -> Option<f64> {
    (scenario.slow_ranks.iter().map(|f| f.factor))
        .chain(scenario.slow_nodes.iter().map(|f| f.factor))
        .chain(scenario.slow_send.iter().map(|f| f.factor))
        .chain(scenario.slow_recv.iter().map(|f| f.factor))
        .chain(scenario.slow_links.iter().map(|f| f.factor))
        .chain(scenario.slow_links_one_way.iter().map(|f| f.factor))
        .chain(scenario.slow_node_networks.iter().map(|f| f.factor))
        .chain(guilts.iter().filter_map(|guilt| guilt.strength))
        .reduce(f64::max)
}

/// A fault goes before an imbalance: an imbalance is the job's design, a fault can be mended.
fn cause(scenario: &Scenario, culprits: &[Culprits], guilts: &[Guilt]) -> &'static str {
    let worst = culprits.iter().max_by(|a, b| a.seconds.total_cmp(&b.seconds));
    if let Some(worst) = worst {
        worst.fault.cause()
    } else if let Some(fault) = guilts.iter().find_map(|guilt| guilt.fault) {
        fault.cause()
    } else if scenario.heavy_stages.iter().any(|h| h.factor > 1.0) {
        "stage-imbalance"
    } else if scenario.sequence_spread > 0.0 || scenario.expert_spread > 0.0 {
        "data-imbalance"
    } else {
        "none"
    }
}

/// Time that is lost to slow loading of everybody has a cause and nobody to blame, as an imbalance has.
fn status(cause: &str, culprits: &[Culprits], nowhere: bool) -> &'static str {
    if !culprits.is_empty() || nowhere {
        "fault"
    } else if cause == "none" {
        "healthy"
    } else {
        "imbalance"
    }
}

fn same_as(scenario: &Scenario, world: &World, culprits: &[Culprits], mixed: bool) -> BTreeSet<usize> {
    let mut same = BTreeSet::new();
    for culprit in culprits.iter().filter(|c| !mixed || c.fault != Fault::Network) {
        for &rank in &culprit.ranks {
            same.insert(rank);
            match culprit.fault {
                // Without a timer of their own, ranks that leave passes together look alike.
                Fault::Compute if !scenario.qkv => {
                    let group = world.lockstep.iter().find(|group| group.contains(&rank));
                    same.extend(group.into_iter().flatten());
                }
                // Peers wait for the loader's broadcast inside the same timer.
                Fault::Loading => {
                    let peers = world.loader.iter().enumerate();
                    same.extend(peers.filter(|(_, from)| **from == rank).map(|(r, _)| r));
                }
                // Without a pipeline only the collectives show it, and they end for all at once.
                Fault::Network if scenario.pp == 1 => {
                    let group = world.data_groups.iter().find(|group| group.contains(&rank));
                    same.extend(group.into_iter().flatten());
                }
                _ => {}
            }
        }
    }
    same
}

#[cfg(test)]
mod tests {
    use super::super::faults::*;
    use super::*;

    fn label(change: impl FnOnce(&mut Scenario)) -> Label {
        let mut scenario = Scenario::default();
        change(&mut scenario);
        Label::of(&scenario).unwrap()
    }

    #[test]
    fn healthy() {
        let label = label(|_| ());
        assert_eq!((label.kind.as_str(), label.cause.as_str()), ("healthy", "none"));
        assert!(label.slow_ranks.is_empty() && label.slow_nodes.is_empty());
        assert_eq!(label.strength, None);
    }

    #[test]
    fn a_slow_rank_and_its_peers() {
        let rank = RankFactor { rank: 13, factor: 1.35 };
        let own = label(|s| s.slow_ranks = vec![rank]);
        assert_eq!(own.same_as, [13]);
        assert_eq!(own.slow_nodes, ["gpu-001"]);
        assert_eq!((own.cause.as_str(), own.strength), ("compute", Some(1.35)));
        let shared = label(|s| {
            s.slow_ranks = vec![rank];
            s.qkv = false;
        });
        assert_eq!(shared.same_as, [12, 13]);
    }

    #[test]
    fn the_costlier_cause_wins() {
        let rank = |rank, factor| RankFactor { rank, factor };
        let label = label(|s| {
            s.slow_ranks = vec![rank(1, 1.02)];
            s.slow_send = vec![rank(9, 30.0)];
        });
        assert_eq!(label.cause, "network");
        assert_eq!((label.slow_ranks, label.same_as), (vec![1], vec![1]));
        assert_eq!((label.network_ranks, label.slow_nodes.len()), (vec![9], 2));
        assert_eq!(label.network_places, [["gpu-001"]]);
        assert!(label.cost_seconds["network"] > label.cost_seconds["compute"]);
    }

    #[test]
    fn the_network_alone_stands_with_its_ranks_and_all_its_places() {
        let node = |node| NodeFactor { node, factor: 8.0 };
        let one = label(|s| s.slow_node_networks = vec![node(1)]);
        assert_eq!((one.kind.as_str(), one.cause.as_str()), ("node-network", "network"));
        assert_eq!(one.slow_ranks, (8..16).collect::<Vec<_>>());
        assert!(one.network_ranks.is_empty() && one.network_places.is_empty() && one.cost_seconds.is_empty());
        let two = label(|s| s.slow_node_networks = vec![node(1), node(3)]);
        assert_eq!(two.network_places, [["gpu-001"], ["gpu-003"]]);
    }

    #[test]
    fn slow_nodes_have_a_kind_of_their_own() {
        assert_eq!(
            label(|s| s.slow_nodes = vec![NodeFactor { node: 1, factor: 1.4 }]).kind,
            "node-slow"
        );
    }

    #[test]
    fn the_lost_runs_rank_is_noted_and_not_accused() {
        let rank = |rank| RankFactor { rank, factor: 1.35 };
        let lost = |rank| RankFactor { rank, factor: 2.0 };
        let rerun = |rank| {
            let lost = Some(lost(rank));
            Some(Rerun { from: 30, lost })
        };
        let mended = label(|s| s.rerun = rerun(5));
        assert_eq!(
            (mended.cause.as_str(), mended.lost_ranks.as_slice()),
            ("none", &[5][..])
        );
        assert!(mended.slow_ranks.is_empty());
        let other = label(|s| {
            s.slow_ranks = vec![rank(13)];
            s.rerun = rerun(5);
        });
        assert_eq!((other.slow_ranks, other.lost_ranks), (vec![13], vec![5]));
        let same = label(|s| {
            s.slow_ranks = vec![rank(13)];
            s.rerun = rerun(13);
        });
        assert!(same.lost_ranks.is_empty());
    }

    #[test]
    fn imbalances_accuse_nobody() {
        let label = label(|s| s.heavy_stages = vec![StageFactor { stage: 3, factor: 1.6 }]);
        assert_eq!(label.cause, "stage-imbalance");
        assert_eq!(label.slow_stages, [3]);
        assert!(label.slow_ranks.is_empty());
    }
}
