//! The pass that gathers one job's rows: keeps those of the window, remembers of the others only what warm-up,
//! reruns and topology need.

use std::collections::BTreeMap;

use super::batch::{Batch, Digest};
use super::calls::CallRows;
use super::collected_rows::{GroupRow, Names, RunExtent, StepOfRun, StepTallies, StepTally, TimerRows, keep_latest};
use super::job_wide::{ReportedRank, SummaryRow};
use super::quality::DataQuality;
use super::sightings::Sightings;
use super::window::Selection;
use crate::contract::metrics::{GROUPS, REPORT, SUMMARY, TIMERS, TRACE};
use crate::source::fate::Bounds;
use crate::source::{Micros, Need, PartStatistics, Rows, Scan, SourceError};

/// Gathers the rows of one job; a [`Scan`].
#[derive(Debug)]
pub struct Collector<'a> {
    selection: &'a Selection,
    pub(super) job: Option<String>,
    /// Names of timers and parallel groups.
    pub(super) timers: Names,
    pub(super) runs: Names,
    pub(super) node_names: Names,
    /// Parallel to `runs`; `None` for a run without a timer row up to `--end`.
    pub(super) extents: Vec<Option<RunExtent>>,
    /// Usable timer rows of the window by run and iteration.
    pub(super) steps: StepTallies,
    pub(super) chunks: Vec<TimerRows>,
    pub(super) calls: Vec<CallRows>,
    pub(super) seen: Sightings,
    pub(super) groups: Vec<GroupRow>,
    pub(super) quality: DataQuality,
    /// Rows of the whole job.
    pub(super) summaries: Vec<SummaryRow>,
    /// Of how many iterations the rows of a run are the means.
    pub(super) log_intervals: BTreeMap<u32, i64>,
    pub(super) reports: Vec<ReportedRank>,
    pub(super) notes: Vec<String>,
}

impl<'a> Collector<'a> {
    /// Starts a pass for a selection.
    #[must_use]
    pub fn new(selection: &'a Selection) -> Self {
        Self {
            selection,
            job: selection.job.clone(),
            timers: Names::default(),
            runs: Names::default(),
            node_names: Names::default(),
            extents: Vec::new(),
            steps: StepTallies::new(),
            chunks: Vec::new(),
            calls: Vec::new(),
            seen: Sightings::default(),
            groups: Vec::new(),
            quality: DataQuality::default(),
            summaries: Vec::new(),
            log_intervals: BTreeMap::new(),
            reports: Vec::new(),
            notes: Vec::new(),
        }
    }

    /// Whether a row of the asked job was seen.
    #[must_use]
    pub fn saw_the_job(&self) -> bool {
        self.quality.rows_read > self.quality.other_jobs
    }
}

impl Selection {
    /// What decides whether a row lies in the window.
    pub(super) fn bounds(&self) -> Bounds {
        Bounds {
            start: self.start,
            end: self.end,
            first: self.iterations.first,
            last: self.iterations.last,
        }
    }
}

