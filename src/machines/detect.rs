//! From samples to a verdict.
//!
//! Metrics are asked one by one in the learned order; the first that names a machine decides. The others are judged
//! too, to say what else the machine shows and which machines only they show.

use rayon::prelude::*;

use super::align::{Grid, grid, period_ms};
use super::error::MachinesError;
use super::finding::finding;
use super::method::Method;
use super::model::Denoiser;
use super::model::network::WINDOW;
use super::model::store::Models;
use super::names::Names;
use super::samples::{Metric, Task};
use super::score::deviations::{Deviations, deviations};
use super::score::levels;
use super::score::moments::whitened_moments;
use super::score::tails::normal_tail;
use super::score::windows::{self, Distance, Vectors};
use super::score::{MetricScores, quantile};
use super::silent::{Stuck, silent, stuck};
use super::verdict::{AlsoDifferent, Finding, Kind, Missing, SCHEMA_VERSION, SeenIn, Status, Verdict};
use crate::source::timestamp;

/// Three healthy tasks in a hundred, at most; noise that does not wander slowly gives far fewer.
pub const FALSE_ALARMS: f64 = 0.03;

/// Settings of a detection.
#[derive(Debug, Clone, Copy)]
pub struct Settings {
    /// How machines are compared.
    pub method: Method,
    /// How long a machine must differ.
    pub continuity_s: f32,
    /// Probability that chance names a machine of a healthy task, at most; for methods of levels.
    pub false_alarms: f64,
    /// Smallest score that names a machine; the method's own when `None`.
    pub threshold: Option<f64>,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            method: Method::LstmVae,
            continuity_s: 240.0,
            false_alarms: FALSE_ALARMS,
            threshold: None,
        }
    }
}

/// A verdict and the scores behind it.
#[derive(Debug, Clone)]
pub struct Detection {
    /// What is said.
    pub verdict: Verdict,
    /// Scores by metric, in the order in which they were asked.
    pub scores: Vec<JudgedMetric>,
    /// What later metrics say of machines that the first one does not name: told, not blamed.
    pub others: Vec<Finding>,
}

/// Scores of one metric.
#[derive(Debug, Clone)]
pub struct JudgedMetric {
    /// The metric.
    pub name: String,
    /// Seconds between windows.
    pub slide_s: f32,
    /// The scores.
    pub scores: MetricScores,
    pub(super) values: Vec<Vec<f32>>,
    pub(super) deviations: Option<Deviations>,
    pub(super) stuck: Vec<Stuck>,
}

/// Judges a task.
///
/// # Errors
/// A file of models without a network for a metric.
pub fn detect(task: &Task, models: &Models, names: &Names, settings: Settings) -> Result<Detection, MachinesError> {
    let chosen = || {
        settings
            .method
            .threshold(task.nodes.len(), task.metrics.len(), settings.false_alarms)
    };
    let threshold = settings.threshold.unwrap_or_else(chosen);
    let mut verdict = blank(task, settings, threshold);
    verdict.missing_nodes = silent(task, settings.continuity_s)
        .into_iter()
        .map(|silent| Missing {
            node: task.nodes[silent.node].clone(),
            last_sample: silent.last_ms.map(|last| clock(task, last)),
        })
        .collect();
    let present = task.nodes.len()
        - verdict
            .missing_nodes
            .iter()
            .filter(|node| node.last_sample.is_none())
            .count();
    if present < 3 {
        let machines = if present == 1 { "machine" } else { "machines" };
        verdict.reason = Some(format!(
            "{present} {machines} with samples: with fewer than 3 nobody can say which one is different"
        ));
        return Ok(Detection {
            verdict,
            scores: Vec::new(),
            others: Vec::new(),
        });
    }
    let mut scores = Vec::new();
    let mut too_short = Vec::new();
    for metric in in_order(task, &models.order) {
        match judge_metric(task, metric, models, names, settings)? {
            Some(judged) => scores.push(judged),
            None => too_short.push(metric.name.clone()),
        }
    }
    if !too_short.is_empty() {
        verdict.warnings.push(format!(
            "not judged: {} (fewer than 3 machines or less than {:.0} s of samples)",
            too_short.join(", "),
            settings.continuity_s
        ));
    }
    verdict.metrics = scores.iter().map(|metric| metric.name.clone()).collect();
    if scores.is_empty() {
        verdict.reason = Some(format!(
            "no metric has 3 machines with {:.0} s of samples, which a fault must last",
            settings.continuity_s
        ));
        return Ok(Detection {
            verdict,
            scores,
            others: Vec::new(),
        });
    }
    let others = name_machines(task, names, &scores, threshold, &mut verdict);
    Ok(Detection {
        verdict,
        scores,
        others,
    })
}

