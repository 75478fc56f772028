//! What looks for one sort of thing in a job.

use super::candidates::{Candidate, Evidence};
use super::cost::StepModel;
use super::loader::Loading;
use super::replica::HeavyReplica;
use super::settings::PeerSettings;
use super::tensor_groups::TensorGroups;
use super::votes::Votes;
use crate::job::Job;
use crate::verdict::{Cause, Finding, FindingKind, words};

/// Looks for one sort of thing.
pub(super) trait Detector: Sync {
    /// What it finds, in an order of its own.
    fn find(&self, seen: &Seen<'_>) -> Vec<Finding>;
}

/// What all detectors share: the job, and what was measured of it once.
pub(super) struct Seen<'a> {
    pub job: &'a Job,
    pub units: &'a TensorGroups,
    pub evidence: &'a Evidence,
    pub candidates: &'a [Candidate],
    pub heavy_replicas: &'a [HeavyReplica],
    pub votes: &'a Votes,
    pub loading: &'a Loading,
    pub model: &'a StepModel,
    pub settings: &'a PeerSettings,
}

impl Seen<'_> {
    /// A finding over the whole window, of nobody yet.
    pub fn finding(&self, kind: FindingKind, cause: Cause) -> Finding {
        Finding::new(kind, cause, self.job.iteration_count())
    }

    /// Fills in who it is: ranks (positions), their nodes in the slow steps, stages.
    pub fn accuse(&self, finding: &mut Finding, ranks: &[usize], slow: &[bool]) {
        finding.ranks = ranks.iter().map(|&rank| self.job.ranks[rank]).collect();
        finding.ranks.sort_unstable();
        finding.nodes = self.job.nodes_in(ranks, slow);
        if self.units.places.stages.len() > 1 {
            let stage = |&rank: &usize| self.units.stages[self.units.unit_of[rank]];
            finding.stages = ranks.iter().map(stage).collect();
            finding.stages.sort_unstable();
            finding.stages.dedup();
        }
    }

    /// Where and how often it shows.
    pub fn shows_in(&self, finding: &mut Finding, slow: &[bool]) {
        let steps = || (0..slow.len()).filter(|&step| slow[step]);
        finding.slow_iterations = Some(self.job.iterations_in(steps()));
        finding.first_iteration = steps().next().map(|step| self.job.iterations[step]);
        finding.last_iteration = steps().next_back().map(|step| self.job.last_iteration_of(step));
        let over = slow.iter().rev().take_while(|&&slow| !slow).count();
        finding.ended = Some(over >= self.settings.least_slow_columns());
    }
}

/// `rank 5 on node a`; without the node where it is not known.
pub(super) fn who(finding: &Finding) -> String {
    let ranks = words::ranks(&finding.ranks);
    if finding.nodes.is_empty() {
        ranks
    } else {
        format!("{ranks} on {}", words::nodes(&finding.nodes))
    }
}

/// `in 20 of 30 iterations`.
pub(super) fn how_often(finding: &Finding) -> String {
    words::in_how_many(finding.slow_iterations.unwrap_or(0), finding.iterations)
}
