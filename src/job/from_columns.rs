//! One job's window from a ClickHouse table whose server makes the tables: what travels is an array of durations for
//! each timer and rank, or of sums where there would be too many.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::mpsc::sync_channel;

use ndarray::Array2;

use super::JobError;
use super::assemble::{Job, Tables, TimerTable, refuse_sparse, why_nothing_is_left, zeros};
use super::collect::Collector;
use super::counted::{CountedRuns, Fate};
use super::from_table::{GROUPS_PLACE, TIMERS_PLACE, TRACE_PLACE};
use super::kept::keep_latest;
use super::quality::DataQuality;
use super::reduced::{DurationSums, Reduced};
use super::runs::Runs;
use super::step_time;
use super::topology::Topology;
use super::window::Selection;
use crate::comm::collectives::COLLECTIVES;
use crate::source::clickhouse::{
    Columns, CountedRows, Placed, RankColumns, RankRows, Stands, Table, Tally, Wanted, sent,
};
use crate::source::{Micros, SourceError, is_transfer};

/// How much of the work on its rows is left to the server.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reduction {
    /// None: every row travels.
    Rows,
    /// The server makes the tables. Where they would have more cells than this, a column stands for several iterations.
    Tables {
        /// Most cells, but for [`LEAST_COLUMNS`].
        cells: usize,
    },
    /// The server makes the tables, but every row travels where columns would stand for several iterations.
    WholeTables {
        /// Most cells.
        cells: usize,
    },
}

impl Reduction {
    /// Cells of tables that travel and are held by default: 128 MB.
    pub const CELLS: usize = 1 << 24;
}

/// Columns that a table has at least, however many ranks there are: fewer do not show since when a rank is slow.
pub const LEAST_COLUMNS: usize = 20;
/// Rows with single calls that are read where iterations are put together: some hundred MB.
const TRACE_ROWS: u64 = 1 << 22;
/// Rows that one query passes on at most: what the server's memory holds.
const ROWS_AT_ONCE: usize = 1 << 22;
/// Cells that one query makes of several rows at most, but for a single column: what its caches hold.
const CELLS_AT_ONCE: usize = 1 << 19;
/// Queries that are under way side by side: while one answer is read the server works on the next.
const AT_ONCE: usize = 2;

/// What is known of the window before any of its rows travels.
pub(super) struct Summed {
    tallies: Vec<Tally>,
    placed: Vec<Placed>,
}

/// Counts the job's rows and, for tables, sums those of the window up, side by side.
pub(super) fn sum_up(
    table: &Table,
    wanted: &Wanted<'_>,
    reduction: Reduction,
) -> Result<(Vec<CountedRows>, Summed), SourceError> {
    if reduction == Reduction::Rows {
        let nothing = Summed {
            tallies: Vec::new(),
            placed: Vec::new(),
        };
        return Ok((table.count(wanted)?, nothing));
    }
    let (tallies, placed, counted) = std::thread::scope(|scope| {
        let tallies = scope.spawn(|| table.tally(wanted, TIMERS_PLACE));
        let placed = scope.spawn(|| table.placed(wanted, TIMERS_PLACE));
        let counted = table.count(wanted);
        (joined(tallies), joined(placed), counted)
    });
    let summed = Summed {
        tallies: tallies?,
        placed: placed?,
    };
    Ok((counted?, summed))
}

fn joined<T>(thread: std::thread::ScopedJoinHandle<'_, T>) -> T {
    thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
}

