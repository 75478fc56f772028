//! The summary as `key: value` lines and a block for each finding, for people and for scripts.

use std::fmt::Write as _;
use std::fs;
use std::path::Path;

use serde::Serialize;

use super::error::WriteError;
use super::report::{Report, folder_name};
use super::summary::{Summary, TimerSummary};
use super::text_cost::{cost, cost_alone};
use crate::contract::printable::{json_printable, on_one_line};
use crate::features::TimerFate;
use crate::job::{Move, Restart, SlowWindow, Stall, StepTimes, TopologyOrigin};
use crate::verdict::{Finding, FindingKind, LinkEvidence, TimerEvidence, words};

/// Name of the file.
const SUMMARY_TXT: &str = "summary.txt";

/// Writes the summary into a result folder.
///
/// # Errors
/// A file that can't be written, a name that JSON can't hold.
pub(super) fn export(folder: &Path, report: &Report) -> Result<(), WriteError> {
    let file = folder.join(SUMMARY_TXT);
    fs::write(&file, text(&report.summary)?).map_err(WriteError::io(file))
}

/// Puts the summary into words.
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
        let _ = writeln!(out, "{}", on_one_line(&format!("{key}: {value}")));
    };
    line("job", &summary.job);
    line("status", &summary.status.name());
    line("anomaly_ranks", &ranks);
    line("anomaly_nodes", &nodes);
    line("cause", &summary.cause.name());
    if let Some(why) = &summary.unjudged {
        line("unjudged", why);
    }
    if let Some(what_if) = &summary.what_if {
        line("cost", &cost(what_if));
    }
    line("communication", &summary.communication);
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
    if window.iterations_per_column > 1 {
        line(
            "reduced",
            &format_args!(
                "each {} iterations {}",
                window.iterations_per_column,
                if window.printed_means {
                    "printed as their mean"
                } else {
                    "put together on the server"
                }
            ),
        );
    }
    line("parallel_groups", &parallel_groups(summary));
    line("runs", &runs(summary));
    if !summary.moves.is_empty() {
        line("moved", &moves(&summary.moves));
    }
    for (key, value) in step_times(&summary.step_times) {
        line(key, &value);
    }
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
    for note in &summary.notes {
        line("note", note);
    }
    if summary.windows.is_empty() {
        for finding in &summary.findings {
            out += &block(finding)?;
        }
    }
    for window in &summary.windows {
        out += &window_block(window)?;
    }
    Ok(out)
}

/// A slow window's verdict, then its findings.
fn window_block(window: &Summary) -> Result<String, WriteError> {
    let (ranks, nodes) = (json_array(&window.anomaly_ranks)?, json_array(&window.anomaly_nodes)?);
    let mut out = format!(
        "\nslow window: iterations {}-{}\n",
        window.window.first_iteration, window.window.last_iteration
    );
    let mut put = |key: &str, value: &dyn std::fmt::Display| {
        let _ = writeln!(out, "{}", on_one_line(&format!("  {key}: {value}")));
    };
    put("status", &window.status.name());
    put("ranks", &ranks);
    put("nodes", &nodes);
    put("cause", &window.cause.name());
    if let Some(why) = &window.unjudged {
        put("unjudged", why);
    }
    put("summary of its own in", &folder_name(window));
    for finding in &window.findings {
        out += &block(finding)?;
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
    Ok(json_printable(&format!("[{}]", items.join(", "))))
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
                                    tell), taken as one pipeline stage unless transfers show that there are several"
            .to_owned(),
    }
}

