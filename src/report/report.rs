//! What a run found: one analysis, or one for each slow window with what they come to together.

use std::collections::{BTreeMap, BTreeSet};

use super::picture::Picture;
use super::summary::{AlgorithmSummary, Asked, RankVotes, Summary, TimerSummary};
use super::trace_view::trace_view;
use crate::job::{DataQuality, Job};
use crate::rules::Verdict;
use crate::verdict::Cause;
use crate::whatif::timers::WhatIf;

/// A summary with the labels that its tables hold.
#[derive(Debug, Clone)]
pub struct Report {
    /// The summary; of several windows what they come to together.
    pub summary: Summary,
    /// The ranks, ascending.
    pub(super) ranks: Vec<u32>,
    /// Their nodes.
    pub(super) nodes: Vec<String>,
    /// What pictures show of the job besides.
    pub(super) picture: Picture,
    /// Two iterations for a viewer of traces, where that was asked for.
    pub(super) trace_view: Option<serde_json::Value>,
    /// The verdict; of nothing where there are several windows.
    pub(super) verdict: Verdict,
    /// Each slow window's own report; empty where there is one analysis.
    pub(super) windows: Vec<Report>,
}

impl Report {
    /// The report of one analysis.
    #[must_use]
    pub fn new(job: &Job, verdict: Verdict, asked: Asked<'_>) -> Self {
        Self {
            summary: Summary::new(job, &verdict, asked),
            ranks: job.ranks.clone(),
            nodes: job.nodes.clone(),
            picture: Picture::of(job),
            trace_view: None,
            verdict,
            windows: Vec::new(),
        }
    }

    /// The same with `trace.json` of the job's slowest and a typical iteration.
    #[must_use]
    pub fn with_trace_view(mut self, job: &Job) -> Self {
        self.trace_view = Some(trace_view(job, &self.summary.anomaly_ranks));
        self
    }

    /// The report of a job that was analysed in several windows, each of which has a report of its own.
    ///
    /// Whoever stands out in one of them stands out; the cause is that of the window in which it costs most, by its
    /// share of the step and the number of steps; votes are a rank's most. No windows give a report of nothing.
    #[must_use]
    pub fn of_windows(job: &Job, windows: Vec<Report>, asked: Asked<'_>) -> Self {
        let nothing = Verdict::default();
        let parts: Vec<&Summary> = windows.iter().map(|report| &report.summary).collect();
        let mut whole = Summary::new(job, &nothing, asked);
        whole.anomaly_ranks = union(parts.iter().flat_map(|part| &part.anomaly_ranks));
        whole.anomaly_nodes = union(parts.iter().flat_map(|part| &part.anomaly_nodes));
        whole.cause = costliest_cause(&parts);
        whole.status = parts.iter().map(|part| part.status).max().unwrap_or_default();
        whole.unjudged = unjudged(&parts);
        whole.communication = union(parts.iter().map(|part| &part.communication)).join("; ");
        whole.findings = parts.iter().flat_map(|part| part.findings.clone()).collect();
        let costs: Vec<(&WhatIf, usize)> = parts
            .iter()
            .filter_map(|part| {
                Some((
                    part.what_if.as_ref()?,
                    part.window.iterations * part.window.iterations_per_column,
                ))
            })
            .collect();
        whole.what_if = WhatIf::together(&costs);
        whole.timers = timers(&parts);
        whole.algorithms = algorithms(&parts);
        whole.votes = votes(&parts);
        whole.window.iterations = parts.iter().map(|part| part.window.iterations).sum();
        if let (Some(first), Some(last)) = (parts.first(), parts.last()) {
            whole.window.first_iteration = first.window.first_iteration;
            whole.window.last_iteration = last.window.last_iteration;
            whole.window.first_time.clone_from(&first.window.first_time);
            whole.window.last_time.clone_from(&last.window.last_time);
        }
        add_up_quality(&mut whole.data_quality, &parts);
        whole.windows = parts.into_iter().cloned().collect();
        Self {
            summary: whole,
            ranks: job.ranks.clone(),
            nodes: job.nodes.clone(),
            picture: Picture::of(job),
            trace_view: None,
            verdict: nothing,
            windows,
        }
    }

