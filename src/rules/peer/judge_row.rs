//! One row judged: its stretches against its peers and against its own best steps, what of it is no chance, and whether
//! that lasts.

use std::ops::Range;

use super::contrast::{Contrasts, Excess};
use super::settings::{Ablation, PeerSettings};
use super::slowness::{Fault, Judged, Rows};
use super::smoothing::{filled, without_spikes};
use super::stretches::stretches;
use crate::contract::constant::constants;
use crate::stats::{mean, median};
use crate::verdict::{Lasting, lasting, runs};

constants! {
    /// Margin that steps get which pass only stretch by stretch, not all together.
    JUST_PASSED: f64 = 1.01;
    /// Share of the effect floor that some five steps of a row must exceed for it to be looked at.
    HINT: f64 = 0.8;
    /// Share of the window that a row's best steps make, to compare others with.
    BEST_SHARE: f64 = 0.125;
    /// Share of a stretch's steps that must be slow by themselves: one long step among four others is no slow stretch.
    SLOW_BY_THEMSELVES: f64 = 0.6;
    /// Share of the excess from which a step is slow.
    pub(super) SLOW_FROM: f64 = 0.5;
}

/// What rows are judged with.
pub(super) struct Judge<'a> {
    pub rows: &'a Rows<'a>,
    pub contrasts: &'a Contrasts<'a>,
    /// The lowest level in time of each stage (log): what is no slower than that is not slow.
    pub lowest: &'a [f64],
    /// What a change of level must save.
    pub penalty: f64,
    pub settings: &'a PeerSettings,
}

impl Judge<'_> {
    /// Judges a row; spikes beyond `spike` are clipped.
    pub fn row(&self, row: usize, spike: f64) -> Judged {
        let raw = self.rows.factors.row(row);
        let mut judged = Judged {
            whole: Excess::NONE,
            fault: None,
            passing: Vec::new(),
            passed: Vec::new(),
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
            judged.whole = self.contrasts.whole(row, mean(without_spikes(raw, spike)));
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
                let floor = self.settings.effect_floor.max(SLOW_FROM.get() * change.excess);
                if change.passes() && (alone || above > floor) {
                    excess = change;
                }
            }
            let count = slow_by_themselves(&cells[stretch.clone()], excess.excess);
            if excess.passes() && count as f64 >= SLOW_BY_THEMSELVES.get() * stretch.len() as f64 {
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
                let from = SLOW_FROM.get() * judged.whole.excess;
                slow = cells.iter().map(|cell| cell - base > from).collect();
                Some(Lasting::Throughout)
            }
            None => None,
        };
        let Some(kind) = kind else {
            let least = self.settings.least_slow_columns();
            judged.passed = runs(&slow).into_iter().filter(|run| run.len() >= least).collect();
            judged.passing = found.into_iter().map(|(stretch, ..)| stretch).collect();
            return judged;
        };
        let (excess, to_itself) = if kind == Lasting::Throughout {
            (judged.whole, false)
        } else {
            self.over(row, &slow, &best)
        };
        // What lies between the rows that there are lasts, but nobody saw it.
        slow.iter_mut()
            .zip(raw)
            .for_each(|(slow, cell)| *slow &= cell.is_finite());
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
        let usual = SLOW_FROM.get() * median(short().map(|&(_, excess, _)| excess));
        let short_ones = count > 0 && self.contrasts.is_no_chance(count, steps, usual);
        for (spell, excess, count) in &spells {
            let counts = if is_long(spell) {
                self.contrasts
                    .is_no_chance(*count, spell.len(), SLOW_FROM.get() * excess)
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
        let threshold = to_itself.threshold.min(to_itself.excess / JUST_PASSED.get());
        (Excess { threshold, ..to_itself }, true)
    }

    /// Whether any steps of the row lie high enough to be looked at: above its stage's lowest level, or above its own.
    fn may_be_slow(&self, row: usize, cells: &[f64], alone: bool) -> bool {
        let length = self.settings.least_slow_columns().min(cells.len()).max(1);
        let mut sum: f64 = cells[..length].iter().sum();
        let (mut least, mut most) = (sum, sum);
        for at in length..cells.len() {
            sum += cells[at] - cells[at - length];
            (least, most) = (least.min(sum), most.max(sum));
        }
        let base = if alone {
            least / length as f64
        } else {
            self.lowest[self.rows.stage_of[row]]
        };
        most / length as f64 - base > HINT.get() * self.settings.effect_floor
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
        let still = (rest.len() as f64) < least || mean(rest.iter().copied()) > SLOW_FROM.get() * whole.excess;
        let above = cells
            .iter()
            .filter(|&&cell| cell - base > SLOW_FROM.get() * whole.excess)
            .count();
        still && above as f64 >= least
    }
}

/// How many of a stretch's steps are slow by themselves.
fn slow_by_themselves(cells: &[f64], excess: f64) -> usize {
    let base = mean(cells.iter().copied()) - excess;
    cells
        .iter()
        .filter(|&&cell| cell - base > SLOW_FROM.get() * excess)
        .count()
}

/// The fastest stretches of a row, enough of them to be compared with, in order.
fn best_steps(cells: &[f64], stretches: &[Range<usize>], settings: &PeerSettings) -> Vec<Range<usize>> {
    let of = |stretch: &Range<usize>| mean(cells[stretch.clone()].iter().copied());
    let mut by_level: Vec<&Range<usize>> = stretches.iter().collect();
    by_level.sort_by(|a, b| of(a).total_cmp(&of(b)));
    let wanted = (BEST_SHARE.get() * cells.len() as f64).max(settings.least_slow_columns() as f64);
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
