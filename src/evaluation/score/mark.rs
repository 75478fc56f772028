//! One answer against the truth.

use std::collections::BTreeSet;

use schemars::JsonSchema;
use serde::Serialize;

use super::judge::Answer;
use super::network::{NetworkMarks, blames_network};
use super::truth::Truth;

/// What an answer is worth.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Marks {
    /// Slow ranks that were named; for each network fault 1 more when its node was.
    pub tp: usize,
    /// Slow ranks that were not.
    #[serde(rename = "fn")]
    pub missed: usize,
    /// Ranks that were named and are not slow, and nodes that were named beside the true ones.
    pub fp: usize,
    /// Whether nothing is missing and nothing too much.
    pub exact: bool,
    /// Whether the cause is right.
    pub cause: bool,
    /// Where the network is at fault, what the answer says of it.
    pub network: Option<NetworkMarks>,
    /// Whether the network is blamed although it is sound.
    pub blames_network: bool,
}

impl Marks {
    /// The marks of a job that got no answer.
    #[must_use]
    pub fn of_failure(truth: Option<&Truth>) -> Self {
        let network = truth
            .filter(|truth| truth.has_network_fault())
            .map(NetworkMarks::of_failure);
        Self {
            missed: truth.map_or(0, |truth| truth.computing().len()) + network.map_or(0, |network| network.faults),
            network,
            ..Self::default()
        }
    }
}

/// Marks an answer; `node_of` gives the node of a rank of the job.
///
/// Ranks count. Naming any of the ranks that can't be told from the slow ones is right, naming others is not. A network
/// fault has two ends that timers hardly tell apart: its node must be named, and none but those of its neighbours in
/// the pipeline. Where ranks are slow beside a network fault, both count. Where of a group's slow collective no member can
/// be told, the cause must be, and nobody may be named. Nodes that are named beside the true ones are false alarms.
#[must_use]
pub fn mark(truth: &Truth, answer: &Answer, node_of: impl Fn(u32) -> Option<String>) -> Marks {
    let mut marks = if truth.network_alone() {
        Marks::default()
    } else {
        mark_ranks(truth, answer)
    };
    if truth.has_network_fault() {
        let network = NetworkMarks::new(truth, answer, &node_of);
        marks.tp += network.named;
        marks.missed += network.faults - network.named;
        marks.fp += network.beyond;
        if truth.network_nodes.is_some() {
            marks.fp += answer.ranks.len();
        }
        marks.network = Some(network);
    } else {
        marks.fp += truth.false_nodes(&answer.nodes);
        marks.blames_network = blames_network(answer);
    }
    // Of a group of which no member can be told there is nothing to name, but the cause.
    let nowhere = truth.network_nodes.as_ref().is_some_and(Vec::is_empty);
    Marks {
        exact: marks.missed == 0 && marks.fp == 0 && (!nowhere || answer.cause.name() == truth.cause),
        cause: truth.any_cause || answer.cause.name() == truth.cause,
        ..marks
    }
}

