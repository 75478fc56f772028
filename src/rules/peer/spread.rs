//! What rows that are well differ by: their centre, each one's distance from it, and the spread that these tell.

use std::ops::Range;

use super::common::FASTER_ROWS;
use crate::contract::constant::constants;
use crate::stats::{MAD_TO_SD, low_median, lower, mean, median, sorted};

constants! {
    /// Fewer distances than this: the lower median, and the row that is judged does not tell the spread.
    pub(super) FEW: usize = 6;
    /// Distances from which the lower side alone may tell the spread, where many rows of the upper one changed.
    MANY: usize = 8;
    /// The lower side tells it where it is narrower than so many times the whole.
    NARROWER: f64 = 0.5;
    /// The lower quantile of the lower side; the upper one is the centre.
    LOWER_SIDE: f64 = 0.1;
    /// Distances beyond so many deviations are left out of the spread,
    FAR: f64 = 3.0;
}
/// How far apart the two are in a normal distribution, in standard deviations.
const LOWER_SIDE_TO_SD: f64 = 0.896;
/// and what that leaves of a normal distribution's.
const WITHOUT_FAR: f64 = 0.986;
/// Variance of a middle quantile over that of a mean (a normal distribution's median).
const QUANTILE_ERROR: f64 = 1.57;
/// Least standard deviation.
const LEAST: f64 = 1e-9;

/// What is usual: below the middle, for those who changed are slower.
pub(super) fn centre(means: &[f64]) -> f64 {
    lower(means.iter().copied(), FASTER_ROWS.get())
}

/// The deviation of a row's distance from the centre of its peers over its own: the centre errs too, as a quantile does.
pub(super) fn apart(peers: usize) -> f64 {
    match peers {
        0 | 1 => std::f64::consts::SQRT_2,
        peers => (1.0 + QUANTILE_ERROR / peers as f64).sqrt(),
    }
}

/// Adds each row's signed distance from the centre but the centre's own, in units that a single row has.
pub(super) fn push_distances(
    distances: &mut Vec<(usize, f64)>,
    rows: &[usize],
    means: &[f64],
    centre: f64,
    apart: f64,
) {
    let is_centre = means.iter().position(|&mean| mean == centre);
    for (at, (&row, mean)) in rows.iter().zip(means).enumerate() {
        if Some(at) != is_centre {
            distances.push((row, (mean - centre) / apart));
        }
    }
}

/// The standard deviation that distances tell, and how many tell it: where the slower half is apart from the rest, as with many
/// slow rows, only those of the lower side do, and few of them may lie close together by chance.
pub(super) fn spread(distances: &[f64]) -> (f64, f64) {
    let count = distances.len();
    let sizes: Vec<f64> = distances.iter().map(|distance| distance.abs()).collect();
    if count < FEW.get() {
        return if count == 0 {
            (0.0, 0.0)
        } else {
            (MAD_TO_SD * low_median(sizes), count as f64)
        };
    }
    let mut spread = MAD_TO_SD * median(sizes.iter().copied());
    let mut told = count as f64;
    if count >= MANY.get() {
        let below = |share: f64| lower(distances.iter().copied(), share);
        let lower_side = (below(FASTER_ROWS.get()) - below(LOWER_SIDE.get())) / LOWER_SIDE_TO_SD;
        if lower_side < NARROWER.get() * spread {
            spread = lower_side;
            told *= FASTER_ROWS.get();
        }
        let near = sizes
            .iter()
            .filter(|&&size| size <= FAR.get() * spread)
            .map(|size| size * size);
        // In ascending order, so that the order of rows can't change the last digit.
        spread = mean(sorted(near)).sqrt() / WITHOUT_FAR;
    }
    (if spread.is_finite() { spread.max(LEAST) } else { LEAST }, told)
}

pub(super) fn running_sums(cells: &[f64]) -> Vec<(f64, u32)> {
    let mut sums = Vec::with_capacity(cells.len() + 1);
    let (mut sum, mut count) = (0.0, 0);
    sums.push((sum, count));
    for cell in cells {
        if cell.is_finite() {
            sum += cell;
            count += 1;
        }
        sums.push((sum, count));
    }
    sums
}

pub(super) fn mean_of(sums: &[(f64, u32)], steps: &[Range<usize>]) -> f64 {
    let (sum, count) = steps.iter().fold((0.0, 0), |(sum, count), part| {
        let (from, to) = (sums[part.start], sums[part.end]);
        (sum + to.0 - from.0, count + to.1 - from.1)
    });
    if count == 0 { f64::NAN } else { sum / f64::from(count) }
}
