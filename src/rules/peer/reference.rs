//! A candidate's timers in seconds beside its peers', for people: plain means over its slow steps.

use std::collections::BTreeMap;

use super::candidates::Candidate;
use super::tensor_groups::TensorGroups;
use crate::contract::timers::{ATTENTION_QKV, COMPUTING};
use crate::job::Job;
use crate::stats::{mean, median};
use crate::verdict::TimerEvidence;

/// Compares candidates with the ranks of their stage that are none; keeps what several candidates share.
pub(super) struct Reference<'a> {
    job: &'a Job,
    units: &'a TensorGroups,
    is_candidate: Vec<bool>,
    /// (timer, stage, slow steps) -> the peers' seconds.
    known: BTreeMap<(usize, usize, Vec<bool>), f64>,
}

impl<'a> Reference<'a> {
    /// Prepares to compare these candidates.
    pub fn new(job: &'a Job, units: &'a TensorGroups, candidates: &[Candidate]) -> Self {
        let mut is_candidate = vec![false; job.ranks.len()];
        for candidate in candidates {
            candidate.ranks.iter().for_each(|&rank| is_candidate[rank] = true);
        }
        Self {
            job,
            units,
            is_candidate,
            known: BTreeMap::new(),
        }
    }

    /// Each compute timer of the candidate that it and its peers ran.
    ///
    /// Without peers, the candidate's own other steps are the reference.
    pub fn compare(&mut self, candidate: &Candidate) -> Vec<TimerEvidence> {
        let slow = &candidate.fault.slow;
        let stage = self.units.places.stage_of[candidate.unit];
        let mut timers = Vec::new();
        for (place, name) in COMPUTING.into_iter().enumerate() {
            let seconds = self.seconds(name, &candidate.ranks, |step| slow[step]);
            // In forward and backward the members of a unit wait for each other: of the peers only other units tell.
            let alone = self.units.places.stages[stage].len() < 2;
            if alone
                && name != ATTENTION_QKV
                && self.units.members[candidate.unit].len() > 1
                && slow.iter().all(|&slow| slow)
            {
                continue;
            }
            let key = (place, stage, slow.clone());
            let peers = match self.known.get(&key) {
                Some(&known) => known,
                None => {
                    let peers = self.seconds(name, &self.peers(stage), |step| slow[step]);
                    self.known.insert(key, peers);
                    peers
                }
            };
            let reference = if peers.is_finite() {
                peers
            } else {
                self.seconds(name, &candidate.ranks, |step| !slow[step])
            };
            if seconds.is_finite() && reference.is_finite() {
                timers.push(TimerEvidence {
                    timer: name.to_owned(),
                    mean_seconds: seconds,
                    reference_seconds: reference,
                    factor: seconds / reference,
                    slow_by: Vec::new(),
                });
            }
        }
        timers
    }

    fn peers(&self, stage: usize) -> Vec<usize> {
        let units = self.units.places.stages[stage].iter();
        let ranks = units.flat_map(|&unit| self.units.members[unit].iter().copied());
        ranks.filter(|&rank| !self.is_candidate[rank]).collect()
    }

    /// Median over ranks of their mean duration in some steps.
    fn seconds(&self, timer: &str, ranks: &[usize], steps: impl Fn(usize) -> bool) -> f64 {
        let Some(timer) = self.job.timer(timer) else {
            return f64::NAN;
        };
        let of_rank = |&rank: &usize| {
            let ran = timer.seconds.row(rank);
            let ran = ran.iter().enumerate();
            // A duration of 0 says that the timer did not run.
            mean(
                ran.filter(|&(step, &seconds)| steps(step) && seconds > 0.0)
                    .map(|(_, &seconds)| seconds),
            )
        };
        median(ranks.iter().map(of_rank))
    }
}

#[cfg(test)]
mod tests {
    use super::super::samples::{job, verdict};

    #[test]
    fn seconds_are_those_of_the_slow_part() {
        let verdict = verdict(&job(
            1,
            16,
            40,
            |rank, step| if rank == 4 && step >= 20 { 1.5 } else { 1.0 },
        ));
        let finding = &verdict.findings[0];
        assert_eq!((finding.onset, finding.timers.len()), (Some(20), 3));
        let forward = &finding.timers[0];
        assert_eq!(forward.timer, "forward-compute");
        assert!((forward.mean_seconds - 1.5).abs() < 0.02 && (forward.reference_seconds - 1.0).abs() < 0.01);
        assert!((forward.factor - 1.5).abs() < 0.02);
    }

    #[test]
    fn without_peers_its_own_better_part_is_the_reference() {
        let verdict = verdict(&job(
            4,
            1,
            40,
            |rank, step| if rank == 2 && step >= 20 { 1.5 } else { 1.0 },
        ));
        assert_eq!(verdict.anomalies, [2]);
        let finding = &verdict.findings[0];
        assert!(
            finding
                .says
                .contains("slower than in its better part of the window, since iteration 20")
        );
        assert!((finding.timers[0].reference_seconds - 1.0).abs() < 0.01, "{finding:?}");
    }
}
