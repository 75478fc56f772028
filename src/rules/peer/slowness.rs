//! Who is slow, when, and whether it lasts: the one mechanism for ranks, nodes and loaders.
//!
//! A row that may be slow at all is cut into stretches of constant level. Each stretch is judged once: against its peers
//! in the same steps, and where that does not tell, against the row's own best steps. What passes makes the slow steps,
//! and those a fault or not. A row whose whole window lies above its peers' is a fault although no stretch tells it.
//! `O(rows x iterations)`; only rows that may be slow cost more.

use std::borrow::Cow;
use std::ops::Range;

use rayon::prelude::*;

use super::common::{BETTER_STEPS, FASTER_ROWS};
use super::contrast::{Contrasts, Excess};
use super::level::levels_end_at;
use super::noise::Noise;
use super::settings::{Ablation, PeerSettings};
use super::stretches::stretches;
use super::table::Table;
use crate::stats::{lower, mean, median};
use crate::verdict::{Lasting, lasting, runs};

/// Share of the effect floor that some five steps of a row must exceed for it to be looked at.
const HINT: f64 = 0.8;
/// Penalty of a change of level: so many times the noise, by the logarithm of the steps.
const PENALTY: f64 = 3.0;
const FEWEST_STEPS: f64 = 10.0;
/// Share of the window that a row's best steps make, to compare others with.
const BEST_SHARE: f64 = 0.125;
/// Share of a stretch's steps that must be slow by themselves: one long step among four others is no slow stretch.
const SLOW_BY_THEMSELVES: f64 = 0.6;
/// Share of the excess from which a step is slow.
const SLOW_FROM: f64 = 0.5;
/// Spikes: cells so many deviations, and so many effect floors, from the median of those around them.
const SPIKE: (f64, f64) = (5.0, 4.0);
const AROUND: usize = 3;
/// The median distance of a normal distribution's lower quartile from its middle, in standard deviations.
const QUARTILE: f64 = 0.674;
/// Least noise of a step: exact repeats do not make noise vanish.
const LEAST_NOISE: f64 = 1e-4;
/// Changed rows do not tell the noise where they are many; margin from which a row changed, and how many are many.
const CHANGED: f64 = 0.5;
const MANY_CHANGED: f64 = 0.25;
const ROWS_TO_LEAVE_OUT: usize = 8;

/// What the rows of a table are.
pub(super) struct Rows<'a> {
    /// Own factors (log): without what the step and the pipeline's load ask of everybody; levels stay.
    pub factors: &'a Table,
    /// What the noise is told from, where that is not the factors.
    pub residual: Option<&'a Table>,
    /// The logarithms themselves.
    pub logs: &'a Table,
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
    /// Largest margin of a change in time.
    changed: f64,
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
    let noise = Noise::of(rows.residual.unwrap_or(rows.factors), rows.logs, &[]);
    let first = once(rows, noise, propose, settings);
    let changed: Vec<bool> = first.rows.iter().map(|row| row.changed > CHANGED).collect();
    let many = changed.iter().filter(|&&changed| changed).count() as f64 >= MANY_CHANGED * count as f64;
    if !many || rows.residual.is_some() || count < ROWS_TO_LEAVE_OUT || changed.iter().all(|&changed| changed) {
        return first;
    }
    let noise = Noise::of(rows.factors, rows.logs, &changed);
    once(rows, noise, propose, settings)
}

fn once(rows: &Rows<'_>, noise: Noise, propose: &Propose<'_>, settings: &PeerSettings) -> Verdicts {
    let factors = rows.factors;
    let medians = factors.row_medians();
    let levels = fast_levels(rows, &medians, &noise, propose, settings);
    let better = factors.map(|_, cells| lower(cells.iter().copied(), BETTER_STEPS));
    // Lowest level of each stage in time, so that a whole stage that becomes slow is seen to.
    let lowest: Vec<f64> = levels
        .iter()
        .map(|level| lower(level.iter().map(|&row| better[row]), FASTER_ROWS) + QUARTILE * noise.of_step())
        .collect();
    let step = noise.of_step().max(LEAST_NOISE);
    let limit = (SPIKE.0 * step).max(SPIKE.1 * settings.effect_floor);
    let contrasts = Contrasts::new(factors, &noise, &levels, rows.stage_of, settings, |row| {
        without_spikes(factors.row(row), limit)
    });
    let penalty = PENALTY * (factors.columns() as f64).max(FEWEST_STEPS).ln() * step * step * noise.inflation();
    let judge = Judge {
        rows,
        contrasts: &contrasts,
        lowest: &lowest,
        penalty,
        settings,
    };
    let judged = (0..factors.rows())
        .into_par_iter()
        .map(|row| judge.row(row, limit))
        .collect();
    let levels = levels
        .iter()
        .map(|level| lower(level.iter().map(|&row| medians[row]), FASTER_ROWS))
        .collect();
    Verdicts { rows: judged, levels }
}

