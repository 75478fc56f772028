//! The summary: everything that a run found, as one serialisable value.

use std::collections::BTreeSet;

use schemars::JsonSchema;
use serde::Serialize;

use super::headline::{Headline, Known, headlines};
use super::machines::MachineMetrics;
use crate::features::TimerFate;
use crate::job::{DataQuality, Job, Move, Run, StepTimes, Topology};
use crate::rules::{RulesSettings, Verdict};
use crate::source::timestamp;
use crate::stats::median;
use crate::verdict::{Cause, Finding, Status};
use crate::whatif::timers::WhatIf;

/// Version of the JSON layout; it grows when a field changes its meaning or goes.
pub const SCHEMA_VERSION: u32 = 4;

/// All that an analysis says.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct Summary {
    /// Version of this layout.
    pub schema_version: u32,
    /// Version of the tool.
    pub tool_version: String,
    /// Job id.
    pub job: String,
    /// The ranks that stand out, ascending.
    pub anomaly_ranks: Vec<u32>,
    /// Their nodes and those whose network is slow, each once, sorted.
    pub anomaly_nodes: Vec<String>,
    /// What it comes to: for monitors.
    pub status: Status,
    /// What could not be judged, where that keeps the job from being called healthy.
    pub unjudged: Option<String>,
    /// What costs the job most.
    pub cause: Cause,
    /// What all faults cost together, and what uneven stages and data do; null where it was not asked for.
    pub what_if: Option<WhatIf>,
    /// The findings as they are told to people: those that are one thing put together. Empty where every window has its own.
    pub headlines: Vec<Headline>,
    /// Everything that was found, the weightiest first.
    pub findings: Vec<Finding>,
    /// How communication was judged, and what could not be told of it.
    pub communication: String,
    /// Name of the rules.
    pub rules: String,
    /// Thresholds of the rules.
    pub settings: RulesSettings,
    /// Transfers that were compared with others of their kind.
    pub links_compared: usize,
    /// Files that were read, or the table.
    pub sources: Sources,
    /// Files in the named folders that were passed over because of their ending.
    pub files_passed_over: Vec<String>,
    /// What was analysed.
    pub window: WindowSummary,
    /// Parallel groups.
    pub topology: Topology,
    /// Runs of the job, in the order in which they came.
    pub runs: Vec<Run>,
    /// Ranks that restarts moved to other nodes.
    pub moves: Vec<Move>,
    /// Slow windows, stalls, restarts and drift of the step time, by the rolling median.
    pub step_times: StepTimes,
    /// Every timer and what became of it.
    pub timers: Vec<TimerSummary>,
    /// What each algorithm says.
    pub algorithms: Vec<AlgorithmSummary>,
    /// Ranks with at least one vote.
    pub votes: Vec<RankVotes>,
    /// What was read, kept and left out.
    pub data_quality: DataQuality,
    /// What the reader of the source noticed: what a log lacks, what was left out of it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub notes: Vec<String>,
    /// What hardware metrics say of the job's machines, where `--machines` gave some.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub machines: Option<MachineMetrics>,
    /// Where `--iterations auto` found several slow windows: each one's own summary; what stands beside is what they
    /// come to together.
    pub windows: Vec<Summary>,
}

/// The rows that were analysed.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct WindowSummary {
    /// Ranks.
    pub ranks: usize,
    /// Nodes.
    pub nodes: usize,
    /// Iterations.
    pub iterations: usize,
    /// First iteration.
    pub first_iteration: i64,
    /// Last iteration.
    pub last_iteration: i64,
    /// Iterations that were put together before they were analysed: 1 but for jobs that a server reduced. First and last
    /// iterations of findings are those of such spans.
    pub iterations_per_column: usize,
    /// When the first iteration was over, UTC.
    pub first_time: Option<String>,
    /// When the last iteration was over, UTC.
    pub last_time: Option<String>,
    /// Whether the source printed them so.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub printed_means: bool,
    /// The asked iterations.
    pub asked_iterations: String,
    /// Iterations dropped at the beginning of every run.
    pub warmup: u32,
}

/// Where the rows come from.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Sources {
    /// Files, or tables of a server.
    pub count: usize,
    /// Their names; of many the pattern that they share, with `*` for what differs.
    pub names: Vec<String>,
}

/// Files that are named one by one; more are told as a pattern.
const NAMED_SOURCES: usize = 8;

