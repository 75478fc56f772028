//! Fuzzy C-means with two clusters; a rank belongs to the one where its membership is higher.
//!
//! Tuned over the fuzzifier m (1.5, 2, 2.5, 3) x 3 random starts. Each start draws every point's membership
//! evenly from 0..1; the centres are the means weighted by `u^m`, the memberships follow from the distances
//! ([`memberships`]), until none changes by `1e-5` or 150 iterations have passed.
//! Source: Bezdek 1981; Dunn 1973. scikit-learn has no counterpart.
//!
//! Cost `O(n)` an iteration. A single distinct row, or n < 2: no candidates. Ties go to cluster 0. Large m can
//! draw both centres together; the labels are then arbitrary but repeatable, and tuning rarely picks them.

use rand::{Rng, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;
use rayon::prelude::*;

use super::space::{Space, squared_distance};
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
    for _ in 0..max_iterations {
        if update(space, m, &mut share) < tolerance {
            break;
        }
    }
    share
}

/// One iteration: centres from the memberships, then memberships from the centres; the largest change.
pub fn update(space: &Space, m: f64, share: &mut [f64]) -> f64 {
    let centres = centres(space, m, share);
    let power = Power::of(1.0 / (m - 1.0));
    let mut largest = 0.0f64;
    for (point, share) in space.points().iter().zip(share) {
        let next = membership(point, &centres, power);
        largest = largest.max((next - *share).abs());
        *share = next;
    }
    largest
}

fn centres(space: &Space, m: f64, share: &[f64]) -> [Row; 2] {
    let power = Power::of(m);
    let mut sums = [[0.0; 4]; 2];
    let mut mass = [0.0; 2];
    for ((point, &weight), &share) in space.points().iter().zip(space.weights()).zip(share) {
        let parts = [weight * power.raise(share), weight * power.raise(1.0 - share)];
        for c in 0..2 {
            mass[c] += parts[c];
            for axis in 0..4 {
                sums[c][axis] += parts[c] * point[axis];
            }
        }
    }
    // A cluster may lose all its mass to rounding (one far outlier): it then stays at the origin, the median.
    [0, 1].map(|c| sums[c].map(|sum| if mass[c] > 0.0 { sum / mass[c] } else { 0.0 }))
}

/// The membership in the first of two centres: `1 / (1 + (d0 / d1)^(2 / (m - 1)))`.
#[inline]
fn membership(point: &Row, centres: &[Row; 2], power: Power) -> f64 {
    let first = squared_distance(point, &centres[0]).max(SMALLEST_SQUARE);
    let second = squared_distance(point, &centres[1]).max(SMALLEST_SQUARE);
    1.0 / (1.0 + power.raise(first / second))
}

/// Powers that the grid needs without `powf`, which would cost more than all the rest.
#[derive(Debug, Clone, Copy)]
enum Power {
    One,
    Two,
    Three,
    Half,
    ThreeHalves,
    FiveHalves,
    TwoThirds,
    Other(f64),
}

impl Power {
    fn of(exponent: f64) -> Self {
        match exponent {
            1.0 => Self::One,
            2.0 => Self::Two,
            3.0 => Self::Three,
            0.5 => Self::Half,
            1.5 => Self::ThreeHalves,
            2.5 => Self::FiveHalves,
            e if (e - 2.0 / 3.0).abs() < 1e-15 => Self::TwoThirds,
            e => Self::Other(e),
        }
    }

    #[inline]
    fn raise(self, x: f64) -> f64 {
        match self {
            Self::One => x,
            Self::Two => x * x,
            Self::Three => x * x * x,
            Self::Half => x.sqrt(),
            Self::ThreeHalves => x * x.sqrt(),
            Self::FiveHalves => x * x * x.sqrt(),
            Self::TwoThirds => (x * x).cbrt(),
            Self::Other(exponent) => x.powf(exponent),
        }
    }
}
