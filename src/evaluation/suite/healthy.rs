//! Kinds in which nobody may be named.

use super::draw::{Draw, Shape};
use crate::evaluation::simulate::Scenario;
use crate::evaluation::simulate::faults::{RankFactor, Rerun, StageFactor, Stall, Transient};

fn any(draw: &mut Draw) -> Scenario {
    let shape = draw.shape(|_| true);
    draw.healthy(shape)
}

/// A job whose stages have peers to compare.
fn fits(draw: &mut Draw, fits: impl Fn(Shape) -> bool) -> Scenario {
    let shape = draw.shape(fits);
    draw.healthy(shape)
}

pub fn healthy(draw: &mut Draw) -> Scenario {
    any(draw)
}

pub fn noisy(draw: &mut Draw) -> Scenario {
    Scenario {
        noise: draw.between(0.015, 0.05),
        outliers: 0.01,
        ..any(draw)
    }
}

pub fn large_spread(draw: &mut Draw) -> Scenario {
    Scenario {
        rank_spread: draw.between(0.009, 0.013),
        ..any(draw)
    }
}

pub fn stall(draw: &mut Draw) -> Scenario {
    let job = any(draw);
    with_stall(draw, job)
}

/// One step of the job takes 20-90 s longer on all ranks.
pub fn with_stall(draw: &mut Draw, job: Scenario) -> Scenario {
    let iteration = Draw::counted(&job, draw.between(0.0, 1.0));
    let seconds = draw.between(20.0, 90.0);
    Scenario {
        stalls: vec![Stall { iteration, seconds }],
        ..job
    }
}

/// One rank is twice as slow for a few steps.
pub fn with_transient(draw: &mut Draw, job: Scenario) -> Scenario {
    let fault = Transient {
        rank: draw.below(job.ranks()),
        factor: 2.0,
        from: Draw::counted(&job, draw.between(0.0, 0.9)),
        count: draw.one_of(&[1, 2, 3]),
    };
    Scenario {
        transients: vec![fault],
        ..job
    }
}

pub fn transient(draw: &mut Draw) -> Scenario {
    let job = any(draw);
    with_transient(draw, job)
}

pub fn transient_pp2(draw: &mut Draw) -> Scenario {
    let job = fits(draw, |shape| shape.pp == 2);
    with_transient(draw, job)
}

/// Makes one stage 1.3 to 1.8 times as heavy.
pub fn with_heavy_stage(draw: &mut Draw, job: Scenario, stage: usize) -> Scenario {
    let factor = draw.between(1.3, 1.8);
    Scenario {
        heavy_stages: vec![StageFactor { stage, factor }],
        ..job
    }
}

pub fn first_stage(draw: &mut Draw) -> Scenario {
    let job = fits(draw, |shape| shape.pp >= 2);
    with_heavy_stage(draw, job, 0)
}

pub fn middle_stage(draw: &mut Draw) -> Scenario {
    let job = fits(draw, |shape| shape.pp >= 4);
    let stage = 1 + draw.below(job.pp - 2);
    with_heavy_stage(draw, job, stage)
}

pub fn last_stage(draw: &mut Draw) -> Scenario {
    let job = fits(draw, |shape| shape.pp >= 2);
    let stage = job.pp - 1;
    with_heavy_stage(draw, job, stage)
}

pub fn sequences(draw: &mut Draw) -> Scenario {
    let job = fits(draw, |shape| shape.dp >= 3);
    Scenario {
        sequence_spread: draw.between(0.05, 0.14),
        ..job
    }
}

pub fn experts(draw: &mut Draw) -> Scenario {
    let job = fits(draw, |shape| shape.stage_ranks() >= 8);
    Scenario {
        expert_spread: draw.between(0.04, 0.09),
        ..job
    }
}

/// The last third of the job ran twice, the first time with a slow rank.
pub fn with_rerun(draw: &mut Draw, job: Scenario) -> Scenario {
    let rank = draw.below(job.ranks());
    let factor = draw.one_of(&[1.35, 1.6, 2.0]);
    // Long enough that something of the second run is left after its start-up.
    let iterations = job.iterations.max(45);
    let from = job.first_iteration + 2 * iterations / 3;
    Scenario {
        iterations,
        rerun: Some(Rerun {
            from,
            lost: Some(RankFactor { rank, factor }),
        }),
        ..job
    }
}

pub fn rerun(draw: &mut Draw) -> Scenario {
    let job = any(draw);
    with_rerun(draw, job)
}
