//! Ranks that wait for a slow one inside their passes because they hold experts of the same layers.
//!
//! Tokens travel between the ranks of an expert-parallel group in each forward and backward pass, so that all of its members
//! show nearly the slowest one's time. Only the attention's matrix work (qkv) is a rank's own: where it tells that some of
//! them are slow, the others merely waited.

use std::collections::{BTreeMap, BTreeSet};

use super::candidates::{Candidate, MEMBER_SHARE, in_slow_steps};
use super::common::FASTER_ROWS;
use super::own_factor::OwnFactors;
use crate::job::Topology;
use crate::stats::{quantile, sorted};

/// Whether ranks may wait for each other in expert-parallel groups.
pub(super) fn are_there(topology: &Topology) -> bool {
    topology.size("ep") > 1
}

/// Takes the candidates back that wait for another one of their expert-parallel group, as the members' qkv tells.
pub(super) fn acquit_those_who_wait(candidates: &mut Vec<Candidate>, topology: &Topology, by_qkv: &OwnFactors) {
    if !are_there(topology) {
        return;
    }
    let groups = groups(topology);
    let stage = |rank: usize| topology.places[rank].stage;
    let own = |candidate: &Candidate| {
        let of_rank = |rank: usize| in_slow_steps(by_qkv, rank, &candidate.fault);
        let most = candidate
            .ranks
            .iter()
            .map(|&rank| of_rank(rank))
            .fold(f64::NAN, f64::max);
        let peers =
            (0..groups.len()).filter(|&rank| candidate.ranks.first().is_some_and(|&own| stage(own) == stage(rank)));
        most - quantile(&sorted(peers.map(of_rank)), FASTER_ROWS.get())
    };
    let wanted = |candidate: &Candidate| MEMBER_SHARE.get() * candidate.fault.excess.excess;
    let group_of = |candidate: &Candidate| candidate.ranks.first().map(|&rank| groups[rank]);
    let own: Vec<f64> = candidates.iter().map(own).collect();
    let slow_themselves: BTreeSet<Option<(u32, usize)>> = candidates
        .iter()
        .zip(&own)
        .filter(|(candidate, own)| **own > wanted(candidate))
        .map(|(candidate, _)| group_of(candidate))
        .collect();
    let mut own = own.into_iter();
    candidates.retain(|candidate| {
        let own = own.next().unwrap_or(f64::NAN);
        let waits = own <= wanted(candidate) && slow_themselves.contains(&group_of(candidate));
        !waits
    });
}

/// Puts candidates of one expert-parallel group together where no qkv tells which of them is slow: at least one of them,
/// and the others may but wait for it.
pub(super) fn tell_as_one_of(candidates: &mut Vec<Candidate>, topology: &Topology) {
    let groups = groups(topology);
    let mut by_group = BTreeMap::<Option<(u32, usize)>, Vec<Candidate>>::new();
    for candidate in candidates.drain(..) {
        let group = candidate.ranks.first().map(|&rank| groups[rank]);
        by_group.entry(group).or_default().push(candidate);
    }
    let together = |mut those: Vec<Candidate>| {
        let mut ranks: Vec<usize> = those
            .iter()
            .flat_map(|candidate| candidate.ranks.iter().copied())
            .collect();
        ranks.sort_unstable();
        // The slowest speaks for them: who waits shows no more.
        those.sort_by(|a, b| {
            b.fault
                .excess
                .excess
                .total_cmp(&a.fault.excess.excess)
                .then(a.unit.cmp(&b.unit))
        });
        let several = those.len() > 1;
        let slowest = those.into_iter().next();
        slowest.map(|slowest| Candidate {
            one_of: slowest.one_of || several,
            ranks,
            ..slowest
        })
    };
    candidates.extend(by_group.into_values().filter_map(together));
    candidates.sort_by_key(|candidate| candidate.unit);
}

/// The expert-parallel group of each rank (position): its stage, and a number inside of it. Megatron numbers expert-tensor
/// positions first, then expert positions, over the ranks of a stage in order.
fn groups(topology: &Topology) -> Vec<(u32, usize)> {
    let tensor = topology
        .sizes
        .get("etp")
        .copied()
        .unwrap_or_else(|| topology.size("tp"));
    let members = (tensor.max(1) * topology.size("ep").max(1)) as usize;
    let mut seen = BTreeMap::<u32, usize>::new();
    let number = |place: &crate::job::Place| {
        let count = seen.entry(place.stage).or_default();
        *count += 1;
        (place.stage, (*count - 1) / members)
    };
    topology.places.iter().map(number).collect()
}

#[cfg(test)]
mod tests {
    use super::super::samples::{job, verdict};
    use crate::contract::timers::ATTENTION_QKV;
    use crate::verdict::FindingKind;

    #[test]
    fn who_waits_for_an_expert_is_not_named() {
        // Ranks 4-7 hold experts of the same layers; rank 5 is slow.
        let mut waiting = job(1, 16, 40, |rank, _| if (4..8).contains(&rank) { 1.3 } else { 1.0 });
        waiting.topology.sizes.insert("ep".to_owned(), 4);
        let qkv = waiting.timers.iter_mut().find(|timer| timer.name == ATTENTION_QKV);
        let qkv = qkv.expect("the timer of the sample");
        for rank in [4, 6, 7] {
            qkv.seconds.row_mut(rank).mapv_inplace(|seconds| seconds / 1.3);
        }
        assert_eq!(verdict(&waiting).anomalies, [5]);
        waiting.topology.sizes.remove("ep");
        assert_eq!(
            verdict(&waiting).anomalies,
            [4, 5, 6, 7],
            "without experts nobody waits there"
        );
        waiting.topology.sizes.insert("ep".to_owned(), 4);
        waiting.timers.retain(|timer| timer.name != ATTENTION_QKV);
        let told = verdict(&waiting);
        assert_eq!(
            (told.findings.len(), told.findings[0].kind),
            (1, FindingKind::OneOfGroup)
        );
        assert_eq!(told.anomalies, [4, 5, 6, 7], "which of them nothing tells");
    }
}
