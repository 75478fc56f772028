//! From collected rows to one table a timer: reruns undone, start-up and duplicates dropped.

use std::collections::BTreeSet;

use ndarray::Array2;

use super::JobError;
use super::belongs;
use super::calls::{self, CallTable};
use super::collect::Collector;
use super::counted::{CountedRuns, Fate};
use super::kept::TimerRows;
use super::positions::Positions;
use super::quality::DataQuality;
use super::reduced::Reduced;
use super::runs::{Run, Runs};
use super::topology::{Topology, TopologyError};
use super::window::Selection;
use crate::source::{Micros, SourceError};

/// Holes that a table may have for each row in it, before it is refused as too sparse.
const HOLES_PER_ROW: usize = 16;
/// Cells below which a table is made however sparse it is.
const SMALL_TABLE: usize = 1 << 22;

/// Durations of one timer in seconds; NaN where there is no row.
#[derive(Debug, Clone)]
pub struct TimerTable {
    /// Name of the timer.
    pub name: String,
    /// A row a rank, a column an iteration, by position in [`Job::ranks`] and [`Job::iterations`].
    pub seconds: Array2<f64>,
}

/// One job's window, ready for analysis.
#[derive(Debug)]
pub struct Job {
    /// Job id.
    pub id: String,
    /// Ranks with a timer row in the window, ascending.
    pub ranks: Vec<u32>,
    /// Node of each rank: that of its latest row.
    pub nodes: Vec<String>,
    /// Iterations with a timer row in the window, ascending.
    pub iterations: Vec<i64>,
    /// Time of the latest row of each iteration, parallel to `iterations`.
    pub iteration_times: Vec<Micros>,
    /// Timers, by name.
    pub timers: Vec<TimerTable>,
    /// Single calls of the timers around transfers, by name; none where the job has no trace rows.
    pub calls: Vec<CallTable>,
    /// Parallel groups.
    pub topology: Topology,
    /// Runs up to `--end`, in the order in which they came.
    pub runs: Vec<Run>,
    /// What was read and left out.
    pub quality: DataQuality,
    /// What is known beside the tables where their columns put several iterations together.
    pub reduced: Option<Box<Reduced>>,
}

impl Job {
    /// The table of a timer.
    #[must_use]
    pub fn timer(&self, name: &str) -> Option<&TimerTable> {
        let place = self
            .timers
            .binary_search_by(|timer| timer.name.as_str().cmp(name))
            .ok()?;
        self.timers.get(place)
    }

    /// Builds the job from what a pass collected.
    ///
    /// # Errors
    /// [`SourceError::NoRows`] when nothing of the window is left, with what took the rows;
    /// [`SourceError::TooSparse`] when the rows are too scattered for tables; [`TopologyError`]
    /// when the selection's topology flags do not fit the job.
    pub fn assemble(mut collected: Collector<'_>, selection: &Selection) -> Result<Self, JobError> {
        let id = collected.job.clone().unwrap_or_default();
        let runs = Runs::new(&collected.runs.names, &collected.extents, selection.warmup);
        let mut quality = collected.quality.clone();
        let mut chunks = std::mem::take(&mut collected.chunks);
        let rows = chunks
            .iter()
            .flat_map(|rows| rows.run.iter().copied().zip(rows.iteration.iter().copied()));
        let counts = CountedRuns::new(rows, &runs, selection.rerun.as_ref(), &collected.runs.names);
        keep_counted(&counts, &mut chunks, &mut quality);

        let ranks = distinct(chunks.iter().flat_map(|rows| &rows.rank));
        let iterations = distinct(chunks.iter().flat_map(|rows| &rows.iteration));
        let rows: usize = chunks.iter().map(TimerRows::len).sum();
        if rows == 0 {
            return Err(SourceError::NoRows(why_nothing_is_left(&id, selection, &runs.runs, &quality)).into());
        }
        let (tables, used) = tabulate(&chunks, &collected.timers.names, &ranks, &iterations)?;
        quality.duplicates = (rows - used) as u64;
        quality.timer_rows_used = used as u64;
        quality.zero_durations = zeros(&tables);
        let iteration_times = latest_times(&chunks, &iterations);
        let kept = belongs::kept_runs(&chunks);
        let tables = Tables {
            ranks,
            sampled: iterations.clone(),
            iterations,
            iteration_times,
            timers: tables,
        };
        Self::of_tables(tables, &collected, selection, &counts, &kept, (&runs, quality)).map_err(JobError::from)
    }

