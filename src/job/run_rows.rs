//! What belongs to the analysed runs of all that carries their job id: each rank's node, and its group positions.
//!
//! A restart may move a rank to another node, and another job may have had the same id before.

use std::collections::BTreeSet;

use super::collect::Collector;
use super::collected_rows::GroupRow;
use crate::contract::metrics::UNKNOWN_NODE;
use crate::source::Micros;

/// The node of each rank: that of its latest row in a kept run.
pub(super) fn nodes(ranks: &[u32], collected: &Collector<'_>, kept: &BTreeSet<u32>) -> Vec<String> {
    let names = &collected.node_names;
    let name = |node: Option<u32>| node.map_or(UNKNOWN_NODE, |node| names.names[node as usize].as_str());
    let nodes = collected.seen.nodes(ranks, kept, names).into_iter();
    nodes.map(|node| name(node).to_owned()).collect()
}

/// The (group, rank, position) rows that describe the kept runs.
///
/// A restart need not write them again, so where the kept runs have none those of the others serve. Positions of ranks
/// that wrote no timer count when they are as new as those of the ranks that did: an earlier, larger job of the same
/// id must not lend its size.
pub(super) fn positions(
    ranks: &[u32],
    seen: &[GroupRow],
    groups: &[String],
    kept: &BTreeSet<u32>,
) -> Vec<(String, u32, u32)> {
    let any_kept = seen.iter().any(|row| kept.contains(&row.run));
    let mut latest: Vec<(&str, u32, Micros, u32)> = seen
        .iter()
        .filter(|row| !any_kept || kept.contains(&row.run))
        .map(|row| (groups[row.group as usize].as_str(), row.rank, row.time, row.position))
        .collect();
    // From the latest to the earliest of a group's rank, of which the first is kept.
    latest.sort_unstable_by(|a, b| b.cmp(a));
    latest.dedup_by_key(|row| (row.0, row.1));
    latest.reverse();
    let here = |rank: u32| ranks.binary_search(&rank).is_ok();
    let of_ranks_here = latest.iter().filter(|(_, rank, ..)| here(*rank));
    let oldest = of_ranks_here.map(|&(_, _, time, _)| time).min();
    let current = |rank: u32, time: Micros| here(rank) || oldest.is_none_or(|oldest| oldest <= time);
    latest
        .into_iter()
        .filter(|&(_, rank, time, _)| current(rank, time))
        .map(|(group, rank, _, position)| (group.to_owned(), rank, position))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(run: u32, rank: u32, time: Micros, position: u32) -> GroupRow {
        GroupRow {
            group: 0,
            rank,
            run,
            time,
            position,
        }
    }

    #[test]
    fn an_earlier_job_lends_no_ranks() {
        let groups = ["pp".to_owned()];
        let positions = |seen: &Vec<GroupRow>, kept: &BTreeSet<u32>| positions(&[0, 1], seen, &groups, kept);
        // The job before had four ranks in four stages, this one has two in one.
        let seen = (0..4)
            .map(|rank| row(0, rank, 1, rank))
            .chain((0..2).map(|rank| row(1, rank, 9, 0)))
            .collect();
        let expected = [("pp".to_owned(), 0, 0), ("pp".to_owned(), 1, 0)];
        assert_eq!(positions(&seen, &[1].into()), expected, "told by their runs");
        let nameless = (0..2)
            .map(|rank| row(0, rank, 9, 0))
            .chain((2..4).map(|rank| row(0, rank, 1, rank)))
            .collect();
        assert_eq!(positions(&nameless, &[0].into()), expected, "told by their times");
        // A window of some ranks of the job: the others were written with them.
        let partial = (0..4).map(|rank| row(0, rank, 9, rank)).collect();
        assert_eq!(positions(&partial, &[0].into()).len(), 4);
    }

    #[test]
    fn a_restart_that_wrote_none_has_those_of_the_first_run() {
        let positions = positions(&[3], &[row(0, 3, 1, 2)], &["pp".to_owned()], &[7].into());
        assert_eq!(positions, [("pp".to_owned(), 3, 2)]);
    }
}
