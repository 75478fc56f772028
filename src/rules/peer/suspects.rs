//! Who passes the floors, in every timer, lastingly; and which ranks of a unit it is.
//!
//! A unit whose work is in excess is a suspect; of its ranks those are chosen whose own matrix work (qkv) shows it.
//! A unit that hides a faint rank among noisy peers is found by that rank's qkv, if the unit leans the same way.

use std::collections::BTreeMap;

use super::own::OwnFactors;
use super::rows::RowPlaces;
use super::segments::{Score, centred, score};
use super::settings::{Ablation, PeerSettings};
use super::table::Table;
use super::units::{RankTimes, Units};
use crate::stats::{low_median, mean, trimmed};
use crate::verdict::SlowSteps;

/// How a unit without peers must stand out by qkv alone, in thresholds.
const ALONE_BY_QKV: f64 = 1.5;
/// Share of the unit's excess that a member's own must be.
const MEMBER_SHARE: f64 = 0.5;
/// Share of its own threshold that such a member must reach too.
const MEMBER_FLOOR: f64 = 0.75;

/// Own factors and scores of every row.
#[derive(Debug)]
pub(super) struct Judged {
    pub own: OwnFactors,
    pub scores: Vec<Score>,
}

impl Judged {
    /// Judges rows by `seconds`.
    pub fn new(seconds: &Table, places: &RowPlaces, settings: &PeerSettings) -> Self {
        let own = OwnFactors::of(seconds, places, settings);
        let scores = score(&own, settings);
        Self { own, scores }
    }

    fn any_passes(&self) -> bool {
        self.scores.iter().any(Score::passes)
    }
}

/// The units by their work, and the ranks by qkv where units have several.
#[derive(Debug)]
pub(super) struct Evidence {
    pub units: Judged,
    pub ranks: Option<Judged>,
    /// Excess of each unit in forward, backward and qkv over the segment of its score; NaN where it can't be told.
    /// `None` when nobody passes a threshold. Only single ranks have qkv here.
    pub timers: Option<Vec<[f64; 3]>>,
    /// Own factors of the units in forward and in backward, where they were timed and `timers` is told.
    passes: Vec<OwnFactors>,
}

/// A unit that is slow beyond the floors, lastingly.
#[derive(Debug, Clone)]
pub(super) struct Suspect {
    pub unit: usize,
    /// Ranks (positions), ascending.
    pub ranks: Vec<usize>,
    /// Whether only one of them may be slow.
    pub one_of: bool,
    /// The score that decided: the unit's, or that of its rank with the most qkv.
    pub score: Score,
    pub steps: SlowSteps,
}

impl Evidence {
    /// Judges units and ranks.
    pub fn gather(units: &Units, times: &RankTimes, rank_places: &RowPlaces, settings: &PeerSettings) -> Self {
        let by_work = Judged::new(&units.work, &units.places, settings);
        let ranks = match &times.qkv {
            Some(qkv) if !units.are_single_ranks() => Some(Judged::new(qkv, rank_places, settings)),
            _ => None,
        };
        let any = by_work.any_passes() || ranks.as_ref().is_some_and(Judged::any_passes);
        let passes = if any {
            by_pass(units, &by_work.own, settings)
        } else {
            [None, None]
        };
        Self {
            timers: any.then(|| by_timer(units, &by_work, &passes, settings)),
            passes: passes.into_iter().flatten().collect(),
            units: by_work,
            ranks,
        }
    }

    fn timers_agree(&self, unit: usize, settings: &PeerSettings) -> bool {
        let least = settings.agreement * self.units.scores[unit].excess;
        let timers = self.timers.as_ref().map(|timers| timers[unit]);
        !timers.is_some_and(|timers| timers.iter().any(|&excess| excess < least))
    }

