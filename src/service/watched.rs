//! One watched job: its baseline, its slow steps, and which state they make.
//!
//! An iteration is looked at once a later one has begun, for then all of its ranks' rows are there. The baseline is the median
//! of the last few normal steps (normal: below 1.1 times it), a step is slow beyond a threshold, and five slow ones in a row ask
//! for an analysis of just these; another five do so again, and each further one where the last analysis named nobody. All of this
//! is a function of steps and a clock that the caller gives.

use std::collections::VecDeque;

use serde::{Deserialize, Serialize};

use super::known::{Detection, Due, Hang, SeenStep, State};
use crate::contract::defaults::{SLOW_STEPS_IN_A_ROW, SLOWDOWN_THRESHOLD};
use crate::source::Micros;
use crate::source::clickhouse::LiveStep;
use crate::stats::median;

/// Times the baseline below which a step is normal.
const NORMAL: f64 = 1.1;
/// Results that a job's history keeps.
const HISTORY: usize = 50;
/// Step times that a job's page shows.
const SHOWN_STEPS: usize = 120;

/// Slow steps in a row that are kept and analysed at most: what was slow for days shows in its last hours too.
const MOST_SLOW_STEPS: usize = 500;

/// What makes a step slow and a job hang.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct WatchSettings {
    /// Share beyond the baseline from which a step is slow.
    pub slowdown_threshold: f64,
    /// Normal steps that the baseline remembers.
    pub history_size: usize,
    /// Time without a new iteration after which a job hangs.
    pub hang: Micros,
    /// Time without a new iteration after which it is over.
    pub finish: Micros,
    /// Iterations at the beginning of a run that are start-up.
    pub warmup: u32,
}

impl Default for WatchSettings {
    fn default() -> Self {
        Self {
            slowdown_threshold: SLOWDOWN_THRESHOLD,
            history_size: 5,
            hang: 60_000_000,
            finish: 3_600_000_000,
            warmup: crate::contract::defaults::WARMUP_ITERATIONS,
        }
    }
}

/// A job that is watched.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Watched {
    /// Job id.
    pub job: String,
    /// When it was registered; rows of before are not its.
    pub registered: Micros,
    /// Its state.
    pub state: State,
    /// Normal steps that make the baseline, seconds.
    pub normal: VecDeque<f64>,
    /// Slow steps in a row up to the last one.
    pub slow: Vec<SeenStep>,
    /// Normal steps in a row since the last slow one, while a detection is shown.
    pub quiet: usize,
    /// Of the slow steps how many were analysed.
    pub analysed: usize,
    /// The last iteration that was looked at.
    pub last: Option<SeenStep>,
    /// When the last new iteration was seen, by this program's clock.
    pub progressed: Micros,
    /// The newest iteration, not looked at yet.
    pub newest: Option<i64>,
    /// First iteration of the run, where the run's beginning was seen.
    pub run_began: Option<i64>,
    /// Iterations looked at.
    pub count: u64,
    /// Sum of their seconds.
    pub total_seconds: f64,
    /// The shortest.
    pub min_seconds: Option<f64>,
    /// The longest.
    pub max_seconds: Option<f64>,
    /// The last slow step.
    pub last_slow: Option<SeenStep>,
    /// The last hang.
    pub hang: Option<Hang>,
    /// The verdict that is shown.
    pub detection: Option<Detection>,
    /// Earlier ones, the newest last.
    pub history: VecDeque<Detection>,
    /// Seconds of the last steps, for the page.
    pub recent: VecDeque<(i64, f64)>,
}

impl Watched {
    /// A job of which nothing was seen.
    #[must_use]
    pub fn new(job: &str, now: Micros) -> Self {
        Self {
            job: job.to_owned(),
            registered: now,
            state: State::Active,
            normal: VecDeque::new(),
            slow: Vec::new(),
            quiet: 0,
            analysed: 0,
            last: None,
            progressed: now,
            newest: None,
            run_began: None,
            count: 0,
            total_seconds: 0.0,
            min_seconds: None,
            max_seconds: None,
            last_slow: None,
            hang: None,
            detection: None,
            history: VecDeque::new(),
            recent: VecDeque::new(),
        }
    }

