//! Kinds with ranks, nodes, loaders or links that are slow.

use super::draw::{Draw, Shape};
use super::healthy::{with_heavy_stage, with_rerun};
use crate::contract::defaults::WARMUP_ITERATIONS;
use crate::evaluation::simulate::Scenario;
use crate::evaluation::simulate::faults::{LinkFactor, NodeFactor, RankFactor, RankSeconds};

/// Strengths of a slow rank.
pub const STRENGTHS: &[f64] = &[1.08, 1.12, 1.2, 1.35, 1.6, 2.0];
/// Those without the faint ones, where something else hides the fault.
const STRONG: &[f64] = &[1.2, 1.35, 1.6, 2.0];
/// Ranks of a node.
const NODE: usize = 8;

/// A healthy job in which every rank has at least two peers, and what else is asked.
fn base(draw: &mut Draw, fits: impl Fn(Shape) -> bool) -> Scenario {
    let shape = draw.shape(|shape| shape.dp >= 3 && fits(shape));
    draw.healthy(shape)
}

fn any(draw: &mut Draw) -> Scenario {
    base(draw, |_| true)
}

/// One rank of the job computes slowly, by one of the strengths.
pub fn with_slow(draw: &mut Draw, job: Scenario, strengths: &[f64]) -> Scenario {
    let factor = draw.one_of(strengths);
    with_slow_by(draw, job, factor)
}

fn with_slow_by(draw: &mut Draw, job: Scenario, factor: f64) -> Scenario {
    let rank = draw.below(job.ranks());
    Scenario {
        slow_ranks: vec![RankFactor { rank, factor }],
        ..job
    }
}

pub fn one(draw: &mut Draw) -> Scenario {
    let job = any(draw);
    with_slow(draw, job, STRENGTHS)
}

pub fn faint(draw: &mut Draw) -> Scenario {
    let job = any(draw);
    let job = Scenario {
        noise: job.noise.min(0.02),
        rank_spread: job.rank_spread.min(0.007),
        ..job
    };
    let factor = draw.between(1.035, 1.05);
    with_slow_by(draw, job, factor)
}

pub fn onset(draw: &mut Draw) -> Scenario {
    let job = one(draw);
    Scenario {
        onset: Some(Draw::counted(&job, draw.between(0.25, 0.65))),
        ..job
    }
}

pub fn until(draw: &mut Draw) -> Scenario {
    let job = one(draw);
    Scenario {
        until: Some(Draw::counted(&job, draw.between(0.5, 0.8))),
        ..job
    }
}

pub fn flaky(draw: &mut Draw) -> Scenario {
    let job = any(draw);
    let job = Scenario {
        flaky: Some(0.5),
        iterations: job.iterations.max(WARMUP_ITERATIONS + 20),
        ..job
    };
    with_slow(draw, job, STRONG)
}

fn several(draw: &mut Draw, count: usize) -> Scenario {
    let job = base(draw, |shape| shape.dp >= 2 * count.max(2));
    let same = draw.one_of(STRENGTHS);
    let ranks = draw.some_of(count, job.ranks());
    let slow_ranks = ranks
        .into_iter()
        .map(|rank| {
            let factor = if draw.hard() { draw.one_of(STRENGTHS) } else { same };
            RankFactor { rank, factor }
        })
        .collect();
    Scenario { slow_ranks, ..job }
}

pub fn two(draw: &mut Draw) -> Scenario {
    several(draw, 2)
}

pub fn three(draw: &mut Draw) -> Scenario {
    several(draw, 3)
}

fn with_slow_nodes(draw: &mut Draw, job: Scenario, count: usize) -> Scenario {
    let factor = draw.one_of(STRENGTHS);
    let nodes = draw.some_of(count, job.nodes());
    Scenario {
        slow_nodes: nodes.into_iter().map(|node| NodeFactor { node, factor }).collect(),
        ..job
    }
}

pub fn node(draw: &mut Draw) -> Scenario {
    // At most half of a stage, so that its peers tell.
    let job = base(draw, |shape| shape.stage_ranks() >= 2 * NODE);
    with_slow_nodes(draw, job, 1)
}

pub fn two_nodes(draw: &mut Draw) -> Scenario {
    let job = base(draw, |shape| shape.stage_ranks() >= 4 * NODE);
    with_slow_nodes(draw, job, 2)
}

pub fn majority(draw: &mut Draw) -> Scenario {
    let nodes = draw.one_of(&[3, 4, 5]);
    let tp = draw.one_of(&[1, 1, 2, 4, 8]);
    let job = draw.healthy(Shape {
        pp: 1,
        tp,
        dp: NODE * nodes / tp,
    });
    with_slow_nodes(draw, job, nodes / 2 + 1)
}

pub fn beside_stage(draw: &mut Draw) -> Scenario {
    let job = base(draw, |shape| shape.pp >= 2);
    let last = job.pp - 1;
    let anywhere = draw.below(job.pp);
    let stage = draw.one_of(&[0, last, last, anywhere]);
    let job = with_heavy_stage(draw, job, stage);
    with_slow(draw, job, STRENGTHS)
}

