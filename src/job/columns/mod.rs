//! One job's window from a ClickHouse table whose server makes the tables: what travels is an array of durations for
//! each timer and rank, or of what stands for several iterations where there would be too many.
//!
//! Data flows `sum_up` (which rows there are) -> `window` (which of them count) -> `reader` (the tables, part by part, as
//! `slab`s) -> [`load`] (a [`Job`]).

mod reader;
mod slab;
mod window;

use self::reader::Reader;
use self::slab::Taken;
use self::window::CountedWindow;
use super::JobError;
use super::assemble::{Tables, refuse_sparse, why_nothing_is_left};
use super::collect::Collector;
use super::counting_rows::CountedRuns;
use super::quality::DataQuality;
use super::reduced::{DurationSums, Reduced};
use super::runs::Runs;
use super::steps::Steps;
use super::tables::Job;
use super::timer_table::{TimerTable, zeros};
use super::window::Selection;
use crate::contract::timers::TRANSFERS;
use crate::source::clickhouse::{ColumnsAsked, CountedRows, Table, Tally, Wanted, sent};
use crate::source::fate::place;
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
    /// Cells of tables that travel and are held by default: 256 MB.
    pub const CELLS: usize = 1 << 25;
}

/// Columns that a table has at least, however many ranks there are: fewer do not show since when a rank is slow.
pub const LEAST_COLUMNS: usize = 20;
/// Rows with single calls that are read where iterations are put together: some hundred MB.
const TRACE_ROWS: u64 = 1 << 22;

/// What is known of the job before any row of its window travels.
pub(super) struct Summed {
    /// Rows beside the window's timer rows.
    counted: Vec<CountedRows>,
    tallies: Vec<Tally>,
    /// Ranks with a row in the window, ascending.
    ranks: Vec<u32>,
    /// Timers with a row in the window, sorted.
    timers: Vec<String>,
}

impl Summed {
    /// Whether the job has no row at all.
    pub fn is_empty(&self) -> bool {
        self.counted.is_empty() && self.tallies.is_empty()
    }
}

/// Sums the job's rows up, by several questions side by side.
pub(super) fn sum_up(table: &Table, wanted: &Wanted<'_>) -> Result<Summed, SourceError> {
    std::thread::scope(|scope| {
        let tallies = scope.spawn(|| table.tally(wanted, place::TIMERS));
        let ranks = scope.spawn(|| table.ranks(wanted, place::TIMERS));
        let timers = scope.spawn(|| table.subnames(wanted, place::TIMERS));
        let counted = table.count(wanted, Some(place::TIMERS));
        let (tallies, ranks, timers) = (joined(tallies), joined(ranks), joined(timers));
        Ok(Summed {
            timers: timers?,
            counted: counted?,
            tallies: tallies?,
            ranks: ranks?,
        })
    })
}

fn joined<T>(thread: std::thread::ScopedJoinHandle<'_, T>) -> T {
    thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
}

