//! The pass that gathers one job's rows: keeps those of the window, remembers of the others only what warm-up,
//! reruns and topology need.

use rustc_hash::FxHashMap;

use super::calls::{CallRows, push_durations};
use super::kept::{Latest, Names, RunExtent, TimerRows, keep_latest};
use super::quality::DataQuality;
use super::window::Selection;
use crate::contract::metrics::{GROUPS, TIMERS, TRACE};
use crate::contract::timers::is_traced;
use crate::source::{Micros, Need, PartStatistics, Rows, Scan, SourceError, TextColumn};

/// Gathers the rows of one job; a [`Scan`].
#[derive(Debug)]
pub struct Collector<'a> {
    selection: &'a Selection,
    pub(super) job: Option<String>,
    pub(super) timers: Names,
    pub(super) runs: Names,
    /// Parallel to `runs`; `None` for a run without a timer row up to `--end`.
    pub(super) extents: Vec<Option<RunExtent>>,
    pub(super) chunks: Vec<TimerRows>,
    pub(super) calls: Vec<CallRows>,
    /// (run, rank) -> node.
    pub(super) nodes: Latest<(u32, u32), String>,
    /// (run, group name, rank) -> position.
    pub(super) groups: Latest<(u32, String, u32), u32>,
    pub(super) quality: DataQuality,
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
            extents: Vec::new(),
            chunks: Vec::new(),
            calls: Vec::new(),
            nodes: Latest::new(),
            groups: Latest::new(),
            quality: DataQuality::default(),
        }
    }

    /// Whether a row of the asked job was seen.
    #[must_use]
    pub fn saw_the_job(&self) -> bool {
        self.quality.rows_read > self.quality.other_jobs
    }
}

/// What one batch leaves behind; codes are positions in the batch's own words.
#[derive(Default)]
pub struct Digest {
    jobs: Vec<String>,
    timer_words: Vec<String>,
    run_words: Vec<String>,
    extents: Vec<Option<RunExtent>>,
    rows: TimerRows,
    calls: CallRows,
    nodes: Latest<(u32, u32), String>,
    groups: Latest<(u32, String, u32), u32>,
    quality: DataQuality,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Metric {
    Timers,
    Trace,
    Groups,
    Other,
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
        let mut digest = Digest::default();
        digest.quality.rows_read = rows.len() as u64;
        digest.jobs = rows.job.words.clone();
        digest.timer_words = rows.subname.words.clone();
        digest.run_words = match &rows.rerun_uuid {
            Some(runs) => runs.words.clone(),
            None => Vec::new(),
        };
        // Rows that name no run belong to a nameless one, the last of the words.
        let nameless = digest.run_words.len() as u32;
        digest.run_words.push(String::new());
        digest.extents = vec![None; digest.run_words.len()];

        let ours: Vec<bool> = match &self.job {
            Some(job) => rows.job.words.iter().map(|word| word == job).collect(),
            None => vec![true; rows.job.words.len()],
        };
        let metrics: Vec<Metric> = rows.metric_name.words.iter().map(|word| metric_of(word)).collect();
        let transfers: Vec<bool> = rows.subname.words.iter().map(|word| is_traced(word)).collect();
        let mut seen = FxHashMap::<(u32, u32), (Micros, u32)>::default();

        for row in 0..rows.len() {
            let quality = &mut digest.quality;
            if !ours.get(rows.job.codes[row] as usize).copied().unwrap_or(false) {
                quality.other_jobs += 1;
                continue;
            }
            let metric = metrics
                .get(rows.metric_name.codes[row] as usize)
                .copied()
                .unwrap_or(Metric::Other);
            match metric {
                Metric::Other => {
                    quality.other_metrics += 1;
                    continue;
                }
                Metric::Trace => {
                    quality.trace_rows += 1;
                    self.digest_trace(&rows, row, &transfers, nameless, &mut digest);
                    continue;
                }
                Metric::Groups | Metric::Timers => {}
            }
            let subname = rows.subname.codes[row];
            let (Some(time), Some(rank), true) = (
                rows.timestamp[row],
                rows.rank[row].and_then(as_rank),
                subname != TextColumn::MISSING,
            ) else {
                quality.unreadable_rows += 1;
                continue;
            };
            if self.selection.end.is_some_and(|end| end < time) {
                quality.outside_time += 1;
                continue;
            }
            let run = run_of(&rows, row, nameless);
            let value = rows.value.get(row).copied().flatten();
            if metric == Metric::Groups {
                // Written once, at a run's beginning: neither `--start` nor the iterations apply to them.
                match value.and_then(as_position) {
                    Some(position) => {
                        quality.group_rows += 1;
                        let group = rows.subname.words[subname as usize].clone();
                        keep_latest(&mut digest.groups, (run, group, rank), time, position);
                    }
                    None => quality.unreadable_rows += 1,
                }
                continue;
            }
            // A negative number is damage, and would pass for the run's first iteration.
            let Some(iteration) = rows.iteration[row].filter(|&iteration| iteration >= 0) else {
                quality.unreadable_rows += 1;
                continue;
            };
            let extent = RunExtent {
                first_time: time,
                last_time: time,
                first_iteration: iteration,
                last_iteration: iteration,
            };
            match &mut digest.extents[run as usize] {
                Some(known) => known.merge(&extent),
                none => *none = Some(extent),
            }
            if self.selection.start.is_some_and(|start| time < start) {
                quality.outside_time += 1;
                continue;
            }
            if !self.selection.iterations.contains(iteration) {
                quality.outside_iterations += 1;
                continue;
            }
            let Some(seconds) = value else {
                quality.missing_values += 1;
                continue;
            };
            if !seconds.is_finite() {
                quality.not_finite += 1;
                continue;
            }
            if seconds < 0.0 {
                quality.negative += 1;
                continue;
            }
            if let Some(nodes) = &rows.node {
                let node = nodes.codes[row];
                let key = (run, rank);
                let named = nodes.words.get(node as usize).filter(|name| !name.is_empty());
                if let Some(name) = named.filter(|_| seen.get(&key) != Some(&(time, node))) {
                    seen.insert(key, (time, node));
                    note_node(&mut digest.nodes, key, time, name);
                }
            }
            let kept = &mut digest.rows;
            kept.timer.push(subname);
            kept.run.push(run);
            kept.rank.push(rank);
            kept.iteration.push(iteration);
            kept.timestamp.push(time);
            kept.seconds.push(seconds);
        }
        digest
    }