impl Sources {
    /// Names few, tells what many have in common.
    #[must_use]
    pub fn of(names: &[String]) -> Self {
        let count = names.len();
        if count <= NAMED_SOURCES {
            return Self {
                count,
                names: names.to_vec(),
            };
        }
        let mut by_folder = std::collections::BTreeMap::<&str, Vec<&str>>::new();
        for name in names {
            let (folder, file) = name
                .rsplit_once('/')
                .map_or(("", name.as_str()), |(folder, file)| (folder, file));
            by_folder.entry(folder).or_default().push(file);
        }
        let pattern = |(folder, files): (&str, Vec<&str>)| {
            let file = if files.len() == 1 {
                files[0].to_owned()
            } else {
                common(&files)
            };
            if folder.is_empty() {
                file
            } else {
                format!("{folder}/{file}")
            }
        };
        let mut names: Vec<String> = by_folder.into_iter().map(pattern).collect();
        if names.len() > NAMED_SOURCES {
            let texts: Vec<&str> = names.iter().map(String::as_str).collect();
            names = vec![common(&texts)];
        }
        Self { count, names }
    }
}

impl std::fmt::Display for Sources {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(out, "{}", self.names.join(", "))?;
        if self.count > self.names.len() {
            write!(out, " ({} files)", self.count)?;
        }
        Ok(())
    }
}

/// What texts begin and end with, a `*` between.
fn common(texts: &[&str]) -> String {
    let shared = |a: &mut dyn Iterator<Item = char>, b: &mut dyn Iterator<Item = char>| {
        a.zip(b).take_while(|(a, b)| a == b).map(|(a, _)| a).collect::<String>()
    };
    let first = texts[0];
    let start = texts
        .iter()
        .map(|text| shared(&mut first.chars(), &mut text.chars()))
        .min_by_key(String::len)
        .unwrap_or_default();
    let end = texts
        .iter()
        .map(|text| {
            shared(
                &mut first[start.len()..].chars().rev(),
                &mut text[start.len()..].chars().rev(),
            )
        })
        .min_by_key(String::len)
        .unwrap_or_default();
    format!("{start}*{}", end.chars().rev().collect::<String>())
}

/// A timer and what became of it.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct TimerSummary {
    /// Name of the timer.
    pub timer: String,
    /// Ranks that ran it.
    pub ranks: usize,
    /// The median over these ranks of their means, seconds; null where it ran nowhere.
    pub median_seconds: Option<f64>,
    /// The largest of their means, seconds.
    pub largest_seconds: Option<f64>,
    /// Whether it is clustered, and why not.
    #[serde(flatten)]
    pub fate: TimerFate,
}

/// What one algorithm says.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct AlgorithmSummary {
    /// Name of the algorithm.
    pub algorithm: String,
    /// The ranks that it calls slow.
    pub slow_ranks: Vec<u32>,
    /// Its labels, timer by timer; empty where every window has its own.
    pub timers: Vec<AlgorithmTimer>,
}

/// How an algorithm labelled the ranks by one timer, or by all.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct AlgorithmTimer {
    /// Name of the timer; null for the evidence of all timers together.
    pub timer: Option<String>,
    /// The parameters that won; null when the ranks did not split.
    pub parameters: Option<String>,
    /// Clusters before folding to two.
    pub clusters: usize,
    /// Silhouette of the winner, -1 to 1.
    pub silhouette: Option<f64>,
    /// Calinski-Harabasz score of the winner.
    pub calinski_harabasz: Option<f64>,
    /// Davies-Bouldin score of the winner.
    pub davies_bouldin: Option<f64>,
    /// How many ranks it calls slow.
    pub slow: usize,
}

/// The votes on one rank.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct RankVotes {
    /// The rank.
    pub rank: u32,
    /// Its node.
    pub node: String,
    /// Algorithms that call it slow.
    pub votes: u32,
}

/// What a summary takes from the command line.
#[derive(Debug, Clone)]
pub struct Asked<'a> {
    /// Files that were read.
    pub source: Vec<String>,
    /// Files that were passed over.
    pub files_passed_over: Vec<String>,
    /// Rules with their thresholds.
    pub settings: &'a RulesSettings,
    /// The iterations, as written.
    pub iterations: String,
    /// Iterations dropped at the beginning of every run.
    pub warmup: u32,
    /// What the step times of all asked iterations tell.
    pub step_times: &'a StepTimes,
}

