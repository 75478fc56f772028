//! Interleaved schedules of many shapes, run with rendezvous.

use std::collections::BTreeSet;

use super::rendezvous::{Call, Pipeline, Schedule};
use crate::contract::Timer;
use crate::whatif::schedule::{Direction, Half, Interleaved, Op};

fn shapes() -> impl Iterator<Item = Interleaved> {
    let sizes = [2, 3, 4, 5, 8, 16];
    sizes.into_iter().flat_map(|stages| {
        [2, 3, 4].into_iter().flat_map(move |chunks| {
            [1, 2, 3, 5].into_iter().flat_map(move |groups| {
                [false, true].into_iter().map(move |overlap| Interleaved {
                    stages,
                    chunks,
                    microbatches: groups * stages,
                    overlap,
                })
            })
        })
    })
}

fn lists(shape: Interleaved) -> Vec<Vec<Op>> {
    (0..shape.stages).map(|stage| shape.operations(stage)).collect()
}

/// A pipeline whose passes and transfers all differ.
fn uneven(shape: Interleaved) -> Pipeline {
    let mut pipeline = Pipeline::new(shape.stages, shape.stages, 1, shape.chunks * shape.microbatches);
    let vary = |durations: &mut [f64], base: f64| {
        for (i, duration) in durations.iter_mut().enumerate() {
            *duration = base * (1.0 + 0.1 * ((i * 7919) % 13) as f64);
        }
    };
    vary(&mut pipeline.forward, 1.0);
    vary(&mut pipeline.backward, 2.0);
    vary(&mut pipeline.transfers, 0.01);
    pipeline
}

fn run(shape: Interleaved) -> (Vec<Call>, Pipeline) {
    let pipeline = uneven(shape);
    let mut calls = Vec::new();
    pipeline.run(&Schedule::new(lists(shape)).expect("a schedule"), |call| {
        calls.push(call)
    });
    (calls, pipeline)
}

fn halves(ops: &[Op], sent: bool, direction: Direction, link: usize) -> Vec<Half> {
    let of = |op: &Op| match op {
        Op::Exchange { sends, recvs, .. } => {
            if sent {
                *sends
            } else {
                *recvs
            }
        }
        _ => [None; 2],
    };
    ops.iter()
        .flat_map(of)
        .flatten()
        .filter(|half| half.direction == direction && half.link == link)
        .collect()
}

#[test]
fn every_pass_runs_once_and_sends_meet_receives_in_order() {
    for shape in shapes() {
        let lists = lists(shape);
        for ops in &lists {
            let passes = |forward: bool| -> BTreeSet<usize> {
                let of = |op: &Op| match *op {
                    Op::Forward(k) if forward => Some(k),
                    Op::Backward(k) if !forward => Some(k),
                    _ => None,
                };
                ops.iter().filter_map(of).collect()
            };
            let all: BTreeSet<usize> = (0..(shape.chunks * shape.microbatches)).collect();
            assert_eq!((passes(true), passes(false)), (all.clone(), all), "{shape:?}");
        }
        for link in 0..shape.stages {
            let (up, down) = (&lists[link], &lists[(link + 1) % shape.stages]);
            let chunks = if link + 1 == shape.stages {
                shape.chunks - 1
            } else {
                shape.chunks
            };
            for (direction, from, to) in [(Direction::Forward, up, down), (Direction::Backward, down, up)] {
                let sends = halves(from, true, direction, link);
                assert_eq!(sends, halves(to, false, direction, link), "{shape:?} link {link}");
                assert_eq!(sends.len(), chunks * shape.microbatches);
            }
        }
    }
}

#[test]
fn no_shape_gets_stuck_and_time_is_conserved() {
    for shape in shapes() {
        let (calls, pipeline) = run(shape);
        let operations: usize = lists(shape).iter().map(Vec::len).sum();
        assert_eq!(calls.len(), operations, "{shape:?}");
        for stage in 0..shape.stages {
            let mut clock = 0.0;
            for call in calls.iter().filter(|call| call.stage == stage) {
                assert!(
                    (call.start - clock).abs() < 1e-9 && call.end >= call.start,
                    "{shape:?} {call:?}"
                );
                clock = call.end;
            }
            let busy = |timer: Timer| -> f64 {
                let own = calls.iter().filter(|call| call.stage == stage && call.timer == timer);
                own.map(|call| call.end - call.start).sum()
            };
            let passes = shape.chunks * shape.microbatches;
            let range = stage * passes..(stage + 1) * passes;
            let work: f64 = pipeline.forward[range.clone()].iter().sum();
            assert!((busy(Timer::ForwardCompute) - work).abs() < 1e-6, "{shape:?}");
            let work: f64 = pipeline.backward[range].iter().sum();
            assert!((busy(Timer::BackwardCompute) - work).abs() < 1e-6, "{shape:?}");
        }
    }
}

