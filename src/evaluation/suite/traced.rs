//! Kinds with single calls and a sound network, which must not be blamed.

use super::draw::Draw;
use super::healthy::{with_heavy_stage, with_rerun, with_stall, with_transient};
use super::network::{interleaved as interleaved_job, linked, with_damage, with_nodes_between, without_topology};
use super::slow::{STRENGTHS, with_slow, with_slow_loader};
use crate::evaluation::simulate::Scenario;
use crate::evaluation::simulate::faults::{NodeFactor, RankFactor};

fn any(draw: &mut Draw) -> Scenario {
    linked(draw, |_| true)
}

/// A job whose ranks have at least two peers.
fn with_peers(draw: &mut Draw) -> Scenario {
    linked(draw, |shape| shape.dp >= 3)
}

pub fn healthy(draw: &mut Draw) -> Scenario {
    any(draw)
}

pub fn tails(draw: &mut Draw) -> Scenario {
    Scenario {
        transfer_noise: draw.scale(0.1, 0.4),
        transfer_outliers: draw.scale(0.005, 0.05),
        link_spread: draw.between(0.03, 0.08),
        ..any(draw)
    }
}

pub fn between_nodes(draw: &mut Draw) -> Scenario {
    with_nodes_between(draw)
}

pub fn interleaved(draw: &mut Draw) -> Scenario {
    interleaved_job(draw)
}

pub fn slow_rank_interleaved(draw: &mut Draw) -> Scenario {
    let job = interleaved_job(draw);
    with_slow(draw, job, STRENGTHS)
}

pub fn heavy_stage_interleaved(draw: &mut Draw) -> Scenario {
    let job = interleaved_job(draw);
    let stage = draw.below(job.pp);
    with_heavy_stage(draw, job, stage)
}

pub fn slow_rank(draw: &mut Draw) -> Scenario {
    let job = with_peers(draw);
    with_slow(draw, job, STRENGTHS)
}

pub fn two_slow_ranks(draw: &mut Draw) -> Scenario {
    let job = linked(draw, |shape| shape.dp >= 4);
    let slow_ranks = draw
        .some_of(2, job.ranks())
        .into_iter()
        .map(|rank| RankFactor {
            rank,
            factor: draw.one_of(STRENGTHS),
        })
        .collect();
    Scenario { slow_ranks, ..job }
}

pub fn slow_rank_between_nodes(draw: &mut Draw) -> Scenario {
    let job = with_nodes_between(draw);
    with_slow(draw, job, STRENGTHS)
}

pub fn slow_rank_onset(draw: &mut Draw) -> Scenario {
    let job = slow_rank(draw);
    Scenario {
        onset: Some(Draw::counted(&job, draw.between(0.25, 0.65))),
        ..job
    }
}

pub fn slow_node(draw: &mut Draw) -> Scenario {
    let job = linked(draw, |shape| shape.dp >= 3 && shape.stage_ranks() >= 16);
    let node = draw.below(job.nodes());
    let factor = draw.one_of(STRENGTHS);
    Scenario {
        slow_nodes: vec![NodeFactor { node, factor }],
        ..job
    }
}

pub fn loader(draw: &mut Draw) -> Scenario {
    let job = with_peers(draw);
    let stage = draw.one_of(&[0, job.pp - 1]);
    with_slow_loader(draw, job, stage)
}

pub fn heavy_stage(draw: &mut Draw) -> Scenario {
    let job = any(draw);
    let stage = draw.below(job.pp);
    with_heavy_stage(draw, job, stage)
}

pub fn sequences(draw: &mut Draw) -> Scenario {
    Scenario {
        sequence_spread: draw.between(0.05, 0.14),
        ..with_peers(draw)
    }
}

pub fn experts(draw: &mut Draw) -> Scenario {
    Scenario {
        expert_spread: draw.between(0.04, 0.09),
        ..linked(draw, |shape| shape.stage_ranks() >= 8)
    }
}

pub fn transient(draw: &mut Draw) -> Scenario {
    let job = any(draw);
    with_transient(draw, job)
}

pub fn stall(draw: &mut Draw) -> Scenario {
    let job = any(draw);
    with_stall(draw, job)
}

pub fn rerun(draw: &mut Draw) -> Scenario {
    let job = any(draw);
    with_rerun(draw, job)
}

pub fn damaged(draw: &mut Draw) -> Scenario {
    let job = any(draw);
    with_damage(draw, job)
}

pub fn no_topology(draw: &mut Draw) -> Scenario {
    let job = any(draw);
    without_topology(draw, job)
}