/// Reads the job; `None` where its tables would be too large for whole columns, and these are asked for.
pub(super) fn load(
    table: &Table,
    wanted: &Wanted<'_>,
    summed: &Summed,
    selection: &Selection,
    (cells, whole): (usize, bool),
    progress: &dyn Fn(u64),
) -> Result<Option<Job>, JobError> {
    let Summed {
        counted,
        tallies,
        ranks,
        timers,
    } = summed;
    let mut collector = Collector::new(selection);
    collector.job = Some(wanted.job.to_owned());
    let (trace, others): (Vec<&CountedRows>, _) = counted.iter().partition(|rows| rows.metric == Some(place::TRACE));
    others.into_iter().for_each(|rows| collector.count(rows));
    let mut quality = DataQuality::default();
    let window = CountedWindow::new(tallies, &mut collector, selection, &mut quality);
    collector.quality.add(&quality);
    if window.steps.iterations.is_empty() {
        let why = why_nothing_is_left(wanted.job, selection, &window.runs.runs, &collector.quality);
        return Err(SourceError::NoRows(why).into());
    }
    let rows: u64 = window.steps.rows.iter().sum();
    let iterations = window.steps.iterations.len();
    refuse_sparse(rows as usize, timers.len(), ranks.len(), iterations)?;
    let length = iterations_per_column(cells, ranks.len() * timers.len(), iterations);
    if length > 1 && whole {
        return Ok(None);
    }
    find_nodes(table, wanted, ranks, &window, &mut collector)?;
    let samples = if length == 1 {
        trace.into_iter().for_each(|rows| collector.count(rows));
        table.pull(
            wanted,
            &[place::GROUPS, place::TRACE],
            counted,
            &mut collector,
            progress,
        )?;
        window.steps.iterations.clone()
    } else {
        let transferring = table.iterations_with(wanted, place::TIMERS, &TRANSFERS)?;
        let samples = samples(&window, length, &transferring);
        pull_sampled(table, wanted, counted, &samples, &mut collector, progress)?;
        samples
    };

    let reader = Reader {
        table,
        wanted,
        window: &window,
        ranks,
        timers,
        samples: &samples,
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

/// The iteration of each column from which transfers are told: the first with a row of one.
fn samples(window: &CountedWindow, length: usize, transferring: &[i64]) -> Vec<i64> {
    let of_column = |column: &[i64]| {
        let transfers = |iteration: &&i64| transferring.binary_search(iteration).is_ok();
        column.iter().find(transfers).or(column.first()).copied()
    };
    window.steps.iterations.chunks(length).filter_map(of_column).collect()
}

/// Finds each rank's node: that of its latest row. Rows of the last iteration tell it, but for ranks that have none there.
fn find_nodes(
    table: &Table,
    wanted: &Wanted<'_>,
    ranks: &[u32],
    window: &CountedWindow,
    collector: &mut Collector<'_>,
) -> Result<(), SourceError> {
    if !table.has_nodes() {
        return Ok(());
    }
    let lately = Wanted {
        start: window.steps.times.iter().map(|&(first, _)| first).max(),
        ..wanted.clone()
    };
    let placed = window.note_nodes(table.placed(&lately, place::TIMERS)?, collector);
    if ranks.iter().any(|rank| !placed.contains(rank)) {
        window.note_nodes(table.placed(wanted, place::TIMERS)?, collector);
    }
    Ok(())
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
    if !counted.iter().any(|rows| rows.metric == Some(place::TRACE)) {
        return table.pull(wanted, &[place::GROUPS], counted, collector, progress);
    }
    // Beyond what a query can list, none are read.
    let listed = if sampled.len() <= ColumnsAsked::MOST_LISTED {
        sampled
    } else {
        &[]
    };
    let wanted = Wanted {
        sampled: Some(listed),
        ..wanted.clone()
    };
    let counted = table.count(&wanted, Some(place::TIMERS))?;
    let few = sent(&counted, place::TRACE) <= TRACE_ROWS;
    for rows in counted.iter().filter(|rows| rows.metric == Some(place::TRACE)) {
        collector.count(rows);
        if !few {
            collector.leave_out_trace(rows);
        }
    }
    let metrics: &[usize] = if few {
        &[place::GROUPS, place::TRACE]
    } else {
        &[place::GROUPS]
    };
    table.pull(&wanted, metrics, &counted, collector, progress)
}

/// Iterations that a column stands for, so that tables of `rows` rows have no more cells than asked for.
fn iterations_per_column(cells: usize, rows: usize, iterations: usize) -> usize {
    let columns = (cells / rows.max(1)).max(LEAST_COLUMNS);
    iterations.div_ceil(columns).clamp(1, ColumnsAsked::MOST_LISTED)
}

fn assemble(
    reader: &Reader<'_>,
    taken: Taken,
    steps: Option<Steps>,
    mut collector: Collector<'_>,
    selection: &Selection,
) -> Result<Job, JobError> {
    let (window, length) = (reader.window, reader.length);
    let zeros_of_columns = taken.zeros;
    let Taken {
        seconds,
        sums,
        has_row: (timer_has_row, rank_has_row),
        ..
    } = taken;
    let known = reader.timers.iter().zip(seconds).zip(sums).zip(timer_has_row);
    let (mut timers, mut sums): (Vec<TimerTable>, Vec<_>) = known
        .filter(|(_, has_row)| *has_row)
        .map(|(((name, seconds), sums), _)| {
            let name = name.clone();
            (TimerTable { name, seconds }, sums)
        })
        .unzip();
    let mut ranks = reader.ranks.to_vec();
    without_empty_ranks(&mut ranks, &rank_has_row, &mut timers, &mut sums);
    collector.quality.zero_durations = if length > 1 { zeros_of_columns } else { zeros(&timers) };
    let columns = window.steps.iterations.chunks(length);
    let latest = |times: &[(Micros, Micros)]| times.iter().map(|&(_, last)| last).max();
    let tables = Tables {
        ranks,
        iterations: columns.clone().filter_map(|column| column.first().copied()).collect(),
        iteration_times: window.steps.times.chunks(length).filter_map(latest).collect(),
        timers,
        sampled: reader.samples.to_vec(),
    };
    let quality = collector.quality.clone();
    // Trace rows may name runs that have no timer row.
    let names = &collector.runs.names.clone();
    let runs = Runs::new(names, &collector.extents, selection.warmup);
    let counting = window
        .steps
        .run_of
        .iter()
        .copied()
        .zip(window.steps.iterations.iter().copied());
    let counts = CountedRuns::new(counting, &runs, selection.rerun.as_ref(), names);
    let job = Job::of_tables(
        tables,
        &mut collector,
        selection,
        &counts,
        &window.steps.runs,
        (&runs, quality),
    )?;
    let reduced = steps.map(|steps| {
        Box::new(Reduced {
            length,
            last_iterations: columns.clone().filter_map(|column| column.last().copied()).collect(),
            counts: columns.map(<[i64]>::len).collect(),
            sums,
            steps,
            printed: false,
        })
    });
    Ok(Job { reduced, ..job })
}

/// Takes out ranks of which no row counts: those that were there in a run's start-up only.
fn without_empty_ranks(
    ranks: &mut Vec<u32>,
    has_row: &[bool],
    timers: &mut [TimerTable],
    sums: &mut [Vec<Option<DurationSums>>],
) {
    let kept: Vec<usize> = (0..ranks.len()).filter(|&rank| has_row[rank]).collect();
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
