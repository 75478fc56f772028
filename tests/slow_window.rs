//! Slow windows on simulated jobs: found where the fault is, and nowhere else.

#![allow(clippy::unwrap_used, reason = "a test that can't go on fails")]

use mt_detector::contract::defaults::SLOWDOWN_THRESHOLD;
use mt_detector::evaluation::score::simulated_job;
use mt_detector::evaluation::simulate::Scenario;
use mt_detector::evaluation::simulate::faults::{RankFactor, Rerun, Stall, Transient};
use mt_detector::job::{Job, StepTimes, slow_windows};

/// How far from the truth either end of a window may be, in iterations.
const NEAR: i64 = 3;
const JOBS: u64 = 70;

/// A small repeatable number for a seed: `place` tells the draws of a job apart.
fn draw(seed: u64, place: u64, end: u64) -> u64 {
    let mut state = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ place.wrapping_mul(0xd1b5_4a32_d192_ed03);
    for _ in 0..3 {
        state ^= state >> 29;
        state = state.wrapping_mul(0xbf58_476d_1ce4_e5b9);
    }
    (state >> 33) % end
}

/// A healthy job of 60 to 100 iterations, its noise from that of a quiet job to that of a very noisy one.
fn healthy(seed: u64) -> Scenario {
    let shapes = [(1, 1, 16), (2, 2, 4), (4, 1, 4), (4, 2, 2), (1, 4, 8), (2, 1, 8)];
    let (pp, tp, dp) = shapes[draw(seed, 1, 6) as usize];
    Scenario {
        pp,
        tp,
        dp,
        seed,
        trace: false,
        microbatches: [4, 8][draw(seed, 2, 2) as usize],
        iterations: 60 + draw(seed, 3, 41) as u32,
        noise: [0.006, 0.01, 0.02, 0.05][draw(seed, 4, 4) as usize],
        outliers: [0.0, 0.0, 0.01][draw(seed, 5, 3) as usize],
        dirty: [0.0, 0.0, 0.003][draw(seed, 6, 3) as usize],
        ..Scenario::default()
    }
}

fn step_times(scenario: &Scenario) -> StepTimes {
    slow_windows(&simulated_job(scenario, 10).unwrap().0, SLOWDOWN_THRESHOLD)
}

#[test]
fn windows_are_where_the_fault_is() {
    let mut right = 0;
    let mut wrong = Vec::new();
    for seed in 0..JOBS {
        let job = healthy(seed);
        let rank = draw(seed, 10, job.ranks() as u64) as usize;
        // From the very beginning, in the middle, or until the end.
        let (onset, until) = match seed % 4 {
            0 => (1, 20 + draw(seed, 11, 20) as u32),
            1 => (25 + draw(seed, 11, 25) as u32, job.iterations),
            _ => {
                let onset = 20 + draw(seed, 11, 15) as u32;
                (onset, onset + 6 + draw(seed, 12, 15) as u32)
            }
        };
        let scenario = Scenario {
            slow_ranks: vec![RankFactor {
                rank,
                factor: [1.7, 2.0, 2.5][draw(seed, 13, 3) as usize],
            }],
            onset: Some(onset),
            until: Some(until),
            ..job
        };
        let times = step_times(&scenario);
        let truth = (i64::from(onset.max(11)), i64::from(until));
        let near = |found: (i64, i64)| (found.0 - truth.0).abs() <= NEAR && (found.1 - truth.1).abs() <= NEAR;
        let found: Vec<(i64, i64)> = times.windows.iter().map(|window| (window.first, window.last)).collect();
        if found.len() == 1 && near(found[0]) {
            right += 1;
        } else {
            wrong.push(format!("seed {seed}: {truth:?}, found {found:?}"));
        }
    }
    println!(
        "{right} of {JOBS} windows within {NEAR} iterations\n{}",
        wrong.join("\n")
    );
    assert!(100 * right >= 95 * JOBS, "{right} of {JOBS}:\n{}", wrong.join("\n"));
}

#[test]
fn healthy_jobs_have_none() {
    let mut wrong = Vec::new();
    for seed in 1000..1000 + JOBS {
        let job = healthy(seed);
        let transients = (0..draw(seed, 20, 3)).map(|place| Transient {
            rank: draw(seed, 30 + place, job.ranks() as u64) as usize,
            factor: [2.0, 3.0][draw(seed, 40 + place, 2) as usize],
            // Far enough apart not to follow one another.
            from: 15 + 25 * place as u32 + draw(seed, 50 + place, 15) as u32,
            count: 1 + draw(seed, 60 + place, 3) as u32,
        });
        let times = step_times(&Scenario {
            transients: transients.collect(),
            ..job
        });
        if !times.windows.is_empty() || times.drift.is_some() || !times.stalls.is_empty() {
            wrong.push(format!("seed {seed}: {times:?}"));
        }
    }
    println!(
        "{} of {JOBS} healthy jobs with a window, a drift or a stall",
        wrong.len()
    );
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn stalls_and_restarts_are_told_apart() {
    let mut stalled = healthy(7);
    stalled.stalls = vec![
        Stall {
            iteration: 30,
            seconds: 75.0,
        },
        Stall {
            iteration: 40,
            seconds: 30.0,
        },
    ];
    let times = step_times(&stalled);
    let told: Vec<i64> = times.stalls.iter().map(|stall| stall.iteration).collect();
    assert_eq!(
        (told, times.windows.len(), times.restarts.len()),
        (vec![30, 40], 0, 0),
        "{times:?}"
    );

    let mut restarted = healthy(8);
    restarted.rerun = Some(Rerun { from: 40, lost: None });
    let times = step_times(&restarted);
    assert_eq!((times.stalls.len(), times.windows.len()), (0, 0), "{times:?}");
    let [restart] = times.restarts.as_slice() else {
        panic!("one restart: {times:?}");
    };
    assert_eq!(
        (restart.iteration, restart.repeated),
        (40, i64::from(restarted.iterations) - 39)
    );
    assert!(restart.seconds.is_some_and(|seconds| seconds > 600.0));
}

#[test]
fn without_interval_time_the_compute_timers_tell() {
    let scenario = Scenario {
        slow_ranks: vec!["3:2".parse().unwrap()],
        onset: Some(30),
        until: Some(40),
        iterations: 60,
        trace: false,
        ..Scenario::default()
    };
    let (mut job, _): (Job, _) = simulated_job(&scenario, 10).unwrap();
    job.timers.retain(|timer| timer.name != "interval-time");
    let times = slow_windows(&job, SLOWDOWN_THRESHOLD);
    assert_eq!(
        (times.windows.len(), times.windows[0].first, times.windows[0].last),
        (1, 30, 40)
    );
    let cut = job.window(times.windows[0].range());
    assert_eq!((cut.iterations.len(), cut.timers.len()), (11, job.timers.len()));
}
