//! Ranks that a restart moved to another node: where they were, and when.

use std::collections::BTreeSet;

use schemars::JsonSchema;
use serde::Serialize;

use super::collect::Collector;
use super::runs::Runs;

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
pub(super) fn moves(ranks: &[u32], collected: &Collector<'_>, kept: &BTreeSet<u32>, runs: &Runs) -> Vec<Move> {
    if kept.len() < 2 {
        return Vec::new();
    }
    let order = |run: u32| runs.order.get(run as usize).copied().flatten();
    let mut in_order: Vec<(usize, u32)> = kept.iter().filter_map(|&run| Some((order(run)?, run))).collect();
    in_order.sort_unstable();
    let stood: Vec<(i64, Vec<Option<u32>>)> = in_order
        .into_iter()
        .map(|(order, run)| {
            let nodes = collected.seen.nodes(ranks, &[run].into(), &collected.node_names);
            (runs.runs[order].first_iteration, nodes)
        })
        .collect();
    between(ranks, &stood, &collected.node_names.names)
}

/// The moves of ranks whose nodes (codes of `names`) were these from these iterations on.
fn between(ranks: &[u32], stood: &[(i64, Vec<Option<u32>>)], names: &[String]) -> Vec<Move> {
    let mut moves = Vec::new();
    for (place, &rank) in ranks.iter().enumerate() {
        let mut last: Option<u32> = None;
        for (iteration, nodes) in stood {
            // A run in which a rank wrote no node moves it nowhere.
            let Some(node) = nodes[place] else {
                continue;
            };
            if let Some(from) = last.filter(|&from| from != node) {
                moves.push(Move {
                    rank,
                    from: names[from as usize].clone(),
                    iteration: *iteration,
                });
            }
            last = Some(node);
        }
    }
    moves
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_restart_that_changes_nodes_is_a_move() {
        let names = ["old".to_owned(), "spare".to_owned(), "same".to_owned()];
        let stood = [(0, vec![Some(0), Some(2), Some(0)]), (20, vec![Some(1), Some(2), None])];
        let expected = Move {
            rank: 3,
            from: "old".to_owned(),
            iteration: 20,
        };
        assert_eq!(between(&[3, 4, 5], &stood, &names), [expected]);
        assert!(between(&[3, 4, 5], &stood[..1], &names).is_empty());
    }
}
