//! What stands behind the pipelines in a step: collectives over replicas, the optimizer and the rest.

use super::shape::Workers;
use crate::contract::timers::{PASSES, TRANSFERS};
use crate::job::{Job, TimerTable};
use crate::whatif::middle;

/// The timer of a whole step and those of its parts.
const STEP: &str = "interval-time";
const PIPELINES: &str = "forward-backward";
const OPTIMIZER: &str = "optimizer";
const UPDATE: &str = "optimizer-inner-step";
const NORM: &str = "optimizer-clip-main-grad";
/// Reduction of gradients, by its names in several versions of Megatron-LM.
pub const REDUCTION: [&str; 3] = ["all-grads-sync", "grads-reduce-scatter", "grads-all-reduce"];
const GATHERING: &str = "params-all-gather";
/// What stands between the reduction and the optimizer.
const SMALL: [&str; 2] = ["embedding-grads-all-reduce", "layernorm-grads-all-reduce"];
/// `forward-backward` holds the reduction where what is left of it without the reduction is no less than this share short.
const HOLDS: f64 = -0.02;

/// Durations of a collective: `[stage * members + member][step]`, the shortest of the group: its last member waits for
/// nobody.
#[derive(Debug, Clone)]
pub struct Collective {
    /// Groups a stage.
    pub members: usize,
    /// Seconds; NaN where no rank tells.
    pub seconds: Vec<Vec<f64>>,
}

impl Collective {
    fn new(job: &Job, workers: &Workers, name: &str) -> Self {
        let members = workers.ranks.iter().map(Vec::len).max().unwrap_or(1);
        let table = job.timer(name);
        let steps = job.iterations.len();
        let seconds = (0..workers.stages * members)
            .map(|group| {
                let (stage, member) = (group / members, group % members);
                let ranks = (0..workers.lanes).filter_map(|lane| workers.ranks[workers.at(stage, lane)].get(member));
                let of = |step: usize| {
                    let known = ranks.clone().filter_map(|&rank| ran(table, rank, step));
                    known.fold(f64::NAN, f64::min)
                };
                (0..steps).map(of).collect()
            })
            .collect();
        Self { members, seconds }
    }

    /// The longest of a stage's groups in a step; 0 where none is known.
    #[must_use]
    pub fn of_stage(&self, stage: usize, step: usize) -> f64 {
        let groups = &self.seconds[stage * self.members..(stage + 1) * self.members];
        groups.iter().map(|group| group[step]).fold(0.0, f64::max)
    }
}

/// What a step takes behind its pipelines.
#[derive(Debug, Clone)]
pub struct Behind {
    /// Reduction of gradients.
    pub reduction: Collective,
    /// Gathering of parameters, a part of the optimizer's time.
    pub gathering: Collective,
    /// The update of each rank's parameters, `[rank][step]`; NaN where it is not known.
    pub update: Vec<Vec<f64>>,
    /// Everything behind the pipelines and the reduction, a number a step.
    pub rest: Vec<f64>,
    /// Measured length of each step; NaN where it is not known.
    pub measured: Vec<f64>,
}

impl Behind {
    /// Reads a job's timers.
    #[must_use]
    pub fn new(job: &Job, workers: &Workers) -> Self {
        let steps = job.iterations.len();
        let measured = longest(job, STEP);
        let reduction = REDUCTION.into_iter().find(|name| job.timer(name).is_some());
        let reduction = Collective::new(job, workers, reduction.unwrap_or(REDUCTION[0]));
        let gathering = Collective::new(job, workers, GATHERING);
        let behind: Vec<f64> = (0..steps)
            .map(|step| optimizing(job, workers, &gathering, step))
            .collect();
        let pipelines = longest(job, PIPELINES);
        let outside = |step: usize| {
            if holds_reduction(job) {
                return 0.0;
            }
            (0..workers.stages)
                .map(|stage| reduction.of_stage(stage, step))
                .fold(0.0, f64::max)
        };
        // What is left of a step, such as logging, is the same in all of them; a single one may hold a pause.
        let left = (0..steps).map(|step| measured[step] - pipelines[step] - outside(step) - behind[step]);
        let left = middle(left.filter(|seconds| seconds.is_finite()))
            .unwrap_or_default()
            .max(0.0);
        let update = job.timer(UPDATE);
        Self {
            reduction,
            gathering,
            update: (0..job.ranks.len())
                .map(|rank| {
                    (0..steps)
                        .map(|step| ran(update, rank, step).unwrap_or(f64::NAN))
                        .collect()
                })
                .collect(),
            rest: behind.into_iter().map(|seconds| seconds + left).collect(),
            measured,
        }
    }
}