pub fn beside_sequences(draw: &mut Draw) -> Scenario {
    let factor = draw.one_of(STRONG);
    let job = sequences(draw, any);
    with_slow_by(draw, job, factor)
}

pub fn faint_beside_sequences(draw: &mut Draw) -> Scenario {
    let factor = draw.between(1.06, 1.12);
    // Only the stages of a replica tell its load from a slow rank of its own.
    let job = sequences(draw, |draw| base(draw, |shape| shape.pp >= 2));
    with_slow_by(draw, job, factor)
}

fn sequences(draw: &mut Draw, job: impl FnOnce(&mut Draw) -> Scenario) -> Scenario {
    let sequence_spread = draw.between(0.05, 0.14);
    Scenario {
        sequence_spread,
        ..job(draw)
    }
}

pub fn beside_experts(draw: &mut Draw) -> Scenario {
    let job = base(draw, |shape| shape.stage_ranks() >= 8);
    let job = Scenario {
        expert_spread: draw.between(0.04, 0.09),
        ..job
    };
    with_slow(draw, job, STRONG)
}

/// A rank of the stage loads its data slowly.
pub fn with_slow_loader(draw: &mut Draw, job: Scenario, stage: usize) -> Scenario {
    // In the default order; tensor-parallel rank 0 loads.
    let rank = (stage * job.dp + draw.below(job.dp)) * job.tp;
    let seconds = job.stage_seconds * draw.between(0.12, 0.6);
    Scenario {
        slow_loaders: vec![RankSeconds { rank, seconds }],
        ..job
    }
}

pub fn loader(draw: &mut Draw) -> Scenario {
    let job = any(draw);
    with_slow_loader(draw, job, 0)
}

pub fn loader_last(draw: &mut Draw) -> Scenario {
    let job = base(draw, |shape| shape.pp >= 2);
    let stage = job.pp - 1;
    with_slow_loader(draw, job, stage)
}

pub fn rerun(draw: &mut Draw) -> Scenario {
    let job = one(draw);
    with_rerun(draw, job)
}

pub fn dirty(draw: &mut Draw) -> Scenario {
    Scenario {
        dirty: 0.003,
        ..one(draw)
    }
}

pub fn no_topology(draw: &mut Draw) -> Scenario {
    let job = base(draw, |shape| shape.pp >= 2);
    let job = Scenario {
        topology: false,
        order: if draw.chance(0.3) {
            "tp-pp-dp".to_owned()
        } else {
            job.order
        },
        ..job
    };
    with_slow(draw, job, STRENGTHS)
}

pub fn order(draw: &mut Draw) -> Scenario {
    let job = base(draw, |shape| shape.pp >= 2);
    let job = Scenario {
        order: "tp-pp-dp".to_owned(),
        ..job
    };
    with_slow(draw, job, STRENGTHS)
}

pub fn no_qkv(draw: &mut Draw) -> Scenario {
    let job = base(draw, |shape| shape.tp >= 2);
    let job = Scenario { qkv: false, ..job };
    with_slow(draw, job, STRENGTHS)
}

pub fn alone(draw: &mut Draw) -> Scenario {
    let pp = draw.one_of(&[4, 8]);
    let job = draw.healthy(Shape { pp, tp: 1, dp: 1 });
    let job = with_slow(draw, job, STRONG);
    Scenario {
        onset: Some(Draw::counted(&job, draw.between(0.25, 0.65))),
        ..job
    }
}

pub fn dp2(draw: &mut Draw) -> Scenario {
    let shape = draw.shape(|shape| shape.dp == 2);
    let job = draw.healthy(shape);
    with_slow(draw, job, &STRENGTHS[1..])
}

pub fn short(draw: &mut Draw) -> Scenario {
    Scenario {
        iterations: 20,
        ..one(draw)
    }
}

/// A job with links to compare, with its single calls.
fn linked(draw: &mut Draw) -> Scenario {
    let job = base(draw, |shape| shape.pp >= 2 && shape.dp >= 4);
    Scenario { trace: true, ..job }
}

pub fn nic_send(draw: &mut Draw) -> Scenario {
    let job = linked(draw);
    let rank = draw.below(job.ranks());
    let factor = draw.between(8.0, 30.0);
    Scenario {
        slow_send: vec![RankFactor { rank, factor }],
        ..job
    }
}

pub fn nic_recv(draw: &mut Draw) -> Scenario {
    let job = linked(draw);
    let rank = draw.below(job.ranks());
    let factor = draw.between(8.0, 30.0);
    Scenario {
        slow_recv: vec![RankFactor { rank, factor }],
        ..job
    }
}

pub fn link(draw: &mut Draw) -> Scenario {
    let job = linked(draw);
    let stage = job.tp * job.dp;
    let a = draw.below(job.ranks() - stage);
    let factor = draw.between(8.0, 30.0);
    Scenario {
        slow_links: vec![LinkFactor {
            a,
            b: a + stage,
            factor,
        }],
        ..job
    }
}
