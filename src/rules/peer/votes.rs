//! The six algorithms on the evidence: a vote on each rank that can veto a name and says how sure it is.
//!
//! They cluster a rank's excess over its peers in units of the threshold (of its unit's work and of its own qkv), clipped to
//! -0.5 ..= 1.25: saturated, so that a culprit of twice the time and one of 1.08 look alike, which unclipped splits in
//! two never do. They are asked only when there are candidates: a forced split of a tight cloud means nothing, and
//! healthy jobs stay cheap.

use rayon::prelude::*;

use super::candidates::{Candidate, Evidence};
use super::tensor_groups::TensorGroups;
use crate::algos::{self, Algorithm, Clustering, Row, Space};
use crate::contract::constant::constants;
use crate::rules::{AlgorithmVerdict, TimerLabels};
use crate::stats::{mean, median};
use crate::vote::RankBallot;

constants! {
    /// Evidence below this is clipped, in thresholds.
    LEAST: f64 = -0.5;
    /// Evidence above this is clipped, in thresholds.
    MOST: f64 = 1.25;
    /// What a rank of several in a unit that is no candidate shows at most.
    NO_CANDIDATE: f64 = 0.8;
}

/// Which rows each algorithm takes for the fastest level: those of the cluster with the lowest mean, of `values` (log) that
/// are NaN for rows without data. An algorithm that finds fewer than two clusters proposes none.
pub(super) fn levels(values: &[f64], algorithms: &[&'static dyn Algorithm]) -> Vec<Vec<bool>> {
    let known: Vec<usize> = (0..values.len()).filter(|&row| values[row].is_finite()).collect();
    let space = Space::new(known.iter().map(|&row| [values[row]; 4]).collect());
    let propose = |algorithm: &&'static dyn Algorithm| {
        let clustering = algos::tune(*algorithm, &space)?;
        let mut sums = vec![(0.0, 0.0); clustering.clusters];
        for (&row, &label) in known.iter().zip(&clustering.labels) {
            sums[label as usize].0 += values[row];
            sums[label as usize].1 += 1.0;
        }
        let mean = |cluster: usize| sums[cluster].0 / sums[cluster].1;
        let fastest = (0..clustering.clusters).min_by(|&a, &b| mean(a).total_cmp(&mean(b)))? as u32;
        let mut fast = vec![false; values.len()];
        for (&row, &label) in known.iter().zip(&clustering.labels) {
            fast[row] = label == fastest;
        }
        Some(fast)
    };
    algorithms.par_iter().filter_map(propose).collect()
}

/// The outcome of the vote.
#[derive(Debug)]
pub(super) struct Votes {
    /// What each algorithm says.
    pub algorithms: Vec<AlgorithmVerdict>,
    /// Algorithms that could tell slow ranks from fast ones.
    pub voters: u32,
    /// How many of them call each rank slow.
    pub votes: Vec<u32>,
}

impl Votes {
    /// The outcome when there is nobody to vote on: every rank is fast.
    pub fn nobody(ranks: usize, algorithms: &[&'static dyn Algorithm]) -> Self {
        let fast = |algorithm: &&'static dyn Algorithm| AlgorithmVerdict {
            name: algorithm.name(),
            timers: Vec::new(),
            ranks: vec![ballot(false, 0.0); ranks],
        };
        Self {
            algorithms: algorithms.iter().map(fast).collect(),
            voters: 0,
            votes: vec![0; ranks],
        }
    }