    /// Which ranks of a suspect unit are slow; true when any of them may be.
    fn choose(&self, members: &[usize], score: &Score, settings: &PeerSettings) -> (Vec<usize>, bool) {
        let all = || members.to_vec();
        if members.len() == 1 {
            return (all(), false);
        }
        let Some(ranks) = &self.ranks else {
            return (all(), true);
        };
        let own: Vec<f64> = members
            .iter()
            .map(|&rank| trimmed(&ranks.own.factors.row(rank)[score.from..score.to], settings.trim))
            .collect();
        let those = |wanted: &dyn Fn(usize) -> bool| -> Vec<usize> {
            (0..members.len())
                .filter(|&at| wanted(at))
                .map(|at| members[at])
                .collect()
        };
        let share = MEMBER_SHARE * score.excess;
        let threshold = |at: usize| ranks.scores[members[at]].threshold;
        let clear = those(&|at| own[at] > threshold(at) || own[at] > share.max(MEMBER_FLOOR * threshold(at)));
        if !clear.is_empty() {
            return (clear, false);
        }
        let likely = those(&|at| own[at] > share);
        if !likely.is_empty() {
            return (likely, false);
        }
        // Who can't be told is more likely than who is known to be fast.
        let unknown = those(&|at| !own[at].is_finite());
        (if unknown.is_empty() { all() } else { unknown }, true)
    }

    /// A suspect by the qkv of its members, where the unit's own time does not pass.
    ///
    /// The unit must lean the same way in its work, and in forward as in backward: a few slow calls of one timer are no
    /// slow chip. `in_segment` keeps the units' excesses by segment: most ranks share the whole window.
    fn hidden(
        &self,
        unit: usize,
        members: &[usize],
        in_segment: &mut BTreeMap<(usize, usize), Vec<Vec<f64>>>,
        settings: &PeerSettings,
    ) -> Option<Suspect> {
        let ranks = self.ranks.as_ref().filter(|_| members.len() > 1)?;
        let mut leans = |rank: usize| {
            let score = &ranks.scores[rank];
            if self.units.own.is_alone(unit) {
                return score.margin() > ALONE_BY_QKV;
            }
            let segment = (score.from, score.to);
            let excess = in_segment.entry(segment).or_insert_with(|| {
                let timed = std::iter::once(&self.units.own).chain(&self.passes);
                timed.map(|own| centred(own, settings.trim, |_| segment)).collect()
            });
            let least = settings.agreement * score.excess;
            excess[0][unit] > least && !excess.iter().any(|excess| excess[unit] < least)
        };
        let hit: Vec<usize> = members
            .iter()
            .copied()
            .filter(|&rank| ranks.scores[rank].passes() && leans(rank))
            .collect();
        let worst = hit
            .iter()
            .copied()
            .max_by(|&a, &b| ranks.scores[a].excess.total_cmp(&ranks.scores[b].excess))?;
        let score = ranks.scores[worst];
        let steps = SlowSteps::of(
            ranks.own.factors.row(worst),
            score.base,
            score.excess,
            &settings.persistence,
        );
        Some(Suspect {
            unit,
            ranks: hit,
            one_of: false,
            score,
            steps,
        })
    }

    /// The lasting suspects, by unit.
    pub fn suspects(&self, units: &Units, nodes: &[u32], settings: &PeerSettings) -> Vec<Suspect> {
        let mut in_segment = BTreeMap::new();
        let suspect = |unit: usize| {
            let members = &units.members[unit];
            let score = self.units.scores[unit];
            if !(score.passes() && self.timers_agree(unit, settings)) {
                return self.hidden(unit, members, &mut in_segment, settings);
            }
            let factors = self.units.own.factors.row(unit);
            let (ranks, one_of) = self.choose(members, &score, settings);
            Some(Suspect {
                unit,
                ranks,
                one_of,
                score,
                steps: SlowSteps::of(factors, score.base, score.excess, &settings.persistence),
            })
        };
        if self.timers.is_none() {
            return Vec::new();
        }
        let mut suspects: Vec<Suspect> = (0..units.len())
            .filter_map(suspect)
            .filter(|suspect| suspect.steps.lasting || !settings.uses(Ablation::Persistence))
            .collect();
        if let Some(ranks) = &self.ranks {
            complete_nodes(&mut suspects, units, nodes, ranks);
        }
        for suspect in &mut suspects {
            suspect.ranks.sort_unstable();
        }
        suspects
    }
}

