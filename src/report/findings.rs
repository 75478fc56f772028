//! One block of evidence for each anomaly rank.

use schemars::JsonSchema;
use serde::Serialize;

use crate::job::Job;
use crate::rules::{Cause, Verdict};

/// An anomaly rank with what speaks against it.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct Finding {
    /// What is slow about it.
    pub cause: Cause,
    /// The rank.
    pub rank: u32,
    /// Its node.
    pub node: String,
    /// Its pipeline stage, where it is known or inferred.
    pub stage: Option<u32>,
    /// The algorithms that call it slow.
    pub voted_by: Vec<String>,
    /// Compute time over the fastest rank's in the slowest steps, where it was measured.
    pub slow_step_ratio: Option<f64>,
    /// The clustered timers.
    pub timers: Vec<TimerEvidence>,
}

/// One timer of a rank against the other ranks.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct TimerEvidence {
    /// Name of the timer.
    pub timer: String,
    /// Mean duration of the rank, seconds.
    pub mean_seconds: f64,
    /// Median over all ranks of their mean durations, seconds.
    pub median_seconds: f64,
    /// The one over the other.
    pub factor: f64,
    /// The algorithms that call the rank slow in this timer.
    pub slow_by: Vec<String>,
}

/// The findings of a verdict, by rank.
#[must_use]
pub fn findings(job: &Job, verdict: &Verdict) -> Vec<Finding> {
    let timers: Vec<_> = verdict
        .timers
        .iter()
        .enumerate()
        .filter_map(|(place, timer)| {
            let means: Vec<f64> = timer.clustered_rows()?.iter().map(|[.., mean]| *mean).collect();
            Some((place, timer.features.timer.as_str(), median(&means), means))
        })
        .collect();
    verdict
        .anomalies
        .iter()
        .map(|&rank| Finding {
            cause: verdict.cause,
            rank: job.ranks[rank],
            node: job.nodes[rank].clone(),
            stage: job.topology.stage(rank),
            voted_by: slow_by(verdict, |algorithm| algorithm.ranks[rank].slow),
            slow_step_ratio: verdict.slow_step_ratio[rank],
            timers: timers
                .iter()
                .map(|(place, name, median, means)| TimerEvidence {
                    timer: (*name).to_owned(),
                    mean_seconds: means[rank],
                    median_seconds: *median,
                    factor: means[rank] / median,
                    slow_by: slow_by(verdict, |algorithm| {
                        algorithm
                            .timers
                            .iter()
                            .any(|labels| labels.timer == *place && labels.slow[rank])
                    }),
                })
                .collect(),
        })
        .collect()
}

fn slow_by(verdict: &Verdict, says_slow: impl Fn(&crate::rules::AlgorithmVerdict) -> bool) -> Vec<String> {
    let saying = verdict.algorithms.iter().filter(|algorithm| says_slow(algorithm));
    saying.map(|algorithm| algorithm.name.to_owned()).collect()
}

fn median(values: &[f64]) -> f64 {
    let mut sorted = values.to_vec();
    sorted.sort_unstable_by(f64::total_cmp);
    match sorted.len() {
        0 => f64::NAN,
        count if count % 2 == 1 => sorted[count / 2],
        count => sorted[count / 2 - 1].midpoint(sorted[count / 2]),
    }
}
