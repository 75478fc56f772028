//! Load: a long sequence or a hot expert slows a pipeline's stages alike in that step, and forward and backward alike.
//!
//! Whether rows go up and down together is told by the covariance of pairs, winsorised at 2.5 standard deviations: it
//! is 0 for independent timers however skewed they are, where estimates from sums and differences take rare slow calls
//! for load. Where no load exists nothing is removed: removing it anyway would let one stage's spell leak into its
//! neighbour when a pipeline has two. `O(rows x iterations)` and a sort a row.

use super::rows::RowPlaces;
use super::settings::{Ablation, PeerSettings};
use super::table::Table;
use crate::stats::{low_median, mad, mean, median, width};

/// Deviations beyond this many standard deviations count as that many.
const WINSORISED_AT: f64 = 2.5;
/// Least covariance (log squared) that is load: a tenth of a per cent is not worth removing.
const LEAST_COVARIANCE: f64 = 1e-6;
/// Standard errors by which a correlation must differ from none: a few steps of a few pairs go together by chance.
const CORRELATION_ERRORS: f64 = 4.0;
/// Standard errors that random loads can leave in a pipeline's mean; what is beyond stays with the rows.
const STANDARD_ERRORS: f64 = 5.0;

/// Rows about their median, winsorised, then about their mean.
pub(super) fn winsorised(table: &Table) -> Table {
    let mut about = table.about_row_medians();
    about.change(|_, cells| {
        let limit = WINSORISED_AT * width(cells).max(1e-9);
        for cell in cells.iter_mut() {
            if cell.is_finite() {
                *cell = cell.clamp(-limit, limit);
            }
        }
        let centre = mean(cells.iter().copied());
        cells.iter_mut().for_each(|cell| *cell -= centre);
    });
    about
}

/// Median covariance and correlation of pairs of winsorised rows.
pub(super) fn together<'a>(pairs: impl Iterator<Item = (&'a [f64], &'a [f64])>) -> (f64, f64) {
    let product = |a: &[f64], b: &[f64]| mean(a.iter().zip(b).map(|(x, y)| x * y));
    let (covariances, correlations): (Vec<f64>, Vec<f64>) = pairs
        .map(|(a, b)| {
            let covariance = product(a, b);
            let variances = product(a, a) * product(b, b);
            (covariance, covariance / variances.max(1e-30).sqrt())
        })
        .unzip();
    (median(covariances), median(correlations))
}

/// Takes the load of each pipeline out of the rows (log); false and untouched where there is none to tell.
pub(super) fn remove_pipeline_load(rows: &mut Table, places: &RowPlaces, settings: &PeerSettings) -> bool {
    if !settings.uses(Ablation::PipelineLoad)
        || places.pipelines.len() < 2
        || places.pipelines.iter().all(|rows| rows.len() < 2)
    {
        return false;
    }
    let around = winsorised(rows);
    let neighbours = || places.pipelines.iter().flat_map(|rows| rows.windows(2));
    let (covariance, correlation) = together(neighbours().map(|pair| (around.row(pair[0]), around.row(pair[1]))));
    let told = neighbours().count() * rows.columns().saturating_sub(1);
    let by_chance = CORRELATION_ERRORS / (told.max(1) as f64).sqrt();
    if !(correlation > settings.load_correlation.max(by_chance) && covariance > LEAST_COVARIANCE) {
        return false;
    }
    // The low median, so that one slow stage of two is not taken for load.
    let loads: Vec<Vec<f64>> = places
        .pipelines
        .iter()
        .map(|members| {
            (0..rows.columns())
                .map(|column| low_median(members.iter().map(|&row| rows.row(row)[column])))
                .collect()
        })
        .collect();
    let pipelines = loads.len() as f64;
    let spread = median(loads.iter().map(|load| mad(load)));
    let tolerance = STANDARD_ERRORS * spread * ((1.0 + 1.0 / (pipelines - 1.0)) / rows.columns() as f64).sqrt();
    let means: Vec<f64> = loads.iter().map(|load| mean(load.iter().copied())).collect();
    let middle = median(means.iter().copied());
    let mut of_row = vec![(0, 0.0); rows.rows()];
    for (pipeline, members) in places.pipelines.iter().enumerate() {
        let apart = means[pipeline] - middle;
        // A replica on a slow node stays visible.
        let kept = if apart.is_finite() && tolerance.is_finite() {
            apart.signum() * (apart.abs() - tolerance).max(0.0)
        } else {
            0.0
        };
        for &row in members {
            of_row[row] = (pipeline, kept);
        }
    }
    rows.change(|row, cells| {
        let (pipeline, kept) = of_row[row];
        for (cell, load) in cells.iter_mut().zip(&loads[pipeline]) {
            *cell -= if load.is_finite() { load - kept } else { -kept };
        }
    });
    true
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Two stages, four pipelines; load moves both stages of a pipeline.
    fn pipelines(load: f64) -> (Table, RowPlaces) {
        let wave = |seed: usize, t: usize| (((seed * 37 + t * 101 + t * t * 17) % 23) as f64 / 23.0) - 0.5;
        let table = Table::fill(8, 40, |row, cells| {
            for (t, cell) in cells.iter_mut().enumerate() {
                *cell = load * wave(row % 4, t) + 0.01 * wave(11 + row, t * 3);
            }
        });
        let stages = [0, 0, 0, 0, 1, 1, 1, 1];
        let pipelines = [0, 1, 2, 3, 0, 1, 2, 3];
        (table, RowPlaces::new(&stages, &pipelines, vec![0; 8]))
    }

    #[test]
    fn load_is_removed_where_there_is_one() {
        let settings = PeerSettings::default();
        let (mut loaded, places) = pipelines(0.3);
        assert!(remove_pipeline_load(&mut loaded, &places, &settings));
        let left = width(loaded.row(2));
        assert!(left < 0.02, "{left}");
        let (mut even, places) = pipelines(0.0);
        let before = even.row(0).to_vec();
        assert!(!remove_pipeline_load(&mut even, &places, &settings));
        assert_eq!(even.row(0), before);
    }

    #[test]
    fn a_replica_that_is_slow_throughout_stays_slow() {
        let (mut rows, places) = pipelines(0.3);
        rows.change(|row, cells| {
            if row % 4 == 1 {
                cells.iter_mut().for_each(|cell| *cell += 1.0);
            }
        });
        assert!(remove_pipeline_load(&mut rows, &places, &PeerSettings::default()));
        assert!(median(rows.row(1).iter().copied()) - median(rows.row(0).iter().copied()) > 0.5);
    }
}
