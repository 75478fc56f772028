//! The classic rules: cluster each timer's features over all ranks, vote over timers, gate, vote over algorithms.
//!
//! They compare a rank with all others, whatever its pipeline stage, and always elect the ranks with the most votes.

use std::collections::{BTreeMap, BTreeSet};

use rayon::prelude::*;
use schemars::JsonSchema;
use serde::Serialize;

use super::{AlgorithmVerdict, TimerLabels, Verdict, classic_comm, unjudged};
use crate::algos::{self, Algorithm, Space};
use crate::comm::classic::ClassicThresholds;
use crate::contract::timers::{ATTENTION_QKV, COMPUTING};
use crate::features::{self, TimerFate, TimerRules, TimerVerdict};
use crate::job::Job;
use crate::stats::median;
use crate::verdict::comparison::Comparison;
use crate::verdict::{Cause, Finding, FindingKind, Status, TimerEvidence, words};
use crate::vote::{self, SlowStepGate, TimerVote};

/// The thresholds of the classic rules.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct ClassicSettings {
    /// Timers that count as computing.
    pub compute_timers: BTreeSet<String>,
    /// Smallest (max - min) / mean of the rank means at which a timer is clustered.
    pub min_spread: f64,
    /// Weight of a timer in the vote; 1 where it is not named.
    pub timer_weights: BTreeMap<String, f64>,
    /// With two or more pipeline stages: times the fastest rank's compute time that a rank must take to stay slow.
    pub gate_factor: f64,
    /// With two or more pipeline stages: how many of the slowest iterations that is measured on.
    pub gate_iterations: usize,
    /// What makes a suspect of a worker's communication.
    pub communication: ClassicThresholds,
}

impl Default for ClassicSettings {
    fn default() -> Self {
        Self {
            compute_timers: COMPUTING.map(str::to_owned).into(),
            min_spread: 0.03,
            // Nearly pure matrix work: the strongest sign of a slow GPU.
            timer_weights: [(ATTENTION_QKV.to_owned(), 3.0)].into(),
            gate_factor: 1.3,
            gate_iterations: 10,
            communication: ClassicThresholds::default(),
        }
    }
}

impl ClassicSettings {
    fn weight(&self, timer: &str) -> f64 {
        self.timer_weights.get(timer).copied().unwrap_or(1.0)
    }
}