/// Reads the job; `None` where its tables would be too large for whole columns, and these are asked for.
pub(super) fn load(
    table: &Table,
    wanted: &Wanted<'_>,
    (counted, summed): (&[CountedRows], Summed),
    selection: &Selection,
    reduction: Reduction,
    progress: &dyn Fn(u64),
) -> Result<Option<Job>, JobError> {
    let (Reduction::Tables { cells } | Reduction::WholeTables { cells }) = reduction else {
        return Ok(None);
    };
    let mut collector = Collector::new(selection);
    collector.job = Some(wanted.job.to_owned());
    let (trace, others): (Vec<&CountedRows>, _) = counted.iter().partition(|rows| rows.metric == Some(TRACE_PLACE));
    others.into_iter().for_each(|rows| collector.count(rows, TIMERS_PLACE));
    let Summed { tallies, placed } = summed;
    let mut quality = DataQuality::default();
    let window = CountedWindow::new(&tallies, &mut collector, selection, &mut quality);
    collector.quality.add(&quality);
    if window.iterations.is_empty() {
        let id = wanted.job;
        let why = why_nothing_is_left(id, selection, &window.runs.runs, &collector.quality);
        return Err(SourceError::NoRows(why).into());
    }
    let ranks = window.ranks(placed, &mut collector);
    let rows: u64 = window.rows.iter().sum();
    let iterations = window.iterations.len();
    refuse_sparse(rows as usize, window.timers.len(), ranks.len(), iterations)?;
    let length = iterations_per_column(cells, ranks.len() * window.timers.len(), iterations);
    if length > 1 && matches!(reduction, Reduction::WholeTables { .. }) {
        return Ok(None);
    }
    if length == 1 {
        trace.into_iter().for_each(|rows| collector.count(rows, TIMERS_PLACE));
        table.pull(wanted, &[GROUPS_PLACE, TRACE_PLACE], counted, &mut collector, progress)?;
    } else {
        let first_ones = window
            .iterations
            .chunks(length)
            .filter_map(|column| column.first().copied());
        let first_ones: Vec<i64> = first_ones.collect();
        pull_sampled(table, wanted, counted, &first_ones, &mut collector, progress)?;
    }

    let reader = Reader {
        table,
        wanted,
        window: &window,
        ranks: &ranks,
        length,
    };
    let taken = reader.read_all(progress)?;
    let steps = if length > 1 {
        Some(reader.steps(taken.repeated)?)
    } else {
        None
    };
    let quality = &mut collector.quality;
    quality.timer_rows_used = taken.used;
    quality.duplicates = rows.saturating_sub(taken.used);
    Ok(Some(assemble(&reader, taken, steps, collector, selection)?))
}

/// Pulls what does not come in columns; of single calls those of some iterations, unless they are too many even so.
fn pull_sampled(
    table: &Table,
    wanted: &Wanted<'_>,
    counted: &[CountedRows],
    sampled: &[i64],
    collector: &mut Collector<'_>,
    progress: &dyn Fn(u64),
) -> Result<(), SourceError> {
    if !counted.iter().any(|rows| rows.metric == Some(TRACE_PLACE)) {
        return table.pull(wanted, &[GROUPS_PLACE], counted, collector, progress);
    }
    let wanted = Wanted {
        sampled: Some(sampled),
        ..wanted.clone()
    };
    let counted = table.count(&wanted)?;
    let few = sent(&counted, TRACE_PLACE) <= TRACE_ROWS;
    for rows in counted.iter().filter(|rows| rows.metric == Some(TRACE_PLACE)) {
        collector.count(rows, TIMERS_PLACE);
        if !few {
            collector.leave_out_trace(rows);
        }
    }
    let metrics: &[usize] = if few {
        &[GROUPS_PLACE, TRACE_PLACE]
    } else {
        &[GROUPS_PLACE]
    };
    table.pull(&wanted, metrics, &counted, collector, progress)
}

/// Iterations that a column stands for, so that tables of `rows` rows have no more cells than asked for.
fn iterations_per_column(cells: usize, rows: usize, iterations: usize) -> usize {
    let columns = (cells / rows.max(1)).max(LEAST_COLUMNS);
    iterations.div_ceil(columns).max(1)
}

/// The rows of the window that count, by timer and iteration.
struct CountedWindow {
    runs: Runs,
    run_names: Vec<String>,
    /// Runs with a row that counts.
    kept: BTreeSet<u32>,
    iterations: Vec<i64>,
    /// Run of each iteration.
    run_of: Vec<u32>,
    /// Time of the first and of the last row of each iteration.
    times: Vec<(Micros, Micros)>,
    /// Rows of each iteration.
    rows: Vec<u64>,
    /// Names of the timers, sorted.
    timers: Vec<String>,
}