    /// Adds calls, nodes and topology to the tables.
    pub(super) fn of_tables(
        tables: Tables,
        collected: &Collector<'_>,
        selection: &Selection,
        counts: &CountedRuns<'_>,
        kept: &BTreeSet<u32>,
        (runs, mut quality): (&Runs, DataQuality),
    ) -> Result<Self, TopologyError> {
        let Tables {
            ranks,
            iterations,
            iteration_times,
            timers,
            sampled,
        } = tables;
        let cell = |rows: &calls::CallRows, row: usize| {
            let counted = counts.fate(rows.run[row], rows.iteration[row]) == Fate::Counts;
            let rank = ranks.binary_search(&rows.rank[row]).ok().filter(|_| counted)?;
            Some((rank, sampled.binary_search(&rows.iteration[row]).ok()?))
        };
        let shape = (ranks.len(), iterations.len());
        let calls = calls::tabulate(&collected.calls, &collected.timers.names, shape, cell, &mut quality);
        let positions = belongs::positions(&ranks, &collected.groups, kept).into_iter();
        let topology = Topology::resolve(&ranks, positions, &selection.topology, &timers)?;
        quality.ranks_not_placed = topology.not_placed;
        Ok(Self {
            id: collected.job.clone().unwrap_or_default(),
            nodes: belongs::nodes(&ranks, &collected.nodes, kept),
            ranks,
            iterations,
            iteration_times,
            timers,
            calls,
            topology: topology.topology,
            runs: runs.runs.clone(),
            quality,
            reduced: None,
        })
    }
}

/// A job's tables with what their rows and columns are.
pub(super) struct Tables {
    pub ranks: Vec<u32>,
    pub iterations: Vec<i64>,
    pub iteration_times: Vec<Micros>,
    pub timers: Vec<TimerTable>,
    /// The iteration of each column from which single calls are taken, ascending.
    pub sampled: Vec<i64>,
}

/// Drops the rows that do not count.
fn keep_counted(counts: &CountedRuns<'_>, chunks: &mut [TimerRows], quality: &mut DataQuality) {
    for rows in chunks {
        rows.retain(|run, iteration| {
            let fate = counts.fate(run, iteration);
            fate.count(1, quality);
            fate == Fate::Counts
        });
    }
}

impl TimerRows {
    fn retain(&mut self, mut keep: impl FnMut(u32, i64) -> bool) {
        let kept: Vec<bool> = self
            .run
            .iter()
            .zip(&self.iteration)
            .map(|(&run, &it)| keep(run, it))
            .collect();
        if kept.iter().all(|&keep| keep) {
            return;
        }
        fn filter<T>(column: &mut Vec<T>, kept: &[bool]) {
            let mut kept = kept.iter();
            column.retain(|_| kept.next().copied().unwrap_or(false));
        }
        filter(&mut self.timer, &kept);
        filter(&mut self.run, &kept);
        filter(&mut self.rank, &kept);
        filter(&mut self.iteration, &kept);
        filter(&mut self.timestamp, &kept);
        filter(&mut self.seconds, &kept);
    }
}

/// Distinct values, ascending. Neighbouring rows mostly repeat or count on, so runs are cut before the sort.
fn distinct<'a, T: Ord + Copy + 'a>(values: impl Iterator<Item = &'a T>) -> Vec<T> {
    const SORT_AT: usize = 1 << 20;
    let mut kept: Vec<T> = Vec::new();
    let mut last = None;
    let mut limit = SORT_AT;
    for &value in values {
        if last == Some(value) {
            continue;
        }
        last = Some(value);
        kept.push(value);
        if kept.len() >= limit {
            kept.sort_unstable();
            kept.dedup();
            limit = SORT_AT + kept.len();
        }
    }
    kept.sort_unstable();
    kept.dedup();
    kept
}

