//! Where a server puts iterations together, what comes of it is what all of the rows give.

use std::collections::BTreeSet;
use std::path::PathBuf;

use mt_detector::comm::collectives::COLLECTIVES;
use mt_detector::features;
use mt_detector::job::{Job, LEAST_COLUMNS, Reduction, Selection, load, load_table};
use mt_detector::source::clickhouse::{Address, ServerSettings, Table};
use mt_detector::source::{discover, is_transfer};
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
    ("passing", &["--transient", "5:2@40+8", "--stall", "60:90"]),
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
        assert_eq!(reduced["timers"], whole["timers"], "{name}");
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
    } else if COLLECTIVES.contains(&timer) {
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
        all["source"] = one["source"].clone();
        assert_eq!(all, one, "{flags:?}");
    }
}