    fn absorb(&mut self, digest: Digest) -> Result<(), SourceError> {
        self.note_jobs(digest.jobs)?;
        self.quality.add(&digest.quality);
        let timers: Vec<u32> = digest.timer_words.iter().map(|name| self.timers.code(name)).collect();
        let runs: Vec<u32> = digest.run_words.iter().map(|name| self.runs.code(name)).collect();
        self.extents.resize(self.runs.names.len(), None);
        for (extent, &run) in digest.extents.iter().zip(&runs) {
            match (&mut self.extents[run as usize], extent) {
                (_, None) => {}
                (Some(known), Some(extent)) => known.merge(extent),
                (none, Some(extent)) => *none = Some(extent.clone()),
            }
        }
        for ((run, rank), (time, node)) in digest.nodes {
            keep_latest(&mut self.nodes, (runs[run as usize], rank), time, node);
        }
        for ((run, group, rank), (time, position)) in digest.groups {
            keep_latest(&mut self.groups, (runs[run as usize], group, rank), time, position);
        }
        let mut rows = digest.rows;
        if rows.len() > 0 {
            rows.timer.iter_mut().for_each(|timer| *timer = timers[*timer as usize]);
            rows.run.iter_mut().for_each(|run| *run = runs[*run as usize]);
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
}

impl Collector<'_> {
    /// Adds what is known of a run from rows that were not read here.
    pub(super) fn note_extent(&mut self, run: &str, extent: RunExtent) {
        let run = self.run_code(run) as usize;
        match &mut self.extents[run] {
            Some(known) => known.merge(&extent),
            none => *none = Some(extent),
        }
    }

    /// The code of a run.
    pub(super) fn run_code(&mut self, run: &str) -> u32 {
        let code = self.runs.code(run);
        self.extents.resize(self.runs.names.len(), None);
        code
    }

    /// Takes the calls of a trace row; `transfers` tells which words of the batch are timers around transfers.
    ///
    /// Unlike timer rows these say nothing of where a run began.
    fn digest_trace(&self, rows: &Rows, row: usize, transfers: &[bool], nameless: u32, digest: &mut Digest) {
        let timer = rows.subname.codes[row];
        let is_traced = transfers.get(timer as usize).copied();
        let times = rows.calls.get(row);
        if is_traced == Some(false) || (is_traced.is_some() && rows.has_values() && times.is_empty()) {
            digest.quality.trace_rows_not_needed += 1;
            return;
        }
        let within = |time: Micros, iteration: i64| {
            let selection = self.selection;
            selection.start.is_none_or(|start| start <= time)
                && selection.end.is_none_or(|end| time <= end)
                && selection.iterations.contains(iteration)
        };
        let (Some(timestamp), Some(rank), Some(iteration), Some(true)) = (
            rows.timestamp[row],
            rows.rank[row].and_then(as_rank),
            rows.iteration[row].filter(|&iteration| iteration >= 0),
            is_traced.filter(|_| rows.has_values()),
        ) else {
            digest.quality.trace_rows_left_out += 1;
            return;
        };
        if !within(timestamp, iteration) {
            digest.quality.trace_rows_left_out += 1;
            return;
        }
        let kept = &mut digest.calls;
        kept.timer.push(timer);
        kept.run.push(run_of(rows, row, nameless));
        kept.rank.push(rank);
        kept.iteration.push(iteration);
        kept.timestamp.push(timestamp);
        push_durations(times, &mut kept.seconds);
        kept.ends.push(kept.seconds.len());
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

/// The run of a row, as a position in the batch's words; rows that name none belong to the nameless one.
fn run_of(rows: &Rows, row: usize, nameless: u32) -> u32 {
    let runs = rows.rerun_uuid.as_ref();
    runs.map_or(nameless, |runs| runs.codes[row]).min(nameless)
}

fn note_node(nodes: &mut Latest<(u32, u32), String>, key: (u32, u32), time: Micros, node: &str) {
    match nodes.get_mut(&key) {
        Some((known_time, known)) => {
            if (*known_time, known.as_str()) < (time, node) {
                *known_time = time;
                if known != node {
                    node.clone_into(known);
                }
            }
        }
        None => {
            nodes.insert(key, (time, node.to_owned()));
        }
    }
}

fn metric_of(name: &str) -> Metric {
    match name {
        TIMERS => Metric::Timers,
        TRACE => Metric::Trace,
        GROUPS => Metric::Groups,
        _ => Metric::Other,
    }
}

fn as_rank(number: i64) -> Option<u32> {
    u32::try_from(number).ok()
}

fn as_position(number: f64) -> Option<u32> {
    (number.fract() == 0.0 && (0.0..=f64::from(u32::MAX)).contains(&number)).then_some(number as u32)
}
