//! Simulated jobs with a known truth: timers of a Megatron-LM job in the `megatron_metrics` schema.
//!
//! A [`Scenario`] describes shape, noise and faults. Each step runs a 1F1B pipeline, interleaved or not,
//! in which every send and receive is a rendezvous, tensor-parallel peers leave each pass together
//! and data-parallel collectives start with their last member, so that a slow rank shows up as
//! waiting elsewhere, as it does in real jobs. The same scenario gives the same rows, whatever the
//! number of threads.
//!
//! [`simulate`] keeps a job in memory, [`write_job`] streams it into a folder.
//!
//! In: a scenario. Out: rows and a label. May use: `source`, `stats`, `contract`; none of what judges.

pub mod conditions;
mod culprits;
mod dirt;
mod effects;
mod error;
pub mod faults;
#[cfg(test)]
mod interleaved_tests;
mod kinds;
mod labels;
mod passes;
mod plan;
pub mod rendezvous;
mod rows;
mod scenario;
mod step;
mod validate;
mod validate_faults;
mod world;
mod write;

use polars::frame::DataFrame;
use rayon::prelude::*;

pub use crate::contract::Timer;
pub use crate::contract::rank_order::DEFAULT_ORDER;
pub use error::{ScenarioError, SimulateError, WriteError};
pub use labels::Label;
pub use scenario::Scenario;
pub use write::{LABELS, Written, write_job};

use dirt::DirtyRows;
use plan::{PlannedStep, RESTART_SECONDS, plan};
use rows::{Metric, Rows, Stamp};
use step::{StepTimes, step};
use world::World;

/// Rows after which a frame (a row group of the file) is handed on, at the end of an iteration.
const FRAME_ROWS: usize = 250_000;
/// Steps simulated at once; bounds the memory and has no influence on the rows.
const STEPS_AT_ONCE: usize = 8;

/// A simulated job.
#[derive(Debug, Clone)]
pub struct Simulated {
    /// Its rows, in the columns of `megatron_metrics`, by iteration, timer and rank.
    pub frame: DataFrame,
    /// What is true about it.
    pub label: Label,
}

/// Simulates a job in memory.
///
/// # Errors
/// A scenario that is not possible.
pub fn simulate(scenario: &Scenario) -> Result<Simulated, SimulateError> {
    let mut all: Option<DataFrame> = None;
    let label = simulate_into(scenario, |frame| {
        match &mut all {
            Some(all) => {
                all.vstack_mut(&frame)?;
            }
            None => all = Some(frame),
        }
        Ok(())
    })?;
    let mut frame = match all {
        Some(frame) => frame,
        None => Rows::new(scenario).take()?,
    };
    frame.rechunk_mut();
    Ok(Simulated { frame, label })
}

/// Simulates a job and hands its rows on in frames of about 250,000 rows.
///
/// # Errors
/// A scenario that is not possible, or what `sink` returns.
pub fn simulate_into(
    scenario: &Scenario,
    mut sink: impl FnMut(DataFrame) -> Result<(), SimulateError>,
) -> Result<Label, SimulateError> {
    let world = World::new(scenario)?;
    let label = Label::with_world(scenario, &world);
    let mut rows = Rows::new(scenario);
    let mut now = scenario.start as f64;
    let mut run = 0;
    if scenario.topology {
        push_groups(scenario, &world, &mut rows);
    }
    for steps in plan(scenario).chunks(STEPS_AT_ONCE) {
        let times: Vec<StepTimes> = steps.par_iter().map(|at| step(scenario, &world, *at)).collect();
        for (at, times) in steps.iter().zip(&times) {
            if at.run != run {
                run = at.run;
                now += RESTART_SECONDS;
            }
            push_step(scenario, &world, &mut rows, *at, times, now);
            now += times.interval;
            if rows.len() >= FRAME_ROWS {
                sink(rows.take()?)?;
            }
        }
    }
    if !rows.is_empty() {
        sink(rows.take()?)?;
    }
    Ok(label)
}

fn stamp(now: f64, iteration: u32, run: usize) -> Stamp {
    Stamp {
        timestamp: now.floor() as i64 * 1000,
        iteration,
        run,
    }
}

fn push_groups(scenario: &Scenario, world: &World, rows: &mut Rows) {
    let stamp = stamp(scenario.start as f64, scenario.first_iteration, 0);
    let mut push = |name, position: &dyn Fn(usize) -> usize| {
        for rank in 0..world.at.len() {
            rows.push(stamp, Metric::Group, name, rank, [position(rank) as f64]);
        }
    };
    if scenario.cp > 1 {
        push("cp", &|rank| world.at[rank].cp);
    }
    push("dp", &|rank| world.at[rank].dp);
    if scenario.ep > 1 {
        push("ep", &|rank| world.expert[rank]);
    }
    push("pp", &|rank| world.at[rank].pp);
    push("tp", &|rank| world.at[rank].tp);
}

fn push_step(scenario: &Scenario, world: &World, rows: &mut Rows, at: PlannedStep, times: &StepTimes, now: f64) {
    let stamp = stamp(now, at.iteration, at.run);
    let mut collector = DirtyRows::new(scenario, at);
    for timer in Timer::ALL {
        for rank in 0..world.at.len() {
            if let Some(value) = times.value(timer, rank) {
                collector.timer(rows, stamp, timer, rank, value);
            }
        }
    }
    for timer in Timer::ALL.into_iter().filter(|timer| timer.traced()) {
        for rank in 0..world.at.len() {
            let calls = times.calls(timer, rank);
            if !calls.is_empty() {
                let local = calls.iter().map(|time| time + world.clock[rank]);
                collector.trace(rows, stamp, timer, rank, local);
            }
        }
    }
}