/// On a node whose every unit is a suspect and whose every rank with a qkv value is chosen, the others are slow too.
fn complete_nodes(suspects: &mut [Suspect], units: &Units, nodes: &[u32], by_qkv: &Judged) {
    let mut chosen = vec![false; nodes.len()];
    let mut is_suspect = vec![false; units.len()];
    for suspect in suspects.iter() {
        is_suspect[suspect.unit] = true;
        suspect.ranks.iter().for_each(|&rank| chosen[rank] = true);
    }
    let has_own = by_qkv
        .own
        .factors
        .map(|_, cells| cells.iter().any(|cell| cell.is_finite()));
    for on_node in super::rows::grouped(nodes.iter().map(|&node| (node, 0))) {
        let several_units = on_node
            .iter()
            .any(|&rank| units.unit_of[rank] != units.unit_of[on_node[0]]);
        let all_suspects = on_node.iter().all(|&rank| is_suspect[units.unit_of[rank]]);
        let mut known = on_node.iter().filter(|&&rank| has_own[rank]).peekable();
        if several_units && all_suspects && known.peek().is_some() && known.all(|&rank| chosen[rank]) {
            on_node.iter().for_each(|&rank| chosen[rank] = true);
        }
    }
    for suspect in suspects {
        let ranks: Vec<usize> = units.members[suspect.unit]
            .iter()
            .copied()
            .filter(|&rank| chosen[rank])
            .collect();
        suspect.one_of &= ranks.len() == suspect.ranks.len();
        suspect.ranks = ranks;
    }
}

/// The units' own factors in forward and in backward, with the majority that their work tells: a single timer is noisier.
fn by_pass(units: &Units, by_work: &OwnFactors, settings: &PeerSettings) -> [Option<OwnFactors>; 2] {
    [units.forward.as_ref(), units.backward.as_ref()].map(|table| by_one_timer(table, units, by_work, settings))
}

fn by_one_timer(
    table: Option<&Table>,
    units: &Units,
    by_work: &OwnFactors,
    settings: &PeerSettings,
) -> Option<OwnFactors> {
    let table = table.filter(|table| table.has_values())?;
    Some(OwnFactors::with_majority(
        table,
        &units.places,
        &by_work.majority,
        settings,
    ))
}

/// Each unit's excess in forward, backward and (single ranks) qkv over the segment of its score.
fn by_timer(
    units: &Units,
    judged: &Judged,
    passes: &[Option<OwnFactors>; 2],
    settings: &PeerSettings,
) -> Vec<[f64; 3]> {
    let qkv = units.qkv.as_ref().filter(|_| units.are_single_ranks());
    let qkv = by_one_timer(qkv, units, &judged.own, settings);
    let mut excess = vec![[f64::NAN; 3]; units.len()];
    for (column, own) in passes.iter().chain([&qkv]).enumerate() {
        let Some(own) = own else {
            continue;
        };
        let inside = own.factors.map(|unit, cells| {
            let score = &judged.scores[unit];
            trimmed(&cells[score.from..score.to], settings.trim)
        });
        let normal = (0..units.len()).filter(|&unit| own.is_normal(unit) && !judged.own.is_alone(unit));
        let usual = low_median(normal.map(|unit| inside[unit]));
        for (unit, excess) in excess.iter_mut().enumerate() {
            let score = &judged.scores[unit];
            let cells = own.factors.row(unit);
            excess[column] = if judged.own.is_alone(unit) {
                let rest = if score.from > 0 {
                    &cells[..score.from]
                } else {
                    &cells[score.to..]
                };
                inside[unit] - mean(rest.iter().copied())
            } else if own.is_alone(unit) {
                f64::NAN
            } else {
                inside[unit] - usual
            };
        }
    }
    excess
}
