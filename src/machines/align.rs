//! One common grid of times for all machines of a metric.
//!
//! A moment of the grid takes the sample that is nearest in time; where none is near the value is missing (NaN).

use rayon::prelude::*;

use super::samples::{Metric, Series};

/// Samples of a window (Minder, section 4.1).
pub const WINDOW_SAMPLES: usize = 8;
/// A window never spans more than this: with samples every 10 s a window of 8 would hide four minutes in three values.
const LONGEST_WINDOW_S: f32 = 16.0;
/// Time between the starts of windows, about. Minder slides by one sample; the levels of minutes that are judged do
/// not change with it, and the denoiser's work falls to a quarter.
const SLIDE_S: f32 = 4.0;

/// Readings of one metric on a common grid, machine by machine.
#[derive(Debug, Clone)]
pub struct Grid {
    /// Seconds between moments.
    pub period_s: f32,
    /// Moments.
    pub moments: usize,
    /// A row a machine.
    pub values: Vec<Vec<f32>>,
}

/// How the windows lie on a grid.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Windows {
    /// Samples of a window.
    pub samples: usize,
    /// Moments between the starts of windows.
    pub slide: usize,
    /// Number of windows.
    pub count: usize,
    /// Seconds between the starts of windows.
    pub slide_s: f32,
}

/// Median time between samples of a metric in milliseconds, over all machines.
#[must_use]
pub fn period_ms(metric: &Metric) -> Option<i32> {
    let of_series = |series: &Series| {
        let mut gaps: Vec<i32> = series.times_ms.windows(2).map(|pair| pair[1] - pair[0]).collect();
        let middle = gaps.len() / 2;
        (!gaps.is_empty()).then(|| *gaps.select_nth_unstable(middle).1)
    };
    let mut periods: Vec<i32> = metric.series.iter().filter_map(of_series).collect();
    let middle = periods.len() / 2;
    (!periods.is_empty()).then(|| (*periods.select_nth_unstable(middle).1).max(100))
}

/// Puts a metric on its grid.
#[must_use]
pub fn grid(metric: &Metric, length_ms: i32, period_ms: i32) -> Grid {
    let moments = (length_ms / period_ms) as usize + 1;
    let near = (3 * period_ms).max(5_000);
    let values = metric
        .series
        .par_iter()
        .map(|series| on_grid(series, moments, period_ms, near))
        .collect();
    Grid {
        period_s: period_ms as f32 / 1000.0,
        moments,
        values,
    }
}

fn on_grid(series: &Series, moments: usize, period_ms: i32, near: i32) -> Vec<f32> {
    let times = &series.times_ms;
    let mut next = 0;
    let mut row = Vec::with_capacity(moments);
    for moment in 0..moments {
        let time = moment as i32 * period_ms;
        while next < times.len() && times[next] < time {
            next += 1;
        }
        let after = times.get(next).map(|&at| (at - time, next));
        let before = next.checked_sub(1).map(|place| (time - times[place], place));
        let nearest = match (before, after) {
            (Some(before), Some(after)) => Some(if before.0 <= after.0 { before } else { after }),
            (before, after) => before.or(after),
        };
        row.push(match nearest {
            Some((away, place)) if away <= near => series.values[place],
            _ => f32::NAN,
        });
    }
    row
}

impl Grid {
    /// Windows of this grid.
    #[must_use]
    pub fn windows(&self) -> Windows {
        let samples = ((LONGEST_WINDOW_S / self.period_s) as usize).clamp(1, WINDOW_SAMPLES);
        let slide = ((SLIDE_S / self.period_s).round() as usize).max(1);
        self.windows_of(samples, slide)
    }

    /// Windows of so many samples, sliding by so many.
    #[must_use]
    pub fn windows_of(&self, samples: usize, slide: usize) -> Windows {
        Windows {
            samples,
            slide,
            count: (self.moments + slide).saturating_sub(samples) / slide,
            slide_s: slide as f32 * self.period_s,
        }
    }

    /// Mean of each window, machine by machine; missing where fewer than half of its samples are there.
    #[must_use]
    pub fn means(&self, windows: Windows) -> Vec<Vec<f32>> {
        self.values
            .par_iter()
            .map(|row| {
                (0..windows.count)
                    .map(|window| mean(&row[window * windows.slide..window * windows.slide + windows.samples]))
                    .collect()
            })
            .collect()
    }
}

fn mean(window: &[f32]) -> f32 {
    let present = window.iter().filter(|value| !value.is_nan());
    let (count, sum) = present.fold((0_usize, 0.0_f64), |(count, sum), &value| {
        (count + 1, sum + f64::from(value))
    });
    if count * 2 < window.len() || count == 0 {
        f32::NAN
    } else {
        (sum / count as f64) as f32
    }
}