/// The call that carries each half, by operation list.
fn carriers(shape: Interleaved, calls: &[Call], sent: bool, half: Half) -> Option<Call> {
    for (stage, ops) in lists(shape).iter().enumerate() {
        let own = calls.iter().filter(|call| call.stage == stage);
        for (op, call) in ops.iter().zip(own) {
            if let Op::Exchange { sends, recvs, .. } = op {
                let halves = if sent { sends } else { recvs };
                if halves.contains(&Some(half)) {
                    return Some(*call);
                }
            }
        }
    }
    None
}

#[test]
fn the_shorter_of_two_ends_holds_the_transfer() {
    for overlap in [false, true] {
        let shape = Interleaved {
            stages: 4,
            chunks: 2,
            microbatches: 8,
            overlap,
        };
        let (calls, pipeline) = run(shape);
        let all: Vec<Half> = lists(shape)
            .iter()
            .flatten()
            .filter_map(|op| match op {
                Op::Exchange { sends, .. } => Some(*sends),
                _ => None,
            })
            .flatten()
            .flatten()
            .collect();
        assert_eq!(all.len(), 2 * (3 * 2 + 1) * 8);
        for half in all {
            let send = carriers(shape, &calls, true, half).unwrap();
            let recv = carriers(shape, &calls, false, half).unwrap();
            // Both calls hold the transfer whole, and begin before it and end with or after it.
            let begin = send.start.max(recv.start);
            let end = begin + pipeline.transfers[pipeline.transfer(half, 0)];
            assert!(send.end >= end - 1e-9 && recv.end >= end - 1e-9, "{half:?}");
        }
    }
}

#[test]
fn timers_by_stage() {
    let names = |shape: Interleaved, stage: usize| -> BTreeSet<&'static str> {
        let of = |op: &Op| match op {
            Op::Exchange { timer, .. } => Some(timer.name()),
            _ => None,
        };
        shape.operations(stage).iter().filter_map(of).collect()
    };
    let shape = |microbatches, overlap| Interleaved {
        stages: 4,
        chunks: 2,
        microbatches,
        overlap,
    };
    let fused = [
        "backward-send-backward-recv",
        "forward-backward-send-forward-backward-recv",
        "forward-send-forward-recv",
    ];
    let split = ["backward-send-backward-recv", "forward-send-forward-recv"];
    for stage in 0..4 {
        let first = (stage > 0).then_some("forward-recv");
        let with = |names: &[&'static str]| names.iter().copied().chain(first).collect::<BTreeSet<_>>();
        assert_eq!(names(shape(8, false), stage), with(&fused));
        assert_eq!(names(shape(8, true), stage), with(&split));
    }
    let plain = |stage: usize| {
        let ops = shape(8, false).operations(stage);
        let once = |op: &&Op| matches!(op, Op::Exchange { timer, .. } if *timer == Timer::ForwardRecv);
        ops.iter().filter(once).count()
    };
    assert_eq!((0..4).map(plain).collect::<Vec<_>>(), [0, 1, 1, 1]);
    // As many microbatches as stages: on the first stage all of them fit into the warm-up.
    assert!(names(shape(4, false), 0).contains("backward-recv"));
}

#[test]
fn an_ideal_pipeline_has_the_shorter_bubble() {
    let shape = Interleaved {
        stages: 4,
        chunks: 2,
        microbatches: 8,
        overlap: false,
    };
    let mut pipeline = Pipeline::new(4, 4, 1, shape.chunks * shape.microbatches);
    pipeline.forward.fill(0.5);
    pipeline.backward.fill(1.0);
    let end = pipeline
        .run(&Schedule::new(lists(shape)).expect("a schedule"), |_| ())
        .into_iter()
        .fold(0.0, f64::max);
    // Work of 8 microbatches, and the bubble of 3 stages' chunks; calls without any transfer take a moment.
    assert!((end - (24.0 + 4.5)).abs() < 0.01, "{end}");
}
