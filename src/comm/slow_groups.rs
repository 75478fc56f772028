//! Which groups' collectives are slow, lastingly.
//!
//! A group is held against
//! 1. the *others like it* of its stage, where they are many: they move the same bytes;
//! 2. where they are few, *all others*: the slowest of them, with what the stage's own work asks for taken out. The first
//!    and the last stage hold embeddings besides their layers, but both do, and more layers show in the computing;
//! 3. *itself before*: a change in time needs no peers. All groups that change together are one thing.

use super::collectives::Collectives;
use super::flows::{Comparison, SlowFlow, logs};
use super::thresholds::{
    BETTER_QUANTILE, CHANGE_DEVIATIONS, LEAST_FACTOR_OF_ALL, LEAST_FACTOR_OF_FEW, LEAST_SIDE, LEVEL_QUANTILE,
    OWN_SHARE, STEADY, WORK_SHARE, recent_steps,
};
use crate::contract::timers::PASSES;
use crate::job::Job;
use crate::stats::{MAD_TO_SD, mean, median, quantile, sorted};
use crate::verdict::{Persistence, SlowSteps};

/// What a slow group was held against.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Against {
    /// The other groups of its stage.
    Stage,
    /// All other groups.
    Others,
    /// Itself before.
    Before,
}

/// A group whose collective is slow.
#[derive(Debug, Clone)]
pub(super) struct SlowGroup {
    /// Place of the group; `None` where all groups are slow.
    pub group: Option<usize>,
    pub against: Against,
    pub slow: SlowFlow,
}

/// How many groups can be held against others.
pub(super) fn compared(collectives: &Collectives) -> usize {
    let known = known_groups(collectives);
    if known.len() < 2 { 0 } else { known.len() }
}

/// The slow groups of one collective.
pub(super) fn slow_groups(job: &Job, collectives: &Collectives, persistence: &Persistence) -> Vec<SlowGroup> {
    let rows: Vec<Vec<f64>> = collectives.seconds.iter().map(|seconds| logs(seconds)).collect();
    let known = known_groups(collectives);
    let work = |group: usize| collectives.stages[group].map_or(f64::NAN, |stage| usual_work(job, stage));
    let work: Vec<f64> = (0..rows.len()).map(work).collect();
    let mut found = Vec::new();
    for alike in by_stage(collectives, &known) {
        let alike_rows: Vec<&[f64]> = alike.iter().map(|&group| rows[group].as_slice()).collect();
        let comparison = Comparison::new(&alike_rows);
        for (place, &group) in alike.iter().enumerate() {
            let told = match &comparison {
                Some(comparison) => comparison.slow(place, persistence).map(|slow| (Against::Stage, slow)),
                None => {
                    let others = Others::of(&rows, &work, &known, group);
                    let beside = others.are_exceeded(&rows[group], persistence);
                    let beside = beside.map(|slow| (Against::Others, slow));
                    beside.or_else(|| {
                        let least = LEAST_FACTOR_OF_FEW.get();
                        let slow = than_before(&rows[group], &others.usual, least, persistence)?;
                        Some((Against::Before, slow))
                    })
                }
            };
            found.extend(told.map(|(against, slow)| SlowGroup {
                group: Some(group),
                against,
                slow,
            }));
        }
    }
    found.extend(all_together(&rows, &known, persistence));
    found
}

/// Groups of several ranks with durations.
fn known_groups(collectives: &Collectives) -> Vec<usize> {
    let is_known = |group: &usize| {
        collectives.members[*group].len() > 1 && collectives.seconds[*group].iter().any(|seconds| seconds.is_finite())
    };
    (0..collectives.members.len()).filter(is_known).collect()
}

fn by_stage(collectives: &Collectives, known: &[usize]) -> Vec<Vec<usize>> {
    let mut stages: Vec<Option<u32>> = known.iter().map(|&group| collectives.stages[group]).collect();
    stages.sort_unstable();
    stages.dedup();
    let of = |stage: Option<u32>| {
        let groups = known.iter().copied();
        groups.filter(|&group| collectives.stages[group] == stage).collect()
    };
    stages.into_iter().map(of).collect()
}

/// A stage's usual computing in a step, log.
fn usual_work(job: &Job, stage: u32) -> f64 {
    let tables: Vec<_> = PASSES.iter().filter_map(|name| job.timer(name)).collect();
    let ranks = (0..job.ranks.len()).filter(|&rank| job.topology.places[rank].stage == stage);
    let of_rank = |rank: usize| -> f64 {
        let sums = tables.iter().map(|table| mean(table.seconds.row(rank).iter().copied()));
        sums.filter(|seconds| seconds.is_finite()).sum()
    };
    let work = median(ranks.map(of_rank));
    if work > 0.0 { work.ln() } else { f64::NAN }
}

/// What the groups beside one take in each step, log; NaN without any.
struct Others {
    /// The slowest.
    slowest: Vec<f64>,
    /// The slowest, with what the group's stage asks for beyond theirs.
    expected: Vec<f64>,
    /// The median.
    usual: Vec<f64>,
}

