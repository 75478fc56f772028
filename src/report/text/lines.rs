//! Values of single lines: groups, step times, runs, algorithms, timers.

use crate::features::TimerFate;
use crate::job::{Move, Restart, SlowWindow, Stall, StepTimes, TopologyOrigin};
use crate::report::summary::{AlgorithmSummary, Summary, TimerSummary};
use crate::verdict::words;

pub(super) fn parallel_groups(summary: &Summary) -> String {
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
pub(super) fn step_times(times: &StepTimes) -> Vec<(&'static str, String)> {
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
pub(super) fn moves(moves: &[Move]) -> String {
    let mut together = std::collections::BTreeMap::<(i64, &str), Vec<u32>>::new();
    for one in moves {
        together.entry((one.iteration, &one.from)).or_default().push(one.rank);
    }
    let left = |((iteration, from), ranks): (&(i64, &str), &Vec<u32>)| {
        format!("{} left {from} at iteration {iteration}", words::ranks(ranks))
    };
    together.iter().map(left).collect::<Vec<_>>().join("; ")
}

pub(super) fn runs(summary: &Summary) -> String {
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

pub(super) fn algorithms(summary: &Summary) -> String {
    let slow = |count: usize| match count {
        0 => "nobody".to_owned(),
        1 => "1 rank".to_owned(),
        count => format!("{count} ranks"),
    };
    let one = |algorithm: &AlgorithmSummary| format!("{} ({})", algorithm.algorithm, slow(algorithm.slow_ranks.len()));
    let all: Vec<String> = summary.algorithms.iter().map(one).collect();
    all.join(", ")
}

/// A line for each fate that some timer met, with those timers.
pub(super) fn timers_by_fate(summary: &Summary) -> Vec<(&'static str, String)> {
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
