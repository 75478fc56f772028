//! The network: encoder LSTM, latent variables, decoder LSTM; forward and backward over [`LANES`] windows at once.
//!
//! Encoder: an LSTM reads the window sample by sample; mean and logarithm of the variance of the latent variables are
//! linear in its last hidden state. Decoder: an LSTM gets the latent variables at every step; each sample is linear in
//! its hidden state. Gates stand in the order input, forget, cell, output. The loss is the mean squared error plus
//! [`KL_WEIGHT`] times the divergence of the latent variables from a standard normal one (Kingma and Welling 2014).

use std::ops::Range;

use super::real::Real;

/// Samples of a window.
pub const WINDOW: usize = crate::machines::align::WINDOW_SAMPLES;
/// Hidden size of both LSTMs.
pub const HIDDEN: usize = 4;
/// Number of latent variables.
pub const LATENT: usize = 8;
/// Windows computed at once.
pub const LANES: usize = 16;
const GATES: usize = 4 * HIDDEN;
/// Weight of the divergence: large enough to keep the latent space smooth, small enough for a mean squared error of 1e-4.
pub const KL_WEIGHT: f64 = 1e-5;

const ENC_X: Range<usize> = 0..GATES;
const ENC_H: Range<usize> = ENC_X.end..ENC_X.end + GATES * HIDDEN;
const ENC_B: Range<usize> = ENC_H.end..ENC_H.end + GATES;
const MEAN_W: Range<usize> = ENC_B.end..ENC_B.end + LATENT * HIDDEN;
const MEAN_B: Range<usize> = MEAN_W.end..MEAN_W.end + LATENT;
const VAR_W: Range<usize> = MEAN_B.end..MEAN_B.end + LATENT * HIDDEN;
const VAR_B: Range<usize> = VAR_W.end..VAR_W.end + LATENT;
const DEC_Z: Range<usize> = VAR_B.end..VAR_B.end + GATES * LATENT;
const DEC_H: Range<usize> = DEC_Z.end..DEC_Z.end + GATES * HIDDEN;
const DEC_B: Range<usize> = DEC_H.end..DEC_H.end + GATES;
const OUT_W: Range<usize> = DEC_B.end..DEC_B.end + HIDDEN;
const OUT_B: Range<usize> = OUT_W.end..OUT_W.end + 1;
/// Number of parameters.
pub const PARAMETERS: usize = OUT_B.end;

/// A value for each window of a batch.
pub type Lane<F> = [F; LANES];

/// The parameters, one after the other.
#[derive(Debug, Clone, PartialEq)]
pub struct Network<F> {
    /// As many as [`PARAMETERS`].
    pub parameters: Vec<F>,
}

/// States of one step of an LSTM.
#[derive(Clone, Copy)]
struct Step<F> {
    gates: [Lane<F>; GATES],
    cell: [Lane<F>; HIDDEN],
    cell_tanh: [Lane<F>; HIDDEN],
    hidden: [Lane<F>; HIDDEN],
}

impl<F: Real> Step<F> {
    fn zero() -> Self {
        let zero = [F::default(); LANES];
        Self {
            gates: [zero; GATES],
            cell: [zero; HIDDEN],
            cell_tanh: [zero; HIDDEN],
            hidden: [zero; HIDDEN],
        }
    }
}

#[inline(always)]
fn add_scaled<F: Real>(into: &mut Lane<F>, weight: F, lane: &Lane<F>) {
    for (into, &value) in into.iter_mut().zip(lane) {
        *into += weight * value;
    }
}

#[inline(always)]
fn dot<F: Real>(a: &Lane<F>, b: &Lane<F>) -> F {
    let mut sum = F::default();
    for (&a, &b) in a.iter().zip(b) {
        sum += a * b;
    }
    sum
}

/// One step of an LSTM: `input` is what the gates get from outside, bias included.
#[inline(always)]
fn lstm_step<F: Real>(weights: &[F], input: &[Lane<F>; GATES], before: &Step<F>) -> Step<F> {
    let mut step = Step::zero();
    for gate in 0..GATES {
        let mut sum = input[gate];
        for hidden in 0..HIDDEN {
            add_scaled(&mut sum, weights[gate * HIDDEN + hidden], &before.hidden[hidden]);
        }
        let is_cell = (2 * HIDDEN..3 * HIDDEN).contains(&gate);
        for value in &mut sum {
            *value = if is_cell { value.tanh() } else { value.sigmoid() };
        }
        step.gates[gate] = sum;
    }
    for unit in 0..HIDDEN {
        for lane in 0..LANES {
            let [enter, keep, new, leave] = [0, 1, 2, 3].map(|part| step.gates[part * HIDDEN + unit][lane]);
            let cell = keep * before.cell[unit][lane] + enter * new;
            let tanh = cell.tanh();
            step.cell[unit][lane] = cell;
            step.cell_tanh[unit][lane] = tanh;
            step.hidden[unit][lane] = leave * tanh;
        }
    }
    step
}

