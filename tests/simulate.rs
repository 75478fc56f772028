//! The simulator through its library interface: jobs in memory and on disk.

#![allow(clippy::unwrap_used, reason = "a test that can't go on fails")]

use std::collections::{BTreeMap, BTreeSet};

use mt_detector::evaluation::simulate::faults::{LinkFactor, NodeFactor, RankFactor, RankSeconds, Rerun, Stall};
use mt_detector::evaluation::simulate::{LABELS, Scenario, SimulateError, Simulated, WriteError, simulate, write_job};
use mt_detector::evaluation::suite::{NoiseLevel, kind_of};
use polars::prelude::*;

fn small() -> Scenario {
    Scenario {
        pp: 4,
        tp: 2,
        dp: 2,
        iterations: 14,
        microbatches: 6,
        ..Scenario::default()
    }
}

#[derive(Debug, Clone)]
struct Row {
    metric: String,
    timer: String,
    rank: i32,
    iteration: i32,
    run: String,
    values: Vec<f64>,
}

fn rows(job: &Simulated) -> Vec<Row> {
    let f = &job.frame;
    let text = |name: &str| -> Vec<String> {
        let column = f.column(name).unwrap().str().unwrap().clone();
        column.iter().flatten().map(str::to_owned).collect()
    };
    let int = |name: &str| -> Vec<i32> {
        let column = f.column(name).unwrap().i32().unwrap().clone();
        column.into_no_null_iter().collect()
    };
    let lists = f.column("metric_values").unwrap().list().unwrap().clone();
    let lists: Vec<Vec<f64>> = (0..lists.len())
        .map(|i| {
            let list = lists.get_as_series(i).unwrap();
            list.f64().unwrap().into_no_null_iter().collect()
        })
        .collect();
    let (metric, timer, run) = (text("metric_name"), text("subname"), text("rerun_uuid"));
    let (rank, iteration) = (int("rank"), int("iteration"));
    (0..f.height())
        .map(|i| Row {
            metric: metric[i].clone(),
            timer: timer[i].clone(),
            rank: rank[i],
            iteration: iteration[i],
            run: run[i].clone(),
            values: lists[i].clone(),
        })
        .collect()
}

/// Means over the iterations after start-up.
fn means(job: &Simulated, timer: &str) -> BTreeMap<i32, f64> {
    let mut sums: BTreeMap<i32, (f64, f64)> = BTreeMap::new();
    for row in rows(job) {
        if row.metric == "megatron_timers" && row.timer == timer && row.iteration > 10 {
            let sum = sums.entry(row.rank).or_default();
            sum.0 += row.values[0];
            sum.1 += 1.0;
        }
    }
    sums.into_iter().map(|(r, (sum, n))| (r, sum / n)).collect()
}

fn slow(rank: usize, factor: f64) -> Vec<RankFactor> {
    vec![RankFactor { rank, factor }]
}

#[test]
fn a_job_has_the_schema_and_every_iteration() {
    let job = simulate(&small()).unwrap();
    let names: Vec<&str> = job
        .frame
        .get_column_names()
        .into_iter()
        .map(|name| name.as_str())
        .collect();
    assert_eq!(
        names,
        [
            "timestamp",
            "job",
            "metric_name",
            "subname",
            "rank",
            "iteration",
            "node",
            "cluster",
            "metric_values",
            "attributes",
            "rerun_uuid"
        ]
    );
    let timestamp = job.frame.column("timestamp").unwrap().dtype().clone();
    assert_eq!(timestamp, DataType::Datetime(TimeUnit::Milliseconds, None));
    let rows = rows(&job);
    let iterations: BTreeSet<i32> = rows.iter().map(|r| r.iteration).collect();
    assert_eq!(iterations, (1..=14).collect());
    assert!(rows.windows(2).all(|w| w[0].iteration <= w[1].iteration));
    let timers: BTreeSet<_> = rows
        .iter()
        .filter(|r| r.metric == "megatron_timers")
        .map(|r| r.timer.clone())
        .collect();
    assert!(timers.len() >= 12, "{timers:?}");
}

