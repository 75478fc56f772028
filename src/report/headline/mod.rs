//! Findings as a person wants to hear of them: those that are one thing told once, with who, since when, how much, what it
//! costs, what it may also be, and what to do next.
//!
//! A node that is slow gives a finding a unit, a rack gives one a node: what shares its kind and its time is put together
//! by node first, and where more than a few are left, across nodes. Sums of costs never exceed what all faults cost.

mod advice;
mod grouping;
mod sentence;
#[cfg(test)]
mod tests;

pub(in crate::report) use self::sentence::seconds;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::job::Job;
use crate::verdict::{Cause, Finding, FindingKind, Lasting, TimerEvidence};
use crate::whatif::timers::WhatIf;

/// Most ranks that are listed as the worst.
const WORST: usize = 3;

/// Findings that are one thing.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Headline {
    /// What sort of thing it is.
    pub kind: FindingKind,
    /// What it costs the job time by.
    pub cause: Cause,
    /// Whether it names ranks or nodes.
    pub names: bool,
    /// Who, and what is wrong, in one sentence; everything in it stands in the fields too.
    pub says: String,
    /// Positions of its findings in the list of findings, ascending.
    pub findings: Vec<usize>,
    /// All their ranks, ascending.
    pub ranks: Vec<u32>,
    /// Their nodes, sorted.
    pub nodes: Vec<String>,
    /// Whether these are all ranks of their nodes.
    pub whole_nodes: bool,
    /// Their pipeline stages, ascending.
    pub stages: Vec<u32>,
    /// Ranks of the same stages that are not among them: what they were compared with.
    pub peers: usize,
    /// The least factor of its findings; null where none has one.
    pub least_factor: Option<f64>,
    /// The largest.
    pub largest_factor: Option<f64>,
    /// The ranks with the largest factors, the worst first.
    pub worst: Vec<WorstRank>,
    /// How it lasts; null where it is not told step by step.
    pub lasting: Option<Lasting>,
    /// First iteration in which it shows.
    pub first_iteration: Option<i64>,
    /// When that was over, UTC.
    pub first_time: Option<String>,
    /// Last iteration in which it shows.
    pub last_iteration: Option<i64>,
    /// When that was over, UTC.
    pub last_time: Option<String>,
    /// Whether it began inside the window.
    pub began: bool,
    /// Whether it was over before the end of the window; null where it is not told.
    pub ended: Option<bool>,
    /// Iterations in which it shows, of the finding with most.
    pub slow_iterations: Option<usize>,
    /// Iterations of the window.
    pub iterations: usize,
    /// Timers of the costliest finding beside the peers', seconds an iteration.
    pub timers: Vec<TimerEvidence>,
    /// Growth of the steps over those with it mended: 0.35 is 35 % longer. Null where it is not known.
    pub growth: Option<f64>,
    /// Mean step, seconds; null where its growth is.
    pub step_seconds: Option<f64>,
    /// Mean step with it mended, seconds.
    pub mended_step_seconds: Option<f64>,
    /// Seconds of the window that it costs.
    pub cost_seconds: Option<f64>,
    /// The same times the ranks of the job, hours.
    pub cost_gpu_hours: Option<f64>,
    /// Its part in the seconds that mending all findings saves; differs from its own cost where others hide it.
    pub part_seconds: Option<f64>,
    /// Algorithms that call all of its ranks slow, of the finding with fewest.
    pub votes: usize,
    /// Algorithms that could tell.
    pub voters: usize,
    /// How sure it is, 0 to 1, of the least sure finding; null where it is not told.
    pub confidence: Option<f64>,
    /// What it may be besides; null where nothing else looks the same.
    pub may_also_be: Option<String>,
    /// What to do next.
    pub next: Vec<String>,
}

/// A rank of a headline.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct WorstRank {
    /// The rank.
    pub rank: u32,
    /// Its node.
    pub node: String,
    /// Its factor.
    pub factor: f64,
}

/// What headlines are made of.
pub(super) struct Known<'a> {
    pub job: &'a Job,
    pub findings: &'a [Finding],
    pub what_if: Option<&'a WhatIf>,
}

/// Puts findings together; in the order of the findings, which is by weight.
pub(super) fn headlines(known: &Known<'_>) -> Vec<Headline> {
    let groups = grouping::groups(known.findings);
    groups.into_iter().map(|group| headline(known, group)).collect()
}

