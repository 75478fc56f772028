//! A row's own factor in each step: its time over what the step, its stage's work and its pipeline's load ask of
//! anybody in its place. The same for units by their work and for ranks by one timer.
//!
//! In logarithms, 0 is the peers' usual and 0.1 is about 10 % slower. `O(rows x iterations)` and a few sorts a row.

use super::level::{level_below, level_of};
use super::load::remove_pipeline_load;
use super::rows::RowPlaces;
use super::settings::PeerSettings;
use super::table::Table;
use crate::stats::{mad, mean, median, width};

/// The log of how many times faster than its stage's usual a whole step can be: a nanosecond would outweigh all other
/// steps of a row.
const FASTEST: f64 = 2.0 * std::f64::consts::LN_2;
/// Strongest correlation of a step with the next that the standard error allows for.
const MOST_AUTOCORRELATION: f64 = 0.9;
/// Degrees of freedom of the rows' median width over those of a standard deviation (normal tables: 0.39 to 0.7).
const EFFICIENCY: f64 = 0.4;

/// Own factors (log) with what it takes to judge them.
#[derive(Debug)]
pub(super) struct OwnFactors {
    /// Rows x iterations.
    pub factors: Table,
    /// The level (log seconds) of each stage, by place in [`RowPlaces::stages`]; before load is removed.
    pub levels: Vec<f64>,
    /// Rows above the gap where whole nodes are the slow majority.
    pub majority: Vec<bool>,
    /// The row of each stage that is its level itself; one of them where several are equal.
    pub is_level: Vec<bool>,
    /// Other rows of the stage with any value.
    pub peers: Vec<usize>,
    /// Standard deviation of a row from step to step.
    pub deviation: f64,
    /// Degrees of freedom of that deviation: few cells tell it badly.
    pub degrees_of_freedom: f64,
    /// Correlation of a step with the next, 0 to 0.9.
    pub autocorrelation: f64,
}

impl OwnFactors {
    /// Factors of `seconds` (above 0 or NaN).
    pub fn of(seconds: &Table, places: &RowPlaces, settings: &PeerSettings) -> Self {
        Self::about(seconds, places, None, settings)
    }

    /// Factors where it is known which rows are the slow majority.
    pub fn with_majority(seconds: &Table, places: &RowPlaces, majority: &[bool], settings: &PeerSettings) -> Self {
        Self::about(seconds, places, Some(majority), settings)
    }

    fn about(seconds: &Table, places: &RowPlaces, majority: Option<&[bool]>, settings: &PeerSettings) -> Self {
        let mut factors = seconds.clone();
        factors.change(|_, cells| cells.iter_mut().for_each(|cell| *cell = cell.ln()));
        let step = {
            let about = factors.about_row_medians();
            about.map_columns(|column| median(column))
        };
        factors.subtract_from_columns(&step);
        take_out_broken_steps(&mut factors, places);
        let has_value = factors.map(|_, cells| cells.iter().any(|cell| cell.is_finite()));
        let mut peers = vec![0; factors.rows()];
        for rows in &places.stages {
            let known = rows.iter().filter(|&&row| has_value[row]).count();
            for &row in rows {
                peers[row] = known.saturating_sub(1);
            }
        }
        let mut level = Levels::take_out(&mut factors, places, majority, settings);
        let levels = level.by_stage.clone();
        let has_load = remove_pipeline_load(&mut factors, places, settings);
        if has_load {
            level = Levels::take_out(&mut factors, places, majority, settings);
        }
        let around = factors.about_row_medians();
        let autocorrelation = autocorrelation(&around);
        // Every median that was taken out of a step took a row's worth of noise with it.
        let rows = has_value.iter().filter(|&&has_value| has_value).count() as f64;
        let medians = if has_load { places.pipelines.len() as f64 } else { 1.0 };
        let steps = median(
            around
                .map(|_, cells| finite(cells) as f64)
                .into_iter()
                .filter(|&steps| steps > 0.0),
        );
        Self {
            deviation: unbiased(median(around.map(|_, cells| width(cells))), rows / medians, steps),
            degrees_of_freedom: EFFICIENCY * (rows - medians) * (independent(steps, autocorrelation) - 1.0),
            autocorrelation,
            factors,
            levels,
            majority: level.majority,
            is_level: level.is_level,
            peers,
        }
    }

    /// Standard error of a mean over this many iterations.
    pub fn standard_error(&self, iterations: usize) -> f64 {
        let deviation = if self.deviation.is_finite() {
            self.deviation
        } else {
            0.0
        };
        deviation / independent(iterations as f64, self.autocorrelation).max(1.0).sqrt()
    }

    /// Whether a row has no peers: only a change in time can tell of it.
    pub fn is_alone(&self, row: usize) -> bool {
        self.peers[row] == 0
    }

    /// Whether a row takes part in saying what is normal.
    pub fn is_normal(&self, row: usize) -> bool {
        !self.majority[row]
    }
}

/// Takes out steps far below their stage's usual: the timer did not run whole.
fn take_out_broken_steps(factors: &mut Table, places: &RowPlaces) {
    let medians = factors.row_medians();
    let usual: Vec<f64> = places
        .stages
        .iter()
        .map(|rows| median(rows.iter().map(|&row| medians[row])))
        .collect();
    factors.change(|row, cells| {
        let fastest = usual[places.stage_of[row]] - FASTEST;
        // Comparing with NaN holds for none.
        let broken = cells.iter_mut().filter(|cell| **cell < fastest);
        broken.for_each(|cell| *cell = f64::NAN);
    });
}

