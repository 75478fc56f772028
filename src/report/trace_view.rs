//! `trace.json`: the slowest and a typical iteration, for Perfetto or chrome://tracing.
//!
//! Rows carry durations and no clock that ranks share, so the bars of a rank lie one after the other from zero, each as
//! long as measured; where they begin is not measured, and the file says so.

use std::fs;
use std::path::Path;

use serde_json::{Value, json};

use super::error::WriteError;
use super::report::Report;
use crate::contract::printable::json_printable;
use crate::contract::timers::{ATTENTION_QKV, BACKWARD_COMPUTE, BATCH_GENERATOR, FORWARD_COMPUTE, TRANSFERS};
use crate::job::Job;

/// Name of the file.
const TRACE_JSON: &str = "trace.json";
/// Ranks that are drawn; of more those that are named, and the first.
const RANKS: usize = 512;
/// What comes after the passes, in order; each may hold those behind it.
const AFTER: [(&str, &[&str]); 3] = [
    ("all-grads-sync", &[]),
    (
        "optimizer",
        &[
            "optimizer-copy-to-main-grad",
            "optimizer-unscale-and-check-inf",
            "optimizer-clip-main-grad",
            "optimizer-inner-step",
            "optimizer-copy-main-to-model-params",
        ],
    ),
    ("params-all-gather", &[]),
];

/// Writes the file where it was asked for.
///
/// # Errors
/// A file that can't be written.
pub(super) fn export(folder: &Path, report: &Report) -> Result<(), WriteError> {
    let Some(trace) = &report.trace_view else { return Ok(()) };
    let file = folder.join(TRACE_JSON);
    fs::write(&file, json_printable(&trace.to_string()) + "\n").map_err(WriteError::io(file))
}

/// The trace of a job's slowest and median step; ranks that are named come first where not all are drawn.
pub(super) fn trace_view(job: &Job, named: &[u32]) -> Value {
    let (_, seconds) = job.step_seconds();
    let mut order: Vec<usize> = (0..seconds.len()).filter(|&step| seconds[step].is_finite()).collect();
    order.sort_by(|&a, &b| seconds[a].total_cmp(&seconds[b]).then(a.cmp(&b)));
    let mut steps: Vec<(&str, usize)> = Vec::new();
    if let Some(&slowest) = order.last() {
        steps.push(("slowest", slowest));
        steps.push(("typical", order[order.len() / 2]));
    }
    let mut ranks: Vec<usize> = named
        .iter()
        .filter_map(|rank| job.ranks.binary_search(rank).ok())
        .collect();
    let others = (0..job.ranks.len()).filter(|&rank| named.binary_search(&job.ranks[rank]).is_err());
    ranks.extend(others);
    ranks.truncate(RANKS);
    ranks.sort_unstable();
    let mut events = Vec::new();
    for (process, (what, step)) in steps.into_iter().enumerate() {
        let name = format!("{what} iteration {}", job.iterations[step]);
        events.push(json!({"ph": "M", "name": "process_name", "pid": process, "args": {"name": name}}));
        for &rank in &ranks {
            let thread = json!({"name": format!("rank {} on {}", job.ranks[rank], job.nodes[rank])});
            events.push(
                json!({"ph": "M", "name": "thread_name", "pid": process, "tid": job.ranks[rank], "args": thread}),
            );
            bars(job, rank, step, process, &mut events);
        }
    }
    json!({
        "displayTimeUnit": "ms",
        "otherData": {
            "job": job.id,
            "about": "durations as measured; a rank's bars lie one after the other, for the rows tell no common clock",
            "ranks_left_out": job.ranks.len() - ranks.len(),
        },
        "traceEvents": events,
    })
}

/// The bars of a rank in a step.
fn bars(job: &Job, rank: usize, step: usize, process: usize, events: &mut Vec<Value>) {
    let mut at = 0.0;
    let passes: Vec<&str> = [FORWARD_COMPUTE, BACKWARD_COMPUTE]
        .into_iter()
        .chain(TRANSFERS)
        .collect();
    let start = at;
    let mut inside = Vec::new();
    for name in passes {
        let Some(took) = seconds(job, name, rank, step) else {
            continue;
        };
        inside.push((name, at, took));
        if name == FORWARD_COMPUTE {
            // Both are part of the forward pass.
            let mut within = at;
            for part in [BATCH_GENERATOR, ATTENTION_QKV] {
                let Some(part_took) = seconds(job, part, rank, step) else {
                    continue;
                };
                let part_took = part_took.min(at + took - within);
                inside.push((part, within, part_took));
                within += part_took;
            }
        }
        at += took;
    }
    if let Some(whole) = seconds(job, "forward-backward", rank, step) {
        at = at.max(start + whole);
        events.push(bar(job, rank, process, "forward-backward", start, at - start));
    }
    events.extend(
        inside
            .into_iter()
            .map(|(name, from, took)| bar(job, rank, process, name, from, took)),
    );
    for (name, parts) in AFTER {
        let Some(took) = seconds(job, name, rank, step) else {
            continue;
        };
        events.push(bar(job, rank, process, name, at, took));
        let mut within = at;
        for part in parts {
            let Some(part_took) = seconds(job, part, rank, step) else {
                continue;
            };
            let part_took = part_took.min(at + took - within);
            events.push(bar(job, rank, process, part, within, part_took));
            within += part_took;
        }
        at += took;
    }
}

fn bar(job: &Job, rank: usize, process: usize, name: &str, from: f64, took: f64) -> Value {
    let microseconds = |seconds: f64| (1e9 * seconds).round() / 1e3;
    json!({"ph": "X", "name": name, "pid": process, "tid": job.ranks[rank], "ts": microseconds(from), "dur": microseconds(took)})
}

/// What a rank spent in a timer; `None` where it did not run.
fn seconds(job: &Job, name: &str, rank: usize, step: usize) -> Option<f64> {
    let seconds = job.timer(name)?.seconds[(rank, step)];
    (seconds > 0.0 && seconds.is_finite()).then_some(seconds)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bars_lie_inside_of_what_holds_them() {
        let job = Job::sample(1, 2, 2, 3)
            .with_timer("forward-compute", |rank, step| 1.0 + rank as f64 + step as f64)
            .with_timer("batch-generator", |_, _| 5.0)
            .with_timer("backward-compute", |_, _| 2.0)
            .with_timer("interval-time", |_, step| 4.0 + step as f64);
        let trace = trace_view(&job, &[1]);
        let events = trace["traceEvents"].as_array().expect("events");
        let named = |pid: u64, name: &str| {
            events
                .iter()
                .find(|event| event["pid"] == pid && event["name"] == name && event["tid"] == 0)
                .expect("a bar")
        };
        assert!(
            events
                .iter()
                .any(|event| event["args"]["name"] == "slowest iteration 2")
        );
        assert!(
            events
                .iter()
                .any(|event| event["args"]["name"] == "typical iteration 1")
        );
        let forward = named(0, "forward-compute");
        assert_eq!(
            (forward["ts"].as_f64(), forward["dur"].as_f64()),
            (Some(0.0), Some(3e6))
        );
        assert_eq!(
            named(0, "batch-generator")["dur"].as_f64(),
            Some(3e6),
            "no longer than its pass"
        );
        assert_eq!(named(0, "backward-compute")["ts"].as_f64(), Some(3e6));
    }
}
