//! The summary as `key: value` lines and a block for each finding, for people and for scripts.

use std::fmt::Write as _;

use serde::Serialize;

use super::error::WriteError;
use super::findings::Finding;
use super::summary::{Summary, TimerSummary};
use crate::features::TimerFate;
use crate::job::TopologyOrigin;

/// Writes the summary.
///
/// The lines `anomaly_ranks` and `anomaly_nodes` hold JSON arrays.
///
/// # Errors
/// A name that JSON can't hold.
pub fn text(summary: &Summary) -> Result<String, WriteError> {
    let ranks = json_array(&summary.anomaly_ranks)?;
    let nodes = json_array(&summary.anomaly_nodes)?;
    let mut out = String::new();
    let mut line = |key: &str, value: &dyn std::fmt::Display| {
        // Writing to a string can't fail.
        let _ = writeln!(out, "{key}: {value}");
    };
    line("job", &summary.job);
    line("anomaly_ranks", &ranks);
    line("anomaly_nodes", &nodes);
    line("cause", &summary.cause.name());
    if let Some(why) = &summary.nothing_to_compare {
        line("nothing_to_compare", why);
    }
    line("rules", &summary.rules);
    line("source", &summary.source.join(", "));
    if !summary.files_passed_over.is_empty() {
        line("files_passed_over", &summary.files_passed_over.join(", "));
    }
    let window = &summary.window;
    line("ranks", &window.ranks);
    line("nodes", &window.nodes);
    line(
        "iterations",
        &format_args!(
            "{}-{} ({} of them; asked: {}; warm-up {})",
            window.first_iteration, window.last_iteration, window.iterations, window.asked_iterations, window.warmup
        ),
    );
    line("parallel_groups", &parallel_groups(summary));
    line("runs", &runs(summary));
    line("algorithms", &algorithms(summary));
    for (fate, timers) in timers_by_fate(summary) {
        line(fate, &timers);
    }
    let counts = summary.data_quality.counts();
    let counts: Vec<String> = counts
        .iter()
        .filter(|(_, count)| *count > 0)
        .map(|(name, count)| format!("{name} {count}"))
        .collect();
    line("data_quality", &counts.join(", "));
    for finding in &summary.findings {
        block(&mut out, finding, summary.algorithms.len());
    }
    Ok(out)
}

/// A JSON array with a blank after each comma between its items.
fn json_array<T: Serialize>(items: &[T]) -> Result<String, WriteError> {
    let items: Result<Vec<String>, _> = items.iter().map(serde_json::to_string).collect();
    let items = items.map_err(|reason| WriteError::Format {
        what: "a list",
        reason: reason.to_string(),
    })?;
    Ok(format!("[{}]", items.join(", ")))
}

fn parallel_groups(summary: &Summary) -> String {
    let topology = &summary.topology;
    let sizes: Vec<String> = topology
        .sizes
        .iter()
        .map(|(group, size)| format!("{group} {size}"))
        .collect();
    let sizes = sizes.join(", ");
    match &topology.origin {
        TopologyOrigin::Rows => format!("{sizes} (from rows)"),
        TopologyOrigin::Flags => format!("{sizes} (from flags)"),
        TopologyOrigin::Inferred { sure, from } => {
            format!("{sizes} (inferred, {:.0} % sure, from: {from})", 100.0 * sure)
        }
        TopologyOrigin::Unknown => "unknown (no megatron_parallel_group_rank rows, no flags, and timers that do not \
                                    tell, as those of interleaved schedules), taken as one pipeline stage"
            .to_owned(),
    }
}

fn runs(summary: &Summary) -> String {
    let run = |run: &crate::job::Run| {
        let name = if run.uuid.is_empty() { "(unnamed)" } else { &run.uuid };
        let (first, last) = (run.first_iteration, run.last_iteration);
        format!(
            "{name} iterations {first}-{last} from {} to {}",
            run.first_time, run.last_time
        )
    };
    let runs: Vec<String> = summary.runs.iter().map(run).collect();
    runs.join("; ")
}

fn algorithms(summary: &Summary) -> String {
    let slow = |count: usize| match count {
        0 => "nobody".to_owned(),
        1 => "1 rank".to_owned(),
        count => format!("{count} ranks"),
    };
    let one =
        |algorithm: &super::AlgorithmSummary| format!("{} ({})", algorithm.algorithm, slow(algorithm.slow_ranks.len()));
    let all: Vec<String> = summary.algorithms.iter().map(one).collect();
    all.join(", ")
}

/// A line for each fate that some timer met, with those timers.
fn timers_by_fate(summary: &Summary) -> Vec<(&'static str, String)> {
    let mut lines: Vec<(&'static str, Vec<String>)> = [
        "timers_clustered",
        "timers_left_out_by_spread",
        "timers_left_out_by_coverage",
        "timers_left_out_as_not_compute",
        "timers_left_out_as_step_time",
    ]
    .map(|key| (key, Vec::new()))
    .into();
    for TimerSummary { timer, fate, .. } in &summary.timers {
        let (line, words) = match fate {
            TimerFate::Clustered { spread } => (0, format!("{timer} (spread {spread:.3})")),
            TimerFate::Spread { spread } => (1, format!("{timer} (spread {spread:.3})")),
            TimerFate::Coverage { ranks } => (2, format!("{timer} (on {ranks} of {} ranks)", summary.window.ranks)),
            TimerFate::NotCompute => (3, timer.clone()),
            TimerFate::StepTime => (4, timer.clone()),
        };
        lines[line].1.push(words);
    }
    lines
        .into_iter()
        .filter(|(_, timers)| !timers.is_empty())
        .map(|(key, timers)| (key, timers.join(", ")))
        .collect()
}

fn block(out: &mut String, finding: &Finding, algorithms: usize) {
    let mut put = |text: std::fmt::Arguments<'_>| {
        let _ = writeln!(out, "{text}");
    };
    put(format_args!(""));
    put(format_args!("rank {} on {}", finding.rank, finding.node));
    if let Some(stage) = finding.stage {
        put(format_args!("  pipeline stage: {stage}"));
    }
    let voters = finding.voted_by.join(", ");
    put(format_args!(
        "  votes: {} of {algorithms} ({voters})",
        finding.voted_by.len()
    ));
    if let Some(ratio) = finding.slow_step_ratio {
        put(format_args!(
            "  compute in the slowest steps: {ratio:.3} x the fastest rank"
        ));
    }
    for timer in &finding.timers {
        put(format_args!(
            "  {}: mean {:.6} s, {:.3} x the median rank; called slow by {}",
            timer.timer,
            timer.mean_seconds,
            timer.factor,
            if timer.slow_by.is_empty() {
                "nobody".to_owned()
            } else {
                timer.slow_by.join(", ")
            }
        ));
    }
}
