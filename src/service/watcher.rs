//! All watched jobs, and the poll that brings them up to date with one query.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Mutex, MutexGuard, PoisonError};

use super::feed::Feed;
use super::health::Health;
use super::known::{Detection, Due, RankBehind, State};
use super::watched::{WatchSettings, Watched};
use crate::source::clickhouse::{LastSeen, LiveStep, Since};
use crate::source::{Micros, SourceError};

/// How much earlier than the last iteration's rows those of the next may be stamped: clocks of nodes need not agree.
const MARGIN: Micros = 30_000_000;
/// How far back jobs are looked for on the first poll.
const FIRST_LOOK: Micros = 120_000_000;
/// Ranks behind that a hang names.
const BEHIND_SHOWN: usize = 16;

/// A job whose state changed, for alerts.
#[derive(Debug, Clone, PartialEq)]
pub struct News {
    /// Job id.
    pub job: String,
    /// What it did before.
    pub before: State,
    /// What it does now.
    pub now: State,
    /// When.
    pub time: Micros,
    /// The verdict that came with it.
    pub detection: Option<Detection>,
}

/// Which jobs are registered without being asked for.
#[derive(Debug, Clone, Default)]
pub struct Discovery {
    /// Patterns of job ids; none: no job is.
    pub patterns: Vec<glob::Pattern>,
}

impl Discovery {
    fn wants(&self, job: &str) -> bool {
        self.patterns.iter().any(|pattern| pattern.matches(job))
    }
}

#[derive(Debug)]
struct Inner {
    jobs: BTreeMap<String, Watched>,
    /// Jobs that were taken out by hand: discovery leaves them out.
    refused: BTreeSet<String>,
    health: Health,
    looked_for_jobs: Option<Micros>,
    changed: bool,
}

/// The watched jobs, shared between polls, analyses and pages.
#[derive(Debug)]
pub struct Watcher {
    settings: WatchSettings,
    discovery: Discovery,
    inner: Mutex<Inner>,
}

/// What a poll brought.
#[derive(Debug, Default, PartialEq)]
pub struct Polled {
    /// Analyses that are due.
    pub due: Vec<Due>,
    /// Jobs whose state changed.
    pub news: Vec<News>,
}

impl Watcher {
    /// Goes on with the jobs that were watched before.
    #[must_use]
    pub fn new(settings: WatchSettings, discovery: Discovery, mut jobs: BTreeMap<String, Watched>) -> Self {
        // An analysis that was under way went with the process.
        for job in jobs.values_mut().filter(|job| job.state == State::Predicting) {
            job.state = State::Slowdown;
            job.analysed = 0;
        }
        Self {
            settings,
            discovery,
            inner: Mutex::new(Inner {
                jobs,
                refused: BTreeSet::new(),
                health: Health::default(),
                looked_for_jobs: None,
                changed: false,
            }),
        }
    }

