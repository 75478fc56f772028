//! The pipeline grid: a cell a stage of a replica, by how slow it is and by what that costs.

use std::collections::BTreeMap;

use serde::Serialize;

use super::rounded;
use crate::report::report::Report;
use crate::verdict::comparison::Comparison;
use crate::verdict::words;

/// Cells of the grid; a larger one is not drawn.
const CELLS: usize = 20_000;

/// Stages x replicas: stage, replica, value, who.
#[derive(Debug, Serialize)]
pub(in crate::report::page) struct Grid {
    pub stages: usize,
    pub replicas: usize,
    pub factors: Vec<(u32, u32, u32, String)>,
    pub costs: Vec<(u32, u32, f64, String)>,
}

pub(super) fn grid(report: &Report, comparison: &Comparison) -> Option<Grid> {
    let places = &report.picture.places;
    let stages = places.iter().map(|place| place.0).max()? as usize + 1;
    let replicas = places.iter().map(|place| place.1).max()? as usize + 1;
    if stages * replicas > CELLS || stages * replicas < 2 {
        return None;
    }
    // Where findings tell when a rank was slow, its factor is that of those steps; else that of the window.
    let mut factors = BTreeMap::<(u32, u32), (u32, Vec<u32>)>::new();
    let mut costs = BTreeMap::<(u32, u32), (f64, Vec<u32>)>::new();
    let place_of = |rank: u32| {
        report
            .ranks
            .binary_search(&rank)
            .ok()
            .and_then(|position| places.get(position).copied())
    };
    for rank in &comparison.ranks {
        let Some(place) = place_of(rank.rank) else { continue };
        let fault = rank.fault.as_ref().and_then(|fault| fault.gate.factor);
        let Some(factor) = fault.or(rank.window.factor) else {
            continue;
        };
        let cell = factors.entry(place).or_insert((0, Vec::new()));
        cell.0 = cell.0.max((1000.0 * factor.min(1e3)).round() as u32);
        cell.1.push(rank.rank);
    }
    for finding in report.summary.findings.iter().filter(|finding| finding.kind.is_fault()) {
        let Some(seconds) = finding.cost_part_seconds.or(finding.cost_seconds) else {
            continue;
        };
        for &rank in &finding.ranks {
            let Some(place) = place_of(rank) else { continue };
            let cell = costs.entry(place).or_insert((0.0, Vec::new()));
            cell.0 = cell.0.max(seconds);
            cell.1.push(rank);
        }
    }
    let who = |ranks: &[u32]| words::ranks(ranks);
    Some(Grid {
        stages,
        replicas,
        factors: factors
            .iter()
            .map(|(&(stage, replica), (factor, ranks))| (stage, replica, *factor, who(ranks)))
            .collect(),
        costs: costs
            .iter()
            .map(|(&(stage, replica), (cost, ranks))| (stage, replica, rounded(*cost), who(ranks)))
            .collect(),
    })
    .filter(|grid| !grid.factors.is_empty())
}
