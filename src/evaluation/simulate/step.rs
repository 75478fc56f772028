//! The times of all ranks in one step.

use super::effects::Effects;
use super::passes::{Passes, passes};
use super::plan::PlannedStep;
use super::rendezvous::{DIRECTIONS, Pipeline};
use super::scenario::Scenario;
use super::world::{Collectives, OPTIMIZER_PARTS, World};
use crate::contract::Timer;
use crate::stats::random::Random;
use crate::whatif::schedule::{Direction, Half};

/// Collectives without waiting, and without anyone to talk to, seconds.
const GRADS_SYNC: f64 = 0.15;
const PARAMS_GATHER: f64 = 0.09;
/// All-reduce between the parts of a distributed optimizer, and of the expert parameters, seconds.
const BETWEEN_PARTS: f64 = 0.04;
const EXPERT_SYNC: f64 = 0.06;
const ALONE: f64 = 0.001;
/// Own work in the optimizer step, in order: copy to main grad, unscale, norm, count zeros, update,
/// copy back.
const OPTIMIZER: [f64; OPTIMIZER_PARTS] = [0.004, 0.003, 0.004, 0.002, 0.05, 0.005];
/// All-reduce of the gradient norm, seconds.
const NORM_SYNC: f64 = 0.001;
/// Logging and the like at the end of a step, seconds.
const STEP_REST: f64 = 0.012;
/// Relative noise of collectives and the rest.
const COLLECTIVE_NOISE: f64 = 0.01;
const REST_NOISE: f64 = 0.1;

/// All times of a step, in seconds.
#[derive(Debug)]
pub struct StepTimes {
    /// Length of the step.
    pub interval: f64,
    ranks: usize,
    values: Vec<f64>,
    calls: Vec<Vec<f64>>,
}

impl StepTimes {
    fn new(ranks: usize, trace: bool) -> Self {
        let cells = Timer::ALL.len() * ranks;
        Self {
            interval: 0.0,
            ranks,
            values: vec![f64::NAN; cells],
            calls: vec![Vec::new(); if trace { cells } else { 0 }],
        }
    }

    /// A timer's duration on a rank, `None` when it did not run there.
    pub fn value(&self, timer: Timer, rank: usize) -> Option<f64> {
        let value = self.values[timer as usize * self.ranks + rank];
        (!value.is_nan()).then_some(value)
    }

    /// Start, end, start, end, ... of a timer's calls on a rank; empty when not traced.
    pub fn calls(&self, timer: Timer, rank: usize) -> &[f64] {
        self.calls
            .get(timer as usize * self.ranks + rank)
            .map_or(&[], Vec::as_slice)
    }

    /// Sets a timer that is not traced.
    pub fn set(&mut self, timer: Timer, rank: usize, seconds: f64) {
        self.values[timer as usize * self.ranks + rank] = seconds;
    }

    fn add(&mut self, timer: Timer, rank: usize, start: f64, end: f64) {
        let cell = timer as usize * self.ranks + rank;
        let value = &mut self.values[cell];
        *value = if value.is_nan() { 0.0 } else { *value } + (end - start);
        if let Some(calls) = self.calls.get_mut(cell) {
            calls.extend([start, end]);
        }
    }
}

/// Simulates one step. The result depends on the arguments only.
pub fn step(scenario: &Scenario, world: &World, at: PlannedStep) -> StepTimes {
    let position = [at.run as u64, u64::from(at.iteration)];
    let effects = Effects::at(scenario, world, at);
    let mut times = StepTimes::new(scenario.ranks(), scenario.trace);
    let mut noise = Random::stream(scenario.seed, "step", &position);
    let passes = passes(scenario, world, at, &effects, &mut noise, &mut times);
    let mut ready = vec![0.0; scenario.ranks()];
    for replica in &world.replicas {
        let pipeline = pipeline(scenario, world, replica, &passes, &effects, &mut noise);
        let done = pipeline.run(&world.schedule, |call| {
            let rank = replica[call.stage * pipeline.lanes + call.lane];
            times.add(call.timer, rank, call.start, call.end);
        });
        for (&rank, done) in replica.iter().zip(done) {
            ready[rank] = done;
        }
    }
    let mut noise = Random::stream(scenario.seed, "after", &position);
    sync_gradients(scenario, world, &effects, &mut noise, &mut ready, &mut times);
    optimize(scenario, world, &effects, &mut noise, &mut ready, &mut times);
    let end = ready.iter().copied().fold(0.0, f64::max);
    times.interval = end + STEP_REST * noise.factor(REST_NOISE) + effects.stall;
    for rank in 0..scenario.ranks() {
        times.set(Timer::IntervalTime, rank, times.interval);
    }
    times
}

