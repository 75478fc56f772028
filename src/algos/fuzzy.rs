//! Fuzzy C-means with two clusters; a rank belongs to the one where its membership is higher.
//!
//! Tuned over the fuzzifier m (1.5, 2, 2.5, 3) x 3 random starts. Each start draws every point's membership
//! evenly from 0..1; the centres are the means weighted by `u^m`, the memberships follow from the distances ([`update`]), until none changes by `1e-5` or 150 iterations have passed.
//! Source: Bezdek 1981; Dunn 1973. scikit-learn has no counterpart.
//!
//! Cost `O(n)` an iteration. A single distinct row, or n < 2: no candidates. Ties go to cluster 0. Large m can
//! draw both centres together; the labels are then arbitrary but repeatable, and tuning rarely picks them.

use rand::{Rng, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;
use rayon::prelude::*;

use super::distance::squared_distance;
use super::space::Space;
use super::{Algorithm, Clustering, Row};

/// The fuzzifiers of the grid.
pub const FUZZIFIERS: [f64; 4] = [1.5, 2.0, 2.5, 3.0];
/// Random starts of each fuzzifier.
pub const STARTS: u64 = 3;
/// Largest change of a membership at which the iteration stops.
pub const TOLERANCE: f64 = 1e-5;
/// Most iterations of one start.
pub const MAX_ITERATIONS: usize = 150;

const SEED: u64 = 0x0066_757a_7a79;
/// Squared distances below this count as this, so that a rank on a centre has a membership.
const SMALLEST_SQUARE: f64 = 1e-18;

/// See the module.
#[derive(Debug, Clone, Copy)]
pub struct Fuzzy;

impl Algorithm for Fuzzy {
    fn name(&self) -> &'static str {
        "fuzzy"
    }

    fn candidates(&self, space: &Space) -> Vec<Clustering> {
        if space.points().len() < 2 {
            return Vec::new();
        }
        let grid: Vec<(f64, u64)> = FUZZIFIERS
            .iter()
            .flat_map(|&m| (0..STARTS).map(move |start| (m, start)))
            .collect();
        grid.par_iter()
            .map(|&(m, start)| {
                let share = fit(space, m, start, TOLERANCE, MAX_ITERATIONS);
                let labels: Vec<u32> = share.iter().map(|&share| u32::from(share < 0.5)).collect();
                space.clustering(&labels, format!("m={m}, start={start}"))
            })
            .collect()
    }
}

/// The membership of each point in cluster 0 (cluster 1 has the rest) after iterating from a numbered start.
pub fn fit(space: &Space, m: f64, start: u64, tolerance: f64, max_iterations: usize) -> Vec<f64> {
    let mut rng = Xoshiro256PlusPlus::seed_from_u64(SEED ^ start);
    let mut share: Vec<f64> = space.points().iter().map(|_| rng.gen_range(0.0..1.0)).collect();
    iterate(space, m, &mut share, tolerance, max_iterations);
    share
}

/// One iteration: centres from the memberships, then memberships from the centres; the largest change.
pub fn update(space: &Space, m: f64, share: &mut [f64]) -> f64 {
    iterate(space, m, share, 0.0, 1)
}

/// Picks the powers of the grid without `powf`, which would cost more than all the rest.
fn iterate(space: &Space, m: f64, share: &mut [f64], tolerance: f64, max_iterations: usize) -> f64 {
    let run = Run {
        space,
        tolerance,
        max_iterations,
    };
    match m {
        1.5 => run.iterate(share, |u| u * u.sqrt(), |ratio| ratio * ratio),
        2.0 => run.iterate(share, |u| u * u, |ratio| ratio),
        2.5 => run.iterate(share, |u| u * u * u.sqrt(), |ratio| (ratio * ratio).cbrt()),
        3.0 => run.iterate(share, |u| u * u * u, |ratio| ratio.sqrt()),
        _ => run.iterate(share, |u| u.powf(m), |ratio| ratio.powf(1.0 / (m - 1.0))),
    }
}

struct Run<'a> {
    space: &'a Space,
    tolerance: f64,
    max_iterations: usize,
}

impl Run<'_> {
    /// `weigh(u) = u^m`, `raise(ratio) = ratio^(1 / (m - 1))`; the last iteration's largest change.
    fn iterate(&self, share: &mut [f64], weigh: impl Fn(f64) -> f64, raise: impl Fn(f64) -> f64) -> f64 {
        let (points, weights) = (self.space.points(), self.space.weights());
        let mut sums = Sums::default();
        for ((point, &weight), &share) in points.iter().zip(weights).zip(&*share) {
            sums.add(point, weight * weigh(share), weight * weigh(1.0 - share));
        }
        let mut largest = 0.0f64;
        for _ in 0..self.max_iterations {
            let centres = sums.centres();
            sums = Sums::default();
            largest = 0.0;
            for ((point, &weight), share) in points.iter().zip(weights).zip(&mut *share) {
                let first = squared_distance(point, &centres[0]).max(SMALLEST_SQUARE);
                let second = squared_distance(point, &centres[1]).max(SMALLEST_SQUARE);
                let next = 1.0 / (1.0 + raise(first / second));
                largest = largest.max((next - *share).abs());
                *share = next;
                sums.add(point, weight * weigh(next), weight * weigh(1.0 - next));
            }
            if largest < self.tolerance {
                break;
            }
        }
        largest
    }
}

/// Weighted sums of the points, a cluster each.
#[derive(Debug, Default, Clone, Copy)]
struct Sums {
    points: [Row; 2],
    mass: [f64; 2],
}

impl Sums {
    #[inline]
    fn add(&mut self, point: &Row, first: f64, second: f64) {
        self.mass[0] += first;
        self.mass[1] += second;
        for axis in 0..4 {
            self.points[0][axis] += first * point[axis];
            self.points[1][axis] += second * point[axis];
        }
    }

    /// A cluster may lose all its mass to rounding (one far outlier): its centre is then the origin, the median.
    fn centres(&self) -> [Row; 2] {
        [0, 1].map(|c| {
            let mass = self.mass[c];
            self.points[c].map(|sum| if mass > 0.0 { sum / mass } else { 0.0 })
        })
    }
}
