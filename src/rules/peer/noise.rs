//! What a row's mean varies by without any fault, for means of any length.
//!
//! Neighbouring steps are alike: levels wander over tens of steps, and a mean of twenty steps then tells hardly more
//! than one of five. So the noise is measured at every length: the deviations of means of 1, 2, 4, ... steps about their
//! row's middle, over all rows.

use super::rows_by_step::RowsByStep;
use super::settings::PeerSettings;
use super::smoothing::without_spikes;
use crate::contract::constant::constants;
use crate::stats::{MAD_TO_SD, low_median, mean, median, quantile, sorted};

constants! {
    /// Fewest blocks of a length that tell its noise.
    LEAST_BLOCKS: usize = 4;
    /// Fewest blocks of the differences of two rows that tell their noise.
    LEAST_BLOCKS_OF_PAIRS: usize = 6;
    /// Up to so many rows a change of one is a change of them all: their differences to each other tell the noise, the pair that
    /// differs least.
    FEW_ROWS: usize = 3;
    /// Rows that tell the noise at most, evenly spread over all.
    MOST_ROWS: usize = 512;
    /// A row counts as at most so many times the usual noise: it changed, which is no noise.
    MOST: f64 = 2.5;
    /// Least noise of a step: exact repeats do not make noise vanish.
    pub(super) LEAST_NOISE: f64 = 1e-4;
    /// A spike lies at least so many deviations from the median of the cells around it.
    SPIKE_DEVIATIONS: f64 = 5.0;
    /// A spike lies at least so many effect floors from the median of the cells around it.
    SPIKE_FLOORS: f64 = 1.0;
}
/// Share of a normal distribution within a standard deviation.
const WITHIN_ONE: f64 = 0.683;

/// The standard deviation of means, by length.
#[derive(Debug, Clone)]
pub(super) struct Noise {
    /// Of means over 1, 2, 4, ... steps.
    deviations: Vec<f64>,
    /// How far a cell lies from those around it to be a spike, which is clipped.
    spike: f64,
}

impl Noise {
    /// Noise of `rows` but those that are `left_out`; where `logs` has few rows, told from their differences.
    ///
    /// Single spikes do not count: they are clipped in the means that the noise is held against too.
    pub fn of(rows: &RowsByStep, logs: &RowsByStep, left_out: &[bool], settings: &PeerSettings) -> Self {
        if (2..=FEW_ROWS.get()).contains(&logs.rows()) {
            let pairs: Vec<(usize, usize)> = (0..logs.rows()).flat_map(|a| (0..a).map(move |b| (a, b))).collect();
            let differences = RowsByStep::fill(pairs.len(), logs.columns(), |pair, cells| {
                let (a, b) = (logs.row(pairs[pair].0), logs.row(pairs[pair].1));
                cells
                    .iter_mut()
                    .zip(a.iter().zip(b))
                    .for_each(|(cell, (a, b))| *cell = a - b);
            });
            return Self::measure(differences, LEAST_BLOCKS_OF_PAIRS.get(), settings, |rows, length| {
                let of_row = rows.map(|_, cells| deviation_of_differences(&blocks(cells, length)));
                of_row
                    .into_iter()
                    .filter(|deviation| deviation.is_finite())
                    .fold(f64::NAN, f64::min)
            });
        }
        let kept: Vec<usize> = (0..rows.rows())
            .filter(|&row| !left_out.get(row).is_some_and(|&left| left))
            .collect();
        let every = kept.len().div_ceil(MOST_ROWS.get()).max(1);
        let rows = rows.select(&kept.into_iter().step_by(every).collect::<Vec<_>>());
        Self::measure(rows, LEAST_BLOCKS.get(), settings, |rows, length| {
            let deviations = rows.map(|_, cells| deviation_of_blocks(&blocks(cells, length)));
            let most = MOST.get() * low_median(deviations.iter().copied());
            let squares = deviations.iter().map(|deviation| deviation.min(most).powi(2));
            // In ascending order, so that the order of rows can't change the last digit.
            mean(sorted(squares)).sqrt()
        })
    }

    fn measure(
        mut rows: RowsByStep,
        least_blocks: usize,
        settings: &PeerSettings,
        of_length: impl Fn(&RowsByStep, usize) -> f64,
    ) -> Self {
        let known = |deviation: f64| if deviation.is_finite() { deviation } else { 0.0 };
        let step = known(of_length(&rows, 1)).max(LEAST_NOISE.get());
        let spike = (SPIKE_DEVIATIONS.get() * step).max(SPIKE_FLOORS.get() * settings.effect_floor);
        rows.change(|_, cells| cells.copy_from_slice(&without_spikes(cells, spike)));
        let steps = rows.columns();
        let mut deviations = Vec::new();
        let mut length = 1;
        while length == 1 || steps / length >= least_blocks {
            deviations.push(known(of_length(&rows, length)));
            length *= 2;
        }
        Self { deviations, spike }
    }

