//! What each rank's iteration goes into: passes, transfers, waiting.

use serde::Serialize;

use super::{LISTED, known, rank_name};
use crate::report::report::Report;

/// Each rank's seconds an iteration, and whom it waits for.
#[derive(Debug, Serialize)]
pub(in crate::report::page) struct WaitBars {
    pub rows: Vec<String>,
    pub compute: Vec<Option<f64>>,
    pub transfer: Vec<Option<f64>>,
    pub waiting: Vec<Option<f64>>,
    pub whom: Vec<Option<u32>>,
    #[serde(skip)]
    pub left_out: usize,
}

pub(super) fn waits(report: &Report) -> Option<WaitBars> {
    let waits = &report.verdict.communication.waits;
    let mut ranks: Vec<usize> = (0..waits.len()).collect();
    if ranks.is_empty() {
        return None;
    }
    let left_out = ranks.len().saturating_sub(LISTED);
    if left_out > 0 {
        // Who waits least is who the others wait for.
        ranks.sort_by(|&a, &b| waits[a].waiting.total_cmp(&waits[b].waiting).then(a.cmp(&b)));
        ranks.truncate(LISTED);
    }
    let column = |of: &dyn Fn(usize) -> f64| ranks.iter().map(|&rank| known(of(rank))).collect();
    Some(WaitBars {
        rows: ranks.iter().map(|&rank| rank_name(report, rank)).collect(),
        compute: column(&|rank| waits[rank].compute),
        transfer: column(&|rank| waits[rank].transfer),
        waiting: column(&|rank| waits[rank].waiting),
        whom: ranks
            .iter()
            .map(|&rank| waits[rank].waits_for.map(|other| report.ranks[other]))
            .collect(),
        left_out,
    })
}
