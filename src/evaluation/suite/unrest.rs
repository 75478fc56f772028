//! Kinds whose noise is no white noise, and what comes and goes without anybody's fault.

use super::draw::{Draw, Shape};
use super::levels::flat;
use super::slow::{STRENGTHS, with_slow};
use super::{Kind, cluster};
use crate::evaluation::simulate::Scenario;
use crate::evaluation::simulate::conditions::{Bursts, Checkpoints, Pauses, Together, Wander};

pub const KINDS: &[Kind] = &[
    cluster(
        "wander",
        wander,
        "ranks' levels wander by 1-2 % (sd) with a correlation time of 10-30 steps",
    ),
    cluster("wander-pipeline", wander_pipeline, "the same in jobs of any shape"),
    cluster(
        "wander-slow",
        wander_slow,
        "the same beside one rank that computes 12-100 % slower",
    ),
    cluster("bursty", bursty, "bursts of 2-4 slow steps at random ranks"),
    cluster("gc-pauses", pauses, "ranks pause in 1-4 % of their steps"),
    cluster(
        "rank0-checkpoint",
        checkpoints,
        "rank 0 writes for seconds every 10-25 steps",
    ),
    cluster("step-together", together, "all ranks take 1.2-1.6x from some step on"),
    cluster("two-ranks-even", two_even, "two ranks and nothing wrong"),
];

/// Lets the levels of a job's ranks wander.
pub fn with_wander(draw: &mut Draw, mut job: Scenario) -> Scenario {
    let condition = Wander {
        sd: draw.between(0.01, 0.02),
        steps: draw.between(10.0, 30.0),
    };
    job.conditions.push(condition.into());
    job
}

fn wander(draw: &mut Draw) -> Scenario {
    let job = flat(draw, &[8, 16, 32, 64]);
    with_wander(draw, job)
}

fn wander_pipeline(draw: &mut Draw) -> Scenario {
    let shape = draw.shape(|_| true);
    let job = draw.healthy(shape);
    with_wander(draw, job)
}

fn wander_slow(draw: &mut Draw) -> Scenario {
    let job = flat(draw, &[8, 16, 32, 64]);
    let job = with_slow(draw, job, &STRENGTHS[1..]);
    with_wander(draw, job)
}

fn bursty(draw: &mut Draw) -> Scenario {
    let job = flat(draw, &[8, 16, 32, 64]);
    let condition = Bursts {
        rate: draw.between(0.03, 0.1),
        most: draw.between(1.6, 2.2),
    };
    Scenario {
        conditions: vec![condition.into()],
        ..job
    }
}

fn pauses(draw: &mut Draw) -> Scenario {
    let job = flat(draw, &[8, 16, 32, 64]);
    let condition = Pauses {
        share: draw.between(0.01, 0.04),
        seconds: job.stage_seconds * job.microbatches as f64 * draw.between(0.4, 1.2),
    };
    Scenario {
        conditions: vec![condition.into()],
        ..job
    }
}

fn checkpoints(draw: &mut Draw) -> Scenario {
    let job = flat(draw, &[8, 16, 32, 64]);
    let condition = Checkpoints {
        rank: 0,
        every: draw.between(10.0, 26.0) as u32,
        seconds: job.stage_seconds * job.microbatches as f64 * draw.between(2.0, 8.0),
    };
    Scenario {
        conditions: vec![condition.into()],
        ..job
    }
}

fn together(draw: &mut Draw) -> Scenario {
    let job = flat(draw, &[8, 16, 32, 64]);
    let condition = Together {
        factor: draw.between(1.2, 1.6),
        from: Draw::counted(&job, draw.between(0.3, 0.7)),
        until: None,
    };
    Scenario {
        conditions: vec![condition.into()],
        ..job
    }
}

fn two_even(draw: &mut Draw) -> Scenario {
    draw.healthy(Shape { pp: 1, tp: 1, dp: 2 })
}
