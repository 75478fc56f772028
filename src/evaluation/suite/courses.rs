//! Kinds in which a fault has a course of its own in time.

use super::draw::{Draw, Shape};
use super::levels::flat;
use super::{Kind, cluster};
use crate::contract::defaults::WARMUP_ITERATIONS;
use crate::evaluation::simulate::Scenario;
use crate::evaluation::simulate::conditions::{Change, Creep, NodeSwap, Span, Spells, Thermal};
use crate::evaluation::simulate::faults::RankFactor;

pub const KINDS: &[Kind] = &[
    cluster("late-onset", late_onset, "one rank in the last 8-15 % of 300 steps"),
    cluster(
        "late-onset-many",
        late_onset_many,
        "three ranks in the last 8-15 %, each from its own step on",
    ),
    cluster(
        "ended",
        ended,
        "one rank takes 1.5-2.5x for 20-40 of 200 steps in the middle",
    ),
    cluster("recurring", recurring, "one rank has 5-9 bad steps again and again"),
    cluster("creeping", creeping, "one rank gets slower evenly"),
    cluster(
        "thermal-cycle",
        thermal_cycle,
        "one rank is slow for 3-6 of every 7-12 steps",
    ),
    cluster("one-of-two", one_of_two, "one of two ranks from the middle on"),
    cluster(
        "sparse-iterations",
        sparse,
        "one rank; rows of every 10th or 50th iteration",
    ),
    cluster(
        "node-swap",
        node_swap,
        "after a restart a node's ranks stand on a slow spare",
    ),
    cluster(
        "node-swap-sound",
        node_swap_sound,
        "after a restart a node's ranks stand on a sound spare",
    ),
];

/// A flat job of so many iterations beyond the start-up.
fn of_length(draw: &mut Draw, replicas: &[usize], counted: u32) -> Scenario {
    Scenario {
        iterations: WARMUP_ITERATIONS + counted,
        ..flat(draw, replicas)
    }
}

fn rank_of(draw: &mut Draw, job: &Scenario) -> usize {
    draw.below(job.ranks())
}

fn late_onset(draw: &mut Draw) -> Scenario {
    let job = of_length(draw, &[8, 16, 32, 64], 300);
    let rank = rank_of(draw, &job);
    let factor = draw.scale(1.2, 4.0);
    Scenario {
        slow_ranks: vec![RankFactor { rank, factor }],
        onset: Some(Draw::counted(&job, 1.0 - draw.between(0.08, 0.15))),
        ..job
    }
}

fn late_onset_many(draw: &mut Draw) -> Scenario {
    let job = of_length(draw, &[16, 32, 64], 300);
    let changes = draw.some_of(3, job.ranks()).into_iter().map(|rank| {
        let change = Change {
            rank,
            factor: draw.scale(1.2, 4.0),
            from: Draw::counted(&job, 1.0 - draw.between(0.08, 0.15)),
            until: None,
        };
        change.into()
    });
    Scenario {
        conditions: changes.collect(),
        ..job
    }
}

fn ended(draw: &mut Draw) -> Scenario {
    let job = of_length(draw, &[8, 16, 32, 64], 200);
    let rank = rank_of(draw, &job);
    let factor = draw.between(1.5, 2.5);
    let from = Draw::counted(&job, draw.between(0.3, 0.6));
    Scenario {
        slow_ranks: vec![RankFactor { rank, factor }],
        onset: Some(from),
        until: Some(from + draw.between(19.0, 40.0) as u32),
        ..job
    }
}

fn recurring(draw: &mut Draw) -> Scenario {
    let counted = draw.between(60.0, 160.0) as u32;
    let job = of_length(draw, &[8, 16, 32, 64], counted);
    let (rank, factor) = (rank_of(draw, &job), draw.scale(1.3, 2.5));
    let mut spells = Vec::new();
    let mut from = Draw::counted(&job, 0.0) + draw.between(3.0, 12.0) as u32;
    // Over the whole window: good stretches are at most three times as long as bad ones.
    while from + 9 <= job.last_iteration() {
        let until = from + draw.between(4.0, 9.0) as u32;
        spells.push(Span { from, until });
        from = until + 1 + draw.between(6.0, 19.0) as u32;
    }
    let condition = Spells { rank, factor, spells };
    Scenario {
        conditions: vec![condition.into()],
        ..job
    }
}

fn creeping(draw: &mut Draw) -> Scenario {
    let counted = draw.between(40.0, 120.0) as u32;
    let job = of_length(draw, &[8, 16, 32, 64], counted);
    let condition = Creep {
        rank: rank_of(draw, &job),
        factor: draw.between(1.2, 1.7),
        from: Draw::counted(&job, draw.between(0.0, 0.3)),
        to: job.last_iteration(),
    };
    Scenario {
        conditions: vec![condition.into()],
        ..job
    }
}

fn thermal_cycle(draw: &mut Draw) -> Scenario {
    let counted = draw.between(50.0, 100.0) as u32;
    let job = of_length(draw, &[8, 16, 32, 64], counted);
    let period = draw.between(7.0, 13.0) as u32;
    let condition = Thermal {
        rank: rank_of(draw, &job),
        factor: draw.between(1.15, 1.5),
        period,
        hot: period * 2 / 5 + 1,
    };
    Scenario {
        conditions: vec![condition.into()],
        ..job
    }
}

fn one_of_two(draw: &mut Draw) -> Scenario {
    let job = draw.healthy(Shape { pp: 1, tp: 1, dp: 2 });
    let rank = rank_of(draw, &job);
    let factor = draw.between(1.3, 1.6);
    Scenario {
        slow_ranks: vec![RankFactor { rank, factor }],
        onset: Some(Draw::counted(&job, draw.between(0.35, 0.65))),
        ..job
    }
}

fn sparse(draw: &mut Draw) -> Scenario {
    let job = flat(draw, &[8, 16, 32, 64]);
    let every = draw.one_of(&[10, 50]);
    let rank = rank_of(draw, &job);
    let factor = draw.between(1.12, 1.6);
    Scenario {
        every,
        iterations: job.iterations.min(60) * every,
        slow_ranks: vec![RankFactor { rank, factor }],
        ..job
    }
}

fn swapped(draw: &mut Draw, factor: f64) -> Scenario {
    let counted = draw.between(50.0, 100.0) as u32;
    let job = of_length(draw, &[16, 32, 64], counted);
    let condition = NodeSwap {
        node: draw.below(job.nodes()),
        factor,
        from: Draw::counted(&job, draw.between(0.3, 0.55)),
        to: "gpu-spare".to_owned(),
    };
    Scenario {
        conditions: vec![condition.into()],
        ..job
    }
}

fn node_swap(draw: &mut Draw) -> Scenario {
    let factor = draw.between(1.12, 1.6);
    swapped(draw, factor)
}

fn node_swap_sound(draw: &mut Draw) -> Scenario {
    swapped(draw, 1.0)
}
