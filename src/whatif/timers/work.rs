//! What each operation of a job's steps takes.

use rayon::prelude::*;

use super::collectives::{Behind, ran};
use super::schedule::{Schedule, Task};
use super::shape::Workers;
use super::transfers::{Calls, from_calls, from_sums, shortest_usual};
use crate::contract::Timer;
use crate::job::Job;
use crate::whatif::middle;
use crate::whatif::replay::Durations;

/// Timers of the passes and of loading.
const FORWARD: &str = "forward-compute";
const BACKWARD: &str = "backward-compute";
const LOADING: &str = "batch-generator";

/// Per step and worker what its passes come to, `[step][stage * lanes + lane]`, holes filled.
#[derive(Debug, Clone)]
pub struct Sums {
    /// Forward passes, seconds.
    pub forward: Vec<Vec<f64>>,
    /// Backward passes, seconds.
    pub backward: Vec<Vec<f64>>,
    /// Loading of data inside the forward passes, seconds; 0 where none is known.
    pub loading: Vec<Vec<f64>>,
}

/// The work of all steps.
#[derive(Debug)]
pub struct Work<'a> {
    /// The job.
    pub job: &'a Job,
    /// Its workers.
    pub workers: &'a Workers,
    /// Its schedule.
    pub schedule: &'a Schedule,
    /// Places of the replayed steps among the job's iterations, ascending.
    pub picked: &'a [usize],
    /// Sums a worker and step.
    pub sums: Sums,
    /// What stands behind the pipelines.
    pub behind: Behind,
    /// Whether single calls are known.
    pub has_calls: bool,
    /// Passes, `[step][(stage * 2 + direction) * passes + call][lane]`; empty from sums.
    passes: Vec<Vec<f64>>,
    /// Transfers, `[step][transfer][lane]` from calls, `[step][way][lane]` from sums.
    pub transfers: Vec<Vec<f64>>,
    /// Calls or sums that were lost and filled in.
    pub filled: u64,
}

impl<'a> Work<'a> {
    /// Reads a job.
    ///
    /// # Errors
    /// A job without the timers that a replay needs, in words.
    pub fn new(
        job: &'a Job,
        workers: &'a Workers,
        schedule: &'a Schedule,
        picked: &'a [usize],
        behind: &Behind,
        from_calls: bool,
    ) -> Result<Self, String> {
        let mut filled = 0;
        let sums = Sums {
            forward: sums(job, workers, picked, FORWARD, f64::min, &mut filled)?,
            // Without a pipeline a step is its passes in any order: recorders of whole minibatches have one timer.
            backward: if workers.stages == 1 && job.timer(BACKWARD).is_none() {
                vec![vec![0.0; workers.ranks.len()]; picked.len()]
            } else {
                sums(job, workers, picked, BACKWARD, f64::min, &mut filled)?
            },
            loading: sums(job, workers, picked, LOADING, f64::max, &mut 0)
                .unwrap_or_else(|_| vec![vec![0.0; workers.ranks.len()]; picked.len()]),
        };
        let mut work = Self {
            job,
            workers,
            schedule,
            picked,
            sums,
            behind: behind.clone(),
            has_calls: from_calls,
            passes: Vec::new(),
            transfers: Vec::new(),
            filled,
        };
        work.read_transfers();
        if from_calls {
            work.read_passes();
        }
        Ok(work)
    }

    /// Number of steps.
    #[must_use]
    pub fn steps(&self) -> usize {
        self.picked.len()
    }

    fn read_transfers(&mut self) {
        let (job, schedule, workers) = (self.job, self.schedule, self.workers);
        let calls = Calls::new(job);
        let of_step = |step: usize| {
            let step = self.picked[step];
            if self.has_calls {
                from_calls(&calls, schedule, workers, step)
            } else {
                from_sums(job, schedule, workers, step)
            }
        };
        let mut transfers: Vec<Vec<f64>> = (0..self.steps()).into_par_iter().map(of_step).collect();
        let usual = middle(transfers.iter().flatten().copied().filter(|seconds| !seconds.is_nan()));
        for seconds in transfers.iter_mut().flatten().filter(|seconds| seconds.is_nan()) {
            *seconds = usual.unwrap_or_default();
            self.filled += 1;
        }
        self.transfers = transfers;
    }

