//! Which units are slow, and which ranks of a unit it is.
//!
//! A unit whose work makes a fault is a candidate; of its ranks those are chosen whose own matrix work (qkv) shows it. A unit
//! that hides a faint rank among others that wait is found by that rank's qkv, if the unit leans the same way.

use std::ops::Range;

use super::common::FASTER_ROWS;
use super::nodes::told_by_their_node;
use super::own_factor::OwnFactors;
use super::rows::{RowPlaces, grouped};
use super::settings::PeerSettings;
use super::slowness::{Fault, Propose};
use super::tensor_groups::{RankTimes, TensorGroups};
use crate::contract::constant::constants;
use crate::stats::{lower, mean};

constants! {
    /// How far a unit without peers must stand out by qkv alone, in thresholds.
    ALONE_BY_QKV: f64 = 1.5;
    /// Share of a rank's own excess that its unit must show too: a few slow calls of one timer are no slow chip.
    UNIT_LEANS: f64 = 0.35;
    /// Share of the unit's excess that a member's own must be.
    pub(super) MEMBER_SHARE: f64 = 0.5;
    /// Share of its own threshold that such a member must reach too.
    MEMBER_FLOOR: f64 = 0.75;
}

/// The units by their work, and the ranks by qkv where units have several.
pub(super) struct Evidence {
    pub units: OwnFactors,
    pub ranks: Option<OwnFactors>,
}

/// A unit that is slow, lastingly.
#[derive(Debug, Clone)]
pub(super) struct Candidate {
    pub unit: usize,
    /// Ranks (positions), ascending.
    pub ranks: Vec<usize>,
    /// Whether only one of them may be slow.
    pub one_of: bool,
    /// The unit's fault, or that of its rank with the most qkv.
    pub fault: Fault,
}

impl Evidence {
    /// Judges units and, where they hold several ranks or wait for each other's experts, ranks.
    pub fn gather(
        units: &TensorGroups,
        times: &RankTimes,
        rank_places: &RowPlaces,
        slow_windows: &[Range<usize>],
        propose: &Propose<'_>,
        settings: &PeerSettings,
        experts: bool,
    ) -> Self {
        let mut by_work = OwnFactors::of(&units.work, &units.places, slow_windows, propose, settings);
        for (unit, fault) in told_by_their_node(&by_work, &units.places, slow_windows, settings) {
            by_work.verdicts.rows[unit].fault = Some(fault);
        }
        let ranks = match &times.qkv {
            Some(qkv) if !units.are_single_ranks() || experts => {
                Some(OwnFactors::of(qkv, rank_places, slow_windows, propose, settings))
            }
            _ => None,
        };
        Self { units: by_work, ranks }
    }

    /// The candidates, by unit.
    pub fn candidates(&self, units: &TensorGroups, nodes: &[u32]) -> Vec<Candidate> {
        let candidate = |unit: usize| match &self.units.verdicts.rows[unit].fault {
            Some(fault) => {
                let (ranks, one_of) = self.choose(&units.members[unit], units, fault);
                Some(Candidate {
                    unit,
                    ranks,
                    one_of,
                    fault: fault.clone(),
                })
            }
            None => self.hidden(unit, units),
        };
        let mut candidates: Vec<Candidate> = (0..units.len()).filter_map(candidate).collect();
        if let Some(ranks) = &self.ranks {
            complete_nodes(&mut candidates, units, nodes, ranks);
        }
        for candidate in &mut candidates {
            candidate.ranks.sort_unstable();
        }
        candidates
    }