    /// The job's nodes, each once, sorted.
    #[must_use]
    pub fn nodes(&self) -> Vec<&str> {
        let nodes: BTreeSet<&str> = self.nodes.iter().map(String::as_str).collect();
        nodes.into_iter().collect()
    }

    /// Name of a window's folder in the result folder.
    pub(super) fn folder_name(&self) -> String {
        folder_name(&self.summary)
    }
}

/// Name of a window's folder in the result folder.
pub(super) fn folder_name(window: &Summary) -> String {
    format!(
        "window-{}-{}",
        window.window.first_iteration, window.window.last_iteration
    )
}

/// Counts of what the windows use; what lies between them is outside.
fn add_up_quality(whole: &mut DataQuality, parts: &[&Summary]) {
    let sum = |of: fn(&DataQuality) -> u64| parts.iter().map(|part| of(&part.data_quality)).sum::<u64>();
    let used = sum(|part| part.timer_rows_used);
    whole.outside_iterations += whole.timer_rows_used.saturating_sub(used);
    whole.timer_rows_used = used;
    whole.zero_durations = sum(|part| part.zero_durations);
    let trace_used = sum(|part| part.trace_rows_used);
    whole.trace_rows_left_out += whole.trace_rows_used.saturating_sub(trace_used);
    whole.trace_rows_used = trace_used;
    whole.calls_used = sum(|part| part.calls_used);
    whole.bad_calls = sum(|part| part.bad_calls);
}

fn union<'a, T: Ord + Clone + 'a>(items: impl Iterator<Item = &'a T>) -> Vec<T> {
    let items: BTreeSet<&T> = items.collect();
    items.into_iter().cloned().collect()
}

fn costliest_cause(parts: &[&Summary]) -> Cause {
    let seconds = |part: &Summary| {
        let costs = part
            .findings
            .iter()
            .filter(|finding| finding.cause == part.cause)
            .filter_map(|finding| finding.cost);
        costs.fold(0.0, f64::max) * part.window.iterations as f64
    };
    let mut most = (Cause::None, f64::NEG_INFINITY);
    for part in parts.iter().filter(|part| part.cause != Cause::None) {
        let cost = seconds(part);
        if cost > most.1 {
            most = (part.cause, cost);
        }
    }
    most.0
}

/// Why nobody could be named, if that is so in every window.
fn unjudged(parts: &[&Summary]) -> Option<String> {
    let mut reasons: Vec<&str> = parts.iter().filter_map(|part| part.unjudged.as_deref()).collect();
    reasons.dedup();
    (!reasons.is_empty()).then(|| reasons.join("; "))
}

/// Every timer as in the window in which most ranks ran it.
fn timers(parts: &[&Summary]) -> Vec<TimerSummary> {
    let mut by_name: BTreeMap<&str, &TimerSummary> = BTreeMap::new();
    for timer in parts.iter().flat_map(|part| &part.timers) {
        let known = by_name.entry(&timer.timer).or_insert(timer);
        if timer.ranks > known.ranks {
            *known = timer;
        }
    }
    by_name.into_values().cloned().collect()
}

/// The ranks that each algorithm calls slow in any window.
fn algorithms(parts: &[&Summary]) -> Vec<AlgorithmSummary> {
    let Some(first) = parts.first() else {
        return Vec::new();
    };
    let in_all = |name: &str| {
        let same = parts.iter().flat_map(|part| &part.algorithms);
        union(
            same.filter(|algorithm| algorithm.algorithm == name)
                .flat_map(|algorithm| &algorithm.slow_ranks),
        )
    };
    let one = |algorithm: &AlgorithmSummary| AlgorithmSummary {
        algorithm: algorithm.algorithm.clone(),
        slow_ranks: in_all(&algorithm.algorithm),
        timers: Vec::new(),
    };
    first.algorithms.iter().map(one).collect()
}

fn votes(parts: &[&Summary]) -> Vec<RankVotes> {
    let mut by_rank: BTreeMap<u32, &RankVotes> = BTreeMap::new();
    for votes in parts.iter().flat_map(|part| &part.votes) {
        let known = by_rank.entry(votes.rank).or_insert(votes);
        if votes.votes > known.votes {
            *known = votes;
        }
    }
    by_rank.into_values().cloned().collect()
}