/// Applies the classic rules with the given algorithms.
#[must_use]
pub fn judge(job: &Job, settings: &ClassicSettings, algorithms: &[&'static dyn Algorithm]) -> Verdict {
    let features = features::aggregate(job);
    let rules = TimerRules {
        compute_timers: settings.compute_timers.clone(),
        min_spread: settings.min_spread,
        pipeline_stages: job.topology.stated_pipeline_stages(),
    };
    let timers = features::select(features, &rules);
    let labels = label_timers(&timers, algorithms);

    let weight_before_filters = weight_before_filters(&timers, settings, job.ranks.len());
    let clustered: Vec<_> = timers
        .iter()
        .enumerate()
        .filter(|(_, timer)| timer.clustered_rows().is_some())
        .filter_map(|(place, _)| job.timers.get(place))
        .collect();
    let gate = (job.topology.stated_pipeline_stages() >= 2 && !clustered.is_empty())
        .then(|| SlowStepGate::measure(job, &clustered, settings.gate_iterations, settings.gate_factor));

    let algorithms: Vec<_> = algorithms
        .iter()
        .zip(labels)
        .map(|(algorithm, labels)| {
            let votes: Vec<_> = labels
                .iter()
                .map(|labels| TimerVote {
                    weight: labels
                        .timer
                        .map_or(1.0, |timer| settings.weight(&timers[timer].features.timer)),
                    slow: &labels.slow,
                })
                .collect();
            let mut ranks = vote::ballot(&votes, &weight_before_filters);
            if let Some(gate) = &gate {
                for (rank, ballot) in ranks.iter_mut().enumerate() {
                    ballot.slow &= gate.passes(rank);
                }
            }
            AlgorithmVerdict {
                name: algorithm.name(),
                timers: labels,
                ranks,
            }
        })
        .collect();

    let verdicts: Vec<Vec<bool>> = algorithms
        .iter()
        .map(|algorithm| algorithm.ranks.iter().map(|rank| rank.slow).collect())
        .collect();
    let election = vote::elect(job.ranks.len(), verdicts.iter().map(Vec::as_slice));
    // These rules attribute nothing: whom they name, they name for the compute timers.
    let cause = if election.elected.is_empty() {
        Cause::None
    } else {
        Cause::Compute
    };
    let slow_step_ratio = |rank| gate.as_ref().and_then(|gate| gate.ratio(rank));
    let communication = classic_comm::communication(job, &settings.communication, &election.elected);
    let mut findings = findings(job, &timers, &algorithms, &election.elected, slow_step_ratio);
    findings.extend(communication.findings.iter().cloned());
    let unjudged = unjudged::reason(job, &timers);
    // A timer in which all ranks are alike was compared, though there is nothing to cluster.
    let alike = timers
        .iter()
        .any(|timer| matches!(timer.fate, TimerFate::Spread { .. }));
    let status = if !election.elected.is_empty() || !communication.nodes().is_empty() {
        Status::Fault
    } else {
        Status::of(&findings, unjudged.as_deref().filter(|_| !alike))
    };
    Verdict {
        status,
        unjudged,
        what_if: None,
        comparison: Comparison::default(),
        timers,
        algorithms,
        votes: election.votes,
        anomalies: election.elected,
        network_nodes: communication.nodes(),
        cause,
        findings,
        communication,
    }
}

/// One finding an elected rank, with its clustered timers against the median rank.
fn findings(
    job: &Job,
    timers: &[TimerVerdict],
    algorithms: &[AlgorithmVerdict],
    elected: &[usize],
    slow_step_ratio: impl Fn(usize) -> Option<f64>,
) -> Vec<Finding> {
    let clustered: Vec<(usize, &str, f64, Vec<f64>)> = timers
        .iter()
        .enumerate()
        .filter_map(|(place, timer)| {
            let means: Vec<f64> = timer.clustered_rows()?.iter().map(|[.., mean]| *mean).collect();
            Some((
                place,
                timer.features.timer.as_str(),
                median(means.iter().copied()),
                means,
            ))
        })
        .collect();
    let slow_by = |says_slow: &dyn Fn(&AlgorithmVerdict) -> bool| -> Vec<String> {
        let saying = algorithms.iter().filter(|algorithm| says_slow(algorithm));
        saying.map(|algorithm| algorithm.name.to_owned()).collect()
    };
    let of_rank = |&rank: &usize| {
        let voted_by = slow_by(&|algorithm| algorithm.ranks[rank].slow);
        Finding {
            says: format!(
                "{} on {} has the most votes: {} of {}",
                words::ranks(&[job.ranks[rank]]),
                words::nodes(&job.nodes[rank..=rank]),
                voted_by.len(),
                words::number(algorithms.len(), "algorithm")
            ),
            named: true,
            ranks: vec![job.ranks[rank]],
            nodes: vec![job.nodes[rank].clone()],
            stages: job.topology.stage(rank).into_iter().collect(),
            voted_by,
            voters: algorithms.len(),
            slow_step_ratio: slow_step_ratio(rank),
            timers: clustered
                .iter()
                .map(|(place, name, median, means)| TimerEvidence {
                    timer: (*name).to_owned(),
                    mean_seconds: means[rank],
                    reference_seconds: *median,
                    factor: means[rank] / median,
                    slow_by: slow_by(&|algorithm| {
                        let mut labels = algorithm.timers.iter();
                        labels.any(|labels| labels.timer == Some(*place) && labels.slow[rank])
                    }),
                })
                .collect(),
            ..Finding::new(FindingKind::SlowRank, Cause::Compute, job.iterations.len())
        }
    };
    elected.iter().map(of_rank).collect()
}

/// Labels every clustered timer with every algorithm: one list an algorithm, in the order of the timers.
///
/// Timers run in parallel and the algorithms inside a timer, so that what the algorithms share of a timer is held
/// for a few timers at a time only.
fn label_timers(timers: &[TimerVerdict], algorithms: &[&'static dyn Algorithm]) -> Vec<Vec<TimerLabels>> {
    let by_timer: Vec<Vec<TimerLabels>> = timers
        .par_iter()
        .enumerate()
        .filter_map(|(place, timer)| timer.clustered_rows().map(|rows| (place, rows)))
        .map(|(place, rows)| {
            let space = Space::new(features::robust_scale(&rows));
            let raw_means: Vec<f64> = rows.iter().map(|[.., mean]| *mean).collect();
            algorithms
                .par_iter()
                .map(|algorithm| label(place, *algorithm, &space, &raw_means))
                .collect()
        })
        .collect();
    let mut by_algorithm: Vec<Vec<TimerLabels>> = algorithms.iter().map(|_| Vec::new()).collect();
    for labels in by_timer {
        for (list, labels) in by_algorithm.iter_mut().zip(labels) {
            list.push(labels);
        }
    }
    by_algorithm
}

fn label(timer: usize, algorithm: &dyn Algorithm, space: &Space, raw_means: &[f64]) -> TimerLabels {
    match algos::tune(algorithm, space) {
        Some(winner) => TimerLabels {
            timer: Some(timer),
            slow: algos::slow_ranks(space, raw_means, &winner),
            clusters: winner.clusters,
            scores: winner.scores,
            parameters: Some(winner.parameters),
        },
        None => TimerLabels {
            timer: Some(timer),
            parameters: None,
            clusters: 1,
            scores: None,
            slow: vec![false; space.len()],
        },
    }
}

/// Weight of the timers that each rank has, whatever their coverage and spread.
fn weight_before_filters(timers: &[TimerVerdict], settings: &ClassicSettings, ranks: usize) -> Vec<f64> {
    let mut weights = vec![0.0; ranks];
    for timer in timers.iter().filter(|timer| timer.is_candidate()) {
        let weight = settings.weight(&timer.features.timer);
        for (sum, feature) in weights.iter_mut().zip(&timer.features.ranks) {
            *sum += if feature.is_some() { weight } else { 0.0 };
        }
    }
    weights
}
