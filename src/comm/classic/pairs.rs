//! Two stages: slow iterations against fast ones.

use crate::comm::transfers::{FUSED_DOWN, FUSED_UP, PLAIN};
use crate::features::STEP_TIMER;
use crate::job::Job;
use crate::rules::peer::robust::mean;

/// How many pairs are drawn, and from which seed.
const PAIRS: usize = 3;
const SEED: u64 = 2;
/// Share of the iterations, by step time, that is fast, and that is slow.
const SHARE: f64 = 0.25;

/// The ranks (positions) whose communication takes more than `threshold` times as long in slow iterations as in fast ones,
/// in most of three pairs, with the mean ratio.
#[must_use]
pub fn may_be_abnormal(job: &Job, threshold: f64) -> Vec<(usize, f64)> {
    let pairs = draw(job);
    let tables: Vec<_> = PLAIN
        .into_iter()
        .chain([FUSED_UP, FUSED_DOWN])
        .filter_map(|name| job.timer(name))
        .collect();
    let spent = |rank: usize, step: usize| {
        mean(
            tables
                .iter()
                .map(|table| table.seconds[(rank, step)])
                .filter(|&seconds| seconds > 0.0),
        )
    };
    let of_rank = |rank: usize| {
        let ratios: Vec<f64> = pairs
            .iter()
            .map(|&(fast, slow)| spent(rank, slow) / spent(rank, fast))
            .collect();
        let above = ratios.iter().filter(|&&ratio| ratio > threshold).count();
        (2 * above > PAIRS).then(|| (rank, mean(ratios)))
    };
    (0..job.ranks.len()).filter_map(of_rank).collect()
}

/// Positions of (fast, slow) iterations.
fn draw(job: &Job) -> Vec<(usize, usize)> {
    let Some(step) = job.timer(STEP_TIMER) else {
        return Vec::new();
    };
    let mut order: Vec<(f64, usize)> = (0..job.iterations.len())
        .map(|place| {
            (
                step.seconds.column(place).iter().copied().fold(f64::NAN, f64::max),
                place,
            )
        })
        .filter(|(seconds, _)| seconds.is_finite())
        .collect();
    order.sort_by(|a, b| a.0.total_cmp(&b.0).then(a.1.cmp(&b.1)));
    let share = ((SHARE * order.len() as f64) as usize).max(1);
    if order.len() < 2 {
        return Vec::new();
    }
    let mut state = SEED;
    let mut below = |end: usize| {
        state = state
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        ((state >> 33) as usize) % end
    };
    (0..PAIRS)
        .map(|_| (order[below(share)].1, order[order.len() - 1 - below(share)].1))
        .collect()
}