impl CountedWindow {
    fn new(tallies: &[Tally], collector: &mut Collector<'_>, selection: &Selection, quality: &mut DataQuality) -> Self {
        let codes: Vec<u32> = tallies.iter().map(|tally| collector.run_code(&tally.run)).collect();
        let run_names = collector.runs.names.clone();
        let runs = Runs::new(&run_names, &collector.extents, selection.warmup);
        let usable = tallies.iter().zip(&codes).filter(|(tally, _)| tally.usable > 0);
        let rows = usable.map(|(tally, &run)| (run, tally.iteration_number));
        let counts = CountedRuns::new(rows, &runs, selection.rerun.as_ref(), &run_names);
        let mut iterations = BTreeMap::<i64, (u32, (Micros, Micros), u64)>::new();
        let mut timers = BTreeSet::new();
        for (tally, &run) in tallies.iter().zip(&codes) {
            quality.missing_values += tally.missing;
            quality.not_finite += tally.not_finite;
            quality.negative += tally.negative;
            let fate = counts.fate(run, tally.iteration_number);
            fate.count(tally.usable, quality);
            if fate == Fate::Counts && tally.usable > 0 {
                let times = (tally.first_time, tally.last_time);
                let (_, known, rows) = iterations.entry(tally.iteration_number).or_insert((run, times, 0));
                *known = (known.0.min(times.0), known.1.max(times.1));
                *rows += tally.usable;
                timers.insert(tally.timer.clone());
            }
        }
        Self {
            kept: iterations.values().map(|&(run, ..)| run).collect(),
            run_of: iterations.values().map(|&(run, ..)| run).collect(),
            times: iterations.values().map(|&(_, times, _)| times).collect(),
            rows: iterations.values().map(|&(.., rows)| rows).collect(),
            iterations: iterations.into_keys().collect(),
            runs,
            run_names,
            timers: timers.into_iter().collect(),
        }
    }

    /// The ranks of the runs that count, ascending; their nodes go to the collector.
    fn ranks(&self, placed: Vec<Placed>, collector: &mut Collector<'_>) -> Vec<u32> {
        let mut ranks = Vec::new();
        for placed in placed {
            let (run, Ok(rank)) = (collector.run_code(&placed.run), u32::try_from(placed.rank_number)) else {
                continue;
            };
            if self.kept.contains(&run) {
                ranks.push(rank);
            }
            if !placed.node_name.is_empty() {
                keep_latest(&mut collector.nodes, (run, rank), placed.last_time, placed.node_name);
            }
        }
        ranks.sort_unstable();
        ranks.dedup();
        ranks
    }
}

/// The tables as they came.
#[derive(Default)]
struct Taken {
    /// For each timer.
    seconds: Vec<Array2<f64>>,
    /// For each timer and rank.
    sums: Vec<Vec<Option<DurationSums>>>,
    /// Rows that count, each once.
    used: u64,
    zeros: u64,
    repeated: bool,
}

/// What one query brings: columns of all timers and ranks.
#[derive(Default)]
struct Slab {
    /// Columns from this one on.
    first_column: usize,
    cells: Vec<RankCells>,
    used: u64,
    zeros: u64,
    repeated: bool,
}

/// One timer's and rank's part of a slab.
struct RankCells {
    timer: usize,
    rank: usize,
    /// NaN for a column without a row.
    seconds: Box<[f64]>,
    sums: Option<DurationSums>,
}

/// A part of the window: some columns in a row.
#[derive(Clone, Copy)]
struct Part {
    first_column: usize,
    columns: usize,
}

