//! Seeded random numbers. Every draw belongs to a named stream, so that adding one fault or
//! changing the thread count does not change the others.

use rand::{Rng, RngCore, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;

/// A random stream.
#[derive(Debug, Clone)]
pub struct Random {
    generator: Xoshiro256PlusPlus,
    spare: Option<f64>,
}

fn mix(mut x: u64) -> u64 {
    x = (x ^ (x >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    x = (x ^ (x >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    x ^ (x >> 31)
}

impl Random {
    /// The stream of `seed` that is called `name`, at `position` (e.g. run and iteration).
    pub fn stream(seed: u64, name: &str, position: &[u64]) -> Self {
        let mut state = mix(seed.wrapping_add(0x9e37_79b9_7f4a_7c15));
        for byte in name.bytes() {
            state = mix(state.wrapping_add(u64::from(byte) + 1));
        }
        for part in position {
            state = mix(state.wrapping_add(part.wrapping_mul(0x9e37_79b9_7f4a_7c15) + 1));
        }
        Self {
            generator: Xoshiro256PlusPlus::seed_from_u64(state),
            spare: None,
        }
    }

    /// Uniform in [0, 1).
    pub fn uniform(&mut self) -> f64 {
        (self.generator.next_u64() >> 11) as f64 / (1_u64 << 53) as f64
    }

    /// A whole number below `end`, which is above 0.
    pub fn below(&mut self, end: usize) -> usize {
        self.generator.gen_range(0..end)
    }

    /// Standard normal (Box-Muller).
    pub fn normal(&mut self) -> f64 {
        if let Some(value) = self.spare.take() {
            return value;
        }
        let radius = (-2.0 * (1.0 - self.uniform()).ln()).sqrt();
        let (sin, cos) = (std::f64::consts::TAU * self.uniform()).sin_cos();
        self.spare = Some(radius * sin);
        radius * cos
    }

    /// A factor with mean 1 and relative standard deviation `sd`, never below a fifth.
    pub fn factor(&mut self, sd: f64) -> f64 {
        (1.0 + sd * self.normal()).max(0.2)
    }

    /// A log-normal load with mean 1 and coefficient of variation `cv`.
    pub fn load(&mut self, cv: f64) -> f64 {
        let variance = (cv * cv).ln_1p();
        (variance.sqrt() * self.normal() - variance / 2.0).exp()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn streams_repeat_and_differ() {
        let take = |name, at: u64| {
            let mut noise = Random::stream(7, name, &[at]);
            [noise.uniform(), noise.normal(), noise.normal()]
        };
        assert_eq!(take("a", 1), take("a", 1));
        assert_ne!(take("a", 1), take("a", 2));
        assert_ne!(take("a", 1), take("b", 1));
    }

    #[test]
    fn moments() {
        let mut noise = Random::stream(1, "moments", &[]);
        let loads: Vec<f64> = (0..20_000).map(|_| noise.load(0.3)).collect();
        let mean = loads.iter().sum::<f64>() / 2e4;
        let variance = loads.iter().map(|x| (x - mean).powi(2)).sum::<f64>() / 2e4;
        assert!((mean - 1.0).abs() < 0.01, "{mean}");
        assert!((variance.sqrt() - 0.3).abs() < 0.02, "{variance}");
    }
}
