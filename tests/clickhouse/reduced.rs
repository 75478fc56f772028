//! Where a server puts iterations together, what comes of it is what all of the rows give.

use std::collections::BTreeSet;
use std::path::PathBuf;

use mt_detector::contract::timers::{is_collective, is_transfer};
use mt_detector::features;
use mt_detector::job::{Job, LEAST_COLUMNS, Reduction, Selection, load, load_table};
use mt_detector::source::clickhouse::{Address, ServerSettings, Table};
use mt_detector::source::discover;
use serde_json::{Value, json};

use crate::common::Workdir;
use crate::server::{Database, database};

/// 120 iterations after warm-up: columns of six.
const ITERATIONS: &str = "130";
const LENGTH: usize = 6;

/// Jobs with one fault or imbalance each.
const JOBS: [(&str, &[&str]); 14] = [
    ("healthy", &[]),
    ("slow", &["--slow-rank", "3:1.1"]),
    ("began", &["--slow-rank", "9:1.2", "--onset", "70"]),
    ("ended", &["--slow-rank", "9:1.2", "--until", "70"]),
    ("node", &["--slow-node", "2:1.15"]),
    (
        "dirty",
        &["--slow-rank", "3:1.2", "--dirty", "0.05", "--dirty-trace", "0.05"],
    ),
    ("uneven", &["--sequence-spread", "0.2"]),
    ("heavy", &["--heavy-stage", "3:1.5"]),
    ("loader", &["--slow-loader", "2:0.1"]),
    ("link", &["--slow-link", "0-8:10"]),
    ("network", &["--slow-node-network", "1:8"]),
    ("passing", &["--transient", "5:2@40+3", "--stall", "60:90"]),
    ("rerun", &["--slow-rank", "3:1.2", "--rerun", "60:9:1.4"]),
    ("calls-missing", &["--slow-rank", "3:1.2", "--no-trace", "--no-qkv"]),
];

fn simulated(workdir: &Workdir, name: &str, more: &[&str]) -> PathBuf {
    let seed = name.len().to_string();
    let shape = ["--job", name, "--seed", &seed, "--out", ".", "--iterations", ITERATIONS];
    let args: Vec<&str> = ["simulate"].iter().chain(&shape).chain(more).copied().collect();
    workdir.run(&args).succeeded();
    workdir.path(&format!("{name}.parquet"))
}

/// What a verdict comes to.
fn verdict(summary: &Value) -> Value {
    json!([summary["anomaly_ranks"], summary["anomaly_nodes"], summary["cause"]])
}

/// The counts of the job's rows, without those of single calls, of which fewer are read.
fn counts(summary: &Value) -> Value {
    let mut quality = summary["data_quality"].clone();
    let all = quality.as_object_mut().expect("counts");
    all.retain(|name, _| !name.contains("trace") && !name.contains("calls"));
    quality
}

fn analyze(workdir: &Workdir, database: &Database, job: &str, more: &[&str]) -> Value {
    let args = ["analyze", "--no-files", "--format", "json", "--job-id", job];
    let args: Vec<&str> = args.iter().chain(more).copied().collect();
    workdir.run_on(database, &args).succeeded().json()
}

/// The same timers with the same figures: to the nanosecond, for a server adds up in another order.
fn assert_same_timers(reduced: &Value, whole: &Value, what: &str) {
    let of = |summary: &Value| summary["timers"].as_array().expect("timers").clone();
    let (reduced, whole) = (of(reduced), of(whole));
    assert_eq!(reduced.len(), whole.len(), "{what}");
    for (ours, theirs) in reduced.iter().zip(&whole) {
        for field in ["timer", "ranks", "fate"] {
            assert_eq!(ours[field], theirs[field], "{what}: {ours}");
        }
        for field in ["median_seconds", "largest_seconds"] {
            let apart = ours[field].as_f64().unwrap_or(-1.0) - theirs[field].as_f64().unwrap_or(-1.0);
            assert!(apart.abs() < 2e-9, "{what}: {ours} {theirs}");
        }
    }
}

