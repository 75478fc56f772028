//! What the faults of a job cost: the steps replayed as measured and with each of them mended.

use rayon::prelude::*;
use schemars::JsonSchema;
use serde::Serialize;

use super::collectives::Behind;
use super::mend::{Delta, Fault, Mender, Target};
use super::schedule::{Recorded, Schedule, Task};
use super::shape::{Asked, Shape, Workers, shapes};
use super::work::{Change, Step, Work};
use crate::contract::timers::{PLAIN_TRANSFERS, TRANSFERS, is_transfer};
use crate::job::Job;
use crate::whatif::middle;
use crate::whatif::replay::Durations;

/// A replay that is further off than this gives no number.
const LARGEST_ERROR: f64 = 0.05;
/// Operations times lanes that are played at most, over all steps and scenarios; beyond, some of the steps are played.
const MOST_PLAYED: usize = 400_000_000;
/// Steps that are played however large the job is.
const LEAST_STEPS: usize = 20;
/// Steps on which shapes are compared.
const TRIED_STEPS: usize = 6;
/// Findings up to which their shares are the mean over all orders of mending.
const MOST_ORDERS: usize = 6;
/// Transfers are taken as short as they can be where the replay is off by no more than this beside longer ones.
const WAITING_COMES_BACK: f64 = 0.01;
/// A step is a pause of the whole job where it is this much longer than its replay...
const PAUSE: f64 = 0.25;
/// ... and the steps of that kind are at most this share.
const MOST_PAUSES: f64 = 0.1;

/// What the durations were read from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Basis {
    /// Single calls: the job's own schedule, call by call.
    Calls,
    /// Sums of an iteration: the microbatches of a step are taken as alike.
    Sums,
}

/// What one fault costs.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, JsonSchema)]
pub struct FaultCost {
    /// Growth of the steps over the steps with it alone mended: 0.35 is 35 % longer.
    pub growth: f64,
    /// Seconds of the window that mending it alone saves.
    pub seconds: f64,
    /// The same times the ranks of the job, hours.
    pub gpu_hours: f64,
    /// Its part of what mending all findings saves, seconds: the mean over all orders of mending up to six findings,
    /// beyond the mean of mending it first and last. The parts of all findings add up up to six.
    pub part_seconds: f64,
}

/// The answer for a job.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct WhatIf {
    /// What the durations were read from.
    pub basis: Basis,
    /// Why there are no numbers; null where there are.
    pub reason: Option<String>,
    /// Mean difference of the replayed steps from the measured ones, of the measured; null where steps were not measured.
    pub replay_error: Option<f64>,
    /// Mean measured step, seconds.
    pub step_seconds: Option<f64>,
    /// Microbatches a step.
    pub microbatches: usize,
    /// Model chunks a stage.
    pub chunks: usize,
    /// Steps that were replayed, of all of the window.
    pub replayed_steps: usize,
    /// Steps that were left out of the comparison as pauses of the whole job.
    pub pauses: usize,
    /// Pipelines without ranks on some stage, which were left out.
    pub pipelines_left_out: usize,
    /// Durations that were lost and filled in with usual ones.
    pub filled: u64,
    /// Growth of the steps over those with all faults mended: 0.35 is 35 % longer. This and what follows is null where
    /// there are no numbers.
    pub faults_share: Option<f64>,
    /// Seconds of the window that mending all faults saves.
    pub seconds: Option<f64>,
    /// The same times the ranks of the job, hours.
    pub gpu_hours: Option<f64>,
    /// Mean step with all faults mended, seconds.
    pub mended_step_seconds: Option<f64>,
    /// Growth of the steps, with the faults mended, over those with stages of the same work besides.
    pub stages_share: Option<f64>,
    /// The same over those with the same load for all in every step besides.
    pub data_share: Option<f64>,
    /// What is left over ideal steps: noise, single slow calls.
    pub unexplained_share: Option<f64>,
    /// Each fault, in the order of the question; empty where there are no numbers.
    #[serde(skip)]
    pub faults: Vec<FaultCost>,
}