/// The rows of each stage's fast level.
///
/// Where a gap may part levels the algorithms are asked; the lowest end that the gap allows and one of them proposes is it.
fn fast_levels(
    rows: &Rows<'_>,
    medians: &[f64],
    noise: &Noise,
    propose: &Propose<'_>,
    settings: &PeerSettings,
) -> Vec<Vec<usize>> {
    let error = noise.error(rows.factors.columns());
    let mut orders: Vec<Vec<usize>> = rows
        .stages
        .iter()
        .map(|members| {
            let mut order: Vec<usize> = members
                .iter()
                .copied()
                .filter(|&row| medians[row].is_finite())
                .collect();
            order.sort_by(|&a, &b| medians[a].total_cmp(&medians[b]).then(a.cmp(&b)));
            order
        })
        .collect();
    let sorted = |order: &[usize]| -> Vec<f64> { order.iter().map(|&row| medians[row]).collect() };
    let ends: Vec<Vec<usize>> = orders
        .iter()
        .map(|order| levels_end_at(&sorted(order), error, settings))
        .collect();
    if settings.uses(Ablation::Levels) && ends.iter().any(|ends| !ends.is_empty()) {
        let mut about = vec![f64::NAN; medians.len()];
        for order in &orders {
            let fast = lower(order.iter().map(|&row| medians[row]), BETTER_STEPS);
            order.iter().for_each(|&row| about[row] = medians[row] - fast);
        }
        let proposals = propose(&about);
        for (order, ends) in orders.iter_mut().zip(&ends) {
            let proposed = |end: &&usize| {
                let ends_here = |fast: &Vec<bool>| order.iter().take_while(|&&row| fast[row]).count() == **end;
                proposals.iter().any(ends_here)
            };
            if let Some(&end) = ends.iter().find(proposed) {
                order.truncate(end);
            }
        }
    }
    orders.iter_mut().for_each(|order| order.sort_unstable());
    orders
}

struct Judge<'a> {
    rows: &'a Rows<'a>,
    contrasts: &'a Contrasts<'a>,
    lowest: &'a [f64],
    penalty: f64,
    settings: &'a PeerSettings,
}

