//! A pipeline that is slow in every stage: one replica gets more data in every step, unless its units fill slow nodes.
//! Its GPUs are not at fault.

use super::rows::grouped;
use super::suspects::{Evidence, Suspect};
use super::units::Units;
use crate::stats::median;

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
    let on_node = NodeRanks::new(nodes);
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
            && !fill_slow_nodes(rows, &suspect_of, units, &on_node)
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

/// Whether the units fill slow nodes: every unit on their nodes is a suspect, other nodes have none of that, and one
/// node holds more than one of the pipeline's units or another pipeline's too. A unit that is a node by itself tells
/// nothing: its pipeline may as well have more data.
fn fill_slow_nodes(rows: &[usize], suspect_of: &[Option<&Suspect>], units: &Units, on_node: &NodeRanks) -> bool {
    let mut nodes: Vec<usize> = rows
        .iter()
        .flat_map(|&unit| &units.members[unit])
        .map(|&rank| on_node.of_rank[rank])
        .collect();
    nodes.sort_unstable();
    nodes.dedup();
    let unit_of = |rank: &usize| units.unit_of[*rank];
    let is_slow = |node: &usize| {
        let mut ranks = on_node.ranks[*node].iter();
        ranks.all(|rank| suspect_of[unit_of(rank)].is_some())
    };
    let holds_several = |node: &usize| {
        let ranks = &on_node.ranks[*node];
        ranks.iter().any(|rank| unit_of(rank) != unit_of(&ranks[0]))
    };
    nodes.len() < on_node.ranks.len() && nodes.iter().all(is_slow) && nodes.iter().any(holds_several)
}

/// The ranks of each node, by place.
struct NodeRanks {
    ranks: Vec<Vec<usize>>,
    of_rank: Vec<usize>,
}

impl NodeRanks {
    fn new(nodes: &[u32]) -> Self {
        let ranks = grouped(nodes.iter().map(|&node| (node, 0)));
        let mut of_rank = vec![0; nodes.len()];
        for (node, ranks) in ranks.iter().enumerate() {
            ranks.iter().for_each(|&rank| of_rank[rank] = node);
        }
        Self { ranks, of_rank }
    }
}

#[cfg(test)]
mod tests {
    use super::super::samples::{job, verdict};
    use crate::verdict::{Cause, FindingKind};

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

    #[test]
    fn two_slow_nodes_of_the_same_pipelines_are_no_data() {
        // Two stages of 32 ranks, 8 a node: nodes 2 and 6 hold the same eight pipelines.
        let slow = |rank: u32, _| if rank % 32 / 8 == 2 { 1.2 } else { 1.0 };
        let mut job = job(2, 32, 30, slow);
        job.nodes = (0..64).map(|rank| format!("gpu-{}", rank / 8)).collect();
        let named = verdict(&job);
        let expected: Vec<usize> = (16..24).chain(48..56).collect();
        assert_eq!((named.anomalies, named.cause), (expected, Cause::Compute));
        // All of it on nodes of their own: the replicas may as well have more data.
        job.nodes = (0..64).map(|rank| format!("gpu-{rank}")).collect();
        assert_eq!(verdict(&job).cause, Cause::DataImbalance);
    }
}
