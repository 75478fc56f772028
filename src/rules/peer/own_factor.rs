//! A row's own factor in each step: its time over what the step and its pipeline's load ask of anybody. The same for units
//! by their work and for ranks by one timer.
//!
//! In logarithms; a row keeps its stage's and its own level. `O(rows x iterations)` and a few selections a row.

use std::ops::Range;

use super::common::common_steps;
use super::load::without_load;
use super::rows::RowPlaces;
use super::rows_by_step::RowsByStep;
use super::settings::PeerSettings;
use super::slowness::{Propose, Rows, Verdicts, judge};
use crate::stats::median;

/// The log of how many times faster than its stage's usual a whole step can be: a nanosecond would outweigh all other
/// steps of a row.
const FASTEST: f64 = 2.0 * std::f64::consts::LN_2;

/// Own factors with what they say of every row.
pub(super) struct OwnFactors {
    /// Rows x iterations (log).
    pub factors: RowsByStep,
    /// Who is slow, and when.
    pub verdicts: Verdicts,
}

impl OwnFactors {
    /// Judges rows by `seconds` (above 0 or NaN).
    pub fn of(
        seconds: &RowsByStep,
        places: &RowPlaces,
        slow_windows: &[Range<usize>],
        propose: &Propose<'_>,
        settings: &PeerSettings,
    ) -> Self {
        let mut logs = seconds.clone();
        logs.change(|_, cells| cells.iter_mut().for_each(|cell| *cell = cell.ln()));
        take_out_broken_steps(&mut logs, places);
        let mut factors = logs.clone();
        factors.subtract_from_columns(&common_steps(&logs));
        let unloaded = without_load(&logs, &factors, places, settings);
        let (factors, residual) = match unloaded {
            Some(unloaded) => (unloaded.factors, Some(unloaded.residual)),
            None => (factors, None),
        };
        let rows = Rows {
            factors: &factors,
            residual: residual.as_ref(),
            logs: &logs,
            stages: &places.stages,
            stage_of: &places.stage_of,
            slow_windows,
        };
        let verdicts = judge(&rows, propose, settings);
        Self { factors, verdicts }
    }
}

/// Takes out steps far below their stage's usual: the timer did not run whole.
fn take_out_broken_steps(logs: &mut RowsByStep, places: &RowPlaces) {
    let medians = logs.row_medians();
    let usual: Vec<f64> = places
        .stages
        .iter()
        .map(|rows| median(rows.iter().map(|&row| medians[row])))
        .collect();
    logs.change(|row, cells| {
        let fastest = usual[places.stage_of[row]] - FASTEST;
        // Comparing with NaN holds for none.
        let broken = cells.iter_mut().filter(|cell| **cell < fastest);
        broken.for_each(|cell| *cell = f64::NAN);
    });
}
