//! What the rules found, one entry a fault or imbalance, with the evidence that a person needs to act on it.

use schemars::JsonSchema;
use serde::Serialize;

use super::{Cause, FindingKind};

/// A fault, an imbalance or an event, with what speaks for it.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
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
    /// Time over the peers' time where it is slow; 1.1 is 10 % slower.
    pub factor: Option<f64>,
    /// Share of the step's usual time that it costs the job, as far as the timers tell.
    pub cost: Option<f64>,
    /// First iteration in which it shows.
    pub first_iteration: Option<i64>,
    /// Last iteration in which it shows.
    pub last_iteration: Option<i64>,
    /// Iteration in which it began, when it began inside the window.
    pub onset: Option<i64>,
    /// Iteration with which it ended, when it ended inside the window.
    pub until: Option<i64>,
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
            factor: None,
            cost: None,
            first_iteration: None,
            last_iteration: None,
            onset: None,
            until: None,
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
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
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
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
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
