//! All watched jobs, and the poll that brings them up to date with one query.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Mutex, MutexGuard, PoisonError};

use super::feed::Feed;
use super::watched::{Detection, Due, RankBehind, State, WatchSettings, Watched};
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

/// How the polls go.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Health {
    /// Polls that succeeded.
    pub polls: u64,
    /// Polls that failed.
    pub failures: u64,
    /// Failures since the last that succeeded.
    pub failures_in_a_row: u32,
    /// When the last one succeeded.
    pub last_success: Option<Micros>,
    /// Seconds that the last one took.
    pub last_seconds: f64,
    /// Why the last one failed, where it did.
    pub error: Option<String>,
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

    /// A job as it is.
    #[must_use]
    pub fn job(&self, job: &str) -> Option<Watched> {
        self.inner().jobs.get(job).cloned()
    }

    /// Every job as it is, by id.
    #[must_use]
    pub fn jobs(&self) -> BTreeMap<String, Watched> {
        self.inner().jobs.clone()
    }

    /// Every job, where anything changed since this was asked last.
    #[must_use]
    pub fn changed_jobs(&self) -> Option<BTreeMap<String, Watched>> {
        let mut inner = self.inner();
        std::mem::take(&mut inner.changed).then(|| inner.jobs.clone())
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
        let health = &mut inner.health;
        match &polled {
            Ok(_) => {
                health.polls += 1;
                health.failures_in_a_row = 0;
                health.last_success = Some(now);
                health.last_seconds = begin.elapsed().as_secs_f64();
                health.error = None;
            }
            Err(error) => {
                health.failures += 1;
                health.failures_in_a_row = health.failures_in_a_row.saturating_add(1);
                health.error = Some(error.to_string());
            }
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
mod tests {
    use super::*;

    const SECOND: Micros = 1_000_000;

    /// A script of steps, each there from its time on.
    struct Script {
        steps: Vec<LiveStep>,
        asked: Mutex<Vec<usize>>,
        fails: bool,
    }

    impl Feed for Script {
        fn steps(&self, jobs: &[Since]) -> Result<Vec<LiveStep>, SourceError> {
            self.asked.lock().expect("no panic").push(jobs.len());
            if self.fails {
                return Err(SourceError::NoRows("down".to_owned()));
            }
            let asked = |step: &&LiveStep| {
                jobs.iter()
                    .any(|since| since.job == step.name && since.time <= step.last_time)
            };
            Ok(self.steps.iter().filter(asked).cloned().collect())
        }

        fn last_seen(&self, _: &Since) -> Result<Vec<LastSeen>, SourceError> {
            let rank = |rank_number, iteration_number, timer: &str| LastSeen {
                rank_number,
                node_name: "n1".to_owned(),
                iteration_number,
                last_time: 0,
                timer: timer.to_owned(),
                answer_rows: 2,
            };
            Ok(vec![rank(0, 9, "interval-time"), rank(1, 8, "forward-recv")])
        }

        fn jobs(&self, _: Micros) -> Result<Vec<String>, SourceError> {
            Ok(vec!["a".to_owned(), "b".to_owned(), "other".to_owned()])
        }
    }

    fn step(job: &str, iteration: i64) -> LiveStep {
        LiveStep {
            name: job.to_owned(),
            run_id: String::new(),
            iteration_number: iteration,
            seconds: 2.0,
            first_time: iteration * 2 * SECOND,
            last_time: iteration * 2 * SECOND,
            ranks: 2,
            answer_rows: 1,
        }
    }

    fn watcher(patterns: &[&str]) -> Watcher {
        let patterns = patterns.iter().map(|text| glob::Pattern::new(text).expect("a pattern"));
        let discovery = Discovery {
            patterns: patterns.collect(),
        };
        Watcher::new(WatchSettings::default(), discovery, BTreeMap::new())
    }

    fn script(jobs: &[&str]) -> Script {
        Script {
            steps: jobs
                .iter()
                .flat_map(|job| (0..10).map(|iteration| step(job, iteration)))
                .collect(),
            asked: Mutex::default(),
            fails: false,
        }
    }

    #[test]
    fn all_jobs_are_asked_for_at_once() {
        let (watcher, feed) = (watcher(&[]), script(&["a", "b"]));
        assert!(watcher.register("a", 0) && watcher.register("b", 0) && !watcher.register("a", 5));
        watcher.poll(&feed, 20 * SECOND).expect("a poll");
        assert_eq!(*feed.asked.lock().expect("no panic"), [2]);
        let jobs = watcher.jobs();
        assert!(jobs.values().all(|job| job.newest == Some(9)), "{jobs:?}");
        assert!(watcher.changed_jobs().is_some() && watcher.changed_jobs().is_none());
    }

    #[test]
    fn a_hang_tells_who_is_behind() {
        let (watcher, feed) = (watcher(&[]), script(&["a"]));
        watcher.register("a", 0);
        watcher.poll(&feed, 20 * SECOND).expect("a poll");
        let polled = watcher.poll(&feed, 90 * SECOND).expect("a poll");
        assert_eq!((polled.news.len(), polled.news[0].now), (1, State::Hanging));
        let hang = watcher.job("a").and_then(|job| job.hang).expect("a hang");
        assert_eq!((hang.ranks_behind, hang.behind[0].rank), (1, 1));
        assert_eq!(hang.behind[0].last_timer, "forward-recv");
    }

    #[test]
    fn a_failed_poll_loses_nothing_and_is_told() {
        let (watcher, mut feed) = (watcher(&[]), script(&["a"]));
        watcher.register("a", 0);
        feed.fails = true;
        watcher.poll(&feed, 20 * SECOND).expect_err("down");
        watcher.poll(&feed, 21 * SECOND).expect_err("down");
        let health = watcher.health();
        assert_eq!((health.failures_in_a_row, health.error.is_some()), (2, true));
        feed.fails = false;
        watcher.poll(&feed, 22 * SECOND).expect("a poll");
        assert_eq!((watcher.health().failures_in_a_row, watcher.jobs().len()), (0, 1));
    }

    #[test]
    fn jobs_that_match_register_themselves_until_they_are_taken_out() {
        let (watcher, feed) = (watcher(&["[ab]"]), script(&["a"]));
        watcher.poll(&feed, 200 * SECOND).expect("a poll");
        assert_eq!(watcher.jobs().keys().collect::<Vec<_>>(), ["a", "b"]);
        assert!(watcher.unregister("b") && !watcher.unregister("b"));
        watcher.poll(&feed, 201 * SECOND).expect("a poll");
        assert_eq!(watcher.jobs().keys().collect::<Vec<_>>(), ["a"]);
    }
}
