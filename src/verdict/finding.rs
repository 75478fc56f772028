//! What the rules found, one entry a fault or imbalance, with the evidence that a person needs to act on it.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{Cause, FindingKind, Lasting};

/// How the ranks of a finding belong together.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Shape {
    /// One rank, or ranks that wait for each other.
    #[default]
    Ranks,
    /// All ranks of a node.
    Node,
    /// A level of the job: a quarter of its ranks at like excess, or very many.
    Level,
}

/// A fault, an imbalance or an event, with what speaks for it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Finding {
    /// What sort of thing it is.
    pub kind: FindingKind,
    /// What it costs the job time by; `none` for what has passed.
    pub cause: Cause,
    /// It in one sentence.
    pub says: String,
    /// Whether its ranks are among the anomaly ranks.
    pub named: bool,
    /// Whether its nodes are among the anomaly nodes though its ranks are not among the anomaly ranks: a slow network.
    pub names_nodes: bool,
    /// The ranks, ascending; empty when it is nobody's.
    pub ranks: Vec<u32>,
    /// Their nodes, each once, sorted.
    pub nodes: Vec<String>,
    /// Their pipeline stages, ascending; empty where they are unknown.
    pub stages: Vec<u32>,
    /// How the ranks belong together.
    pub shape: Shape,
    /// Whether its own better steps are what it was compared with, and not its peers.
    pub to_itself: bool,
    /// Time over the peers' time where it is slow; 1.1 is 10 % slower.
    pub factor: Option<f64>,
    /// Growth of the steps over the steps with it alone mended, by a replay of the job's schedule: 0.35 is 35 % longer.
    /// Null where the steps can't be replayed, or where there is nothing to mend.
    pub cost: Option<f64>,
    /// Seconds of the window that mending it alone saves.
    pub cost_seconds: Option<f64>,
    /// The same times the ranks of the job, hours.
    pub cost_gpu_hours: Option<f64>,
    /// Its part in the seconds that mending all findings saves; the parts add up where there are up to six.
    pub cost_part_seconds: Option<f64>,
    /// First iteration in which it shows.
    pub first_iteration: Option<i64>,
    /// Last iteration in which it shows.
    pub last_iteration: Option<i64>,
    /// Time of the first iteration in which it shows, UTC: of its last row.
    pub first_time: Option<String>,
    /// Time of the last iteration in which it shows, UTC.
    pub last_time: Option<String>,
    /// Iteration in which it began, when it began inside the window.
    pub onset: Option<i64>,
    /// Iteration with which it ended, when it ended inside the window.
    pub until: Option<i64>,
    /// What makes it a fault: how its slow iterations lie in the window; null where it is not told step by step.
    pub lasting: Option<Lasting>,
    /// Whether it was over before the end of the window; null where it is not told step by step.
    pub ended: Option<bool>,
    /// Iterations in which it shows; null where it is not told step by step.
    pub slow_iterations: Option<usize>,
    /// Iterations of the window.
    pub iterations: usize,
    /// The algorithms that call all of its ranks slow.
    pub voted_by: Vec<String>,
    /// Algorithms that could tell slow ranks from fast ones; 0 when it was not put to the vote.
    pub voters: usize,
    /// How sure it is, 0 to 1; null where it is not told.
    pub confidence: Option<f64>,
    /// Compute time over the fastest rank's in the slowest steps (classic rules with pipeline stages).
    pub slow_step_ratio: Option<f64>,
    /// The timers that were compared.
    pub timers: Vec<TimerEvidence>,
    /// The slow transfers.
    pub links: Vec<LinkEvidence>,
    /// The rule that told whose slow transfers they are.
    pub decided_by: Option<String>,
}

impl Finding {
    /// Takes the names back from a finding of slow ranks: it is a mere suspicion, for the reason given.
    pub fn accuse_nobody(&mut self, why: &str) {
        if matches!(self.kind, FindingKind::SlowRank | FindingKind::OneOfGroup) {
            self.kind = FindingKind::Suspect;
            self.named = false;
            self.says += &format!("; {why}");
        }
    }

    /// A finding of nobody, with no evidence yet, over a window of `iterations`.
    #[must_use]
    pub fn new(kind: FindingKind, cause: Cause, iterations: usize) -> Self {
        Self {
            kind,
            cause,
            says: String::new(),
            named: false,
            names_nodes: false,
            ranks: Vec::new(),
            nodes: Vec::new(),
            stages: Vec::new(),
            shape: Shape::Ranks,
            to_itself: false,
            factor: None,
            cost: None,
            cost_seconds: None,
            cost_gpu_hours: None,
            cost_part_seconds: None,
            first_iteration: None,
            last_iteration: None,
            first_time: None,
            last_time: None,
            onset: None,
            until: None,
            lasting: None,
            ended: None,
            slow_iterations: None,
            iterations,
            voted_by: Vec::new(),
            voters: 0,
            confidence: None,
            slow_step_ratio: None,
            timers: Vec::new(),
            links: Vec::new(),
            decided_by: None,
        }
    }
}

/// One timer of a finding's ranks against their peers.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct TimerEvidence {
    /// Name of the timer.
    pub timer: String,
    /// Mean duration where it is slow, seconds; of several ranks the median.
    pub mean_seconds: f64,
    /// The peers' median of the same, seconds.
    pub reference_seconds: f64,
    /// The one over the other.
    pub factor: f64,
    /// The algorithms that call it slow in this timer; empty where they vote on all timers together.
    pub slow_by: Vec<String>,
}

/// One slow transfer of a finding against the usual one.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct LinkEvidence {
    /// Rank that sends.
    pub sender: u32,
    /// Rank that receives.
    pub receiver: u32,
    /// The sender's timer.
    pub send_timer: String,
    /// The receiver's timer.
    pub recv_timer: String,
    /// Transfer without waiting where it is slow, seconds.
    pub seconds: f64,
    /// What such transfers usually take, seconds.
    pub usual_seconds: f64,
    /// The one over the other.
    pub factor: f64,
    /// Iterations in which it is slow.
    pub slow_iterations: usize,
}