impl Others {
    fn of(rows: &[Vec<f64>], work: &[f64], known: &[usize], group: usize) -> Self {
        let asked_for = |other: usize| {
            let more = WORK_SHARE.get() * (work[group] - work[other]);
            if more > 0.0 { more } else { 0.0 }
        };
        let others = || known.iter().copied().filter(|&other| other != group);
        let steps = 0..rows[group].len();
        let slowest = |step: usize, asked: bool| {
            let asked_for = |other: usize| if asked { asked_for(other) } else { 0.0 };
            let expected = others().map(|other| rows[other][step] + asked_for(other));
            expected.fold(f64::NAN, f64::max)
        };
        Self {
            slowest: steps.clone().map(|step| slowest(step, false)).collect(),
            expected: steps.clone().map(|step| slowest(step, true)).collect(),
            usual: steps
                .map(|step| median(others().map(|other| rows[other][step])))
                .collect(),
        }
    }

    /// What is known of a row that exceeds the slowest of them, lastingly.
    fn are_exceeded(&self, row: &[f64], persistence: &Persistence) -> Option<SlowFlow> {
        let over = |usual: &[f64]| -> Vec<f64> { row.iter().zip(usual).map(|(log, usual)| log - usual).collect() };
        let more = over(&self.expected);
        let level = high_levels(&more)
            .into_iter()
            .find(|&level| level > LEAST_FACTOR_OF_FEW.get().ln())?;
        let steps = SlowSteps::of(&more, 0.0, level, persistence);
        finished(
            &over(&self.slowest),
            0.0,
            &self.slowest,
            steps,
            LEAST_FACTOR_OF_FEW.get(),
        )
    }
}

/// Against its own better level, over what is usual in each step.
fn than_before(row: &[f64], usual: &[f64], least: f64, persistence: &Persistence) -> Option<SlowFlow> {
    let own = row;
    let row: Vec<f64> = own.iter().zip(usual).map(|(log, usual)| log - usual).collect();
    let sorted_row = sorted(row.iter().copied());
    let better = quantile(&sorted_row, BETTER_QUANTILE.get());
    let noise = {
        let known: Vec<f64> = row.iter().copied().filter(|log| log.is_finite()).collect();
        // Neighbours differ by the square root of 2 times what each varies by.
        let differences = known.windows(2).map(|pair| (pair[1] - pair[0]).abs());
        MAD_TO_SD * median(differences) / 2f64.sqrt()
    };
    let least_excess = least.ln().max(CHANGE_DEVIATIONS.get() * noise);
    let level = high_levels(&row)
        .into_iter()
        .find(|&level| level - better > least_excess)?;
    let steps = SlowSteps::of(&row, better, level - better, persistence);
    let (first, last) = steps.ends()?;
    let steady = steps.count() as f64 >= STEADY.get() * (last + 1 - first) as f64;
    let known = row.iter().filter(|log| log.is_finite()).count();
    // A level that differs all the time has no before.
    if !steady || known.saturating_sub(steps.count()) < LEAST_SIDE.get() {
        return None;
    }
    // Where others change, it only seems to.
    let level_of_own = |slow: bool| {
        let steps = own.iter().zip(&steps.slow).filter(|(_, is_slow)| **is_slow == slow);
        median(steps.map(|(log, _)| *log))
    };
    let changed = level_of_own(true) - level_of_own(false) > OWN_SHARE.get() * least.ln();
    if !changed {
        return None;
    }
    finished(&row, better, usual, steps, least)
}

/// The upper quartile over the window, and the median of its end.
fn high_levels(row: &[f64]) -> [f64; 2] {
    let recent = recent_steps(row.len());
    let end = row[row.len().saturating_sub(recent)..].iter().copied();
    [
        quantile(&sorted(row.iter().copied()), LEVEL_QUANTILE.get()),
        median(end),
    ]
}

fn finished(row: &[f64], base: f64, usual: &[f64], steps: SlowSteps, least: f64) -> Option<SlowFlow> {
    let factor = median(steps.slow_places().map(|step| row[step] - base)).exp();
    let seconds = |log: f64, step: usize| (log + usual[step]).exp();
    let extra = median(
        steps
            .slow_places()
            .map(|step| seconds(row[step], step) - seconds(base, step)),
    );
    let possible = factor.is_finite() && extra.is_finite();
    (steps.lasting && possible && factor > least).then_some(SlowFlow { factor, extra, steps })
}

/// All groups against themselves before.
fn all_together(rows: &[Vec<f64>], known: &[usize], persistence: &Persistence) -> Option<SlowGroup> {
    let steps = rows.first()?.len();
    let usual = |step: usize| median(known.iter().map(|&group| rows[group][step]));
    let row: Vec<f64> = (0..steps).map(usual).collect();
    let slow = than_before(&row, &vec![0.0; steps], LEAST_FACTOR_OF_ALL.get(), persistence)?;
    Some(SlowGroup {
        group: None,
        against: Against::Before,
        slow,
    })
}
