//! Jobs for the tests of communication.

use std::collections::BTreeMap;

use ndarray::Array2;

use super::transfers::Series;
use crate::job::{CallTable, DataQuality, Job, Place, TimerTable, Topology, TopologyOrigin};

/// Fused pairs of a link in an iteration.
const FUSED: usize = 4;
/// A usual transfer, seconds.
pub(super) const TRANSFER: f64 = 0.01;

/// Stages x pipelines of single ranks, `per_node` a node, rank = stage x pipelines + pipeline, with single calls:
/// transfers take 10 ms times `factor(sender, receiver, iteration)`, 5 % up and down, and one end of each waits up to 1 s.
pub(super) fn job(
    [stages, pipelines, per_node]: [usize; 3],
    iterations: usize,
    factor: impl Fn(usize, usize, usize) -> f64,
) -> Job {
    let ranks = stages * pipelines;
    let mut state = 5u64;
    let mut draw = || {
        state = state
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        (state >> 40) as f64 / f64::from(1 << 24)
    };
    let mut cells = BTreeMap::<&str, Vec<Vec<f64>>>::new();
    for stage in 0..stages - 1 {
        for pipeline in 0..pipelines {
            let (up, down) = (stage * pipelines + pipeline, (stage + 1) * pipelines + pipeline);
            for step in 0..iterations {
                let (forward, backward) = (factor(up, down, step), factor(down, up, step));
                for (series, factor, count) in [
                    (Series::Forward, forward, stages - 1 - stage),
                    (Series::Backward, backward, stages - 1 - stage),
                    (Series::Fused, forward.max(backward), FUSED),
                ] {
                    for _ in 0..count {
                        let transfer = TRANSFER * factor * (0.95 + 0.1 * draw());
                        let wait = draw();
                        let waits = if draw() < 0.5 { [wait, 0.0] } else { [0.0, wait] };
                        let (up_timer, down_timer) = series.timers();
                        for (timer, rank, wait) in [(up_timer, up, waits[0]), (down_timer, down, waits[1])] {
                            let table = cells
                                .entry(timer)
                                .or_insert_with(|| vec![Vec::new(); ranks * iterations]);
                            table[rank * iterations + step].push(transfer + wait);
                        }
                    }
                }
            }
        }
    }
    let calls = cells
        .into_iter()
        .map(|(name, cells)| CallTable::new(name, iterations, cells.iter().map(Vec::as_slice)))
        .collect();
    let place = |rank: usize| Place {
        stage: (rank / pipelines) as u32,
        pipeline: (rank % pipelines) as u32,
        member: 0,
    };
    Job {
        id: "j".to_owned(),
        ranks: (0..ranks as u32).collect(),
        nodes: (0..ranks).map(|rank| format!("n{}", rank / per_node)).collect(),
        iterations: (0..iterations as i64).collect(),
        iteration_times: (0..iterations as i64).collect(),
        timers: Vec::new(),
        calls,
        topology: Topology {
            sizes: [("dp".to_owned(), pipelines as u32), ("pp".to_owned(), stages as u32)].into(),
            origin: TopologyOrigin::Rows,
            places: (0..ranks).map(place).collect(),
        },
        runs: Vec::new(),
        quality: DataQuality::default(),
        moves: Vec::new(),
        reduced: None,
    }
}

/// The job with a timer.
pub(super) fn with_timer(mut job: Job, name: &str, seconds: impl Fn(usize, usize) -> f64) -> Job {
    job.timers.push(TimerTable {
        name: name.to_owned(),
        seconds: Array2::from_shape_fn((job.ranks.len(), job.iterations.len()), |(rank, step)| {
            seconds(rank, step)
        }),
    });
    job.timers.sort_by(|a, b| a.name.cmp(&b.name));
    job
}

/// The job with the sums of its calls as timers, and no calls.
pub(super) fn with_sums_only(mut job: Job) -> Job {
    for table in std::mem::take(&mut job.calls) {
        job = with_timer(job, &table.name.clone(), |rank, step| table.of(rank, step).iter().sum());
    }
    job
}
