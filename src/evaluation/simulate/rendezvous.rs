//! Time through one pipeline: passes take their time, transfers are rendezvous.
//!
//! A pipeline has `stages * lanes` ranks; the lanes of a stage are its tensor- and context-parallel
//! peers, which enter every pass together and leave it together. Lane `l` of a stage exchanges data
//! with lane `l` of the neighbouring stages.

use crate::contract::Timer;
use crate::whatif::WhatIfError;
use crate::whatif::replay::{Durations, Lanes, Program};
use crate::whatif::schedule::{Direction, Flow, Half, Op, Part};

/// What a call takes that has nothing to send or receive, seconds.
const EMPTY_CALL: f64 = 2e-5;

/// Shape of a pipeline and the durations (seconds) of what happens in it.
#[derive(Debug, Clone)]
pub struct Pipeline {
    /// Number of stages.
    pub stages: usize,
    /// Number of links: one less, or as many where the last stage sends to the first.
    pub links: usize,
    /// Ranks a stage.
    pub lanes: usize,
    /// Passes a step in one direction: microbatches, times the chunks of a stage.
    pub passes: usize,
    /// Forward passes, indexed by [`Pipeline::pass`].
    pub forward: Vec<f64>,
    /// Backward passes, indexed by [`Pipeline::pass`].
    pub backward: Vec<f64>,
    /// Transfers without any waiting, indexed by [`Pipeline::transfer`].
    pub transfers: Vec<f64>,
    /// Count the wait for a late lane as part of the pass (else it falls between two timers).
    pub entry_wait_in_pass: bool,
}

/// One call of a timer on one rank, in seconds since the step began.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Call {
    /// Pipeline stage of the rank.
    pub stage: usize,
    /// Lane of the rank in its stage.
    pub lane: usize,
    /// The timer.
    pub timer: Timer,
    /// Start of the call.
    pub start: f64,
    /// End of the call.
    pub end: f64,
}

impl Pipeline {
    /// A pipeline in which everything takes no time.
    pub fn new(stages: usize, links: usize, lanes: usize, passes: usize) -> Self {
        Self {
            stages,
            links,
            lanes,
            passes,
            forward: vec![0.0; stages * lanes * passes],
            backward: vec![0.0; stages * lanes * passes],
            transfers: vec![0.0; 2 * links * lanes * passes],
            entry_wait_in_pass: false,
        }
    }

    /// Index of a pass in `forward` and `backward`.
    pub fn pass(&self, stage: usize, lane: usize, pass: usize) -> usize {
        (stage * self.lanes + lane) * self.passes + pass
    }

    /// Index of a transfer in `transfers`.
    pub fn transfer(&self, half: Half, lane: usize) -> usize {
        let direction = half.direction as usize * self.links + half.link;
        (direction * self.lanes + lane) * self.passes + half.microbatch
    }

    /// Runs a schedule from time 0; `record` gets every call in the order of each rank's own time. Returns when each rank is
    /// done, indexed by `stage * lanes + lane`.
    pub fn run(&self, schedule: &Schedule, mut record: impl FnMut(Call)) -> Vec<f64> {
        let lanes = self.lanes;
        let mut ends = Vec::new();
        let durations = Played {
            pipeline: self,
            schedule,
        };
        schedule.program.play(lanes, Lanes::Together, &durations, &mut ends);
        let mut done = vec![0.0; self.stages * lanes];
        for (stage, (ops, entries)) in schedule.lists.iter().zip(&schedule.flow.entries).enumerate() {
            let clock = &mut done[stage * lanes..(stage + 1) * lanes];
            for (op, nodes) in ops.iter().zip(entries) {
                let together = clock.iter().copied().fold(0.0, f64::max);
                for (lane, clock) in clock.iter_mut().enumerate() {
                    let end = nodes
                        .clone()
                        .map(|node| ends[node * lanes + lane])
                        .fold(*clock, f64::max);
                    let timer = timer_of(op);
                    let is_pass = !matches!(op, Op::Exchange { .. });
                    record(Call {
                        stage,
                        lane,
                        timer,
                        start: if is_pass && !self.entry_wait_in_pass {
                            together
                        } else {
                            *clock
                        },
                        end,
                    });
                    *clock = end;
                }
            }
        }
        done
    }
}

/// The timer around an operation.
fn timer_of(op: &Op) -> Timer {
    match op {
        Op::Forward(_) => Timer::ForwardCompute,
        Op::Backward(_) => Timer::BackwardCompute,
        Op::Exchange { timer, .. } => *timer,
    }
}

/// A schedule as the engine plays it.
#[derive(Debug)]
pub struct Schedule {
    lists: Vec<Vec<Op>>,
    flow: Flow,
    program: Program,
}

impl Schedule {
    /// From one list of operations a stage.
    ///
    /// # Errors
    /// Lists in which operations wait for each other in a circle.
    pub fn new(lists: Vec<Vec<Op>>) -> Result<Self, WhatIfError> {
        let flow = Flow::new(&lists, true)?;
        let program = flow.builder.clone().finish(&[])?;
        Ok(Self { lists, flow, program })
    }
}

