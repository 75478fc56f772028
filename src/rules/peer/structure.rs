//! What is uneven about the job itself: stages with more work, data that varies from pipeline to pipeline.

use super::candidates::Evidence;
use super::cost::StepModel;
use super::detector::{Detector, Seen};
use super::load::winsorised;
use super::rows_by_step::RowsByStep;
use super::settings::PeerSettings;
use super::tensor_groups::TensorGroups;
use crate::contract::constant::constants;
use crate::stats::{mad, mean, mean_in_any_order, median};
use crate::verdict::{Cause, Finding, FindingKind};

constants! {
    /// Median deviations at which a row's cells are clipped, so that one row's spell does not look like everybody's.
    CLIPPED_AT: f64 = 3.0;
    /// Up to this many units a step's usual is a clipped mean: with so few it wastes less than the median.
    FEW_UNITS: usize = 4;
    /// Correlation of forward and backward from which load varies.
    LOAD_CORRELATION: f64 = 1.0 / 3.0;
    /// Standard errors of a correlation that are added to it.
    CORRELATION_ERRORS: f64 = 1.5;
}

/// A stage with more work than the others.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct HeavyStage {
    pub stage: u32,
    /// Over the median of the other stages, less 1.
    pub excess: f64,
    /// What even stages would save of a step.
    pub cost: f64,
}

/// The heaviest stage, if it is heavy enough.
pub(super) fn heavy_stage(
    units: &TensorGroups,
    evidence: &Evidence,
    model: &StepModel,
    settings: &PeerSettings,
) -> Option<HeavyStage> {
    let levels: Vec<f64> = evidence.units.verdicts.levels.iter().map(|level| level.exp()).collect();
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
        cost: {
            let even = mean(levels.iter().copied());
            model.with(|row, _, work| work * even / levels[units.places.stage_of[row]])
        },
    })
}

/// Data that varies from step to step.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct UnevenData {
    /// Standard deviation of the load (log).
    pub deviation: f64,
    /// What even data would save of a step.
    pub cost: f64,
}

/// Tells load from noise: a long batch or a hot expert slows forward and backward of a step alike.
pub(super) fn uneven_data(units: &TensorGroups, model: &StepModel, settings: &PeerSettings) -> Option<UnevenData> {
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
        && correlation > LOAD_CORRELATION.get() + CORRELATION_ERRORS.get() / freedom.sqrt();
    varies.then(|| UnevenData {
        deviation: covariance.sqrt(),
        cost: even_data_saves(units, model),
    })
}

/// What a step would save if in each step all ranks of a stage had as much to do, each beside its own lasting level.
fn even_data_saves(units: &TensorGroups, model: &StepModel) -> f64 {
    let work = model.work();
    let usual = work.row_medians();
    let drawn: Vec<Vec<f64>> = units
        .places
        .stages
        .iter()
        .map(|rows| {
            let of_step = |step: usize| mean_in_any_order(rows.iter().map(|&row| work.row(row)[step] / usual[row]));
            (0..work.columns()).map(of_step).collect()
        })
        .collect();
    model.with(|row, step, _| usual[row] * drawn[units.places.stage_of[row]][step])
}

/// Median covariance and correlation of pairs of winsorised rows.
fn together<'a>(pairs: impl Iterator<Item = (&'a [f64], &'a [f64])>) -> (f64, f64) {
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

/// Logs about the row's median and the step's usual.
fn deviations(seconds: &RowsByStep) -> RowsByStep {
    let mut logs = seconds.clone();
    logs.change(|_, cells| cells.iter_mut().for_each(|cell| *cell = cell.ln()));
    let mut about = logs.about_row_medians();
    let count = about.rows();
    if count > FEW_UNITS.get() {
        let usual = about.map_columns(|column| median(column));
        about.subtract_from_columns(&usual);
        return about;
    }
    // Clipped, so that one unit's spell does not look like everybody's.
    let mut clipped = about.clone();
    clipped.change(|_, cells| {
        let limit = CLIPPED_AT.get() * mad(cells);
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

/// Tells of stages with more work.
pub(super) struct HeavyStages;

impl Detector for HeavyStages {
    fn find(&self, seen: &Seen<'_>) -> Vec<Finding> {
        let tell = |stage: HeavyStage| {
            let mut finding = seen.finding(FindingKind::Imbalance, Cause::StageImbalance);
            finding.stages = vec![stage.stage];
            finding.factor = Some(1.0 + stage.excess);
            finding.cost = Some(stage.cost);
            let one_replica = seen.units.places.pipelines.len() < 2;
            finding.says = format!(
                "stage {} takes {:.1} % longer than the other stages{}",
                stage.stage,
                100.0 * stage.excess,
                if one_replica {
                    ": it has more work, or its ranks are slow from the start on: with one replica the timers can't tell \
                     which. One that becomes slow would be told"
                } else {
                    " on all ranks: it has more work. Move a layer to another stage"
                }
            );
            finding
        };
        let stage = heavy_stage(seen.units, seen.evidence, seen.model, seen.settings);
        stage.map(tell).into_iter().collect()
    }
}

/// Tells of data that varies.
pub(super) struct UnevenLoads;

impl Detector for UnevenLoads {
    fn find(&self, seen: &Seen<'_>) -> Vec<Finding> {
        let tell = |data: UnevenData| {
            let mut finding = seen.finding(FindingKind::Imbalance, Cause::DataImbalance);
            finding.cost = Some(data.cost);
            let stages = seen.units.places.stages.len();
            finding.says = format!(
                "the work of the {} varies by {:.1} % from step to step (sequence lengths or experts): each step waits for \
                 another one",
                if stages > 1 { "pipelines" } else { "ranks" },
                100.0 * data.deviation.exp_m1()
            );
            finding
        };
        let data = uneven_data(seen.units, seen.model, seen.settings);
        data.map(tell).into_iter().collect()
    }
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
