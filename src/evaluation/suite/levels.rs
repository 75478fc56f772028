//! Kinds in which ranks stand on several levels.

use super::draw::{Draw, Shape};
use super::{Kind, cluster};
use crate::evaluation::simulate::Scenario;
use crate::evaluation::simulate::conditions::Change;
use crate::evaluation::simulate::faults::{NodeFactor, RankFactor};

/// Ranks of a node.
const NODE: usize = 8;

pub const KINDS: &[Kind] = &[
    cluster(
        "half-and-half",
        half_and_half,
        "half of the ranks take 1.3-4x, as on shared cards",
    ),
    cluster(
        "two-levels",
        two_levels,
        "a third takes 2-4x and two of them get worse later",
    ),
    cluster("many-slow", many_slow, "25-45 % of the ranks, each by its own factor"),
    cluster(
        "mixed-gpus-slow",
        mixed_gpus,
        "some nodes of an older kind, and a bad card among them",
    ),
    cluster("hot-node", hot_node, "four ranks of a node compute 6-14 % slower"),
    cluster("tp-group-slow", tensor_group, "all ranks of a tensor-parallel group"),
    cluster(
        "stage-is-node-onset",
        stage_is_node,
        "a node that is a whole stage, from some step on",
    ),
];

/// A job without pipelines and tensor parallelism.
pub fn flat(draw: &mut Draw, replicas: &[usize]) -> Scenario {
    let dp = draw.one_of(replicas);
    draw.healthy(Shape { pp: 1, tp: 1, dp })
}

fn at(ranks: impl IntoIterator<Item = usize>, mut factor: impl FnMut() -> f64) -> Vec<RankFactor> {
    let faults = ranks.into_iter().map(|rank| RankFactor { rank, factor: factor() });
    faults.collect()
}

fn half_and_half(draw: &mut Draw) -> Scenario {
    let job = flat(draw, &[4, 8, 16, 32]);
    let factor = draw.scale(1.3, 4.0);
    let ranks = draw.some_of(job.dp / 2, job.dp);
    Scenario {
        slow_ranks: at(ranks, || factor),
        ..job
    }
}

fn two_levels(draw: &mut Draw) -> Scenario {
    let job = flat(draw, &[8, 12, 24, 32]);
    let factor = draw.scale(2.0, 4.0);
    let ranks = draw.some_of((job.dp / 3).max(3), job.dp);
    let worse = draw.between(1.3, 1.7);
    let conditions = ranks.iter().take(2).map(|&rank| {
        let from = Draw::counted(&job, draw.between(0.3, 0.7));
        let change = Change {
            rank,
            factor: worse,
            from,
            until: None,
        };
        change.into()
    });
    Scenario {
        conditions: conditions.collect(),
        slow_ranks: at(ranks, || factor),
        ..job
    }
}

fn many_slow(draw: &mut Draw) -> Scenario {
    let job = flat(draw, &[16, 32, 64]);
    let share = draw.between(0.25, 0.45);
    let ranks = draw.some_of((share * job.dp as f64) as usize, job.dp);
    Scenario {
        slow_ranks: at(ranks, || draw.scale(1.12, 2.0)),
        ..job
    }
}

fn mixed_gpus(draw: &mut Draw) -> Scenario {
    let job = flat(draw, &[32, 64]);
    let nodes = job.nodes();
    let factor = draw.between(1.15, 1.6);
    let count = draw.one_of(&[nodes / 4, nodes / 2]);
    let older = draw.some_of(count.max(1), nodes);
    let bad = older[draw.below(older.len())] * NODE + draw.below(NODE);
    let worse = draw.between(1.15, 1.5);
    Scenario {
        slow_nodes: older.into_iter().map(|node| NodeFactor { node, factor }).collect(),
        slow_ranks: at([bad], || worse),
        ..job
    }
}

fn hot_node(draw: &mut Draw) -> Scenario {
    let job = flat(draw, &[16, 32, 64]);
    let node = draw.below(job.nodes());
    let half = draw.one_of(&[0, NODE / 2]);
    let ranks = (0..NODE / 2).map(|place| node * NODE + half + place);
    Scenario {
        slow_ranks: at(ranks, || draw.between(1.06, 1.14)),
        ..job
    }
}

fn tensor_group(draw: &mut Draw) -> Scenario {
    let shape = draw.shape(|shape| shape.pp >= 2 && shape.tp >= 2 && shape.dp >= 3);
    let job = draw.healthy(shape);
    let group = draw.below(job.ranks() / job.tp);
    let factor = draw.between(1.1, 1.6);
    Scenario {
        slow_ranks: at(group * job.tp..(group + 1) * job.tp, || factor),
        ..job
    }
}

fn stage_is_node(draw: &mut Draw) -> Scenario {
    let job = draw.healthy(Shape { pp: 4, tp: 1, dp: NODE });
    let node = draw.below(job.nodes());
    let factor = draw.between(1.1, 1.6);
    Scenario {
        onset: Some(Draw::counted(&job, draw.between(0.25, 0.65))),
        slow_nodes: vec![NodeFactor { node, factor }],
        trace: draw.chance(0.5),
        ..job
    }
}
