//! Who is slow, when, and whether it lasts: the one mechanism for ranks, nodes and loaders.
//!
//! A row that may be slow at all is cut into stretches of constant level. Each stretch is judged once: against its peers
//! in the same steps, and where that does not tell, against the row's own best steps. What passes makes the slow steps,
//! and those a fault or not. A row whose whole window lies above its peers' is a fault although no stretch tells it.
//! `O(rows x iterations)`; only rows that may be slow cost more.

use std::ops::Range;

use rayon::prelude::*;

use super::common::{BETTER_STEPS, FASTER_ROWS};
use super::contrast::{Contrasts, Excess};
use super::judge_row::{Judge, SLOW_FROM};
use super::level::fast_levels;
use super::noise::{LEAST_NOISE, Noise};
use super::rows_by_step::RowsByStep;
use super::settings::PeerSettings;
use super::smoothing::without_spikes;
use crate::contract::constant::constants;
use crate::stats::{lower, mean};
use crate::verdict::Lasting;

constants! {
    /// Rows of a stage that tell whether a change is theirs too, evenly spread over all.
    PEERS_OF_A_CHANGE: usize = 64;
    /// Penalty of a change of level: so many times the noise, by the logarithm of the steps.
    PENALTY: f64 = 3.0;
    /// The steps that a short row counts as for it.
    FEWEST_STEPS: f64 = 10.0;
    /// Margin of a change in time from which a row changed: where many rows did, they do not tell the noise.
    CHANGED: f64 = 0.5;
    /// Share of the rows that are many.
    MANY_CHANGED: f64 = 0.25;
    /// Fewest rows of which those that changed can be left out.
    ROWS_TO_LEAVE_OUT: usize = 8;
}
/// The median distance of a normal distribution's lower quartile from its middle, in standard deviations.
const QUARTILE: f64 = 0.674;

/// What the rows of a table are.
pub(super) struct Rows<'a> {
    /// Own factors (log): without what the step and the pipeline's load ask of everybody; levels stay.
    pub factors: &'a RowsByStep,
    /// What the noise is told from, where that is not the factors.
    pub residual: Option<&'a RowsByStep>,
    /// The logarithms themselves.
    pub logs: &'a RowsByStep,
    /// Rows of each stage.
    pub stages: &'a [Vec<usize>],
    /// Stage of each row.
    pub stage_of: &'a [usize],
    /// Windows in which the job's steps were slow, by place.
    pub slow_windows: &'a [Range<usize>],
}

/// A row's fault.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Fault {
    pub lasting: Lasting,
    /// Whether each step is slow.
    pub slow: Vec<bool>,
    /// Log of the row's time over its peers' (without peers: its own best) in the slow steps, and what it had to pass.
    pub excess: Excess,
    /// Whether its own better steps are what it was compared with.
    pub to_itself: bool,
}

/// What is known of a row.
#[derive(Debug, Clone)]
pub(super) struct Judged {
    /// The whole window against the peers.
    pub whole: Excess,
    pub fault: Option<Fault>,
    /// Stretches that are slow and no fault.
    pub passing: Vec<Range<usize>>,
    /// Spells of full length among them that are more than chance.
    pub passed: Vec<Range<usize>>,
    /// Largest margin of a change in time.
    pub changed: f64,
}

/// Every row, with what all of them show.
pub(super) struct Verdicts {
    pub rows: Vec<Judged>,
    /// The level of each stage (log): what its fast rows take.
    pub levels: Vec<f64>,
}

/// Proposes levels: of each row's usual time (log, about its stage's; NaN without data) it tells, algorithm by algorithm,
/// which rows it takes for the fastest level.
pub(super) type Propose<'a> = dyn Fn(&[f64]) -> Vec<Vec<bool>> + Sync + 'a;

