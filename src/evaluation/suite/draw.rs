//! Seeded draws of what a job of the suite looks like before anything is wrong with it.

use super::NoiseLevel;
use crate::contract::defaults::WARMUP_ITERATIONS;
use crate::evaluation::simulate::Scenario;
use crate::stats::random::Random;

/// Most ranks of a job: enough for every kind, few enough for hundreds of jobs.
const MOST_RANKS: usize = 256;
/// How often a shape is drawn before the smallest that fits is taken.
const TRIES: usize = 1000;

/// Sizes with the weight of each.
type Weighted = &'static [(usize, f64)];

const STAGES: Weighted = &[(1, 0.3), (2, 0.3), (4, 0.25), (8, 0.15)];
const TENSOR: Weighted = &[(1, 0.4), (2, 0.25), (4, 0.2), (8, 0.15)];
const REPLICAS: Weighted = &[
    (1, 0.08),
    (2, 0.12),
    (3, 0.1),
    (4, 0.2),
    (8, 0.2),
    (16, 0.15),
    (24, 0.05),
    (32, 0.1),
];

/// Parallel sizes of a job.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Shape {
    /// Pipeline stages.
    pub pp: usize,
    /// Tensor-parallel size.
    pub tp: usize,
    /// Data-parallel size.
    pub dp: usize,
}

impl Shape {
    /// Number of ranks.
    pub fn ranks(self) -> usize {
        self.pp * self.tp * self.dp
    }

    /// Ranks a stage.
    pub fn stage_ranks(self) -> usize {
        self.tp * self.dp
    }
}

/// The draws of one job.
#[derive(Debug)]
pub struct Draw {
    noise: Random,
    level: NoiseLevel,
}

impl Draw {
    /// The draws that belong to a kind, a seed and a level.
    pub fn new(kind: &str, seed: u64, level: NoiseLevel) -> Self {
        Self {
            noise: Random::stream(seed, kind, &[level as u64]),
            level,
        }
    }

    /// Whether the noise is hard.
    pub fn hard(&self) -> bool {
        self.level == NoiseLevel::Hard
    }

    /// Uniform in `[least, most)`.
    pub fn between(&mut self, least: f64, most: f64) -> f64 {
        least + (most - least) * self.noise.uniform()
    }

    /// Between two positive numbers, every factor alike.
    pub fn scale(&mut self, least: f64, most: f64) -> f64 {
        self.between(least.ln(), most.ln()).exp()
    }

    /// Uniform in `0..end`; 0 for an empty range.
    pub fn below(&mut self, end: usize) -> usize {
        ((self.noise.uniform() * end as f64) as usize).min(end.saturating_sub(1))
    }

    /// One of a few values, which must not be none.
    pub fn one_of<T: Copy>(&mut self, values: &[T]) -> T {
        values[self.below(values.len())]
    }

    /// True in a share of the draws.
    pub fn chance(&mut self, share: f64) -> bool {
        self.noise.uniform() < share
    }

    /// `count` distinct numbers of `0..end`, ascending.
    pub fn some_of(&mut self, count: usize, end: usize) -> Vec<usize> {
        let mut left: Vec<usize> = (0..end).collect();
        let mut taken: Vec<usize> = (0..count.min(end))
            .map(|_| {
                let place = self.below(left.len());
                left.swap_remove(place)
            })
            .collect();
        taken.sort_unstable();
        taken
    }

    fn weighted(&mut self, sizes: Weighted) -> usize {
        let mut left = self.noise.uniform();
        for &(size, weight) in sizes {
            left -= weight;
            if left < 0.0 {
                return size;
            }
        }
        sizes.last().map_or(1, |&(size, _)| size)
    }

    /// A shape of 2 to 256 ranks that fits.
    pub fn shape(&mut self, fits: impl Fn(Shape) -> bool) -> Shape {
        let fits = |shape: Shape| (2..=MOST_RANKS).contains(&shape.ranks()) && fits(shape);
        for _ in 0..TRIES {
            let shape = Shape {
                pp: self.weighted(STAGES),
                tp: self.weighted(TENSOR),
                dp: self.weighted(REPLICAS),
            };
            if fits(shape) {
                return shape;
            }
        }
        // So rare a shape is looked for in order.
        let all = STAGES.iter().flat_map(|&(pp, _)| {
            TENSOR
                .iter()
                .flat_map(move |&(tp, _)| REPLICAS.iter().map(move |&(dp, _)| Shape { pp, tp, dp }))
        });
        all.into_iter()
            .find(|&shape| fits(shape))
            .unwrap_or(Shape { pp: 1, tp: 1, dp: 8 })
    }

    /// A healthy job of a shape, with the noise of the level.
    pub fn healthy(&mut self, shape: Shape) -> Scenario {
        let hard = self.hard();
        // Sampled or short windows and long ones; beyond them come the iterations of the start-up.
        let counted = if hard {
            self.scale(20.0, 200.0)
        } else {
            self.between(15.0, 61.0)
        };
        let microbatches = self.one_of(&[4, 8, 8, 16]);
        let step_seconds = self.one_of(&[0.3, 0.8, 1.6]);
        Scenario {
            tp: shape.tp,
            pp: shape.pp,
            dp: shape.dp,
            microbatches,
            stage_seconds: step_seconds / microbatches as f64,
            transfer_seconds: 0.02 * step_seconds / microbatches as f64,
            iterations: WARMUP_ITERATIONS + counted as u32,
            first_iteration: self.one_of(&[1, 1000]),
            noise: if hard {
                self.scale(0.008, 0.05)
            } else {
                self.scale(0.006, 0.03)
            },
            rank_spread: if hard {
                self.between(0.003, 0.01)
            } else {
                self.between(0.004, 0.008)
            },
            outliers: if hard && self.chance(0.4) { 0.01 } else { 0.0005 },
            dirty: if hard && self.chance(0.2) { 0.003 } else { 0.0 },
            qkv: !(hard && self.chance(0.15)),
            trace: false,
            seed: self.below(1 << 30) as u64,
            ..Scenario::default()
        }
    }

    /// An iteration at a share of those that count, the first at 0.
    pub fn counted(scenario: &Scenario, share: f64) -> u32 {
        let counted = scenario.iterations.saturating_sub(WARMUP_ITERATIONS);
        let place = (f64::from(counted) * share) as u32;
        (scenario.first_iteration + WARMUP_ITERATIONS + place).min(scenario.last_iteration())
    }
}
