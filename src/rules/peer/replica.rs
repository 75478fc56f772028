//! A pipeline that is slow in every stage: one replica gets more data in every step, unless its units fill slow nodes.
//! Its GPUs are not at fault.

use super::candidates::{Candidate, Evidence};
use super::detector::{Detector, Seen};
use super::rows::grouped;
use super::tensor_groups::TensorGroups;
use crate::contract::constant::constants;
use crate::stats::median;
use crate::verdict::{Cause, Finding, FindingKind, words};

constants! {
    /// Share of the largest excess of a pipeline's units that each of them must show for the data to be the reason.
    AS_SLOW: f64 = 0.5;
}

/// A replica with lastingly more work.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct HeavyReplica {
    /// Pipeline.
    pub pipeline: u32,
    /// Its tensor groups, by stage.
    pub units: Vec<usize>,
    /// Median excess of its units (log).
    pub excess: f64,
}

/// Finds the heavy replicas and takes their units from the candidates.
pub(super) fn heavy_replicas(
    candidates: &mut Vec<Candidate>,
    units: &TensorGroups,
    evidence: &Evidence,
    nodes: &[u32],
) -> Vec<HeavyReplica> {
    if units.places.stages.len() < 2 || candidates.is_empty() {
        return Vec::new();
    }
    let excess = |unit: usize| {
        let row = &evidence.units.verdicts.rows[unit];
        row.fault.as_ref().map_or(row.whole.excess, |fault| fault.excess.excess)
    };
    let has_peers = |unit: usize| units.places.stages[units.places.stage_of[unit]].len() > 1;
    let mut candidate_of: Vec<Option<&Candidate>> = vec![None; units.len()];
    for candidate in candidates.iter() {
        candidate_of[candidate.unit] = Some(candidate);
    }
    let on_node = NodeRanks::new(nodes);
    let is_heavy = |rows: &[usize]| {
        let mine: Vec<&Candidate> = rows.iter().filter_map(|&unit| candidate_of[unit]).collect();
        if rows.len() < 2 || mine.is_empty() || !rows.iter().all(|&unit| has_peers(unit)) {
            return false;
        }
        let largest = mine
            .iter()
            .map(|candidate| excess(candidate.unit))
            .fold(f64::NEG_INFINITY, f64::max);
        let members_stand_out = mine
            .iter()
            .all(|candidate| candidate.ranks.len() < units.members[candidate.unit].len());
        rows.iter().all(|&unit| excess(unit) > AS_SLOW.get() * largest)
            && !members_stand_out
            && !fill_slow_nodes(rows, &candidate_of, units, &on_node)
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
    candidates.retain(|candidate| !dropped[candidate.unit]);
    heavy
}

/// Whether the units fill slow nodes: every unit on their nodes is a candidate, other nodes have none of that, and one
/// node holds more than one of the pipeline's units or another pipeline's too. A unit that is a node by itself tells
/// nothing: its pipeline may as well have more data.
fn fill_slow_nodes(
    rows: &[usize],
    candidate_of: &[Option<&Candidate>],
    units: &TensorGroups,
    on_node: &NodeRanks,
) -> bool {
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
        ranks.all(|rank| candidate_of[unit_of(rank)].is_some())
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

/// Tells of heavy replicas.
pub(super) struct HeavyReplicas;

impl Detector for HeavyReplicas {
    fn find(&self, seen: &Seen<'_>) -> Vec<Finding> {
        let everywhere = vec![true; seen.job.iterations.len()];
        let tell = |replica: &HeavyReplica| {
            let mut finding = seen.finding(FindingKind::Imbalance, Cause::DataImbalance);
            let units = replica.units.iter();
            let ranks: Vec<usize> = units
                .flat_map(|&unit| seen.units.members[unit].iter().copied())
                .collect();
            seen.accuse(&mut finding, &ranks, &everywhere);
            let factor = replica.excess.exp();
            let mended: Vec<(usize, f64)> = replica.units.iter().map(|&unit| (unit, factor)).collect();
            finding.factor = Some(factor);
            finding.cost = Some(seen.model.mending(&mended, &everywhere));
            finding.says = format!(
                "pipeline {} ({}) takes {:.1} % longer than the others in every stage: it gets more data, lastingly",
                replica.pipeline,
                words::ranks(&finding.ranks),
                100.0 * (factor - 1.0)
            );
            finding
        };
        seen.heavy_replicas.iter().map(tell).collect()
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
