//! What the faults of a job cost: the steps replayed as measured and with each of them mended.

mod answer;
mod ideal;
mod scenarios;

use rayon::prelude::*;

pub use self::answer::{Basis, FaultCost, WhatIf};
use self::scenarios::{MOST_ORDERS, Scenarios};

use super::collectives::{Behind, REDUCTION};
use super::mend::{Delta, Fault};
use super::schedule::{Recorded, Schedule};
use super::shape::{Asked, Shape, Workers, shapes};
use super::work::{Change, Step, Work};
use crate::contract::timers::{PLAIN_TRANSFERS, TRANSFERS, is_transfer};
use crate::job::Job;
use crate::whatif::middle;

/// A replay that is further off than this gives no number.
const LARGEST_ERROR: f64 = 0.05;
/// Operations times lanes that are played at most, over all steps and scenarios; beyond, some of the steps are played.
const MOST_PLAYED: usize = 400_000_000;
/// Steps that are played however large the job is.
const LEAST_STEPS: usize = 20;
/// Steps on which shapes are compared.
const TRIED_STEPS: usize = 6;
/// Transfers are taken as short as they can be where the replay is off by no more than this beside longer ones.
const WAITING_COMES_BACK: f64 = 0.01;
/// A step is a pause of the whole job where it is this much longer than its replay...
const PAUSE: f64 = 0.25;
/// ... and the steps of that kind are at most this share.
const MOST_PAUSES: f64 = 0.1;

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
                "the replay of the steps is off by {:.1} % on average, more than {:.0} %: {}",
                100.0 * error,
                100.0 * LARGEST_ERROR,
                why_off(job, &workers, &replayed, &behind, &picked)
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

/// What may be why a replay misses the steps.
fn why_off(job: &Job, workers: &Workers, replayed: &[f64], behind: &Behind, picked: &[usize]) -> String {
    let short = middle(
        replayed
            .iter()
            .zip(picked)
            .map(|(replayed, &step)| behind.measured[step] - replayed),
    );
    let short = short.is_some_and(|seconds| seconds > 0.0);
    let fires = |name: &str| job.timer(name).is_some() || job.calls.iter().any(|table| table.name == name);
    let lacks = [
        ("transfers", workers.stages > 1 && !TRANSFERS.into_iter().any(fires)),
        ("the optimizer", !fires("optimizer")),
        (
            "the reduction of gradients",
            workers.lanes > 1 && !REDUCTION.into_iter().any(fires),
        ),
    ];
    let lacks: Vec<&str> = lacks
        .into_iter()
        .filter(|(_, lacks)| *lacks)
        .map(|(what, _)| what)
        .collect();
    if short && !lacks.is_empty() {
        return format!(
            "the job has no timer of {}, and their time can't be told from that of another schedule",
            lacks.join(" or ")
        );
    }
    "the schedule is another one, or the timers leave out what takes time".to_owned()
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
