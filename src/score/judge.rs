//! The verdict that is scored.

use std::collections::BTreeSet;

use serde::Serialize;

use crate::algos;
use crate::job::Job;
use crate::rules::classic::{self, ClassicSettings};
use crate::rules::{Cause, Verdict};

/// A set of rules that can be scored.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum RuleSet {
    /// The classic rules.
    Classic,
    /// The peer rules.
    Peer,
}

impl RuleSet {
    /// The word on the command line and in reports.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Classic => "classic",
            Self::Peer => "peer",
        }
    }

    /// Whether this build holds the rules.
    #[must_use]
    pub fn is_there(self) -> bool {
        self == Self::Classic
    }
}

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
        let nodes: BTreeSet<&String> = verdict.anomalies.iter().map(|&place| &job.nodes[place]).collect();
        Self {
            ranks: verdict.anomalies.iter().map(|&place| job.ranks[place]).collect(),
            nodes: nodes.into_iter().cloned().collect(),
            cause: verdict.cause,
        }
    }

    /// Whether anybody is named.
    #[must_use]
    pub fn names_anybody(&self) -> bool {
        !self.ranks.is_empty() || !self.nodes.is_empty()
    }
}

/// Asks a set of rules with its own settings and all algorithms; `None` where this build does not hold it.
#[must_use]
pub fn judge(job: &Job, rules: RuleSet) -> Option<Answer> {
    let verdict = match rules {
        RuleSet::Classic => classic::judge(job, &ClassicSettings::default(), algos::registry()),
        RuleSet::Peer => return None,
    };
    Some(Answer::new(job, &verdict))
}
