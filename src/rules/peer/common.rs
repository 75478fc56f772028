//! What a step asks of everybody, told so that ranks on several levels and ranks that change do not move it.
//!
//! A row is taken about its own better steps and a step about its faster rows, in turns. Faults only slow down, so lower
//! quantiles stay with those who are well, even where half of the ranks become slow at once.

use super::rows_by_step::RowsByStep;
use crate::contract::constant::constants;
use crate::stats::lower;

constants! {
    /// Quantile of a row's steps that stands for its better ones.
    pub(super) BETTER_STEPS: f64 = 0.25;
    /// Quantile of rows that stands for those who are well: the lower one of two, and the middle of a half that is well.
    pub(super) FASTER_ROWS: f64 = 0.35;
    /// Turns after which no more changes that matters.
    TURNS: usize = 3;
    /// Rows that tell the common part at most, evenly spread over all: more would change it by a hundredth of their noise.
    MOST_ROWS: usize = 2048;
}

/// The common part of each step, in logarithms; what rows differ by stays in them.
pub(super) fn common_steps(logs: &RowsByStep) -> Vec<f64> {
    let every = logs.rows().div_ceil(MOST_ROWS.get()).max(1);
    let sample = (every > 1).then(|| logs.select(&(0..logs.rows()).step_by(every).collect::<Vec<_>>()));
    let logs = sample.as_ref().unwrap_or(logs);
    let mut steps = vec![0.0; logs.columns()];
    for _ in 0..TURNS.get() {
        let better = logs.map(|_, cells| {
            lower(
                cells.iter().zip(&steps).map(|(cell, step)| cell - step),
                BETTER_STEPS.get(),
            )
        });
        steps = logs.map_columns(|column| {
            let of_step = lower(
                column.zip(&better).map(|(cell, better)| cell - better),
                FASTER_ROWS.get(),
            );
            if of_step.is_finite() { of_step } else { 0.0 }
        });
    }
    steps
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn half_the_rows_on_another_level_or_becoming_slow_do_not_move_a_step() {
        let logs = RowsByStep::fill(8, 40, |row, cells| {
            for (t, cell) in cells.iter_mut().enumerate() {
                let step = if t == 7 { 0.4 } else { 0.0 };
                let level = if row < 4 { 0.3 } else { 0.0 };
                let onset = if row % 2 == 0 && t >= 20 { 0.2 } else { 0.0 };
                *cell = step + level + onset;
            }
        });
        let steps = common_steps(&logs);
        for (t, step) in steps.iter().enumerate() {
            let expected = if t == 7 { 0.4 } else { 0.0 };
            assert!((step - steps[0] - expected).abs() < 1e-12, "{t}: {step}");
        }
    }
}
