//! One job's window from a ClickHouse table whose server makes the tables: what travels is an array of durations for
//! each timer and rank, or of sums where there would be too many.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::mpsc::channel;

use ndarray::Array2;

use super::JobError;
use super::assemble::{Job, Tables, TimerTable, refuse_sparse, why_nothing_is_left, zeros};
use super::collect::Collector;
use super::counted::{CountedRuns, Fate};
use super::from_table::{GROUPS_PLACE, TIMERS_PLACE, TRACE_PLACE};
use super::kept::keep_latest;
use super::positions::Positions;
use super::quality::DataQuality;
use super::reduced::{DurationSums, Reduced};
use super::runs::Runs;
use super::step_time;
use super::topology::Topology;
use super::window::Selection;
use crate::comm::collectives::COLLECTIVES;
use crate::source::clickhouse::{Columns, CountedRows, RankColumns, RankRows, Table, Tally, Wanted};
use crate::source::{Micros, SourceError};

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
/// Timers that are asked for side by side: while one answer is read the server works on the next.
const AT_ONCE: usize = 2;

/// Reads the job; `None` where its tables would be too large for whole columns, and these are asked for.
pub(super) fn load(
    table: &Table,
    wanted: &Wanted<'_>,
    counted: &[CountedRows],
    selection: &Selection,
    reduction: Reduction,
    progress: &dyn Fn(u64),
) -> Result<Option<Job>, JobError> {
    let (Reduction::Tables { cells } | Reduction::WholeTables { cells }) = reduction else {
        return Ok(None);
    };
    let mut collector = Collector::new(selection);
    collector.job = Some(wanted.job.to_owned());
    counted.iter().for_each(|rows| collector.count(rows, TIMERS_PLACE));
    let tallies = table.tally(wanted, TIMERS_PLACE)?;
    let mut quality = DataQuality::default();
    let window = CountedWindow::new(&tallies, &mut collector, selection, &mut quality);
    collector.quality.add(&quality);
    if window.iterations.is_empty() {
        let id = wanted.job;
        let why = why_nothing_is_left(id, selection, &window.runs.runs, &collector.quality);
        return Err(SourceError::NoRows(why).into());
    }
    let ranks = window.ranks(table, wanted, &mut collector)?;
    let rows: u64 = window.timers.values().sum();
    let iterations = window.iterations.len();
    refuse_sparse(rows as usize, window.timers.len(), ranks.len(), iterations)?;
    let length = iterations_per_column(cells, ranks.len() * window.timers.len(), iterations);
    if length > 1 && matches!(reduction, Reduction::WholeTables { .. }) {
        return Ok(None);
    }
    let mut others = vec![GROUPS_PLACE];
    if length == 1 {
        others.push(TRACE_PLACE);
    } else {
        let trace = counted.iter().filter(|rows| rows.metric == Some(TRACE_PLACE));
        trace.for_each(|rows| collector.leave_out_trace(rows));
    }
    table.pull(wanted, &others, counted, &mut collector, progress)?;

    let reader = Reader {
        table,
        wanted,
        window: &window,
        ranks: &ranks,
        length,
    };
    let taken = reader.read_all(progress)?;
    let quality = &mut collector.quality;
    quality.timer_rows_used = taken.iter().map(|timer| timer.used).sum();
    quality.duplicates = rows.saturating_sub(quality.timer_rows_used);
    let repeated = taken.iter().any(|timer| timer.repeated);
    let steps = if length > 1 {
        Some(reader.steps(repeated)?)
    } else {
        None
    };
    Ok(Some(assemble(reader, taken, steps, collector, selection)?))
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
    /// Time of the last row of each iteration.
    times: Vec<Micros>,
    /// Rows of each timer.
    timers: BTreeMap<String, u64>,
}

impl CountedWindow {
    fn new(tallies: &[Tally], collector: &mut Collector<'_>, selection: &Selection, quality: &mut DataQuality) -> Self {
        let codes: Vec<u32> = tallies.iter().map(|tally| collector.run_code(&tally.run)).collect();
        let run_names = collector.runs.names.clone();
        let runs = Runs::new(&run_names, &collector.extents, selection.warmup);
        let usable = tallies.iter().zip(&codes).filter(|(tally, _)| tally.usable > 0);
        let rows = usable.map(|(tally, &run)| (run, tally.iteration_number));
        let counts = CountedRuns::new(rows, &runs, selection.rerun.as_ref(), &run_names);
        let mut iterations = BTreeMap::<i64, (u32, Micros)>::new();
        let mut timers = BTreeMap::new();
        for (tally, &run) in tallies.iter().zip(&codes) {
            quality.missing_values += tally.missing;
            quality.not_finite += tally.not_finite;
            quality.negative += tally.negative;
            let fate = counts.fate(run, tally.iteration_number);
            fate.count(tally.usable, quality);
            if fate == Fate::Counts && tally.usable > 0 {
                let of_iteration = iterations.entry(tally.iteration_number).or_insert((run, Micros::MIN));
                of_iteration.1 = of_iteration.1.max(tally.last_time);
                *timers.entry(tally.timer.clone()).or_insert(0) += tally.usable;
            }
        }
        Self {
            kept: iterations.values().map(|&(run, _)| run).collect(),
            run_of: iterations.values().map(|&(run, _)| run).collect(),
            times: iterations.values().map(|&(_, time)| time).collect(),
            iterations: iterations.into_keys().collect(),
            runs,
            run_names,
            timers,
        }
    }