impl Scan for Collector<'_> {
    type Digest = Digest;

    fn need(&self, part: &PartStatistics) -> Need {
        // Without an asked job nothing may be skipped for its job: a second one must be noticed.
        if self.selection.job.as_ref().is_some_and(|job| !part.may_hold_job(job)) {
            return Need::Nothing;
        }
        let timers = part.may_hold_metric(TIMERS);
        let groups = part.may_hold_metric(GROUPS);
        let trace = part.may_hold_metric(TRACE);
        // Few rows, of which some apply to the whole run.
        if part.may_hold_metric(SUMMARY) || part.may_hold_metric(REPORT) {
            return Need::Everything;
        }
        if !timers && !groups && !trace {
            return Need::Nothing;
        }
        let selection = self.selection;
        let before_end = |&(first, _): &(Micros, Micros)| selection.end.is_none_or(|end| first <= end);
        if !part.timestamp.as_ref().is_none_or(before_end) {
            return Need::Nothing;
        }
        let after_start = |&(_, last): &(Micros, Micros)| selection.start.is_none_or(|start| start <= last);
        let in_iterations = |&(first, last): &(i64, i64)| selection.iterations.overlaps(first, last);
        if (timers || trace)
            && part.timestamp.as_ref().is_none_or(after_start)
            && part.iteration.as_ref().is_none_or(in_iterations)
        {
            return Need::Everything;
        }
        // What lies before the window tells where a run began, and group rows are written once, at its beginning.
        match (groups, timers) {
            (true, _) => Need::KeysUnlessMetric(GROUPS),
            (false, true) => Need::Keys,
            (false, false) => Need::Nothing,
        }
    }

    fn digest(&self, rows: Rows) -> Digest {
        Batch::new(&rows, self.job.as_deref(), self.selection.bounds()).digest()
    }

    fn absorb(&mut self, mut digest: Digest) -> Result<(), SourceError> {
        self.note_jobs(std::mem::take(&mut digest.jobs))?;
        self.quality.add(&digest.quality);
        let timers = self.timers.codes(&digest.timer_words);
        let runs: Vec<u32> = digest.run_words.iter().map(|run| self.run_code(run)).collect();
        let nodes = self.node_names.codes(&digest.node_words);
        for (extent, &run) in digest.extents.into_iter().zip(&runs) {
            if let Some(extent) = extent {
                extent.add_to(&mut self.extents[run as usize]);
            }
        }
        self.seen.absorb(&digest.seen, &runs, &nodes, &self.node_names.names);
        self.groups.extend(digest.groups.into_iter().map(|row| GroupRow {
            group: timers[row.group as usize],
            run: runs[row.run as usize],
            ..row
        }));
        for row in digest.summaries {
            let row = SummaryRow {
                timer: timers[row.timer as usize],
                run: runs[row.run as usize],
                ..row
            };
            let step = StepOfRun {
                run: row.run,
                iteration: row.iteration,
            };
            let tally = StepTally {
                rows: 1,
                first_time: row.time,
                last_time: row.time,
            };
            self.steps.entry(step).or_insert(StepTally::NONE).merge(&tally);
            self.summaries.push(row);
        }
        for (run, interval) in digest.log_intervals {
            self.log_intervals.insert(runs[run as usize], interval);
        }
        self.reports.extend(digest.reports);
        self.notes.extend(digest.notes);
        let mut rows = digest.rows;
        for (step, tally) in rows.steps.iter_mut().zip(&digest.tallies) {
            step.run = runs[step.run as usize];
            self.steps.entry(*step).or_insert(StepTally::NONE).merge(tally);
        }
        if rows.len() > 0 {
            rows.pieces
                .iter_mut()
                .for_each(|(timer, _)| *timer = timers[*timer as usize]);
            self.chunks.push(rows);
        }
        let mut calls = digest.calls;
        if calls.len() > 0 {
            calls
                .timer
                .iter_mut()
                .for_each(|timer| *timer = timers[*timer as usize]);
            calls.run.iter_mut().for_each(|run| *run = runs[*run as usize]);
            self.calls.push(calls);
        }
        Ok(())
    }

    fn skipped(&mut self, part: &PartStatistics) {
        self.quality.rows_not_read += part.rows as u64;
    }

    fn note(&mut self, note: String) {
        self.notes.push(note);
    }
}

impl Collector<'_> {
    /// Adds what is known of a run from rows that were not read here.
    pub(super) fn note_extent(&mut self, run: &str, extent: RunExtent) {
        let run = self.run_code(run) as usize;
        extent.add_to(&mut self.extents[run]);
    }

    /// Adds the node of a rank from rows that were not read here.
    pub(super) fn note_node(&mut self, run: u32, rank: u32, time: Micros, node: &str) {
        let node = self.node_names.code(node);
        self.seen.note(run, rank, time, Some(node), &self.node_names.names);
    }

    /// The code of a run.
    pub(super) fn run_code(&mut self, run: &str) -> u32 {
        let code = self.runs.code(run);
        self.extents.resize(self.runs.names.len(), None);
        code
    }

    /// The group rows of all batches, those that a later one repeats dropped.
    pub(super) fn latest_groups(&mut self) -> Vec<GroupRow> {
        let mut groups = std::mem::take(&mut self.groups);
        keep_latest(&mut groups);
        groups
    }

    fn note_jobs(&mut self, jobs: Vec<String>) -> Result<(), SourceError> {
        for job in jobs {
            match &self.job {
                None => self.job = Some(job),
                Some(known) if *known == job => {}
                Some(known) if self.selection.job.is_none() => {
                    let (first, second) = if *known < job { (known, &job) } else { (&job, known) };
                    return Err(SourceError::SeveralJobs(format!("{first}, {second}")));
                }
                Some(_) => {}
            }
        }
        Ok(())
    }
}
