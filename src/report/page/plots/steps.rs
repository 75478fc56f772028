//! The step time with its slow windows, stalls and restarts.

use std::collections::BTreeSet;

use serde::Serialize;

use super::known;
use crate::report::report::Report;

/// The time of each step, and what happened when.
#[derive(Debug, Serialize)]
pub(in crate::report::page) struct Steps {
    pub iterations: Vec<i64>,
    pub times: Vec<String>,
    pub seconds: Vec<Option<f64>>,
    pub baseline: Option<f64>,
    pub windows: Vec<(i64, i64)>,
    pub stalls: Vec<(i64, f64)>,
    pub restarts: Vec<i64>,
    pub begins: Vec<i64>,
}

pub(super) fn steps(report: &Report) -> Option<Steps> {
    let picture = &report.picture;
    if !picture.seconds.iter().any(|seconds| seconds.is_finite()) {
        return None;
    }
    let times = &report.summary.step_times;
    let begins: BTreeSet<i64> = report
        .summary
        .all_headlines()
        .iter()
        .filter(|headline| headline.kind.is_fault() && headline.began)
        .filter_map(|headline| headline.first_iteration)
        .collect();
    Some(Steps {
        iterations: picture.iterations.clone(),
        times: picture.times.clone(),
        seconds: picture.seconds.iter().map(|&seconds| known(seconds)).collect(),
        baseline: times.baseline_seconds,
        windows: times.windows.iter().map(|window| (window.first, window.last)).collect(),
        stalls: times
            .stalls
            .iter()
            .map(|stall| (stall.iteration, stall.seconds))
            .collect(),
        restarts: times.restarts.iter().map(|restart| restart.iteration).collect(),
        begins: begins.into_iter().collect(),
    })
}
