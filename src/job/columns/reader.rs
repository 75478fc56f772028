//! Asks for the tables part by part, some parts side by side.

use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::mpsc::sync_channel;

use ndarray::Array2;

use super::super::assemble::{Job, TimerTable};
use super::super::from_table::TIMERS_PLACE;
use super::super::quality::DataQuality;
use super::super::step_time;
use super::super::topology::Topology;
use super::slab::{Slab, Taken};
use super::window::CountedWindow;
use crate::comm::collectives::COLLECTIVES;
use crate::source::clickhouse::{Columns, RankColumns, RankRows, Stands, Table, Wanted};
use crate::source::{SourceError, is_transfer};

/// Rows that one query passes on at most: what the server's memory holds.
const ROWS_AT_ONCE: usize = 1 << 22;
/// Cells that one query makes of several rows each at most, but for a single column: about 1 GB there.
const CELLS_AT_ONCE: usize = 1 << 23;
/// Queries that are under way side by side: while one answer is read the server works on the next.
const AT_ONCE: usize = 2;

/// A part of the window: some columns in a row.
#[derive(Clone, Copy)]
struct Part {
    first_column: usize,
    columns: usize,
}

pub(super) struct Reader<'a> {
    pub table: &'a Table,
    pub wanted: &'a Wanted<'a>,
    pub window: &'a CountedWindow,
    pub ranks: &'a [u32],
    /// Iterations that a column stands for.
    pub length: usize,
}

impl Reader<'_> {
    fn columns(&self) -> usize {
        self.window.iterations.len().div_ceil(self.length)
    }

    /// The window in parts that a query can hold.
    fn parts(&self) -> Vec<Part> {
        let rows = self.window.rows.iter().sum::<u64>() as usize;
        let cells = self.window.timers.len() * self.ranks.len() * self.columns();
        let (held, most) = if self.length == 1 {
            (rows, ROWS_AT_ONCE)
        } else {
            (cells, CELLS_AT_ONCE)
        };
        let places = (Columns::MOST / self.length).clamp(1, self.columns().max(1));
        let columns = (self.columns() * most / held.max(1)).clamp(1, places);
        (0..self.columns())
            .step_by(columns)
            .map(|first_column| Part {
                first_column,
                columns: columns.min(self.columns() - first_column),
            })
            .collect()
    }

    /// All tables; parts are asked for side by side and put together in their order.
    pub fn read_all(&self, progress: &dyn Fn(u64)) -> Result<Taken, SourceError> {
        let parts = self.parts();
        let (next, failed) = (AtomicUsize::new(0), AtomicBool::new(false));
        // A part waits until those before it have been put together.
        let (sender, arrivals) = sync_channel(AT_ONCE);
        let table = || Array2::from_elem((self.ranks.len(), self.columns()), f64::NAN);
        let of_ranks = || vec![None; if self.length > 1 { self.ranks.len() } else { 0 }];
        let mut taken = Taken {
            seconds: self.window.timers.iter().map(|_| table()).collect(),
            sums: self.window.timers.iter().map(|_| of_ranks()).collect(),
            ..Taken::default()
        };
        let mut first_error = None;
        std::thread::scope(|scope| {
            for _ in 0..AT_ONCE.min(parts.len()) {
                let (sender, next, failed, parts) = (sender.clone(), &next, &failed, &parts);
                scope.spawn(move || {
                    loop {
                        let place = next.fetch_add(1, Ordering::Relaxed);
                        let Some(&part) = parts.get(place) else { break };
                        let read = self.read(part);
                        failed.fetch_or(read.is_err(), Ordering::Relaxed);
                        // The receiver is there until the last sender goes.
                        let _ = sender.send((place, read));
                        if failed.load(Ordering::Relaxed) {
                            break;
                        }
                    }
                });
            }
            drop(sender);
            let (mut early, mut due) = (BTreeMap::new(), 0);
            for (place, read) in arrivals {
                match read {
                    Ok(slab) => early.insert(place, slab),
                    Err(error) => {
                        first_error = first_error.take().or(Some(error));
                        continue;
                    }
                };
                while let Some(slab) = early.remove(&due) {
                    taken.add(slab);
                    progress(taken.used);
                    due += 1;
                }
            }
        });
        match first_error {
            Some(error) => Err(error),
            None => Ok(taken),
        }
    }

    fn read(&self, part: Part) -> Result<Slab, SourceError> {
        let names: Vec<&str> = self.window.timers.iter().map(String::as_str).collect();
        let asked = Asked::new(self, part, &names);
        let columns = asked.columns(self, part);
        let begin = || Slab {
            first_column: part.first_column,
            ..Slab::default()
        };
        let from = (self.wanted, TIMERS_PLACE);
        if self.length == 1 {
            let add = |slab: &mut Slab, line: &RankRows| slab.add_rows(self.ranks, part.columns, line);
            return once_if_repeated(|repeated| self.table.rank_rows(from, &columns, repeated, begin, add));
        }
        let add = |slab: &mut Slab, line: &RankColumns| slab.add_columns(self.ranks, part.columns, line);
        once_if_repeated(|repeated| self.table.rank_columns(from, &columns, repeated, begin, add))
    }

    /// The longest step of any rank in each iteration, as a job of one rank.
    pub fn steps(&self, repeated: bool) -> Result<Job, SourceError> {
        let timers = &self.window.timers;
        let names = step_time::timers(|name| timers.iter().any(|timer| timer == name));
        let parts = if names.is_empty() { Vec::new() } else { self.parts() };
        let mut seconds = Array2::from_elem((1, self.window.iterations.len()), f64::NAN);
        for part in parts {
            let asked = Asked::new(self, part, &names);
            let columns = asked.columns(self, part);
            for step in self.table.longest((self.wanted, TIMERS_PLACE), &columns, repeated)? {
                if let Ok(place) = self.window.iterations.binary_search(&step.iteration_number) {
                    seconds[(0, place)] = step.seconds;
                }
            }
        }
        let timer = names.first().map(|name| TimerTable {
            name: (*name).to_owned(),
            seconds,
        });
        Ok(Job {
            id: self.wanted.job.to_owned(),
            ranks: vec![0],
            nodes: vec![String::new()],
            iterations: self.window.iterations.clone(),
            iteration_times: self.window.times.iter().map(|&(_, last)| last).collect(),
            timers: timer.into_iter().collect(),
            calls: Vec::new(),
            topology: Topology::unknown(&[0]),
            runs: self.window.runs.runs.clone(),
            quality: DataQuality::default(),
            reduced: None,
        })
    }
}

