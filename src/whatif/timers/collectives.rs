//! What stands behind the pipelines in a step: collectives over replicas, the optimizer and the rest.

use super::shape::Workers;
use crate::job::{Job, TimerTable};
use crate::whatif::middle;

/// The timer of a whole step and those of its parts.
const STEP: &str = "interval-time";
const PIPELINES: &str = "forward-backward";
const OPTIMIZER: &str = "optimizer";
const UPDATE: &str = "optimizer-inner-step";
/// Collectives over replicas: in the pipelines' part of the step, and in the optimizer's.
const COLLECTIVES: [&str; 2] = ["all-grads-sync", "params-all-gather"];

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
        let (pipelines, optimizer) = (longest(job, PIPELINES), longest(job, OPTIMIZER));
        // What is left of a step, such as logging, is the same in all of them; a single one may hold a pause.
        let left = (0..steps).map(|step| measured[step] - pipelines[step] - known(optimizer[step]));
        let left = middle(left.filter(|seconds| seconds.is_finite()))
            .unwrap_or_default()
            .max(0.0);
        let update = job.timer(UPDATE);
        Self {
            reduction: Collective::new(job, workers, COLLECTIVES[0]),
            gathering: Collective::new(job, workers, COLLECTIVES[1]),
            update: (0..job.ranks.len())
                .map(|rank| {
                    (0..steps)
                        .map(|step| ran(update, rank, step).unwrap_or(f64::NAN))
                        .collect()
                })
                .collect(),
            rest: optimizer.iter().map(|seconds| known(*seconds) + left).collect(),
            measured,
        }
    }
}

fn known(seconds: f64) -> f64 {
    if seconds.is_nan() { 0.0 } else { seconds }
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
