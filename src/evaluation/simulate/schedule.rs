//! Operations of a pipeline stage, and the non-interleaved 1F1B schedule as one list of them a stage.

use super::timers::Timer;

/// Which way data moves along the pipeline.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(usize)]
pub enum Direction {
    /// Activations, from a stage to the next.
    Forward,
    /// Gradients, from a stage to the one before.
    Backward,
}

/// One end of a transfer over one link. Link `i` joins stages `i` and `i + 1`; in an interleaved schedule the last one
/// joins the last stage and the first.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Half {
    /// Which way the data moves.
    pub direction: Direction,
    /// The link that carries it.
    pub link: usize,
    /// 0-based microbatch; interleaved: chunk of the link's upper end * microbatches + microbatch.
    pub microbatch: usize,
}

/// What a stage does next.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Op {
    /// Forward pass of a microbatch; interleaved: chunk * microbatches + microbatch.
    Forward(usize),
    /// Backward pass, likewise.
    Backward(usize),
    /// A call of a point-to-point timer: a transfer, or several posted together.
    Exchange {
        /// The timer around the call.
        timer: Timer,
        /// What the stage sends.
        sends: [Option<Half>; 2],
        /// What the stage receives.
        recvs: [Option<Half>; 2],
    },
}

/// The operations of `stage` in a pipeline of `stages` with `microbatches` a step.
///
/// Warm-up forwards, one-forward-one-backward, cool-down backwards; the last stage has no warm-up,
/// the first receives no activation and the last sends none.
pub fn one_f_one_b(stage: usize, stages: usize, microbatches: usize) -> Vec<Op> {
    let first = stage == 0;
    let last = stage + 1 == stages;
    let warmup = (stages - 1 - stage).min(microbatches);
    let steady = microbatches - warmup;
    let half = |direction, upstream: bool, microbatch| Half {
        direction,
        link: if upstream { stage - 1 } else { stage },
        microbatch,
    };
    let activation_in = |k| (!first).then(|| half(Direction::Forward, true, k));
    let activation_out = |k| (!last).then(|| half(Direction::Forward, false, k));
    let gradient_in = |k| (!last).then(|| half(Direction::Backward, false, k));
    let gradient_out = |k| (!first).then(|| half(Direction::Backward, true, k));

    let mut ops = Vec::with_capacity(4 * microbatches + 4);
    let exchange = |ops: &mut Vec<Op>, timer, send: Option<Half>, recv: Option<Half>| {
        if send.is_some() || recv.is_some() {
            ops.push(Op::Exchange {
                timer,
                sends: [send, None],
                recvs: [recv, None],
            });
        }
    };
    for k in 0..warmup {
        exchange(&mut ops, Timer::ForwardRecv, None, activation_in(k));
        ops.push(Op::Forward(k));
        exchange(&mut ops, Timer::ForwardSend, activation_out(k), None);
    }
    if steady > 0 {
        exchange(&mut ops, Timer::ForwardRecv, None, activation_in(warmup));
    }
    for k in 0..steady {
        let forward = warmup + k;
        ops.push(Op::Forward(forward));
        exchange(
            &mut ops,
            Timer::ForwardSendBackwardRecv,
            activation_out(forward),
            gradient_in(k),
        );
        ops.push(Op::Backward(k));
        if k + 1 == steady {
            exchange(&mut ops, Timer::BackwardSend, gradient_out(k), None);
        } else {
            exchange(
                &mut ops,
                Timer::BackwardSendForwardRecv,
                gradient_out(k),
                activation_in(forward + 1),
            );
        }
    }
    for k in steady..microbatches {
        exchange(&mut ops, Timer::BackwardRecv, None, gradient_in(k));
        ops.push(Op::Backward(k));
        exchange(&mut ops, Timer::BackwardSend, gradient_out(k), None);
    }
    ops
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    fn timers(stage: usize, stages: usize, microbatches: usize) -> BTreeSet<&'static str> {
        one_f_one_b(stage, stages, microbatches)
            .into_iter()
            .filter_map(|op| match op {
                Op::Exchange { timer, .. } => Some(timer.name()),
                _ => None,
            })
            .collect()
    }

    #[test]
    fn timers_by_stage() {
        let first = ["backward-recv", "forward-send", "forward-send-backward-recv"];
        let last = ["backward-send", "backward-send-forward-recv", "forward-recv"];
        assert_eq!(timers(0, 4, 8), BTreeSet::from(first));
        assert_eq!(timers(3, 4, 8), BTreeSet::from(last));
        let all: BTreeSet<_> = first.into_iter().chain(last).collect();
        assert_eq!(timers(1, 4, 8), all);
        assert_eq!(timers(2, 4, 8), all);
        assert!(timers(0, 1, 8).is_empty());
    }

    #[test]
    fn every_microbatch_passes_once_and_sends_meet_receives_in_order() {
        for (stages, microbatches) in [(1, 3), (2, 1), (4, 8), (8, 4), (3, 2)] {
            let lists: Vec<_> = (0..stages).map(|s| one_f_one_b(s, stages, microbatches)).collect();
            for ops in &lists {
                let forwards = ops.iter().filter(|o| matches!(o, Op::Forward(_))).count();
                let backwards = ops.iter().filter(|o| matches!(o, Op::Backward(_))).count();
                assert_eq!((forwards, backwards), (microbatches, microbatches));
            }
            let halves = |stage: usize, sent: bool, direction| -> Vec<Half> {
                lists[stage]
                    .iter()
                    .filter_map(|op| match op {
                        Op::Exchange { sends, recvs, .. } => {
                            if sent {
                                sends[0]
                            } else {
                                recvs[0]
                            }
                        }
                        _ => None,
                    })
                    .filter(|half| half.direction == direction)
                    .collect()
            };
            for link in 0..stages - 1 {
                let (up, down) = (link, link + 1);
                assert_eq!(
                    halves(up, true, Direction::Forward),
                    halves(down, false, Direction::Forward)
                );
                assert_eq!(
                    halves(down, true, Direction::Backward),
                    halves(up, false, Direction::Backward)
                );
            }
        }
    }
}