impl Judge<'_> {
    fn row(&self, row: usize, limit: f64) -> Judged {
        let raw = self.rows.factors.row(row);
        let mut judged = Judged {
            whole: Excess::NONE,
            fault: None,
            passing: Vec::new(),
            changed: 0.0,
        };
        let alone = self.contrasts.peers(row) == 0;
        if !alone {
            judged.whole = self.contrasts.whole(row, mean(raw.iter().copied()));
        }
        let Some(cells) = filled(raw).filter(|cells| self.may_be_slow(row, cells, alone)) else {
            return judged;
        };
        if !alone {
            judged.whole = self.contrasts.whole(row, mean(without_spikes(raw, limit)));
        }
        let stretches = if self.settings.uses(Ablation::Stretches) {
            stretches(&cells, self.penalty)
        } else {
            std::iter::once(0..cells.len()).collect()
        };
        let best = best_steps(&cells, &stretches, self.settings);
        let enough = best.iter().map(Range::len).sum::<usize>() >= self.settings.least_slow_columns();
        let (mut by_level, mut found) = (false, Vec::new());
        for stretch in &stretches {
            let steps = std::slice::from_ref(stretch);
            let to_peers = self.contrasts.to_peers(row, steps);
            let mut excess = to_peers;
            if !to_peers.passes() && enough && !best.contains(stretch) {
                let change = self.contrasts.to_itself(row, steps, &best);
                judged.changed = judged.changed.max(change.margin());
                // Who was faster than the peers and now is not is no fault.
                let above = mean(raw[stretch.clone()].iter().copied()) - self.lowest[self.rows.stage_of[row]];
                let floor = self.settings.effect_floor.max(SLOW_FROM * change.excess);
                if change.passes() && (alone || above > floor) {
                    excess = change;
                }
            }
            let count = slow_by_themselves(&cells[stretch.clone()], excess.excess);
            if excess.passes() && count as f64 >= SLOW_BY_THEMSELVES * stretch.len() as f64 {
                by_level |= to_peers.passes();
                found.push((stretch.clone(), excess.excess, count));
            }
        }
        let mut slow = self.no_chance(&found, cells.len());
        // A change is told by full spells only: in a short window a few steps apart are noise.
        if !by_level && slow.iter().filter(|&&slow| slow).count() < self.settings.least_slow_columns() {
            slow.fill(false);
        }
        let kind = match self.lasting(&slow) {
            Some(kind) => Some(kind),
            None if self.is_slow_throughout(&cells, &slow, &judged.whole) => {
                let base = mean(cells.iter().copied()) - judged.whole.excess;
                let from = SLOW_FROM * judged.whole.excess;
                slow = cells.iter().map(|cell| cell - base > from).collect();
                Some(Lasting::Throughout)
            }
            None => None,
        };
        let Some(kind) = kind else {
            judged.passing = found.into_iter().map(|(stretch, ..)| stretch).collect();
            return judged;
        };
        let (excess, to_itself) = if kind == Lasting::Throughout {
            (judged.whole, false)
        } else {
            self.over(row, &slow, &best)
        };
        judged.fault = Some(Fault {
            lasting: kind,
            slow,
            excess,
            to_itself,
        });
        judged
    }

    /// The steps of slow stretches that are more than chance: spells of full length by themselves, short ones all together.
    fn no_chance(&self, found: &[(Range<usize>, f64, usize)], steps: usize) -> Vec<bool> {
        let mut slow = vec![false; steps];
        found.iter().for_each(|(stretch, ..)| slow[stretch.clone()].fill(true));
        // Neighbouring stretches are one spell.
        let spells: Vec<(Range<usize>, f64, usize)> = runs(&slow)
            .into_iter()
            .map(|run| {
                let inside = || found.iter().filter(|(stretch, ..)| run.contains(&stretch.start));
                let least = inside().map(|&(_, excess, _)| excess).fold(f64::INFINITY, f64::min);
                let count = inside().map(|&(_, _, count)| count).sum();
                (run, least, count)
            })
            .collect();
        let is_long = |spell: &Range<usize>| spell.len() >= self.settings.least_slow_columns();
        let short = || spells.iter().filter(|(spell, ..)| !is_long(spell));
        let count: usize = short().map(|&(_, _, count)| count).sum();
        let usual = SLOW_FROM * median(short().map(|&(_, excess, _)| excess));
        let short_ones = count > 0 && self.contrasts.is_no_chance(count, steps, usual);
        for (spell, excess, count) in &spells {
            let counts = if is_long(spell) {
                self.contrasts.is_no_chance(*count, spell.len(), SLOW_FROM * excess)
            } else {
                short_ones
            };
            if !counts {
                slow[spell.clone()].fill(false);
            }
        }
        slow
    }

    fn lasting(&self, slow: &[bool]) -> Option<Lasting> {
        if self.settings.uses(Ablation::Persistence) {
            lasting(slow, self.rows.slow_windows, &self.settings.persistence)
        } else {
            slow.contains(&true).then_some(Lasting::Long)
        }
    }

    /// The excess over all slow steps together, for people.
    fn over(&self, row: usize, slow: &[bool], best: &[Range<usize>]) -> (Excess, bool) {
        let steps = runs(slow);
        let to_peers = self.contrasts.to_peers(row, &steps);
        if to_peers.passes() {
            return (to_peers, false);
        }
        let to_itself = self.contrasts.to_itself(row, &steps, best);
        let threshold = to_itself.threshold.min(to_itself.excess / 1.01);
        (Excess { threshold, ..to_itself }, true)
    }

    /// Whether any steps of the row lie high enough to be looked at: above its stage's lowest level, or above its own.
    fn may_be_slow(&self, row: usize, cells: &[f64], alone: bool) -> bool {
        let base = if alone {
            lower(cells.iter().copied(), BETTER_STEPS)
        } else {
            self.lowest[self.rows.stage_of[row]]
        };
        let length = self.settings.least_slow_columns().min(cells.len()).max(1);
        let mut sum: f64 = cells[..length].iter().sum();
        let mut most = sum;
        for at in length..cells.len() {
            sum += cells[at] - cells[at - length];
            most = most.max(sum);
        }
        most / length as f64 - base > HINT * self.settings.effect_floor
    }

    /// Whether the whole window passes, not for a few stretches alone, and in enough of its steps.
    fn is_slow_throughout(&self, cells: &[f64], slow: &[bool], whole: &Excess) -> bool {
        if !whole.passes() {
            return false;
        }
        let base = mean(cells.iter().copied()) - whole.excess;
        let rest: Vec<f64> = cells
            .iter()
            .zip(slow)
            .filter(|&(_, &slow)| !slow)
            .map(|(cell, _)| cell - base)
            .collect();
        let least = self.settings.persistence.lasting_share * cells.len() as f64;
        let still = (rest.len() as f64) < least || mean(rest.iter().copied()) > SLOW_FROM * whole.excess;
        let above = cells
            .iter()
            .filter(|&&cell| cell - base > SLOW_FROM * whole.excess)
            .count();
        still && above as f64 >= least
    }
}

