//! The program of a pipeline with its gradient reduction, and what each of its operations is.

use std::collections::BTreeMap;

use super::shape::Shape;
use crate::contract::Timer;
use crate::whatif::error::WhatIfError;
use crate::whatif::replay::Program;
use crate::whatif::schedule::{Direction, Flow, Interleaved, Op, Part, one_f_one_b};

/// What an operation is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Task {
    /// A pass of a stage.
    Pass {
        /// The stage.
        stage: usize,
        /// Whether it is a backward one.
        backward: bool,
        /// Its number among the calls of its timer in a step.
        call: usize,
        /// The microbatch that passes.
        microbatch: usize,
        /// Whether the stage loads data in it.
        loads: bool,
    },
    /// One end of a transfer.
    Transfer(usize),
    /// The reduction of gradients of a stage.
    Reduction(usize),
    /// A call that has nothing to do.
    Nothing,
}

/// What the timers around transfers stand for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Recorded {
    /// Calls, each of which may post several transfers: Megatron-LM's own timers.
    Calls,
    /// Sends and receives, one by one: recorders that split fused calls.
    Transfers,
}

/// The timer of a transfer that is recorded alone.
fn alone(direction: Direction, sent: bool) -> Timer {
    match (direction, sent) {
        (Direction::Forward, true) => Timer::ForwardSend,
        (Direction::Forward, false) => Timer::ForwardRecv,
        (Direction::Backward, true) => Timer::BackwardSend,
        (Direction::Backward, false) => Timer::BackwardRecv,
    }
}

/// One end of a transfer as a call of a timer on a stage.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct End {
    /// The stage.
    pub stage: usize,
    /// The timer.
    pub timer: Timer,
    /// Number of the call in a step.
    pub call: usize,
}

/// A transfer between two stages.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Transfer {
    /// Number of the link and direction, `2 * link + direction`; link `i` leads from stage `i` to the next.
    pub way: usize,
    /// The sender's call.
    pub from: End,
    /// The receiver's call.
    pub to: End,
}

/// A pipeline's step.
#[derive(Debug, Clone)]
pub struct Schedule {
    /// Who waits for whom.
    pub program: Program,
    /// What each operation is.
    pub tasks: Vec<Task>,
    /// The transfers.
    pub transfers: Vec<Transfer>,
    /// Links times directions.
    pub ways: usize,
    /// Passes of a stage in one direction.
    pub passes: usize,
    /// Those in which a stage loads data, if it does.
    pub loading_passes: usize,
}

