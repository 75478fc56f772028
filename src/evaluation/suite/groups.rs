//! Kinds whose groups are not the plain data-parallel ones, and groups that reduce slowly.

use super::draw::{Draw, Shape};
use super::slow::{STRENGTHS, with_slow};
use super::{Kind, cluster};
use crate::evaluation::simulate::Scenario;
use crate::evaluation::simulate::conditions::SlowGroup;

pub const KINDS: &[Kind] = &[
    cluster(
        "cp-healthy",
        context_healthy,
        "context parallelism, gradients reduced over dp x cp; half with unequal sequences",
    ),
    cluster("cp-job", context_slow, "the same, one rank computes 12-100 % slower"),
    cluster(
        "ep-healthy",
        expert_healthy,
        "expert parallelism of 2-4, loads vary by 4-9 %",
    ),
    cluster("ep-slow", expert_slow, "the same, one rank computes 20-100 % slower"),
    cluster(
        "instances-healthy",
        instances_healthy,
        "2-4 instances of the distributed optimizer",
    ),
    cluster(
        "instances-slow",
        instances_slow,
        "the same, one rank computes 12-100 % slower",
    ),
    cluster(
        "slow-collective",
        slow_collective,
        "one group's gradient reduction takes 2-5x, half of them from some step on",
    ),
];

/// A job with pipelines, several replicas and, in most jobs, single calls.
fn piped(draw: &mut Draw, fits: impl Fn(Shape) -> bool) -> Scenario {
    let shape = draw.shape(|shape| shape.pp >= 2 && shape.dp >= 4 && fits(shape));
    let job = draw.healthy(shape);
    Scenario {
        trace: draw.chance(0.7),
        ..job
    }
}

fn context(draw: &mut Draw) -> Scenario {
    let job = piped(draw, |shape| shape.ranks() <= 64 && shape.tp <= 4);
    Scenario {
        cp: draw.one_of(&[2, 2, 4]),
        ..job
    }
}

fn context_healthy(draw: &mut Draw) -> Scenario {
    let job = context(draw);
    Scenario {
        sequence_spread: if draw.chance(0.5) {
            draw.between(0.05, 0.14)
        } else {
            0.0
        },
        ..job
    }
}

fn context_slow(draw: &mut Draw) -> Scenario {
    let job = context(draw);
    with_slow(draw, job, &STRENGTHS[1..])
}

fn expert_healthy(draw: &mut Draw) -> Scenario {
    let job = piped(draw, |shape| shape.dp.is_multiple_of(4) && shape.dp >= 8);
    Scenario {
        ep: draw.one_of(&[2, 4]),
        expert_spread: draw.between(0.04, 0.09),
        ..job
    }
}

fn expert_slow(draw: &mut Draw) -> Scenario {
    let job = expert_healthy(draw);
    with_slow(draw, job, &STRENGTHS[2..])
}

fn instances_healthy(draw: &mut Draw) -> Scenario {
    let job = piped(draw, |shape| shape.dp.is_multiple_of(4));
    Scenario {
        optimizer_instances: draw.one_of(&[2, 2, 4]),
        ..job
    }
}

fn instances_slow(draw: &mut Draw) -> Scenario {
    let job = instances_healthy(draw);
    with_slow(draw, job, &STRENGTHS[1..])
}

fn slow_collective(draw: &mut Draw) -> Scenario {
    // Several groups, so that one can stand out.
    let job = piped(draw, |shape| shape.pp * shape.tp >= 4);
    let from = Draw::counted(&job, draw.between(0.3, 0.6));
    let condition = SlowGroup {
        rank: draw.below(job.ranks()),
        factor: draw.scale(2.0, 5.0),
        from: if draw.chance(0.5) { from } else { 0 },
    };
    Scenario {
        conditions: vec![condition.into()],
        ..job
    }
}
