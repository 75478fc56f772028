//! New iterations of files that still grow: a training's log, or the folder of its recorder.
//!
//! A log is read on from where it ended. Of rows in files those are read anew that changed; who wrote what is there before the
//! watching began does not matter: all of it is the job's history.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::{Mutex, PoisonError};
use std::time::SystemTime;

use super::feed::Feed;
use crate::contract::metrics::{SUMMARY, TIMERS};
use crate::contract::timers::INTERVAL_TIME;
use crate::source::clickhouse::{LastSeen, LiveStep, Since};
use crate::source::logs::LogTail;
use crate::source::{Format, Micros, Need, PartStatistics, Rows, Scan, SourceError, SourceFile, scan};

/// Iterations of a job that are told again with new ones: the newest is looked at once a later one has begun.
const TOLD_AGAIN: usize = 32;

/// Finds the files anew with each look.
pub type Find = Box<dyn Fn() -> Result<Vec<SourceFile>, SourceError> + Send + Sync>;

/// Files that still grow.
pub struct GrowingFiles {
    find: Find,
    seen: Mutex<Seen>,
}

/// What was read so far.
#[derive(Default)]
struct Seen {
    /// Length and time of change of each file that was read.
    read: BTreeMap<PathBuf, (u64, Option<SystemTime>)>,
    log: Option<LogTail>,
    /// By job, run and iteration.
    steps: BTreeMap<(String, String, i64), LiveStep>,
    /// By job and rank.
    ranks: BTreeMap<(String, i64), LastSeen>,
}

impl GrowingFiles {
    /// The files that `find` finds.
    #[must_use]
    pub fn new(find: Find) -> Self {
        Self {
            find,
            seen: Mutex::default(),
        }
    }

    /// What is there by now.
    fn look<T>(&self, tell: impl FnOnce(&mut Seen) -> T) -> Result<T, SourceError> {
        let mut seen = self.seen.lock().unwrap_or_else(PoisonError::into_inner);
        seen.read_on((self.find)()?)?;
        Ok(tell(&mut seen))
    }
}

impl Feed for GrowingFiles {
    fn steps(&self, jobs: &[Since]) -> Result<Vec<LiveStep>, SourceError> {
        self.look(|seen| {
            let asked = |step: &&LiveStep| jobs.iter().any(|since| since.job == step.name);
            let steps = seen.steps.values().filter(asked).cloned().collect();
            seen.forget_old_steps();
            steps
        })
    }

    fn last_seen(&self, since: &Since) -> Result<Vec<LastSeen>, SourceError> {
        self.look(|seen| {
            let ranks = seen.ranks.iter().filter(|((job, _), _)| *job == since.job);
            ranks.map(|(_, rank)| rank.clone()).collect()
        })
    }

    fn jobs(&self, _: Micros) -> Result<Vec<String>, SourceError> {
        self.look(|seen| {
            let mut jobs: Vec<String> = seen.steps.keys().map(|(job, _, _)| job.clone()).collect();
            jobs.dedup();
            jobs
        })
    }
}

impl Seen {
    fn read_on(&mut self, files: Vec<SourceFile>) -> Result<(), SourceError> {
        if let [log] = files.as_slice()
            && log.format == Format::Log
        {
            if self.log.is_none() {
                self.log = LogTail::of(log)?;
            }
            if let Some(mut tail) = self.log.take() {
                let read = tail.read_on(&mut |rows| self.take(&digest(rows)));
                self.log = Some(tail);
                return read;
            }
        }
        let changed = |file: &SourceFile| {
            let state = state(file);
            (self.read.get(&file.path) != Some(&state)).then_some((file.path.clone(), state))
        };
        let states: Vec<_> = files.iter().filter_map(changed).collect();
        // Which run a line is of shows from the logs before.
        let is_new = |file: &SourceFile| states.iter().any(|(path, _)| *path == file.path);
        let a_log_is_new = files.iter().any(|file| file.format == Format::Log && is_new(file));
        let to_read: Vec<SourceFile> = files
            .into_iter()
            .filter(|file| is_new(file) || (a_log_is_new && file.format == Format::Log))
            .collect();
        if !to_read.is_empty() {
            scan(&to_read, self, &|_| ())?;
        }
        self.read.extend(states);
        Ok(())
    }