#[test]
fn timers_follow_the_stage() {
    let job = simulate(&small()).unwrap();
    let on = |timer: &str| -> BTreeSet<i32> {
        // Default order: 4 ranks a stage.
        means(&job, timer).keys().map(|rank| rank / 4).collect()
    };
    assert_eq!(on("forward-recv"), BTreeSet::from([1, 2, 3]));
    assert_eq!(on("backward-send"), BTreeSet::from([1, 2, 3]));
    assert_eq!(on("forward-send"), BTreeSet::from([0, 1, 2]));
    assert_eq!(on("backward-recv"), BTreeSet::from([0, 1, 2]));
    assert_eq!(on("batch-generator"), BTreeSet::from([0, 3]));
    assert_eq!(on("forward-compute").len(), 4);
}

#[test]
fn peers_share_compute_and_only_qkv_is_a_ranks_own() {
    let mut scenario = small();
    scenario.slow_ranks = slow(5, 1.5);
    let job = simulate(&scenario).unwrap();
    let forward = means(&job, "forward-compute");
    assert!((forward[&5] / forward[&4] - 1.0).abs() < 0.001);
    assert!(forward[&5] / forward[&6] > 1.4);
    let qkv = means(&job, "self-attention-linear-qkv");
    assert!(qkv[&5] / qkv[&4] > 1.4);
    assert!((qkv[&4] / qkv[&6] - 1.0).abs() < 0.05);
}

#[test]
fn the_last_to_arrive_waits_least() {
    let mut scenario = small();
    scenario.slow_ranks = slow(6, 1.5);
    let job = simulate(&scenario).unwrap();
    let sync = means(&job, "all-grads-sync");
    assert!(sync[&6] < 0.2 && sync[&4] > 2.0 * sync[&6], "{sync:?}");
    for row in rows(&job).iter().filter(|r| r.timer == "interval-time") {
        let first = rows(&job)
            .iter()
            .find(|r| r.timer == "interval-time" && r.iteration == row.iteration)
            .map(|r| r.values[0]);
        assert_eq!(Some(row.values[0]), first);
        if row.iteration > 2 {
            break;
        }
    }
}

#[test]
fn traces_add_up_to_the_timer() {
    let job = simulate(&small()).unwrap();
    let rows = rows(&job);
    let timers: BTreeMap<_, f64> = rows
        .iter()
        .filter(|r| r.metric == "megatron_timers")
        .map(|r| ((r.timer.clone(), r.rank, r.iteration), r.values[0]))
        .collect();
    let mut traced = 0;
    for row in rows.iter().filter(|r| r.metric == "megatron_timers_trace") {
        let sum: f64 = row.values.chunks(2).map(|call| call[1] - call[0]).sum();
        let timer = timers[&(row.timer.clone(), row.rank, row.iteration)];
        assert!((sum - timer).abs() < 1e-4, "{row:?}");
        traced += 1;
    }
    assert!(traced > 0);
}

#[test]
fn without_a_pipeline_enough_timers_are_left() {
    let mut scenario = small();
    scenario.pp = 1;
    scenario.optimizer_timers = true;
    let job = simulate(&scenario).unwrap();
    let timers: BTreeSet<String> = rows(&job)
        .into_iter()
        .filter(|r| r.metric == "megatron_timers")
        .map(|r| r.timer)
        .collect();
    assert!(timers.len() >= 12, "{timers:?}");
    assert!(!timers.contains("forward-send"));
}

#[test]
fn slow_loaders_show_in_their_own_timer() {
    let mut scenario = small();
    scenario.slow_loaders = vec![RankSeconds { rank: 2, seconds: 0.1 }];
    let load = means(&simulate(&scenario).unwrap(), "batch-generator");
    assert!((load[&2] - load[&0] - 0.6).abs() < 0.05, "{load:?}");
    assert!((load[&3] / load[&2] - 1.0).abs() < 0.001);
}