#[test]
fn the_verdict_of_columns_is_that_of_all_rows() {
    let Some(database) = database("reduced") else { return };
    let workdir = Workdir::new();
    let mut found = BTreeSet::new();
    for (name, more) in JOBS {
        simulated(&workdir, name, more);
        let file = format!("{name}.parquet");
        workdir.run_on(&database, &["load", "--create", &file]).succeeded();
        let whole = analyze(&workdir, &database, name, &["--reduce", "local"]);
        let reduced = analyze(&workdir, &database, name, &["--table-cells", "1"]);
        assert_eq!(reduced["window"]["iterations_per_column"], LENGTH, "{name}");
        assert_eq!(verdict(&reduced), verdict(&whole), "{name}");
        assert_eq!(counts(&reduced), counts(&whole), "{name}");
        assert_eq!(reduced["step_times"], whole["step_times"], "{name}");
        for part in ["ranks", "nodes", "iterations", "first_iteration", "last_iteration"] {
            assert_eq!(reduced["window"][part], whole["window"][part], "{name} {part}");
        }
        assert_same_timers(&reduced, &whole, name);
        found.insert(whole["cause"].as_str().expect("a cause").to_owned());
        // Whatever the order in which threads add.
        assert_eq!(
            analyze(&workdir, &database, name, &["--table-cells", "1"]),
            reduced,
            "{name}"
        );
    }
    assert!(found.len() >= 5, "the jobs differ: {found:?}");
    let refused = workdir.run_on(
        &database,
        &[
            "analyze", "--job-id", "slow", "--rules", "classic", "--reduce", "server",
        ],
    );
    assert_eq!(refused.code, Some(2), "{refused:?}");
    let classic = ["--rules", "classic", "--table-cells", "1"];
    let classic = analyze(&workdir, &database, "slow", &classic);
    assert_eq!(classic["window"]["iterations_per_column"], 1);
}

fn close(a: f64, b: f64) -> bool {
    (a.is_nan() && b.is_nan()) || (a - b).abs() <= 1e-9 * a.abs().max(b.abs())
}

/// What stands for some durations of a rank, worked out from all of them.
fn reference(timer: &str, durations: &[f64]) -> f64 {
    let known: Vec<f64> = durations.iter().copied().filter(|seconds| !seconds.is_nan()).collect();
    let ran: Vec<f64> = known.iter().copied().filter(|&seconds| seconds > 0.0).collect();
    if is_transfer(timer) {
        durations[0]
    } else if known.is_empty() {
        f64::NAN
    } else if ran.is_empty() {
        0.0
    } else if is_collective(timer) {
        ran.iter().copied().fold(f64::INFINITY, f64::min)
    } else {
        ran.iter().sum::<f64>() / ran.len() as f64
    }
}

#[test]
fn the_numbers_of_columns_are_those_of_all_rows() {
    let Some(database) = database("numbers") else { return };
    let workdir = Workdir::new();
    for (name, more) in [JOBS[5], JOBS[9]] {
        let path = simulated(&workdir, name, more);
        workdir
            .run_on(&database, &["load", "--create", &format!("{name}.parquet")])
            .succeeded();
        let selection = Selection {
            job: Some(name.to_owned()),
            warmup: 10,
            ..Selection::default()
        };
        let files = discover(&[path]).expect("the file").files;
        let whole = load(&files, &selection, &|_| ()).expect("the job from its file");
        let mut server = ServerSettings::at(Address::parse(&database.server.url).expect("an address"));
        server.database = Some(database.name.to_owned());
        let table = Table::open(server, Box::new(|_| ())).expect("the table");
        let read = |cells| load_table(&table, &selection, Reduction::Tables { cells }, &|_| ()).expect("the job");
        same_tables(&whole, &read(Reduction::CELLS), 1);
        same_tables(&whole, &read(0), LENGTH);
    }
}

fn same_tables(whole: &Job, read: &Job, length: usize) {
    assert_eq!((&read.ranks, &read.nodes), (&whole.ranks, &whole.nodes));
    assert_eq!(read.iterations_per_column(), length);
    assert_eq!(read.iterations.len(), whole.iterations.len().div_ceil(length));
    assert!(length == 1 || read.iterations.len() >= LEAST_COLUMNS);
    assert_eq!(read.iteration_count(), whole.iterations.len());
    assert_eq!(read.timers.len(), whole.timers.len());
    for (read, whole) in read.timers.iter().zip(&whole.timers) {
        assert_eq!(read.name, whole.name);
        for (rank, row) in whole.seconds.rows().into_iter().enumerate() {
            let durations = row.to_vec();
            for (column, durations) in durations.chunks(length).enumerate() {
                let (got, expected) = (read.seconds[(rank, column)], reference(&whole.name, durations));
                assert!(close(got, expected), "{} {rank} {column}: {got} {expected}", whole.name);
            }
        }
    }
    for (read, whole) in features::aggregate(read).iter().zip(&features::aggregate(whole)) {
        for (read, whole) in read.ranks.iter().zip(&whole.ranks) {
            match (read, whole) {
                (Some(read), Some(whole)) => {
                    assert!(read.iter().zip(whole).all(|(&a, &b)| close(a, b)), "{read:?} {whole:?}");
                }
                (read, whole) => assert_eq!(read, whole),
            }
        }
    }
}