    fn take(&mut self, told: &Told) {
        for step in &told.steps {
            let key = (step.name.clone(), step.run_id.clone(), step.iteration_number);
            let known = self.steps.entry(key).or_insert_with(|| step.clone());
            known.seconds = known.seconds.max(step.seconds);
            known.first_time = known.first_time.min(step.first_time);
            known.last_time = known.last_time.max(step.last_time);
        }
        for (job, rank) in &told.ranks {
            let known = self
                .ranks
                .entry((job.clone(), rank.rank_number))
                .or_insert_with(|| rank.clone());
            if (known.iteration_number, known.last_time) <= (rank.iteration_number, rank.last_time) {
                *known = rank.clone();
            }
        }
    }

    /// Of each job the last iterations by time stay.
    fn forget_old_steps(&mut self) {
        let mut by_job = BTreeMap::<String, Vec<(Micros, String, i64)>>::new();
        for step in self.steps.values() {
            by_job.entry(step.name.clone()).or_default().push((
                step.first_time,
                step.run_id.clone(),
                step.iteration_number,
            ));
        }
        for (job, mut steps) in by_job {
            steps.sort_unstable();
            let old = steps.len().saturating_sub(TOLD_AGAIN);
            for (_, run, iteration) in steps.into_iter().take(old) {
                self.steps.remove(&(job.clone(), run, iteration));
            }
        }
    }
}

/// What tells a changed file; nothing of one that is gone again.
fn state(file: &SourceFile) -> (u64, Option<SystemTime>) {
    std::fs::metadata(&file.path).map_or((0, None), |metadata| (metadata.len(), metadata.modified().ok()))
}

/// What a batch tells of steps and ranks.
#[derive(Default)]
struct Told {
    steps: Vec<LiveStep>,
    ranks: Vec<(String, LastSeen)>,
}

/// Rows without a time are taken for as old as their iteration.
fn digest(rows: &Rows) -> Told {
    let mut told = Told::default();
    let mut last = BTreeMap::<(&str, i64), usize>::new();
    for row in 0..rows.len() {
        let metric = rows.metric_name.get(row);
        let (Some(job), Some(iteration)) = (rows.job.get(row), rows.iteration.get(row)) else {
            continue;
        };
        let rank = rows.rank.get(row).filter(|rank| *rank >= 0 && metric == Some(TIMERS));
        if iteration < 0 || (rank.is_none() && metric != Some(SUMMARY)) {
            continue;
        }
        let time = rows.timestamp.get(row).unwrap_or(iteration);
        if let Some(rank) = rank {
            let place = last.entry((job, rank)).or_insert(row);
            let when = |row: usize| (rows.iteration.get(row), rows.timestamp.get(row));
            if when(*place) <= when(row) {
                *place = row;
            }
        }
        let seconds = rows
            .value
            .get(row)
            .filter(|seconds| seconds.is_finite() && *seconds > 0.0);
        if let Some(seconds) = seconds
            && rows.subname.get(row) == Some(INTERVAL_TIME)
        {
            let run = rows
                .rerun_uuid
                .as_ref()
                .and_then(|run| run.get(row))
                .unwrap_or_default();
            told.steps.push(LiveStep {
                name: job.to_owned(),
                run_id: run.to_owned(),
                iteration_number: iteration,
                seconds,
                first_time: time,
                last_time: time,
                ranks: 1,
                answer_rows: 1,
            });
        }
    }
    told.ranks = last
        .into_iter()
        .map(|((job, rank), row)| {
            let word = |column: Option<&str>| column.unwrap_or_default().to_owned();
            let iteration = rows.iteration.get(row).unwrap_or_default();
            let seen = LastSeen {
                rank_number: rank,
                node_name: word(rows.node.as_ref().and_then(|node| node.get(row))),
                iteration_number: iteration,
                last_time: rows.timestamp.get(row).unwrap_or(iteration),
                timer: word(rows.subname.get(row)),
                answer_rows: 1,
            };
            (job.to_owned(), seen)
        })
        .collect();
    told
}

impl Scan for Seen {
    type Digest = Told;

    fn need(&self, part: &PartStatistics) -> Need {
        if part.may_hold_metric(TIMERS) || part.may_hold_metric(SUMMARY) {
            Need::Everything
        } else {
            Need::Nothing
        }
    }

    fn digest(&self, rows: Rows) -> Told {
        digest(&rows)
    }

    fn absorb(&mut self, told: Told) -> Result<(), SourceError> {
        self.take(&told);
        Ok(())
    }

    fn skipped(&mut self, _: &PartStatistics) {}
}
