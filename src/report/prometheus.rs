//! A summary as metrics for the textfile collector of Prometheus's node exporter.

use std::fmt::Write as _;

use super::summary::Summary;
use crate::source::timestamp;
use crate::verdict::Status;

/// Every word that a status can be.
const STATUSES: [Status; 4] = [Status::Healthy, Status::Imbalance, Status::CannotTell, Status::Fault];

/// The metrics of a summary; `now` is when it was made, seconds since 1970.
///
/// `mt_detector_status{status=...}` is 1 for the one that holds; `time() - mt_detector_result_timestamp_seconds` is the age
/// of the result, `time() - mt_detector_window_end_timestamp_seconds` that of the job's last row in it. What the faults
/// cost has no line where it is not known.
#[must_use]
pub fn prometheus(summary: &Summary, now: i64) -> String {
    let job = label(&summary.job);
    let mut out = String::new();
    let mut put = |name: &str, help: &str, lines: &[(String, f64)]| {
        if lines.is_empty() {
            return;
        }
        // Writing to a string can't fail.
        let _ = writeln!(out, "# HELP mt_detector_{name} {help}\n# TYPE mt_detector_{name} gauge");
        for (labels, value) in lines {
            let _ = writeln!(out, "mt_detector_{name}{{job=\"{job}\"{labels}}} {value}");
        }
    };
    let statuses = STATUSES.map(|status| {
        let holds = f64::from(u8::from(status == summary.status));
        (format!(",status=\"{}\"", status.name()), holds)
    });
    put(
        "status",
        "1 for what the verdict comes to, 0 for what it does not.",
        &statuses,
    );
    put(
        "cause",
        "1 for what costs the job most.",
        &[(format!(",cause=\"{}\"", summary.cause.name()), 1.0)],
    );
    let plain = |value: f64| [(String::new(), value)];
    put(
        "slow_ranks",
        "Ranks that are named.",
        &plain(summary.anomaly_ranks.len() as f64),
    );
    put(
        "slow_nodes",
        "Nodes that are named.",
        &plain(summary.anomaly_nodes.len() as f64),
    );
    let ranks: Vec<(String, f64)> = summary
        .anomaly_ranks
        .iter()
        .map(|rank| (format!(",rank=\"{rank}\""), factor_of(summary, *rank)))
        .filter(|(_, factor)| factor.is_finite())
        .collect();
    put("slow_rank_factor", "Time of a named rank over its peers'.", &ranks);
    if let Some(what_if) = summary.what_if.as_ref().filter(|what_if| what_if.reason.is_none()) {
        let known = |value: Option<f64>| {
            value
                .map(|value| (String::new(), value))
                .into_iter()
                .collect::<Vec<_>>()
        };
        put(
            "fault_cost_seconds",
            "Seconds of the window that mending all faults saves.",
            &known(what_if.seconds),
        );
        put(
            "fault_cost_gpu_hours",
            "The same times the ranks of the job, hours.",
            &known(what_if.gpu_hours),
        );
        put(
            "fault_cost_ratio",
            "Growth of the steps over those with all faults mended.",
            &known(what_if.faults_share),
        );
        put("step_seconds", "Mean step.", &known(what_if.step_seconds));
    }
    put(
        "result_timestamp_seconds",
        "When the verdict was made.",
        &plain(now as f64),
    );
    let end = summary.window.last_time.as_deref().and_then(timestamp::parse);
    let end: Vec<_> = end.map(|end| (String::new(), end as f64 / 1e6)).into_iter().collect();
    put(
        "window_end_timestamp_seconds",
        "When the last analysed iteration was over.",
        &end,
    );
    out
}

fn factor_of(summary: &Summary, rank: u32) -> f64 {
    let of_rank = summary
        .findings
        .iter()
        .filter(|finding| finding.named && finding.ranks.contains(&rank));
    of_rank.filter_map(|finding| finding.factor).fold(f64::NAN, f64::max)
}

/// A value of a label as the format asks for it.
fn label(text: &str) -> String {
    text.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n")
}
