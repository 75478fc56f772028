//! The rules that turn a job's tables into a verdict. Each set of rules chooses what is clustered and what it takes
//! to be named; the algorithms, the votes and the report are the same for all.
//!
//! In: a job and settings. Out: a [`Verdict`]. May use: `comm`, `vote`, `algos`, `features`, `whatif` and what is below.

pub mod classic;
mod classic_comm;
mod cost;
mod job_wide;
pub mod peer;
mod unjudged;
mod unplaced;

use std::collections::BTreeSet;

use schemars::JsonSchema;
use serde::Serialize;

use self::classic::ClassicSettings;
use self::peer::PeerSettings;
use crate::algos::{Algorithm, Scores};
use crate::comm::{self, Communication};
use crate::contract::constant::Movable;
use crate::contract::metrics::UNKNOWN_NODE;
use crate::features::TimerVerdict;
use crate::job::Job;
use crate::source::timestamp;
use crate::verdict::comparison::Comparison;
use crate::verdict::{self, Cause, Finding, Status};
use crate::vote::RankBallot;
use crate::whatif::timers::WhatIf;

/// A set of rules.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Rules {
    /// Compare a rank with the others of its stage, name who is slow lastingly and by an amount that matters.
    #[default]
    Peer,
    /// Cluster over all ranks, elect those with the most votes.
    Classic,
}

impl Rules {
    /// The word in settings and reports.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Peer => "peer",
            Self::Classic => "classic",
        }
    }
}

/// The rules to apply with their thresholds.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
#[serde(untagged)]
pub enum RulesSettings {
    /// [`Rules::Peer`].
    Peer(PeerSettings),
    /// [`Rules::Classic`].
    Classic(ClassicSettings),
}

impl Default for RulesSettings {
    fn default() -> Self {
        Self::Peer(PeerSettings::default())
    }
}

impl RulesSettings {
    /// The default thresholds of a set of rules.
    #[must_use]
    pub fn of(rules: Rules) -> Self {
        match rules {
            Rules::Peer => Self::Peer(PeerSettings::default()),
            Rules::Classic => Self::Classic(ClassicSettings::default()),
        }
    }

    /// Which rules they are of.
    #[must_use]
    pub fn rules(&self) -> Rules {
        match self {
            Self::Peer(_) => Rules::Peer,
            Self::Classic(_) => Rules::Classic,
        }
    }
}

/// Every number by which a job is judged, each with its reason, in the order of the floors: what a sensitivity run moves.
#[must_use]
pub fn constants() -> Vec<&'static dyn Movable> {
    let of_rules = peer::constants().chain(job_wide::CONSTANTS.iter().copied());
    verdict::constants().chain(comm::constants()).chain(of_rules).collect()
}

/// Applies rules to a job with the given algorithms.
///
/// Gives a verdict on any job, however small or full of holes; `O(ranks x iterations)` and the algorithms' cost.
#[must_use]
pub fn judge(job: &Job, settings: &RulesSettings, algorithms: &[&'static dyn Algorithm]) -> Verdict {
    let verdict = match settings {
        _ if job.ranks.is_empty() => job_wide::judge(job),
        RulesSettings::Peer(settings) => cost::with_costs(job, peer::judge(job, settings, algorithms)),
        RulesSettings::Classic(settings) => classic::judge(job, settings, algorithms),
    };
    let mut verdict = job_wide::add(job, verdict);
    for finding in &mut verdict.findings {
        finding.first_time = finding.first_iteration.and_then(|iteration| time_of(job, iteration));
        finding.last_time = finding.last_iteration.and_then(|iteration| time_of(job, iteration));
    }
    verdict
}

/// When the step that holds an iteration was over, UTC.
fn time_of(job: &Job, iteration: i64) -> Option<String> {
    let column = job
        .iterations
        .partition_point(|&first| first <= iteration)
        .checked_sub(1)?;
    job.iteration_times.get(column).map(|&time| timestamp::format(time))
}

/// How an algorithm labelled the ranks by one timer, or by all.
#[derive(Debug, Clone)]
pub struct TimerLabels {
    /// Position of the timer in [`Verdict::timers`]; `None` for the evidence of all timers together.
    pub timer: Option<usize>,
    /// The parameters that won the grid; `None` when no candidate had two clusters.
    pub parameters: Option<String>,
    /// Clusters before folding to two.
    pub clusters: usize,
    /// Scores of the winner.
    pub scores: Option<Scores>,
    /// Whether each rank is slow.
    pub slow: Vec<bool>,
}

/// What one algorithm says.
#[derive(Debug, Clone)]
pub struct AlgorithmVerdict {
    /// Name of the algorithm.
    pub name: &'static str,
    /// Its labels, one entry a matrix that it clustered.
    pub timers: Vec<TimerLabels>,
    /// Its vote on each rank, after every rule.
    pub ranks: Vec<RankBallot>,
}

/// What the rules say of a job; ranks are positions in the job's list of ranks.
#[derive(Debug, Default, Clone)]
pub struct Verdict {
    /// Every timer with its fate.
    pub timers: Vec<TimerVerdict>,
    /// What each algorithm says.
    pub algorithms: Vec<AlgorithmVerdict>,
    /// Algorithms that call each rank slow.
    pub votes: Vec<u32>,
    /// The anomaly ranks, ascending.
    pub anomalies: Vec<usize>,
    /// Nodes whose network is slow, sorted; the anomaly nodes are these and those of the anomaly ranks.
    pub network_nodes: Vec<String>,
    /// What it comes to.
    pub status: Status,
    /// What could not be judged, where that keeps the job from being called healthy.
    pub unjudged: Option<String>,
    /// What costs the job most.
    pub cause: Cause,
    /// Everything that was found, the weightiest first; the anomaly ranks are those of the named ones.
    pub findings: Vec<Finding>,
    /// Transfers between ranks, and what each rank does with its time.
    pub communication: Communication,
    /// Every rank beside its peers; of no ranks where they were not compared.
    pub comparison: Comparison,
    /// What the findings cost together; `None` where it was not asked for.
    pub what_if: Option<WhatIf>,
}

impl Verdict {
    /// The anomaly nodes: those of the named findings in the steps in which they show, and those whose network is slow,
    /// each once, sorted. A node that is not known names none.
    #[must_use]
    pub fn nodes(&self, job: &Job) -> Vec<String> {
        let everywhere = vec![true; job.iterations.len()];
        let told: BTreeSet<u32> = self
            .findings
            .iter()
            .filter(|finding| finding.named)
            .flat_map(|finding| finding.ranks.clone())
            .collect();
        let of_findings = self
            .findings
            .iter()
            .filter(|finding| finding.named)
            .flat_map(|finding| finding.nodes.clone());
        let others = self.anomalies.iter().filter(|&&rank| !told.contains(&job.ranks[rank]));
        let of_others = others.flat_map(|&rank| job.nodes_in(&[rank], &everywhere));
        let nodes: BTreeSet<String> = of_findings
            .chain(of_others)
            .chain(self.network_nodes.iter().cloned())
            .collect();
        nodes.into_iter().filter(|node| node != UNKNOWN_NODE).collect()
    }
}