    /// Which ranks of a candidate unit are slow; true when any of them may be.
    fn choose(&self, members: &[usize], units: &TensorGroups, fault: &Fault) -> (Vec<usize>, bool) {
        let all = || members.to_vec();
        if members.len() == 1 {
            return (all(), false);
        }
        let Some(ranks) = &self.ranks else {
            return (all(), true);
        };
        let stage = &units.places.stages[units.places.stage_of[units.unit_of[members[0]]]];
        let peers = stage.iter().flat_map(|&unit| units.members[unit].iter().copied());
        let usual = lower(peers.map(|rank| in_slow_steps(ranks, rank, fault)), FASTER_ROWS.get());
        let own: Vec<f64> = members
            .iter()
            .map(|&rank| in_slow_steps(ranks, rank, fault) - usual)
            .collect();
        let those = |wanted: &dyn Fn(usize) -> bool| -> Vec<usize> {
            (0..members.len())
                .filter(|&at| wanted(at))
                .map(|at| members[at])
                .collect()
        };
        let share = MEMBER_SHARE.get() * fault.excess.excess;
        let threshold = |at: usize| ranks.verdicts.rows[members[at]].whole.threshold;
        let clear = those(&|at| own[at] > threshold(at) || own[at] > share.max(MEMBER_FLOOR.get() * threshold(at)));
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

    /// A candidate by the qkv of its members, where the unit's own time does not tell.
    fn hidden(&self, unit: usize, units: &TensorGroups) -> Option<Candidate> {
        let members = &units.members[unit];
        let ranks = self.ranks.as_ref().filter(|_| members.len() > 1)?;
        let stage = &units.places.stages[units.places.stage_of[unit]];
        let leans = |fault: &Fault| {
            if stage.len() < 2 {
                return fault.excess.margin() > ALONE_BY_QKV.get();
            }
            let usual = lower(
                stage.iter().map(|&unit| in_slow_steps(&self.units, unit, fault)),
                FASTER_ROWS.get(),
            );
            in_slow_steps(&self.units, unit, fault) - usual > UNIT_LEANS.get() * fault.excess.excess
        };
        let hit: Vec<(usize, &Fault)> = members
            .iter()
            .filter_map(|&rank| Some((rank, ranks.verdicts.rows[rank].fault.as_ref()?)))
            .filter(|(_, fault)| leans(fault))
            .collect();
        let (_, worst) = hit
            .iter()
            .max_by(|a, b| a.1.excess.excess.total_cmp(&b.1.excess.excess))?;
        Some(Candidate {
            unit,
            ranks: hit.iter().map(|&(rank, _)| rank).collect(),
            one_of: false,
            fault: (*worst).clone(),
        })
    }
}

/// The mean of a row's own factors where a fault is slow.
pub(super) fn in_slow_steps(own: &OwnFactors, row: usize, fault: &Fault) -> f64 {
    let cells = own.factors.row(row).iter().zip(&fault.slow);
    mean(cells.filter(|&(_, &slow)| slow).map(|(&cell, _)| cell))
}

/// On a node whose every unit is a candidate and whose every rank with a qkv value is chosen, the others are slow too.
fn complete_nodes(candidates: &mut [Candidate], units: &TensorGroups, nodes: &[u32], by_qkv: &OwnFactors) {
    let mut chosen = vec![false; nodes.len()];
    let mut is_candidate = vec![false; units.len()];
    for candidate in candidates.iter() {
        is_candidate[candidate.unit] = true;
        candidate.ranks.iter().for_each(|&rank| chosen[rank] = true);
    }
    let has_own = by_qkv.factors.map(|_, cells| cells.iter().any(|cell| cell.is_finite()));
    for on_node in grouped(nodes.iter().map(|&node| (node, 0))) {
        let several_units = on_node
            .iter()
            .any(|&rank| units.unit_of[rank] != units.unit_of[on_node[0]]);
        let all_suspects = on_node.iter().all(|&rank| is_candidate[units.unit_of[rank]]);
        let mut known = on_node.iter().filter(|&&rank| has_own[rank]).peekable();
        if several_units && all_suspects && known.peek().is_some() && known.all(|&rank| chosen[rank]) {
            on_node.iter().for_each(|&rank| chosen[rank] = true);
        }
    }
    for candidate in candidates {
        let members = units.members[candidate.unit].iter();
        let ranks: Vec<usize> = members.copied().filter(|&rank| chosen[rank]).collect();
        candidate.one_of &= ranks.len() == candidate.ranks.len();
        candidate.ranks = ranks;
    }
}