fn pipeline(
    scenario: &Scenario,
    world: &World,
    replica: &[usize],
    passes: &Passes,
    effects: &Effects,
    noise: &mut Random,
) -> Pipeline {
    let (stages, passes_each) = (scenario.pp, scenario.passes());
    let lanes = scenario.tp * scenario.cp;
    let mut pipeline = Pipeline::new(stages, scenario.links(), lanes, passes_each);
    pipeline.entry_wait_in_pass = scenario.entry_wait;
    for (place, &rank) in replica.iter().enumerate() {
        let to = pipeline.pass(place / lanes, place % lanes, 0);
        let from = rank * passes_each;
        pipeline.forward[to..to + passes_each].copy_from_slice(&passes.forward[from..from + passes_each]);
        pipeline.backward[to..to + passes_each].copy_from_slice(&passes.backward[from..from + passes_each]);
    }
    for direction in DIRECTIONS {
        for link in 0..scenario.links() {
            for lane in 0..lanes {
                let next = (link + 1) % stages;
                let (up, down) = (replica[link * lanes + lane], replica[next * lanes + lane]);
                let (from, to) = match direction {
                    Direction::Forward => (up, down),
                    Direction::Backward => (down, up),
                };
                let healthy = match scenario.intra_node_seconds {
                    Some(seconds) if !scenario.over_network(from, to) => seconds,
                    _ => scenario.transfer_seconds,
                };
                let level = healthy * world.link[from][direction as usize] * effects.transfer(scenario, from, to);
                for microbatch in 0..passes_each {
                    let half = Half {
                        direction,
                        link,
                        microbatch,
                    };
                    let i = pipeline.transfer(half, lane);
                    pipeline.transfers[i] = level * transfer(scenario, noise);
                }
            }
        }
    }
    pipeline
}

/// What a single transfer takes, relative to the link's level.
fn transfer(scenario: &Scenario, noise: &mut Random) -> f64 {
    let factor = noise.factor(scenario.transfer_noise);
    if scenario.transfer_outliers > 0.0 && noise.uniform() < scenario.transfer_outliers {
        factor * 2.0 * 15_f64.powf(noise.uniform().powi(2))
    } else {
        factor
    }
}

/// A collective over each of some groups: it starts with the last member and ends for all at once. `levels` holds the
/// groups' lasting levels.
fn collective(
    scenario: &Scenario,
    groups: &[Vec<usize>],
    levels: &[f64],
    effects: &Effects,
    noise: &mut Random,
    seconds: f64,
    ready: &mut [f64],
) {
    for (members, level) in groups.iter().zip(levels) {
        let last = members.iter().map(|&r| ready[r]).fold(0.0, f64::max);
        let own = if members.len() > 1 { seconds } else { ALONE };
        let factor = effects.collective(scenario, members);
        let end = last + own * level * factor * noise.factor(COLLECTIVE_NOISE);
        for &rank in members {
            ready[rank] = end;
        }
    }
}

fn sync_gradients(
    scenario: &Scenario,
    world: &World,
    effects: &Effects,
    noise: &mut Random,
    ready: &mut [f64],
    times: &mut StepTimes,
) {
    let begun = ready.to_vec();
    let parts = &world.parts;
    collective(
        scenario,
        &parts.groups,
        &parts.levels,
        effects,
        noise,
        GRADS_SYNC,
        ready,
    );
    let more = [
        (&world.between_parts, BETWEEN_PARTS),
        (&world.expert_groups, EXPERT_SYNC),
    ];
    for (Collectives { groups, levels }, seconds) in more {
        if !groups.is_empty() {
            collective(scenario, groups, levels, effects, noise, seconds, ready);
        }
    }
    for (rank, begun) in begun.into_iter().enumerate() {
        times.set(Timer::AllGradsSync, rank, ready[rank] - begun);
    }
    // The step began at 0 on all ranks, behind a barrier.
    for (rank, &end) in ready.iter().enumerate() {
        times.set(Timer::ForwardBackward, rank, end);
    }
}

/// The optimizer step starts behind a barrier; the gradient norm is a sum over all ranks.
fn optimize(
    scenario: &Scenario,
    world: &World,
    effects: &Effects,
    noise: &mut Random,
    ready: &mut [f64],
    times: &mut StepTimes,
) {
    let start = ready.iter().copied().fold(0.0, f64::max);
    let own: Vec<[f64; OPTIMIZER_PARTS]> = (0..ready.len())
        .map(|rank| {
            std::array::from_fn(|part| {
                OPTIMIZER[part] * world.optimizer[rank][part] * effects.compute[rank] * noise.factor(scenario.noise)
            })
        })
        .collect();
    let norm = own.iter().map(|o| o[0] + o[1] + o[2]).fold(0.0, f64::max) + NORM_SYNC;
    for (rank, [copy, unscale, _, zeros, update, back]) in own.into_iter().enumerate() {
        if scenario.optimizer_timers {
            times.set(Timer::OptimizerCopyToMainGrad, rank, copy);
            times.set(Timer::OptimizerUnscaleAndCheckInf, rank, unscale);
            times.set(Timer::OptimizerCountZeros, rank, zeros);
            times.set(Timer::OptimizerCopyMainToModelParams, rank, back);
        }
        times.set(Timer::OptimizerClipMainGrad, rank, norm - copy - unscale);
        times.set(Timer::OptimizerInnerStep, rank, update);
        ready[rank] = start + norm + zeros + update + back;
    }
    let begun = ready.to_vec();
    let parts = &world.parts;
    collective(
        scenario,
        &parts.groups,
        &parts.levels,
        effects,
        noise,
        PARAMS_GATHER,
        ready,
    );
    for (rank, begun) in begun.into_iter().enumerate() {
        times.set(Timer::ParamsAllGather, rank, ready[rank] - begun);
    }
    for (rank, &end) in ready.iter().enumerate() {
        times.set(Timer::Optimizer, rank, end - start);
    }
}
