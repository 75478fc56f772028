//! Interleaved schedules: pipelines as a whole.
//!
//! Nearly all calls there are fused: each waits for both neighbours, so that what one link costs shows on every rank of the
//! pipeline. But somebody in it always comes last: with computing as the bottleneck that rank's calls are as short as its
//! transfers, with a slow link nobody's are. So the shortest usual call over the ranks of a lane (those with one number in
//! the stages of a pipeline, which send to each other) tells slow transfers from slow computing. Which rank it is tells
//! the data-parallel group whose collective is slow: it meets the lane in one rank.

use std::collections::{BTreeMap, BTreeSet};

use rayon::prelude::*;

use super::INTERLEAVED;
use super::collectives::Collectives;
use super::findings::{about, when};
use super::flows::{Comparison, SlowFlow, logs};
use crate::job::Job;
use crate::rules::peer::PeerSettings;
use crate::rules::peer::robust::median;
use crate::rules::{Finding, FindingKind, words};

/// How many lanes were compared, and what was found.
pub(super) fn findings(
    job: &Job,
    collectives: &Collectives,
    compute_slowly: &BTreeSet<usize>,
    step_seconds: f64,
    settings: &PeerSettings,
) -> (usize, Vec<Finding>) {
    let mut lanes = BTreeMap::<(u32, u32), Vec<usize>>::new();
    for (rank, place) in job.topology.places.iter().enumerate() {
        lanes.entry((place.pipeline, place.member)).or_default().push(rank);
    }
    let lanes: Vec<Vec<usize>> = lanes.into_values().collect();
    let rows: Vec<Vec<f64>> = lanes.par_iter().map(|lane| logs(&shortest_calls(job, lane))).collect();
    let rows: Vec<&[f64]> = rows.iter().map(Vec::as_slice).collect();
    let known = rows.iter().filter(|row| row.iter().any(|log| log.is_finite())).count();
    let Some(comparison) = Comparison::new(&rows).filter(|_| known >= super::flows::FEWEST) else {
        return (0, Vec::new());
    };
    let slow = lanes.iter().enumerate().filter_map(|(place, lane)| {
        let slow = comparison.slow(place, settings)?;
        finding(job, collectives, lane, &slow, step_seconds, compute_slowly)
    });
    (known, slow.collect())
}

/// Each iteration's usual call of the lane's rank that waits least, seconds.
fn shortest_calls(job: &Job, lane: &[usize]) -> Vec<f64> {
    let tables: Vec<_> = job
        .calls
        .iter()
        .filter(|table| INTERLEAVED.contains(&table.name.as_str()))
        .collect();
    let usual = |rank: usize, step: usize| median(tables.iter().flat_map(|table| table.of(rank, step).iter().copied()));
    let shortest = |step: usize| lane.iter().map(|&rank| usual(rank, step)).fold(f64::NAN, f64::min);
    (0..job.iterations.len()).map(shortest).collect()
}

fn finding(
    job: &Job,
    collectives: &Collectives,
    lane: &[usize],
    slow: &SlowFlow,
    step_seconds: f64,
    compute_slowly: &BTreeSet<usize>,
) -> Option<Finding> {
    let ends: Vec<&[usize]> = lane.chunks(1).collect();
    let told = collectives.tell(&ends, &slow.steps.slow);
    let accused: &[usize] = told.map_or(lane, |(end, _)| ends[end]);
    if accused.iter().all(|rank| compute_slowly.contains(rank)) {
        return None;
    }
    let kind = if told.is_some() {
        FindingKind::SlowNetwork
    } else {
        FindingKind::SlowLink
    };
    let ranks: BTreeSet<usize> = accused.iter().copied().collect();
    let mut finding = about(job, kind, &ranks, &slow.steps.slow);
    finding.names_nodes = told.is_some();
    finding.factor = Some(slow.factor);
    let calls = usual_calls(job, lane);
    finding.cost = Some(slow.extra * calls * slow.steps.share() / step_seconds).filter(|cost| cost.is_finite());
    let collective = match (told, collectives.timer) {
        (Some((_, factor)), Some(timer)) => format!("the {timer} of its group takes {factor:.1} x the others'"),
        _ => "no collective tells which of its ranks".to_owned(),
    };
    finding.decided_by = Some(format!(
        "pipeline: no rank of it has usual fused calls as short as those of other pipelines; {collective}"
    ));
    let who = if told.is_some() {
        format!(
            "{} on {} communicates slowly",
            words::ranks(&finding.ranks),
            words::nodes(&finding.nodes)
        )
    } else {
        format!(
            "a transfer among {} is slow; the timers do not tell which",
            words::ranks(&finding.ranks)
        )
    };
    finding.says = format!(
        "{who}: even the shortest fused calls of the pipeline take {:.1} x the usual{}",
        slow.factor,
        when(&finding)
    );
    Some(finding)
}

/// Fused calls of a rank in an iteration.
fn usual_calls(job: &Job, lane: &[usize]) -> f64 {
    let of_interleaved = |name: &String| INTERLEAVED.contains(&name.as_str());
    let tables: Vec<_> = job.calls.iter().filter(|table| of_interleaved(&table.name)).collect();
    let Some(&rank) = lane.first() else { return 0.0 };
    let counts =
        (0..job.iterations.len()).map(|step| tables.iter().map(|table| table.of(rank, step).len() as f64).sum());
    median(counts)
}