    /// The ranks of the runs that count, ascending; their nodes go to the collector.
    fn ranks(
        &self,
        table: &Table,
        wanted: &Wanted<'_>,
        collector: &mut Collector<'_>,
    ) -> Result<Vec<u32>, SourceError> {
        let mut ranks = Vec::new();
        for placed in table.placed(wanted, TIMERS_PLACE)? {
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
        Ok(ranks)
    }
}

/// One timer's table, as it came.
struct Taken {
    seconds: Array2<f64>,
    sums: Vec<Option<DurationSums>>,
    /// Rows that count, each once.
    used: u64,
    zeros: u64,
    repeated: bool,
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
    /// The tables of all timers, by name.
    fn read_all(&self, progress: &dyn Fn(u64)) -> Result<Vec<Taken>, SourceError> {
        let timers: Vec<(&String, u64)> = self.window.timers.iter().map(|(name, &rows)| (name, rows)).collect();
        let (next, failed) = (AtomicUsize::new(0), AtomicBool::new(false));
        let (sender, arrivals) = channel();
        let mut taken: Vec<Option<Taken>> = timers.iter().map(|_| None).collect();
        let mut first_error = None;
        std::thread::scope(|scope| {
            for _ in 0..AT_ONCE.min(timers.len()) {
                let (sender, next, failed, timers) = (sender.clone(), &next, &failed, &timers);
                scope.spawn(move || {
                    while let Some(&(name, rows)) = timers.get(next.fetch_add(1, Ordering::Relaxed)) {
                        let read = self.read(name, rows);
                        failed.fetch_or(read.is_err(), Ordering::Relaxed);
                        // The receiver is there until the last sender goes.
                        let _ = sender.send((name, rows, read));
                        if failed.load(Ordering::Relaxed) {
                            break;
                        }
                    }
                });
            }
            drop(sender);
            let mut rows_read = 0;
            for (name, rows, read) in arrivals {
                rows_read += rows;
                progress(rows_read);
                match (read, timers.binary_search_by(|(known, _)| (*known).cmp(name))) {
                    (Ok(table), Ok(place)) => taken[place] = Some(table),
                    (Err(error), _) => first_error = first_error.take().or(Some(error)),
                    (Ok(_), Err(_)) => {}
                }
            }
        });
        match first_error {
            Some(error) => Err(error),
            None => Ok(taken.into_iter().flatten().collect()),
        }
    }

    fn read(&self, timer: &str, counted: u64) -> Result<Taken, SourceError> {
        let runs = self.runs();
        let columns = self.columns(timer, counted, &runs);
        if self.length == 1 {
            let iterations = Positions::new(self.window.iterations.iter().copied());
            let add = |taken: &mut Taken, line: &RankRows| taken.add_rows(self.ranks, &iterations, line);
            return self
                .table
                .rank_rows(self.wanted, TIMERS_PLACE, &columns, || self.nothing(), add);
        }
        let add = |taken: &mut Taken, line: &RankColumns| taken.add_columns(self.ranks, line);
        let once = |repeated| {
            let nothing = || self.nothing();
            self.table
                .rank_columns(self.wanted, TIMERS_PLACE, &columns, repeated, nothing, add)
        };
        let taken = once(false)?;
        if taken.repeated {
            return Ok(Taken {
                repeated: true,
                ..once(true)?
            });
        }
        Ok(taken)
    }

    fn runs(&self) -> Vec<&str> {
        let name = |&run: &u32| self.window.run_names[run as usize].as_str();
        self.window.run_of.iter().map(name).collect()
    }