fn blank(task: &Task, settings: Settings, threshold: f64) -> Verdict {
    Verdict {
        schema_version: SCHEMA_VERSION,
        job: task.job.clone(),
        status: Status::CannotTell,
        reason: None,
        anomaly_nodes: Vec::new(),
        cordon: String::new(),
        missing_nodes: Vec::new(),
        start: clock(task, 0),
        end: clock(task, task.length_ms),
        machines: task.nodes.len(),
        metrics: Vec::new(),
        method: settings.method.name(),
        threshold,
        false_alarm_rate: settings.method.is_levels().then(|| {
            let tests = (task.nodes.len() * task.metrics.len()) as f64;
            (normal_tail(threshold) * tests).min(1.0)
        }),
        findings: Vec::new(),
        also_different: Vec::new(),
        warnings: Vec::new(),
        quality: task.quality,
    }
}

/// Known metrics in the learned order, then the others by name.
fn in_order<'a>(task: &'a Task, order: &[String]) -> Vec<&'a Metric> {
    let place = |metric: &Metric| {
        order
            .iter()
            .position(|name| *name == metric.name)
            .unwrap_or(order.len())
    };
    let mut metrics: Vec<&Metric> = task.metrics.iter().collect();
    metrics.sort_by_key(|metric| place(metric));
    metrics
}

fn judge_metric(
    task: &Task,
    metric: &Metric,
    models: &Models,
    names: &Names,
    settings: Settings,
) -> Result<Option<JudgedMetric>, MachinesError> {
    let with_samples = metric.series.iter().filter(|series| series.times_ms.len() > 1).count();
    let Some(period) = period_ms(metric).filter(|_| with_samples >= 3) else {
        return Ok(None);
    };
    if f64::from(task.length_ms) < f64::from(settings.continuity_s) * 1000.0 {
        return Ok(None);
    }
    let grid = grid(metric, task.length_ms, period);
    let continuity = settings.continuity_s;
    let (low, high) = limits(names, &metric.name, &grid);
    let network = || {
        models.network(&metric.name).ok_or_else(|| {
            let reason = format!("no network for `{}` and none for any metric", metric.name);
            MachinesError::content(std::path::Path::new("the models"), reason)
        })
    };
    if settings.method.is_levels() {
        let windows = grid.windows();
        let means = grid.means(windows);
        let denoised = settings.method == Method::LstmVae && windows.samples == WINDOW;
        let deviations = if denoised {
            let network = network()?;
            let denoiser = Denoiser {
                network: &network,
                low,
                high,
            };
            deviations(&denoiser.means(&grid, windows), windows.slide_s)
        } else {
            deviations(&means, windows.slide_s)
        };
        return Ok(Some(JudgedMetric {
            name: metric.name.clone(),
            slide_s: windows.slide_s,
            scores: levels::judge(&deviations, windows.slide_s, continuity),
            values: means,
            deviations: Some(deviations),
            stuck: stuck(metric, continuity),
        }));
    }
    let windows = grid.windows_of(WINDOW, 1);
    let long = match settings.method {
        Method::NoContinuity => 1,
        _ => (continuity / windows.slide_s).ceil() as usize,
    };
    let scaled = || -> Vectors<WINDOW> {
        let scale = |value: f32| (value - low) / (high - low);
        let each = |row: &Vec<f32>| {
            let window = |place: usize| std::array::from_fn(|step| scale(row[place + step]));
            (0..windows.count).map(window).collect()
        };
        grid.values.par_iter().map(each).collect()
    };
    let reconstructed = || -> Result<Vectors<WINDOW>, MachinesError> {
        let network = network()?;
        Ok(Denoiser {
            network: &network,
            low,
            high,
        }
        .reconstructions(&grid, windows))
    };
    let scores = match settings.method {
        Method::Mahalanobis => windows::judge(&whitened_moments(&grid, windows), Distance::Euclidean, long),
        Method::MinderRaw => windows::judge(&scaled(), Distance::Euclidean, long),
        Method::Manhattan => windows::judge(&reconstructed()?, Distance::Manhattan, long),
        Method::Chebyshev => windows::judge(&reconstructed()?, Distance::Chebyshev, long),
        _ => windows::judge(&reconstructed()?, Distance::Euclidean, long),
    };
    Ok(Some(JudgedMetric {
        name: metric.name.clone(),
        slide_s: windows.slide_s,
        scores,
        values: grid.means(windows),
        deviations: None,
        stuck: Vec::new(),
    }))
}

