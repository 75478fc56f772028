//! The interleaved 1F1B schedule: every stage holds several chunks of the model, and the last stage sends the output
//! of a chunk to the first, which holds the next.
//!
//! As in Megatron-LM's `forward_backward_pipelining_with_interleaving`: microbatches pass chunk by chunk in groups as
//! large as the pipeline, each stage knows from the number of a pass alone what it receives for the next one, and the
//! timers fire around each call, also where there is nothing to send or receive.

use super::schedule::{Direction, Half, Op};
use super::timers::Timer;

/// Shape of an interleaved pipeline.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Interleaved {
    /// Number of stages; microbatches are a multiple of it.
    pub stages: usize,
    /// Chunks a stage.
    pub chunks: usize,
    /// Microbatches a step.
    pub microbatches: usize,
    /// Activations and gradients move in calls of their own, after the pass that makes them. Their timers wait for
    /// the device and so for the other end, as in the schedule without overlap.
    pub overlap: bool,
}

/// A chunk of a stage and a microbatch that passes it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Pass {
    chunk: usize,
    microbatch: usize,
}

impl Interleaved {
    /// Passes in one direction.
    fn total(self) -> usize {
        self.chunks * self.microbatches
    }

    /// The `k`-th pass of every stage.
    fn pass(self, direction: Direction, k: usize) -> Pass {
        let group = self.stages * self.chunks;
        let chunk = k % group / self.stages;
        Pass {
            chunk: match direction {
                Direction::Forward => chunk,
                Direction::Backward => self.chunks - 1 - chunk,
            },
            microbatch: k / group * self.stages + k % self.stages,
        }
    }

    /// Index of a pass among the passes of its stage and of a transfer among those of its link.
    fn index(self, chunk: usize, microbatch: usize) -> usize {
        chunk * self.microbatches + microbatch
    }

    /// What moves over the link behind a stage, named by the chunk of the upper end.
    fn half(self, direction: Direction, link: usize, chunk: usize, microbatch: usize) -> Half {
        Half {
            direction,
            link,
            microbatch: self.index(chunk, microbatch),
        }
    }

    /// Forward passes before the first backward one.
    fn warmup(self, stage: usize) -> usize {
        let passes = 2 * (self.stages - stage - 1) + (self.chunks - 1) * self.stages;
        passes.min(self.total())
    }

    /// The operations of a stage.
    pub fn operations(self, stage: usize) -> Vec<Op> {
        let at = Stage { shape: self, stage };
        let (total, warmup) = (self.total(), self.warmup(stage));
        let steady = total - warmup;
        let mut ops = Vec::with_capacity(5 * total + 4);
        if stage > 0 {
            ops.push(exchange(Timer::ForwardRecv, [None; 2], [at.receives_first(), None]));
        }
        for k in 0..warmup {
            ops.push(Op::Forward(at.pass_index(Direction::Forward, k)));
            let (out, next) = (at.activation_out(k), at.activation_in(k));
            let first_gradient = (k + 1 == warmup && steady > 0).then(|| at.first_gradient());
            match first_gradient {
                Some(gradient) if !self.overlap => ops.push(exchange(
                    Timer::ForwardBackwardSendForwardBackwardRecv,
                    [out, None],
                    [next, gradient],
                )),
                gradient => {
                    ops.push(exchange(Timer::ForwardSendForwardRecv, [out, None], [next, None]));
                    if let Some(gradient) = gradient {
                        ops.push(exchange(Timer::BackwardSendBackwardRecv, [None; 2], [gradient, None]));
                    }
                }
            }
        }
        for k in 0..steady {
            let forward = warmup + k;
            let (out, next) = (at.activation_out(forward), at.activation_in(forward));
            let (gradient, back) = (at.gradient_out(k), at.gradient_in(k));
            ops.push(Op::Forward(at.pass_index(Direction::Forward, forward)));
            if self.overlap {
                ops.push(exchange(Timer::ForwardSendForwardRecv, [out, None], [next, None]));
                ops.push(Op::Backward(at.pass_index(Direction::Backward, k)));
                ops.push(exchange(
                    Timer::BackwardSendBackwardRecv,
                    [gradient, None],
                    [back, None],
                ));
            } else {
                ops.push(Op::Backward(at.pass_index(Direction::Backward, k)));
                ops.push(exchange(
                    Timer::ForwardBackwardSendForwardBackwardRecv,
                    [out, gradient],
                    [next, back],
                ));
            }
        }
        if steady == 0
            && let Some(gradient) = at.first_gradient()
        {
            ops.push(exchange(Timer::BackwardRecv, [None; 2], [Some(gradient), None]));
        }
        for k in steady..total {
            ops.push(Op::Backward(at.pass_index(Direction::Backward, k)));
            ops.push(exchange(
                Timer::BackwardSendBackwardRecv,
                [at.gradient_out(k), None],
                [at.gradient_in(k), None],
            ));
        }
        ops
    }
}

