//! Load: a long sequence or a hot expert slows all stages of a pipeline in that step, each by its own slope.
//!
//! Whether there is a load, and whether the stages feel it differently, is decided by what is left: a model is taken
//! where it leaves clearly less noise than the simpler one. Where none exists nothing is removed, for removing it anyway
//! would let one stage's spell leak into its neighbours. `O(rows x iterations)` and a few sorts.

use super::rows::RowPlaces;
use super::rows_by_step::RowsByStep;
use super::settings::{Ablation, PeerSettings};
use crate::contract::constant::constants;
use crate::stats::{low_median, mad, mean, median, width};

constants! {
    /// Noise left over noise before, from which load is taken out: a correlation of a third of neighbouring stages.
    LOAD_LEAVES: f64 = 0.82;
    /// Noise left with slopes over noise left without, from which each stage gets a slope of its own.
    SLOPES_LEAVE: f64 = 0.85;
    /// Fewest pipelines that tell slopes: of fewer, one that is slow tells the covariance alone.
    PIPELINES_FOR_SLOPES: usize = 4;
    /// Pipelines that tell whether there is a load at most, evenly spread over all.
    MOST_PIPELINES: usize = 128;
    /// Slopes below this are those of a fault, not of the work.
    LEAST_SLOPE: f64 = 0.4;
    /// Slopes above this are those of a fault, not of the work.
    MOST_SLOPE: f64 = 2.5;
    /// Deviations beyond this many standard deviations count as that many.
    WINSORISED_AT: f64 = 2.5;
    /// Standard errors that random loads can leave in a pipeline's mean; what is beyond stays with the rows.
    STANDARD_ERRORS: f64 = 5.0;
    /// Turns in which levels and loads settle.
    TURNS: usize = 4;
}

/// What remains of rows without their pipelines' load.
pub(super) struct Unloaded {
    /// Rows x iterations (log) with their levels.
    pub factors: RowsByStep,
    /// What the noise is to be told from: some rows about their pipeline, neither of two stages being its load.
    pub residual: RowsByStep,
}

