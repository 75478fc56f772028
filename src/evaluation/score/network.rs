//! What an answer is worth where the network is at fault, and where it is blamed though it is sound.

use std::collections::BTreeSet;

use schemars::JsonSchema;
use serde::Serialize;

use super::judge::Answer;
use super::truth::Truth;
use crate::verdict::Cause;

/// An answer to a job whose network is at fault.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq, Serialize, JsonSchema)]
pub struct NetworkMarks {
    /// Faults of the network, each at a place of its own.
    pub faults: usize,
    /// Those of which a node is named.
    pub named: usize,
    /// Nodes that are named and lie beyond both ends of the links that the faults show at.
    pub beyond: usize,
    /// Nodes that are named and are not at fault: those beyond, and the sound ends of the links.
    pub sound_nodes: usize,
    /// Ranks that are named as slow themselves and are not.
    pub accused: usize,
}

impl NetworkMarks {
    /// Marks an answer; `node_of` gives the node of a rank of the job.
    pub(super) fn new(truth: &Truth, answer: &Answer, node_of: &impl Fn(u32) -> Option<String>) -> Self {
        let nodes = |ranks: &[u32]| -> BTreeSet<String> { ranks.iter().copied().filter_map(node_of).collect() };
        let near = nodes(&truth.near());
        // Nodes of ranks that are slow themselves are named for that.
        let others = nodes(truth.alike());
        let beyond = |node: &&String| !near.contains(*node) && !others.contains(*node);
        let sound = |node: &&String| !truth.slow_nodes.contains(*node) && !others.contains(*node);
        let places = truth.places();
        let is_named = |place: &&Vec<String>| place.iter().any(|node| answer.nodes.contains(node));
        Self {
            faults: places.len(),
            named: places.iter().filter(is_named).count(),
            beyond: match &truth.network_nodes {
                // The label of several links does not hold their other ends.
                Some(nodes) if !nodes.is_empty() => 0,
                Some(_) => answer.nodes.len(),
                None => answer.nodes.iter().filter(beyond).count(),
            },
            sound_nodes: match &truth.network_nodes {
                Some(nodes) => answer.nodes.iter().filter(|node| !nodes.contains(node)).count(),
                None => answer.nodes.iter().filter(sound).count(),
            },
            accused: answer.ranks.iter().filter(|rank| !truth.alike().contains(rank)).count(),
        }
    }

    /// The marks of a job that got no answer.
    pub(super) fn of_failure(truth: &Truth) -> Self {
        Self {
            faults: truth.places().len(),
            ..Self::default()
        }
    }

    /// Whether a node of every fault is named.
    #[must_use]
    pub fn right(&self) -> bool {
        self.named == self.faults
    }
}

/// Whether an answer blames the network.
#[must_use]
pub fn blames_network(answer: &Answer) -> bool {
    answer.cause == Cause::Network
}

/// Sums over jobs whose network is at fault, in jobs.
#[derive(Debug, Default, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct NetworkTally {
    /// The kind; `total` for all.
    pub kind: String,
    /// All of them.
    pub jobs: usize,
    /// A node of every fault is named.
    pub right: usize,
    /// No node is named beyond both ends of the faulty links.
    pub within: usize,
    /// No node is named that is not at fault.
    pub only: usize,
    /// No rank is named as slow itself that is not.
    pub spared: usize,
    /// The cause is right.
    pub cause: usize,
}

impl NetworkTally {
    /// No jobs yet.
    pub(super) fn new(kind: &str) -> Self {
        Self {
            kind: kind.to_owned(),
            ..Self::default()
        }
    }

    /// One more job; `cause` says whether its cause is right.
    pub(super) fn add(&mut self, marks: NetworkMarks, cause: bool) {
        self.jobs += 1;
        // Where nobody can be named, the cause is all there is to get right.
        self.right += usize::from(marks.right() && (marks.faults > 0 || cause));
        self.within += usize::from(marks.beyond == 0);
        self.only += usize::from(marks.sound_nodes == 0);
        self.spared += usize::from(marks.accused == 0);
        self.cause += usize::from(cause);
    }
}

/// Jobs whose network is sound.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq, Serialize, JsonSchema)]
pub struct SoundShare {
    /// How many there are.
    pub jobs: usize,
    /// In how many of them the network is blamed.
    pub blamed: usize,
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A slow card on rank 5, and rank 14 that computes slowly; two ranks a node, pipeline neighbours differ by 4.
    fn truth() -> Truth {
        serde_json::from_str(
            r#"{"kind":"x","cause":"compute","tp":1,"dp":4,"pp":4,"order":"tp-dp-pp","slow_ranks":[14],"same_as":[14],
            "network_ranks":[5],"network_places":[["n2"]],"slow_nodes":["n2","n7"]}"#,
        )
        .expect("a truth")
    }

    fn marks(truth: &Truth, ranks: &[u32], nodes: &[&str]) -> NetworkMarks {
        let answer = Answer {
            ranks: ranks.to_vec(),
            nodes: nodes.iter().map(|&node| node.to_owned()).collect(),
            cause: Cause::Compute,
        };
        NetworkMarks::new(truth, &answer, &|rank| Some(format!("n{}", rank / 2)))
    }

    #[test]
    fn both_faults_count_beside_each_other() {
        let marks = |ranks: &[u32], nodes: &[&str]| {
            let marks = marks(&truth(), ranks, nodes);
            (marks.right(), marks.beyond, marks.sound_nodes, marks.accused)
        };
        assert_eq!(marks(&[14], &["n2", "n7"]), (true, 0, 0, 0));
        assert_eq!(marks(&[14], &["n7"]), (false, 0, 0, 0));
        // n4 holds the other end of a link of rank 5.
        assert_eq!(marks(&[14], &["n2", "n4", "n7"]), (true, 0, 1, 0));
        assert_eq!(marks(&[5, 14], &["n2", "n6"]), (true, 1, 1, 1));
    }

    #[test]
    fn every_place_asks_for_a_node() {
        let two = Truth {
            network_places: vec![vec!["n2".to_owned()], vec!["n4".to_owned(), "n6".to_owned()]],
            ..truth()
        };
        let named = |nodes: &[&str]| marks(&two, &[], nodes).named;
        assert_eq!((named(&["n2"]), named(&["n2", "n6"]), named(&["n4", "n6"])), (1, 2, 1));
        assert_eq!(NetworkMarks::of_failure(&two).faults, 2);
    }
}