/// Makes rows of 12 ranks: `iteration`, `run` and `seconds` are SQL over a number `k` (the k-th iteration), a rank `r` and a
/// timer `q`.
fn insert(database: &Database, job: &str, iterations: u32, [iteration, run, seconds]: [&str; 3]) {
    database.sql(&format!(
        "INSERT INTO megatron_metrics SELECT toDateTime('2026-01-01 08:00:00', 'UTC') + k, '{job}', 'megatron_timers', \
         ['forward-compute', 'backward-compute', 'interval-time'][q + 1], r, {iteration}, 'gpu-' || toString(intDiv(r, 4)), '', \
         {run}, [{seconds}], '{{}}' \
         FROM (SELECT number AS n, intDiv(n, 36) AS k, n % 3 AS q, intDiv(n, 3) % 12 AS r FROM numbers({}))",
        36 * iterations
    ));
}

/// Noise of a per cent, and rank 3 slow where the condition holds, which lengthens the step.
fn slow_where(condition: &str) -> String {
    format!(
        "(if(q = 2, 5, 1) + 0.01 * (if(q = 2, k, n) * 7919 % 1009) / 1009) * if(({condition}) AND (r = 3 OR q = 2), 1.5, 1)"
    )
}

#[test]
fn many_iterations_with_gaps_and_restarts_are_read() {
    let Some(database) = database("long") else { return };
    let database = database.with_table();
    let workdir = Workdir::new();
    let slow = slow_where("1");
    // A server takes no parameter above 128 KB: each of these iterations listed with its run would be far above.
    insert(&database, "plain", 9_000, ["k", "'r0'", &slow]);
    insert(&database, "gaps", 9_000, ["3 * k + (k % 7 = 0)", "'r0'", &slow]);
    let uuid = "if(k < 4000, 'b7a3e9c0-6a8d-4f43-9a1e-0d1f5a6b7c8d', 'c8b4fad1-7b9e-4054-8b2f-1e206b7c8d9e')";
    insert(&database, "restart", 9_000, ["if(k < 4000, k, k - 500)", uuid, &slow]);
    for job in ["plain", "gaps", "restart"] {
        let whole = analyze(&workdir, &database, job, &["--reduce", "local"]);
        assert_eq!(whole["anomaly_ranks"], json!([3]), "{job}");
        assert_eq!(analyze(&workdir, &database, job, &[]), whole, "{job}");
        let reduced = analyze(&workdir, &database, job, &["--table-cells", "1"]);
        assert_eq!(verdict(&reduced), verdict(&whole), "{job}");
        assert_eq!(counts(&reduced), counts(&whole), "{job}");
        assert_eq!(reduced["runs"], whole["runs"], "{job}");
    }
}

#[test]
fn a_slow_window_shorter_than_a_column_is_analysed() {
    let Some(database) = database("short_window") else {
        return;
    };
    let database = database.with_table();
    let workdir = Workdir::new();
    insert(
        &database,
        "one",
        1_200,
        ["k", "'r0'", &slow_where("k >= 615 AND k < 660")],
    );
    let two = slow_where("(k >= 615 AND k < 660) OR (k >= 815 AND k < 850)");
    insert(&database, "two", 1_200, ["k", "'r0'", &two]);
    for job in ["one", "two"] {
        let auto = ["--iterations", "auto"];
        let whole = analyze(&workdir, &database, job, &[&auto[..], &["--reduce", "local"]].concat());
        let reduced = analyze(&workdir, &database, job, &[&auto[..], &["--table-cells", "1"]].concat());
        assert_eq!(whole["anomaly_ranks"], json!([3]), "{job}");
        assert_eq!(verdict(&reduced), verdict(&whole), "{job}");
        assert_eq!(reduced["step_times"], whole["step_times"], "{job}");
        for part in ["iterations", "first_iteration", "last_iteration"] {
            assert_eq!(reduced["window"][part], whole["window"][part], "{job} {part}");
        }
    }
}