#[test]
fn restarts_repeat_iterations_with_the_lost_fault() {
    let mut scenario = small();
    scenario.slow_ranks = slow(1, 1.5);
    let lost = Some(RankFactor { rank: 8, factor: 2.0 });
    scenario.rerun = Some(Rerun { from: 12, lost });
    scenario.stalls = vec![Stall {
        iteration: 13,
        seconds: 30.0,
    }];
    let job = simulate(&scenario).unwrap();
    assert_eq!(job.label.slow_ranks, [1]);
    let rows = rows(&job);
    let at = |run: &str, rank: i32, timer: &str| -> f64 {
        rows.iter()
            .find(|r| {
                r.metric == "megatron_timers"
                    && r.timer == timer
                    && (r.run.as_str(), r.rank, r.iteration) == (run, rank, 13)
            })
            .unwrap()
            .values[0]
    };
    let qkv = "self-attention-linear-qkv";
    assert!(at("r0", 8, qkv) > 1.4 * at("r0", 1, qkv));
    assert!(at("r1", 1, qkv) > 1.2 * at("r1", 8, qkv));
    assert!(at("r1", 0, "interval-time") > 30.0);
    let again: BTreeSet<i32> = rows.iter().filter(|r| r.run == "r1").map(|r| r.iteration).collect();
    assert_eq!(again, BTreeSet::from([12, 13, 14]));
}

#[test]
fn dirt_is_there_in_small_doses() {
    let mut scenario = small();
    scenario.dirty = 0.02;
    let job = simulate(&scenario).unwrap();
    let clean = simulate(&small()).unwrap();
    let timers: Vec<Row> = rows(&job)
        .into_iter()
        .filter(|r| r.metric == "megatron_timers")
        .collect();
    assert!(timers.iter().any(|r| r.values[0].is_nan()));
    assert!(timers.iter().any(|r| r.values[0] < 0.0));
    let zeros: BTreeSet<i32> = timers.iter().filter(|r| r.values[0] == 0.0).map(|r| r.rank).collect();
    assert_eq!(zeros.len(), 5);
    let keys: BTreeSet<_> = timers.iter().map(|r| (r.timer.clone(), r.rank, r.iteration)).collect();
    assert!(keys.len() < timers.len(), "doubled rows");
    assert!(job.frame.height() < clean.frame.height(), "lost rows");
}

/// Calls of a timer on a rank in an iteration, as durations.
fn calls(rows: &[Row], timer: &str, rank: i32, iteration: i32) -> Vec<f64> {
    let own = rows.iter().find(|r| {
        r.metric == "megatron_timers_trace" && r.timer == timer && (r.rank, r.iteration) == (rank, iteration)
    });
    own.map_or(Vec::new(), |row| {
        row.values.chunks(2).map(|call| call[1] - call[0]).collect()
    })
}

/// Mean of the shorter ends of a sending and a receiving timer's calls between two ranks, over the last iterations.
fn transfer(rows: &[Row], (send, from): (&str, i32), (recv, to): (&str, i32)) -> f64 {
    let mut shorter = Vec::new();
    for iteration in 11..=14 {
        let (sends, recvs) = (calls(rows, send, from, iteration), calls(rows, recv, to, iteration));
        shorter.extend(sends.iter().zip(&recvs).map(|(send, recv)| send.min(*recv)));
    }
    shorter.iter().sum::<f64>() / shorter.len() as f64
}

fn forward(rows: &[Row], from: i32, to: i32) -> f64 {
    transfer(rows, ("forward-send", from), ("forward-recv", to))
}

fn backward(rows: &[Row], from: i32, to: i32) -> f64 {
    transfer(rows, ("backward-send", from), ("backward-recv", to))
}

#[test]
fn a_slow_node_network_slows_its_links_and_collectives() {
    let mut scenario = small();
    // Stages 0 and 1 on the first node, 2 and 3 on the second.
    scenario.slow_node_networks = vec![NodeFactor { node: 1, factor: 10.0 }];
    scenario.onset = Some(11);
    let job = simulate(&scenario).unwrap();
    assert_eq!(
        (job.label.kind.as_str(), job.label.cause.as_str()),
        ("node-network", "network")
    );
    assert_eq!(job.label.slow_nodes, ["gpu-001"]);
    let rows = rows(&job);
    for (from, to, slow) in [(0, 4, false), (4, 8, true), (8, 12, true)] {
        assert_eq!(forward(&rows, from, to) > 0.025, slow, "{from} to {to}");
        assert!((0.003..0.06).contains(&forward(&rows, from, to)));
    }
    let sync = means(&job, "all-grads-sync");
    let least = |ranks: [i32; 2]| ranks.map(|rank| sync[&rank]).into_iter().fold(f64::MAX, f64::min);
    assert!(least([0, 2]) < 0.3 && least([12, 14]) > 1.2, "{sync:?}");
}