/// Gradient through one step. Takes the gradients of hidden state and cell after it; gives those of the gates' inputs,
/// and of hidden state and cell before it.
#[inline(always)]
fn lstm_step_back<F: Real>(
    weights: &[F],
    before: &Step<F>,
    step: &Step<F>,
    hidden_grad: &mut [Lane<F>; HIDDEN],
    cell_grad: &mut [Lane<F>; HIDDEN],
) -> [Lane<F>; GATES] {
    let one = F::of(1.0);
    let mut gates = [[F::default(); LANES]; GATES];
    for unit in 0..HIDDEN {
        for lane in 0..LANES {
            let [enter, keep, new, leave] = [0, 1, 2, 3].map(|part| step.gates[part * HIDDEN + unit][lane]);
            let tanh = step.cell_tanh[unit][lane];
            let hidden = hidden_grad[unit][lane];
            let cell = cell_grad[unit][lane] + hidden * leave * (one - tanh * tanh);
            gates[unit][lane] = cell * new * enter * (one - enter);
            gates[HIDDEN + unit][lane] = cell * before.cell[unit][lane] * keep * (one - keep);
            gates[2 * HIDDEN + unit][lane] = cell * enter * (one - new * new);
            gates[3 * HIDDEN + unit][lane] = hidden * tanh * leave * (one - leave);
            cell_grad[unit][lane] = cell * keep;
        }
    }
    for (unit, into) in hidden_grad.iter_mut().enumerate() {
        *into = [F::default(); LANES];
        for (gate, grad) in gates.iter().enumerate() {
            add_scaled(into, weights[gate * HIDDEN + unit], grad);
        }
    }
    gates
}

impl<F: Real> Network<F> {
    fn part(&self, range: Range<usize>) -> &[F] {
        &self.parameters[range]
    }

    fn encode(&self, window: &[Lane<F>; WINDOW]) -> [Step<F>; WINDOW + 1] {
        let mut steps = [Step::zero(); WINDOW + 1];
        let (from_x, bias) = (self.part(ENC_X), self.part(ENC_B));
        for (place, sample) in window.iter().enumerate() {
            let mut input = [[F::default(); LANES]; GATES];
            for (gate, input) in input.iter_mut().enumerate() {
                *input = [bias[gate]; LANES];
                add_scaled(input, from_x[gate], sample);
            }
            steps[place + 1] = lstm_step(self.part(ENC_H), &input, &steps[place]);
        }
        steps
    }

    fn linear(&self, weights: Range<usize>, bias: Range<usize>, hidden: &[Lane<F>; HIDDEN]) -> [Lane<F>; LATENT] {
        let (weights, bias) = (self.part(weights), self.part(bias));
        std::array::from_fn(|latent| {
            let mut sum = [bias[latent]; LANES];
            for (unit, lane) in hidden.iter().enumerate() {
                add_scaled(&mut sum, weights[latent * HIDDEN + unit], lane);
            }
            sum
        })
    }

    fn decode(&self, latent: &[Lane<F>; LATENT]) -> ([Step<F>; WINDOW + 1], [Lane<F>; WINDOW]) {
        let (from_z, bias) = (self.part(DEC_Z), self.part(DEC_B));
        let input: [Lane<F>; GATES] = std::array::from_fn(|gate| {
            let mut sum = [bias[gate]; LANES];
            for (place, lane) in latent.iter().enumerate() {
                add_scaled(&mut sum, from_z[gate * LATENT + place], lane);
            }
            sum
        });
        let mut steps = [Step::zero(); WINDOW + 1];
        let mut output = [[F::default(); LANES]; WINDOW];
        for place in 0..WINDOW {
            steps[place + 1] = lstm_step(self.part(DEC_H), &input, &steps[place]);
            output[place] = [self.parameters[OUT_B.start]; LANES];
            for (unit, lane) in steps[place + 1].hidden.iter().enumerate() {
                add_scaled(&mut output[place], self.part(OUT_W)[unit], lane);
            }
        }
        (steps, output)
    }

