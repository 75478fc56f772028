//! The verdict for people.

use std::fmt::Write as _;

use super::verdict::{Finding, Kind, Status, Verdict};

/// A screen of text; two lines are for scripts as well: `status:` and `anomaly_nodes:`.
#[must_use]
pub fn text(verdict: &Verdict) -> String {
    let mut out = String::new();
    let status = match verdict.status {
        Status::Fault => "fault",
        Status::Healthy => "healthy",
        Status::CannotTell => "cannot-tell",
    };
    let job = if verdict.job.is_empty() { "-" } else { &verdict.job };
    // Writing into a string can't fail.
    let _ = writeln!(out, "job: {job}\nwindow: {} to {}", verdict.start, verdict.end);
    let _ = writeln!(out, "status: {status}");
    if let Some(reason) = &verdict.reason {
        let _ = writeln!(out, "reason: {reason}");
    }
    let nodes = serde_json::to_string(&verdict.anomaly_nodes).unwrap_or_default();
    let _ = writeln!(out, "anomaly_nodes: {nodes}");
    if !verdict.cordon.is_empty() {
        let _ = writeln!(out, "cordon: {}", verdict.cordon);
    }
    for finding in &verdict.findings {
        out.push('\n');
        write_finding(&mut out, finding);
    }
    if verdict.status == Status::Healthy {
        let _ = writeln!(
            out,
            "\nOK    {} machines, {} metrics compared: no machine differs lastingly",
            verdict.machines,
            verdict.metrics.len()
        );
    }
    if !verdict.missing_nodes.is_empty() {
        out.push('\n');
    }
    for missing in &verdict.missing_nodes {
        let since = missing
            .last_sample
            .as_ref()
            .map_or("no sample in the window".to_owned(), |last| {
                format!("no sample since {last}")
            });
        let _ = writeln!(
            out,
            "MISSING  {}: {since}. Check whether the machine or its exporter is down",
            missing.node
        );
    }
    for also in &verdict.also_different {
        let _ = writeln!(
            out,
            "also  {} differs in {} (score {:.1}): told, not blamed; it may only wait for the machine above",
            also.node, also.metric, also.score
        );
    }
    for warning in &verdict.warnings {
        let _ = writeln!(out, "note  {warning}");
    }
    let quality = verdict.quality;
    let left_out = [
        (quality.other_jobs, "rows of other jobs"),
        (quality.outside_window, "samples before the window"),
        (quality.unreadable, "rows without a time, node, metric or number"),
        (quality.duplicates, "second samples of a moment"),
        (quality.counter_resets, "resets of counters"),
    ];
    let left_out: Vec<String> = left_out
        .iter()
        .filter(|(count, _)| *count > 0)
        .map(|(count, what)| format!("{count} {what}"))
        .collect();
    if !left_out.is_empty() {
        let _ = writeln!(out, "left out: {}", left_out.join(", "));
    }
    out
}

fn write_finding(out: &mut String, finding: &Finding) {
    let until = if finding.lasts_to_end {
        "to the end".to_owned()
    } else {
        format!("to {}", finding.until)
    };
    let unit = if finding.unit.is_empty() {
        String::new()
    } else {
        format!(" {}", finding.unit)
    };
    match finding.kind {
        Kind::Different => {
            let _ = writeln!(
                out,
                "DIFFERENT  {}: {} is {} than on the other machines",
                finding.node, finding.metric, finding.direction
            );
            let _ = writeln!(out, "  since {} {until} ({:.0} s)", finding.since, finding.seconds);
            let _ = writeln!(
                out,
                "  mean {:.4}{unit}, the machines' median {:.4}{unit}; healthy machines differ by about {:.3}",
                finding.value, finding.peers, finding.usual_difference
            );
            let _ = writeln!(out, "  score {:.1}, threshold {:.1}", finding.score, finding.threshold);
        }
        Kind::Stuck => {
            let _ = writeln!(
                out,
                "STUCK  {}: {} stands at {}{unit} while the other machines' values change",
                finding.node, finding.metric, finding.value
            );
            let _ = writeln!(out, "  since {} {until} ({:.0} s)", finding.since, finding.seconds);
            let _ = writeln!(out, "  next: check the sensor and the exporter first, then the machine");
        }
    }
    if !finding.seen_in.is_empty() {
        let seen: Vec<String> = finding.seen_in.iter().map(|seen| seen.metric.clone()).collect();
        let _ = writeln!(out, "  also in: {}", seen.join(", "));
    }
}