#[test]
fn a_link_is_slow_one_way_only_when_asked() {
    let link = LinkFactor {
        a: 4,
        b: 8,
        factor: 10.0,
    };
    let one_way = simulate(&Scenario {
        slow_links_one_way: vec![link],
        ..small()
    })
    .unwrap();
    assert_eq!(one_way.label.slow_links, [[4, 8]]);
    let both = simulate(&Scenario {
        slow_links: vec![link],
        ..small()
    })
    .unwrap();
    let (one_way, both) = (rows(&one_way), rows(&both));
    assert!(forward(&one_way, 4, 8) > 0.03 && forward(&both, 4, 8) > 0.03);
    assert!(backward(&one_way, 8, 4) < 0.006 && backward(&both, 8, 4) > 0.03);
    assert!(forward(&one_way, 5, 9) < 0.006, "the lane beside it");
}

#[test]
fn network_faults_of_the_suite_stand_out_where_their_label_says() {
    for name in ["nic-send", "nic-recv", "slow-link", "link-one-way", "node-network"] {
        let kind = kind_of(name).unwrap();
        for seed in 0..2 {
            let scenario = Scenario {
                iterations: 14,
                first_iteration: 1,
                transfer_outliers: 0.0,
                ..kind.scenario(seed, NoiseLevel::Soft)
            };
            let job = simulate(&scenario).unwrap();
            let trace: Vec<Row> = rows(&job)
                .into_iter()
                .filter(|r| r.metric == "megatron_timers_trace" && r.iteration > 10)
                .collect();
            // Default order: pipeline neighbours are a stage apart.
            let stage = (scenario.tp * scenario.dp) as i32;
            let links: Vec<(i32, f64)> = (0..scenario.ranks() as i32 - stage)
                .flat_map(|up| {
                    let down = up + stage;
                    [(up, forward(&trace, up, down)), (up, backward(&trace, down, up))]
                })
                .collect();
            let (slowest, _) = links.iter().copied().max_by(|a, b| a.1.total_cmp(&b.1)).unwrap();
            let at_fault = |rank: i32| job.label.slow_ranks.contains(&(rank as usize));
            assert!(
                at_fault(slowest) || at_fault(slowest + stage),
                "{} {slowest}",
                scenario.job
            );
        }
    }
}

#[test]
fn links_inside_a_node_are_fast_and_spared_by_its_network() {
    let job = simulate(&Scenario {
        intra_node_seconds: Some(0.0005),
        slow_node_networks: vec![NodeFactor { node: 0, factor: 10.0 }],
        ..small()
    })
    .unwrap();
    let rows = rows(&job);
    assert!(forward(&rows, 0, 4) < 0.001);
    assert!(forward(&rows, 4, 8) > 0.03);
    let sync = means(&job, "all-grads-sync");
    let least = sync.values().copied().fold(f64::MAX, f64::min);
    assert!(least < 0.3, "data-parallel peers share a node: {sync:?}");
}

#[test]
fn interleaved_schedules_have_their_own_timers() {
    let scenario = Scenario {
        virtual_stages: 2,
        microbatches: 8,
        ..small()
    };
    let job = simulate(&scenario).unwrap();
    let on = |timer: &str| -> BTreeSet<i32> { means(&job, timer).keys().map(|rank| rank / 4).collect() };
    let all = BTreeSet::from([0, 1, 2, 3]);
    assert_eq!(on("forward-recv"), BTreeSet::from([1, 2, 3]));
    for timer in [
        "forward-send-forward-recv",
        "forward-backward-send-forward-backward-recv",
        "backward-send-backward-recv",
        "forward-compute",
    ] {
        assert_eq!(on(timer), all, "{timer}");
    }
    for timer in [
        "forward-send",
        "backward-recv",
        "forward-send-backward-recv",
        "backward-send-forward-recv",
    ] {
        assert!(on(timer).is_empty(), "{timer}");
    }
    // The same work as without chunks.
    let plain = simulate(&Scenario {
        virtual_stages: 1,
        ..scenario
    })
    .unwrap();
    let (chunks, whole) = (means(&job, "forward-compute"), means(&plain, "forward-compute"));
    for (rank, seconds) in &whole {
        assert!((chunks[rank] / seconds - 1.0).abs() < 0.02, "{rank}");
    }
    let rows = rows(&job);
    assert_eq!(calls(&rows, "forward-compute", 5, 12).len(), 16);
    assert_eq!(calls(&rows, "forward-recv", 5, 12).len(), 1);
    let steps = ["interval-time"].map(|timer| means(&job, timer)[&0] / means(&plain, timer)[&0]);
    assert!(steps[0] < 1.0, "a smaller bubble: {steps:?}");
}

