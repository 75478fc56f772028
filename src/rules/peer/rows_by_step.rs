//! A dense table of rows (ranks or units) by iterations, worked on row by row in parallel.
//!
//! NaN is "no value" everywhere. Rows are independent and collected in order, so the number of threads can't show.

use rayon::prelude::*;

use crate::stats::median;

/// Rows x iterations, row after row.
#[derive(Debug, Clone)]
pub(super) struct RowsByStep {
    rows: usize,
    columns: usize,
    values: Vec<f64>,
}

impl RowsByStep {
    /// Fills each row by `fill(row, cells)`; the cells come as NaN.
    pub fn fill(rows: usize, columns: usize, fill: impl Fn(usize, &mut [f64]) + Sync) -> Self {
        let mut values = vec![f64::NAN; rows * columns];
        values
            .par_chunks_mut(columns.max(1))
            .enumerate()
            .for_each(|(row, cells)| fill(row, cells));
        Self { rows, columns, values }
    }

    /// Some of the rows, in the given order.
    pub fn select(&self, rows: &[usize]) -> Self {
        Self::fill(rows.len(), self.columns, |row, cells| {
            cells.copy_from_slice(self.row(rows[row]))
        })
    }

    /// Number of rows.
    pub fn rows(&self) -> usize {
        self.rows
    }

    /// Number of iterations.
    pub fn columns(&self) -> usize {
        self.columns
    }

    /// One row.
    pub fn row(&self, row: usize) -> &[f64] {
        &self.values[row * self.columns..(row + 1) * self.columns]
    }

    /// Every cell, row after row.
    pub fn cells(&self) -> impl Iterator<Item = f64> + '_ {
        self.values.iter().copied()
    }

    /// Whether any cell has a value.
    pub fn has_values(&self) -> bool {
        self.values.iter().any(|value| value.is_finite())
    }

    /// `of(row, cells)` for every row, in order.
    pub fn map<T: Send>(&self, of: impl Fn(usize, &[f64]) -> T + Sync) -> Vec<T> {
        (0..self.rows)
            .into_par_iter()
            .map(|row| of(row, self.row(row)))
            .collect()
    }

    /// Changes every row in place by `change(row, cells)`.
    pub fn change(&mut self, change: impl Fn(usize, &mut [f64]) + Sync) {
        self.values
            .par_chunks_mut(self.columns.max(1))
            .enumerate()
            .for_each(|(row, cells)| change(row, cells));
    }

    /// Subtracts a number from every cell of its row.
    pub fn subtract_from_rows(&mut self, numbers: &[f64]) {
        self.change(|row, cells| cells.iter_mut().for_each(|cell| *cell -= numbers[row]));
    }

    /// Subtracts a number from every cell of its column.
    pub fn subtract_from_columns(&mut self, numbers: &[f64]) {
        self.change(|_, cells| cells.iter_mut().zip(numbers).for_each(|(cell, number)| *cell -= number));
    }

    /// `of` the values of each iteration over all rows, in the order of the rows.
    pub fn map_columns(&self, of: impl Fn(&mut dyn Iterator<Item = f64>) -> f64 + Sync) -> Vec<f64> {
        (0..self.columns)
            .into_par_iter()
            .map(|column| of(&mut (0..self.rows).map(|row| self.values[row * self.columns + column])))
            .collect()
    }

    /// The median of every row.
    pub fn row_medians(&self) -> Vec<f64> {
        self.map(|_, cells| median(cells.iter().copied()))
    }

    /// The table with each row's median taken out.
    pub fn about_row_medians(&self) -> Self {
        let mut about = self.clone();
        about.subtract_from_rows(&self.row_medians());
        about
    }
}