fn exchange(timer: Timer, sends: [Option<Half>; 2], recvs: [Option<Half>; 2]) -> Op {
    Op::Exchange { timer, sends, recvs }
}

/// One stage of a pipeline. Link `i` leads from stage `i` to the next, the last one back to the first.
#[derive(Debug, Clone, Copy)]
struct Stage {
    shape: Interleaved,
    stage: usize,
}

impl Stage {
    fn is_last(self) -> bool {
        self.stage + 1 == self.shape.stages
    }

    /// The link to the stage before.
    fn link_before(self) -> usize {
        self.stage.checked_sub(1).unwrap_or(self.shape.stages - 1)
    }

    fn pass_index(self, direction: Direction, k: usize) -> usize {
        let Pass { chunk, microbatch } = self.shape.pass(direction, k);
        self.shape.index(chunk, microbatch)
    }

    /// The input of the first pass.
    fn receives_first(self) -> Option<Half> {
        Some(self.shape.half(Direction::Forward, self.link_before(), 0, 0))
    }

    /// The first gradient; the last stage makes it itself.
    fn first_gradient(self) -> Option<Half> {
        let chunk = self.shape.chunks - 1;
        (!self.is_last()).then(|| self.shape.half(Direction::Backward, self.stage, chunk, 0))
    }

    /// What the `k`-th forward pass hands on; the model's output stays.
    fn activation_out(self, k: usize) -> Option<Half> {
        let Pass { chunk, microbatch } = self.shape.pass(Direction::Forward, k);
        let output = self.is_last() && chunk + 1 == self.shape.chunks;
        (!output).then(|| self.shape.half(Direction::Forward, self.stage, chunk, microbatch))
    }

    /// What the `k`-th backward pass hands on; the gradient of the model's input is not needed.
    fn gradient_out(self, k: usize) -> Option<Half> {
        let Pass { chunk, microbatch } = self.shape.pass(Direction::Backward, k);
        let upper = if self.stage == 0 { chunk.checked_sub(1)? } else { chunk };
        Some(
            self.shape
                .half(Direction::Backward, self.link_before(), upper, microbatch),
        )
    }

    /// What is received after the `k`-th forward pass: the input of the next one; on the first stage, which runs ahead,
    /// what the last one has made by then.
    fn activation_in(self, k: usize) -> Option<Half> {
        let shape = self.shape;
        if k + 1 == shape.total() {
            return None;
        }
        let made = if self.stage == 0 {
            k.checked_sub(shape.stages - 1)?
        } else {
            k + 1
        };
        let Pass { chunk, microbatch } = shape.pass(Direction::Forward, made);
        if self.stage == 0 && chunk + 1 == shape.chunks {
            return None;
        }
        Some(shape.half(Direction::Forward, self.link_before(), chunk, microbatch))
    }

    /// The same after the `k`-th backward pass, where the last stage runs ahead of the first.
    fn gradient_in(self, k: usize) -> Option<Half> {
        let shape = self.shape;
        if k + 1 == shape.total() {
            return None;
        }
        let made = if self.is_last() {
            k.checked_sub(shape.stages - 1)?
        } else {
            k + 1
        };
        let Pass { chunk, microbatch } = shape.pass(Direction::Backward, made);
        let upper = if self.is_last() { chunk.checked_sub(1)? } else { chunk };
        Some(shape.half(Direction::Backward, self.stage, upper, microbatch))
    }
}

#[cfg(test)]
#[path = "interleaved_tests.rs"]
mod tests;
