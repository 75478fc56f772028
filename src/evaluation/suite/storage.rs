//! Kinds in which loading is slow: for all, on a node, or both.

use super::draw::Draw;
use super::levels::flat;
use super::{Kind, cluster};
use crate::evaluation::simulate::Scenario;
use crate::evaluation::simulate::conditions::Storage;

/// Spread of loading from slow storage, by rank and step.
const SPREAD: f64 = 0.1;
/// A forward and a backward pass in forward passes.
const PASSES: f64 = 3.0;

pub const KINDS: &[Kind] = &[
    cluster(
        "loading-all",
        all,
        "from a half of the window on loading costs all ranks 3-18 % of the step",
    ),
    cluster(
        "loading-all-node",
        all_and_node,
        "the same, and a node loads 1.8-3x as long as the others",
    ),
    cluster(
        "loading-node-late",
        node_late,
        "a node's loading costs 4-20 % of the step from some step on",
    ),
];

fn slower(draw: &mut Draw, replicas: &[usize]) -> (Scenario, Storage) {
    let job = flat(draw, replicas);
    let storage = Storage {
        from: Draw::counted(&job, draw.between(0.51, 0.65)),
        seconds: draw.between(0.03, 0.18) * PASSES * job.stage_seconds,
        spread: SPREAD,
        node: None,
        node_seconds: 0.0,
    };
    (job, storage)
}

fn with(job: Scenario, storage: Storage) -> Scenario {
    Scenario {
        conditions: vec![storage.into()],
        ..job
    }
}

fn all(draw: &mut Draw) -> Scenario {
    let (job, storage) = slower(draw, &[8, 16, 32, 64]);
    with(job, storage)
}

fn all_and_node(draw: &mut Draw) -> Scenario {
    let (job, storage) = slower(draw, &[16, 32, 64]);
    let node = Some(draw.below(job.nodes()));
    let node_seconds = storage.seconds * (draw.between(1.8, 3.0) - 1.0);
    with(
        job,
        Storage {
            node,
            node_seconds,
            ..storage
        },
    )
}

fn node_late(draw: &mut Draw) -> Scenario {
    let (job, storage) = slower(draw, &[16, 32, 64]);
    let node = Some(draw.below(job.nodes()));
    let node_seconds = draw.between(0.12, 0.6) * job.stage_seconds;
    with(
        job,
        Storage {
            seconds: 0.0,
            node,
            node_seconds,
            ..storage
        },
    )
}
