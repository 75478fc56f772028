//! Verdicts held against the truth.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use rayon::prelude::*;
use schemars::JsonSchema;
use serde::Serialize;

use super::detect::{Settings, detect};
use super::error::MachinesError;
use super::input::read;
use super::model::store::Models;
use super::names::Names;
use super::samples::{Minutes, Task};
use super::simulate::{Label, Plan, simulate};

/// Four minutes of continuity and a window: shorter faults are not asked for.
const SHORTEST_S: f64 = 250.0;
/// Time between calls when the delay is measured.
const CALL_EVERY_S: f64 = 30.0;
/// Each call looks at so much.
const CALL_WINDOW_MS: i32 = 900_000;

/// A labelled task, on disk or to be drawn.
#[derive(Debug, Clone)]
pub enum Case {
    /// A file beside its `labels.json`.
    File(PathBuf, String, Label),
    /// A draw of the suite.
    Drawn(Plan),
}

/// What came out of one task.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct Outcome {
    /// The task.
    pub name: String,
    /// Type of fault.
    pub fault: String,
    /// Machines.
    pub machines: usize,
    /// Seconds.
    pub seconds: f64,
    /// Whether naming the faulty machine is asked for.
    pub wanted: bool,
    /// The faulty machines.
    pub truth: Vec<String>,
    /// The named ones.
    pub named: Vec<String>,
    /// The metric that named.
    pub metric: Option<String>,
    /// Largest score of any machine in any metric.
    pub score: f64,
    /// The score that names.
    pub needed: f64,
    /// Seconds from the fault's start to the first call that names its machine.
    pub delay_s: Option<f64>,
    /// Why there is no verdict.
    pub failed: Option<String>,
}

/// Counts over tasks.
#[derive(Debug, Clone, Default, Serialize, JsonSchema)]
pub struct Tally {
    /// Tasks.
    pub tasks: usize,
    /// Faults that are asked for and found.
    pub found: usize,
    /// Faults that are asked for and not found.
    pub missed: usize,
    /// Healthy machines that were named.
    pub false_alarms: usize,
    /// Tasks without a verdict.
    pub failed: usize,
}

impl Tally {
    /// Share of the named that are right.
    #[must_use]
    pub fn precision(&self) -> f64 {
        self.found as f64 / (self.found + self.false_alarms).max(1) as f64
    }

    /// Share of the faults that are found.
    #[must_use]
    pub fn recall(&self) -> f64 {
        self.found as f64 / (self.found + self.missed).max(1) as f64
    }

    /// Harmonic mean of both.
    #[must_use]
    pub fn f1(&self) -> f64 {
        2.0 * self.precision() * self.recall() / (self.precision() + self.recall()).max(1e-9)
    }

    fn add(&mut self, outcome: &Outcome) {
        self.tasks += 1;
        self.failed += usize::from(outcome.failed.is_some());
        let hit = outcome.named.iter().any(|node| outcome.truth.contains(node));
        self.found += usize::from(outcome.wanted && hit);
        self.missed += usize::from(outcome.wanted && !hit);
        self.false_alarms += outcome
            .named
            .iter()
            .filter(|node| !outcome.truth.contains(node))
            .count();
    }
}

/// The score of one method.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct Score {
    /// The method.
    pub method: &'static str,
    /// Smallest score that names, if it was given.
    pub threshold: Option<f64>,
    /// All tasks.
    pub total: Tally,
    /// Precision, recall and F1 of all tasks.
    pub precision: f64,
    /// See `precision`.
    pub recall: f64,
    /// See `precision`.
    pub f1: f64,
    /// By type of fault.
    pub faults: BTreeMap<String, Tally>,
    /// Days that machines of tasks without a fault were watched.
    pub healthy_machine_days: f64,
    /// False alarms in those days.
    pub healthy_false_alarms: usize,
    /// Median delay of the found faults in seconds, with a call every 30 s.
    pub delay_median_s: Option<f64>,
    /// 95th percentile of the delay.
    pub delay_p95_s: Option<f64>,
    /// Task by task.
    #[serde(skip)]
    pub outcomes: Vec<Outcome>,
}

/// The labelled tasks of a folder.
///
/// # Errors
/// A folder without a readable `labels.json`.
pub fn cases_of(folder: &Path) -> Result<Vec<Case>, MachinesError> {
    let path = folder.join("labels.json");
    let text = std::fs::read_to_string(&path).map_err(MachinesError::read(&path))?;
    let labels: BTreeMap<String, Label> =
        serde_json::from_str(&text).map_err(|error| MachinesError::content(&path, error.to_string()))?;
    let case = |(name, label): (String, Label)| Case::File(folder.join(format!("{name}.parquet")), name, label);
    Ok(labels.into_iter().map(case).collect())
}