fn headline(known: &Known<'_>, places: Vec<usize>) -> Headline {
    let findings: Vec<&Finding> = places.iter().map(|&place| &known.findings[place]).collect();
    let first = findings[0];
    let ranks = united(findings.iter().flat_map(|finding| finding.ranks.iter().copied()));
    let nodes = united(findings.iter().flat_map(|finding| finding.nodes.iter().cloned()));
    let stages = united(findings.iter().flat_map(|finding| finding.stages.iter().copied()));
    let factors = || findings.iter().filter_map(|finding| finding.factor);
    let earliest = findings
        .iter()
        .filter(|finding| finding.first_iteration.is_some())
        .min_by_key(|finding| finding.first_iteration);
    let latest = findings
        .iter()
        .filter(|finding| finding.last_iteration.is_some())
        .max_by_key(|finding| finding.last_iteration);
    let cost = Cost::of(known, &findings);
    let mut headline = Headline {
        kind: first.kind,
        cause: first.cause,
        names: findings.iter().any(|finding| finding.named || finding.names_nodes),
        says: String::new(),
        whole_nodes: fills_nodes(known.job, &ranks, &nodes),
        peers: peers(known.job, &ranks),
        least_factor: factors().reduce(f64::min),
        largest_factor: factors().reduce(f64::max),
        worst: worst(known.job, &findings),
        lasting: first.lasting,
        first_iteration: earliest.and_then(|finding| finding.first_iteration),
        first_time: earliest.and_then(|finding| finding.first_time.clone()),
        last_iteration: latest.and_then(|finding| finding.last_iteration),
        last_time: latest.and_then(|finding| finding.last_time.clone()),
        began: findings.iter().all(|finding| finding.onset.is_some()),
        ended: findings
            .iter()
            .map(|finding| finding.ended)
            .reduce(|a, b| Some(a? && b?))
            .flatten(),
        slow_iterations: findings.iter().filter_map(|finding| finding.slow_iterations).max(),
        iterations: first.iterations,
        timers: first.timers.clone(),
        growth: cost.growth,
        step_seconds: cost.step,
        mended_step_seconds: cost.mended,
        cost_seconds: cost.seconds,
        cost_gpu_hours: cost.gpu_hours,
        part_seconds: findings.iter().map(|finding| finding.cost_part_seconds).sum(),
        votes: findings.iter().map(|finding| finding.voted_by.len()).min().unwrap_or(0),
        voters: findings.iter().map(|finding| finding.voters).max().unwrap_or(0),
        confidence: findings
            .iter()
            .filter_map(|finding| finding.confidence)
            .reduce(f64::min),
        may_also_be: None,
        next: Vec::new(),
        findings: places,
        ranks,
        nodes,
        stages,
    };
    headline.says = sentence::says(known.job, &headline, &findings);
    headline.may_also_be = advice::may_also_be(&headline, &findings);
    headline.next = advice::next(known.job, &headline, &findings);
    headline
}

/// What several findings cost together.
struct Cost {
    seconds: Option<f64>,
    gpu_hours: Option<f64>,
    growth: Option<f64>,
    step: Option<f64>,
    mended: Option<f64>,
}

impl Cost {
    /// One finding's own cost; of several the sum of their parts, at most what all faults cost.
    fn of(known: &Known<'_>, findings: &[&Finding]) -> Self {
        let step = known.what_if.and_then(|what_if| what_if.step_seconds);
        if let [only] = findings {
            let mended = step.zip(only.cost).map(|(step, growth)| step / (1.0 + growth));
            return Self {
                seconds: only.cost_seconds,
                gpu_hours: only.cost_gpu_hours,
                growth: only.cost,
                step: only.cost.and(step),
                mended,
            };
        }
        let of_all = known
            .what_if
            .and_then(|what_if| what_if.seconds)
            .unwrap_or(f64::INFINITY);
        let part = |finding: &&Finding| finding.cost_part_seconds.or(finding.cost_seconds);
        let sum: Option<f64> = findings.iter().map(part).sum();
        let seconds = sum.map(|sum| sum.min(of_all));
        let window = step.map(|step| step * findings[0].iterations as f64);
        let growth = seconds
            .zip(window)
            .map(|(lost, window)| lost / (window - lost))
            .filter(|growth| growth.is_finite() && *growth >= 0.0);
        Self {
            seconds,
            gpu_hours: seconds.map(|seconds| seconds * known.job.ranks.len() as f64 / 3600.0),
            growth,
            step: growth.and(step),
            mended: step.zip(growth).map(|(step, growth)| step / (1.0 + growth)),
        }
    }
}

fn worst(job: &Job, findings: &[&Finding]) -> Vec<WorstRank> {
    let mut ranks: Vec<WorstRank> = findings
        .iter()
        .filter_map(|finding| Some((finding, finding.factor?)))
        .flat_map(|(finding, factor)| finding.ranks.iter().map(move |&rank| (rank, factor)))
        .filter_map(|(rank, factor)| {
            let position = job.ranks.binary_search(&rank).ok()?;
            Some(WorstRank {
                rank,
                node: job.nodes[position].clone(),
                factor,
            })
        })
        .collect();
    ranks.sort_by(|a, b| b.factor.total_cmp(&a.factor).then(a.rank.cmp(&b.rank)));
    ranks.truncate(WORST);
    ranks
}

/// Whether these are all ranks of these nodes.
fn fills_nodes(job: &Job, ranks: &[u32], nodes: &[String]) -> bool {
    let on_them = job
        .nodes
        .iter()
        .filter(|node| nodes.binary_search(node).is_ok())
        .count();
    !ranks.is_empty() && on_them == ranks.len()
}

/// Ranks of the same stages that are not among these; all others where no stages are known.
fn peers(job: &Job, ranks: &[u32]) -> usize {
    let stages = united(
        ranks
            .iter()
            .filter_map(|rank| job.topology.stage(job.ranks.binary_search(rank).ok()?)),
    );
    if stages.is_empty() {
        return job.ranks.len().saturating_sub(ranks.len());
    }
    let on_them = (0..job.ranks.len()).filter(|&rank| {
        job.topology
            .stage(rank)
            .is_some_and(|stage| stages.binary_search(&stage).is_ok())
    });
    on_them.count().saturating_sub(ranks.len())
}

fn united<T: Ord>(items: impl Iterator<Item = T>) -> Vec<T> {
    let items: std::collections::BTreeSet<T> = items.collect();
    items.into_iter().collect()
}