    /// Reconstructions: the latent variables take their means.
    #[must_use]
    pub fn reconstruct(&self, window: &[Lane<F>; WINDOW]) -> [Lane<F>; WINDOW] {
        let encoded = self.encode(window);
        let mean = self.linear(MEAN_W, MEAN_B, &encoded[WINDOW].hidden);
        self.decode(&mean).1
    }

    /// Adds the gradient of the loss, summed over the lanes, to `gradient`. `noise` are the standard normal draws of the
    /// latent variables. Gives the summed loss and the summed squared error.
    pub fn backward(&self, window: &[Lane<F>; WINDOW], noise: &[Lane<F>; LATENT], gradient: &mut [F]) -> (F, F) {
        let (half, one, kl_weight) = (F::of(0.5), F::of(1.0), F::of(KL_WEIGHT));
        let encoded = self.encode(window);
        let last = &encoded[WINDOW].hidden;
        let mean = self.linear(MEAN_W, MEAN_B, last);
        let log_variance = self.linear(VAR_W, VAR_B, last);
        let mut deviation = [[F::default(); LANES]; LATENT];
        let mut latent = mean;
        let mut kl = F::default();
        for place in 0..LATENT {
            for lane in 0..LANES {
                let deviate = (half * log_variance[place][lane]).exp();
                deviation[place][lane] = deviate;
                latent[place][lane] += deviate * noise[place][lane];
                let mean = mean[place][lane];
                kl += half * (mean * mean + deviate * deviate - one - log_variance[place][lane]);
            }
        }
        let (decoded, output) = self.decode(&latent);

        let mut squared = F::default();
        let per_sample = F::of(2.0 / WINDOW as f64);
        let mut output_grad = [[F::default(); LANES]; WINDOW];
        for step in 0..WINDOW {
            for lane in 0..LANES {
                let error = output[step][lane] - window[step][lane];
                squared += error * error;
                output_grad[step][lane] = per_sample * error;
            }
        }

        let mut latent_grad = [[F::default(); LANES]; LATENT];
        self.decoder_back(&decoded, &latent, &output_grad, &mut latent_grad, gradient);
        let mut hidden_grad = [[F::default(); LANES]; HIDDEN];
        for place in 0..LATENT {
            let mut mean_grad = latent_grad[place];
            let mut variance_grad = [F::default(); LANES];
            for lane in 0..LANES {
                let deviate = deviation[place][lane];
                variance_grad[lane] = latent_grad[place][lane] * noise[place][lane] * half * deviate
                    + kl_weight * half * (deviate * deviate - one);
                mean_grad[lane] += kl_weight * mean[place][lane];
            }
            for (weights, bias, grad) in [(MEAN_W, MEAN_B, &mean_grad), (VAR_W, VAR_B, &variance_grad)] {
                for unit in 0..HIDDEN {
                    let weight = weights.start + place * HIDDEN + unit;
                    gradient[weight] += dot(grad, &last[unit]);
                    add_scaled(&mut hidden_grad[unit], self.parameters[weight], grad);
                }
                gradient[bias.start + place] += sum(grad);
            }
        }
        self.encoder_back(&encoded, window, hidden_grad, gradient);
        let mean_squared = squared / F::of(WINDOW as f64);
        (mean_squared + kl_weight * kl, mean_squared)
    }

    fn decoder_back(
        &self,
        steps: &[Step<F>; WINDOW + 1],
        latent: &[Lane<F>; LATENT],
        output_grad: &[Lane<F>; WINDOW],
        latent_grad: &mut [Lane<F>; LATENT],
        gradient: &mut [F],
    ) {
        let mut hidden_grad = [[F::default(); LANES]; HIDDEN];
        let mut cell_grad = hidden_grad;
        let mut input_grad = [[F::default(); LANES]; GATES];
        for place in (0..WINDOW).rev() {
            let step = &steps[place + 1];
            for unit in 0..HIDDEN {
                gradient[OUT_W.start + unit] += dot(&output_grad[place], &step.hidden[unit]);
                add_scaled(
                    &mut hidden_grad[unit],
                    self.parameters[OUT_W.start + unit],
                    &output_grad[place],
                );
            }
            gradient[OUT_B.start] += sum(&output_grad[place]);
            let before = &steps[place];
            let gates = lstm_step_back(self.part(DEC_H), before, step, &mut hidden_grad, &mut cell_grad);
            for gate in 0..GATES {
                for unit in 0..HIDDEN {
                    gradient[DEC_H.start + gate * HIDDEN + unit] += dot(&gates[gate], &before.hidden[unit]);
                }
                add_scaled(&mut input_grad[gate], F::of(1.0), &gates[gate]);
            }
        }
        for (gate, grad) in input_grad.iter().enumerate() {
            gradient[DEC_B.start + gate] += sum(grad);
            for place in 0..LATENT {
                let weight = DEC_Z.start + gate * LATENT + place;
                gradient[weight] += dot(grad, &latent[place]);
                add_scaled(&mut latent_grad[place], self.parameters[weight], grad);
            }
        }
    }

