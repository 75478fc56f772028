//! How long the passes of all ranks take in one step.

use super::effects::Effects;
use super::plan::PlannedStep;
use super::scenario::Scenario;
use super::step::StepTimes;
use super::timers::Timer;
use super::world::World;
use crate::contract::defaults::WARMUP_ITERATIONS;
use crate::stats::random::Random;

/// Backward time of a microbatch relative to forward.
const BACKWARD: f64 = 2.0;
/// Share of the forward pass that is the QKV projection.
const QKV: f64 = 0.118;
/// Extra work of the first stage (embedding) and of the last (logits, loss), of a stage's.
const FIRST_EXTRA: f64 = 0.01;
const LAST_EXTRA: f64 = 0.02;
/// Loading a microbatch on the first stage, and taking the labels on the last, seconds.
const LOAD_FIRST: f64 = 0.003;
const LOAD_LAST: f64 = 0.0005;
/// Relative noise of loading.
const LOAD_NOISE: f64 = 0.1;
/// What is left between ranks that leave a pass together.
const PEER_NOISE: f64 = 5e-5;

/// Durations of the passes of all ranks; `[rank * passes + pass]`, chunk by chunk of the model.
pub struct Passes {
    /// Forward passes, seconds.
    pub forward: Vec<f64>,
    /// Backward passes, seconds.
    pub backward: Vec<f64>,
}

/// Draws the passes of a step; also sets the timers inside them that show a rank's own work.
pub fn passes(
    scenario: &Scenario,
    world: &World,
    at: PlannedStep,
    effects: &Effects,
    noise: &mut Random,
    times: &mut StepTimes,
) -> Passes {
    let mut passes = own_passes(scenario, world, at, effects, noise, times);
    load_batches(scenario, world, effects, noise, times, &mut passes);
    leave_together(scenario, world, noise, &mut passes);
    passes
}

/// What each rank would take alone.
fn own_passes(
    scenario: &Scenario,
    world: &World,
    at: PlannedStep,
    effects: &Effects,
    noise: &mut Random,
    times: &mut StepTimes,
) -> Passes {
    let count = scenario.passes();
    let cells = scenario.ranks() * count;
    let mut passes = Passes {
        forward: vec![0.0; cells],
        backward: vec![0.0; cells],
    };
    let sequence: Vec<f64> = (0..scenario.dp)
        .map(|_| load(noise, scenario.sequence_spread))
        .collect();
    let startup = if at.position < WARMUP_ITERATIONS {
        scenario.startup * (-f64::from(at.position) / 3.0).exp()
    } else {
        0.0
    };
    for rank in 0..scenario.ranks() {
        let c = world.at[rank];
        let startup = if startup > 0.0 {
            1.0 + startup * (0.5 + noise.uniform())
        } else {
            1.0
        };
        let levels: Vec<f64> = (0..scenario.virtual_stages)
            .map(|chunk| {
                scenario.stage_seconds
                    * chunk_work(scenario, c.pp, chunk)
                    * sequence[c.dp]
                    * world.compute[rank]
                    * effects.compute[rank]
                    * startup
            })
            .collect();
        let experts = load(noise, scenario.expert_spread);
        let mut own = 0.0;
        for k in 0..count {
            let level = levels[k / scenario.microbatches];
            let cell = rank * count + k;
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
    passes
}

/// Loading happens inside the forward pass; tensor-parallel peers wait for the broadcast.
fn load_batches(
    scenario: &Scenario,
    world: &World,
    effects: &Effects,
    noise: &mut Random,
    times: &mut StepTimes,
    passes: &mut Passes,
) {
    let (microbatches, count) = (scenario.microbatches, scenario.passes());
    let mut loads = vec![0.0; scenario.ranks() * microbatches];
    // What it takes, and the first of the passes in which it happens: those of the model's first or last chunk.
    let base = |stage: usize| {
        if stage == 0 {
            Some((LOAD_FIRST, 0))
        } else {
            (stage + 1 == scenario.pp).then_some((LOAD_LAST, count - microbatches))
        }
    };
    for (rank, c) in world.at.iter().enumerate() {
        let Some((seconds, _)) = base(c.pp).filter(|_| c.tp == 0) else {
            continue;
        };
        for load in &mut loads[rank * microbatches..(rank + 1) * microbatches] {
            *load = seconds * noise.factor(LOAD_NOISE) + effects.loader[rank];
        }
    }
    for (rank, c) in world.at.iter().enumerate() {
        let Some((_, first)) = base(c.pp) else {
            continue;
        };
        let from = world.loader[rank] * microbatches;
        let mut total = 0.0;
        for k in 0..microbatches {
            passes.forward[rank * count + first + k] += loads[from + k];
            total += loads[from + k];
        }
        if world.loader[rank] != rank {
            total *= noise.factor(PEER_NOISE);
        }
        times.set(Timer::BatchGenerator, rank, total);
    }
}

/// Peers exchange data inside each pass: all of them take as long as the slowest.
fn leave_together(scenario: &Scenario, world: &World, noise: &mut Random, passes: &mut Passes) {
    let count = scenario.passes();
    for group in world.lockstep.iter().filter(|group| group.len() > 1) {
        for durations in [&mut passes.forward, &mut passes.backward] {
            for k in 0..count {
                let slowest = group.iter().map(|rank| durations[rank * count + k]).fold(0.0, f64::max);
                for rank in group {
                    durations[rank * count + k] = slowest * noise.factor(PEER_NOISE);
                }
            }
        }
    }
}

/// Work of a model chunk of a stage; all chunks of a middle stage make 1.
fn chunk_work(scenario: &Scenario, stage: usize, chunk: usize) -> f64 {
    let chunks = scenario.virtual_stages as f64;
    let mut work = 1.0 / chunks;
    if scenario.pp > 1 && stage == 0 && chunk == 0 {
        work *= 1.0 + chunks * FIRST_EXTRA;
    }
    if scenario.pp > 1 && stage + 1 == scenario.pp && chunk + 1 == scenario.virtual_stages {
        work *= 1.0 + chunks * LAST_EXTRA;
    }
    for heavy in scenario.heavy_stages.iter().filter(|h| h.stage == stage) {
        work *= heavy.factor;
    }
    work
}

fn load(noise: &mut Random, spread: f64) -> f64 {
    if spread > 0.0 { noise.load(spread) } else { 1.0 }
}

fn call(scenario: &Scenario, noise: &mut Random) -> f64 {
    let factor = noise.factor(scenario.noise);
    if scenario.outliers > 0.0 && noise.uniform() < scenario.outliers {
        factor * (1.5 + 1.5 * noise.uniform())
    } else {
        factor
    }
}
