//! The verdict that is scored.

use serde::Serialize;

use crate::algos;
use crate::job::Job;
use crate::rules::{self, Cause, Rules, RulesSettings, Verdict};

/// What a verdict names.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Answer {
    /// Ranks, ascending.
    pub ranks: Vec<u32>,
    /// Nodes, sorted.
    pub nodes: Vec<String>,
    /// The cause.
    pub cause: Cause,
}

impl Answer {
    fn new(job: &Job, verdict: &Verdict) -> Self {
        Self {
            ranks: verdict.anomalies.iter().map(|&place| job.ranks[place]).collect(),
            nodes: verdict.nodes(job),
            cause: verdict.cause,
        }
    }

    /// Whether anybody is named.
    #[must_use]
    pub fn names_anybody(&self) -> bool {
        !self.ranks.is_empty() || !self.nodes.is_empty()
    }
}

/// Asks a set of rules with its own settings and all algorithms.
#[must_use]
pub fn judge(job: &Job, rules: Rules) -> Answer {
    let verdict = rules::judge(job, &RulesSettings::of(rules), algos::registry());
    Answer::new(job, &verdict)
}
