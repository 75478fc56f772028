//! The verdict that is scored.

use schemars::JsonSchema;
use serde::Serialize;

use crate::algos::Algorithm;
use crate::job::Job;
use crate::rules::{self, RulesSettings, Verdict};
use crate::verdict::Cause;

/// What a verdict names.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
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

/// Asks a set of rules with some of the algorithms.
#[must_use]
pub fn judge(job: &Job, settings: &RulesSettings, algorithms: &[&'static dyn Algorithm]) -> Answer {
    Answer::new(job, &rules::judge(job, settings, algorithms))
}
