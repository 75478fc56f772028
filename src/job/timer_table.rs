//! The durations of one timer, and what its cells come to.

use ndarray::Array2;
use rayon::prelude::*;

/// Durations of one timer in seconds; NaN where there is no row.
#[derive(Debug, Clone)]
pub struct TimerTable {
    /// Name of the timer.
    pub name: String,
    /// A row a rank, a column an iteration, by position in [`Job::ranks`](super::Job::ranks) and
    /// [`Job::iterations`](super::Job::iterations).
    pub seconds: Array2<f64>,
}

/// Cells that hold a row.
pub(super) fn used(tables: &[TimerTable]) -> u64 {
    cells(tables, |seconds| !seconds.is_nan())
}

/// Cells that hold 0: the timer did not run.
pub(super) fn zeros(tables: &[TimerTable]) -> u64 {
    cells(tables, |seconds| seconds == 0.0)
}

fn cells(tables: &[TimerTable], count: impl Fn(f64) -> bool + Sync) -> u64 {
    let of_table = |table: &TimerTable| table.seconds.iter().filter(|&&seconds| count(seconds)).count() as u64;
    tables.par_iter().map(of_table).sum()
}