/// What stands for the iterations of a column.
///
/// Who comes last into a collective waits least, so that there the shortest duration counts; and a transfer is told from
/// what both of its ends take in the same iteration.
fn stands_for(timer: &str) -> Stands {
    if COLLECTIVES.contains(&timer) {
        Stands::Shortest
    } else if is_transfer(timer) {
        Stands::First
    } else {
        Stands::Mean
    }
}

/// What a query of a part asks for, held for its time.
struct Asked<'a> {
    timers: &'a [&'a str],
    stands: Vec<u8>,
    runs: Vec<&'a str>,
}

impl<'a> Asked<'a> {
    fn new(reader: &'a Reader<'_>, part: Part, timers: &'a [&'a str]) -> Self {
        let run = |&run: &u32| reader.window.run_names[run as usize].as_str();
        Self {
            timers,
            stands: timers.iter().map(|timer| stands_for(timer) as u8).collect(),
            runs: reader.window.run_of[part.iterations(reader)].iter().map(run).collect(),
        }
    }

    fn columns(&'a self, reader: &'a Reader<'_>, part: Part) -> Columns<'a> {
        let window = reader.window;
        let iterations = part.iterations(reader);
        let times = &window.times[iterations.clone()];
        let first = times.iter().map(|&(first, _)| first).min();
        let last = times.iter().map(|&(_, last)| last).max();
        // Other timers' rows are counted too: of some timers there may be fewer.
        let all = self.timers.len() == window.timers.len();
        Columns {
            timers: self.timers,
            stands: &self.stands,
            runs: &self.runs,
            times: (first.unwrap_or_default(), last.unwrap_or_default()),
            length: reader.length,
            counted: if all {
                window.rows[iterations.clone()].iter().sum()
            } else {
                0
            },
            iterations: &window.iterations[iterations],
        }
    }
}

impl Part {
    /// Its iterations, by place.
    fn iterations(self, reader: &Reader<'_>) -> Range<usize> {
        let end = (self.first_column + self.columns) * reader.length;
        self.first_column * reader.length..end.min(reader.window.iterations.len())
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