/// How many independent steps tell as much as `steps` that are like their neighbours.
fn independent(steps: f64, autocorrelation: f64) -> f64 {
    steps * (1.0 - autocorrelation) / (1.0 + autocorrelation)
}

/// A deviation with what the steps' medians (of `rows` each) and the quantiles (of few steps) took from it.
///
/// Both were fitted to normal tables of 2 to 64 rows and 3 to 60 steps, to 10 %.
fn unbiased(deviation: f64, rows: f64, steps: f64) -> f64 {
    let of_rows = if rows > 1.0 { (rows / (rows - 1.0)).sqrt() } else { 1.0 };
    deviation * of_rows * (1.0 + 2.3 / steps)
}

/// Number of values.
fn finite(cells: &[f64]) -> usize {
    cells.iter().filter(|cell| cell.is_finite()).count()
}

struct Levels {
    by_stage: Vec<f64>,
    majority: Vec<bool>,
    is_level: Vec<bool>,
}

impl Levels {
    /// Finds the level of each stage and subtracts it from its rows.
    fn take_out(factors: &mut Table, places: &RowPlaces, known: Option<&[bool]>, settings: &PeerSettings) -> Self {
        let means = factors.map(|_, cells| mean(cells.iter().copied()));
        let standard_error = median(factors.map(|_, cells| mad(cells))) / (factors.columns() as f64).sqrt();
        let rows = places.len();
        let (mut by_stage, mut of_row) = (Vec::with_capacity(places.stages.len()), vec![f64::NAN; rows]);
        let (mut majority, mut is_level) = (vec![false; rows], vec![false; rows]);
        for members in &places.stages {
            let stage_means: Vec<f64> = members.iter().map(|&row| means[row]).collect();
            let nodes: Vec<u32> = members.iter().map(|&row| places.nodes[row]).collect();
            let (level, above) = match known {
                Some(majority) => level_below(&stage_means, members.iter().map(|&row| majority[row]).collect()),
                None => level_of(&stage_means, &nodes, standard_error, settings),
            };
            by_stage.push(level);
            if let Some(at) = stage_means.iter().position(|&mean| mean == level) {
                is_level[members[at]] = true;
            }
            for (&row, above) in members.iter().zip(above) {
                majority[row] = above;
                of_row[row] = level;
            }
        }
        factors.subtract_from_rows(&of_row);
        Self {
            by_stage,
            majority,
            is_level,
        }
    }
}

/// Median over rows of the correlation of neighbouring steps.
fn autocorrelation(around: &Table) -> f64 {
    if around.columns() <= 3 {
        return 0.0;
    }
    let of_row = around.map(|_, cells| {
        let neighbours = mean(cells.windows(2).map(|pair| pair[0] * pair[1]));
        neighbours / mean(cells.iter().map(|cell| cell * cell)).max(1e-18)
    });
    let usual = median(of_row);
    if usual.is_finite() {
        usual.clamp(0.0, MOST_AUTOCORRELATION)
    } else {
        0.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stage_and_step_leave_the_own_factor() {
        // Stage 1 has twice the work, step 3 is slow for all, row 2 is 20 % slow.
        let seconds = Table::fill(6, 8, |row, cells| {
            for (t, cell) in cells.iter_mut().enumerate() {
                let own = if row == 2 { 1.2 } else { 1.0 };
                *cell = own * if row < 3 { 1.0 } else { 2.0 } * if t == 3 { 1.7 } else { 1.0 };
            }
        });
        let places = RowPlaces::new(&[0, 0, 0, 1, 1, 1], &[0, 1, 2, 0, 1, 2], vec![0; 6]);
        let own = OwnFactors::of(&seconds, &places, &PeerSettings::default());
        for row in 0..6 {
            let expected = if row == 2 { 1.2f64.ln() } else { 0.0 };
            assert!(own.factors.row(row).iter().all(|v| (v - expected).abs() < 1e-12));
        }
        assert!((own.levels[1] - own.levels[0] - 2f64.ln()).abs() < 1e-12);
        assert_eq!((own.peers[0], own.deviation), (2, 0.0));
    }

    #[test]
    fn a_clock_that_tells_next_to_nothing_does_not_hide_a_slow_row() {
        let seconds = Table::fill(8, 30, |row, cells| {
            for (t, cell) in cells.iter_mut().enumerate() {
                let noise = 1.0 + 0.01 * ((row * 31 + t * 17 + row * t * 7) % 13) as f64 / 13.0;
                *cell = noise * if row == 2 { 1.3 } else { 1.0 };
                // Also in the slow row and, now and then, in several rows of a step.
                if (row * 7 + t * 5) % 41 == 0 || (row == 2 && t == 9) {
                    *cell = 1e-9;
                }
            }
        });
        let places = RowPlaces::new(&[0; 8], &[0, 1, 2, 3, 4, 5, 6, 7], vec![0; 8]);
        let settings = PeerSettings::default();
        let scores = super::super::segments::score(&OwnFactors::of(&seconds, &places, &settings), &settings);
        let passing: Vec<usize> = (0..8).filter(|&row| scores[row].passes()).collect();
        assert_eq!(passing, [2], "{scores:?}");
    }
}
