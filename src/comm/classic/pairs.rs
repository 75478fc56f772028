//! Two stages: slow iterations against fast ones.

use crate::contract::constant::constants;
use crate::contract::timers::{BACKWARD_SEND_FORWARD_RECV, FORWARD_SEND_BACKWARD_RECV, PLAIN_TRANSFERS};
use crate::job::Job;
use crate::stats::mean;
use crate::stats::random::Random;

/// How many pairs are drawn, and from which seed.
const PAIRS: usize = 3;
const SEED: u64 = 2;
constants! {
    /// Share of the iterations, by step time, that is fast, and that is slow.
    SHARE: f64 = 0.25;
}

/// The ranks (positions) whose communication takes more than `threshold` times as long in slow iterations as in fast ones,
/// in most of three pairs, with the mean ratio.
#[must_use]
pub fn may_be_abnormal(job: &Job, threshold: f64) -> Vec<(usize, f64)> {
    let pairs = draw(job);
    let tables: Vec<_> = PLAIN_TRANSFERS
        .into_iter()
        .chain([FORWARD_SEND_BACKWARD_RECV, BACKWARD_SEND_FORWARD_RECV])
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
    let (_, seconds) = job.step_seconds();
    let mut order: Vec<(f64, usize)> = seconds
        .into_iter()
        .zip(0..)
        .filter(|(seconds, _)| seconds.is_finite())
        .collect();
    order.sort_by(|a, b| a.0.total_cmp(&b.0).then(a.1.cmp(&b.1)));
    let share = ((SHARE.get() * order.len() as f64) as usize).max(1);
    if order.len() < 2 {
        return Vec::new();
    }
    let mut random = Random::stream(SEED, "pairs of iterations", &[]);
    let mut below = |end: usize| random.below(end);
    (0..PAIRS)
        .map(|_| (order[below(share)].1, order[order.len() - 1 - below(share)].1))
        .collect()
}