/// Rows about their median, winsorised, then about their mean.
pub(super) fn winsorised(table: &RowsByStep) -> RowsByStep {
    let mut about = table.about_row_medians();
    about.change(|_, cells| {
        let limit = WINSORISED_AT.get() * width(cells).max(1e-9);
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

/// Takes the load of pipelines out of `logs`, of which `about_steps` is without the common part of each step; `None` where
/// there is none to tell.
pub(super) fn without_load(
    logs: &RowsByStep,
    about_steps: &RowsByStep,
    places: &RowPlaces,
    settings: &PeerSettings,
) -> Option<Unloaded> {
    if !settings.uses(Ablation::PipelineLoad) || places.stages.len() < 2 || places.pipelines.len() < 2 {
        return None;
    }
    // Some of the pipelines tell whether there is a load.
    let every = places.pipelines.len().div_ceil(MOST_PIPELINES.get()).max(1);
    let mut rows: Vec<usize> = places.pipelines.iter().step_by(every).flatten().copied().collect();
    rows.sort_unstable();
    let told_by = places.select(&rows);
    if told_by.stages.len() < places.stages.len() {
        return None;
    }
    let deviations = about_stages(winsorised(&about_steps.select(&rows)), &told_by);
    let even = vec![1.0; places.stages.len()];
    let before = usual_deviation(&deviations);
    let (left, residual) = about_pipelines(&deviations, &even, &told_by);
    let explains = left < LOAD_LEAVES.get() * before;
    if !explains {
        return None;
    }
    let slopes = settings
        .uses(Ablation::Slopes)
        .then(|| slopes(&deviations, &told_by))
        .flatten();
    let sloped = slopes.and_then(|slopes| {
        let (left_with, residual) = about_pipelines(&deviations, &slopes, &told_by);
        (left_with < SLOPES_LEAVE.get() * left).then_some((slopes, residual))
    });
    let (slopes, residual) = sloped.unwrap_or((even, residual));
    Some(Unloaded {
        factors: take_out(logs, &slopes, places),
        residual,
    })
}

/// Rows about what their stage shows in each step; with few pipelines by the mean, which leaves each its half.
fn about_stages(mut rows: RowsByStep, places: &RowPlaces) -> RowsByStep {
    let middle: Vec<Vec<f64>> = places
        .stages
        .iter()
        .map(|members| {
            let of_step = |step: usize| {
                let column = members.iter().map(|&row| rows.row(row)[step]);
                if members.len() < PIPELINES_FOR_SLOPES.get() {
                    mean(column)
                } else {
                    median(column)
                }
            };
            (0..rows.columns()).map(of_step).collect()
        })
        .collect();
    rows.change(|row, cells| {
        let middle = &middle[places.stage_of[row]];
        cells.iter_mut().zip(middle).for_each(|(cell, middle)| *cell -= middle);
    });
    rows
}

/// The usual standard deviation of rows.
fn usual_deviation(rows: &RowsByStep) -> f64 {
    median(rows.map(|_, cells| mad(cells)))
}

/// What is left of rows about their pipeline's load in each step, and the usual deviation of it.
fn about_pipelines(deviations: &RowsByStep, slopes: &[f64], places: &RowPlaces) -> (f64, RowsByStep) {
    let loads: Vec<Vec<f64>> = places
        .pipelines
        .iter()
        .map(|members| {
            let of_step = |step: usize| {
                let column = members
                    .iter()
                    .map(|&row| deviations.row(row)[step] / slopes[places.stage_of[row]]);
                if members.len() > 2 {
                    median(column)
                } else {
                    mean(column)
                }
            };
            (0..deviations.columns()).map(of_step).collect()
        })
        .collect();
    let mut left = deviations.clone();
    left.change(|row, cells| {
        let pipeline = places.pipeline_of[row];
        let members = places.pipelines[pipeline].len() as f64;
        if members < 2.0 {
            cells.fill(f64::NAN);
            return;
        }
        // The load took a part of each row's own deviation with it.
        let regain = (members / (members - 1.0)).sqrt();
        let slope = slopes[places.stage_of[row]];
        for (cell, load) in cells.iter_mut().zip(&loads[pipeline]) {
            *cell = (*cell - slope * load) * regain;
        }
    });
    let deviation = usual_deviation(&left);
    // The lower one of two stages is taken for the load, which leaves the difference of both to the other.
    left.change(|_, cells| cells.iter_mut().for_each(|cell| *cell *= std::f64::consts::SQRT_2));
    (deviation, left)
}

/// How much each stage feels the load, geometric mean 1: the main axis of the stages' covariance over pipelines and steps
/// (the median over pipelines, so that a slow rank does not tell it).
fn slopes(deviations: &RowsByStep, places: &RowPlaces) -> Option<Vec<f64>> {
    if places.pipelines.len() < PIPELINES_FOR_SLOPES.get() {
        return None;
    }
    let count = places.stages.len();
    let row_of: Vec<Vec<Option<usize>>> = places
        .pipelines
        .iter()
        .map(|members| {
            let mut of_stage = vec![None; count];
            members
                .iter()
                .for_each(|&row| of_stage[places.stage_of[row]] = Some(row));
            of_stage
        })
        .collect();
    let product = |a: usize, b: usize| {
        let (a, b) = (deviations.row(a), deviations.row(b));
        mean(a.iter().zip(b).map(|(x, y)| x * y))
    };
    let covariance = |a: usize, b: usize| median(row_of.iter().filter_map(|row| Some(product(row[a]?, row[b]?))));
    // Of a pair always in the same order, so that the matrix is symmetric to the last digit.
    let row = |a: usize| (0..count).map(|b| covariance(a.min(b), a.max(b))).collect();
    let matrix: Vec<Vec<f64>> = (0..count).map(row).collect();
    let axis = main_axis(&matrix)?;
    let usual = mean(axis.iter().map(|slope| slope.ln())).exp();
    let slopes: Vec<f64> = axis
        .iter()
        .map(|slope| (slope / usual).clamp(LEAST_SLOPE.get(), MOST_SLOPE.get()))
        .collect();
    slopes.iter().all(|slope| slope.is_finite()).then_some(slopes)
}

/// The leading eigenvector of a symmetric matrix with positive entries only, by power iteration; `None` where there is none.
fn main_axis(matrix: &[Vec<f64>]) -> Option<Vec<f64>> {
    const ROUNDS: usize = 60;
    let mut axis = vec![1.0; matrix.len()];
    for _ in 0..ROUNDS {
        let next: Vec<f64> = matrix
            .iter()
            .map(|row| row.iter().zip(&axis).map(|(a, b)| a * b).sum())
            .collect();
        let length = next.iter().map(|value| value * value).sum::<f64>().sqrt();
        if !(length > 0.0 && length.is_finite()) {
            return None;
        }
        axis = next.iter().map(|value| value / length).collect();
    }
    axis.iter().all(|&slope| slope > 0.0).then_some(axis)
}

/// Rows without their pipelines' loads, which are told together with the stages' levels, in turns.
fn take_out(logs: &RowsByStep, slopes: &[f64], places: &RowPlaces) -> RowsByStep {
    let slope = |row: usize| slopes[places.stage_of[row]];
    let about = logs.about_row_medians();
    let common = about.map_columns(|column| median(column.enumerate().map(|(row, cell)| cell / slope(row))));
    let mut loads = vec![common; places.pipelines.len()];
    for _ in 0..TURNS.get() {
        let own = logs.map(|row, cells| {
            let loads = &loads[places.pipeline_of[row]];
            median(cells.iter().zip(loads).map(|(cell, load)| cell - slope(row) * load))
        });
        let levels: Vec<f64> = places
            .stages
            .iter()
            .map(|rows| low_median(rows.iter().map(|&row| own[row])))
            .collect();
        // The low median, so that one slow stage of two is not taken for load.
        loads = places
            .pipelines
            .iter()
            .map(|rows| {
                let scaled =
                    |&row: &usize, step: usize| (logs.row(row)[step] - levels[places.stage_of[row]]) / slope(row);
                let of_step = |step: usize| low_median(rows.iter().map(|row| scaled(row, step)));
                (0..logs.columns())
                    .map(of_step)
                    .map(|load| if load.is_finite() { load } else { 0.0 })
                    .collect()
            })
            .collect();
    }
    let stays = what_lasts(&loads);
    let mut factors = logs.clone();
    factors.change(|row, cells| {
        let pipeline = places.pipeline_of[row];
        for (cell, load) in cells.iter_mut().zip(&loads[pipeline]) {
            *cell -= slope(row) * (load - stays[pipeline]);
        }
    });
    factors
}

/// How far each pipeline's load lies apart lastingly, beyond what random loads leave in a mean: a replica on a slow node
/// stays visible.
fn what_lasts(loads: &[Vec<f64>]) -> Vec<f64> {
    let (count, steps) = (loads.len() as f64, loads[0].len());
    let usual: Vec<f64> = (0..steps)
        .map(|step| median(loads.iter().map(|load| load[step])))
        .collect();
    let about: Vec<Vec<f64>> = loads
        .iter()
        .map(|load| load.iter().zip(&usual).map(|(load, usual)| load - usual).collect())
        .collect();
    let spread = median(about.iter().map(|load| mad(load)));
    let tolerance = STANDARD_ERRORS.get() * spread * ((1.0 + 1.0 / (count - 1.0)) / steps as f64).sqrt();
    let means: Vec<f64> = about.iter().map(|load| mean(load.iter().copied())).collect();
    let middle = median(means.iter().copied());
    let beyond = |mean: &f64| {
        let apart = mean - middle;
        apart.signum() * (apart.abs() - tolerance).max(0.0)
    };
    means
        .iter()
        .map(|mean| Some(beyond(mean)).filter(|beyond| beyond.is_finite()).unwrap_or(0.0))
        .collect()
}