/// Fills one table a timer; of rows with the same key the later wins, at the same moment the longer duration.
///
/// Returns the tables by name and how many rows they hold.
fn tabulate(
    chunks: &[TimerRows],
    names: &[String],
    ranks: &[u32],
    iterations: &[i64],
) -> Result<(Vec<TimerTable>, usize), SourceError> {
    let mut rows_of = vec![0usize; names.len()];
    for rows in chunks {
        rows.timer.iter().for_each(|&timer| rows_of[timer as usize] += 1);
    }
    let rows: usize = rows_of.iter().sum();
    let timers = rows_of.iter().filter(|&&rows| rows > 0).count();
    refuse_sparse(rows, timers, ranks.len(), iterations.len())?;
    let column_of = Positions::new(iterations.iter().copied());
    let row_of = Positions::new(ranks.iter().map(|&rank| i64::from(rank)));
    // A timer whose rows were all dropped gets no table.
    let shape = |rows: usize| {
        if rows > 0 {
            (ranks.len(), iterations.len())
        } else {
            (0, 0)
        }
    };
    let mut seconds: Vec<_> = rows_of
        .iter()
        .map(|&rows| Array2::from_elem(shape(rows), f64::NAN))
        .collect();
    let mut times: Vec<_> = rows_of
        .iter()
        .map(|&rows| Array2::from_elem(shape(rows), Micros::MIN))
        .collect();
    let mut used = 0;
    for rows in chunks {
        for row in 0..rows.len() {
            let timer = rows.timer[row] as usize;
            let cell = (row_of.at(rows.rank[row].into()), column_of.at(rows.iteration[row]));
            let (known, time) = (&mut seconds[timer][cell], &mut times[timer][cell]);
            let new = (rows.timestamp[row], rows.seconds[row]);
            if known.is_nan() {
                used += 1;
                (*time, *known) = new;
            } else if new.0 > *time || (new.0 == *time && new.1 > *known) {
                (*time, *known) = new;
            }
        }
    }
    let mut tables: Vec<TimerTable> = names
        .iter()
        .zip(seconds)
        .filter(|(_, seconds)| !seconds.is_empty())
        .map(|(name, seconds)| TimerTable {
            name: name.clone(),
            seconds,
        })
        .collect();
    tables.sort_by(|a, b| a.name.cmp(&b.name));
    Ok((tables, used))
}

/// Whether rows fill the tables that they need well enough.
pub(super) fn refuse_sparse(rows: usize, timers: usize, ranks: usize, iterations: usize) -> Result<(), SourceError> {
    let cells = ranks.saturating_mul(iterations).saturating_mul(timers);
    if cells > SMALL_TABLE.max(rows.saturating_mul(HOLES_PER_ROW)) {
        return Err(SourceError::TooSparse {
            rows,
            ranks,
            iterations,
        });
    }
    Ok(())
}

/// The latest time of each iteration's rows.
fn latest_times(chunks: &[TimerRows], iterations: &[i64]) -> Vec<Micros> {
    let column_of = Positions::new(iterations.iter().copied());
    let mut times = vec![Micros::MIN; iterations.len()];
    for rows in chunks {
        for (&iteration, &time) in rows.iteration.iter().zip(&rows.timestamp) {
            let latest = &mut times[column_of.at(iteration)];
            *latest = (*latest).max(time);
        }
    }
    times
}

/// Cells that hold 0: the timer did not run.
pub(super) fn zeros(tables: &[TimerTable]) -> u64 {
    let zeros = |table: &TimerTable| table.seconds.iter().filter(|&&seconds| seconds == 0.0).count() as u64;
    tables.iter().map(zeros).sum()
}

pub(super) fn why_nothing_is_left(id: &str, selection: &Selection, runs: &[Run], quality: &DataQuality) -> String {
    if let Some(asked) = &selection.rerun
        && !runs.iter().any(|run| run.uuid == *asked)
    {
        let there: Vec<&str> = runs.iter().map(|run| run.uuid.as_str()).collect();
        return format!("job `{id}` has no run `{asked}`; its runs are {}", there.join(", "));
    }
    let took: Vec<String> = [
        ("outside of the asked time", quality.outside_time),
        ("outside of the asked iterations", quality.outside_iterations),
        ("in start-up iterations", quality.warmup),
        ("of iterations that a later run repeated", quality.superseded_by_rerun),
        ("of other runs", quality.other_runs),
        (
            "without a usable duration",
            quality.missing_values + quality.not_finite + quality.negative,
        ),
        ("unreadable", quality.unreadable_rows),
        ("in parts that the window rules out", quality.rows_not_read),
    ]
    .into_iter()
    .filter(|&(_, rows)| rows > 0)
    .map(|(why, rows)| format!("{rows} rows {why}"))
    .collect();
    let spans: Vec<String> = runs
        .iter()
        .map(|run| {
            let (first, last) = (run.first_iteration, run.last_iteration);
            format!("iterations {first}-{last} from {} to {}", run.first_time, run.last_time)
        })
        .collect();
    let mut why = format!("nothing of job `{id}` is left in the window");
    if !took.is_empty() {
        why += &format!(": {}", took.join(", "));
    }
    if !spans.is_empty() {
        why += &format!("; the job has {}", spans.join(", then "));
    }
    why
}