    /// The usual step, seconds.
    #[must_use]
    pub fn baseline(&self) -> Option<f64> {
        Some(median(self.normal.iter().copied())).filter(|seconds| seconds.is_finite())
    }

    /// Takes the steps of its rows, in whatever order and also such as it knows; gives the analysis that is due.
    pub fn take(&mut self, steps: &[LiveStep], now: Micros, settings: &WatchSettings) -> Option<Due> {
        let mut fresh: Vec<&LiveStep> = steps.iter().filter(|step| self.is_new(step)).collect();
        // A run after the other, in the order in which they began.
        let began = |run: &str| {
            steps
                .iter()
                .filter(|step| step.run_id == run)
                .map(|step| step.first_time)
                .min()
        };
        fresh.sort_by_key(|step| (began(&step.run_id), step.run_id.clone(), step.iteration_number));
        let newest = fresh.last().map(|step| (step.run_id.clone(), step.iteration_number));
        if newest.as_ref().map(|(_, iteration)| *iteration) != self.newest && newest.is_some() {
            self.progressed = now;
            self.newest = newest.as_ref().map(|(_, iteration)| *iteration);
            if matches!(self.state, State::Hanging | State::Finished) {
                self.state = State::Active;
            }
        }
        let mut due: Option<Due> = None;
        let mut window_is_over = false;
        for step in fresh {
            // Of the newest iteration some ranks' rows may still be on their way.
            if newest == Some((step.run_id.clone(), step.iteration_number)) {
                continue;
            }
            if let Some(new) = self.look_at(step, now, settings) {
                due = Some(new);
                window_is_over = false;
            }
            window_is_over |= self.quiet >= SLOW_STEPS_IN_A_ROW;
            if let Some(due) = due.as_mut().filter(|_| !window_is_over) {
                self.extend(due, step);
            }
        }
        due
    }

    /// Looks at the clock: a job without new iterations hangs, then is over. Gives whether it has just begun to hang.
    pub fn look_at_clock(&mut self, now: Micros, settings: &WatchSettings) -> bool {
        let still = now - self.progressed;
        let seen = self.newest.is_some();
        if still >= settings.finish {
            self.state = State::Finished;
        } else if seen
            && still >= settings.hang
            && !matches!(self.state, State::Hanging | State::Finished | State::Predicting)
        {
            self.state = State::Hanging;
            self.hang = Some(Hang {
                since: self.progressed,
                noticed: now,
                last_iteration: self.newest,
                behind: Vec::new(),
                ranks_behind: 0,
            });
            return true;
        }
        false
    }

    /// Takes what an analysis gave.
    pub fn detected(&mut self, detection: Detection) {
        if self.state == State::Predicting {
            self.state = State::Detected;
        }
        self.history.push_back(detection.clone());
        while self.history.len() > HISTORY {
            self.history.pop_front();
        }
        self.detection = Some(detection);
    }

    /// From when on its rows are asked for: those of the last iteration that was looked at came a little before and after it.
    #[must_use]
    pub fn since(&self, margin: Micros) -> Micros {
        let last = self.last.as_ref().map_or(self.registered, |last| last.time - margin);
        last.max(self.registered)
    }

    fn is_new(&self, step: &LiveStep) -> bool {
        match &self.last {
            None => true,
            Some(last) if last.run == step.run_id => step.iteration_number > last.iteration,
            // Of another run only what came later: an earlier one's rows are still within the margin.
            Some(last) => step.first_time > last.time,
        }
    }