impl WhatIf {
    fn unknown(basis: Basis) -> Self {
        Self {
            basis,
            reason: None,
            replay_error: None,
            step_seconds: None,
            microbatches: 0,
            chunks: 0,
            replayed_steps: 0,
            pauses: 0,
            pipelines_left_out: 0,
            filled: 0,
            faults_share: None,
            seconds: None,
            gpu_hours: None,
            mended_step_seconds: None,
            stages_share: None,
            data_share: None,
            unexplained_share: None,
            faults: Vec::new(),
        }
    }

    fn refused(basis: Basis, reason: String) -> Self {
        Self {
            reason: Some(reason),
            ..Self::unknown(basis)
        }
    }
}

/// What the faults of a job cost. A job that can't be replayed gets the reason in place of numbers.
#[must_use]
pub fn what_if(job: &Job, faults: &[Fault], asked: Asked) -> WhatIf {
    let traced = job.reduced.is_none() && job.calls.iter().any(|table| is_transfer(&table.name));
    let by = |traced: bool| Question {
        job,
        faults,
        asked,
        traced,
    };
    let basis = if traced { Basis::Calls } else { Basis::Sums };
    let answer = by(traced)
        .answer()
        .unwrap_or_else(|reason| WhatIf::refused(basis, reason));
    if traced && answer.reason.is_some() {
        // Calls of which too many are lost may leave sums that do.
        let from_sums = by(false).answer();
        return from_sums.ok().filter(|sums| sums.reason.is_none()).unwrap_or(answer);
    }
    answer
}

struct Question<'a> {
    job: &'a Job,
    faults: &'a [Fault],
    asked: Asked,
    traced: bool,
}

impl Question<'_> {
    fn answer(&self) -> Result<WhatIf, String> {
        let job = self.job;
        let workers = Workers::new(job)?;
        let behind = Behind::new(job, &workers);
        if behind.measured.iter().all(|seconds| seconds.is_nan()) {
            return Err("the job has no timer `interval-time` to hold the replay against".to_owned());
        }
        let all: Vec<usize> = (0..job.iterations.len()).collect();
        let (shape, schedule) = self.shape(&workers, &behind)?;
        let players = 3 + self.faults.len() + (1 << self.faults.len().min(MOST_ORDERS));
        let most = MOST_PLAYED / (schedule.program.nodes() * workers.lanes * players).max(1);
        let picked = spread(&all, most.max(LEAST_STEPS));
        let mut work = Work::new(job, &workers, &schedule, &picked, &behind, self.traced)?;
        let mut replayed = lengths(&work, &vec![Vec::new(); picked.len()]);
        let (mut error, mut pauses) = difference(&work, &replayed);
        if schedule.is_interleaved() {
            let as_read = work.transfers.clone();
            work.cap_transfers();
            let capped = lengths(&work, &vec![Vec::new(); picked.len()]);
            let (error_capped, pauses_capped) = difference(&work, &capped);
            // Waiting comes back in the replay where it was waiting; what does not come back was transfer.
            if error_capped <= error + WAITING_COMES_BACK {
                (replayed, error, pauses) = (capped, error_capped, pauses_capped);
            } else {
                work.transfers = as_read;
            }
        }
        let step_seconds = mean(behind.measured.iter().copied().filter(|seconds| seconds.is_finite()));
        let mut answer = WhatIf {
            replay_error: Some(error),
            step_seconds: Some(step_seconds),
            microbatches: shape.microbatches,
            chunks: shape.chunks,
            replayed_steps: picked.len(),
            pauses,
            pipelines_left_out: workers.left_out,
            filled: work.filled,
            ..WhatIf::unknown(if self.traced { Basis::Calls } else { Basis::Sums })
        };
        if error > LARGEST_ERROR {
            answer.reason = Some(format!(
                "the replay of the steps is off by {:.1} % on average, more than {:.0} %: the schedule is another one, or \
                 the timers leave out what takes time",
                100.0 * error,
                100.0 * LARGEST_ERROR
            ));
            return Ok(answer);
        }
        let scale = steps_of(job, &picked);
        Scenarios::new(&work, self.faults, scale).fill(&replayed, &mut answer);
        Ok(answer)
    }

    /// The shape that replays a few steps best.
    fn shape(&self, workers: &Workers, behind: &Behind) -> Result<(Shape, Schedule), String> {
        let known: Vec<usize> = (0..self.job.iterations.len())
            .filter(|&step| behind.measured[step].is_finite())
            .collect();
        let tried = spread(&known, TRIED_STEPS);
        let mut best: Option<(f64, Shape, Schedule)> = None;
        let shapes = shapes(self.job, workers, self.asked)?;
        let only = shapes.len() == 1;
        let fires =
            |name: &str| self.job.timer(name).is_some() || self.job.calls.iter().any(|table| table.name == name);
        let fused = TRANSFERS
            .into_iter()
            .any(|name| !PLAIN_TRANSFERS.contains(&name) && fires(name));
        let recorded = if fused { Recorded::Calls } else { Recorded::Transfers };
        for shape in shapes {
            let Ok(schedule) = Schedule::new(shape, recorded) else {
                continue;
            };
            if only {
                return Ok((shape, schedule));
            }
            let mut work = Work::new(self.job, workers, &schedule, &tried, behind, self.traced)?;
            if schedule.is_interleaved() {
                // With the waiting in its transfers every shape takes about as long.
                work.cap_transfers();
            }
            let replayed = lengths(&work, &vec![Vec::new(); tried.len()]);
            // A stage that lost calls of a shape is no sign of it: lost ones are filled in.
            let error = difference(&work, &replayed).0 + work.filled as f64 * f64::EPSILON;
            if best.as_ref().is_none_or(|(least, ..)| error < *least) {
                best = Some((error, shape, schedule));
            }
        }
        let (_, shape, schedule) = best.ok_or("no schedule fits the job's stages")?;
        Ok((shape, schedule))
    }
}