#[test]
fn damaged_traces_leave_the_timers_alone() {
    let timers = |job: &Simulated| -> Vec<(String, i32, i32, f64)> {
        let timers = rows(job).into_iter().filter(|r| r.metric == "megatron_timers");
        timers.map(|r| (r.timer, r.rank, r.iteration, r.values[0])).collect()
    };
    let job = simulate(&Scenario {
        dirty_trace: 0.2,
        ..small()
    })
    .unwrap();
    let clean = simulate(&small()).unwrap();
    assert_eq!(timers(&job), timers(&clean));
    let traces: Vec<Row> = rows(&job)
        .into_iter()
        .filter(|r| r.metric == "megatron_timers_trace")
        .collect();
    assert!(traces.iter().any(|r| r.values.len() % 2 == 1), "a call without end");
    assert!(
        traces
            .iter()
            .any(|r| r.values.chunks_exact(2).any(|call| call[1] < call[0]))
    );
    assert!(
        traces
            .iter()
            .any(|r| r.values.windows(2).any(|pair| pair[1] < pair[0] - 5.0))
    );
    assert!(job.frame.height() < clean.frame.height(), "lost rows");
}

#[test]
fn the_same_scenario_gives_the_same_bytes_on_any_number_of_threads() {
    let folder = tempfile::tempdir().unwrap();
    let bytes = |threads: usize| {
        let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
        let written = pool.install(|| write_job(&small(), folder.path(), true)).unwrap();
        std::fs::read(written.parquet).unwrap()
    };
    let one = bytes(1);
    assert!(one == bytes(3));
    let other = Scenario { seed: 1, ..small() };
    let written = write_job(&other, folder.path(), true).unwrap();
    assert!(one != std::fs::read(written.parquet).unwrap());
}

#[test]
fn labels_gather_jobs_and_files_are_not_replaced_unasked() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join(LABELS);
    std::fs::write(&path, r#"{"real": {"kind": "other"}}"#).unwrap();
    for job in ["b", "a"] {
        let scenario = Scenario {
            job: job.into(),
            trace: false,
            ..small()
        };
        write_job(&scenario, folder.path(), false).unwrap();
    }
    let text = std::fs::read_to_string(&path).unwrap();
    let labels: BTreeMap<String, serde_json::Value> = serde_json::from_str(&text).unwrap();
    assert_eq!(labels.keys().collect::<Vec<_>>(), ["a", "b", "real"]);
    assert_eq!(labels["real"]["kind"], "other");
    let scenario = Scenario {
        job: "a".into(),
        ..small()
    };
    let again = write_job(&scenario, folder.path(), false);
    assert!(matches!(again, Err(SimulateError::Write(WriteError::Exists { .. }))));
    let files = std::fs::read_dir(folder.path()).unwrap().count();
    assert_eq!(files, 3, "nothing else stays");
}

#[test]
fn a_broken_labels_file_is_left_alone() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join(LABELS);
    std::fs::write(&path, "[1, 2]").unwrap();
    let failed = write_job(&small(), folder.path(), false);
    assert!(matches!(failed, Err(SimulateError::Write(WriteError::Labels { .. }))));
    assert_eq!(std::fs::read_to_string(&path).unwrap(), "[1, 2]");
    assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 1);
}

#[test]
fn scenarios_survive_json() {
    let scenario = Scenario {
        slow_ranks: slow(3, 1.2),
        ..small()
    };
    let text = serde_json::to_string(&scenario).unwrap();
    assert_eq!(serde_json::from_str::<Scenario>(&text).unwrap(), scenario);
    let partial: Scenario = serde_json::from_str(r#"{"pp": 2}"#).unwrap();
    assert_eq!(
        partial,
        Scenario {
            pp: 2,
            ..Scenario::default()
        }
    );
}