    fn look_at(&mut self, step: &LiveStep, now: Micros, settings: &WatchSettings) -> Option<Due> {
        let seen = SeenStep {
            run: step.run_id.clone(),
            iteration: step.iteration_number,
            seconds: step.seconds,
            time: step.last_time,
        };
        let restarted = self.last.as_ref().is_some_and(|last| last.run != seen.run);
        if restarted || (self.last.is_none() && seen.iteration <= 1) {
            self.run_began = Some(seen.iteration);
            self.forget_slowness();
        }
        let starting_up = self
            .run_began
            .is_some_and(|began| seen.iteration < began.saturating_add(i64::from(settings.warmup)));
        self.last = Some(seen.clone());
        if starting_up {
            return None;
        }
        self.count += 1;
        self.total_seconds += seen.seconds;
        self.min_seconds = Some(self.min_seconds.map_or(seen.seconds, |least| least.min(seen.seconds)));
        self.max_seconds = Some(self.max_seconds.map_or(seen.seconds, |most| most.max(seen.seconds)));
        self.recent.push_back((seen.iteration, seen.seconds));
        while self.recent.len() > SHOWN_STEPS {
            self.recent.pop_front();
        }
        let baseline = self.baseline().unwrap_or(seen.seconds);
        // Few steps tell no baseline yet: what comes first is taken for usual.
        let known = self.normal.len() >= settings.history_size;
        if known && seen.seconds > baseline * (1.0 + settings.slowdown_threshold) {
            return self.slow_step(seen, now);
        }
        if !known || seen.seconds < baseline * NORMAL.min(1.0 + settings.slowdown_threshold) {
            self.normal.push_back(seen.seconds);
            while self.normal.len() > settings.history_size {
                self.normal.pop_front();
            }
        }
        self.quiet += 1;
        match self.state {
            State::Slowdown => self.forget_slowness(),
            // A few usual steps do not end a slow window; as many as open one do.
            State::Detected | State::Predicting if self.quiet < SLOW_STEPS_IN_A_ROW => {}
            State::Detected => self.forget_slowness(),
            _ => {}
        }
        None
    }

    /// Takes a slow step that is known already into the analysis of its window.
    fn extend(&mut self, due: &mut Due, step: &LiveStep) {
        let (Some(first), Some(last)) = (self.slow.first(), self.slow.last()) else {
            return;
        };
        if first.iteration == due.iterations.0 && last.iteration == step.iteration_number && last.run == step.run_id {
            due.iterations.1 = last.iteration;
            self.analysed = self.slow.len();
        }
    }

    fn slow_step(&mut self, step: SeenStep, now: Micros) -> Option<Due> {
        self.quiet = 0;
        self.last_slow = Some(step.clone());
        self.slow.push(step);
        if self.slow.len() > MOST_SLOW_STEPS {
            self.slow.remove(0);
            self.analysed = self.analysed.saturating_sub(1);
        }
        if self.state == State::Active {
            self.state = State::Slowdown;
        }
        if self.state == State::Predicting || self.slow.len() < SLOW_STEPS_IN_A_ROW {
            return None;
        }
        let further = self.slow.len() - self.analysed;
        let named_nobody = self.analysed > 0 && self.detection.as_ref().is_some_and(Detection::is_empty);
        if further < SLOW_STEPS_IN_A_ROW && !(named_nobody && further > 0) {
            return None;
        }
        self.analysed = self.slow.len();
        self.state = State::Predicting;
        Some(Due {
            job: self.job.clone(),
            iterations: (self.slow.first()?.iteration, self.slow.last()?.iteration),
            registered: self.registered,
            asked: now,
        })
    }

    /// Back to usual; the verdict stays in the history.
    fn forget_slowness(&mut self) {
        self.slow.clear();
        self.analysed = 0;
        if !matches!(self.state, State::Predicting) {
            self.state = State::Active;
            self.detection = None;
        }
    }
}

#[cfg(test)]
#[path = "watched_tests.rs"]
mod tests;