#[test]
fn what_only_some_iterations_have_is_not_lost() {
    let Some(database) = database("rare") else { return };
    let database = database.with_table();
    let workdir = Workdir::new();
    insert(&database, "rare", 130, ["k", "'r0'", &slow_where("1")]);
    // Transfers in each fifth iteration, a rank that is there at the end, a timer that ran once, one of the start-up.
    for (timer, rank, condition) in [
        ("forward-send", "r", "k % 5 = 4 AND r < 6"),
        ("forward-recv", "r", "k % 5 = 4 AND r >= 6"),
        ("forward-send", "77", "k = 128 AND r = 0"),
        ("checkpoint", "r", "k = 50 AND r = 2"),
        ("startup", "r", "k < 5"),
    ] {
        database.sql(&format!(
            "INSERT INTO megatron_metrics SELECT toDateTime('2026-01-01 08:00:00', 'UTC') + k, 'rare', 'megatron_timers', \
             '{timer}', {rank}, k, 'gpu-' || toString(intDiv({rank}, 4)), '', 'r0', [0.01], '{{}}' \
             FROM (SELECT intDiv(number, 12) AS k, number % 12 AS r FROM numbers(1560)) WHERE {condition}"
        ));
    }
    let whole = analyze(&workdir, &database, "rare", &["--reduce", "local"]);
    assert_eq!(whole["window"]["ranks"], 13);
    assert_eq!(analyze(&workdir, &database, "rare", &[]), whole);
    let reduced = analyze(&workdir, &database, "rare", &["--table-cells", "1"]);
    assert_eq!(verdict(&reduced), verdict(&whole));
    for part in ["timers", "topology", "step_times", "runs"] {
        assert_eq!(reduced[part], whole[part], "{part}");
    }
    assert_eq!(reduced["window"]["ranks"], 13);
    assert_eq!(counts(&reduced), counts(&whole));
}

#[test]
fn times_finer_than_a_microsecond_are_read() {
    let Some(database) = database("nanoseconds") else {
        return;
    };
    let workdir = Workdir::new();
    let database = database.with_table();
    insert(&database, "fine", 60, ["k", "'r0'", &slow_where("1")]);
    database.sql(
        "CREATE TABLE finer ENGINE = MergeTree ORDER BY job AS SELECT \
         toDateTime64(timestamp, 9, 'UTC') + toIntervalNanosecond(rank * 100 + 7) AS timestamp, * EXCEPT (timestamp) \
         FROM megatron_metrics",
    );
    let table = ["--table", "finer"];
    let whole = analyze(
        &workdir,
        &database,
        "fine",
        &[&table[..], &["--reduce", "local"]].concat(),
    );
    assert_eq!(whole["anomaly_ranks"], json!([3]));
    assert_eq!(analyze(&workdir, &database, "fine", &table), whole);
    let replayed = workdir.run_on(
        &database,
        &["replay", "--job-id", "fine", "--speed", "inf", "--table", "finer"],
    );
    let told = replayed.succeeded();
    assert!(format!("{told:?}").contains("2160"), "all rows: {told:?}");
}

#[test]
fn the_shards_of_a_distributed_table_give_the_same_as_one_table() {
    let Some(database) = database("sharded") else { return };
    let database = database.with_table();
    let workdir = Workdir::new();
    let (name, more) = JOBS[5];
    simulated(&workdir, name, more);
    workdir.run_on(&database, &["load", "dirty.parquet"]).succeeded();
    // The engine is both shards: each of them sees its own part of the view. A row and one that repeats it may be apart.
    for (part, remainder) in [("left_part", 0), ("right_part", 1)] {
        database.sql(&format!("CREATE TABLE {part} AS megatron_metrics"));
        database.sql(&format!(
            "INSERT INTO {part} SELECT * FROM megatron_metrics WHERE cityHash64(rank, subname, metric_values) % 2 = {remainder}"
        ));
    }
    database.sql(
        "CREATE VIEW parts AS SELECT * FROM left_part WHERE shardNum() = 1 UNION ALL SELECT * FROM right_part WHERE shardNum() = 2",
    );
    database.sql("CREATE TABLE everywhere AS megatron_metrics ENGINE = Distributed('two', currentDatabase(), 'parts')");
    let of_right = "SELECT countIf(shardNum() = 2) > 1000 AND countIf(shardNum() = 1) > 1000 FROM everywhere";
    assert_eq!(database.sql(of_right).trim(), "1", "both shards have rows");
    for flags in [&["--reduce", "local"][..], &[], &["--table-cells", "1"]] {
        let one = analyze(&workdir, &database, name, flags);
        let mut all = analyze(&workdir, &database, name, &[flags, &["--table", "everywhere"]].concat());
        all["sources"] = one["sources"].clone();
        assert_eq!(all, one, "{flags:?}");
    }
}