    fn inner(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Watches a job from now on; `false` where it was watched already.
    pub fn register(&self, job: &str, now: Micros) -> bool {
        let mut inner = self.inner();
        inner.refused.remove(job);
        let fresh = !inner.jobs.contains_key(job);
        if fresh {
            // Tables keep whole seconds: a row of this one may have been written just now.
            inner
                .jobs
                .insert(job.to_owned(), Watched::new(job, now - now.rem_euclid(1_000_000)));
            inner.changed = true;
        }
        fresh
    }

    /// Watches a job no more; `false` where it was not watched.
    pub fn unregister(&self, job: &str) -> bool {
        let mut inner = self.inner();
        let was = inner.jobs.remove(job).is_some();
        if was {
            inner.refused.insert(job.to_owned());
            inner.changed = true;
        }
        was
    }

    /// What `look` makes of a job as it is; polls wait meanwhile.
    pub fn job<T>(&self, job: &str, look: impl FnOnce(&Watched) -> T) -> Option<T> {
        self.inner().jobs.get(job).map(look)
    }

    /// What `look` makes of every job as it is, by id; polls wait meanwhile.
    pub fn jobs<T>(&self, look: impl FnOnce(&BTreeMap<String, Watched>) -> T) -> T {
        look(&self.inner().jobs)
    }

    /// What `look` makes of every job, where anything changed since this was asked last.
    pub fn changed_jobs<T>(&self, look: impl FnOnce(&BTreeMap<String, Watched>) -> T) -> Option<T> {
        let mut inner = self.inner();
        std::mem::take(&mut inner.changed).then(|| look(&inner.jobs))
    }

    /// Says that what changed could not be kept: it counts as changed again.
    pub fn not_kept(&self) {
        self.inner().changed = true;
    }

    /// How the polls go.
    #[must_use]
    pub fn health(&self) -> Health {
        self.inner().health.clone()
    }

    /// Asks for what is new and takes it. Nobody is kept waiting by the queries.
    ///
    /// # Errors
    /// A source that fails; no job loses anything by it.
    pub fn poll(&self, feed: &dyn Feed, now: Micros) -> Result<Polled, SourceError> {
        let begin = std::time::Instant::now();
        let polled = self.try_poll(feed, now);
        let mut inner = self.inner();
        match &polled {
            Ok(_) => inner.health.succeeded(now, begin.elapsed().as_secs_f64()),
            Err(error) => inner.health.failed(error.to_string()),
        }
        drop(inner);
        polled
    }

    fn try_poll(&self, feed: &dyn Feed, now: Micros) -> Result<Polled, SourceError> {
        if !self.discovery.patterns.is_empty() {
            self.discover(feed, now)?;
        }
        let asked: Vec<Since> = self
            .inner()
            .jobs
            .values()
            .map(|job| {
                let since = job.since(MARGIN);
                // What is over hardly goes on, and must not make the server read all of its past.
                let bound = if job.state == State::Finished {
                    now - self.settings.hang.max(MARGIN)
                } else {
                    since
                };
                Since {
                    job: job.job.clone(),
                    time: since.max(bound),
                }
            })
            .collect();
        let steps = if asked.is_empty() {
            Vec::new()
        } else {
            feed.steps(&asked)?
        };
        let (polled, hanging) = self.take(&steps, now);
        for since in &hanging {
            // A hang is told also where the server does not say who is behind.
            if let Ok(seen) = feed.last_seen(since) {
                self.tell_who_is_behind(&since.job, &seen);
            }
        }
        Ok(polled)
    }

    fn discover(&self, feed: &dyn Feed, now: Micros) -> Result<(), SourceError> {
        let since = self
            .inner()
            .looked_for_jobs
            .map_or(now - FIRST_LOOK, |last| last - MARGIN);
        let found = feed.jobs(since)?;
        let mut inner = self.inner();
        inner.looked_for_jobs = Some(now);
        for job in found {
            if self.discovery.wants(&job) && !inner.jobs.contains_key(&job) && !inner.refused.contains(&job) {
                inner.jobs.insert(job.clone(), Watched::new(&job, since));
                inner.changed = true;
            }
        }
        Ok(())
    }

    /// Takes steps by job and looks at the clock; gives which jobs have just begun to hang beside what the poll brought.
    fn take(&self, steps: &[LiveStep], now: Micros) -> (Polled, Vec<Since>) {
        let mut polled = Polled::default();
        let mut hanging = Vec::new();
        let mut inner = self.inner();
        let mut changed = false;
        for job in inner.jobs.values_mut() {
            let from = steps.partition_point(|step| step.name < job.job);
            let to = steps.partition_point(|step| step.name <= job.job);
            let before = (job.state, job.count, job.newest);
            polled.due.extend(job.take(&steps[from..to], now, &self.settings));
            if job.look_at_clock(now, &self.settings) {
                hanging.push(Since {
                    job: job.job.clone(),
                    time: job.since(MARGIN),
                });
            }
            changed |= before != (job.state, job.count, job.newest);
            if before.0 != job.state {
                polled.news.push(News {
                    job: job.job.clone(),
                    before: before.0,
                    now: job.state,
                    time: now,
                    detection: None,
                });
            }
        }
        inner.changed |= changed;
        (polled, hanging)
    }

    fn tell_who_is_behind(&self, job: &str, seen: &[LastSeen]) {
        let Some(last) = seen.iter().map(|rank| rank.iteration_number).max() else {
            return;
        };
        let behind: Vec<RankBehind> = seen
            .iter()
            .filter(|rank| rank.iteration_number < last)
            .map(|rank| RankBehind {
                rank: rank.rank_number,
                node: rank.node_name.clone(),
                iteration: rank.iteration_number,
                last_timer: rank.timer.clone(),
            })
            .collect();
        let mut inner = self.inner();
        if let Some(hang) = inner.jobs.get_mut(job).and_then(|job| job.hang.as_mut()) {
            hang.last_iteration = Some(last);
            hang.ranks_behind = behind.len();
            hang.behind = behind.into_iter().take(BEHIND_SHOWN).collect();
        }
        inner.changed = true;
    }

    /// Takes what an analysis gave; `None` where the job is watched no more.
    pub fn detected(&self, job: &str, detection: Detection) -> Option<News> {
        let mut inner = self.inner();
        let watched = inner.jobs.get_mut(job)?;
        let before = watched.state;
        let time = detection.ended;
        watched.detected(detection.clone());
        let now = watched.state;
        inner.changed = true;
        Some(News {
            job: job.to_owned(),
            before,
            now,
            time,
            detection: Some(detection),
        })
    }
}

#[cfg(test)]
#[path = "watcher_tests.rs"]
mod tests;