struct Reader<'a> {
    table: &'a Table,
    wanted: &'a Wanted<'a>,
    window: &'a CountedWindow,
    ranks: &'a [u32],
    /// Iterations that a column stands for.
    length: usize,
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
    fn read_all(&self, progress: &dyn Fn(u64)) -> Result<Taken, SourceError> {
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
    fn steps(&self, repeated: bool) -> Result<Job, SourceError> {
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

impl Slab {
    fn add_rows(&mut self, ranks: &[u32], columns: usize, line: &RankRows) {
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

    fn add_columns(&mut self, ranks: &[u32], columns: usize, line: &RankColumns) {
        let Ok(rank) = ranks.binary_search(&line.rank_number) else {
            return;
        };
        let mut cells = vec![f64::NAN; columns].into_boxed_slice();
        for (&place, &seconds) in line.places.iter().zip(&line.seconds) {
            if let Some(cell) = cells.get_mut(usize::from(place)) {
                *cell = seconds;
            }
        }
        self.used += line.distinct;
        self.zeros += line.zeros;
        self.repeated |= line.row_count > line.distinct;
        self.cells.push(RankCells {
            timer: line.timer.into(),
            rank,
            seconds: cells,
            sums: (line.ran > 0).then_some(DurationSums {
                least: line.least,
                most: line.most,
                total: line.total,
                count: line.ran,
            }),
        });
    }
}

impl Taken {
    fn add(&mut self, slab: Slab) {
        self.used += slab.used;
        self.zeros += slab.zeros;
        self.repeated |= slab.repeated;
        for cells in slab.cells {
            let Some(table) = self.seconds.get_mut(cells.timer) else {
                continue;
            };
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

fn assemble(
    reader: &Reader<'_>,
    taken: Taken,
    steps: Option<Job>,
    mut collector: Collector<'_>,
    selection: &Selection,
) -> Result<Job, JobError> {
    let (window, length) = (reader.window, reader.length);
    let named = window.timers.iter().zip(taken.seconds);
    let mut timers: Vec<TimerTable> = named
        .map(|(name, seconds)| TimerTable {
            name: name.clone(),
            seconds,
        })
        .collect();
    let (mut ranks, mut sums) = (reader.ranks.to_vec(), taken.sums);
    without_empty_ranks(&mut ranks, &mut timers, &mut sums);
    collector.quality.zero_durations = if length > 1 { taken.zeros } else { zeros(&timers) };
    let columns = window.iterations.chunks(length);
    let latest = |times: &[(Micros, Micros)]| times.iter().map(|&(_, last)| last).max();
    let tables = Tables {
        ranks,
        iterations: columns.clone().filter_map(|column| column.first().copied()).collect(),
        iteration_times: window.times.chunks(length).filter_map(latest).collect(),
        timers,
    };
    let quality = collector.quality.clone();
    // Trace rows may name runs that have no timer row.
    let names = &collector.runs.names;
    let runs = Runs::new(names, &collector.extents, selection.warmup);
    let counting = window.run_of.iter().copied().zip(window.iterations.iter().copied());
    let counts = CountedRuns::new(counting, &runs, selection.rerun.as_ref(), names);
    let job = Job::of_tables(tables, &collector, selection, &counts, &window.kept, (&runs, quality))?;
    let reduced = steps.map(|steps| {
        Box::new(Reduced {
            length,
            last_iterations: columns.clone().filter_map(|column| column.last().copied()).collect(),
            counts: columns.map(<[i64]>::len).collect(),
            sums,
            steps,
        })
    });
    Ok(Job { reduced, ..job })
}

/// Takes out ranks of which no row counts: those that were there in a run's start-up only.
fn without_empty_ranks(ranks: &mut Vec<u32>, timers: &mut [TimerTable], sums: &mut [Vec<Option<DurationSums>>]) {
    let has_row = |rank: &usize| {
        timers
            .iter()
            .any(|timer| timer.seconds.row(*rank).iter().any(|cell| !cell.is_nan()))
    };
    let kept: Vec<usize> = (0..ranks.len()).filter(has_row).collect();
    if kept.len() == ranks.len() {
        return;
    }
    for timer in timers {
        timer.seconds = timer.seconds.select(ndarray::Axis(0), &kept);
    }
    for sums in sums.iter_mut().filter(|sums| !sums.is_empty()) {
        *sums = kept.iter().map(|&rank| sums[rank]).collect();
    }
    *ranks = kept.iter().map(|&rank| ranks[rank]).collect();
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_grow_longer_with_the_job() {
        assert_eq!(iterations_per_column(1000, 10, 90), 1);
        assert_eq!(iterations_per_column(1000, 20, 90), 2);
        // However many ranks there are, that many columns are left.
        assert_eq!(iterations_per_column(1000, 1_000_000, 400), 20);
        assert_eq!(iterations_per_column(1000, 0, 0), 1);
    }
}