/// A line for each kind of irregularity of the step time.
fn step_times(times: &StepTimes) -> Vec<(&'static str, String)> {
    let listed = |items: Vec<String>| if items.is_empty() { None } else { Some(items.join("; ")) };
    let window = |w: &SlowWindow| {
        let (first, last, factor) = (w.first, w.last, w.factor);
        format!(
            "iterations {first}-{last} at {factor:.2} x the {:.3} s of normal steps",
            w.baseline_seconds
        )
    };
    let stall = |stall: &Stall| format!("{:.0} s at iteration {}", stall.seconds, stall.iteration);
    let restart = |restart: &Restart| {
        let from = format!(
            "at iteration {}, {} of them run again",
            restart.iteration, restart.repeated
        );
        restart
            .seconds
            .map_or(from.clone(), |seconds| format!("{from}, after {seconds:.0} s"))
    };
    let drift = times.drift.iter().map(|drift| {
        let (first, last) = (drift.first_seconds, drift.last_seconds);
        format!("from {first:.3} s to {last:.3} s ({:.2} x)", drift.factor)
    });
    let none = times
        .measure
        .as_ref()
        .map_or("unknown: no timer tells the step time", |_| "none");
    let lines = [
        (
            "slow_windows",
            listed(times.windows.iter().map(window).collect()).or(Some(none.to_owned())),
        ),
        ("stalls", listed(times.stalls.iter().map(stall).collect())),
        ("restarts", listed(times.restarts.iter().map(restart).collect())),
        ("step_time_drift", listed(drift.collect())),
    ];
    lines
        .into_iter()
        .filter_map(|(key, value)| value.map(|value| (key, value)))
        .collect()
}

/// `rank 3 left gpu-1 at iteration 40`, those of one node and iteration together.
fn moves(moves: &[Move]) -> String {
    let mut together = std::collections::BTreeMap::<(i64, &str), Vec<u32>>::new();
    for one in moves {
        together.entry((one.iteration, &one.from)).or_default().push(one.rank);
    }
    let left = |((iteration, from), ranks): (&(i64, &str), &Vec<u32>)| {
        format!("{} left {from} at iteration {iteration}", words::ranks(ranks))
    };
    together.iter().map(left).collect::<Vec<_>>().join("; ")
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
        "timers_compared",
        "timers_clustered",
        "timers_left_out_by_spread",
        "timers_left_out_by_coverage",
        "timers_left_out_as_not_compute",
        "timers_not_compared",
        "timers_left_out_as_step_time",
    ]
    .map(|key| (key, Vec::new()))
    .into();
    for TimerSummary { timer, fate, .. } in &summary.timers {
        let (line, words) = match fate {
            TimerFate::Compared { ranks } => (0, on_ranks(timer, *ranks, summary.window.ranks)),
            TimerFate::Clustered { spread } => (1, format!("{timer} (spread {spread:.3})")),
            TimerFate::Spread { spread } => (2, format!("{timer} (spread {spread:.3})")),
            TimerFate::Coverage { ranks } => (3, format!("{timer} (on {ranks} of {} ranks)", summary.window.ranks)),
            TimerFate::NotCompute => (4, timer.clone()),
            TimerFate::NotCompared => (5, timer.clone()),
            TimerFate::StepTime => (6, timer.clone()),
        };
        lines[line].1.push(words);
    }
    lines
        .into_iter()
        .filter(|(_, timers)| !timers.is_empty())
        .map(|(key, timers)| (key, timers.join(", ")))
        .collect()
}

fn on_ranks(timer: &str, ranks: usize, of: usize) -> String {
    if ranks == of {
        timer.to_owned()
    } else {
        format!("{timer} (on {ranks} of {of} ranks)")
    }
}

