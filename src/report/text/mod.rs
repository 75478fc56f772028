//! The summary as text: the verdict for people, then `key: value` lines and a block for each finding, for scripts and tickets.

mod block;
pub(super) mod cost;
mod lines;

use std::fmt::Write as _;
use std::fs;
use std::path::Path;

use serde::Serialize;

use self::block::block;
use self::cost::cost;
use self::lines::{algorithms, moves, parallel_groups, runs, step_times, timers_by_fate};
use super::error::WriteError;
use super::report::{Report, folder_name};
use super::screen::{Look, is_for_scripts, screen};
use super::summary::Summary;
use crate::contract::printable::{json_printable, on_one_line};

/// Name of the file.
const SUMMARY_TXT: &str = "summary.txt";

/// Writes the summary into a result folder.
///
/// # Errors
/// A file that can't be written, a name that JSON can't hold.
pub(super) fn export(folder: &Path, report: &Report) -> Result<(), WriteError> {
    let file = folder.join(SUMMARY_TXT);
    fs::write(&file, text(&report.summary, Look::default())?).map_err(WriteError::io(file))
}

/// All that a summary holds: its [`screen`], then its `key: value` lines and a block for each finding.
///
/// The lines `anomaly_ranks` and `anomaly_nodes` hold JSON arrays.
///
/// # Errors
/// A name that JSON can't hold.
pub fn text(summary: &Summary, look: Look) -> Result<String, WriteError> {
    Ok(screen(summary, look) + "\n" + &lines_and_blocks(summary)?)
}

/// The lines that scripts read: job, status, anomaly ranks and nodes, cause.
///
/// # Errors
/// A name that JSON can't hold.
pub fn lines_for_scripts(summary: &Summary) -> Result<String, WriteError> {
    let text = lines_and_blocks(summary)?;
    let head = text
        .lines()
        .take_while(|line| !line.is_empty())
        .filter(|line| is_for_scripts(line));
    Ok(head.map(|line| format!("{line}\n")).collect())
}

fn lines_and_blocks(summary: &Summary) -> Result<String, WriteError> {
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
    line("source", &summary.sources);
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
    if let Some(machines) = &summary.machines {
        line("machine_metrics", &machines.compared());
        line("machine_metrics_of", &machines.metrics.join(", "));
        if machines.machines_of_others > 0 {
            line(
                "machines_left_out",
                &format_args!("{} that are no nodes of the job", machines.machines_of_others),
            );
        }
        for machine in &machines.different {
            let key = if machine.confirmed {
                "machine_confirmed"
            } else {
                "machine_told"
            };
            line(key, &machine.says);
        }
        for missing in &machines.missing {
            let since = missing.last_sample.as_deref().unwrap_or("the start");
            line("machine_silent", &format_args!("{} since {since}", missing.node));
        }
        for note in &machines.notes {
            line("machine_note", note);
        }
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
