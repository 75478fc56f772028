//! What the service answers of a job, as the documents have it.

use schemars::JsonSchema;
use serde::Serialize;

use super::health::Health;
use super::known::{Detection, Hang, State};
use super::watched::Watched;
use crate::source::{Micros, timestamp};

/// The state of a job.
#[derive(Debug, Serialize, JsonSchema)]
pub struct JobAnswer {
    /// Job id.
    pub job_id: String,
    /// `active`, `slowdown`, `predicting`, `detected`, `hanging` or `finished`.
    pub status: &'static str,
    /// When it was registered, UTC.
    pub registered: String,
    /// Whether it hangs, and what is known of the last time that it did.
    pub hang_check: HangCheck,
    /// Whether its steps are slow, and who makes them so.
    pub slowdown_check: SlowdownCheck,
    /// Its steps since it was registered, start-up left out.
    pub metrics: StepMetrics,
}

/// See [`JobAnswer::hang_check`].
#[derive(Debug, Serialize, JsonSchema)]
pub struct HangCheck {
    /// Whether there is no new iteration for longer than the threshold.
    pub is_hanging: bool,
    /// When the last hang began, UTC.
    pub last_hang_ts: Option<String>,
    /// Who is behind, in words.
    pub rca: Option<String>,
    /// Ranks whose last rows are of an earlier iteration than the others', the first ones.
    pub ranks_behind: Vec<i64>,
}

/// See [`JobAnswer::slowdown_check`].
#[derive(Debug, Serialize, JsonSchema)]
pub struct SlowdownCheck {
    /// Whether the last steps were slow.
    pub is_slowing_down: bool,
    /// Last slow iteration.
    pub last_slowdown_iter: Option<i64>,
    /// When its last row was written, UTC.
    pub last_slowdown_ts: Option<String>,
    /// The last verdict on a slow window that is not over.
    pub straggler_prediction: Prediction,
}

/// Who makes the steps slow.
#[derive(Debug, Default, Serialize, JsonSchema)]
pub struct Prediction {
    /// Slow ranks.
    pub straggler_rank: Vec<u32>,
    /// Their nodes.
    pub straggler_node: Vec<String>,
    /// The verdict's status; null without a verdict.
    pub status: Option<String>,
    /// Its cause; null without a verdict.
    pub cause: Option<String>,
    /// Growth of the step that the weightiest finding costs.
    pub cost: Option<f64>,
    /// The analysed iterations, `A-B`.
    pub iterations: Option<String>,
    /// When the analysis ended, UTC.
    pub ended: Option<String>,
    /// Each finding's headline.
    pub findings: Vec<String>,
    /// Why there is no verdict.
    pub error: Option<String>,
}

/// See [`JobAnswer::metrics`].
#[derive(Debug, Serialize, JsonSchema)]
pub struct StepMetrics {
    /// Mean, seconds.
    pub avg_iteration_duration: Option<f64>,
    /// The longest, seconds.
    pub max_iteration_duration: Option<f64>,
    /// The shortest, seconds.
    pub min_iteration_duration: Option<f64>,
    /// The last, seconds.
    pub last_iteration_duration: Option<f64>,
    /// The usual one: median of the last normal steps, seconds.
    pub baseline_duration: Option<f64>,
    /// Iterations looked at.
    pub iteration_count: u64,
    /// The last of them.
    pub last_iteration: Option<i64>,
}

/// A line of the list of jobs.
#[derive(Debug, Serialize, JsonSchema)]
pub struct JobLine {
    /// Job id.
    pub job_id: String,
    /// Its state.
    pub status: &'static str,
    /// Last iteration looked at.
    pub last_iteration: Option<i64>,
    /// Slow ranks, where somebody is detected.
    pub straggler_rank: Vec<u32>,
    /// Their nodes.
    pub straggler_node: Vec<String>,
}

/// The verdicts on a job so far, the newest last.
#[derive(Debug, Serialize, JsonSchema)]
pub struct HistoryAnswer {
    /// Job id.
    pub job_id: String,
    /// The verdicts.
    pub detections: Vec<Prediction>,
}

/// What is known of the service itself.
#[derive(Debug, Serialize, JsonSchema)]
pub struct ServiceAnswer {
    /// Name of the program.
    pub service: &'static str,
    /// Its version.
    pub version: &'static str,
    /// Jobs that are watched.
    pub jobs: usize,
    /// When the last poll succeeded, UTC.
    pub last_poll: Option<String>,
    /// Why the last poll failed, where it did.
    pub error: Option<String>,
}