impl Summary {
    /// Puts a verdict into the form of the report.
    #[must_use]
    pub fn new(job: &Job, verdict: &Verdict, asked: Asked<'_>) -> Self {
        let nodes: BTreeSet<&String> = job.nodes.iter().collect();
        let known = Known {
            job,
            findings: &verdict.findings,
            what_if: verdict.what_if.as_ref().filter(|what_if| what_if.reason.is_none()),
        };
        Self {
            schema_version: SCHEMA_VERSION,
            tool_version: env!("CARGO_PKG_VERSION").to_owned(),
            job: job.id.clone(),
            anomaly_ranks: verdict.anomalies.iter().map(|&rank| job.ranks[rank]).collect(),
            anomaly_nodes: verdict.nodes(job),
            status: verdict.status,
            unjudged: verdict.unjudged.clone(),
            cause: verdict.cause,
            what_if: verdict.what_if.clone(),
            headlines: headlines(&known),
            findings: verdict.findings.clone(),
            communication: verdict.communication.summary.clone(),
            rules: asked.settings.rules().name().to_owned(),
            settings: asked.settings.clone(),
            links_compared: verdict
                .communication
                .flows
                .iter()
                .filter(|flow| flow.is_compared())
                .count(),
            sources: Sources::of(&asked.source),
            files_passed_over: asked.files_passed_over,
            window: WindowSummary {
                ranks: job.ranks.len(),
                nodes: nodes.len(),
                iterations: job.iteration_count(),
                first_iteration: job.iterations.first().copied().unwrap_or_default(),
                last_iteration: last_iteration(job),
                iterations_per_column: job.iterations_per_column(),
                first_time: job.iteration_times.first().map(|&time| timestamp::format(time)),
                last_time: job.iteration_times.last().map(|&time| timestamp::format(time)),
                printed_means: job.reduced.as_ref().is_some_and(|reduced| reduced.printed),
                asked_iterations: asked.iterations,
                warmup: asked.warmup,
            },
            topology: job.topology.clone(),
            runs: job.runs.clone(),
            moves: job.moves.clone(),
            step_times: asked.step_times.clone(),
            timers: timers(verdict),
            algorithms: algorithms(job, verdict),
            votes: votes(job, verdict),
            data_quality: job.quality.clone(),
            notes: job.job_wide.notes.clone(),
            machines: None,
            windows: Vec::new(),
        }
    }

    /// The headlines, of several windows all of theirs.
    #[must_use]
    pub fn all_headlines(&self) -> Vec<&Headline> {
        let own = self.headlines.iter();
        own.chain(self.windows.iter().flat_map(|window| &window.headlines))
            .collect()
    }
}

fn last_iteration(job: &Job) -> i64 {
    let last = job.iterations.len().checked_sub(1);
    last.map_or(0, |column| job.last_iteration_of(column))
}

fn timers(verdict: &Verdict) -> Vec<TimerSummary> {
    let summary = |timer: &crate::features::TimerVerdict| {
        let means = || timer.features.ranks.iter().flatten().map(|[_, _, _, mean]| *mean);
        // To the nanosecond: a server adds up in another order.
        let known = |seconds: f64| Some((seconds * 1e9).round() / 1e9).filter(|seconds| seconds.is_finite());
        TimerSummary {
            timer: timer.features.timer.clone(),
            ranks: timer.features.covered(),
            median_seconds: known(median(means())),
            largest_seconds: known(means().fold(f64::NAN, f64::max)),
            fate: timer.fate.clone(),
        }
    };
    verdict.timers.iter().map(summary).collect()
}

fn algorithms(job: &Job, verdict: &Verdict) -> Vec<AlgorithmSummary> {
    let on_timer = |labels: &crate::rules::TimerLabels| AlgorithmTimer {
        timer: labels.timer.map(|timer| verdict.timers[timer].features.timer.clone()),
        parameters: labels.parameters.clone(),
        clusters: labels.clusters,
        silhouette: labels.scores.as_ref().map(|scores| scores.silhouette),
        calinski_harabasz: labels.scores.as_ref().map(|scores| scores.calinski_harabasz),
        davies_bouldin: labels.scores.as_ref().map(|scores| scores.davies_bouldin),
        slow: labels.slow.iter().filter(|&&slow| slow).count(),
    };
    let summary = |algorithm: &crate::rules::AlgorithmVerdict| AlgorithmSummary {
        algorithm: algorithm.name.to_owned(),
        slow_ranks: job
            .ranks
            .iter()
            .zip(&algorithm.ranks)
            .filter(|(_, b)| b.slow)
            .map(|(&rank, _)| rank)
            .collect(),
        timers: algorithm.timers.iter().map(on_timer).collect(),
    };
    verdict.algorithms.iter().map(summary).collect()
}

fn votes(job: &Job, verdict: &Verdict) -> Vec<RankVotes> {
    let on_rank = |(rank, &votes): (usize, &u32)| RankVotes {
        rank: job.ranks[rank],
        node: job.nodes[rank].clone(),
        votes,
    };
    verdict
        .votes
        .iter()
        .enumerate()
        .filter(|&(_, &votes)| votes > 0)
        .map(on_rank)
        .collect()
}