/// Judges every row.
pub(super) fn judge(rows: &Rows<'_>, propose: &Propose<'_>, settings: &PeerSettings) -> Verdicts {
    let count = rows.factors.rows();
    let noise = Noise::of(rows.residual.unwrap_or(rows.factors), rows.logs, &[], settings);
    let first = once(rows, noise, propose, settings);
    let changed: Vec<bool> = first.rows.iter().map(|row| row.changed > CHANGED.get()).collect();
    let many = changed.iter().filter(|&&changed| changed).count() as f64 >= MANY_CHANGED.get() * count as f64;
    if !many || rows.residual.is_some() || count < ROWS_TO_LEAVE_OUT.get() || changed.iter().all(|&changed| changed) {
        return first;
    }
    let noise = Noise::of(rows.factors, rows.logs, &changed, settings);
    once(rows, noise, propose, settings)
}

fn once(rows: &Rows<'_>, noise: Noise, propose: &Propose<'_>, settings: &PeerSettings) -> Verdicts {
    let factors = rows.factors;
    let medians = factors.row_medians();
    let levels = fast_levels(rows, &medians, &noise, propose, settings);
    let better = factors.map(|_, cells| lower(cells.iter().copied(), BETTER_STEPS.get()));
    // Lowest level of each stage in time, so that a whole stage that becomes slow is seen to.
    let lowest: Vec<f64> = levels
        .iter()
        .map(|level| lower(level.iter().map(|&row| better[row]), FASTER_ROWS.get()) + QUARTILE * noise.of_step())
        .collect();
    let step = noise.of_step().max(LEAST_NOISE.get());
    let spike = noise.spike();
    let contrasts = Contrasts::new(factors, &noise, &levels, rows.stage_of, settings, |row| {
        without_spikes(factors.row(row), spike)
    });
    let penalty =
        PENALTY.get() * (factors.columns() as f64).max(FEWEST_STEPS.get()).ln() * step * step * noise.inflation();
    let judge = Judge {
        rows,
        contrasts: &contrasts,
        lowest: &lowest,
        penalty,
        settings,
    };
    let mut judged: Vec<Judged> = (0..factors.rows())
        .into_par_iter()
        .map(|row| judge.row(row, spike))
        .collect();
    take_back_shared_changes(rows, &mut judged);
    let levels = levels
        .iter()
        .map(|level| lower(level.iter().map(|&row| medians[row]), FASTER_ROWS.get()))
        .collect();
    Verdicts { rows: judged, levels }
}

/// Takes back faults that are told by a row's own better steps alone where most of its stage changed with it and is not accused:
/// whatever changed there is no matter of that row, and too few steps before it tell which rows it concerns.
fn take_back_shared_changes(rows: &Rows<'_>, judged: &mut [Judged]) {
    let own_change = |judged: &Judged| judged.fault.as_ref().is_some_and(|fault| fault.to_itself);
    let shared: Vec<usize> = (0..judged.len())
        .into_par_iter()
        .filter(|&row| own_change(&judged[row]) && is_shared(rows, judged, row))
        .collect();
    for row in shared {
        judged[row].fault = None;
    }
}

fn is_shared(rows: &Rows<'_>, judged: &[Judged], row: usize) -> bool {
    let Some(fault) = &judged[row].fault else { return false };
    let stage = &rows.stages[rows.stage_of[row]];
    let every = stage.len().div_ceil(PEERS_OF_A_CHANGE.get()).max(1);
    let change = |peer: usize| {
        let cells = rows.factors.row(peer);
        let mean_where = |wanted: bool| {
            mean(
                cells
                    .iter()
                    .zip(&fault.slow)
                    .filter(|(_, slow)| **slow == wanted)
                    .map(|(cell, _)| *cell),
            )
        };
        mean_where(true) - mean_where(false)
    };
    let (mut accused, mut unaccused) = (0, 0);
    for &peer in stage.iter().step_by(every).filter(|&&peer| peer != row) {
        if judged[peer].fault.is_some() {
            accused += 1;
        } else if change(peer) > SLOW_FROM.get() * fault.excess.excess {
            unaccused += 1;
        }
    }
    unaccused > accused
}

#[cfg(test)]
mod tests {
    use super::super::samples::{job, verdict};
    use crate::verdict::{Cause, Lasting, Status};

