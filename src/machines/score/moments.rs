//! The statistical baseline of the paper: mean, variance, skewness and kurtosis of a window's samples, with the
//! Mahalanobis distance.

use rayon::prelude::*;

use super::windows::Vectors;
use crate::machines::align::{Grid, Windows};

/// Features of a window.
pub const MOMENTS: usize = 4;

/// Moments of every window, whitened window by window with the covariance over the machines, so that the Euclidean
/// distance of two is their Mahalanobis distance.
#[must_use]
pub fn whitened_moments(grid: &Grid, windows: Windows) -> Vectors<MOMENTS> {
    let mut vectors: Vectors<MOMENTS> = grid
        .values
        .par_iter()
        .map(|row| {
            let window = |place: usize| &row[place * windows.slide..place * windows.slide + windows.samples];
            (0..windows.count).map(|place| moments(window(place))).collect()
        })
        .collect();
    let transforms: Vec<_> = (0..windows.count)
        .into_par_iter()
        .map(|window| whitening(&vectors, window))
        .collect();
    vectors.par_iter_mut().for_each(|row| {
        for (vector, lower) in row.iter_mut().zip(&transforms) {
            *vector = solve(lower, vector);
        }
    });
    vectors
}

fn moments(window: &[f32]) -> [f32; MOMENTS] {
    let present: Vec<f64> = window
        .iter()
        .filter(|value| !value.is_nan())
        .map(|&value| f64::from(value))
        .collect();
    if present.len() < 4 {
        return [f32::NAN; MOMENTS];
    }
    let count = present.len() as f64;
    let mean = present.iter().sum::<f64>() / count;
    let central = |power: i32| present.iter().map(|value| (value - mean).powi(power)).sum::<f64>() / count;
    let variance = central(2);
    let (skewness, kurtosis) = if variance > 0.0 {
        (central(3) / variance.powf(1.5), central(4) / (variance * variance))
    } else {
        (0.0, 0.0)
    };
    [mean, variance, skewness, kurtosis].map(|moment| moment as f32)
}

type Square = [[f64; MOMENTS]; MOMENTS];

/// Lower Cholesky factor of the covariance over the machines, with a little on the diagonal.
fn whitening(vectors: &Vectors<MOMENTS>, window: usize) -> Square {
    let present = || {
        vectors
            .iter()
            .map(|row| row[window])
            .filter(|vector| !vector[0].is_nan())
    };
    let count = present().count().max(1) as f64;
    let mut mean = [0.0; MOMENTS];
    for vector in present() {
        for (sum, value) in mean.iter_mut().zip(vector) {
            *sum += f64::from(value) / count;
        }
    }
    let mut covariance: Square = [[0.0; MOMENTS]; MOMENTS];
    for vector in present() {
        for row in 0..MOMENTS {
            for column in 0..MOMENTS {
                let product = (f64::from(vector[row]) - mean[row]) * (f64::from(vector[column]) - mean[column]);
                covariance[row][column] += product / count;
            }
        }
    }
    for place in 0..MOMENTS {
        covariance[place][place] += 1e-3 * covariance[place][place] + 1e-9 * (1.0 + mean[place] * mean[place]);
    }
    let mut lower: Square = [[0.0; MOMENTS]; MOMENTS];
    for row in 0..MOMENTS {
        for column in 0..=row {
            let dot: f64 = (0..column).map(|place| lower[row][place] * lower[column][place]).sum();
            let rest = covariance[row][column] - dot;
            lower[row][column] = if row == column {
                rest.max(1e-12).sqrt()
            } else {
                rest / lower[column][column]
            };
        }
    }
    lower
}

fn solve(lower: &Square, vector: &[f32; MOMENTS]) -> [f32; MOMENTS] {
    let mut white = [0.0; MOMENTS];
    for row in 0..MOMENTS {
        let dot: f64 = (0..row).map(|place| lower[row][place] * white[place]).sum();
        white[row] = (f64::from(vector[row]) - dot) / lower[row][row];
    }
    white.map(|value| value as f32)
}