/// A finding for a ticket: the sentence, then what it rests on.
fn block(finding: &Finding) -> Result<String, WriteError> {
    let mut lines = vec![String::new(), format!("{}: {}", finding.kind.name(), finding.says)];
    let mut put = |key: &str, value: String| lines.push(format!("  {key}: {value}"));
    if !finding.ranks.is_empty() {
        put("ranks", json_array(&finding.ranks)?);
        put("nodes", json_array(&finding.nodes)?);
    }
    match finding.stages.as_slice() {
        [] => {}
        [stage] => put("pipeline stage", stage.to_string()),
        stages => put("pipeline stages", listed(stages)),
    }
    if let Some(factor) = finding.factor {
        put("factor", format!("{factor:.3} x {}", compared_with(finding)));
    }
    if let Some(when) = when(finding) {
        put("when", when);
    }
    if let Some(cost) = finding.cost {
        put("cost", cost_alone(finding, cost));
    }
    if finding.voters > 0 {
        let (votes, voters) = (finding.voted_by.len(), finding.voters);
        let names = finding.voted_by.join(", ");
        put("votes", format!("{votes} of {voters}{}", in_brackets(&names)));
    }
    if let Some(confidence) = finding.confidence {
        put("confidence", format!("{confidence:.2}"));
    }
    if let Some(ratio) = finding.slow_step_ratio {
        put("compute in the slowest steps", format!("{ratio:.3} x the fastest rank"));
    }
    for timer in &finding.timers {
        put(&timer.timer, on_timer(timer));
    }
    for link in finding.links.iter().take(LINKS_SHOWN) {
        put(&on_link(link), on_transfer(link, finding.iterations));
    }
    if finding.links.len() > LINKS_SHOWN {
        put("further transfers", (finding.links.len() - LINKS_SHOWN).to_string());
    }
    if let Some(rule) = &finding.decided_by {
        put("decided by", rule.clone());
    }
    let lines: Vec<String> = lines.iter().map(|line| on_one_line(line)).collect();
    Ok(lines.join("\n") + "\n")
}

fn compared_with(finding: &Finding) -> &'static str {
    match finding.kind {
        FindingKind::Stall => "the usual step",
        FindingKind::SlowNetwork | FindingKind::SlowLink => "the usual transfer",
        FindingKind::Transient => "its own usual time",
        FindingKind::Imbalance if finding.ranks.is_empty() => "the other stages",
        FindingKind::Imbalance => "the other pipelines",
        _ => "the peers",
    }
}

/// The iterations in which it shows, of how many, and what is known of its beginning and end.
fn when(finding: &Finding) -> Option<String> {
    let count = finding.slow_iterations?;
    let (first, last) = (finding.first_iteration?, finding.last_iteration?);
    let share = 100.0 * count as f64 / finding.iterations.max(1) as f64;
    let mut words = if first == last {
        format!("iteration {first}")
    } else {
        format!("iterations {first}-{last}")
    };
    words += &format!(", {count} of {} ({share:.0} %)", finding.iterations);
    if let Some(onset) = finding.onset {
        words += &format!("; began at {onset}");
    }
    if let Some(until) = finding.until {
        words += &format!("; ended with {until}");
    }
    Some(words)
}

fn on_timer(timer: &TimerEvidence) -> String {
    let called = if timer.slow_by.is_empty() {
        String::new()
    } else {
        format!("; called slow by {}", timer.slow_by.join(", "))
    };
    format!(
        "mean {:.6} s, {:.3} x the peers' {:.6} s{called}",
        timer.mean_seconds, timer.factor, timer.reference_seconds
    )
}

/// Slow transfers that a finding lists; summary.json has them all.
const LINKS_SHOWN: usize = 8;

fn on_link(link: &LinkEvidence) -> String {
    let LinkEvidence { sender, receiver, .. } = link;
    format!("{} of {sender} to {} of {receiver}", link.send_timer, link.recv_timer)
}

fn on_transfer(link: &LinkEvidence, iterations: usize) -> String {
    format!(
        "{:.6} s, {:.2} x the usual {:.6} s, in {} of {iterations} iterations",
        link.seconds, link.factor, link.usual_seconds, link.slow_iterations
    )
}

fn in_brackets(words: &str) -> String {
    if words.is_empty() {
        String::new()
    } else {
        format!(" ({words})")
    }
}

fn listed(stages: &[u32]) -> String {
    let stages: Vec<String> = stages.iter().map(u32::to_string).collect();
    stages.join(", ")
}
