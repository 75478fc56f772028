//! Nodes as rows: what several ranks of a node show together, each just below what a rank must show, adds up.
//!
//! A node's row is the lower median of its ranks in each step, so at least half of them must be slow for it to be. The
//! ranks of a slow node that show half of what it shows are slow with it.

use std::ops::Range;

use super::own_factor::OwnFactors;
use super::rows::{RowPlaces, grouped};
use super::rows_by_step::RowsByStep;
use super::settings::{Ablation, PeerSettings};
use super::slowness::{Fault, Rows, judge};
use crate::contract::constant::constants;
use crate::stats::{low_median, mean, median};
use crate::verdict::{Lasting, lasting, runs};

constants! {
    /// Fewest rows that make a node more than a rank.
    LEAST_ROWS: usize = 2;
    /// Share of the node's excess that a rank of it must show.
    SHARE: f64 = 0.5;
    /// Other nodes that tell what a node's middle usually shows, evenly spread over all.
    OTHERS: usize = 64;
}

/// A node's fault without its short spells, if that lasts: single slow steps of several ranks meet by chance.
fn of_full_spells(mut fault: Fault, slow_windows: &[Range<usize>], settings: &PeerSettings) -> Option<Fault> {
    if fault.lasting != Lasting::Throughout {
        for run in runs(&fault.slow)
            .into_iter()
            .filter(|run| run.len() < settings.least_slow_columns())
        {
            fault.slow[run].fill(false);
        }
        fault.lasting = lasting(&fault.slow, slow_windows, &settings.persistence)?;
    }
    Some(fault)
}

/// Faults of rows that only their node tells.
pub(super) fn told_by_their_node(
    own: &OwnFactors,
    places: &RowPlaces,
    slow_windows: &[Range<usize>],
    settings: &PeerSettings,
) -> Vec<(usize, Fault)> {
    if !settings.uses(Ablation::Nodes) {
        return Vec::new();
    }
    let on_node: Vec<Vec<usize>> = grouped(places.nodes.iter().map(|&node| (node, 0)))
        .into_iter()
        .filter(|rows| rows.len() >= LEAST_ROWS.get())
        .collect();
    if on_node.len() < LEAST_ROWS.get() {
        return Vec::new();
    }
    let levels = &own.verdicts.levels;
    let about = |row: usize, step: usize| own.factors.row(row)[step] - levels[places.stage_of[row]];
    let nodes = RowsByStep::fill(on_node.len(), own.factors.columns(), |node, cells| {
        for (step, cell) in cells.iter_mut().enumerate() {
            *cell = low_median(on_node[node].iter().map(|&row| about(row, step)));
        }
    });
    let rows = Rows {
        factors: &nodes,
        residual: None,
        logs: &nodes,
        stages: &[(0..on_node.len()).collect()],
        stage_of: &vec![0; on_node.len()],
        slow_windows,
    };
    let everybody_is_one_level = |_: &[f64]| Vec::new();
    let verdicts = judge(&rows, &everybody_is_one_level, settings).rows;
    let mut told = Vec::new();
    for (node, verdict) in verdicts.into_iter().enumerate() {
        let Some(fault) = verdict
            .fault
            .and_then(|fault| of_full_spells(fault, slow_windows, settings))
        else {
            continue;
        };
        // Of what is slow throughout, the steps that show it most are chosen for being slow.
        let steps = if fault.lasting == Lasting::Throughout {
            std::iter::once(0..own.factors.columns()).collect()
        } else {
            runs(&fault.slow)
        };
        let over = |of_step: &dyn Fn(usize) -> f64| mean(steps.iter().cloned().flatten().map(of_step));
        let shown = over(&|step| nodes.row(node)[step]);
        let others = (0..on_node.len()).filter(|&other| other != node);
        let usual = median(others.map(|other| over(&|step| nodes.row(other)[step])));
        let wanted = SHARE.get() * (shown - usual);
        let own_excess = on_node[node]
            .iter()
            .filter_map(|&row| own.verdicts.rows[row].fault.as_ref());
        let accused = own_excess.clone().count();
        let largest = own_excess.map(|fault| fault.excess.excess).fold(0.0, f64::max);
        let without_fault = |row: &&usize| own.verdicts.rows[**row].fault.is_none();
        // Where some are slow by themselves, the lower median is one of the rest, and one of fewer lies higher by chance: the middle of
        // the rest must stand out as well.
        let middle = |node: usize, step: usize| median(on_node[node].iter().map(|&row| about(row, step)));
        let rest = |step: usize| median(on_node[node].iter().filter(without_fault).map(|&row| about(row, step)));
        let every = on_node.len().div_ceil(OTHERS.get()).max(1);
        let usual_middle = || {
            let others = (0..on_node.len()).step_by(every).filter(|&other| other != node);
            median(others.map(|other| over(&|step| middle(other, step))))
        };
        if accused > 0 && over(&rest) - usual_middle() <= fault.excess.threshold {
            continue;
        }
        for &row in on_node[node].iter().filter(without_fault) {
            let excess = over(&|step| about(row, step)) - usual;
            // Beside one far slower rank of the node the others may but wait for it.
            if excess > wanted.max(SHARE.get() * largest) {
                let mut fault = fault.clone();
                fault.excess.excess = excess;
                fault.excess.threshold = fault.excess.threshold.min(excess);
                told.push((row, fault));
            }
        }
    }
    told
}