fn mark_ranks(truth: &Truth, answer: &Answer) -> Marks {
    let slow: BTreeSet<u32> = truth.slow_ranks.iter().copied().collect();
    let same: BTreeSet<u32> = truth.alike().iter().copied().collect();
    let named: BTreeSet<u32> = answer.ranks.iter().copied().collect();
    let hits = named.intersection(&slow).count();
    let alike = !named.is_disjoint(&same);
    Marks {
        tp: if hits > 0 { hits } else { alike.into() },
        missed: if same == slow || !alike {
            slow.difference(&named).count()
        } else {
            0
        },
        fp: named.difference(&same).count(),
        ..Marks::default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::verdict::Cause;

    fn truth(slow: &[u32], same: &[u32], cause: &str) -> Truth {
        Truth {
            slow_ranks: slow.to_vec(),
            same_as: same.to_vec(),
            slow_nodes: slow.iter().filter_map(|&rank| node(rank)).collect(),
            also_nodes: same.iter().filter_map(|&rank| node(rank)).collect(),
            ..serde_json::from_str(&format!(
                r#"{{"kind":"x","cause":"{cause}","tp":1,"dp":4,"pp":4,"order":"tp-dp-pp"}}"#
            ))
            .expect("a truth")
        }
    }

    /// Two ranks a node.
    fn node(rank: u32) -> Option<String> {
        (rank < 16).then(|| format!("n{}", rank / 2))
    }

    fn marks(truth: &Truth, ranks: &[u32]) -> (usize, usize, usize, bool) {
        let nodes: BTreeSet<String> = ranks.iter().filter_map(|&rank| node(rank)).collect();
        let answer = Answer {
            ranks: ranks.to_vec(),
            nodes: nodes.into_iter().collect(),
            cause: Cause::Compute,
        };
        let marks = mark(truth, &answer, node);
        assert_eq!(marks.cause, truth.cause == "compute");
        (marks.tp, marks.missed, marks.fp, marks.exact)
    }

    #[test]
    fn ranks_are_held_against_the_slow_ones() {
        let two = truth(&[3, 7], &[3, 7], "compute");
        assert_eq!(marks(&two, &[3, 7]), (2, 0, 0, true));
        assert_eq!(marks(&two, &[3]), (1, 1, 0, false));
        // A false rank brings its node, which is as false.
        assert_eq!(marks(&two, &[3, 9]), (1, 1, 2, false));
        assert_eq!(marks(&two, &[2, 3, 7]), (2, 0, 1, false));
        assert_eq!(marks(&two, &[]), (0, 2, 0, false));
        let healthy = truth(&[], &[], "none");
        assert_eq!(marks(&healthy, &[]), (0, 0, 0, true));
        assert_eq!(marks(&healthy, &[1, 2]), (0, 0, 4, false));
    }

    fn with_nodes(truth: &Truth, ranks: &[u32], nodes: &[&str], cause: Cause) -> (usize, usize, usize, bool) {
        let answer = Answer {
            ranks: ranks.to_vec(),
            nodes: nodes.iter().map(|&node| node.to_owned()).collect(),
            cause,
        };
        let marks = mark(truth, &answer, node);
        (marks.tp, marks.missed, marks.fp, marks.exact)
    }

    #[test]
    fn a_node_beside_the_true_ones_is_a_false_alarm() {
        let one = truth(&[5], &[5], "compute");
        assert_eq!(with_nodes(&one, &[5], &["n2"], Cause::Compute), (1, 0, 0, true));
        assert_eq!(with_nodes(&one, &[5], &["n2", "n6"], Cause::Compute), (1, 0, 1, false));
        let also = Truth {
            also_nodes: vec!["n6".to_owned()],
            ..one.clone()
        };
        assert_eq!(with_nodes(&also, &[5], &["n2", "n6"], Cause::Compute), (1, 0, 0, true));
        let unjudged = Truth {
            judge_nodes: false,
            ..one.clone()
        };
        assert_eq!(with_nodes(&unjudged, &[5], &["n6"], Cause::Compute), (1, 0, 0, true));
        // A label that knows no nodes can't hold one against the answer.
        let unknown = Truth {
            slow_nodes: vec![],
            ..one
        };
        assert_eq!(with_nodes(&unknown, &[5], &["n6"], Cause::Compute), (1, 0, 0, true));
        let healthy = truth(&[], &[], "none");
        assert_eq!(with_nodes(&healthy, &[], &["n6"], Cause::None), (0, 0, 1, false));
    }

    #[test]
    fn of_a_group_only_the_cause_can_be_told() {
        let group = Truth {
            network_nodes: Some(vec![]),
            ..truth(&[], &[], "network")
        };
        assert_eq!(with_nodes(&group, &[], &[], Cause::Network), (0, 0, 0, true));
        assert_eq!(with_nodes(&group, &[], &[], Cause::None), (0, 0, 0, false));
        assert_eq!(with_nodes(&group, &[], &["n1"], Cause::Network), (0, 0, 1, false));
        assert_eq!(with_nodes(&group, &[3], &["n1"], Cause::Network), (0, 0, 2, false));
    }

    #[test]
    fn of_several_links_a_node_of_each_must_be_named() {
        let nodes = ["n1", "n4"].map(str::to_owned).to_vec();
        let two = Truth {
            network_nodes: Some(nodes),
            ..truth(&[], &[], "network")
        };
        assert_eq!(with_nodes(&two, &[], &["n1", "n4"], Cause::Network), (2, 0, 0, true));
        assert_eq!(with_nodes(&two, &[], &["n1"], Cause::Network), (1, 1, 0, false));
        // The other ends of the links may be named too.
        assert_eq!(
            with_nodes(&two, &[], &["n0", "n1", "n4"], Cause::Network),
            (2, 0, 0, true)
        );
        assert_eq!(with_nodes(&two, &[2], &["n1", "n4"], Cause::Network), (2, 0, 1, false));
    }

    #[test]
    fn ranks_that_look_alike_are_as_right() {
        let group = truth(&[5], &[4, 5, 6, 7], "compute");
        assert_eq!(marks(&group, &[5]), (1, 0, 0, true));
        assert_eq!(marks(&group, &[6]), (1, 0, 0, true));
        assert_eq!(marks(&group, &[4, 5, 6, 7]), (1, 0, 0, true));
        assert_eq!(marks(&group, &[6, 8]), (1, 0, 2, false));
        assert_eq!(marks(&group, &[8]), (0, 1, 2, false));
    }

    #[test]
    fn of_the_network_the_node_must_be_named_and_none_but_its_neighbours() {
        // Rank 5 is on n2, its neighbours 1 and 9 on n0 and n4.
        let card = truth(&[5], &[5], "network");
        assert_eq!(marks(&card, &[4]), (1, 0, 0, true));
        assert_eq!(marks(&card, &[5, 1, 9]), (1, 0, 0, true));
        assert_eq!(marks(&card, &[5, 12]), (1, 0, 1, false));
        assert_eq!(marks(&card, &[1]), (0, 1, 0, false));
        assert_eq!(marks(&card, &[]), (0, 1, 0, false));
        assert_eq!(Marks::of_failure(Some(&card)).missed, 1);
        assert!(!Marks::of_failure(None).exact);
    }
}