/// At most so many of some places, evenly spread.
fn spread(places: &[usize], most: usize) -> Vec<usize> {
    let count = places.len().min(most.max(1));
    (0..count).map(|number| places[number * places.len() / count]).collect()
}

/// Steps of the window that each replayed one stands for.
fn steps_of(job: &Job, picked: &[usize]) -> f64 {
    let all = job
        .reduced
        .as_ref()
        .map_or(job.iterations.len(), |reduced| reduced.counts.iter().sum());
    all as f64 / picked.len().max(1) as f64
}

fn mean(values: impl Iterator<Item = f64>) -> f64 {
    let (sum, count) = values.fold((0.0, 0), |(sum, count), value| (sum + value, count + 1));
    if count > 0 { sum / f64::from(count) } else { 0.0 }
}

/// Length of each step with what is mended in it.
fn lengths(work: &Work<'_>, mended: &[Vec<&Delta>]) -> Vec<f64> {
    mended
        .par_iter()
        .enumerate()
        .map_init(Vec::new, |ends, (step, deltas)| {
            let change = Change::of(work, step, deltas.iter().copied());
            Step {
                work,
                step,
                change: &change,
            }
            .length(ends)
        })
        .collect()
}

/// Mean difference from the measured steps, pauses left out, and how many those are.
fn difference(work: &Work<'_>, replayed: &[f64]) -> (f64, usize) {
    let measured = |step: usize| work.behind.measured[work.picked[step]];
    let known: Vec<usize> = (0..replayed.len()).filter(|&step| measured(step) > 0.0).collect();
    let longer = |step: usize| measured(step) / replayed[step] - 1.0;
    let usual = middle(known.iter().map(|&step| longer(step))).unwrap_or_default();
    let (pauses, others): (Vec<usize>, Vec<usize>) = known.iter().partition(|&&step| longer(step) - usual > PAUSE);
    let few = pauses.len() as f64 <= MOST_PAUSES * known.len() as f64;
    let counted = if few { &others } else { &known };
    let error = mean(
        counted
            .iter()
            .map(|&step| (replayed[step] - measured(step)).abs() / measured(step)),
    );
    (error, if few { pauses.len() } else { 0 })
}

