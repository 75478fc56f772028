//! Which algorithms call which ranks slow.

use std::cmp::Reverse;

use serde::Serialize;

use super::{LISTED, named_ranks, rank_name};
use crate::report::report::Report;

/// Ranks with votes that are not named.
const OTHER_VOTERS: usize = 16;

/// Ranks x algorithms: whether it calls the rank slow.
#[derive(Debug, Serialize)]
pub(in crate::report::page) struct Votes {
    pub rows: Vec<String>,
    pub algorithms: Vec<String>,
    pub cells: Vec<Vec<u8>>,
    #[serde(skip)]
    pub left_out: usize,
}

pub(super) fn votes(report: &Report) -> Option<Votes> {
    let named = named_ranks(report);
    let algorithms = &report.verdict.algorithms;
    let mut ranks: Vec<usize> = (0..report.ranks.len())
        .filter(|&rank| {
            named.contains(&report.ranks[rank]) || report.verdict.votes.get(rank).is_some_and(|&votes| votes > 0)
        })
        .collect();
    if ranks.is_empty() || algorithms.is_empty() || report.verdict.votes.iter().all(|&votes| votes == 0) {
        return None;
    }
    ranks.sort_by_key(|&rank| {
        (
            !named.contains(&report.ranks[rank]),
            Reverse(report.verdict.votes[rank]),
            rank,
        )
    });
    let is_named = ranks
        .iter()
        .filter(|&&rank| named.contains(&report.ranks[rank]))
        .count();
    let shown = LISTED.min(is_named + OTHER_VOTERS);
    let left_out = ranks.len().saturating_sub(shown);
    ranks.truncate(shown);
    Some(Votes {
        rows: ranks.iter().map(|&rank| rank_name(report, rank)).collect(),
        algorithms: algorithms.iter().map(|algorithm| algorithm.name.to_owned()).collect(),
        cells: ranks
            .iter()
            .map(|&rank| {
                algorithms
                    .iter()
                    .map(|algorithm| u8::from(algorithm.ranks[rank].slow))
                    .collect()
            })
            .collect(),
        left_out,
    })
}
