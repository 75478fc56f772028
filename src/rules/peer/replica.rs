//! A pipeline that is slow in every stage: one replica gets more data in every step, unless its units fill one slow
//! node. Its GPUs are not at fault.

use super::robust::median;
use super::suspects::{Evidence, Suspect};
use super::units::Units;

/// A replica with lastingly more work.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct HeavyReplica {
    /// Pipeline.
    pub pipeline: u32,
    /// Units of it, by stage.
    pub units: Vec<usize>,
    /// Median excess of its units (log).
    pub excess: f64,
}

/// Finds the heavy replicas and takes their units from the suspects.
pub(super) fn heavy_replicas(
    suspects: &mut Vec<Suspect>,
    units: &Units,
    evidence: &Evidence,
    nodes: &[u32],
) -> Vec<HeavyReplica> {
    if units.places.stages.len() < 2 || suspects.is_empty() {
        return Vec::new();
    }
    let excess = |unit: usize| evidence.units.scores[unit].excess;
    let mut suspect_of: Vec<Option<&Suspect>> = vec![None; units.len()];
    for suspect in suspects.iter() {
        suspect_of[suspect.unit] = Some(suspect);
    }
    let is_heavy = |rows: &[usize]| {
        let mine: Vec<&Suspect> = rows.iter().filter_map(|&unit| suspect_of[unit]).collect();
        if rows.len() < 2 || mine.is_empty() || rows.iter().any(|&unit| evidence.units.own.is_alone(unit)) {
            return false;
        }
        let largest = mine
            .iter()
            .map(|suspect| excess(suspect.unit))
            .fold(f64::NEG_INFINITY, f64::max);
        let members_stand_out = mine
            .iter()
            .all(|suspect| suspect.ranks.len() < units.members[suspect.unit].len());
        rows.iter().all(|&unit| excess(unit) > 0.5 * largest)
            && !members_stand_out
            && !fill_a_slow_node(rows, &suspect_of, units, nodes)
    };
    let heavy: Vec<HeavyReplica> = units
        .places
        .pipelines
        .iter()
        .filter(|rows| is_heavy(rows))
        .map(|rows| HeavyReplica {
            pipeline: units.pipelines[rows[0]],
            units: rows.clone(),
            excess: median(rows.iter().map(|&unit| excess(unit))),
        })
        .collect();
    let mut dropped = vec![false; units.len()];
    heavy
        .iter()
        .flat_map(|replica| &replica.units)
        .for_each(|&unit| dropped[unit] = true);
    suspects.retain(|suspect| !dropped[suspect.unit]);
    heavy
}

/// Whether the units lie on one node of several, all of whose units are suspects.
fn fill_a_slow_node(rows: &[usize], suspect_of: &[Option<&Suspect>], units: &Units, nodes: &[u32]) -> bool {
    let mut ranks = rows.iter().flat_map(|&unit| &units.members[unit]);
    let Some(&first) = ranks.next() else {
        return false;
    };
    let node = nodes[first];
    let on_node = |rank: &usize| nodes[*rank] == node;
    ranks.all(on_node)
        && !(0..nodes.len()).all(|rank| on_node(&rank))
        && (0..nodes.len())
            .filter(on_node)
            .all(|rank| suspect_of[units.unit_of[rank]].is_some())
}

#[cfg(test)]
mod tests {
    use super::super::samples::{job, verdict};
    use crate::rules::{Cause, FindingKind};

    #[test]
    fn a_replica_with_more_data_names_nobody() {
        let verdict = verdict(&job(4, 8, 30, |rank, _| if rank % 8 == 3 { 1.2 } else { 1.0 }));
        assert_eq!((verdict.anomalies, verdict.cause), (vec![], Cause::DataImbalance));
        assert_eq!(verdict.findings[0].kind, FindingKind::Imbalance);
        assert_eq!(verdict.findings[0].ranks, [3, 11, 19, 27]);
    }

    #[test]
    fn one_slow_rank_of_a_pipeline_is_no_replica() {
        let verdict = verdict(&job(4, 8, 30, |rank, _| if rank == 19 { 1.2 } else { 1.0 }));
        assert_eq!((verdict.anomalies, verdict.cause), (vec![19], Cause::Compute));
    }
}