    fn columns<'b>(&'b self, timer: &'b str, counted: u64, runs: &'b [&'b str]) -> Columns<'b> {
        Columns {
            timer,
            iterations: &self.window.iterations,
            runs,
            length: self.length,
            // Who comes last into a collective waits least: what counts there is the shortest duration.
            shortest: COLLECTIVES.contains(&timer),
            counted,
        }
    }

    fn nothing(&self) -> Taken {
        let columns = self.window.iterations.len().div_ceil(self.length);
        Taken {
            seconds: Array2::from_elem((self.ranks.len(), columns), f64::NAN),
            sums: if self.length > 1 {
                vec![None; self.ranks.len()]
            } else {
                Vec::new()
            },
            used: 0,
            zeros: 0,
            repeated: false,
        }
    }

    /// The longest step of any rank in each iteration, as a job of one rank.
    fn steps(&self, repeated: bool) -> Result<Job, SourceError> {
        let timers = &self.window.timers;
        let names = step_time::timers(|name| timers.contains_key(name));
        let runs = self.runs();
        let parts: Vec<Columns<'_>> = names.iter().map(|name| self.columns(name, 0, &runs)).collect();
        let longest = self.table.longest(self.wanted, TIMERS_PLACE, &parts, repeated)?;
        let mut seconds = Array2::from_elem((1, self.window.iterations.len()), f64::NAN);
        for step in longest {
            if let Ok(place) = self.window.iterations.binary_search(&step.iteration_number) {
                seconds[(0, place)] = step.seconds;
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
            iteration_times: self.window.times.clone(),
            timers: timer.into_iter().collect(),
            calls: Vec::new(),
            topology: Topology::unknown(&[0]),
            runs: self.window.runs.runs.clone(),
            quality: DataQuality::default(),
            reduced: None,
        })
    }
}

impl Taken {
    fn add_rows(&mut self, ranks: &[u32], iterations: &Positions, line: &RankRows) {
        let Some(rank) = place_of(ranks, line.rank_number) else {
            return;
        };
        let mut cells = self.seconds.row_mut(rank);
        let mut times = vec![Micros::MIN; cells.len()];
        let rows = line.iteration_numbers.iter().zip(&line.times).zip(&line.seconds);
        for ((&iteration, &time), &seconds) in rows {
            let place = iterations.at(iteration);
            let (Some(cell), Some(known)) = (cells.get_mut(place), times.get_mut(place)) else {
                continue;
            };
            // Of rows with the same key the later wins, at the same moment the longer duration.
            if cell.is_nan() {
                self.used += 1;
            } else {
                self.repeated = true;
                if (time, seconds) <= (*known, *cell) {
                    continue;
                }
            }
            (*known, *cell) = (time, seconds);
        }
    }

    fn add_columns(&mut self, ranks: &[u32], line: &RankColumns) {
        let Some(rank) = place_of(ranks, line.rank_number) else {
            return;
        };
        let mut cells = self.seconds.row_mut(rank);
        for (&place, &seconds) in line.places.iter().zip(&line.seconds) {
            if let Some(cell) = cells.get_mut(place as usize) {
                *cell = seconds;
            }
        }
        self.used += line.distinct;
        self.zeros += line.zeros;
        self.repeated |= line.row_count > line.distinct;
        self.sums[rank] = (line.ran > 0).then_some(DurationSums {
            least: line.least,
            most: line.most,
            total: line.total,
            count: line.ran,
        });
    }
}

fn place_of(ranks: &[u32], rank: i64) -> Option<usize> {
    let rank = u32::try_from(rank).ok()?;
    ranks.binary_search(&rank).ok()
}

fn assemble(
    reader: Reader<'_>,
    taken: Vec<Taken>,
    steps: Option<Job>,
    mut collector: Collector<'_>,
    selection: &Selection,
) -> Result<Job, JobError> {
    let window = reader.window;
    let zeros_of_columns: u64 = taken.iter().map(|timer| timer.zeros).sum();
    let (mut sums, mut timers) = (Vec::new(), Vec::new());
    for (timer, name) in taken.into_iter().zip(window.timers.keys()) {
        sums.push(timer.sums);
        timers.push(TimerTable {
            name: name.clone(),
            seconds: timer.seconds,
        });
    }
    let mut ranks = reader.ranks.to_vec();
    without_empty_ranks(&mut ranks, &mut timers, &mut sums);
    let length = reader.length;
    collector.quality.zero_durations = if length > 1 { zeros_of_columns } else { zeros(&timers) };
    let blocks = window.iterations.chunks(length);
    let tables = Tables {
        ranks,
        iterations: blocks.clone().filter_map(|block| block.first().copied()).collect(),
        iteration_times: window
            .times
            .chunks(length)
            .filter_map(|times| times.iter().max().copied())
            .collect(),
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
            last_iterations: blocks.clone().filter_map(|block| block.last().copied()).collect(),
            counts: blocks.map(<[i64]>::len).collect(),
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
