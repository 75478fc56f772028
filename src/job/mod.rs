//! One job's window of rows as tables: which rows count, which rank is where.
//!
//! In: rows, or sums that a server made, and what was asked for. Out: a [`Job`]. May use: `source`, `stats`, `contract`.
//!
//! Data flows [`Selection`] -> [`load`] (a [`Collector`] pass over the source) -> [`Job`], the ranks x iterations
//! table of each timer that every later stage works on. [`slow_windows`] finds in it when the steps were slow, and
//! [`Job::window`] cuts that part out.

mod assemble;
mod batch;
mod calls;
mod catalog;
mod collect;
mod collected_rows;
mod columns;
mod counting_rows;
mod fill;
mod from_table;
mod job_wide;
mod losses;
mod moves;
mod positions;
mod quality;
mod reduced;
mod row_order;
mod run_rows;
mod runs;
#[cfg(test)]
mod samples;
mod sightings;
mod slow_window;
mod stalls;
mod step_time;
mod steps;
mod tables;
mod timer_table;
mod topology;
mod window;
mod window_cut;

pub use calls::CallTable;
pub use catalog::{JobEntry, JobsOfFiles, list_jobs, list_jobs_with_files, name_jobs};
pub use collect::Collector;
pub use columns::{LEAST_COLUMNS, Reduction};
pub use from_table::{export_job, list_table_jobs, load_table};
pub use job_wide::{JobWide, JobWideTimer, ReportedRank};
pub use moves::Move;
pub use quality::DataQuality;
pub use reduced::{DurationSums, Reduced};
pub use runs::Run;
pub use slow_window::{Drift, Restart, SlowWindow, StepTimes, slow_windows};
pub use stalls::{LongStep, Stall, long_steps};
pub use steps::StepMeasure;
pub use tables::Job;
pub use timer_table::TimerTable;
pub use topology::{Communicator, Group, Place, Topology, TopologyError, TopologyFlags, TopologyOrigin};
pub use window::{IterationRange, IterationRangeError, Selection};

use thiserror::Error;

use crate::source::{Format, SourceError, SourceFile, scan};

/// Why there is no job to analyse.
#[derive(Debug, Error)]
pub enum JobError {
    /// The source failed, or holds nothing that was asked for.
    #[error(transparent)]
    Source(#[from] SourceError),
    /// The topology flags do not fit the job.
    #[error(transparent)]
    Topology(#[from] TopologyError),
}

/// Reads the selected window of one job from files.
///
/// # Errors
/// A file that can't be read; an unknown job, several jobs and none chosen, or an empty window; topology flags that
/// do not fit the job.
pub fn load(files: &[SourceFile], selection: &Selection, progress: &dyn Fn(u64)) -> Result<Job, JobError> {
    let mut collector = Collector::new(selection);
    let outcome = scan(files, &mut collector, progress);
    let from_stdin = files.iter().any(SourceFile::is_stdin);
    match outcome {
        // Standard input can't be read again for the whole list.
        Err(SourceError::SeveralJobs(_)) if !from_stdin => {
            let jobs = list_jobs(files, progress)?;
            let logs = files.iter().all(|file| file.format == Format::Log);
            // A log goes on where the one before it ended: what is asked about is how it ended.
            if let Some(last) = jobs
                .iter()
                .max_by(|a, b| a.last_time.cmp(&b.last_time))
                .filter(|_| logs)
            {
                let selection = Selection {
                    job: Some(last.job.clone()),
                    ..selection.clone()
                };
                let mut job = load(files, &selection, progress)?;
                let (count, names) = (jobs.len(), name_jobs(&jobs));
                let note = format!(
                    "the logs hold {count} jobs, {names}: this is the last of them, another is asked for by its id"
                );
                job.job_wide.notes.insert(0, note);
                return Ok(job);
            }
            return Err(SourceError::SeveralJobs(name_jobs(&jobs)).into());
        }
        other => other?,
    }
    if !collector.saw_the_job() {
        let nothing = || SourceError::NoRows("the input holds no rows".to_owned());
        let asked = selection.job.clone().ok_or_else(nothing)?;
        let there = if from_stdin {
            "no such job".to_owned()
        } else {
            let jobs = list_jobs(files, progress)?;
            if let Some(entry) = jobs.iter().find(|entry| entry.job == asked) {
                let first = entry.first_time.as_deref().unwrap_or("?");
                let last = entry.last_time.as_deref().unwrap_or("?");
                return Err(SourceError::NoRows(format!(
                    "job `{asked}` has rows from {first} to {last}, none of them in the window"
                ))
                .into());
            }
            name_jobs(&jobs)
        };
        return Err(SourceError::UnknownJob { asked, there }.into());
    }
    Job::assemble(collector, selection)
}
