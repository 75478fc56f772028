//! What belongs to the analysed runs of all that carries their job id: each rank's node, and its group positions.
//!
//! A restart may move a rank to another node, and another job may have had the same id before.

use std::collections::{BTreeMap, BTreeSet};

use super::kept::{Latest, TimerRows};
use crate::contract::metrics::UNKNOWN_NODE;
use crate::source::Micros;

/// The runs of which rows are kept.
pub(super) fn kept_runs(chunks: &[TimerRows]) -> BTreeSet<u32> {
    let mut runs = BTreeSet::new();
    for rows in chunks {
        let mut above = None;
        for &run in &rows.run {
            if above != Some(run) {
                runs.insert(run);
                above = Some(run);
            }
        }
    }
    runs
}

/// The node of each rank: that of its latest row in a kept run.
pub(super) fn nodes(ranks: &[u32], seen: &Latest<(u32, u32), String>, kept: &BTreeSet<u32>) -> Vec<String> {
    let mut latest = BTreeMap::<u32, (Micros, &str)>::new();
    for ((run, rank), (time, node)) in seen {
        let candidate = (*time, node.as_str());
        if kept.contains(run) && latest.get(rank).is_none_or(|&known| known < candidate) {
            latest.insert(*rank, candidate);
        }
    }
    let node = |rank| latest.get(rank).map_or(UNKNOWN_NODE, |&(_, node)| node).to_owned();
    ranks.iter().map(node).collect()
}

/// The (group, rank, position) rows that describe the kept runs.
///
/// A restart need not write them again, so where the kept runs have none those of the others serve. Positions of ranks
/// that wrote no timer count when they are as new as those of the ranks that did: an earlier, larger job of the same
/// id must not lend its size.
pub(super) fn positions(
    ranks: &[u32],
    seen: &Latest<(u32, String, u32), u32>,
    kept: &BTreeSet<u32>,
) -> Vec<(String, u32, u32)> {
    let any_kept = seen.keys().any(|(run, ..)| kept.contains(run));
    let mut latest = BTreeMap::<(&str, u32), (Micros, u32)>::new();
    for ((run, group, rank), &(time, position)) in seen {
        if any_kept && !kept.contains(run) {
            continue;
        }
        let known = latest.entry((group, *rank)).or_insert((time, position));
        *known = (*known).max((time, position));
    }
    let here = |rank: u32| ranks.binary_search(&rank).is_ok();
    let oldest = latest
        .iter()
        .filter(|((_, rank), _)| here(*rank))
        .map(|(_, &(time, _))| time)
        .min();
    let current = |rank: u32, time: Micros| here(rank) || oldest.is_none_or(|oldest| oldest <= time);
    latest
        .into_iter()
        .filter(|&((_, rank), (time, _))| current(rank, time))
        .map(|((group, rank), (_, position))| (group.to_owned(), rank, position))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_rank_is_where_its_kept_run_had_it() {
        let seen = [((0, 5), (1, "old".to_owned())), ((1, 5), (9, "new".to_owned()))].into();
        assert_eq!(nodes(&[5, 6], &seen, &[0].into()), ["old", UNKNOWN_NODE]);
        assert_eq!(nodes(&[5], &seen, &[0, 1].into()), ["new"]);
    }

    #[test]
    fn an_earlier_job_lends_no_ranks() {
        let row = |run: u32, rank: u32, time: Micros, position: u32| ((run, "pp".to_owned(), rank), (time, position));
        // The job before had four ranks in four stages, this one has two in one.
        let seen = (0..4)
            .map(|rank| row(0, rank, 1, rank))
            .chain((0..2).map(|rank| row(1, rank, 9, 0)))
            .collect();
        let expected = [("pp".to_owned(), 0, 0), ("pp".to_owned(), 1, 0)];
        assert_eq!(positions(&[0, 1], &seen, &[1].into()), expected, "told by their runs");
        let nameless = (0..2)
            .map(|rank| row(0, rank, 9, 0))
            .chain((2..4).map(|rank| row(0, rank, 1, rank)))
            .collect();
        assert_eq!(
            positions(&[0, 1], &nameless, &[0].into()),
            expected,
            "told by their times"
        );
        // A window of some ranks of the job: the others were written with them.
        let partial = (0..4).map(|rank| row(0, rank, 9, rank)).collect();
        assert_eq!(positions(&[0, 1], &partial, &[0].into()).len(), 4);
    }

    #[test]
    fn a_restart_that_wrote_none_has_those_of_the_first_run() {
        let seen = [((0, "pp".to_owned(), 3), (1, 2))].into();
        assert_eq!(positions(&[3], &seen, &[7].into()), [("pp".to_owned(), 3, 2)]);
    }
}
