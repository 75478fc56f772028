//! Jobs for the tests of the peer rules.

use ndarray::Array2;

use super::{PeerSettings, judge};
use crate::algos::registry;
use crate::contract::timers::{ATTENTION_QKV, BACKWARD_COMPUTE, FORWARD_COMPUTE, INTERVAL_TIME};
use crate::job::{DataQuality, Job, Place, TimerTable, Topology, TopologyOrigin};
use crate::rules::Verdict;

/// A job of `stages` x `pipelines` single ranks, eight a node, with about one per cent of noise; `own(rank, step)`
/// multiplies a rank's forward, backward and qkv. Rank = stage x pipelines + pipeline.
pub(super) fn job(stages: u32, pipelines: u32, iterations: usize, own: impl Fn(u32, usize) -> f64) -> Job {
    let ranks: Vec<u32> = (0..stages * pipelines).collect();
    let mut state = 7u64;
    let mut draw = || {
        state = state
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        (state >> 40) as f64 / f64::from(1 << 24) - 0.5
    };
    let mut timer = |name: &str, seconds: f64| TimerTable {
        name: name.to_owned(),
        seconds: Array2::from_shape_fn((ranks.len(), iterations), |(rank, step)| {
            seconds * own(rank as u32, step) * (1.0 + 0.03 * draw())
        }),
    };
    let timers = vec![
        timer(BACKWARD_COMPUTE, 2.0),
        timer(FORWARD_COMPUTE, 1.0),
        timer(ATTENTION_QKV, 0.1),
    ];
    let place = |&rank: &u32| Place {
        stage: rank / pipelines,
        pipeline: rank % pipelines,
        member: 0,
    };
    let topology = Topology {
        sizes: [
            ("dp".to_owned(), pipelines),
            ("pp".to_owned(), (ranks.len() as u32).div_ceil(pipelines)),
        ]
        .into(),
        origin: TopologyOrigin::Rows,
        places: ranks.iter().map(place).collect(),
    };
    Job {
        id: "j".to_owned(),
        nodes: ranks.iter().map(|rank| format!("n{}", rank / 8)).collect(),
        iterations: (0..iterations as i64).collect(),
        timers,
        iteration_times: (0..iterations as i64).map(|step| step * 10_000_000).collect(),
        topology,
        runs: Vec::new(),
        calls: Vec::new(),
        quality: DataQuality::default(),
        reduced: None,
        ranks,
    }
}

/// The job with the step time of all ranks.
pub(super) fn with_steps(mut job: Job, seconds: impl Fn(usize) -> f64) -> Job {
    job.timers.push(TimerTable {
        name: INTERVAL_TIME.to_owned(),
        seconds: Array2::from_shape_fn((job.ranks.len(), job.iterations.len()), |(_, step)| seconds(step)),
    });
    job.timers.sort_by(|a, b| a.name.cmp(&b.name));
    job
}

/// The verdict with default settings and all algorithms.
pub(super) fn verdict(job: &Job) -> Verdict {
    judge(job, &PeerSettings::default(), registry())
}
