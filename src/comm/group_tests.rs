//! Whole jobs in which collectives are slow, or look so.

use super::samples::{job, with_timer};
use super::{SlowComputing, look};
use crate::job::Job;
use crate::verdict::{Cause, Finding, FindingKind, Persistence};

/// A usual collective, seconds.
const USUAL: f64 = 0.1;

fn findings(job: &Job, slow: &SlowComputing) -> Vec<Finding> {
    look(job, &Persistence::default(), slow).findings
}

fn nobody_is_slow() -> SlowComputing {
    SlowComputing::default()
}

/// Some wait in each group, and one of it comes last.
fn waits(rank: usize, step: usize) -> f64 {
    if (rank + step).is_multiple_of(4) {
        0.0
    } else {
        0.3 + 0.01 * (rank % 5) as f64
    }
}

/// Four stages of four replicas whose gradients take `factor(stage, iteration)` times the usual.
fn reduced(factor: impl Fn(usize, usize) -> f64) -> Job {
    let job = with_timer(
        job([4, 4, 4], 40, |_, _, _| 1.0),
        "grads-reduce-scatter",
        |rank, step| USUAL * factor(rank / 4, step) * (1.0 + 0.01 * ((rank + step) % 3) as f64) + waits(rank, step),
    );
    with_timer(job, "interval-time", |_, _| 10.0)
}

fn only(job: &Job) -> Finding {
    let mut found = findings(job, &nobody_is_slow());
    assert_eq!(found.len(), 1, "{found:?}");
    found.remove(0)
}

#[test]
fn a_slow_collective_of_a_stage_is_told_and_names_no_node() {
    let found = only(&reduced(|stage, _| if stage == 2 { 3.0 } else { 1.0 }));
    assert_eq!((found.kind, found.cause), (FindingKind::SlowNetwork, Cause::Network));
    assert_eq!((found.named, found.names_nodes), (false, false));
    assert_eq!(
        (found.stages.as_slice(), found.ranks.as_slice()),
        (&[2][..], &[8, 9, 10, 11][..])
    );
    assert!((found.factor.expect("a factor") - 3.0).abs() < 0.2);
    assert!((found.cost.expect("a cost") - 0.02).abs() < 0.005);
    assert!(
        found.says.starts_with("the network of stage 2 is slow"),
        "{}",
        found.says
    );
}

#[test]
fn what_is_even_or_costs_nothing_is_no_fault() {
    assert_eq!(findings(&reduced(|_, _| 1.0), &nobody_is_slow()), []);
    // Embeddings make the first and the last stage alike.
    let ends = |stage: usize, _| if stage == 0 || stage == 3 { 1.9 } else { 1.0 };
    assert_eq!(findings(&reduced(ends), &nobody_is_slow()), []);
    let mut short = reduced(|stage, _| if stage == 2 { 3.0 } else { 1.0 });
    short = with_timer(
        Job {
            timers: short
                .timers
                .into_iter()
                .filter(|timer| timer.name != "interval-time")
                .collect(),
            ..short
        },
        "interval-time",
        |_, _| 1000.0,
    );
    assert_eq!(findings(&short, &nobody_is_slow()), [], "0.02 % of the step");
}

#[test]
fn a_stage_with_more_layers_reduces_more() {
    let more = |stage: usize| if stage == 2 { 2.0 } else { 1.0 };
    let heavy = |work: f64| {
        let job = reduced(move |stage, _| more(stage));
        with_timer(
            job,
            "forward-compute",
            move |rank, _| if rank / 4 == 2 { work } else { 1.0 },
        )
    };
    assert_eq!(findings(&heavy(2.0), &nobody_is_slow()), []);
    assert_eq!(findings(&heavy(1.0), &nobody_is_slow()).len(), 1);
}

#[test]
fn a_rank_that_computes_slowly_explains_its_collective() {
    let slow = reduced(|stage, _| if stage == 2 { 3.0 } else { 1.0 });
    assert_eq!(findings(&slow, &SlowComputing::of_ranks([9])), []);
    let told = look(&slow, &Persistence::default(), &SlowComputing::of_ranks([9])).summary;
    assert!(told.contains("as its computing is slow"), "{told}");
    assert_eq!(
        findings(&slow, &SlowComputing::of_ranks([1])).len(),
        1,
        "of another stage"
    );
}

#[test]
fn a_change_in_time_needs_no_peers() {
    // The first stage takes longer all the time, and twice that from some step on.
    let late = only(&reduced(|stage, step| match (stage, step >= 25) {
        (0, true) => 2.0,
        (1, _) => 1.4,
        _ => 1.0,
    }));
    assert_eq!((late.stages.as_slice(), late.onset), (&[0][..], Some(25)));
    assert!(late.says.contains("as long as before"), "{}", late.says);
    let all = only(&reduced(|_, step| if step >= 25 { 3.0 } else { 1.0 }));
    assert_eq!(
        (all.kind, all.ranks.len(), all.onset),
        (FindingKind::JobWide, 0, Some(25))
    );
    let short = reduced(|_, step| if step == 25 { 30.0 } else { 1.0 });
    assert_eq!(findings(&short, &nobody_is_slow()), []);
}