/// Judges all tasks with one method.
#[must_use]
pub fn score(
    cases: &[Case],
    models: &Models,
    names: &Names,
    settings: Settings,
    min_z: f64,
    with_delay: bool,
    told: &(dyn Fn() + Sync),
) -> Score {
    let outcomes: Vec<Outcome> = cases
        .par_iter()
        .map(|case| {
            let outcome = judge(case, models, names, settings, min_z, with_delay);
            told();
            outcome
        })
        .collect();
    let mut total = Tally::default();
    let mut faults: BTreeMap<String, Tally> = BTreeMap::new();
    let (mut days, mut alarms) = (0.0, 0);
    for outcome in &outcomes {
        total.add(outcome);
        faults.entry(outcome.fault.clone()).or_default().add(outcome);
        if outcome.truth.is_empty() {
            days += outcome.machines as f64 * outcome.seconds / 86_400.0;
            alarms += outcome.named.len();
        }
    }
    let mut delays: Vec<f64> = outcomes.iter().filter_map(|outcome| outcome.delay_s).collect();
    delays.sort_by(f64::total_cmp);
    let at = |share: f64| {
        delays
            .get(((delays.len().max(1) - 1) as f64 * share).round() as usize)
            .copied()
    };
    Score {
        method: settings.method.name(),
        threshold: settings.threshold,
        precision: total.precision(),
        recall: total.recall(),
        f1: total.f1(),
        total,
        faults,
        healthy_machine_days: days,
        healthy_false_alarms: alarms,
        delay_median_s: at(0.5),
        delay_p95_s: at(0.95),
        outcomes,
    }
}

fn judge(case: &Case, models: &Models, names: &Names, settings: Settings, min_z: f64, with_delay: bool) -> Outcome {
    let (name, label, task) = match case {
        Case::File(path, name, label) => {
            let task = read(std::slice::from_ref(path), Some(name), Minutes::last(15.0), names);
            (name.clone(), label.clone(), task)
        }
        Case::Drawn(plan) => {
            let (task, label) = simulate(plan);
            (task.job.clone(), label, Ok(task))
        }
    };
    let truth = match (&label.faulty_nodes, &label.faulty_node) {
        (Some(nodes), _) => nodes.clone(),
        (None, node) => node.iter().cloned().collect(),
    };
    let lasts = label.halt_s.unwrap_or(0.0) - label.onset_s.unwrap_or(0.0) >= SHORTEST_S;
    let shown = label
        .abnormal_metrics
        .as_ref()
        .is_some_and(|metrics| !metrics.is_empty());
    let mut outcome = Outcome {
        name,
        fault: label.fault.clone(),
        machines: label.machines,
        seconds: 0.0,
        wanted: !truth.is_empty() && shown && lasts && label.z_long.is_none_or(|z| z >= min_z),
        truth,
        named: Vec::new(),
        metric: None,
        score: 0.0,
        needed: 0.0,
        delay_s: None,
        failed: None,
    };
    let detection = task.and_then(|task| detect(&task, models, names, settings).map(|detection| (task, detection)));
    match detection {
        Err(error) => outcome.failed = Some(error.to_string()),
        Ok((task, detection)) => {
            outcome.seconds = f64::from(task.length_ms) / 1000.0;
            outcome.metric = detection.verdict.findings.first().map(|finding| finding.metric.clone());
            let scores = detection.scores.iter().flat_map(|metric| &metric.scores.machines);
            outcome.score = scores.map(|machine| machine.score).fold(0.0, f64::max);
            outcome.needed = detection.verdict.threshold;
            outcome.named = detection.verdict.anomaly_nodes;
            let hit = outcome.named.iter().any(|node| outcome.truth.contains(node));
            if let (true, true, Some(onset)) = (with_delay && hit, outcome.wanted, label.onset_s) {
                outcome.delay_s = delay(&task, onset, &outcome.truth, models, names, settings);
            }
        }
    }
    outcome
}

/// Calls again and again with what was known at the time.
fn delay(task: &Task, onset: f64, truth: &[String], models: &Models, names: &Names, settings: Settings) -> Option<f64> {
    let length = f64::from(task.length_ms) / 1000.0;
    let mut now = onset + f64::from(settings.continuity_s);
    loop {
        let end = (now.min(length) * 1000.0) as i32;
        let seen = task.part((end - CALL_WINDOW_MS).max(0), end);
        let detection = detect(&seen, models, names, settings).ok()?;
        if detection.verdict.anomaly_nodes.iter().any(|node| truth.contains(node)) {
            return Some(now.min(length) - onset);
        }
        if now >= length {
            return None;
        }
        now += CALL_EVERY_S;
    }
}

/// What all drawn tasks share.
#[derive(Debug, Clone, Copy, Default)]
pub struct Drawn {
    /// Healthy tasks only.
    pub healthy: bool,
    /// Machines of each; drawn when `None`.
    pub machines: Option<usize>,
}

/// Draws of the suite by seed.
#[must_use]
pub fn suite(seeds: std::ops::RangeInclusive<u64>, drawn: Drawn) -> Vec<Case> {
    let plan = |seed| Plan {
        seed,
        machines: drawn.machines,
        fault: drawn.healthy.then(|| "healthy".to_owned()),
        ..Plan::default()
    };
    seeds.map(|seed| Case::Drawn(plan(seed))).collect()
}