fn time(micros: Micros) -> String {
    timestamp::format(micros)
}

impl From<&Watched> for JobAnswer {
    fn from(job: &Watched) -> Self {
        let hang = job.hang.as_ref();
        Self {
            job_id: job.job.clone(),
            status: job.state.name(),
            registered: time(job.registered),
            hang_check: HangCheck {
                is_hanging: job.state == State::Hanging,
                last_hang_ts: hang.map(|hang| time(hang.since)),
                rca: hang.map(in_words),
                ranks_behind: hang.map_or(Vec::new(), |hang| hang.behind.iter().map(|rank| rank.rank).collect()),
            },
            slowdown_check: SlowdownCheck {
                is_slowing_down: matches!(job.state, State::Slowdown | State::Predicting | State::Detected),
                last_slowdown_iter: job.last_slow.as_ref().map(|step| step.iteration),
                last_slowdown_ts: job.last_slow.as_ref().map(|step| time(step.time)),
                straggler_prediction: job.detection.as_ref().map(Prediction::from).unwrap_or_default(),
            },
            metrics: StepMetrics {
                avg_iteration_duration: (job.count > 0).then(|| job.total_seconds / job.count as f64),
                max_iteration_duration: job.max_seconds,
                min_iteration_duration: job.min_seconds,
                last_iteration_duration: job.last.as_ref().map(|step| step.seconds),
                baseline_duration: job.baseline(),
                iteration_count: job.count,
                last_iteration: job.last.as_ref().map(|step| step.iteration),
            },
        }
    }
}

impl From<&Detection> for Prediction {
    fn from(detection: &Detection) -> Self {
        Self {
            straggler_rank: detection.ranks.clone(),
            straggler_node: detection.nodes.clone(),
            status: detection.status.clone(),
            cause: detection.status.is_some().then(|| detection.cause.clone()),
            cost: detection.cost,
            iterations: Some(format!("{}-{}", detection.first_iteration, detection.last_iteration)),
            ended: Some(time(detection.ended)),
            findings: detection.findings.clone(),
            error: detection.error.clone(),
        }
    }
}

impl From<&Watched> for JobLine {
    fn from(job: &Watched) -> Self {
        let detection = job.detection.as_ref();
        Self {
            job_id: job.job.clone(),
            status: job.state.name(),
            last_iteration: job.last.as_ref().map(|step| step.iteration),
            straggler_rank: detection.map_or(Vec::new(), |detection| detection.ranks.clone()),
            straggler_node: detection.map_or(Vec::new(), |detection| detection.nodes.clone()),
        }
    }
}

impl From<&Watched> for HistoryAnswer {
    fn from(job: &Watched) -> Self {
        Self {
            job_id: job.job.clone(),
            detections: job.history.iter().map(Prediction::from).collect(),
        }
    }
}

impl ServiceAnswer {
    /// How the service is.
    #[must_use]
    pub fn new(jobs: usize, health: &Health) -> Self {
        Self {
            service: env!("CARGO_PKG_NAME"),
            version: env!("CARGO_PKG_VERSION"),
            jobs,
            last_poll: health.last_success.map(time),
            error: health.error.clone(),
        }
    }
}

/// `no new iteration after 129 since 2026-..; 1 rank is behind: rank 5 on gpu-000 at iteration 128, last seen in forward-recv`.
fn in_words(hang: &Hang) -> String {
    let last = hang
        .last_iteration
        .map_or("?".to_owned(), |iteration| iteration.to_string());
    let mut words = format!("no new iteration after {last} since {}", time(hang.since));
    if hang.behind.is_empty() {
        return words + "; no rank is behind the others, as far as rows tell";
    }
    let shown: Vec<String> = hang
        .behind
        .iter()
        .map(|rank| {
            let node = if rank.node.is_empty() {
                String::new()
            } else {
                format!(" on {}", rank.node)
            };
            format!(
                "rank {}{node} at iteration {}, last seen in {}",
                rank.rank, rank.iteration, rank.last_timer
            )
        })
        .collect();
    let many = if hang.ranks_behind == 1 {
        "1 rank is".to_owned()
    } else {
        format!("{} ranks are", hang.ranks_behind)
    };
    words += &format!("; {many} behind: {}", shown.join("; "));
    words
}
