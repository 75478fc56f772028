//! The denoiser: an LSTM-VAE a metric (Minder, section 4.2), with its training, written by hand.
//!
//! One layer, hidden size 4, latent size 8, windows of 8 samples: 389 parameters. With so few, a framework's cost is the
//! call of an operation and not its work: hand-written passes over 16 windows at once train about ten times as fast on two
//! cores. [`network`] holds the two passes, [`train`] the optimiser, [`store`] the file that ships with the program.

pub mod network;
pub mod real;
pub mod store;
pub mod train;

use rayon::prelude::*;

use self::network::{LANES, Network, WINDOW};
use super::align::{Grid, Windows};

/// A trained denoiser with the range its inputs are scaled by.
#[derive(Debug, Clone, Copy)]
pub struct Denoiser<'a> {
    /// The network.
    pub network: &'a Network<f32>,
    /// Value that becomes 0.
    pub low: f32,
    /// Value that becomes 1.
    pub high: f32,
}

/// Inputs are kept in this range after scaling; the network has seen nothing beyond.
const FARTHEST: (f32, f32) = (-0.5, 1.5);

impl Denoiser<'_> {
    /// Mean of the reconstruction of every window, machine by machine; missing where fewer than half of its samples are
    /// there (single missing samples take the nearest one of the window).
    #[must_use]
    pub fn means(&self, grid: &Grid, windows: Windows) -> Vec<Vec<f32>> {
        let back = |sample: f32| self.low + sample * (self.high - self.low);
        grid.values
            .par_iter()
            .map(|row| {
                let mut means = vec![f32::NAN; windows.count];
                self.each(row, windows, |window, reconstruction| {
                    means[window] = back(reconstruction.iter().sum::<f32>() / WINDOW as f32);
                });
                means
            })
            .collect()
    }

    /// Every window's reconstruction, scaled to 0..1, machine by machine; missing ones are NaN.
    #[must_use]
    pub fn reconstructions(&self, grid: &Grid, windows: Windows) -> Vec<Vec<[f32; WINDOW]>> {
        grid.values
            .par_iter()
            .map(|row| {
                let mut all = vec![[f32::NAN; WINDOW]; windows.count];
                self.each(row, windows, |window, reconstruction| all[window] = *reconstruction);
                all
            })
            .collect()
    }

    fn each(&self, row: &[f32], windows: Windows, mut take: impl FnMut(usize, &[f32; WINDOW])) {
        let mut batch = [[0.0_f32; LANES]; WINDOW];
        let mut places = [0; LANES];
        let mut filled = 0;
        let mut window = [0.0; WINDOW];
        for place in 0..windows.count {
            let begin = place * windows.slide;
            if !filled_window(&row[begin..begin + WINDOW], &mut window) {
                continue;
            }
            for (step, &value) in window.iter().enumerate() {
                let scaled = (value - self.low) / (self.high - self.low);
                batch[step][filled] = scaled.clamp(FARTHEST.0, FARTHEST.1);
            }
            places[filled] = place;
            filled += 1;
            if filled == LANES {
                self.flush(&batch, &places[..filled], &mut take);
                filled = 0;
            }
        }
        if filled > 0 {
            self.flush(&batch, &places[..filled], &mut take);
        }
    }

    fn flush(&self, batch: &[[f32; LANES]; WINDOW], places: &[usize], take: &mut impl FnMut(usize, &[f32; WINDOW])) {
        let output = self.network.reconstruct(batch);
        for (lane, &place) in places.iter().enumerate() {
            take(place, &std::array::from_fn(|step| output[step][lane]));
        }
    }
}

/// Fills the gaps of a window with its nearest samples; false when fewer than half are there.
pub(super) fn filled_window(row: &[f32], window: &mut [f32; WINDOW]) -> bool {
    window.copy_from_slice(row);
    let missing = window.iter().filter(|value| value.is_nan()).count();
    if missing == 0 {
        return true;
    }
    if missing * 2 > WINDOW {
        return false;
    }
    for step in 0..WINDOW {
        if row[step].is_nan() {
            let near = (1..WINDOW).find_map(|away| {
                let before = step.checked_sub(away).map(|place| row[place]);
                let after = row.get(step + away).copied();
                before.into_iter().chain(after).find(|value| !value.is_nan())
            });
            window[step] = near.unwrap_or(0.0);
        }
    }
    true
}
