//! From collected rows to one table a timer: reruns undone, start-up and duplicates dropped.

use std::collections::BTreeSet;

use super::JobError;
use super::calls;
use super::collect::Collector;
use super::counting_rows::{CountedRuns, CountedSteps, Fate};
use super::fill::{Filler, without_empty_ranks};
use super::job_wide::JobWide;
use super::moves::moves;
use super::quality::DataQuality;
use super::run_rows;
use super::runs::{Run, Runs};
use super::tables::Job;
use super::timer_table::{TimerTable, used, zeros};
use super::topology::{Topology, TopologyError};
use super::window::Selection;
use crate::source::{Micros, SourceError};

/// Holes that a table may have for each row in it, before it is refused as too sparse.
const HOLES_PER_ROW: usize = 16;
/// Cells below which a table is made however sparse it is.
const SMALL_TABLE: usize = 1 << 22;

impl Job {
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
        let chunks = std::mem::take(&mut collected.chunks);
        let steps = std::mem::take(&mut collected.steps);
        let rows = steps.keys().map(|step| (step.run, step.iteration));
        let names = std::mem::take(&mut collected.runs.names);
        let counts = CountedRuns::new(rows, &runs, selection.rerun.as_ref(), &names);
        let counted = CountedSteps::new(steps.iter().map(|(step, tally)| (*step, tally)), &counts, &mut quality);
        let rows = counted.rows.iter().sum::<u64>() as usize;
        if rows == 0 && collected.reports.is_empty() {
            return Err(SourceError::NoRows(why_nothing_is_left(&id, selection, &runs.runs, &quality)).into());
        }
        let filler = Filler::new(&chunks, collected.timers.names.len(), &counted);
        let timers = filler.timers();
        let mut ranks = collected.seen.ranks();
        let columns = counted.iterations.len();
        if refuse_sparse(rows, timers.len(), ranks.len(), columns).is_err() {
            // Some of them may be of start-ups only.
            ranks = filler.ranks();
            refuse_sparse(rows, timers.len(), ranks.len(), columns)?;
        }
        let mut timers = filler.fill(&timers, &collected.timers.names, &ranks, columns);
        drop(filler);
        drop(chunks);
        without_empty_ranks(&mut ranks, &mut timers);
        let wide = JobWide::tabulate(&collected.summaries, &collected.timers.names, &counted);
        let used = used(&timers) + JobWide::used(&wide);
        quality.duplicates = (rows as u64).saturating_sub(used);
        quality.timer_rows_used = used;
        quality.zero_durations = zeros(&timers);
        let tables = Tables {
            ranks,
            sampled: counted.iterations.clone(),
            iteration_times: counted.times.iter().map(|&(_, last)| last).collect(),
            iterations: counted.iterations,
            timers,
        };
        let kept = counted.runs;
        let job = Self::of_tables(tables, &mut collected, selection, &counts, &kept, (&runs, quality))?;
        let job_wide = JobWide {
            timers: wide,
            reports: std::mem::take(&mut collected.reports),
            notes: std::mem::take(&mut collected.notes),
        };
        Ok(Self { job_wide, ..job }
            .with_interval_time()
            .averaged(&collected.log_intervals, &counted.run_of))
    }

    /// Adds calls, nodes and topology to the tables.
    pub(super) fn of_tables(
        tables: Tables,
        collected: &mut Collector<'_>,
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
        let groups = collected.latest_groups();
        let positions = run_rows::positions(&ranks, &groups, &collected.timers.names, kept).into_iter();
        let topology = Topology::resolve(&ranks, positions, &selection.topology, &timers)?;
        quality.ranks_not_placed = topology.not_placed;
        quality.ranks_on_several_nodes = collected.seen.on_several_nodes(&ranks, kept);
        Ok(Self {
            id: collected.job.clone().unwrap_or_default(),
            nodes: run_rows::nodes(&ranks, collected, kept),
            moves: moves(&ranks, collected, kept, runs),
            ranks,
            iterations,
            iteration_times,
            timers,
            calls,
            topology: topology.topology,
            runs: runs.runs.clone(),
            quality,
            reduced: None,
            job_wide: JobWide::default(),
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