/// The range that becomes 0..1: the metric's own limits, or what this task's machines span, with room on both sides.
pub(super) fn limits(names: &Names, metric: &str, grid: &Grid) -> (f32, f32) {
    const SAMPLE: usize = 100_000;
    if let Some([low, high]) = names.known(metric).and_then(|known| known.limits) {
        return (low, high);
    }
    let total: usize = grid.values.iter().map(Vec::len).sum();
    let every = total.div_ceil(SAMPLE).max(1) | 1;
    let all = grid.values.iter().flatten().copied().step_by(every);
    let mut sample: Vec<f32> = all.filter(|value| !value.is_nan()).collect();
    let (low, high) = (quantile(&mut sample, 0.005), quantile(&mut sample, 0.995));
    let room = 0.25 * (high - low) + 1e-3 * low.abs().max(high.abs()) + 1e-6;
    if low.is_nan() {
        (0.0, 1.0)
    } else {
        (low - room, high + room)
    }
}

/// Fills the verdict; gives what is told of the other machines that differ.
fn name_machines(
    task: &Task,
    names: &Names,
    scores: &[JudgedMetric],
    threshold: f64,
    verdict: &mut Verdict,
) -> Vec<Finding> {
    let named_by = |metric: &JudgedMetric| -> Vec<(usize, Kind)> {
        let different = metric
            .scores
            .machines
            .iter()
            .enumerate()
            .filter(|(_, machine)| machine.score >= threshold);
        let mut named: Vec<(usize, Kind)> = different.map(|(node, _)| (node, Kind::Different)).collect();
        for stuck in &metric.stuck {
            if !named.iter().any(|&(node, _)| node == stuck.node) {
                named.push((stuck.node, Kind::Stuck));
            }
        }
        named
    };
    let named: Vec<Vec<(usize, Kind)>> = scores.iter().map(named_by).collect();
    verdict.status = Status::Healthy;
    let Some(decides) = named.iter().position(|named| !named.is_empty()) else {
        return Vec::new();
    };
    let unit = |metric: &JudgedMetric| {
        let known = names.known(&metric.name);
        known.map(|known| known.unit.clone()).unwrap_or_default()
    };
    verdict.status = Status::Fault;
    let metric = &scores[decides];
    for &(node, kind) in &named[decides] {
        let others = scores
            .iter()
            .zip(&named)
            .enumerate()
            .filter(|(place, _)| *place != decides);
        let seen_in = others
            .filter(|(_, (_, named))| named.iter().any(|&(other, _)| other == node))
            .map(|(_, (metric, _))| SeenIn {
                metric: metric.name.clone(),
                score: metric.scores.machines[node].score,
            })
            .collect();
        verdict
            .findings
            .push(finding(task, metric, node, kind, threshold, unit(metric), seen_in));
    }
    verdict
        .findings
        .sort_by(|a, b| b.score.total_cmp(&a.score).then_with(|| a.node.cmp(&b.node)));
    verdict.anomaly_nodes = named[decides]
        .iter()
        .map(|&(node, _)| task.nodes[node].clone())
        .collect();
    verdict.anomaly_nodes.sort();
    verdict.cordon = verdict.anomaly_nodes.join(",");
    let mut others = Vec::new();
    for (metric, named) in scores.iter().zip(&named).skip(decides + 1) {
        for &(node, kind) in named {
            if !verdict.anomaly_nodes.contains(&task.nodes[node]) {
                verdict.also_different.push(AlsoDifferent {
                    node: task.nodes[node].clone(),
                    metric: metric.name.clone(),
                    score: metric.scores.machines[node].score,
                });
                others.push(finding(task, metric, node, kind, threshold, unit(metric), Vec::new()));
            }
        }
    }
    others
}

/// A moment of the task as clock time.
pub(super) fn clock(task: &Task, ms: i32) -> String {
    timestamp::format((task.start_ms + i64::from(ms)) * 1000)
}