/// How many of a stretch's steps are slow by themselves.
fn slow_by_themselves(cells: &[f64], excess: f64) -> usize {
    let base = mean(cells.iter().copied()) - excess;
    cells.iter().filter(|&&cell| cell - base > SLOW_FROM * excess).count()
}

/// The fastest stretches of a row, enough of them to be compared with, in order.
fn best_steps(cells: &[f64], stretches: &[Range<usize>], settings: &PeerSettings) -> Vec<Range<usize>> {
    let of = |stretch: &Range<usize>| mean(cells[stretch.clone()].iter().copied());
    let mut by_level: Vec<&Range<usize>> = stretches.iter().collect();
    by_level.sort_by(|a, b| of(a).total_cmp(&of(b)));
    let wanted = (BEST_SHARE * cells.len() as f64).max(settings.least_slow_columns() as f64);
    let mut best = Vec::new();
    let mut count = 0;
    for stretch in by_level {
        if count as f64 >= wanted {
            break;
        }
        count += stretch.len();
        best.push(stretch.clone());
    }
    best.sort_by_key(|stretch| stretch.start);
    best
}

/// A row whose missing cells lie on a line between their neighbours; `None` with hardly any value.
fn filled(cells: &[f64]) -> Option<Cow<'_, [f64]>> {
    const LEAST: usize = 3;
    if cells.len() >= LEAST && cells.iter().all(|cell| cell.is_finite()) {
        return Some(Cow::Borrowed(cells));
    }
    let known: Vec<usize> = (0..cells.len()).filter(|&at| cells[at].is_finite()).collect();
    if known.len() < LEAST {
        return None;
    }
    let mut filled = cells.to_vec();
    let (first, last) = (known[0], known[known.len() - 1]);
    filled[..first].fill(cells[first]);
    filled[last..].fill(cells[last]);
    for pair in known.windows(2) {
        let (from, to) = (pair[0], pair[1]);
        for (at, cell) in filled[from..to].iter_mut().enumerate().skip(1) {
            let share = at as f64 / (to - from) as f64;
            *cell = cells[from] + share * (cells[to] - cells[from]);
        }
    }
    Some(Cow::Owned(filled))
}

/// A row with cells far from the median of those around them drawn to it.
fn without_spikes(cells: &[f64], limit: f64) -> Vec<f64> {
    (0..cells.len())
        .map(|at| {
            if !cells[at].is_finite() {
                return f64::NAN;
            }
            let around = &cells[at.saturating_sub(AROUND)..(at + AROUND + 1).min(cells.len())];
            let middle = middle(around);
            cells[at].clamp(middle - limit, middle + limit)
        })
        .collect()
}

/// The lower median of a few cells of which one at least is finite; without a vector, for it is asked for every cell.
fn middle(around: &[f64]) -> f64 {
    let mut sorted = [0.0; 2 * AROUND + 1];
    let mut count = 0;
    for &cell in around.iter().filter(|cell| cell.is_finite()) {
        let mut at = count;
        while at > 0 && sorted[at - 1] > cell {
            sorted[at] = sorted[at - 1];
            at -= 1;
        }
        sorted[at] = cell;
        count += 1;
    }
    sorted[count.saturating_sub(1) / 2]
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