struct Scenarios<'a> {
    work: &'a Work<'a>,
    faults: &'a [Fault],
    deltas: Vec<Vec<Delta>>,
    stages: Vec<Delta>,
    data: Vec<Delta>,
    /// Steps of the window that a replayed one stands for.
    scale: f64,
}

impl<'a> Scenarios<'a> {
    fn new(work: &'a Work<'a>, faults: &'a [Fault], scale: f64) -> Self {
        let mender = Mender::new(work, faults);
        Self {
            work,
            faults,
            deltas: faults.iter().map(|fault| mender.deltas(fault)).collect(),
            stages: mender.deltas(&Fault::lasting(Target::Stages(Vec::new()))),
            data: mender.deltas(&Fault::lasting(Target::Data)),
            scale,
        }
    }

    /// Seconds of all replayed steps with some faults mended, and more besides.
    fn total(&self, mends: impl Fn(usize) -> bool, besides: &[&Vec<Delta>]) -> f64 {
        let steps: Vec<Vec<&Delta>> = (0..self.work.steps())
            .map(|step| {
                let faults = self.deltas.iter().enumerate().filter(|(fault, _)| mends(*fault));
                let faults = faults.map(|(_, deltas)| &deltas[step]);
                faults.chain(besides.iter().map(|deltas| &deltas[step])).collect()
            })
            .collect();
        lengths(self.work, &steps).iter().sum()
    }

    fn fill(&self, replayed: &[f64], answer: &mut WhatIf) {
        let measured: f64 = replayed.iter().sum();
        let hours = |seconds: f64| seconds * self.work.job.ranks.len() as f64 / 3600.0;
        let growth = |one: f64, other: f64| if other > 0.0 { one / other - 1.0 } else { 0.0 };
        let is_fault = |fault: usize| !self.faults[fault].target.is_imbalance();
        let mended = self.total(is_fault, &[]);
        let even_stages = self.total(is_fault, &[&self.stages]);
        let even_data = self.total(is_fault, &[&self.stages, &self.data]);
        let ideal = Ideal::new(self.work, &self.faults_of_steps(is_fault)).length() * replayed.len() as f64;
        let seconds = (measured - mended) * self.scale;
        answer.faults_share = Some(growth(measured, mended));
        answer.seconds = Some(seconds);
        answer.gpu_hours = Some(hours(seconds));
        answer.mended_step_seconds = Some(mended / replayed.len().max(1) as f64);
        answer.stages_share = Some(growth(mended, even_stages));
        answer.data_share = Some(growth(even_stages, even_data));
        answer.unexplained_share = Some(growth(even_data, ideal));
        let (alone, parts) = self.parts(measured);
        answer.faults = alone
            .into_iter()
            .zip(parts)
            .map(|(alone, part)| FaultCost {
                growth: growth(measured, alone),
                seconds: (measured - alone) * self.scale,
                gpu_hours: hours((measured - alone) * self.scale),
                part_seconds: part * self.scale,
            })
            .collect();
    }

    fn faults_of_steps(&self, mends: impl Fn(usize) -> bool) -> Vec<Vec<&Delta>> {
        (0..self.work.steps())
            .map(|step| {
                let faults = self.deltas.iter().enumerate().filter(|(fault, _)| mends(*fault));
                let faults = faults.map(|(_, deltas)| &deltas[step]);
                faults.chain([&self.stages[step], &self.data[step]]).collect()
            })
            .collect()
    }

