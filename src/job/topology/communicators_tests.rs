use std::collections::BTreeMap;

use super::super::{Place, Topology, TopologyOrigin};
use super::{Communicator, Group};
use crate::contract::rank_order::{Layout, Sizes};

fn topology(order: &str, [tp, cp, dp, pp]: [usize; 4], ep: u32) -> Topology {
    let sizes = Sizes { tp, cp, ep: 1, dp, pp };
    let layout = Layout::new(order, sizes).expect("an order");
    let place = |rank: usize| {
        let at = layout.coordinates(rank);
        Place {
            stage: at.pp as u32,
            pipeline: at.dp as u32,
            member: (at.tp + tp * at.cp) as u32,
        }
    };
    let named = [("tp", tp), ("cp", cp), ("dp", dp), ("pp", pp)].map(|(axis, size)| (axis.to_owned(), size as u32));
    let mut sizes: BTreeMap<String, u32> = named.into();
    if ep > 1 {
        sizes.insert("ep".to_owned(), ep);
    }
    Topology {
        sizes,
        origin: TopologyOrigin::Rows,
        places: (0..layout.ranks()).map(place).collect(),
    }
}

fn members(groups: &[Group]) -> Vec<Vec<usize>> {
    assert!(groups.iter().all(|group| group.complete));
    groups.iter().map(|group| group.members.clone()).collect()
}

/// The example of Megatron-LM's own documentation: 24 ranks, TP 2, DP 3, PP 4.
#[test]
fn dense_groups_are_those_of_megatron() {
    let job = topology("tp-cp-ep-dp-pp", [2, 1, 3, 4], 1);
    let data = members(&job.groups(Communicator::DataParallel, false));
    assert_eq!(data[..3], [vec![0, 2, 4], vec![1, 3, 5], vec![6, 8, 10]]);
    assert_eq!(job.groups(Communicator::DataParallel, false)[2].stage, Some(1));
    assert_eq!(
        members(&job.groups(Communicator::Embedding, false))[..2],
        [vec![0, 18], vec![1, 19]]
    );
    assert_eq!(
        members(&job.groups(Communicator::TensorParallel, false))[..2],
        [vec![0, 1], vec![2, 3]]
    );
    assert_eq!(members(&job.groups(Communicator::Pipeline, false))[0], [0, 6, 12, 18]);
    assert_eq!(
        members(&job.groups(Communicator::ModelParallel, false))[0],
        [0, 1, 6, 7, 12, 13, 18, 19]
    );
    assert_eq!(
        members(&job.groups(Communicator::World, false)),
        [(0..24).collect::<Vec<_>>()]
    );
}

#[test]
fn context_parallel_ranks_reduce_their_gradients_together() {
    let job = topology("tp-cp-ep-dp-pp", [2, 2, 4, 2], 1);
    let data = members(&job.groups(Communicator::DataParallel, false));
    assert_eq!(data.len(), 4);
    assert_eq!(data[0], [0, 2, 4, 6, 8, 10, 12, 14]);
    let other_order = topology("tp-cp-ep-pp-dp", [2, 2, 2, 2], 1);
    let data = members(&other_order.groups(Communicator::DataParallel, false));
    assert_eq!(data[0], [0, 2, 8, 10]);
}

#[test]
fn lanes_that_nothing_tells_apart_are_one_group() {
    let mut job = topology("tp-cp-ep-dp-pp", [4, 1, 2, 2], 1);
    job.origin = TopologyOrigin::Inferred {
        sure: 0.9,
        from: String::new(),
    };
    assert!(!job.tells_lanes());
    let data = |every_lane| members(&job.groups(Communicator::DataParallel, every_lane));
    assert_eq!(data(false), [(0..8).collect::<Vec<_>>(), (8..16).collect()]);
    assert_eq!(data(true)[..2], [vec![0, 4], vec![1, 5]]);
    assert_eq!(job.groups(Communicator::TensorParallel, false), []);
    // Rows without those of an axis that the job has.
    let mut job = topology("tp-cp-ep-dp-pp", [2, 2, 2, 1], 1);
    job.sizes.remove("cp");
    assert!(!job.tells_lanes());
}

#[test]
fn expert_groups_join_lanes() {
    // EP 4 with expert-tensor-parallel 2: experts differ by lane, so that no group joins two lanes.
    let job = topology("tp-cp-ep-dp-pp", [2, 1, 8, 1], 4);
    assert_eq!(members(&job.groups(Communicator::DataParallel, false)).len(), 2);
    assert_eq!(
        members(&job.groups(Communicator::ExpertDataParallel, false))[..2],
        [vec![0, 8], vec![1, 9]]
    );
    // Without it EP 3 puts ranks 0 and 3, of different lanes, into one group.
    let mut job = topology("tp-cp-ep-dp-pp", [2, 1, 6, 1], 3);
    job.sizes.insert("etp".to_owned(), 1);
    assert_eq!(
        members(&job.groups(Communicator::DataParallel, false)),
        [(0..12).collect::<Vec<_>>()]
    );
    assert_eq!(
        members(&job.groups(Communicator::ExpertDataParallel, false))[0],
        [0, 3, 6, 9]
    );
}

#[test]
fn groups_of_which_members_wrote_no_rows_are_not_complete() {
    let mut job = topology("tp-cp-ep-dp-pp", [1, 1, 4, 2], 1);
    job.places.truncate(6);
    let groups = job.groups(Communicator::DataParallel, false);
    assert_eq!(
        groups.iter().map(|group| group.complete).collect::<Vec<_>>(),
        [true, false]
    );
}

#[test]
fn instances_are_runs_of_neighbours() {
    let job = topology("tp-cp-ep-dp-pp", [2, 1, 4, 1], 1);
    let groups = job.groups(Communicator::DataParallel, false);
    assert_eq!(members(&Topology::instances(&groups[0], 2)), [vec![0, 2], vec![4, 6]]);
    assert_eq!(Topology::instances(&groups[0], 3), []);
}

#[test]
fn each_collective_has_its_group() {
    let of = |timer| Communicator::of_timer(timer, true);
    assert_eq!(of("all-grads-sync"), Some(Communicator::DataParallel));
    assert_eq!(of("grads-reduce-scatter"), Some(Communicator::DataParallel));
    assert_eq!(of("embedding-grads-all-reduce"), Some(Communicator::Embedding));
    assert_eq!(of("layernorm-grads-all-reduce"), Some(Communicator::TensorParallel));
    assert_eq!(of("optimizer-clip-main-grad"), Some(Communicator::World));
    assert_eq!(
        Communicator::of_timer("optimizer-clip-main-grad", false),
        Some(Communicator::ModelParallel)
    );
    assert_eq!(of("optimizer"), None);
}