    /// Takes out of the transfers what is waiting for others than their two ends.
    pub fn cap_transfers(&mut self) {
        let (job, schedule, workers) = (self.job, self.schedule, self.workers);
        let calls = self.has_calls.then(|| Calls::new(job));
        let picked = self.picked;
        self.transfers.par_iter_mut().zip(picked).for_each(|(row, &step)| {
            let caps = shortest_usual(job, calls.as_ref(), schedule, workers, step);
            for lanes in row.chunks_mut(workers.lanes) {
                for (seconds, cap) in lanes.iter_mut().zip(&caps) {
                    *seconds = seconds.min(*cap);
                }
            }
        });
    }

    fn read_passes(&mut self) {
        let (workers, count) = (self.workers, self.schedule.passes);
        let calls = Calls::new(self.job);
        let of_step = |step: usize| {
            let mut lost = 0;
            let mut passes = vec![0.0; 2 * workers.stages * count * workers.lanes];
            for (worker, ranks) in workers.ranks.iter().enumerate() {
                let (stage, lane) = (worker / workers.lanes, worker % workers.lanes);
                let both = [
                    (Timer::ForwardCompute, &self.sums.forward),
                    (Timer::BackwardCompute, &self.sums.backward),
                ];
                for (direction, (timer, sums)) in both.into_iter().enumerate() {
                    let rows: Vec<&[f64]> = ranks
                        .iter()
                        .map(|&rank| calls.of(timer, rank, self.picked[step]))
                        .collect();
                    for call in 0..count {
                        let whole = rows.iter().filter(|row| row.len() == count);
                        // Whoever comes last into a pass shows it without waiting.
                        let mut seconds = whole.map(|row| row[call]).fold(f64::NAN, f64::min);
                        if seconds.is_nan() {
                            seconds = sums[step][worker] / count as f64;
                            lost += 1;
                        }
                        passes[((2 * stage + direction) * count + call) * workers.lanes + lane] = seconds;
                    }
                }
            }
            (passes, lost)
        };
        let (passes, lost): (Vec<Vec<f64>>, Vec<u64>) = (0..self.steps()).into_par_iter().map(of_step).unzip();
        self.passes = passes;
        self.filled += lost.iter().sum::<u64>();
    }

    /// What a pass takes in a step, a number a lane; `None` from sums.
    #[must_use]
    pub fn pass(&self, step: usize, stage: usize, backward: bool, call: usize) -> Option<&[f64]> {
        let lanes = self.workers.lanes;
        let from = ((2 * stage + usize::from(backward)) * self.schedule.passes + call) * lanes;
        self.passes.get(step)?.get(from..from + lanes)
    }

    /// A way's transfers of a lane in a step.
    pub fn way(&self, way: usize, lane: usize, step: usize) -> impl Iterator<Item = f64> {
        let lanes = self.workers.lanes;
        let row = &self.transfers[step];
        let of_sums = (!self.has_calls).then(|| row[way * lanes + lane]);
        let transfers = if self.has_calls {
            self.schedule.transfers.as_slice()
        } else {
            &[]
        };
        let of_calls = transfers
            .iter()
            .enumerate()
            .filter(move |(_, transfer)| transfer.way == way);
        of_sums
            .into_iter()
            .chain(of_calls.map(move |(number, _)| row[number * lanes + lane]))
    }
}

/// What a timer comes to in each step and worker: of its ranks the shortest or longest; holes are filled with what is
/// usual on the stage.
fn sums(
    job: &Job,
    workers: &Workers,
    picked: &[usize],
    name: &str,
    of_ranks: fn(f64, f64) -> f64,
    filled: &mut u64,
) -> Result<Vec<Vec<f64>>, String> {
    let table = job.timer(name);
    if table.is_none() {
        return Err(format!("the job has no timer `{name}`"));
    }
    let mut rows = Vec::with_capacity(picked.len());
    for &step in picked {
        let of = |ranks: &Vec<usize>| {
            ranks
                .iter()
                .filter_map(|&rank| ran(table, rank, step))
                .fold(f64::NAN, of_ranks)
        };
        let mut row: Vec<f64> = workers.ranks.iter().map(of).collect();
        for stage in row.chunks_mut(workers.lanes) {
            let usual = middle(stage.iter().copied().filter(|seconds| !seconds.is_nan()));
            for seconds in stage.iter_mut().filter(|seconds| seconds.is_nan()) {
                *seconds = usual.unwrap_or_default();
                *filled += 1;
            }
        }
        rows.push(row);
    }
    Ok(rows)
}