impl Schedule {
    /// The schedule of a shape.
    ///
    /// # Errors
    /// Operations that wait for each other: a shape that no schedule has.
    pub fn new(shape: Shape, recorded: Recorded) -> Result<Self, WhatIfError> {
        let lists: Vec<Vec<Op>> = (0..shape.stages).map(|stage| operations(shape, stage)).collect();
        let mut flow = Flow::new(&lists, false)?;
        let mut tasks = vec![Task::Nothing; flow.parts.len()];
        let mut ends: Vec<Option<End>> = vec![None; flow.parts.len()];
        for (stage, ops) in lists.iter().enumerate() {
            let mut calls = [0; Timer::ALL.len()];
            let mut passes = [0; 2];
            for (op, nodes) in ops.iter().zip(&flow.entries[stage]) {
                for node in nodes.clone() {
                    match flow.parts[node] {
                        Part::Pass { direction, pass, .. } => {
                            let backward = direction == Direction::Backward;
                            tasks[node] = Task::Pass {
                                stage,
                                backward,
                                call: passes[usize::from(backward)],
                                microbatch: pass % shape.microbatches,
                                loads: !backward && loads(shape, stage, pass / shape.microbatches),
                            };
                            passes[usize::from(backward)] += 1;
                        }
                        Part::End { half, sent } => {
                            let timer = match (recorded, op) {
                                (Recorded::Calls, Op::Exchange { timer, .. }) => *timer,
                                _ => alone(half.direction, sent),
                            };
                            let call = calls[timer as usize];
                            calls[timer as usize] += usize::from(recorded == Recorded::Transfers);
                            ends[node] = Some(End { stage, timer, call });
                        }
                        Part::Nothing => {}
                    }
                }
                if let (Recorded::Calls, Op::Exchange { timer, .. }) = (recorded, op) {
                    calls[*timer as usize] += 1;
                }
            }
        }
        let mut transfers = Vec::new();
        for (half, [send, recv]) in &flow.transfers {
            let (Some(from), Some(to)) = (ends[*send], ends[*recv]) else {
                return Err(WhatIfError::Circle { operations: 2 });
            };
            (tasks[*send], tasks[*recv]) = (Task::Transfer(transfers.len()), Task::Transfer(transfers.len()));
            transfers.push(Transfer {
                way: 2 * half.link + usize::from(half.direction == Direction::Backward),
                from,
                to,
            });
        }
        let mut lasts = Vec::new();
        for stage in 0..shape.stages {
            let reduction = flow.builder.push();
            tasks.push(Task::Reduction(stage));
            for earlier in flow.lasts(stage) {
                flow.builder.after(reduction, earlier);
            }
            flow.builder.rendezvous(&[reduction], true);
            lasts.push(reduction);
        }
        let links = if shape.chunks > 1 {
            shape.stages
        } else {
            shape.stages - 1
        };
        Ok(Self {
            program: flow.builder.finish(&lasts)?,
            tasks,
            transfers,
            ways: 2 * links,
            passes: shape.chunks * shape.microbatches,
            loading_passes: shape.microbatches,
        })
    }
}

impl Schedule {
    /// Calls of each timer (by its number) around transfers on each stage in a step.
    #[must_use]
    pub fn calls_of_timers(&self) -> BTreeMap<(usize, usize), usize> {
        let mut counts = BTreeMap::<(usize, usize), usize>::new();
        for end in self.transfers.iter().flat_map(|transfer| [transfer.from, transfer.to]) {
            let count = counts.entry((end.stage, end.timer as usize)).or_default();
            *count = (*count).max(end.call + 1);
        }
        counts
    }

    /// Whether model chunks are interleaved.
    #[must_use]
    pub fn is_interleaved(&self) -> bool {
        self.passes > self.loading_passes
    }
}

/// Data are loaded for the first chunk of the model and for the last, whose labels they are.
fn loads(shape: Shape, stage: usize, chunk: usize) -> bool {
    stage == 0 && chunk == 0 || stage + 1 == shape.stages && chunk + 1 == shape.chunks
}

fn operations(shape: Shape, stage: usize) -> Vec<Op> {
    if shape.chunks == 1 {
        return one_f_one_b(stage, shape.stages, shape.microbatches);
    }
    let interleaved = Interleaved {
        stages: shape.stages,
        chunks: shape.chunks,
        microbatches: shape.microbatches,
        overlap: shape.overlap,
    };
    interleaved.operations(stage)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_schedule_can_be_played() {
        for (stages, chunks, microbatches, overlap) in [
            (1, 1, 1, false),
            (4, 1, 8, false),
            (8, 1, 3, false),
            (4, 2, 8, false),
            (2, 3, 4, true),
        ] {
            let shape = Shape {
                stages,
                chunks,
                microbatches,
                overlap,
            };
            let schedule = Schedule::new(shape, Recorded::Calls).unwrap();
            assert_eq!(schedule.tasks.len(), schedule.program.nodes());
            let passes = schedule
                .tasks
                .iter()
                .filter(|task| matches!(task, Task::Pass { .. }))
                .count();
            assert_eq!(passes, 2 * stages * chunks * microbatches);
            assert!(schedule.transfers.iter().all(|transfer| transfer.way < schedule.ways));
        }
    }
}
