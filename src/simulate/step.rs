//! The times of all ranks in one step.

use super::effects::Effects;
use super::noise::Noise;
use super::plan::PlannedStep;
use super::rendezvous::{DIRECTIONS, Pipeline};
use super::scenario::Scenario;
use super::schedule::{Direction, Half};
use super::timers::Timer;
use super::world::{OPTIMIZER_PARTS, World};

/// Backward time of a microbatch relative to forward.
const BACKWARD: f64 = 2.0;
/// Share of the forward pass that is the QKV projection.
const QKV: f64 = 0.118;
/// Extra work of the first stage (embedding) and of the last (logits, loss).
const FIRST_EXTRA: f64 = 1.01;
const LAST_EXTRA: f64 = 1.02;
/// Loading a microbatch on the first stage, and taking the labels on the last, seconds.
const LOAD_FIRST: f64 = 0.003;
const LOAD_LAST: f64 = 0.0005;
/// Collectives without waiting, and without anyone to talk to, seconds.
const GRADS_SYNC: f64 = 0.15;
const PARAMS_GATHER: f64 = 0.09;
const ALONE: f64 = 0.001;
/// Own work in the optimizer step, in order: copy to main grad, unscale, norm, update, copy back.
const OPTIMIZER: [f64; OPTIMIZER_PARTS] = [0.004, 0.003, 0.004, 0.05, 0.005];
/// All-reduce of the gradient norm, seconds.
const NORM_SYNC: f64 = 0.001;
/// Logging and the like at the end of a step, seconds.
const STEP_REST: f64 = 0.012;
/// Relative noise of transfers, loading and collectives.
const TRANSFER_NOISE: f64 = 0.05;
const LOAD_NOISE: f64 = 0.1;
const COLLECTIVE_NOISE: f64 = 0.01;
/// What is left between ranks that leave a pass together.
const PEER_NOISE: f64 = 5e-5;
/// Steps over which the start-up of a run fades.
const STARTUP_STEPS: u32 = 10;

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

    fn set(&mut self, timer: Timer, rank: usize, seconds: f64) {
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

/// Durations of the passes of all ranks; `[rank * microbatches + microbatch]`.
struct Passes {
    forward: Vec<f64>,
    backward: Vec<f64>,
}

/// Simulates one step. The result depends on the arguments only.
pub fn step(scenario: &Scenario, world: &World, at: PlannedStep) -> StepTimes {
    let position = [at.run as u64, u64::from(at.iteration)];
    let effects = Effects::at(scenario, at);
    let mut times = StepTimes::new(scenario.ranks(), scenario.trace);
    let mut noise = Noise::stream(scenario.seed, "step", &position);
    let mut passes = own_passes(scenario, world, at, &effects, &mut noise, &mut times);
    leave_together(scenario, world, &mut noise, &mut passes);
    let mut ready = vec![0.0; scenario.ranks()];
    for replica in &world.replicas {
        let pipeline = pipeline(scenario, world, replica, &passes, &effects, &mut noise);
        let done = pipeline.run(&world.lists, |call| {
            let rank = replica[call.stage * pipeline.lanes + call.lane];
            times.add(call.timer, rank, call.start, call.end);
        });
        for (&rank, done) in replica.iter().zip(done) {
            ready[rank] = done;
        }
    }
    let mut noise = Noise::stream(scenario.seed, "after", &position);
    sync_gradients(world, &effects, &mut noise, &mut ready, &mut times);
    optimize(
        scenario, world, &effects, &mut noise, &mut ready, &mut times,
    );
    let end = ready.iter().copied().fold(0.0, f64::max);
    times.interval = end + STEP_REST * noise.factor(LOAD_NOISE) + effects.stall;
    for rank in 0..scenario.ranks() {
        times.set(Timer::IntervalTime, rank, times.interval);
    }
    times
}

/// What each rank would take for its own work; also sets the timers that show just that.
fn own_passes(
    scenario: &Scenario,
    world: &World,
    at: PlannedStep,
    effects: &Effects,
    noise: &mut Noise,
    times: &mut StepTimes,
) -> Passes {
    let microbatches = scenario.microbatches;
    let cells = scenario.ranks() * microbatches;
    let mut passes = Passes {
        forward: vec![0.0; cells],
        backward: vec![0.0; cells],
    };
    let sequence: Vec<f64> = (0..scenario.dp)
        .map(|_| load(noise, scenario.sequence_spread))
        .collect();
    let startup = if at.position < STARTUP_STEPS {
        scenario.startup * (-f64::from(at.position) / 3.0).exp()
    } else {
        0.0
    };
    for rank in 0..scenario.ranks() {
        let c = world.at[rank];
        let mut level = scenario.stage_seconds
            * stage_work(scenario, c.pp)
            * sequence[c.dp]
            * world.compute[rank]
            * effects.compute[rank];
        if startup > 0.0 {
            level *= 1.0 + startup * (0.5 + noise.uniform());
        }
        let experts = load(noise, scenario.expert_spread);
        let mut own = 0.0;
        for k in 0..microbatches {
            let cell = rank * microbatches + k;
            let forward = level * call(scenario, noise);
            own += forward;
            passes.forward[cell] = forward * experts;
            passes.backward[cell] = BACKWARD * level * call(scenario, noise) * experts;
        }
        if scenario.qkv {
            let seconds = QKV * own * noise.factor(scenario.noise / 4.0);
            times.set(Timer::SelfAttentionLinearQkv, rank, seconds);
        }
    }
    load_batches(scenario, world, effects, noise, times, &mut passes);
    passes
}

/// Loading happens inside the forward pass; tensor-parallel peers wait for the broadcast.
fn load_batches(
    scenario: &Scenario,
    world: &World,
    effects: &Effects,
    noise: &mut Noise,
    times: &mut StepTimes,
    passes: &mut Passes,
) {
    let microbatches = scenario.microbatches;
    let mut loads = vec![0.0; scenario.ranks() * microbatches];
    let base = |stage: usize| {
        if stage == 0 {
            Some(LOAD_FIRST)
        } else {
            (stage + 1 == scenario.pp).then_some(LOAD_LAST)
        }
    };
    for (rank, c) in world.at.iter().enumerate() {
        let Some(seconds) = base(c.pp).filter(|_| c.tp == 0) else {
            continue;
        };
        for load in &mut loads[rank * microbatches..(rank + 1) * microbatches] {
            *load = seconds * noise.factor(LOAD_NOISE) + effects.loader[rank];
        }
    }
    for (rank, c) in world.at.iter().enumerate() {
        if base(c.pp).is_none() {
            continue;
        }
        let from = world.loader[rank] * microbatches;
        let mut total = 0.0;
        for k in 0..microbatches {
            passes.forward[rank * microbatches + k] += loads[from + k];
            total += loads[from + k];
        }
        if world.loader[rank] != rank {
            total *= noise.factor(PEER_NOISE);
        }
        times.set(Timer::BatchGenerator, rank, total);
    }
}

/// Peers exchange data inside each pass: all of them take as long as the slowest.
fn leave_together(scenario: &Scenario, world: &World, noise: &mut Noise, passes: &mut Passes) {
    let microbatches = scenario.microbatches;
    for group in world.lockstep.iter().filter(|group| group.len() > 1) {
        for durations in [&mut passes.forward, &mut passes.backward] {
            for k in 0..microbatches {
                let slowest = group
                    .iter()
                    .map(|rank| durations[rank * microbatches + k])
                    .fold(0.0, f64::max);
                for rank in group {
                    durations[rank * microbatches + k] = slowest * noise.factor(PEER_NOISE);
                }
            }
        }
    }
}

fn pipeline(
    scenario: &Scenario,
    world: &World,
    replica: &[usize],
    passes: &Passes,
    effects: &Effects,
    noise: &mut Noise,
) -> Pipeline {
    let (stages, microbatches) = (scenario.pp, scenario.microbatches);
    let lanes = scenario.tp * scenario.cp;
    let mut pipeline = Pipeline::new(stages, lanes, microbatches);
    pipeline.entry_wait_in_pass = scenario.entry_wait;
    for (place, &rank) in replica.iter().enumerate() {
        let to = pipeline.pass(place / lanes, place % lanes, 0);
        let from = rank * microbatches;
        pipeline.forward[to..to + microbatches]
            .copy_from_slice(&passes.forward[from..from + microbatches]);
        pipeline.backward[to..to + microbatches]
            .copy_from_slice(&passes.backward[from..from + microbatches]);
    }
    for direction in DIRECTIONS {
        for link in 0..stages - 1 {
            for lane in 0..lanes {
                let (up, down) = (
                    replica[link * lanes + lane],
                    replica[(link + 1) * lanes + lane],
                );
                let (from, to) = match direction {
                    Direction::Forward => (up, down),
                    Direction::Backward => (down, up),
                };
                let level = scenario.transfer_seconds
                    * world.link[from][direction as usize]
                    * effects.transfer(from, to);
                for microbatch in 0..microbatches {
                    let half = Half {
                        direction,
                        link,
                        microbatch,
                    };
                    let i = pipeline.transfer(half, lane);
                    pipeline.transfers[i] = level * noise.factor(TRANSFER_NOISE);
                }
            }
        }
    }
    pipeline
}

/// A collective over each data group: it starts with the last member and ends for all at once.
fn collective(
    world: &World,
    effects: &Effects,
    noise: &mut Noise,
    seconds: f64,
    ready: &mut [f64],
    mut record: impl FnMut(usize, f64),
) {
    for (group, members) in world.data_groups.iter().enumerate() {
        let last = members.iter().map(|&r| ready[r]).fold(0.0, f64::max);
        let own = if members.len() > 1 { seconds } else { ALONE };
        let end = last
            + own
                * world.collective[group]
                * effects.collective(members)
                * noise.factor(COLLECTIVE_NOISE);
        for &rank in members {
            record(rank, end - ready[rank]);
            ready[rank] = end;
        }
    }
}

fn sync_gradients(
    world: &World,
    effects: &Effects,
    noise: &mut Noise,
    ready: &mut [f64],
    times: &mut StepTimes,
) {
    collective(world, effects, noise, GRADS_SYNC, ready, |rank, seconds| {
        times.set(Timer::AllGradsSync, rank, seconds);
    });
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
    noise: &mut Noise,
    ready: &mut [f64],
    times: &mut StepTimes,
) {
    let start = ready.iter().copied().fold(0.0, f64::max);
    let own: Vec<[f64; OPTIMIZER_PARTS]> = (0..ready.len())
        .map(|rank| {
            std::array::from_fn(|part| {
                OPTIMIZER[part]
                    * world.optimizer[rank][part]
                    * effects.compute[rank]
                    * noise.factor(scenario.noise)
            })
        })
        .collect();
    let norm = own.iter().map(|o| o[0] + o[1] + o[2]).fold(0.0, f64::max) + NORM_SYNC;
    for (rank, [copy, unscale, _, update, back]) in own.into_iter().enumerate() {
        if scenario.optimizer_timers {
            times.set(Timer::OptimizerCopyToMainGrad, rank, copy);
            times.set(Timer::OptimizerUnscaleAndCheckInf, rank, unscale);
            times.set(Timer::OptimizerCopyMainToModelParams, rank, back);
        }
        times.set(Timer::OptimizerClipMainGrad, rank, norm - copy - unscale);
        times.set(Timer::OptimizerInnerStep, rank, update);
        ready[rank] = start + norm + update + back;
    }
    collective(
        world,
        effects,
        noise,
        PARAMS_GATHER,
        ready,
        |rank, seconds| {
            times.set(Timer::ParamsAllGather, rank, seconds);
        },
    );
    for (rank, &end) in ready.iter().enumerate() {
        times.set(Timer::Optimizer, rank, end - start);
    }
}

fn stage_work(scenario: &Scenario, stage: usize) -> f64 {
    let mut work = 1.0;
    if scenario.pp > 1 && stage == 0 {
        work *= FIRST_EXTRA;
    }
    if scenario.pp > 1 && stage + 1 == scenario.pp {
        work *= LAST_EXTRA;
    }
    for heavy in scenario.heavy_stages.iter().filter(|h| h.stage == stage) {
        work *= heavy.factor;
    }
    work
}

fn load(noise: &mut Noise, spread: f64) -> f64 {
    if spread > 0.0 {
        noise.load(spread)
    } else {
        1.0
    }
}

fn call(scenario: &Scenario, noise: &mut Noise) -> f64 {
    let factor = noise.factor(scenario.noise);
    if scenario.outliers > 0.0 && noise.uniform() < scenario.outliers {
        factor * (1.5 + 1.5 * noise.uniform())
    } else {
        factor
    }
}
