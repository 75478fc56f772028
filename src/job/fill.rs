//! From columns of rows to one table a timer.

use std::ops::Range;

use ndarray::Array2;
use rayon::prelude::*;

use super::collected_rows::TimerRows;
use super::counting_rows::CountedSteps;
use super::positions::Positions;
use super::timer_table::TimerTable;
use crate::source::Micros;

/// Stands for the column of a step that does not count.
const NONE: u32 = u32::MAX;

/// The rows of a timer: its pieces of the columns of chunks, in the order of the files.
type Pieces = Vec<(usize, Range<usize>)>;

/// What is needed to place a row.
pub(super) struct Filler<'a> {
    chunks: &'a [TimerRows],
    /// For each chunk and each of its steps the column of its iteration.
    columns: Vec<Vec<u32>>,
    /// For each timer.
    pieces: Vec<Pieces>,
}

impl<'a> Filler<'a> {
    /// Looks at each chunk's steps once; `timers` is how many there are.
    pub fn new(chunks: &'a [TimerRows], timers: usize, counted: &CountedSteps) -> Self {
        let column = |step| counted.column(step).and_then(|column| u32::try_from(column).ok());
        let columns = |rows: &TimerRows| rows.steps.iter().map(|&step| column(step).unwrap_or(NONE)).collect();
        let mut pieces = vec![Pieces::new(); timers];
        for (chunk, rows) in chunks.iter().enumerate() {
            let mut begin = 0;
            for &(timer, length) in &rows.pieces {
                pieces[timer as usize].push((chunk, begin..begin + length));
                begin += length;
            }
        }
        Self {
            chunks,
            columns: chunks.iter().map(columns).collect(),
            pieces,
        }
    }

    /// The rank of each row of a timer that counts.
    fn counting_ranks(&self, timer: usize) -> impl Iterator<Item = u32> {
        let ranks = |(chunk, piece): &(usize, Range<usize>)| {
            let (rows, columns) = (&self.chunks[*chunk], &self.columns[*chunk]);
            let counts = move |row: &usize| columns[rows.step[*row] as usize] != NONE;
            piece.clone().filter(counts).map(|row| rows.rank[row])
        };
        self.pieces[timer].iter().flat_map(ranks)
    }

    /// The timers of which a row counts.
    pub fn timers(&self) -> Vec<usize> {
        let counts = |timer: &usize| self.counting_ranks(*timer).next().is_some();
        (0..self.pieces.len()).filter(counts).collect()
    }

    /// The ranks of which a row counts, ascending.
    pub fn ranks(&self) -> Vec<u32> {
        let mut ranks: Vec<u32> = Vec::new();
        for timer in 0..self.pieces.len() {
            ranks.extend(self.counting_ranks(timer));
            ranks.sort_unstable();
            ranks.dedup();
        }
        ranks
    }

    /// Fills the tables of some timers, sorted by name; of rows with the same key the later wins, at the same moment the
    /// longer duration.
    pub fn fill(&self, timers: &[usize], names: &[String], ranks: &[u32], columns: usize) -> Vec<TimerTable> {
        let row_of = Positions::new(ranks.iter().map(|&rank| i64::from(rank)));
        let shape = (ranks.len(), columns);
        let table = |&timer: &usize| TimerTable {
            name: names[timer].clone(),
            seconds: self
                .once(timer, shape, &row_of)
                .unwrap_or_else(|| self.latest(timer, shape, &row_of)),
        };
        let mut tables: Vec<TimerTable> = timers.par_iter().map(table).collect();
        tables.sort_by(|a, b| a.name.cmp(&b.name));
        tables
    }

    /// The table of a timer of which no row repeats another; `None` if one does.
    fn once(&self, timer: usize, shape: (usize, usize), row_of: &Positions) -> Option<Array2<f64>> {
        let mut cells = vec![f64::NAN; shape.0 * shape.1];
        for (chunk, piece) in &self.pieces[timer] {
            let (rows, columns) = (&self.chunks[*chunk], &self.columns[*chunk]);
            let (ranks, steps) = (&rows.rank[piece.clone()], &rows.step[piece.clone()]);
            for ((&rank, &step), &seconds) in ranks.iter().zip(steps).zip(&rows.seconds[piece.clone()]) {
                let column = columns[step as usize];
                if column == NONE {
                    continue;
                }
                let cell = &mut cells[row_of.at(rank.into()) * shape.1 + column as usize];
                if !cell.is_nan() {
                    return None;
                }
                *cell = seconds;
            }
        }
        Array2::from_shape_vec(shape, cells).ok()
    }

    /// The table of a timer of which some rows repeat others.
    fn latest(&self, timer: usize, shape: (usize, usize), row_of: &Positions) -> Array2<f64> {
        let mut table = Array2::from_elem(shape, f64::NAN);
        let mut times = Array2::from_elem(shape, Micros::MIN);
        for (chunk, piece) in &self.pieces[timer] {
            let (rows, columns) = (&self.chunks[*chunk], &self.columns[*chunk]);
            for row in piece.clone() {
                let column = columns[rows.step[row] as usize];
                if column == NONE {
                    continue;
                }
                let cell = (row_of.at(rows.rank[row].into()), column as usize);
                let (known, known_time) = (&mut table[cell], &mut times[cell]);
                let (time, seconds) = (rows.time.get(row), rows.seconds[row]);
                if known.is_nan() || time > *known_time || (time == *known_time && seconds > *known) {
                    (*known_time, *known) = (time, seconds);
                }
            }
        }
        table
    }
}

/// Takes out the ranks of which no table holds a row: those that were there in a run's start-up only.
pub(super) fn without_empty_ranks(ranks: &mut Vec<u32>, tables: &mut [TimerTable]) {
    let has_row = |rank: &usize| {
        tables
            .iter()
            .any(|table| table.seconds.row(*rank).iter().any(|cell| !cell.is_nan()))
    };
    let kept: Vec<usize> = (0..ranks.len()).filter(has_row).collect();
    if kept.len() == ranks.len() {
        return;
    }
    for table in tables {
        table.seconds = table.seconds.select(ndarray::Axis(0), &kept);
    }
    *ranks = kept.iter().map(|&rank| ranks[rank]).collect();
}