/// TP 2, CP 2, DP 4, one stage, as Megatron-LM orders ranks; a slow rank makes all others of its lane wait, on either
/// context-parallel position.
fn with_context() -> Job {
    let mut job = job([1, 16, 8], 20, |_, _, _| 1.0);
    for (rank, place) in job.topology.places.iter_mut().enumerate() {
        (place.pipeline, place.member) = (rank as u32 / 4, rank as u32 % 4);
    }
    let sizes = [("tp", 2), ("cp", 2), ("dp", 4), ("pp", 1)];
    job.topology.sizes = sizes.map(|(axis, size)| (axis.to_owned(), size)).into();
    let lane = |rank: usize, step: usize| {
        if rank / 2 == 2 {
            0.0
        } else {
            1.2 + 0.01 * ((rank + step) % 7) as f64
        }
    };
    with_timer(job, "all-grads-sync", move |rank, step| 0.15 + lane(rank, step))
}

#[test]
fn a_slow_rank_of_a_context_parallel_job_is_no_slow_network() {
    assert_eq!(findings(&with_context(), &nobody_is_slow()), []);
    // Nor where only the timers tell the places.
    let mut inferred = with_context();
    inferred.topology.sizes = [("tp", 4), ("dp", 4), ("pp", 1)]
        .map(|(axis, size)| (axis.to_owned(), size))
        .into();
    inferred.topology.origin = crate::job::TopologyOrigin::Inferred {
        sure: 0.9,
        from: String::new(),
    };
    assert_eq!(findings(&inferred, &nobody_is_slow()), []);
}

#[test]
fn expert_groups_are_compared_where_a_barrier_takes_the_waiting_out() {
    let mut job = job([1, 32, 8], 20, |_, _, _| 1.0);
    job.topology.sizes = [("dp", 32), ("ep", 8), ("pp", 1)]
        .map(|(axis, size)| (axis.to_owned(), size))
        .into();
    // The ranks with the same experts differ by 8; those of number 3 reduce theirs slowly.
    let sync = |wait: fn(usize, usize) -> f64| {
        move |rank: usize, step: usize| {
            let own = if rank % 8 == 3 { 0.4 } else { 0.1 };
            own * (1.0 + 0.01 * ((rank + step) % 3) as f64) + wait(rank, step)
        }
    };
    let clone = |job: &Job| job.topology.clone();
    let topology = clone(&job);
    let told = only(&with_timer(job, "all-grads-sync", sync(|_, _| 0.0)));
    assert_eq!(told.ranks, [3, 11, 19, 27]);
    assert!(told.says.contains("expert-data-parallel"), "{}", told.says);
    // With waiting in it the whole group tells nothing of them.
    let mut job = super::samples::job([1, 32, 8], 20, |_, _, _| 1.0);
    job.topology = topology;
    let waiting = with_timer(job, "all-grads-sync", sync(waits));
    assert_eq!(findings(&waiting, &nobody_is_slow()), []);
}

#[test]
fn embedding_groups_are_those_of_the_first_and_the_last_stage() {
    let sound = with_timer(
        job([4, 4, 4], 20, |_, _, _| 1.0),
        "embedding-grads-all-reduce",
        |rank, step| {
            // The last stage waits for the first.
            match rank / 4 {
                0 => 0.1 + 0.001 * ((rank + step) % 3) as f64,
                3 => 2.0 + rank as f64,
                _ => 0.0,
            }
        },
    );
    assert_eq!(findings(&sound, &nobody_is_slow()), []);
}

#[test]
fn groups_without_rows_of_all_members_tell_nothing() {
    let mut slow = reduced(|stage, _| if stage == 2 { 3.0 } else { 1.0 });
    slow.topology.sizes.insert("dp".to_owned(), 8);
    assert_eq!(findings(&slow, &nobody_is_slow()), []);
}

#[test]
fn instances_of_the_distributed_optimizer_gather_apart() {
    let mut job = job([1, 16, 8], 20, |_, _, _| 1.0);
    job.topology.sizes = [("dp", 16), ("pp", 1)]
        .map(|(axis, size)| (axis.to_owned(), size))
        .into();
    let even = |rank: usize, step: usize| USUAL * (1.0 + 0.01 * ((rank + step) % 3) as f64);
    let gathers = move |rank: usize, step: usize| even(rank, step) * if rank / 4 == 2 { 3.0 } else { 1.0 };
    let with = |job: Job, wait: fn(usize, usize) -> f64| {
        let job = with_timer(job, "all-grads-sync", move |rank, step| {
            even(rank, step) + wait(rank, step)
        });
        with_timer(job, "params-all-gather", gathers)
    };
    let topology = job.topology.clone();
    let told = only(&with(job, |_, _| 0.0));
    assert_eq!(told.ranks, [8, 9, 10, 11]);
    // Without barriers the others may have come early.
    let mut job = super::samples::job([1, 16, 8], 20, |_, _, _| 1.0);
    job.topology = topology;
    assert_eq!(findings(&with(job, waits), &nobody_is_slow()), []);
}
