//! Pairs of simulated jobs, the same but for a fault: what the fault is told to cost against what it does, and the cause that the
//! verdict ranks first by it.
//!
//! `WHAT_IF_PAIRS=25 cargo test --release --test what_if_pairs -- --nocapture` judges as many of each kind and tells the
//! wrong ones.

use mt_detector::evaluation::score::simulated_job;
use mt_detector::evaluation::simulate::Scenario;
use mt_detector::evaluation::simulate::faults::{LinkFactor, NodeFactor, RankFactor, RankSeconds, StageFactor};
use mt_detector::job::Job;
use mt_detector::rules::{RulesSettings, judge as judge_by_rules};
use mt_detector::verdict::Cause;
use mt_detector::whatif::timers::{Asked, Fault, Target, WhatIf, what_if};
use rand::{Rng, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;

const WARMUP: u32 = 10;
const KINDS: [&str; 10] = [
    "slow rank",
    "slow rank in a part of the window",
    "slow loader",
    "slow network of a node",
    "slow link",
    "slow sender",
    "slow rank beside a heavy stage",
    "slow rank without a pipeline",
    "slow rank, interleaved",
    "heavy stage",
];
/// The kinds that are asked from sums, where a transfer can't be told from the waiting around it.
const FROM_SUMS: [usize; 8] = [0, 1, 2, 3, 6, 7, 8, 9];

/// How a fault's cost is asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum From {
    Calls,
    Sums,
    /// Calls of a job as noisy as the suite's hard ones.
    HardCalls,
}

/// A job with a fault, the same without it, and the question.
struct Pair {
    with: Scenario,
    without: Scenario,
    fault: Fault,
    /// The causes that may be told: that of the fault, or of what else is in the job where that costs about as much.
    causes: Vec<Cause>,
}

/// Noise like that of the suite's hard jobs.
fn harden(scenario: &mut Scenario, random: &mut Xoshiro256PlusPlus) {
    scenario.noise = random.gen_range(0.008_f64.ln()..0.05_f64.ln()).exp();
    scenario.rank_spread = random.gen_range(0.003..0.01);
    scenario.outliers = if random.gen_bool(0.4) { 0.01 } else { 0.0005 };
    scenario.dirty = if random.gen_bool(0.2) { 0.003 } else { 0.0 };
}

fn pair(kind: usize, seed: u64, from: From) -> Pair {
    let mut random = Xoshiro256PlusPlus::seed_from_u64(1000 * kind as u64 + seed);
    let pick = |random: &mut Xoshiro256PlusPlus, from: &[usize]| from[random.gen_range(0..from.len())];
    let (mut tp, mut pp, mut dp) = (
        pick(&mut random, &[1, 1, 2, 4]),
        pick(&mut random, &[2, 4, 4, 8]),
        pick(&mut random, &[2, 3, 4, 8]),
    );
    if kind == 7 {
        (tp, pp, dp) = (pick(&mut random, &[1, 2]), 1, pick(&mut random, &[8, 16]));
    }
    if kind == 8 {
        pp = pp.max(4);
    }
    if tp * pp * dp > 64 {
        dp = 2;
    }
    if kind == 3 {
        // Where all ranks stand on one node nothing tells what its network should take.
        dp *= 4;
    }
    let microbatches = pp * pick(&mut random, &[1, 2, 4]);
    let stage_seconds = [0.05, 0.1, 0.2][random.gen_range(0..3)];
    let mut without = Scenario {
        tp,
        pp,
        dp,
        microbatches,
        stage_seconds,
        transfer_seconds: stage_seconds * [0.01, 0.02, 0.05][random.gen_range(0..3)],
        noise: random.gen_range(0.006..0.03),
        iterations: WARMUP + random.gen_range(20..40),
        virtual_stages: if kind == 8 { 2 } else { 1 },
        overlap_p2p: kind == 8 && random.gen_bool(0.5),
        qkv: false,
        seed: seed + 17,
        ..Scenario::default()
    };
    if from == From::HardCalls {
        harden(&mut without, &mut random);
    }
    let mut with = without.clone();
    let mut base = without;
    let ranks = with.ranks();
    let stage_size = tp * dp;
    // Ranks of the first stage, of the last, or of any.
    let rank = match random.gen_range(0..3) {
        0 => random.gen_range(0..stage_size),
        1 => ranks - 1 - random.gen_range(0..stage_size),
        _ => random.gen_range(0..ranks),
    };
    let strength = random.gen_range(1.08..2.0);
    let slow = RankFactor { rank, factor: strength };
    let mut when = (None, None);
    let target = match kind {
        2 => {
            let end = if random.gen_bool(0.5) { 0 } else { ranks - stage_size };
            let rank = end + tp * random.gen_range(0..dp);
            let seconds = stage_seconds * random.gen_range(0.1..1.0);
            with.slow_loaders = vec![RankSeconds { rank, seconds }];
            Target::Loading(vec![rank as u32])
        }
        3 => {
            let node = random.gen_range(0..with.nodes());
            let factor = random.gen_range(3.0..20.0);
            with.slow_node_networks = vec![NodeFactor { node, factor }];
            Target::Network(with.ranks_of_node(node).map(|rank| rank as u32).collect())
        }
        4 => {
            let a = random.gen_range(0..ranks - stage_size);
            let factor = random.gen_range(4.0..20.0);
            with.slow_links = vec![LinkFactor {
                a,
                b: a + stage_size,
                factor,
            }];
            Target::Links(vec![(a as u32, (a + stage_size) as u32)])
        }
        5 => {
            let factor = random.gen_range(4.0..20.0);
            with.slow_send = vec![RankFactor { rank, factor }];
            Target::Network(vec![rank as u32])
        }
        9 => {
            let stage = random.gen_range(0..pp);
            with.heavy_stages = vec![StageFactor {
                stage,
                factor: random.gen_range(1.1..1.8),
            }];
            Target::Stages(vec![stage as u32])
        }
        _ => {
            with.slow_ranks = vec![slow];
            if kind == 6 {
                let heavy = vec![StageFactor {
                    stage: random.gen_range(0..pp),
                    factor: random.gen_range(1.1..1.6),
                }];
                with.heavy_stages.clone_from(&heavy);
                base.heavy_stages = heavy;
            }
            Target::Computing(vec![rank as u32])
        }
    };
    if kind == 1 {
        let onset = WARMUP + random.gen_range(4..12);
        with.onset = Some(onset);
        with.until = random.gen_bool(0.5).then_some(onset + 8);
        when = (with.onset.map(i64::from), with.until.map(i64::from));
    }
    let causes = match (&target, kind) {
        (_, 6) => vec![Cause::Compute, Cause::StageImbalance],
        (Target::Loading(_), _) => vec![Cause::DataLoading],
        (Target::Network(_) | Target::Links(_), _) => vec![Cause::Network],
        (Target::Stages(_), _) => vec![Cause::StageImbalance],
        _ => vec![Cause::Compute],
    };
    let fault = Fault {
        target,
        first_iteration: when.0,
        last_iteration: when.1,
        factor: None,
    };
    Pair {
        with,
        without: base,
        fault,
        causes,
    }
}

