//! What is uneven about the job itself: stages with more work, data that varies from pipeline to pipeline.

use super::load::{together, winsorised};
use super::settings::PeerSettings;
use super::suspects::Evidence;
use super::table::Table;
use super::units::Units;
use crate::stats::exceeded_with;
use crate::stats::{mad, mean_in_any_order, median};

/// Up to this many units a step's usual is a clipped mean: with so few it wastes less than the median.
const FEW_UNITS: usize = 4;

/// A stage with more work than the others.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct HeavyStage {
    pub stage: u32,
    /// Over the median of the other stages, less 1.
    pub excess: f64,
    /// Over the mean of all stages, less 1.
    pub cost: f64,
}

/// The heaviest stage, if it is heavy enough.
pub(super) fn heavy_stage(units: &Units, evidence: &Evidence, settings: &PeerSettings) -> Option<HeavyStage> {
    let levels: Vec<f64> = evidence.units.own.levels.iter().map(|level| level.exp()).collect();
    if levels.len() < 2 || levels.iter().any(|level| !level.is_finite()) {
        return None;
    }
    let mut heaviest = 0;
    for stage in 1..levels.len() {
        if levels[stage] > levels[heaviest] {
            heaviest = stage;
        }
    }
    let others = (0..levels.len())
        .filter(|&stage| stage != heaviest)
        .map(|stage| levels[stage]);
    let excess = levels[heaviest] / median(others) - 1.0;
    (excess > settings.stage_floor).then(|| HeavyStage {
        stage: units.stages[units.places.stages[heaviest][0]],
        excess,
        cost: levels[heaviest] * levels.len() as f64 / levels.iter().sum::<f64>() - 1.0,
    })
}

/// Data that varies from step to step.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct UnevenData {
    /// Standard deviation of the load (log).
    pub deviation: f64,
    /// How far the largest of the pipelines lies above the usual in an average step.
    pub cost: f64,
}

/// Tells load from noise: a long batch or a hot expert slows forward and backward of a step alike.
pub(super) fn uneven_data(units: &Units, settings: &PeerSettings) -> Option<UnevenData> {
    let (forward, backward) = (units.forward.as_ref()?, units.backward.as_ref()?);
    let count = units.len();
    if count < 2 {
        return None;
    }
    let (forward, backward) = (winsorised(&deviations(forward)), winsorised(&deviations(backward)));
    let (covariance, correlation) = together((0..count).map(|unit| (forward.row(unit), backward.row(unit))));
    let freedom = forward.columns() as f64 * (count - 1) as f64;
    // The mean of a column varies less than its iterations do.
    let covariance = covariance * settings.column() as f64;
    let varies = covariance > settings.load_floor * settings.load_floor
        && correlation > settings.load_correlation + 1.5 / freedom.sqrt();
    varies.then(|| {
        let deviation = covariance.sqrt();
        let drawn = if units.places.stages.len() > 1 {
            units.places.pipelines.len()
        } else {
            count
        } as f64;
        // Blom: the expected largest of so many normal draws.
        let largest = if drawn > 1.0 {
            -exceeded_with((drawn - 0.375) / (drawn + 0.25))
        } else {
            0.0
        };
        UnevenData {
            deviation,
            cost: (deviation * largest).exp_m1(),
        }
    })
}

/// Logs about the row's median and the step's usual.
fn deviations(seconds: &Table) -> Table {
    let mut logs = seconds.clone();
    logs.change(|_, cells| cells.iter_mut().for_each(|cell| *cell = cell.ln()));
    let mut about = logs.about_row_medians();
    let count = about.rows();
    if count > FEW_UNITS {
        let usual = about.map_columns(|column| median(column));
        about.subtract_from_columns(&usual);
        return about;
    }
    // Clipped, so that one unit's spell does not look like everybody's.
    let mut clipped = about.clone();
    clipped.change(|_, cells| {
        let limit = 3.0 * mad(cells);
        if limit.is_finite() {
            cells
                .iter_mut()
                .filter(|cell| cell.is_finite())
                .for_each(|cell| *cell = cell.clamp(-limit, limit));
        }
    });
    let usual = clipped.map_columns(|column| mean_in_any_order(column));
    about.subtract_from_columns(&usual);
    // The mean of so few took part of each one's own deviation.
    let regain = (count as f64 / (count as f64 - 1.0)).sqrt();
    about.change(|_, cells| cells.iter_mut().for_each(|cell| *cell *= regain));
    about
}

#[cfg(test)]
mod tests {
    use super::super::samples::{job, verdict};
    use crate::verdict::Cause;

    #[test]
    fn long_batches_are_uneven_data_and_noise_is_not() {
        let load = |rank: u32, step: usize| {
            let wave = (rank as usize % 8 * 37 + step * 101 + step * step * 17) % 23;
            1.0 + 0.3 * wave as f64 / 23.0
        };
        let loaded = verdict(&job(2, 8, 30, load));
        assert_eq!((loaded.anomalies, loaded.cause), (vec![], Cause::DataImbalance));
        let even = verdict(&job(2, 8, 30, |_, _| 1.0));
        assert_eq!((even.findings.len(), even.cause), (0, Cause::None));
    }

    #[test]
    fn a_slow_rank_comes_before_a_heavy_stage() {
        let own = |rank: u32, _| if rank >= 24 { 1.4 } else { 1.0 } * if rank == 2 { 1.2 } else { 1.0 };
        let verdict = verdict(&job(4, 8, 30, own));
        assert_eq!((verdict.anomalies, verdict.cause), (vec![2], Cause::Compute));
        assert_eq!(verdict.findings[1].stages, [3]);
    }
}
