//! Ranks that a restart moved to another node: where they were, and when.

use std::collections::{BTreeMap, BTreeSet};

use schemars::JsonSchema;
use serde::Serialize;

use super::Job;
use super::kept::Latest;
use super::runs::Runs;
use crate::contract::metrics::UNKNOWN_NODE;

/// A rank that stood on another node up to a restart.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Move {
    /// The rank.
    pub rank: u32,
    /// The node that it left.
    pub from: String,
    /// First iteration of the run in which it stood on the next one.
    pub iteration: i64,
}

/// The moves between the kept runs, by rank and iteration.
pub(super) fn moves(ranks: &[u32], seen: &Latest<(u32, u32), String>, kept: &BTreeSet<u32>, runs: &Runs) -> Vec<Move> {
    // (rank, place of the run in the order) -> node
    let mut stood = BTreeMap::<(u32, usize), &str>::new();
    for ((run, rank), (_, node)) in seen {
        let order = runs.order.get(*run as usize).copied().flatten();
        if let Some(order) = order.filter(|_| kept.contains(run) && ranks.binary_search(rank).is_ok()) {
            stood.insert((*rank, order), node);
        }
    }
    let stood: Vec<(&(u32, usize), &&str)> = stood.iter().collect();
    let moved = |pair: &[(&(u32, usize), &&str)]| {
        let ((rank, _), from) = pair[0];
        let ((same, order), to) = pair[1];
        (rank == same && from != to).then(|| Move {
            rank: *rank,
            from: (*from).to_owned(),
            iteration: runs.runs[*order].first_iteration,
        })
    };
    stood.windows(2).filter_map(moved).collect()
}

impl Job {
    /// The node of a rank (position) in an iteration; `None` where it is not known.
    #[must_use]
    pub fn node_in(&self, rank: usize, iteration: i64) -> Option<&str> {
        let number = self.ranks[rank];
        let from = self
            .moves
            .partition_point(|known| (known.rank, known.iteration) <= (number, iteration));
        let node = match self.moves.get(from).filter(|known| known.rank == number) {
            Some(later) => &later.from,
            None => &self.nodes[rank],
        };
        Some(node.as_str()).filter(|&node| node != UNKNOWN_NODE)
    }

    /// The nodes of ranks (positions) in the columns that are set, each once, sorted. Ranks whose node is not known have
    /// none.
    #[must_use]
    pub fn nodes_in(&self, ranks: &[usize], columns: &[bool]) -> Vec<String> {
        let mut nodes = BTreeSet::new();
        for &rank in ranks {
            let moved = self
                .moves
                .binary_search_by_key(&self.ranks[rank], |known| known.rank)
                .is_ok();
            if moved {
                let there = (0..columns.len()).filter(|&column| columns[column]);
                nodes.extend(there.filter_map(|column| self.node_in(rank, self.iterations[column])));
            } else {
                nodes.extend(self.node_in(rank, i64::MAX));
            }
        }
        nodes.into_iter().map(str::to_owned).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::super::kept::RunExtent;
    use super::*;

    #[test]
    fn a_restart_that_changes_nodes_is_a_move() {
        let extent = |first_time, first_iteration| {
            Some(RunExtent {
                first_time,
                last_time: 99,
                first_iteration,
                last_iteration: 50,
            })
        };
        let runs = Runs::new(&["a".to_owned(), "b".to_owned()], &[extent(1, 0), extent(5, 20)], 0);
        let seen: Latest<(u32, u32), String> = [
            ((0, 3), (1, "old".to_owned())),
            ((1, 3), (7, "spare".to_owned())),
            ((0, 4), (1, "same".to_owned())),
            ((1, 4), (7, "same".to_owned())),
        ]
        .into_iter()
        .collect();
        let moved = moves(&[3, 4], &seen, &[0, 1].into(), &runs);
        let expected = Move {
            rank: 3,
            from: "old".to_owned(),
            iteration: 20,
        };
        assert_eq!(moved, [expected]);
        assert!(moves(&[3, 4], &seen, &[1].into(), &runs).is_empty());
    }
}
