//! What the answers bring, and how they are put together.

use ndarray::Array2;

use super::super::reduced::DurationSums;
use crate::source::clickhouse::{RankColumns, RankRows};

/// The tables as they came.
#[derive(Default)]
pub(super) struct Taken {
    /// For each timer.
    pub seconds: Vec<Array2<f64>>,
    /// For each timer and rank.
    pub sums: Vec<Vec<Option<DurationSums>>>,
    /// Rows that count, each once.
    pub used: u64,
    pub zeros: u64,
    pub repeated: bool,
    /// Whether each timer, and each rank, has a row that counts.
    pub has_row: (Vec<bool>, Vec<bool>),
}

/// What one query brings: columns of all timers and ranks.
#[derive(Default)]
pub(super) struct Slab {
    /// Columns from this one on.
    pub first_column: usize,
    pub cells: Vec<RankCells>,
    pub used: u64,
    pub zeros: u64,
    pub repeated: bool,
}

/// One timer's and rank's part of a slab.
pub(super) struct RankCells {
    pub timer: usize,
    pub rank: usize,
    /// NaN for a column without a row.
    pub seconds: Box<[f64]>,
    pub sums: Option<DurationSums>,
}

impl Slab {
    pub fn add_rows(&mut self, ranks: &[u32], columns: usize, line: &RankRows) {
        let Ok(rank) = ranks.binary_search(&line.rank_number) else {
            return;
        };
        let mut cells = vec![f64::NAN; columns].into_boxed_slice();
        for (&place, &seconds) in line.places.iter().zip(&line.seconds) {
            if let Some(cell) = cells.get_mut(usize::from(place)) {
                if cell.is_nan() {
                    self.used += 1;
                } else {
                    self.repeated = true;
                }
                *cell = seconds;
            }
        }
        self.cells.push(RankCells {
            timer: line.timer.into(),
            rank,
            seconds: cells,
            sums: None,
        });
    }

    pub fn add_columns(&mut self, ranks: &[u32], columns: usize, line: &RankColumns) {
        let Ok(rank) = ranks.binary_search(&line.rank_number) else {
            return;
        };
        let mut cells = vec![f64::NAN; columns].into_boxed_slice();
        for (&place, &seconds) in line.places.iter().zip(&line.seconds) {
            if let Some(cell) = cells.get_mut(usize::from(place)) {
                *cell = seconds;
            }
        }
        self.used += u64::from(line.distinct);
        self.zeros += u64::from(line.zeros);
        self.repeated |= line.row_count > line.distinct;
        self.cells.push(RankCells {
            timer: line.timer.into(),
            rank,
            seconds: cells,
            sums: (line.most > 0.0).then_some(DurationSums {
                least: line.least,
                most: line.most,
                total: line.total,
                count: line.distinct.saturating_sub(line.zeros).into(),
            }),
        });
    }
}

impl Taken {
    pub fn add(&mut self, slab: Slab) {
        self.used += slab.used;
        self.zeros += slab.zeros;
        self.repeated |= slab.repeated;
        for cells in slab.cells {
            let Some(table) = self.seconds.get_mut(cells.timer) else {
                continue;
            };
            self.has_row.0[cells.timer] = true;
            self.has_row.1[cells.rank] = true;
            let first = slab.first_column;
            let mut row = table.row_mut(cells.rank);
            row.iter_mut()
                .skip(first)
                .zip(&cells.seconds)
                .for_each(|(cell, &seconds)| *cell = seconds);
            let known = self.sums[cells.timer].get_mut(cells.rank);
            if let (Some(known), Some(sums)) = (known, cells.sums) {
                *known = Some(known.map_or(sums, |known| known.with(&sums)));
            }
        }
    }
}