/// The durations of a pipeline's operations, a number a lane.
struct Played<'a> {
    pipeline: &'a Pipeline,
    schedule: &'a Schedule,
}

impl Durations for Played<'_> {
    fn add(&self, node: usize, times: &mut [f64]) {
        let pipeline = self.pipeline;
        match self.schedule.flow.parts[node] {
            Part::Pass { stage, direction, pass } => {
                let durations = match direction {
                    Direction::Forward => &pipeline.forward,
                    Direction::Backward => &pipeline.backward,
                };
                for (lane, time) in times.iter_mut().enumerate() {
                    *time += durations[pipeline.pass(stage, lane, pass)];
                }
            }
            Part::End { half, .. } => {
                for (lane, time) in times.iter_mut().enumerate() {
                    *time += pipeline.transfers[pipeline.transfer(half, lane)];
                }
            }
            Part::Nothing => times.iter_mut().for_each(|time| *time += EMPTY_CALL),
        }
    }
}

/// Both directions, for loops over a link's transfers.
pub const DIRECTIONS: [Direction; 2] = [Direction::Forward, Direction::Backward];

#[cfg(test)]
mod tests {
    use super::*;
    use crate::whatif::schedule::one_f_one_b;

    fn run(pipeline: &Pipeline) -> Vec<Call> {
        let lists: Vec<_> = (0..pipeline.stages)
            .map(|s| one_f_one_b(s, pipeline.stages, pipeline.passes))
            .collect();
        let mut calls = Vec::new();
        let schedule = Schedule::new(lists).expect("a schedule");
        pipeline.run(&schedule, |call| calls.push(call));
        calls
    }

    fn even(stages: usize, microbatches: usize, slow: Option<usize>) -> Pipeline {
        let mut p = Pipeline::new(stages, stages - 1, 1, microbatches);
        for stage in 0..stages {
            let factor = if slow == Some(stage) { 1.5 } else { 1.0 };
            for k in 0..microbatches {
                let i = p.pass(stage, 0, k);
                p.forward[i] = factor;
                p.backward[i] = 2.0 * factor;
            }
        }
        p.transfers.fill(0.01);
        p
    }

    fn of(calls: &[Call], stage: usize, timer: Timer) -> Vec<Call> {
        calls
            .iter()
            .copied()
            .filter(|c| c.stage == stage && c.timer == timer)
            .collect()
    }

    #[test]
    fn plain_pairs_end_together_and_last_at_least_the_transfer() {
        let calls = run(&even(4, 8, Some(2)));
        // Warm-up: the first forward-send of a stage meets the first forward-recv of the next.
        for stage in 0..3 {
            let sends = of(&calls, stage, Timer::ForwardSend);
            let recvs = of(&calls, stage + 1, Timer::ForwardRecv);
            for (send, recv) in sends.iter().zip(&recvs) {
                assert_eq!(send.end, recv.end);
                let transfer = (send.end - send.start).min(recv.end - recv.start);
                assert!((transfer - 0.01).abs() < 1e-9, "{transfer}");
            }
        }
        let send = of(&calls, 1, Timer::BackwardSend);
        let recv = of(&calls, 0, Timer::BackwardRecv);
        assert_eq!(send.last().unwrap().end, recv.last().unwrap().end);
    }

    #[test]
    fn ideal_pipeline_takes_the_textbook_time() {
        let mut p = even(4, 8, None);
        p.transfers.fill(0.0);
        let end = run(&p).iter().map(|c| c.end).fold(0.0, f64::max);
        assert!((end - 3.0 * (8.0 + 3.0)).abs() < 1e-9, "{end}");
    }

    #[test]
    fn the_slow_stage_waits_least() {
        let calls = run(&even(4, 16, Some(1)));
        let waits: Vec<f64> = (0..4)
            .map(|stage| {
                calls
                    .iter()
                    .filter(|c| c.stage == stage)
                    .filter(|c| !matches!(c.timer, Timer::ForwardCompute | Timer::BackwardCompute))
                    .map(|c| c.end - c.start)
                    .sum()
            })
            .collect();
        assert!((0..4).all(|s| s == 1 || waits[s] > waits[1]), "{waits:?}");
    }

    #[test]
    fn lanes_enter_a_pass_together() {
        let mut p = Pipeline::new(2, 1, 2, 2);
        p.forward.fill(1.0);
        p.backward.fill(2.0);
        // Lane 1's transfers are slow: lane 0 must wait for it before each pass.
        for link in [0] {
            for direction in DIRECTIONS {
                for microbatch in 0..2 {
                    let half = Half {
                        direction,
                        link,
                        microbatch,
                    };
                    let i = p.transfer(half, 1);
                    p.transfers[i] = 0.5;
                }
            }
        }
        let starts = |p: &Pipeline| -> Vec<f64> {
            run(p)
                .iter()
                .filter(|c| c.stage == 1 && c.timer == Timer::ForwardCompute)
                .map(|c| c.start)
                .collect()
        };
        assert_eq!(starts(&p)[..2], [1.5, 1.5]);
        p.entry_wait_in_pass = true;
        assert_eq!(starts(&p)[..2], [1.0, 1.5]);
    }
}