    /// Seconds with each fault alone mended, and the part of each in what mending all saves.
    fn parts(&self, measured: f64) -> (Vec<f64>, Vec<f64>) {
        let count = self.faults.len();
        if count > MOST_ORDERS {
            let alone: Vec<f64> = (0..count)
                .map(|fault| self.total(|other| other == fault, &[]))
                .collect();
            let all = self.total(|_| true, &[]);
            let part = |fault: usize| {
                let last = self.total(|other| other != fault, &[]) - all;
                f64::midpoint(measured - alone[fault], last)
            };
            let parts = (0..count).map(part).collect();
            return (alone, parts);
        }
        let totals: Vec<f64> = (0..1_usize << count)
            .map(|set| {
                if set == 0 {
                    measured
                } else {
                    self.total(|fault| set >> fault & 1 == 1, &[])
                }
            })
            .collect();
        let factorial = |number: usize| (1..=number).map(|factor| factor as f64).product::<f64>();
        let part = |fault: usize| {
            (0..totals.len())
                .filter(|set| set >> fault & 1 == 0)
                .map(|set| {
                    let before = set.count_ones() as usize;
                    let orders = factorial(before) * factorial(count - before - 1) / factorial(count);
                    orders * (totals[set] - totals[set | 1 << fault])
                })
                .sum()
        };
        (
            (0..count).map(|fault| totals[1 << fault]).collect(),
            (0..count).map(part).collect(),
        )
    }
}

/// A step in which every operation takes what is usual on its stage.
struct Ideal<'a> {
    work: &'a Work<'a>,
    /// Forward and backward passes of each stage.
    passes: Vec<[f64; 2]>,
    transfers: Vec<f64>,
    reductions: Vec<f64>,
    rest: f64,
}

impl<'a> Ideal<'a> {
    fn new(work: &'a Work<'a>, mended: &[Vec<&Delta>]) -> Self {
        let lanes = work.workers.lanes;
        let changes: Vec<Change> = mended
            .iter()
            .enumerate()
            .map(|(step, deltas)| Change::of(work, step, deltas.iter().copied()))
            .collect();
        let cells = || (0..changes.len()).flat_map(move |step| (0..lanes).map(move |lane| (step, lane)));
        let count = work.schedule.passes as f64;
        let loading = work.schedule.loading_passes as f64;
        let passes = (0..work.workers.stages)
            .map(|stage| {
                let of = |sums: &[Vec<f64>], loads: f64| {
                    mean(cells().map(|(step, lane)| {
                        let worker = work.workers.at(stage, lane);
                        let change = &changes[step];
                        sums[step][worker] * change.compute[worker] - loads * change.loading[worker]
                    })) / count
                };
                [of(&work.sums.forward, loading), of(&work.sums.backward, 0.0)]
            })
            .collect();
        let transfers = (0..work.schedule.ways)
            .map(|way| {
                let usual = cells().flat_map(|(step, lane)| {
                    let factor = changes[step].transfer[way * lanes + lane];
                    work.way(way, lane, step).map(move |seconds| seconds * factor)
                });
                middle(usual).unwrap_or_default()
            })
            .collect();
        let reductions = (0..work.workers.stages)
            .map(|stage| middle(changes.iter().map(|change| change.reduction[stage])).unwrap_or_default())
            .collect();
        let rest = mean((0..changes.len()).map(|step| work.behind.rest[work.picked[step]] - changes[step].behind));
        Self {
            work,
            passes,
            transfers,
            reductions,
            rest,
        }
    }

    fn length(&self) -> f64 {
        self.work.schedule.program.step(1, self, &mut Vec::new()) + self.rest
    }
}

impl Durations for Ideal<'_> {
    fn add(&self, node: usize, times: &mut [f64]) {
        let seconds = match self.work.schedule.tasks[node] {
            Task::Pass { stage, backward, .. } => self.passes[stage][usize::from(backward)],
            Task::Transfer(number) => self.transfers[self.work.schedule.transfers[number].way],
            Task::Reduction(stage) => self.reductions[stage],
        };
        for time in times {
            *time += seconds;
        }
    }
}