/// How the work of a step is changed.
#[derive(Debug, Clone)]
pub struct Change {
    /// Factor on all passes of a worker.
    pub compute: Vec<f64>,
    /// Factor on all passes of a microbatch, `[microbatch * lanes + lane]`; empty where none is changed.
    pub load: Vec<f64>,
    /// Seconds taken out of each forward pass in which a worker loads data.
    pub loading: Vec<f64>,
    /// Factor on the transfers of a way and lane.
    pub transfer: Vec<f64>,
    /// Seconds of the reduction of each stage.
    pub reduction: Vec<f64>,
    /// Seconds taken out of what stands behind.
    pub behind: f64,
}

impl Change {
    /// A step as it was measured.
    #[must_use]
    pub fn none(work: &Work<'_>, step: usize) -> Self {
        let workers = work.workers.ranks.len();
        Self {
            compute: vec![1.0; workers],
            load: Vec::new(),
            loading: vec![0.0; workers],
            transfer: vec![1.0; work.schedule.ways * work.workers.lanes],
            reduction: (0..work.workers.stages)
                .map(|stage| work.behind.reduction.of_stage(stage, work.picked[step]))
                .collect(),
            behind: 0.0,
        }
    }
}

/// A step with a change.
#[derive(Debug, Clone, Copy)]
pub struct Step<'a> {
    /// The work.
    pub work: &'a Work<'a>,
    /// Position of the step.
    pub step: usize,
    /// What is changed.
    pub change: &'a Change,
}

impl Step<'_> {
    /// Length of the step, seconds.
    #[must_use]
    pub fn length(&self, ends: &mut Vec<f64>) -> f64 {
        let lanes = self.work.workers.lanes;
        let pipelines = self.work.schedule.program.step(lanes, self, ends);
        pipelines + (self.work.behind.rest[self.work.picked[self.step]] - self.change.behind).max(0.0)
    }
}

impl Durations for Step<'_> {
    fn add(&self, node: usize, times: &mut [f64]) {
        let work = self.work;
        let lanes = work.workers.lanes;
        match work.schedule.tasks[node] {
            Task::Pass {
                stage,
                backward,
                call,
                microbatch,
                loads,
            } => {
                let worker = stage * lanes;
                let factors = &self.change.compute[worker..worker + lanes];
                let count = work.schedule.passes;
                if let Some(row) = work.pass(self.step, stage, backward, call) {
                    let seconds = row.iter().zip(factors).map(|(seconds, factor)| seconds * factor);
                    let loads = self.change.load.get(microbatch * lanes..(microbatch + 1) * lanes);
                    match loads {
                        None => times
                            .iter_mut()
                            .zip(seconds)
                            .for_each(|(time, seconds)| *time += seconds),
                        Some(loads) => {
                            for ((time, seconds), load) in times.iter_mut().zip(seconds).zip(loads) {
                                *time += seconds * load;
                            }
                        }
                    }
                } else {
                    let sums = if backward {
                        &work.sums.backward
                    } else {
                        &work.sums.forward
                    };
                    let row = &sums[self.step][worker..worker + lanes];
                    let share = 1.0 / count as f64;
                    for ((time, seconds), factor) in times.iter_mut().zip(row).zip(factors) {
                        *time += seconds * share * factor;
                    }
                }
                if loads {
                    for (time, seconds) in times.iter_mut().zip(&self.change.loading[worker..worker + lanes]) {
                        *time -= seconds;
                    }
                }
            }
            Task::Transfer(number) => {
                let transfer = work.schedule.transfers[number];
                let place = if work.has_calls { number } else { transfer.way };
                let row = &work.transfers[self.step][place * lanes..(place + 1) * lanes];
                let factors = &self.change.transfer[transfer.way * lanes..(transfer.way + 1) * lanes];
                for ((time, seconds), factor) in times.iter_mut().zip(row).zip(factors) {
                    *time += seconds * factor;
                }
            }
            Task::Nothing => {}
            Task::Reduction(stage) => {
                for time in times {
                    *time += self.change.reduction[stage];
                }
            }
        }
    }
}