    fn lasting(own: impl Fn(u32, usize) -> f64, iterations: usize) -> (Vec<usize>, Option<Lasting>, Option<bool>) {
        let verdict = verdict(&job(1, 16, iterations, own));
        let first = verdict.findings.iter().find(|finding| finding.named);
        (
            verdict.anomalies,
            first.and_then(|finding| finding.lasting),
            first.and_then(|finding| finding.ended),
        )
    }

    #[test]
    fn what_lasts_to_the_end_is_named_however_late_it_began() {
        let named = lasting(|rank, t| if rank == 4 && t >= 270 { 1.5 } else { 1.0 }, 300);
        assert_eq!(named, (vec![4], Some(Lasting::ToTheEnd), Some(false)));
    }

    #[test]
    fn a_stage_that_changed_after_few_steps_does_not_accuse_the_one_with_a_spike_before() {
        let own = |rank: u32, t: usize| match (rank, t) {
            (29, 2) => 1.6,
            (24.., 4..) => 1.3,
            _ => 1.0,
        };
        let verdict = verdict(&job(4, 8, 16, own));
        assert_eq!(verdict.anomalies, [0; 0]);
    }

    #[test]
    fn what_comes_back_is_one_finding() {
        let on = |t: usize| t % 20 < 6;
        let named = lasting(|rank, t| if rank == 4 && on(t) { 1.5 } else { 1.0 }, 60);
        assert_eq!((named.0, named.1), (vec![4], Some(Lasting::Recurring)));
        let flaky = lasting(|rank, t| if rank == 4 && (t * 7) % 5 < 2 { 1.08 } else { 1.0 }, 60);
        assert_eq!(flaky.0, [4]);
    }

    #[test]
    fn what_ended_is_named_where_it_covers_a_third_of_the_window() {
        let ended = lasting(|rank, t| if rank == 4 && (5..30).contains(&t) { 1.2 } else { 1.0 }, 60);
        assert_eq!(ended, (vec![4], Some(Lasting::Long), Some(true)));
        let passed = lasting(|rank, t| if rank == 4 && (5..13).contains(&t) { 1.2 } else { 1.0 }, 60);
        assert_eq!(passed.0, [0usize; 0]);
    }

    #[test]
    fn half_of_the_ranks_on_a_slower_level_are_named_in_one_finding() {
        let verdict = verdict(&job(1, 16, 40, |rank, _| if rank % 2 == 0 { 1.6 } else { 1.0 }));
        assert_eq!(verdict.anomalies, (0..16).step_by(2).collect::<Vec<_>>());
        assert_eq!((verdict.status, verdict.cause), (Status::Fault, Cause::Compute));
        let named: Vec<_> = verdict.findings.iter().filter(|finding| finding.named).collect();
        assert_eq!(named.len(), 1, "{named:?}");
        assert!(named[0].says.contains("a level of their own"), "{}", named[0].says);
    }

    #[test]
    fn one_of_two_ranks_that_becomes_slow_is_told_by_its_own_change() {
        let verdict = verdict(&job(1, 2, 60, |rank, t| if rank == 1 && t >= 30 { 1.3 } else { 1.0 }));
        assert_eq!(verdict.anomalies, [1]);
        assert_eq!(verdict.findings[0].onset, Some(30));
    }

    #[test]
    fn a_whole_stage_that_becomes_slow_is_told_by_the_others() {
        let own = |rank: u32, t| if rank / 8 == 1 && t >= 20 { 1.2 } else { 1.0 };
        let verdict = verdict(&job(4, 8, 48, own));
        assert_eq!(verdict.anomalies, (8..16).collect::<Vec<_>>());
    }

    #[test]
    fn pauses_and_checkpoints_name_nobody() {
        let pauses = |rank: u32, t: usize| {
            if (rank as usize * 13 + t * 7).is_multiple_of(31) {
                1.6
            } else {
                1.0
            }
        };
        assert!(lasting(pauses, 60).0.is_empty());
        let checkpoints = |rank, t: usize| if rank == 0 && t.is_multiple_of(10) { 4.0 } else { 1.0 };
        assert!(lasting(checkpoints, 60).0.is_empty());
        let together = |_, t: usize| if (20..30).contains(&t) { 1.4 } else { 1.0 };
        assert!(lasting(together, 60).0.is_empty());
    }
}
