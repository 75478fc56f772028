//! First value, sudden increase and baseline, in one iteration.

use std::collections::BTreeMap;

use super::ClassicThresholds;
use crate::contract::timers::{BACKWARD_SEND_FORWARD_RECV, FORWARD_SEND_BACKWARD_RECV, PLAIN_TRANSFERS};
use crate::job::{CallTable, Job};

/// How much of a worker's calls its last values are.
const LAST: usize = 1;

/// Which rule made a suspect.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Rule {
    /// The first call of its group over the fastest group's.
    FirstValue,
    /// A call over the one before it.
    SuddenIncrease,
    /// The last calls over the baseline.
    Baseline,
}

impl Rule {
    /// The words in findings.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::FirstValue => "first value",
            Self::SuddenIncrease => "sudden increase",
            Self::Baseline => "baseline",
        }
    }
}

/// A timer of a worker that broke a rule.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Suspicion {
    pub rank: usize,
    pub timer: &'static str,
    pub rule: Rule,
    pub ratio: f64,
}

/// The calls of one iteration.
pub(super) struct Iteration<'a> {
    job: &'a Job,
    step: usize,
    tables: Vec<(&'static str, &'a CallTable)>,
}

impl<'a> Iteration<'a> {
    pub fn new(job: &'a Job, step: usize) -> Self {
        let timers = PLAIN_TRANSFERS
            .into_iter()
            .chain([FORWARD_SEND_BACKWARD_RECV, BACKWARD_SEND_FORWARD_RECV]);
        let table = |name: &'static str| Some((name, job.calls.iter().find(|table| table.name == name)?));
        Self {
            job,
            step,
            tables: timers.filter_map(table).collect(),
        }
    }

    fn ranks(&self) -> std::ops::Range<usize> {
        0..self.job.ranks.len()
    }

    fn pipeline(&self, rank: usize) -> u32 {
        self.job.topology.places[rank].pipeline
    }

    pub fn suspicions(&self, thresholds: &ClassicThresholds) -> Vec<Suspicion> {
        let mut found = Vec::new();
        for &(timer, table) in &self.tables {
            self.first_value(timer, table, thresholds.threshold, &mut found);
            self.sudden_increase(timer, table, thresholds.jump_factor, &mut found);
        }
        self.baseline(thresholds.baseline_factor, &mut found);
        found
    }

    /// The longest first call of each group against the smallest of the groups.
    fn first_value(&self, timer: &'static str, table: &CallTable, threshold: f64, found: &mut Vec<Suspicion>) {
        let mut groups = BTreeMap::<u32, (f64, usize)>::new();
        for rank in self.ranks() {
            let first = table.of(rank, self.step).iter().copied().find(|seconds| *seconds > 0.0);
            let Some(first) = first else { continue };
            let group = groups.entry(self.pipeline(rank)).or_insert((first, rank));
            if first > group.0 {
                *group = (first, rank);
            }
        }
        let least = groups
            .values()
            .map(|(seconds, _)| *seconds)
            .fold(f64::INFINITY, f64::min);
        found.extend(groups.values().filter_map(|&(seconds, rank)| {
            let ratio = seconds / least;
            (ratio > threshold).then_some(Suspicion {
                rank,
                timer,
                rule: Rule::FirstValue,
                ratio,
            })
        }));
    }

    fn sudden_increase(&self, timer: &'static str, table: &CallTable, factor: f64, found: &mut Vec<Suspicion>) {
        for rank in self.ranks() {
            let calls = table.of(rank, self.step);
            let jumps = calls
                .windows(2)
                .filter(|pair| pair[0] > 0.0)
                .map(|pair| pair[1] / pair[0]);
            let ratio = jumps.fold(0.0, f64::max);
            if ratio > factor {
                let rule = Rule::SuddenIncrease;
                found.push(Suspicion {
                    rank,
                    timer,
                    rule,
                    ratio,
                });
            }
        }
    }

    /// The mean of each worker's last values against the baseline of its group.
    fn baseline(&self, factor: f64, found: &mut Vec<Suspicion>) {
        let last_stage = self.job.topology.pipeline_stages().saturating_sub(1);
        let mut baselines = BTreeMap::<u32, f64>::new();
        for &(timer, table) in &self.tables {
            for rank in self.ranks() {
                let stage = self.job.topology.places[rank].stage;
                let fused_end = (timer == FORWARD_SEND_BACKWARD_RECV && stage == 0)
                    || (timer == BACKWARD_SEND_FORWARD_RECV && stage == last_stage);
                let calls = table
                    .of(rank, self.step)
                    .iter()
                    .copied()
                    .filter(|seconds| *seconds > 0.0);
                let least = calls.fold(f64::INFINITY, f64::min);
                let least = if fused_end { least / 2.0 } else { least };
                let baseline = baselines.entry(self.pipeline(rank)).or_insert(f64::INFINITY);
                *baseline = baseline.min(least);
            }
        }
        for &(timer, table) in &self.tables {
            for rank in self.ranks() {
                let calls = table.of(rank, self.step);
                let last = &calls[calls.len().saturating_sub(LAST)..];
                let mean = last.iter().sum::<f64>() / last.len() as f64;
                let ratio = mean / baselines.get(&self.pipeline(rank)).copied().unwrap_or(f64::INFINITY);
                if ratio > factor {
                    let rule = Rule::Baseline;
                    found.push(Suspicion {
                        rank,
                        timer,
                        rule,
                        ratio,
                    });
                }
            }
        }
    }
}