    /// How far a cell lies from those around it to be a spike.
    pub fn spike(&self) -> f64 {
        self.spike
    }

    /// Of a single step.
    pub fn of_step(&self) -> f64 {
        self.deviations[0]
    }

    /// Standard error of a mean over so many neighbouring steps.
    ///
    /// Between measured lengths it falls as between them; beyond the longest half as fast as it did before, for what
    /// wanders more slowly than the window is long can't be seen in it.
    pub fn error(&self, steps: usize) -> f64 {
        let steps = steps.max(1);
        let last = self.deviations.len() - 1;
        let at = (steps.ilog2() as usize).min(last);
        let here = self.deviations[at];
        let falls = |ratio: f64| {
            if ratio.is_finite() {
                ratio.clamp(0.5f64.sqrt(), 1.0)
            } else {
                0.5f64.sqrt()
            }
        };
        let ratio = match (at == last, last) {
            (true, 0) => f64::midpoint(0.5f64.sqrt(), 1.0),
            (true, _) => f64::midpoint(falls((here / self.deviations[0]).powf(1.0 / last as f64)), 1.0),
            (false, _) => falls(self.deviations[at + 1] / here),
        };
        here * ratio.powf((steps as f64 / (1u64 << at) as f64).log2())
    }

    /// How many times more a long mean varies than that of independent steps would, as variance; 1 at least.
    pub fn inflation(&self) -> f64 {
        let step = self.deviations[0].powi(2);
        let lengths = self.deviations.iter().enumerate();
        lengths
            .map(|(at, deviation)| deviation.powi(2) * (1u64 << at) as f64 / step)
            .filter(|ratio| ratio.is_finite())
            .fold(1.0, f64::max)
    }
}

/// Means of neighbouring steps, `length` each; the first few steps that make no whole block are left out.
fn blocks(cells: &[f64], length: usize) -> Vec<f64> {
    cells[cells.len() % length..]
        .chunks(length)
        .map(|block| mean(block.iter().copied()))
        .collect()
}

fn deviation_of_blocks(blocks: &[f64]) -> f64 {
    let middle = median(blocks.iter().copied());
    let distances = sorted(blocks.iter().map(|block| (block - middle).abs()));
    if distances.is_empty() {
        return f64::NAN;
    }
    // Few blocks have their middle close by.
    quantile(&distances, WITHIN_ONE) * (1.0 + 1.0 / distances.len() as f64)
}

fn deviation_of_differences(blocks: &[f64]) -> f64 {
    let steps = blocks.windows(2).map(|pair| (pair[1] - pair[0]).abs());
    MAD_TO_SD * median(steps) / std::f64::consts::SQRT_2
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::stats::random::Random;

    fn rows(count: usize, steps: usize, wander: f64) -> RowsByStep {
        let drawn: Vec<Vec<f64>> = (0..count)
            .map(|row| {
                let mut random = Random::stream(7, "noise", &[row as u64]);
                let mut level = 0.0;
                (0..steps)
                    .map(|_| {
                        level = 0.95 * level + wander * random.normal();
                        level + 0.01 * random.normal()
                    })
                    .collect()
            })
            .collect();
        RowsByStep::fill(count, steps, |row, cells| cells.copy_from_slice(&drawn[row]))
    }

    #[test]
    fn independent_steps_average_out_and_wandering_levels_do_not() {
        let white = rows(16, 160, 0.0);
        let noise = Noise::of(&white, &white, &[false; 16], &PeerSettings::default());
        assert!((noise.of_step() - 0.01).abs() < 0.002, "{noise:?}");
        assert!((noise.error(16) - 0.0025).abs() < 0.001, "{noise:?}");
        let wandering = rows(16, 160, 0.005);
        let noise = Noise::of(&wandering, &wandering, &[false; 16], &PeerSettings::default());
        assert!(noise.error(16) > 0.008 && noise.inflation() > 4.0, "{noise:?}");
        assert!(noise.error(100) < noise.error(16));
    }

    #[test]
    fn a_row_that_changes_is_hardly_noise() {
        let mut changed = rows(16, 160, 0.0);
        changed.change(|row, cells| {
            if row == 3 {
                cells[80..].iter_mut().for_each(|cell| *cell += 1.0);
            }
        });
        let noise = Noise::of(&changed, &changed, &[false; 16], &PeerSettings::default());
        assert!(noise.error(16) < 0.005, "{noise:?}");
        // Of two rows a change of one is a change of both to each other.
        let mut two = rows(2, 160, 0.0);
        two.change(|row, cells| cells[80..].iter_mut().for_each(|cell| *cell += row as f64));
        assert!(Noise::of(&two, &two, &[false; 2], &PeerSettings::default()).error(8) < 0.01);
    }
}
