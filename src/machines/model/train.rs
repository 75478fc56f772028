//! Training: Adam over shuffled batches, until the error on windows kept apart no longer falls.

use rand::seq::SliceRandom;
use rand::{Rng, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;
use rayon::prelude::*;

use super::network::{HIDDEN, LANES, LATENT, Lane, Network, PARAMETERS, WINDOW};

/// Settings of a training.
#[derive(Debug, Clone, Copy)]
pub struct Training {
    /// Seed of everything drawn.
    pub seed: u64,
    /// Most passes over the windows.
    pub epochs: usize,
    /// Passes without a better error after which training stops.
    pub patience: usize,
    /// Step size of Adam at the start; it falls to a tenth over the epochs.
    pub rate: f32,
}

impl Default for Training {
    fn default() -> Self {
        Self {
            seed: 1,
            epochs: 60,
            patience: 8,
            rate: 4e-3,
        }
    }
}

/// A trained network and how it went.
#[derive(Debug, Clone)]
pub struct Trained {
    /// The network of the best epoch.
    pub network: Network<f32>,
    /// Mean squared error on the windows kept apart.
    pub error: f64,
    /// Passes done.
    pub epochs: usize,
}

/// Windows of a batch: 16 groups of lanes.
const BATCH: usize = 16 * LANES;
/// Every so many windows one is kept apart.
const KEPT_APART: usize = 10;

/// Small random weights, as usual for LSTMs: uniform within 1 / sqrt(hidden size).
#[must_use]
pub fn initial(seed: u64) -> Network<f32> {
    let mut random = Xoshiro256PlusPlus::seed_from_u64(seed);
    let widest = 1.0 / (HIDDEN as f32).sqrt();
    Network {
        parameters: (0..PARAMETERS).map(|_| random.gen_range(-widest..widest)).collect(),
    }
}

/// Trains on windows that are scaled to 0..1. The same windows and seed give the same network, whatever the number of
/// threads. `tell` is given the epoch and the error after each one.
#[must_use]
pub fn train(windows: &[[f32; WINDOW]], training: Training, tell: &dyn Fn(usize, f64)) -> Trained {
    let mut random = Xoshiro256PlusPlus::seed_from_u64(training.seed);
    let mut places: Vec<u32> = (0..windows.len() as u32).collect();
    places.shuffle(&mut random);
    let (apart, mut used) = {
        let apart = places.split_off(places.len() - places.len() / KEPT_APART);
        (apart, places)
    };
    let apart = if apart.is_empty() { used.clone() } else { apart };
    let mut network = initial(training.seed);
    let mut adam = Adam::default();
    let mut best = Trained {
        error: error_of(&network, windows, &apart),
        network: network.clone(),
        epochs: 0,
    };
    let mut since_best = 0;
    for epoch in 1..=training.epochs {
        used.shuffle(&mut random);
        let fallen = (epoch - 1) as f32 / training.epochs as f32;
        let rate = training.rate * 0.1_f32.powf(fallen);
        for batch in used.chunks(BATCH) {
            let seed: u64 = random.r#gen();
            let gradient = gradient_of(&network, windows, batch, seed);
            adam.step(&mut network.parameters, &gradient, rate);
        }
        let error = error_of(&network, windows, &apart);
        tell(epoch, error);
        since_best += 1;
        if error < best.error {
            if error < 0.995 * best.error {
                since_best = 0;
            }
            best = Trained {
                network: network.clone(),
                error,
                epochs: epoch,
            };
        }
        best.epochs = epoch;
        if since_best >= training.patience {
            break;
        }
    }
    best
}

fn group(windows: &[[f32; WINDOW]], places: &[u32]) -> [Lane<f32>; WINDOW] {
    // A group that is not full repeats its last window; the caller counts only the first ones.
    std::array::from_fn(|step| std::array::from_fn(|lane| windows[places[lane.min(places.len() - 1)] as usize][step]))
}

/// Mean gradient of a batch. Groups are summed in order, so that threads change nothing.
fn gradient_of(network: &Network<f32>, windows: &[[f32; WINDOW]], batch: &[u32], seed: u64) -> Vec<f32> {
    let groups: Vec<&[u32]> = batch.chunks_exact(LANES).collect();
    let gradients: Vec<Vec<f32>> = groups
        .par_iter()
        .enumerate()
        .with_min_len(4)
        .map(|(place, places)| {
            let mut random = Xoshiro256PlusPlus::seed_from_u64(seed ^ (place as u64).wrapping_mul(0x9E37_79B9));
            let noise: [Lane<f32>; LATENT] = std::array::from_fn(|_| std::array::from_fn(|_| normal(&mut random)));
            let mut gradient = vec![0.0; PARAMETERS];
            network.backward(&group(windows, places), &noise, &mut gradient);
            gradient
        })
        .collect();
    let mut mean = vec![0.0; PARAMETERS];
    let count = (groups.len() * LANES).max(1) as f32;
    for gradient in gradients {
        for (sum, value) in mean.iter_mut().zip(gradient) {
            *sum += value / count;
        }
    }
    mean
}

/// A sum of four uniform draws, scaled to variance 1: near enough to normal for the latent noise, and quick.
fn normal(random: &mut Xoshiro256PlusPlus) -> f32 {
    let bits: u64 = random.r#gen();
    let sum: u64 = (0..4).map(|part| (bits >> (16 * part)) & 0xFFFF).sum();
    (sum as f32 / 65_536.0 - 2.0) * 1.732_050_8
}

/// Mean squared error of the reconstructions of some windows.
#[must_use]
pub fn error_of(network: &Network<f32>, windows: &[[f32; WINDOW]], places: &[u32]) -> f64 {
    let errors: Vec<f64> = places
        .par_chunks(LANES)
        .map(|places| {
            let input = group(windows, places);
            let output = network.reconstruct(&input);
            let mut sum = 0.0;
            for (input, output) in input.iter().zip(&output) {
                for (input, output) in input.iter().zip(output).take(places.len()) {
                    sum += f64::from(input - output).powi(2);
                }
            }
            sum
        })
        .collect();
    errors.iter().sum::<f64>() / (places.len() * WINDOW).max(1) as f64
}

/// Adam (Kingma and Ba 2015) with its usual constants.
struct Adam {
    first: Vec<f32>,
    second: Vec<f32>,
    steps: i32,
}

impl Default for Adam {
    fn default() -> Self {
        Self {
            first: vec![0.0; PARAMETERS],
            second: vec![0.0; PARAMETERS],
            steps: 0,
        }
    }
}

impl Adam {
    fn step(&mut self, parameters: &mut [f32], gradient: &[f32], rate: f32) {
        const FIRST: f32 = 0.9;
        const SECOND: f32 = 0.999;
        self.steps = self.steps.saturating_add(1);
        let (first_bias, second_bias) = (1.0 - FIRST.powi(self.steps), 1.0 - SECOND.powi(self.steps));
        for (place, &slope) in gradient.iter().enumerate() {
            let first = &mut self.first[place];
            let second = &mut self.second[place];
            *first = FIRST * *first + (1.0 - FIRST) * slope;
            *second = SECOND * *second + (1.0 - SECOND) * slope * slope;
            parameters[place] -= rate * (*first / first_bias) / ((*second / second_bias).sqrt() + 1e-8);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn waves(count: usize) -> Vec<[f32; WINDOW]> {
        (0..count)
            .map(|window| std::array::from_fn(|step| 0.5 + 0.3 * ((window * 7 + step) as f32 * 0.4).sin()))
            .collect()
    }

    #[test]
    fn training_lowers_the_error_and_is_the_same_with_any_threads() {
        let windows = waves(2_000);
        let training = Training {
            epochs: 12,
            ..Training::default()
        };
        let pool = |threads| {
            rayon::ThreadPoolBuilder::new()
                .num_threads(threads)
                .build()
                .expect("threads")
        };
        let one = pool(1).install(|| train(&windows, training, &|_, _| {}));
        let two = pool(2).install(|| train(&windows, training, &|_, _| {}));
        assert_eq!(one.network, two.network);
        let untrained = error_of(&initial(1), &windows, &[0, 5, 9]);
        assert!(one.error < 0.2 * untrained, "{} {untrained}", one.error);
    }
}