    /// Lets the algorithms vote on the evidence; one that finds fewer than two clusters abstains.
    pub fn cast(evidence: Vec<Row>, algorithms: &[&'static dyn Algorithm]) -> Self {
        let overall: Vec<f64> = evidence.iter().map(|row| mean(*row)).collect();
        let space = Space::new(evidence);
        let algorithms: Vec<AlgorithmVerdict> = algorithms
            .par_iter()
            .map(|algorithm| {
                let winner = algos::tune(*algorithm, &space);
                let slow = winner
                    .as_ref()
                    .map(|winner| algos::slow_ranks(&space, &overall, winner));
                let slow = slow.unwrap_or_else(|| vec![false; space.len()]);
                let told = slow.contains(&true);
                AlgorithmVerdict {
                    name: algorithm.name(),
                    ranks: slow
                        .iter()
                        .map(|&slow| ballot(slow, f64::from(u8::from(told))))
                        .collect(),
                    timers: vec![labels(winner, slow)],
                }
            })
            .collect();
        let told = |algorithm: &&AlgorithmVerdict| algorithm.ranks.iter().any(|rank| rank.slow);
        let mut votes = vec![0; space.len()];
        for algorithm in algorithms.iter().filter(told) {
            for (votes, ballot) in votes.iter_mut().zip(&algorithm.ranks) {
                *votes += u32::from(ballot.slow);
            }
        }
        Self {
            voters: algorithms.iter().filter(told).count() as u32,
            votes,
            algorithms,
        }
    }

    /// Whether at least half of those that could tell call the rank slow; true when none could.
    pub fn confirm(&self, rank: usize) -> bool {
        2 * self.votes[rank] >= self.voters
    }
}

fn ballot(slow: bool, total: f64) -> RankBallot {
    RankBallot {
        slow_votes: if slow { total } else { 0.0 },
        total,
        slow,
    }
}

fn labels(winner: Option<Clustering>, slow: Vec<bool>) -> TimerLabels {
    TimerLabels {
        timer: None,
        clusters: winner.as_ref().map_or(1, |winner| winner.clusters),
        scores: winner.as_ref().and_then(|winner| winner.scores),
        parameters: winner.map(|winner| winner.parameters),
        slow,
    }
}

/// The evidence of each rank: overall, forward, backward and qkv in thresholds.
pub(super) fn saturated(evidence: &Evidence, units: &TensorGroups, candidates: &[Candidate]) -> Vec<Row> {
    let mut rows = vec![[f64::NAN; 4]; units.unit_of.len()];
    let mut candidate_of: Vec<Option<&Candidate>> = vec![None; units.len()];
    for candidate in candidates {
        candidate_of[candidate.unit] = Some(candidate);
        for &rank in &candidate.ranks {
            candidate_of[units.unit_of[rank]] = Some(candidate);
        }
    }
    for (unit, members) in units.members.iter().enumerate() {
        let shown = evidence.units.verdicts.rows[unit].whole.margin();
        for &rank in members {
            let by_qkv = evidence
                .ranks
                .as_ref()
                .map(|ranks| ranks.verdicts.rows[rank].whole.margin());
            // Inside a unit only what is the rank's own tells.
            let own = if members.len() == 1 {
                shown
            } else {
                by_qkv.filter(|own| own.is_finite()).unwrap_or(0.0).max(0.0)
            };
            let row = &mut rows[rank];
            *row = match candidate_of[unit] {
                None => [at_most(shown, NO_CANDIDATE.get()); 4],
                Some(candidate) if candidate.ranks.contains(&rank) => [candidate.fault.excess.margin().max(1.0); 4],
                Some(_) => [at_most(shown, own).min(NO_CANDIDATE.get()); 4],
            };
            if let Some(by_qkv) = by_qkv.filter(|_| candidate_of[unit].is_none()) {
                row[3] = at_most(by_qkv, NO_CANDIDATE.get());
            }
        }
    }
    for row in &mut rows {
        let usual = median(*row);
        let usual = if usual.is_finite() { usual } else { 0.0 };
        *row = row.map(|value| if value.is_finite() { value } else { usual }.clamp(LEAST.get(), MOST.get()));
    }
    rows
}

/// The lesser of two; NaN stays missing.
fn at_most(value: f64, most: f64) -> f64 {
    if value > most { most } else { value }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_algorithms_confirm_what_stands_apart() {
        let mut rows = vec![[0.05; 4]; 20];
        for (at, row) in rows.iter_mut().enumerate() {
            row[0] += 0.01 * at as f64;
        }
        rows[7] = [MOST.get(); 4];
        let votes = Votes::cast(rows, algos::registry());
        assert_eq!(votes.voters, 6);
        assert!(votes.confirm(7), "{:?}", votes.votes);
        assert!(!votes.confirm(3));
    }

    #[test]
    fn none_that_can_tell_leaves_it_to_the_gates() {
        let votes = Votes::cast(vec![[1.0; 4]; 5], algos::registry());
        assert_eq!(votes.voters, 0);
        assert!(votes.confirm(0));
        assert_eq!(Votes::nobody(3, algos::registry()).algorithms.len(), 6);
    }
}
