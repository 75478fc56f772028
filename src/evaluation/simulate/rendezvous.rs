//! Time through one pipeline: passes take their time, transfers are rendezvous.
//!
//! A pipeline has `stages * lanes` ranks; the lanes of a stage are its tensor- and context-parallel
//! peers, which enter every pass together and leave it together. Lane `l` of a stage exchanges data
//! with lane `l` of the neighbouring stages.

use super::schedule::{Direction, Half, Op};
use super::timers::Timer;

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

    /// Runs the operation lists (one a stage) from time 0; `record` gets every call in the order
    /// of each rank's own time. Returns when each rank is done, indexed by `stage * lanes + lane`.
    pub fn run(&self, lists: &[Vec<Op>], mut record: impl FnMut(Call)) -> Vec<f64> {
        let lanes = self.lanes;
        let mut clock = vec![0.0_f64; self.stages * lanes];
        // When each end of a transfer was posted; NaN = not yet.
        let mut sent = vec![f64::NAN; self.transfers.len()];
        let mut received = vec![f64::NAN; self.transfers.len()];
        let mut next = vec![0_usize; self.stages];
        let mut posted = vec![false; self.stages];
        let mut moved = true;
        while moved {
            moved = false;
            for stage in 0..self.stages {
                while let Some(op) = lists[stage].get(next[stage]) {
                    let clock = &mut clock[stage * lanes..(stage + 1) * lanes];
                    match *op {
                        Op::Forward(k) => {
                            self.do_pass(stage, k, Timer::ForwardCompute, clock, &mut record);
                        }
                        Op::Backward(k) => {
                            self.do_pass(stage, k, Timer::BackwardCompute, clock, &mut record);
                        }
                        Op::Exchange { timer, sends, recvs } => {
                            if !posted[stage] {
                                for (halves, posts) in [(sends, &mut sent), (recvs, &mut received)] {
                                    for half in halves.into_iter().flatten() {
                                        for (lane, &now) in clock.iter().enumerate() {
                                            posts[self.transfer(half, lane)] = now;
                                        }
                                    }
                                }
                                posted[stage] = true;
                            }
                            let halves = || sends.into_iter().chain(recvs).flatten();
                            let open = halves().any(|half| {
                                let i = self.transfer(half, 0);
                                sent[i].is_nan() || received[i].is_nan()
                            });
                            if open {
                                break;
                            }
                            posted[stage] = false;
                            for (lane, clock) in clock.iter_mut().enumerate() {
                                let least = if halves().next().is_some() {
                                    *clock
                                } else {
                                    *clock + EMPTY_CALL
                                };
                                let end = halves()
                                    .map(|half| {
                                        let i = self.transfer(half, lane);
                                        sent[i].max(received[i]) + self.transfers[i]
                                    })
                                    .fold(least, f64::max);
                                record(Call {
                                    stage,
                                    lane,
                                    timer,
                                    start: *clock,
                                    end,
                                });
                                *clock = end;
                            }
                        }
                    }
                    next[stage] += 1;
                    moved = true;
                }
            }
        }
        debug_assert!(
            next.iter().zip(lists).all(|(n, ops)| *n == ops.len()),
            "no schedule gets stuck"
        );
        clock
    }

    fn do_pass(&self, stage: usize, pass: usize, timer: Timer, clock: &mut [f64], record: &mut impl FnMut(Call)) {
        let durations = if timer == Timer::ForwardCompute {
            &self.forward
        } else {
            &self.backward
        };
        let together = clock.iter().copied().fold(0.0, f64::max);
        for (lane, clock) in clock.iter_mut().enumerate() {
            let start = if self.entry_wait_in_pass { *clock } else { together };
            let end = together + durations[self.pass(stage, lane, pass)];
            record(Call {
                stage,
                lane,
                timer,
                start,
                end,
            });
            *clock = end;
        }
    }
}

/// Both directions, for loops over a link's transfers.
pub const DIRECTIONS: [Direction; 2] = [Direction::Forward, Direction::Backward];

#[cfg(test)]
mod tests {
    use super::super::schedule::one_f_one_b;
    use super::*;

    fn run(pipeline: &Pipeline) -> Vec<Call> {
        let lists: Vec<_> = (0..pipeline.stages)
            .map(|s| one_f_one_b(s, pipeline.stages, pipeline.passes))
            .collect();
        let mut calls = Vec::new();
        pipeline.run(&lists, |call| calls.push(call));
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
