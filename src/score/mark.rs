//! One answer against the truth.

use std::collections::BTreeSet;

use serde::Serialize;

use super::judge::Answer;
use super::truth::Truth;
use crate::rules::Cause;

/// What an answer is worth.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct Marks {
    /// Slow ranks that were named; of a network fault 1 when its node was.
    pub tp: usize,
    /// Slow ranks that were not.
    #[serde(rename = "fn")]
    pub missed: usize,
    /// Ranks, of a network fault nodes, that were named and are not slow.
    pub fp: usize,
    /// Whether nothing is missing and nothing too much.
    pub exact: bool,
    /// Whether the cause is right.
    pub cause: bool,
}

impl Marks {
    /// The marks of a job that got no answer.
    #[must_use]
    pub fn of_failure(truth: Option<&Truth>) -> Self {
        let missed = truth.map_or(0, |truth| if is_network(truth) { 1 } else { truth.slow_ranks.len() });
        Self {
            missed,
            ..Self::default()
        }
    }
}

/// Marks an answer; `node_of` gives the node of a rank of the job.
///
/// Ranks count. Naming any of the ranks that can't be told from the slow ones is right, naming others is not. A network
/// fault has two ends that timers hardly tell apart: its node must be named, and none but those of its neighbours in
/// the pipeline.
#[must_use]
pub fn mark(truth: &Truth, answer: &Answer, node_of: impl Fn(u32) -> Option<String>) -> Marks {
    let cause = answer.cause.name() == truth.cause;
    if is_network(truth) {
        let near: BTreeSet<String> = truth.near().into_iter().filter_map(node_of).collect();
        let hit = answer.nodes.iter().any(|node| truth.slow_nodes.contains(node));
        let beyond = answer.nodes.iter().filter(|node| !near.contains(*node)).count();
        return Marks {
            tp: hit.into(),
            missed: (!hit).into(),
            fp: beyond,
            exact: hit && beyond == 0,
            cause,
        };
    }
    let slow: BTreeSet<u32> = truth.slow_ranks.iter().copied().collect();
    let same: BTreeSet<u32> = if truth.same_as.is_empty() {
        slow.clone()
    } else {
        truth.same_as.iter().copied().collect()
    };
    let named: BTreeSet<u32> = answer.ranks.iter().copied().collect();
    let hits = named.intersection(&slow).count();
    let alike = !named.is_disjoint(&same);
    let tp = if hits > 0 { hits } else { alike.into() };
    let missed = if same == slow || !alike {
        slow.difference(&named).count()
    } else {
        0
    };
    let fp = named.difference(&same).count();
    Marks {
        tp,
        missed,
        fp,
        exact: missed == 0 && fp == 0,
        cause,
    }
}

fn is_network(truth: &Truth) -> bool {
    truth.cause == Cause::Network.name()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn truth(slow: &[u32], same: &[u32], cause: &str) -> Truth {
        Truth {
            slow_ranks: slow.to_vec(),
            same_as: same.to_vec(),
            slow_nodes: slow.iter().filter_map(|&rank| node(rank)).collect(),
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
        assert_eq!(marks(&two, &[3, 9]), (1, 1, 1, false));
        assert_eq!(marks(&two, &[]), (0, 2, 0, false));
        let healthy = truth(&[], &[], "none");
        assert_eq!(marks(&healthy, &[]), (0, 0, 0, true));
        assert_eq!(marks(&healthy, &[1, 2]), (0, 0, 2, false));
    }

    #[test]
    fn ranks_that_look_alike_are_as_right() {
        let group = truth(&[5], &[4, 5, 6, 7], "compute");
        assert_eq!(marks(&group, &[5]), (1, 0, 0, true));
        assert_eq!(marks(&group, &[6]), (1, 0, 0, true));
        assert_eq!(marks(&group, &[4, 5, 6, 7]), (1, 0, 0, true));
        assert_eq!(marks(&group, &[6, 8]), (1, 0, 1, false));
        assert_eq!(marks(&group, &[8]), (0, 1, 1, false));
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
