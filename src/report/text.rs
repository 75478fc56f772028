//! The summary as `key: value` lines and a block for each finding, for people and for scripts.

use std::fmt::Write as _;

use super::error::WriteError;
use super::findings::Finding;
use super::summary::{Summary, TimerSummary};
use crate::features::TimerFate;

/// Writes the summary.
///
/// The lines `anomaly_ranks` and `anomaly_nodes` hold JSON arrays.
///
/// # Errors
/// A name that JSON can't hold.
pub fn text(summary: &Summary) -> Result<String, WriteError> {
    let array = |value: serde_json::Result<String>| {
        value.map(|text| text.replace(',', ", ")).map_err(|reason| WriteError::Format { what: "a list", reason: reason.to_string() })
    };
    let ranks = array(serde_json::to_string(&summary.anomaly_ranks))?;
    // Names may hold commas of their own.
    let nodes = summary
        .anomaly_nodes
        .iter()
        .map(|node| array(serde_json::to_string(node)).map(|_| serde_json::Value::from(node.as_str()).to_string()))
        .collect::<Result<Vec<_>, _>>()?
        .join(", ");
    let mut out = String::new();
    let mut line = |key: &str, value: &dyn std::fmt::Display| {
        // Writing to a string can't fail.
        let _ = writeln!(out, "{key}: {value}");
    };
    line("job", &summary.job);
    line("anomaly_ranks", &ranks);
    line("anomaly_nodes", &format_args!("[{nodes}]"));
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
    for timer in &summary.timers {
        line(&format!("timer {}", timer.timer), &timer_fate(timer, window.ranks));
    }
    let counts = summary.data_quality.counts();
    let counts: Vec<String> = counts.iter().filter(|(_, count)| *count > 0).map(|(name, count)| format!("{name} {count}")).collect();
    line("data_quality", &counts.join(", "));
    for finding in &summary.findings {
        block(&mut out, finding, summary.algorithms.len());
    }
    Ok(out)
}

fn parallel_groups(summary: &Summary) -> String {
    let topology = &summary.topology;
    if !topology.from_rows {
        return "unknown (no megatron_parallel_group_rank rows), taken as one pipeline stage".to_owned();
    }
    let sizes: Vec<String> = topology.sizes.iter().map(|(group, size)| format!("{group} {size}")).collect();
    sizes.join(", ")
}

fn runs(summary: &Summary) -> String {
    let run = |run: &crate::job::Run| {
        let name = if run.uuid.is_empty() { "(unnamed)" } else { &run.uuid };
        let (first, last) = (run.first_iteration, run.last_iteration);
        format!("{name} iterations {first}-{last} from {} to {}", run.first_time, run.last_time)
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
    let one = |algorithm: &super::AlgorithmSummary| format!("{} ({})", algorithm.algorithm, slow(algorithm.slow_ranks.len()));
    let all: Vec<String> = summary.algorithms.iter().map(one).collect();
    all.join(", ")
}

fn timer_fate(timer: &TimerSummary, ranks: usize) -> String {
    match &timer.fate {
        fate @ TimerFate::Clustered { .. } => fate.reason(ranks),
        fate => fate.reason(ranks),
    }
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
    put(format_args!("  votes: {} of {algorithms} ({voters})", finding.voted_by.len()));
    if let Some(ratio) = finding.slow_step_ratio {
        put(format_args!("  compute in the slowest steps: {ratio:.3} x the fastest rank"));
    }
    for timer in &finding.timers {
        put(format_args!(
            "  {}: mean {:.6} s, {:.3} x the median rank; called slow by {}",
            timer.timer,
            timer.mean_seconds,
            timer.factor,
            if timer.slow_by.is_empty() { "nobody".to_owned() } else { timer.slow_by.join(", ") }
        ));
    }
}