/// What the optimizer takes when all ranks have come to it.
///
/// Who comes last waits least: the shortest of what ranks do not do alone, and the longest of their own updates and of
/// the gathering of parameters. Recorders that are not Megatron-LM's own put the norm and the gathering beside the
/// optimizer and not into it.
fn optimizing(job: &Job, workers: &Workers, gathering: &Collective, step: usize) -> f64 {
    let table = |name: &str| job.timer(name);
    let (optimizer, update, norm) = (table(OPTIMIZER), table(UPDATE), table(NORM));
    let gathers = table(GATHERING);
    let ranks = 0..job.ranks.len();
    let seconds = |table, rank| ran(table, rank, step).unwrap_or_default();
    let shortest = |table: Option<&TimerTable>| {
        let known = ranks.clone().filter_map(|rank| ran(table, rank, step));
        known.reduce(f64::min).unwrap_or_default()
    };
    let gathered = (0..workers.stages)
        .map(|stage| gathering.of_stage(stage, step))
        .fold(0.0, f64::max);
    let beside = ranks.clone().any(|rank| {
        seconds(norm, rank) > seconds(optimizer, rank) || seconds(gathers, rank) > seconds(optimizer, rank)
    });
    if beside {
        let longest = ranks.clone().map(|rank| seconds(optimizer, rank)).fold(0.0, f64::max);
        let small: f64 = SMALL.into_iter().map(|name| shortest(table(name))).sum();
        return longest + shortest(norm) + gathered + small;
    }
    let shared = |rank: usize| Some(ran(optimizer, rank, step)? - seconds(gathers, rank) - seconds(update, rank));
    let shared = ranks.clone().filter_map(shared).reduce(f64::min).unwrap_or_default();
    let updated = ranks.map(|rank| seconds(update, rank)).fold(0.0, f64::max);
    if optimizer.is_some() {
        shared.max(0.0) + updated + gathered
    } else {
        0.0
    }
}

/// Whether `forward-backward` holds the reduction of gradients, as Megatron-LM's does, from a few of its values.
fn holds_reduction(job: &Job) -> bool {
    const SAMPLE: usize = 64;
    let pipelines = job.timer(PIPELINES);
    let parts: Vec<Option<&TimerTable>> = TRANSFERS
        .into_iter()
        .chain(PASSES)
        .chain(REDUCTION)
        .map(|name| job.timer(name))
        .collect();
    let every = job.ranks.len().div_ceil(SAMPLE).max(1);
    let middle_step = job.iterations.len() / 2;
    let left = (0..job.ranks.len()).step_by(every).filter_map(|rank| {
        let whole = ran(pipelines, rank, middle_step)?;
        let parts: f64 = parts.iter().filter_map(|table| ran(*table, rank, middle_step)).sum();
        Some((whole - parts) / whole)
    });
    middle(left).is_some_and(|left| left > HOLDS)
}

/// A timer's duration on a rank in a step, where it ran.
pub fn ran(table: Option<&TimerTable>, rank: usize, step: usize) -> Option<f64> {
    table
        .map(|table| table.seconds[(rank, step)])
        .filter(|seconds| *seconds > 0.0)
}

/// The longest of a timer over the ranks, step by step; NaN where it did not run.
fn longest(job: &Job, name: &str) -> Vec<f64> {
    let table = job.timer(name);
    (0..job.iterations.len())
        .map(|step| {
            let ranks = (0..job.ranks.len()).filter_map(|rank| ran(table, rank, step));
            ranks.fold(f64::NAN, f64::max)
        })
        .collect()
}
