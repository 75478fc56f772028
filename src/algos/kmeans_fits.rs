//! Fits of k-means from many starts, each by greedy k-means++; see [`super::kmeans`] for the sources.

use rand::{Rng, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;

use super::Row;
use super::distance::squared_distance;
use super::lloyd::{self, Partition};

/// Fewest starts of a fit.
pub const STARTS: usize = 10;
/// Small sets have more local optima within reach of chance and cost little: up to 100 starts while `n x starts` stays below this.
const START_BUDGET: usize = 6_400;
const SEED: u64 = 0x6b6d_6561_6e73;

/// The best of at least [`STARTS`] starts; `k` at least 1 and at most the number of distinct points.
pub fn fit(points: &[Row], weights: &[f64], k: usize) -> Partition {
    best(singles(points, weights, k))
}

/// The fits of all starts, in their order.
pub fn singles(points: &[Row], weights: &[f64], k: usize) -> impl Iterator<Item = Partition> {
    (0..starts(points.len())).map(move |start| single(points, weights, k, start))
}

pub(super) fn best(fits: impl Iterator<Item = Partition>) -> Partition {
    fits.reduce(|best, next| if next.inertia < best.inertia { next } else { best })
        .expect("there is at least one start")
}

/// The number of starts for so many distinct points.
pub fn starts(points: usize) -> u64 {
    (START_BUDGET / points.max(1)).clamp(STARTS, 100) as u64
}

/// The fit of one start; the same number gives the same start.
pub fn single(points: &[Row], weights: &[f64], k: usize, start: u64) -> Partition {
    let mut rng = Xoshiro256PlusPlus::seed_from_u64(SEED ^ (start << 8) ^ k as u64);
    let centres = plus_plus(points, weights, k, &mut rng);
    lloyd::run(points, weights, centres)
}

fn plus_plus(points: &[Row], weights: &[f64], k: usize, rng: &mut Xoshiro256PlusPlus) -> Vec<Row> {
    let first = draw(weights.iter().copied(), weights.iter().sum(), rng);
    let mut centres = vec![points[first]];
    let mut nearest: Vec<f64> = points
        .iter()
        .map(|point| squared_distance(point, &points[first]))
        .collect();
    let trials = 2 + (k as f64).ln() as usize;
    while centres.len() < k {
        let mass = || nearest.iter().zip(weights).map(|(distance, weight)| distance * weight);
        let total: f64 = mass().sum();
        let mut best: Option<(f64, usize, Vec<f64>)> = None;
        for _ in 0..trials {
            let candidate = draw(mass(), total, rng);
            let closer: Vec<f64> = points
                .iter()
                .zip(&nearest)
                .map(|(point, &known)| known.min(squared_distance(point, &points[candidate])))
                .collect();
            let potential: f64 = closer
                .iter()
                .zip(weights)
                .map(|(distance, weight)| distance * weight)
                .sum();
            if best.as_ref().is_none_or(|known| potential < known.0) {
                best = Some((potential, candidate, closer));
            }
        }
        let Some((_, chosen, closer)) = best else {
            break;
        };
        centres.push(points[chosen]);
        nearest = closer;
    }
    centres
}

/// An index drawn in proportion to its mass; the last index with any mass when rounding runs past the end.
fn draw(mass: impl Iterator<Item = f64>, total: f64, rng: &mut Xoshiro256PlusPlus) -> usize {
    let mut left = rng.gen_range(0.0..1.0) * total;
    let mut last = 0;
    for (i, share) in mass.enumerate() {
        if share > 0.0 {
            last = i;
            if left < share {
                return i;
            }
        }
        left -= share;
    }
    last
}
