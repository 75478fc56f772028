//! Asks for the tables part by part, some parts side by side.

use std::ops::Range;

use ndarray::Array2;

use super::super::step_time;
use super::super::steps::Steps;
use super::joined;
use super::slab::{Slab, Taken};
use super::window::CountedWindow;
use crate::contract::timers::{is_collective, is_transfer};
use crate::source::SourceError;
use crate::source::clickhouse::{ColumnsAsked, RankColumns, RankRows, Stands, Table, Wanted};
use crate::source::fate::place;

/// Rows that one query passes on at most: what the server's memory holds.
const ROWS_AT_ONCE: usize = 1 << 22;
/// Cells that one query makes of several rows each at most, but for a single column: about 1 GB there.
const CELLS_AT_ONCE: usize = 1 << 23;
/// Queries that are under way side by side: while one answer is read the server works on the next.
const AT_ONCE: usize = 2;

/// A part of the window: some columns in a row.
#[derive(Clone, Copy)]
struct Slice {
    first_column: usize,
    columns: usize,
}

pub(super) struct Reader<'a> {
    pub table: &'a Table,
    pub wanted: &'a Wanted<'a>,
    pub window: &'a CountedWindow,
    pub ranks: &'a [u32],
    /// Names of the timers, sorted.
    pub timers: &'a [String],
    /// The iteration of each column from which transfers are told.
    pub samples: &'a [i64],
    /// Iterations that a column stands for.
    pub length: usize,
}

impl Reader<'_> {
    fn columns(&self) -> usize {
        self.window.steps.iterations.len().div_ceil(self.length)
    }

    /// The window in parts that a query can hold.
    fn parts(&self) -> Vec<Slice> {
        let window = self.window;
        let rows = window.steps.rows.iter().sum::<u64>() as usize;
        let cells = self.timers.len() * self.ranks.len() * self.columns();
        let (held, most) = if self.length == 1 {
            (rows, ROWS_AT_ONCE)
        } else {
            (cells, CELLS_AT_ONCE)
        };
        let one_run = window.steps.run_of.windows(2).all(|pair| pair[0] == pair[1]);
        let iterations = if one_run && ColumnsAsked::are_gapless(&window.steps.iterations) {
            ColumnsAsked::MOST
        } else {
            ColumnsAsked::MOST_LISTED
        };
        let listed = if self.length == 1 {
            ColumnsAsked::MOST
        } else {
            ColumnsAsked::MOST_LISTED
        };
        // The samples are listed, one a column.
        let most_columns = (iterations / self.length).min(listed);
        let columns = (self.columns() * most / held.max(1)).clamp(1, most_columns.max(1));
        (0..self.columns())
            .step_by(columns)
            .map(|first_column| Slice {
                first_column,
                columns: columns.min(self.columns() - first_column),
            })
            .collect()
    }

    /// All tables; some parts are asked for side by side, and put together in their order.
    pub fn read_all(&self, progress: &dyn Fn(u64)) -> Result<Taken, SourceError> {
        let table = || Array2::from_elem((self.ranks.len(), self.columns()), f64::NAN);
        let of_ranks = || vec![None; if self.length > 1 { self.ranks.len() } else { 0 }];
        let mut taken = Taken {
            seconds: self.timers.iter().map(|_| table()).collect(),
            sums: self.timers.iter().map(|_| of_ranks()).collect(),
            has_row: (vec![false; self.timers.len()], vec![false; self.ranks.len()]),
            ..Taken::default()
        };
        for parts in self.parts().chunks(AT_ONCE) {
            let slabs: Vec<Result<Slab, SourceError>> = std::thread::scope(|scope| {
                let asked: Vec<_> = parts.iter().map(|&part| scope.spawn(move || self.read(part))).collect();
                asked.into_iter().map(joined).collect()
            });
            for slab in slabs {
                taken.add(slab?);
                progress(taken.used);
            }
        }
        Ok(taken)
    }

    fn read(&self, part: Slice) -> Result<Slab, SourceError> {
        let names: Vec<&str> = self.timers.iter().map(String::as_str).collect();
        let asked = Asked::new(self, part, &names);
        let columns = asked.columns(self, part);
        let begin = || Slab {
            first_column: part.first_column,
            ..Slab::default()
        };
        let from = (self.wanted, place::TIMERS);
        if self.length == 1 {
            let add = |slab: &mut Slab, line: &RankRows| slab.add_rows(self.ranks, part.columns, line);
            return once_if_repeated(|repeated| self.table.rank_rows(from, &columns, repeated, begin, add));
        }
        let add = |slab: &mut Slab, line: &RankColumns| slab.add_columns(self.ranks, part.columns, line);
        once_if_repeated(|repeated| self.table.rank_columns(from, &columns, repeated, begin, add))
    }

    /// How long each iteration took: the longest step of any rank.
    pub fn steps(&self, repeated: bool) -> Result<Steps, SourceError> {
        let (measure, names) = step_time::timers(|name| self.timers.iter().any(|timer| timer == name));
        let parts = if names.is_empty() { Vec::new() } else { self.parts() };
        let counted = &self.window.steps;
        let mut seconds = vec![f64::NAN; counted.iterations.len()];
        for part in parts {
            let asked = Asked::new(self, part, &names);
            let columns = asked.columns(self, part);
            for step in self.table.longest((self.wanted, place::TIMERS), &columns, repeated)? {
                if let Ok(at) = counted.iterations.binary_search(&step.iteration_number) {
                    seconds[at] = step.seconds;
                }
            }
        }
        Ok(Steps {
            measure,
            iterations: counted.iterations.clone(),
            times: counted.times.iter().map(|&(_, last)| last).collect(),
            seconds,
        })
    }
}

