//! One job's window from a ClickHouse table: the rows that count travel, of the others only how many there are.

use std::path::Path;

use super::catalog::{JobEntry, name_ids};
use super::collect::Collector;
use super::collected_rows::RunExtent;
use super::columns::{self, Reduction};
use super::window::{IterationRange, Selection};
use super::{Job, JobError};
use crate::contract::metrics::{GROUPS, TIMERS};
use crate::source::clickhouse::{CountedRows, Exported, JobLine, Metrics, Table, Wanted};
use crate::source::fate::{Fate, WANTED, place};
use crate::source::{Micros, SourceError, timestamp};

/// Reads the selected window of one job from a table.
///
/// The job and its counts are those that files with the job's rows give, but where `reduction` has columns stand for
/// several iterations. Rows of the table's other jobs are neither read nor counted.
///
/// # Errors
/// A server that fails; an unknown job, several jobs and none chosen, or an empty window; topology flags that do not fit
/// the job.
pub fn load_table(
    table: &Table,
    selection: &Selection,
    reduction: Reduction,
    progress: &dyn Fn(u64),
) -> Result<Job, JobError> {
    let job = match &selection.job {
        Some(job) => job.clone(),
        None => only_job(table)?,
    };
    let wanted = Wanted {
        job: &job,
        metrics: &WANTED,
        start: selection.start,
        end: selection.end,
        iterations: (selection.iterations.first, selection.iterations.last),
        sampled: None,
    };
    let unknown = |job: &String| -> Result<SourceError, SourceError> {
        let there = named(&table.job_ids()?);
        let asked = job.clone();
        Ok(SourceError::UnknownJob { asked, there })
    };
    let tables = match reduction {
        Reduction::Rows => None,
        Reduction::Tables { cells } => Some((cells, false)),
        Reduction::WholeTables { cells } => Some((cells, true)),
    };
    if let Some(tables) = tables {
        let summed = columns::sum_up(table, &wanted)?;
        if summed.is_empty() {
            return Err(unknown(&job)?.into());
        }
        if let Some(job) = columns::load(table, &wanted, &summed, selection, tables, progress)? {
            return Ok(job);
        }
    }
    let counted = table.count(&wanted, None)?;
    if counted.is_empty() {
        return Err(unknown(&job)?.into());
    }
    let mut collector = Collector::new(selection);
    collector.job = Some(job.clone());
    let all: Vec<usize> = (0..WANTED.len()).collect();
    table.pull(&wanted, &all, &counted, &mut collector, progress)?;
    for rows in &counted {
        collector.count(rows);
    }
    Job::assemble(collector, selection)
}

/// Writes the rows of one job's window into a Parquet file, those of its parallel groups from before the window too.
///
/// # Errors
/// A server that fails, an unknown job or window, a file that can't be written.
pub fn export_job(
    table: &Table,
    job: Option<&str>,
    (start, end): (Option<Micros>, Option<Micros>),
    iterations: IterationRange,
    path: &Path,
) -> Result<Exported, SourceError> {
    let job = match job {
        Some(job) => job.to_owned(),
        None => only_job(table)?,
    };
    let wanted = Wanted {
        job: &job,
        metrics: &WANTED,
        start,
        end,
        iterations: (iterations.first, iterations.last),
        sampled: None,
    };
    let exported = table.export(&wanted, path)?;
    if exported.rows == 0 {
        return Err(SourceError::NoRows(format!("job `{job}` has none in that window")));
    }
    Ok(exported)
}

/// Lists the jobs of a table that have a row between two moments (both included, open where `None`), by id.
///
/// # Errors
/// A server that fails.
pub fn list_table_jobs(table: &Table, between: (Option<Micros>, Option<Micros>)) -> Result<Vec<JobEntry>, SourceError> {
    let metrics = Metrics {
        timers: TIMERS,
        groups: GROUPS,
    };
    Ok(table.jobs(metrics, between)?.into_iter().map(entry).collect())
}

fn only_job(table: &Table) -> Result<String, SourceError> {
    let mut jobs = table.job_ids()?;
    match jobs.len() {
        0 => Err(SourceError::NoRows("the table holds no rows".to_owned())),
        1 => Ok(jobs.remove(0)),
        _ => Err(SourceError::SeveralJobs(named(&jobs))),
    }
}

fn named(jobs: &[String]) -> String {
    name_ids(&jobs.iter().map(String::as_str).collect::<Vec<_>>())
}

fn entry(line: JobLine) -> JobEntry {
    let seen = |count: u64| usize::try_from(count).unwrap_or(usize::MAX);
    let iteration = |iteration: i64| (line.iterations > 0).then_some(iteration);
    let time = |time: Micros| (line.timed > 0).then(|| timestamp::format(time));
    JobEntry {
        ranks: seen(line.ranks),
        nodes: seen(line.nodes),
        iterations: seen(line.iterations),
        first_iteration: iteration(line.first_iteration),
        last_iteration: iteration(line.last_iteration),
        first_time: time(line.first_time),
        last_time: time(line.last_time),
        pp_size: u32::try_from(line.stages).ok().filter(|&stages| stages > 0),
        runs: seen(line.runs),
        rows: line.row_count,
        timers: line.timers,
        job: line.name,
    }
}

impl Collector<'_> {
    /// Takes over what the server says of rows that it did not send, as if each had been read and left out here.
    pub(super) fn count(&mut self, counted: &CountedRows) {
        let Some(metric) = counted.metric else {
            self.quality.rows_read += counted.rows;
            self.quality.other_metrics += counted.rows;
            return;
        };
        if counted.fate == Fate::Taken {
            return;
        }
        self.quality.rows_read += counted.rows;
        self.quality.leave_out(metric, counted.fate, counted.rows);
        if metric == place::TIMERS && counted.fate.tells_the_run() {
            let extent = RunExtent {
                first_time: counted.times.0,
                last_time: counted.times.1,
                first_iteration: counted.iterations.0,
                last_iteration: counted.iterations.1,
            };
            self.note_extent(&counted.run, extent);
        }
    }

    /// Counts trace rows of the window that are not asked for.
    pub(super) fn leave_out_trace(&mut self, counted: &CountedRows) {
        if counted.fate == Fate::Taken {
            self.quality.rows_read += counted.rows;
            self.quality.trace_rows += counted.rows;
            self.quality.trace_rows_left_out += counted.rows;
        }
    }
}