    fn encoder_back(
        &self,
        steps: &[Step<F>; WINDOW + 1],
        window: &[Lane<F>; WINDOW],
        mut hidden_grad: [Lane<F>; HIDDEN],
        gradient: &mut [F],
    ) {
        let mut cell_grad = [[F::default(); LANES]; HIDDEN];
        for place in (0..WINDOW).rev() {
            let before = &steps[place];
            let weights = self.part(ENC_H);
            let gates = lstm_step_back(weights, before, &steps[place + 1], &mut hidden_grad, &mut cell_grad);
            for (gate, grad) in gates.iter().enumerate() {
                gradient[ENC_X.start + gate] += dot(grad, &window[place]);
                gradient[ENC_B.start + gate] += sum(grad);
                for unit in 0..HIDDEN {
                    gradient[ENC_H.start + gate * HIDDEN + unit] += dot(grad, &before.hidden[unit]);
                }
            }
        }
    }
}

fn sum<F: Real>(lane: &Lane<F>) -> F {
    let mut sum = F::default();
    for &value in lane {
        sum += value;
    }
    sum
}

#[cfg(test)]
mod tests {
    use rand::{Rng, SeedableRng};
    use rand_xoshiro::Xoshiro256PlusPlus;

    use super::super::train::initial;
    use super::*;

    fn drawn<const N: usize>(random: &mut Xoshiro256PlusPlus) -> [Lane<f64>; N] {
        std::array::from_fn(|_| std::array::from_fn(|_| random.gen_range(-0.5..1.0)))
    }

    #[test]
    fn gradients_are_those_of_finite_differences() {
        let mut random = Xoshiro256PlusPlus::seed_from_u64(3);
        let start = initial(7);
        let mut network = Network::<f64> {
            parameters: start.parameters.iter().map(|&value| 1.5 * f64::from(value)).collect(),
        };
        let window: [Lane<f64>; WINDOW] = drawn(&mut random);
        let noise: [Lane<f64>; LATENT] = drawn(&mut random);
        let mut gradient = vec![0.0; PARAMETERS];
        network.backward(&window, &noise, &mut gradient);
        for (place, &gradient) in gradient.iter().enumerate() {
            const WIDTH: f64 = 1e-5;
            let kept = network.parameters[place];
            let mut loss_at = |value: f64| {
                network.parameters[place] = value;
                network.backward(&window, &noise, &mut vec![0.0; PARAMETERS]).0
            };
            let slope = (loss_at(kept + WIDTH) - loss_at(kept - WIDTH)) / (2.0 * WIDTH);
            network.parameters[place] = kept;
            let tolerance = 1e-6 * slope.abs().max(gradient.abs()) + 1e-8;
            assert!((slope - gradient).abs() < tolerance, "{place}: {slope} {}", gradient);
        }
    }

    #[test]
    fn single_precision_reconstructs_as_double_precision_does() {
        let mut random = Xoshiro256PlusPlus::seed_from_u64(4);
        let single = initial(8);
        let double = Network::<f64> {
            parameters: single.parameters.iter().map(|&value| f64::from(value)).collect(),
        };
        let window: [Lane<f64>; WINDOW] = drawn(&mut random);
        let narrow = window.map(|lane| lane.map(|value| value as f32));
        let (exact, fast) = (double.reconstruct(&window), single.reconstruct(&narrow));
        for (exact, fast) in exact.iter().flatten().zip(fast.iter().flatten()) {
            assert!((exact - f64::from(*fast)).abs() < 1e-5);
        }
    }
}
