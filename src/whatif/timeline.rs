//! A step as a timeline that Perfetto and Chrome's `about:tracing` open: each replica as it was measured and as it would
//! be.

use serde::Serialize;

use super::error::WhatIfError;
use super::replay::{Durations, Lanes, Program};
use super::scenario::{Kept, Scenario};
use super::trace::Values;

/// One event of the Trace Event Format.
#[derive(Debug, Serialize)]
struct Event<'a> {
    name: &'a str,
    ph: &'static str,
    /// Microseconds.
    ts: f64,
    dur: f64,
    /// Replica; that of the ideal step stands behind all measured ones.
    pid: usize,
    /// Stage.
    tid: usize,
}

#[derive(Debug, Serialize)]
struct Name {
    name: &'static str,
    ph: &'static str,
    pid: usize,
    tid: usize,
    args: Args,
}

#[derive(Debug, Serialize)]
struct Args {
    name: String,
}

/// The step of a trace as JSON: the replay of what was measured, and the ideal step of a replica.
///
/// # Errors
/// A step that the trace does not hold.
pub fn timeline(program: &Program, values: &Values, ideals: &[f64], step: Option<i64>) -> Result<String, WhatIfError> {
    let place = match step {
        None => 0,
        Some(step) => values.steps.binary_search(&step).map_err(|_| {
            WhatIfError::NothingToReplay(format!(
                "step {step} is not in the trace, which goes from {} to {}",
                values.steps.first().copied().unwrap_or_default(),
                values.steps.last().copied().unwrap_or_default()
            ))
        })?,
    };
    let mut parts = Vec::new();
    let lanes = values.lanes();
    let mut play = |lanes: usize, durations: &dyn Fn(&mut Vec<f64>), label: &dyn Fn(usize) -> String, first: usize| {
        let mut ends = Vec::new();
        durations(&mut ends);
        for lane in 0..lanes {
            parts.push(to_json(&Name {
                name: "process_name",
                ph: "M",
                pid: first + lane,
                tid: 0,
                args: Args { name: label(lane) },
            }));
            for stage in 0..values.stages {
                parts.push(to_json(&Name {
                    name: "thread_name",
                    ph: "M",
                    pid: first + lane,
                    tid: stage,
                    args: Args {
                        name: format!("stage {stage}"),
                    },
                }));
            }
        }
        for (number, op) in values.ops.iter().enumerate() {
            let waits = program.waits(number);
            for lane in 0..lanes {
                let end = ends[number * lanes + lane];
                // From the moment at which it could start: the waiting for others is a part of what one sees.
                let ready = waits
                    .iter()
                    .map(|wait| ends[*wait as usize * lanes + lane])
                    .fold(0.0, f64::max);
                parts.push(to_json(&Event {
                    name: op.kind.name(),
                    ph: "X",
                    ts: 1e6 * ready.min(end),
                    dur: 1e6 * (end - ready).max(0.0),
                    pid: first + lane,
                    tid: op.stage,
                }));
            }
        }
    };
    let measured = values.as_measured(place, false);
    play(
        lanes,
        &|ends| played(program, lanes, &measured, ends),
        &|lane| format!("replica {} as measured", values.replicas[lane]),
        0,
    );
    let ideal = Scenario::new(values, ideals, &Kept::Nothing, place);
    play(
        1,
        &|ends| played(program, 1, &ideal, ends),
        &|_| "every replica, ideal".to_owned(),
        lanes,
    );
    Ok(format!(
        "{{\"displayTimeUnit\":\"ms\",\"traceEvents\":[\n{}\n]}}\n",
        parts.join(",\n")
    ))
}

fn played(program: &Program, lanes: usize, durations: &impl Durations, ends: &mut Vec<f64>) {
    program.play(lanes, Lanes::Together, durations, ends);
}

/// Names and finite numbers, which JSON always holds.
fn to_json(value: &impl Serialize) -> String {
    serde_json::to_string(value).unwrap_or_default()
}