/// What stands for the iterations of a column.
///
/// Who comes last into a collective waits least, so that there the shortest duration counts; and a transfer is told from
/// what both of its ends take in the same iteration.
fn stands_for(timer: &str) -> Stands {
    if is_collective(timer) {
        Stands::Shortest
    } else if is_transfer(timer) {
        Stands::Sample
    } else {
        Stands::Mean
    }
}

/// What a query of a part asks for, held for its time.
struct Asked<'a> {
    timers: &'a [&'a str],
    stands: Vec<u8>,
    runs: Vec<&'a str>,
    samples: Vec<u16>,
}

impl<'a> Asked<'a> {
    fn new(reader: &'a Reader<'_>, part: Slice, timers: &'a [&'a str]) -> Self {
        let run = |&run: &u32| reader.window.run_names[run as usize].as_str();
        let iterations = &reader.window.steps.iterations[part.iterations(reader)];
        // Whole columns need none.
        let of_part = if reader.length > 1 { part.columns } else { 0 };
        let samples = reader.samples.iter().skip(part.first_column).take(of_part);
        let place = |sample: &i64| iterations.binary_search(sample).ok();
        Self {
            // The place of an iteration in its part fits: see `parts`.
            samples: samples
                .filter_map(place)
                .filter_map(|place| place.try_into().ok())
                .collect(),
            timers,
            stands: timers.iter().map(|timer| stands_for(timer) as u8).collect(),
            runs: reader.window.steps.run_of[part.iterations(reader)]
                .iter()
                .map(run)
                .collect(),
        }
    }

    fn columns(&'a self, reader: &'a Reader<'_>, part: Slice) -> ColumnsAsked<'a> {
        let window = reader.window;
        let iterations = part.iterations(reader);
        let times = &window.steps.times[iterations.clone()];
        let first = times.iter().map(|&(first, _)| first).min();
        let last = times.iter().map(|&(_, last)| last).max();
        // Other timers' rows are counted too: of some timers there may be fewer.
        let all = self.timers.len() == reader.timers.len();
        ColumnsAsked {
            timers: self.timers,
            stands: &self.stands,
            runs: &self.runs,
            times: (first.unwrap_or_default(), last.unwrap_or_default()),
            length: reader.length,
            samples: &self.samples,
            counted: if all {
                window.steps.rows[iterations.clone()].iter().sum()
            } else {
                0
            },
            iterations: &window.steps.iterations[iterations],
        }
    }
}

impl Slice {
    /// Its iterations, by place.
    fn iterations(self, reader: &Reader<'_>) -> Range<usize> {
        let end = (self.first_column + self.columns) * reader.length;
        self.first_column * reader.length..end.min(reader.window.steps.iterations.len())
    }
}

/// Reads a slab, again where rows turn out to repeat others.
fn once_if_repeated(read: impl Fn(bool) -> Result<Slab, SourceError>) -> Result<Slab, SourceError> {
    let slab = read(false)?;
    if slab.repeated {
        return Ok(Slab {
            repeated: true,
            ..read(true)?
        });
    }
    Ok(slab)
}
