//! Interleaved schedules: pipelines as a whole.
//!
//! Nearly all calls there are fused: each waits for both neighbours, so that what one link costs shows on every rank of the
//! pipeline. But somebody in it always comes last: with computing as the bottleneck that rank's calls are as short as its
//! transfers, with a slow link nobody's are. So the shortest usual call over the ranks of a lane (those with one number in
//! the stages of a pipeline, which send to each other) tells slow transfers from slow computing. Which rank it is tells
//! the data-parallel group whose collective is slow: it meets the lane in one rank; which link, the [`super::arrivals`].

use std::collections::{BTreeMap, BTreeSet};

use rayon::prelude::*;

use super::SlowComputing;
use super::arrivals::{SlowLink, slow_links};
use super::collectives::Collectives;
use super::cost::Steps;
use super::findings::{about, when, who};
use super::flows::{Comparison, SlowFlow, logs};
use super::thresholds::FEWEST;
use crate::contract::timers::INTERLEAVED_TRANSFERS;
use crate::job::Job;
use crate::stats::median;
use crate::verdict::Persistence;
use crate::verdict::{Finding, FindingKind, words};

/// How many lanes were compared, and what was found.
pub(super) fn findings(
    job: &Job,
    collectives: &Collectives,
    computing: &SlowComputing,
    steps: &Steps,
    persistence: &Persistence,
) -> (usize, Vec<Finding>) {
    let mut lanes = BTreeMap::<(u32, u32), Vec<usize>>::new();
    for (rank, place) in job.topology.places.iter().enumerate() {
        lanes.entry((place.pipeline, place.member)).or_default().push(rank);
    }
    let lanes: Vec<Vec<usize>> = lanes.into_values().collect();
    let rows: Vec<Vec<f64>> = lanes.par_iter().map(|lane| logs(&shortest_calls(job, lane))).collect();
    let rows: Vec<&[f64]> = rows.iter().map(Vec::as_slice).collect();
    let known = rows.iter().filter(|row| row.iter().any(|log| log.is_finite())).count();
    let Some(comparison) = Comparison::new(&rows).filter(|_| known >= FEWEST.get()) else {
        return (0, Vec::new());
    };
    let unit = |rank: usize| {
        let place = &job.topology.places[rank];
        (place.pipeline, place.stage)
    };
    let late: BTreeSet<(u32, u32)> = computing.suspects.iter().map(|&rank| unit(rank)).collect();
    let told = slow_links(job, &lanes, comparison.usual, persistence);
    let mut found = Vec::new();
    for (place, lane) in lanes.iter().enumerate() {
        // A stage that computes slowly holds up all calls of its pipeline.
        let is_late = lane.iter().any(|&rank| late.contains(&unit(rank)));
        let links: &[SlowLink] = if is_late { &[] } else { &told[place] };
        let fused = comparison.slow(place, persistence);
        let strongest = links.iter().max_by(|a, b| a.slow.extra.total_cmp(&b.slow.extra));
        let Some(slow) = fused.or_else(|| strongest.map(|link| link.slow.clone())) else {
            continue;
        };
        let ends = ends(lane, links);
        found.extend(finding(job, collectives, lane, &ends, &slow, steps, computing));
    }
    (known, found)
}

/// Who may be behind a lane's slow transfers: the rank that all its slow links share, the ends of the slowest, or
/// anybody.
fn ends(lane: &[usize], links: &[SlowLink]) -> Vec<usize> {
    let Some(slowest) = links.iter().max_by(|a, b| a.slow.extra.total_cmp(&b.slow.extra)) else {
        return lane.to_vec();
    };
    let meets = |rank: usize| links.iter().all(|link| link.sender == rank || link.receiver == rank);
    let mut ends = vec![slowest.sender, slowest.receiver];
    if links.len() > 1 && ends.iter().any(|&end| meets(end)) {
        ends.retain(|&end| meets(end));
    }
    ends
}

/// Each iteration's usual call of the lane's rank that waits least, seconds.
fn shortest_calls(job: &Job, lane: &[usize]) -> Vec<f64> {
    let tables: Vec<_> = job
        .calls
        .iter()
        .filter(|table| INTERLEAVED_TRANSFERS.contains(&table.name.as_str()))
        .collect();
    let usual = |rank: usize, step: usize| median(tables.iter().flat_map(|table| table.of(rank, step).iter().copied()));
    let shortest = |step: usize| lane.iter().map(|&rank| usual(rank, step)).fold(f64::NAN, f64::min);
    (0..job.iterations.len()).map(shortest).collect()
}

fn finding(
    job: &Job,
    collectives: &Collectives,
    lane: &[usize],
    suspects: &[usize],
    slow: &SlowFlow,
    steps: &Steps,
    computing: &SlowComputing,
) -> Option<Finding> {
    let ends: Vec<&[usize]> = suspects.chunks(1).collect();
    let told = collectives.tell(&ends, &slow.steps.slow);
    let accused: &[usize] = told.map_or(suspects, |(end, _)| ends[end]);
    // Of two stages the lane is the link.
    let is_link = suspects.len() <= 2;
    if accused.iter().all(|rank| computing.ranks.contains(rank)) {
        return None;
    }
    let kind = if accused.len() == 1 {
        FindingKind::SlowNetwork
    } else {
        FindingKind::SlowLink
    };
    let ranks: BTreeSet<usize> = accused.iter().copied().collect();
    let mut finding = about(job, kind, &ranks, &slow.steps.slow);
    finding.names_nodes = told.is_some() || is_link;
    finding.factor = Some(slow.factor);
    let calls = usual_calls(job, lane);
    let collective = Collectives::extra_seconds(job, &ranks, &slow.steps.slow);
    finding.cost = steps.cost(slow.extra * calls + collective, &slow.steps.slow);
    let collective = match (told, collectives.timer) {
        (Some((_, factor)), Some(timer)) => format!("the {timer} of its group takes {factor:.1} x the others'"),
        _ if is_link => "the first or last microbatch of a step takes long over this link".to_owned(),
        _ => "no collective tells which of its ranks".to_owned(),
    };
    finding.decided_by = Some(format!(
        "pipeline: no rank of it has usual fused calls as short as those of other pipelines; {collective}"
    ));
    let subject = if accused.len() == 1 {
        format!("{} communicates slowly", who(&finding))
    } else if is_link {
        format!("the link between {} is slow", who(&finding))
    } else {
        format!(
            "a transfer among {} is slow: the timers can't tell which",
            words::ranks(&finding.ranks)
        )
    };
    finding.says = format!(
        "{subject}: even the shortest fused calls of the pipeline take {:.1} x the usual{}",
        slow.factor,
        when(&finding)
    );
    Some(finding)
}

/// Fused calls of a rank in an iteration.
fn usual_calls(job: &Job, lane: &[usize]) -> f64 {
    let of_interleaved = |name: &String| INTERLEAVED_TRANSFERS.contains(&name.as_str());
    let tables: Vec<_> = job.calls.iter().filter(|table| of_interleaved(&table.name)).collect();
    let Some(&rank) = lane.first() else { return 0.0 };
    let counts =
        (0..job.iterations.len()).map(|step| tables.iter().map(|table| table.of(rank, step).len() as f64).sum());
    median(counts)
}
