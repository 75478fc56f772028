//! What each machine's values lie above or below the machines' median.

use rayon::prelude::*;

use super::{median, quantile};

/// Deviations are smoothed over this time.
const SMOOTHED_S: f32 = 30.0;
/// Share of the metric's range that is worth a look even if the machines are equal to the last digit.
const WORTH_A_LOOK: f64 = 0.003;

/// Deviations from the median of the machines, smoothed; machine by machine.
#[derive(Debug, Clone)]
pub struct Deviations {
    /// A row a machine, a value a window; NaN where the machine has no samples.
    pub smooth: Vec<Vec<f32>>,
    /// Median of the machines by window.
    pub median: Vec<f32>,
    /// Smallest level that is worth a look.
    pub floor: f64,
}

/// Takes the median of the machines off their values (a row a machine); a running median over half a minute takes out
/// spikes and keeps steps where they are.
#[must_use]
pub fn deviations(values: &[Vec<f32>], slide_s: f32) -> Deviations {
    let count = values.first().map_or(0, Vec::len);
    let middle: Vec<f32> = (0..count)
        .into_par_iter()
        .map_init(Vec::new, |column: &mut Vec<f32>, window| {
            column.clear();
            column.extend(values.iter().map(|row| row[window]).filter(|value| !value.is_nan()));
            median(column)
        })
        .collect();
    let half = ((SMOOTHED_S / slide_s).round() as usize | 1) / 2;
    let smooth = values
        .par_iter()
        .map(|row| {
            let off: Vec<f32> = row.iter().zip(&middle).map(|(value, middle)| value - middle).collect();
            let mut near = Vec::with_capacity(2 * half + 1);
            (0..count)
                .map(|window| {
                    if off[window].is_nan() {
                        return f32::NAN;
                    }
                    near.clear();
                    // The series' ends count as often as windows are missing beyond them.
                    near.extend(
                        (window as isize - half as isize..=(window + half) as isize).filter_map(|place| {
                            let value = off[place.clamp(0, count as isize - 1) as usize];
                            (!value.is_nan()).then_some(value)
                        }),
                    );
                    median(&mut near)
                })
                .collect()
        })
        .collect();
    Deviations {
        smooth,
        floor: floor_of(values),
        median: middle,
    }
}

/// Share of the range of the values, without their extreme hundredths.
fn floor_of(values: &[Vec<f32>]) -> f64 {
    const SAMPLE: usize = 100_000;
    let total: usize = values.iter().map(Vec::len).sum();
    let every = total.div_ceil(SAMPLE).max(1) | 1;
    let all = values.iter().flatten().copied().step_by(every);
    let mut sample: Vec<f32> = all.filter(|value| !value.is_nan()).collect();
    let low = f64::from(quantile(&mut sample, 0.01));
    let high = f64::from(quantile(&mut sample, 0.99));
    if low.is_nan() {
        return 1e-12;
    }
    WORTH_A_LOOK * (high - low) + 1e-6 * low.abs().max(high.abs()) + 1e-12
}
