//! Jobs for the tests of the peer rules.

use super::{PeerSettings, judge};
use crate::algos::registry;
use crate::contract::timers::{ATTENTION_QKV, BACKWARD_COMPUTE, FORWARD_COMPUTE, INTERVAL_TIME};
use crate::job::Job;
use crate::rules::Verdict;

/// A job of `stages` x `pipelines` single ranks, eight a node, with about one per cent of noise; `own(rank, step)`
/// multiplies a rank's forward, backward and qkv. Rank = stage x pipelines + pipeline.
pub(in crate::rules) fn job(stages: u32, pipelines: u32, iterations: usize, own: impl Fn(u32, usize) -> f64) -> Job {
    let mut state = 7u64;
    let mut draw = || {
        state = state
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        (state >> 40) as f64 / f64::from(1 << 24) - 0.5
    };
    let job = Job::sample(stages as usize, pipelines as usize, 8, iterations);
    [(BACKWARD_COMPUTE, 2.0), (FORWARD_COMPUTE, 1.0), (ATTENTION_QKV, 0.1)]
        .into_iter()
        .fold(job, |job, (timer, seconds)| {
            job.with_timer(timer, |rank, step| {
                seconds * own(rank as u32, step) * (1.0 + 0.03 * draw())
            })
        })
}

/// The job with the step time of all ranks.
pub(in crate::rules) fn with_steps(job: Job, seconds: impl Fn(usize) -> f64) -> Job {
    job.with_timer(INTERVAL_TIME, |_, step| seconds(step))
}

/// The verdict with default settings and all algorithms.
pub(in crate::rules) fn verdict(job: &Job) -> Verdict {
    judge(job, &PeerSettings::default(), registry())
}
