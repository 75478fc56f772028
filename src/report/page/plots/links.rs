//! One transfer without waiting, a row a pair of ranks, beside what is usual.

use serde::Serialize;

use super::{LISTED, known};
use crate::comm::flows::Flow;
use crate::report::report::Report;

/// Seconds of one transfer, the worst first.
#[derive(Debug, Serialize)]
pub(in crate::report::page) struct Links {
    pub rows: Vec<String>,
    pub seconds: Vec<Option<f64>>,
    pub usual: Vec<Option<f64>>,
    pub slow: Vec<bool>,
    #[serde(skip)]
    pub left_out: usize,
}

pub(super) fn links(report: &Report) -> Option<Links> {
    let mut flows: Vec<_> = report
        .verdict
        .communication
        .flows
        .iter()
        .filter(|flow| flow.seconds.is_finite())
        .collect();
    if flows.is_empty() {
        return None;
    }
    let seconds = |flow: &Flow| match &flow.slow {
        Some(slow) if flow.usual.is_finite() => flow.usual * slow.factor,
        _ => flow.seconds,
    };
    let over = |flow: &Flow| {
        Some(seconds(flow) / flow.usual)
            .filter(|over| over.is_finite())
            .unwrap_or(0.0)
    };
    flows.sort_by(|a, b| {
        b.slow
            .is_some()
            .cmp(&a.slow.is_some())
            .then(over(b).total_cmp(&over(a)))
    });
    let left_out = flows.len().saturating_sub(LISTED);
    flows.truncate(LISTED);
    let rank = |position: usize| report.ranks[position];
    Some(Links {
        rows: flows
            .iter()
            .map(|flow| {
                format!(
                    "{} to {} {}",
                    rank(flow.sender),
                    rank(flow.receiver),
                    flow.direction.name()
                )
            })
            .collect(),
        seconds: flows.iter().map(|flow| known(seconds(flow))).collect(),
        usual: flows.iter().map(|flow| known(flow.usual)).collect(),
        slow: flows.iter().map(|flow| flow.slow.is_some()).collect(),
        left_out,
    })
}