/// Mean length of the steps that some rank tells: rows of dirty jobs are lost.
fn mean_step(job: &Job) -> f64 {
    let steps = &job.timer("interval-time").expect("every simulated job has it").seconds;
    let of = |step: usize| {
        (0..steps.nrows())
            .map(|rank| steps[(rank, step)])
            .fold(f64::NAN, f64::max)
    };
    let known: Vec<f64> = (0..steps.ncols()).map(of).filter(|seconds| !seconds.is_nan()).collect();
    known.iter().sum::<f64>() / known.len() as f64
}

/// A pair's answers.
struct Judged {
    /// Growth of the steps.
    truth: f64,
    answer: WhatIf,
    /// Whether the cause is right; `None` where the fault costs too little to have to be found.
    cause: Option<bool>,
}

/// A fault that costs less may go unnoticed.
const NOTICED: f64 = 0.05;

fn judge(kind: usize, seed: u64, from: From) -> Judged {
    let Pair {
        mut with,
        mut without,
        fault,
        causes,
    } = pair(kind, seed, from);
    (with.trace, without.trace) = (from != From::Sums, false);
    let job = |scenario: &Scenario| simulated_job(scenario, WARMUP).expect("a job").0;
    let (with, without) = (job(&with), job(&without));
    let truth = mean_step(&with) / mean_step(&without) - 1.0;
    let cause = (truth >= NOTICED).then(|| {
        let told = judge_by_rules(&with, &RulesSettings::default(), &[]).cause;
        if !causes.contains(&told) {
            println!(
                "  {} {seed}: cause {told:?}, not {causes:?}; it costs {truth:.3}",
                KINDS[kind]
            );
        }
        causes.contains(&told)
    });
    Judged {
        truth,
        answer: what_if(&with, &[fault], Asked::default()),
        cause,
    }
}

/// Shares of the pairs whose cost and whose cause are told right.
fn shares_right(from: From) -> (f64, f64) {
    let each: u64 = std::env::var("WHAT_IF_PAIRS")
        .ok()
        .and_then(|count| count.parse().ok())
        .unwrap_or(2);
    let kinds: Vec<usize> = if from == From::Sums {
        FROM_SUMS.to_vec()
    } else {
        (0..KINDS.len()).collect()
    };
    let (mut right, mut all) = (0, 0);
    let (mut causes_right, mut causes) = (0, 0);
    for kind in kinds {
        let (mut of_kind, mut worst_replay) = (0, 0.0_f64);
        for seed in 0..each {
            let Judged { truth, answer, cause } = judge(kind, seed, from);
            let told = answer.faults.first().map(|cost| cost.growth);
            let good = told.is_some_and(|told| (told - truth).abs() <= f64::max(0.015, 0.15 * truth));
            of_kind += u32::from(good);
            worst_replay = worst_replay.max(answer.replay_error.unwrap_or(1.0));
            causes += u32::from(cause.is_some());
            causes_right += u32::from(cause == Some(true));
            if !good {
                println!(
                    "  {} {seed}: told {told:.3?}, true {truth:.3}, replay error {:.4?}, {:?}",
                    KINDS[kind],
                    answer.replay_error,
                    pair(kind, seed, from).fault.target
                );
            }
        }
        println!(
            "{}: {of_kind} of {each}, replay error up to {:.2} %",
            KINDS[kind],
            100.0 * worst_replay
        );
        right += of_kind;
        all += each as u32;
    }
    println!("from {from:?}: costs {right} of {all}, causes {causes_right} of {causes}");
    (
        f64::from(right) / f64::from(all),
        f64::from(causes_right) / f64::from(causes.max(1)),
    )
}

#[test]
fn costs_from_calls_are_those_of_the_pair() {
    let (costs, causes) = shares_right(From::Calls);
    assert!(costs >= 0.97 && causes >= 0.95, "{costs} {causes}");
}

#[test]
fn costs_from_calls_of_noisy_jobs_are_those_of_the_pair() {
    let (costs, causes) = shares_right(From::HardCalls);
    assert!(costs >= 0.95 && causes >= 0.9, "{costs} {causes}");
}

#[test]
fn costs_from_sums_are_near_those_of_the_pair() {
    let (costs, causes) = shares_right(From::Sums);
    assert!(costs >= 0.85 && causes >= 0.9, "{costs} {causes}");
}
