//! `analyze` and `jobs` as a user runs them: golden outputs of the fixtures, every way in, every flag.

mod common;

use std::process::Stdio;

use common::{Workdir, committed, fixture, golden, job, row, slow_rank_5};
use polars::prelude::*;

const FIXTURES: [&str; 5] = ["healthy", "slow-rank", "slow-rank-pp1", "heavy-stage", "restart-dirty"];

/// Copies a fixture, so that the path in the output is the same on every machine.
fn with_fixture(name: &str) -> (Workdir, String) {
    let workdir = Workdir::new();
    let file = format!("{name}.parquet");
    std::fs::copy(fixture(&file), workdir.path(&file)).expect("the fixture");
    (workdir, file)
}

#[test]
fn fixtures_give_their_golden_results() {
    for name in FIXTURES {
        let (workdir, file) = with_fixture(name);
        let outcome = workdir.run(&["analyze", &file, "--out", "r"]).succeeded();
        golden(&format!("{name}.screen.txt"), &outcome.stdout);
        let files = workdir.content("r");
        let content = |wanted: &str| {
            let found = files
                .iter()
                .find(|(name, _)| name == wanted)
                .map(|(_, content)| content.clone());
            String::from_utf8(found.unwrap_or_else(|| panic!("{wanted} is not in {name}"))).expect("text")
        };
        let verbose = workdir.run(&["analyze", &file, "--no-files", "-v"]).succeeded();
        golden(&format!("{name}.summary.txt"), &content("summary.txt"));
        assert_eq!(
            content("summary.txt"),
            verbose.stdout,
            "the file and standard output say the same"
        );
        golden(&format!("{name}.summary.json"), &content("summary.json"));
        golden(&format!("{name}.kmeans.csv"), &content("kmeans/fast_slow_summary.csv"));
        let classic = workdir
            .run(&["analyze", &file, "--rules", "classic", "--no-files", "-v"])
            .succeeded();
        golden(&format!("{name}.classic.txt"), &classic.stdout);
        let names: Vec<&str> = files.iter().map(|(name, _)| name.as_str()).collect();
        let table = |algorithm: &str| format!("{algorithm}/fast_slow_summary.csv");
        for algorithm in ["dbscan", "fuzzy", "gmm", "hierarchical", "kmeans", "mean_shift"] {
            assert!(names.contains(&table(algorithm).as_str()), "{names:?}");
        }
        assert_eq!(
            workdir.names().len(),
            2,
            "nothing but the input and the results: {:?}",
            workdir.names()
        );
    }
}

#[test]
fn the_json_keeps_its_schema() {
    let schema = serde_json::to_string_pretty(&schemars::schema_for!(mt_detector::report::Summary)).expect("a schema");
    // Raise SCHEMA_VERSION when a meaning changes.
    committed("schema/summary.schema.json", &(schema + "\n"));
}

/// The same rows in every format that is read.
fn in_every_format(workdir: &Workdir) -> Vec<String> {
    let mut frame = ParquetReader::new(std::fs::File::open(fixture("slow-rank.parquet")).expect("the fixture"))
        .finish()
        .expect("a frame");
    let create = |name: &str| std::fs::File::create(workdir.path(name)).expect("a file");
    IpcWriter::new(create("j.arrow"))
        .finish(&mut frame)
        .expect("an Arrow file");
    IpcWriter::new(create("lz4.arrow"))
        .with_compression(Some(IpcCompression::LZ4))
        .finish(&mut frame)
        .expect("a compressed Arrow file");
    let (mut ndjson, mut csv) = (String::new(), String::new());
    csv += "attributes,timestamp,job,metric_name,subname,rank,iteration,node,metric_values,rerun_uuid\n";
    let text = |column: &str| frame.column(column).expect(column).str().expect(column).clone();
    let integer = |column: &str| {
        frame
            .column(column)
            .expect(column)
            .cast(&DataType::Int64)
            .expect(column)
    };
    let (jobs, metrics, timers) = (text("job"), text("metric_name"), text("subname"));
    let (nodes, runs) = (text("node"), text("rerun_uuid"));
    let (ranks, iterations, times) = (integer("rank"), integer("iteration"), integer("timestamp"));
    let values = frame
        .column("metric_values")
        .expect("values")
        .list()
        .expect("lists")
        .clone();
    for at in 0..frame.height() {
        let number = |column: &Column| column.i64().expect("integers").get(at).expect("a number");
        let numbers: Vec<String> = values
            .get_as_series(at)
            .expect("a list")
            .f64()
            .expect("floats")
            .iter()
            .flatten()
            .map(|v| v.to_string())
            .collect();
        let numbers = numbers.join(",");
        let time = mt_detector::source::timestamp::format(number(&times) * 1000);
        let cell = |column: &StringChunked| column.get(at).expect("text").to_owned();
        let (job, metric, timer, node, run) = (cell(&jobs), cell(&metrics), cell(&timers), cell(&nodes), cell(&runs));
        let (rank, iteration) = (number(&ranks), number(&iterations));
        csv += &format!("{{}},{time},{job},{metric},{timer},{rank},{iteration},{node},\"[{numbers}]\",{run}\n");
        ndjson += &format!(
            r#"{{"timestamp":"{time}","job":"{job}","metric_name":"{metric}","subname":"{timer}","rank":{rank},"iteration":"{iteration}","node":"{node}","metric_values":[{numbers}],"attributes":{{"a":[1]}},"rerun_uuid":"{run}"}}"#
        );
        ndjson.push('\n');
    }
    workdir.file("j.csv", &csv);
    workdir.file(
        "j.tsv",
        csv.replace(",\"[", "\t[")
            .replace("]\",", "]\t")
            .lines()
            .map(tabs)
            .collect::<String>(),
    );
    workdir.file("j.ndjson", ndjson);
    ["j.arrow", "lz4.arrow", "j.csv", "j.tsv", "j.ndjson"]
        .map(str::to_owned)
        .to_vec()
}

/// Turns the commas of a line into tabs, but for those inside of an array.
fn tabs(line: &str) -> String {
    let mut depth = 0;
    let mut swap = |letter: char| {
        depth += i32::from(letter == '[') - i32::from(letter == ']');
        if letter == ',' && depth == 0 { '\t' } else { letter }
    };
    line.chars().map(&mut swap).collect::<String>() + "\n"
}

/// What a run says, but for where the rows came from and in which parts they were read.
fn verdict(json: &serde_json::Value) -> serde_json::Value {
    let mut json = json.clone();
    json["sources"] = serde_json::Value::Null;
    json["data_quality"]["rows_not_read"] = serde_json::Value::Null;
    json["data_quality"]["rows_read"] = serde_json::Value::Null;
    json
}

#[test]
fn every_format_says_the_same() {
    let (workdir, parquet) = with_fixture("slow-rank");
    let analyze = |file: &str| {
        workdir
            .run(&["analyze", file, "--no-files", "--format", "json"])
            .succeeded()
            .json()
    };
    let expected = verdict(&analyze(&parquet));
    assert_ne!(
        expected["anomaly_ranks"],
        serde_json::json!([]),
        "the fixture has a culprit"
    );
    for file in in_every_format(&workdir) {
        assert_eq!(verdict(&analyze(&file)), expected, "{file}");
    }
}

#[test]
fn a_job_may_lie_in_many_files_beside_others() {
    let workdir = Workdir::new();
    let whole = slow_rank_5("alpha");
    workdir.file("whole.ndjson", &whole);
    let expected = verdict(
        &workdir
            .run(&["analyze", "whole.ndjson", "--no-files", "--format", "json"])
            .json(),
    );
    std::fs::create_dir_all(workdir.path("d/deep")).expect("folders");
    let (first, second) = whole.split_at(
        whole
            .find("\"iteration\":9,")
            .map_or(0, |at| whole[..at].rfind('\n').map_or(0, |end| end + 1)),
    );
    workdir.file("d/part-1.ndjson", first);
    workdir.file("d/deep/part-2.jsonl", second);
    workdir.file("d/other.ndjson", slow_rank_5("beta"));
    workdir.file("d/readme.txt", "not rows");
    for input in [&["d"][..], &["d/*"], &["d/part-1.ndjson", "d/other.ndjson", "d/deep"]] {
        let args = [
            &["analyze", "--job-id", "alpha", "--no-files", "--format", "json"],
            input,
        ]
        .concat();
        let mut json = verdict(&workdir.run(&args).succeeded().json());
        assert_eq!(json["data_quality"]["other_jobs"], 320, "{input:?}");
        json["data_quality"]["other_jobs"] = 0.into();
        json["files_passed_over"] = serde_json::json!([]);
        assert_eq!(json, expected, "{input:?}");
    }
}

#[test]
fn standard_input_is_read_as_ndjson() {
    use std::io::Write as _;
    let workdir = Workdir::new();
    let mut command = workdir.command(&["analyze", "-", "--no-files"]);
    let mut child = command
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .expect("it starts");
    child
        .stdin
        .take()
        .expect("a pipe")
        .write_all(slow_rank_5("alpha").as_bytes())
        .expect("rows");
    let output = child.wait_with_output().expect("it ends");
    let stdout = String::from_utf8(output.stdout).expect("text");
    assert!(stdout.lines().any(|line| line == "anomaly_ranks: [5]"), "{stdout}");
    assert!(
        stdout.lines().any(|line| line == "anomaly_nodes: [\"gpu-000\"]"),
        "{stdout}"
    );
}

#[test]
fn old_callers_flags_work() {
    let workdir = Workdir::new();
    workdir.file("a.ndjson", slow_rank_5("alpha") + &slow_rank_5("beta"));
    let outcome = workdir.run(&[
        "analyze",
        "--job-id",
        "alpha",
        "--algorithm",
        "all",
        "--iterations",
        "11-15",
        "--start",
        "2026-01-01 08:00:00",
        "--end",
        "2026-01-01 09:00:00",
        "-v",
        "a.ndjson",
    ]);
    let stdout = outcome.succeeded().stdout;
    assert!(
        stdout.contains("iterations: 11-15 (5 of them; asked: 11-15; warm-up 10)"),
        "{stdout}"
    );
    let results = workdir.names();
    assert_eq!(results, ["a.ndjson", "prediction_results"]);
    let folders: Vec<String> = workdir
        .content("prediction_results")
        .into_iter()
        .map(|(name, _)| name)
        .collect();
    assert!(
        folders.iter().all(|name| name.starts_with("prediction_20")),
        "{folders:?}"
    );
}

#[test]
fn time_bounds_keep_an_earlier_job_of_the_same_id_out() {
    let workdir = Workdir::new();
    let earlier = slow_rank_5("alpha")
        .replace("\"timestamp\":1767", "\"timestamp\":1757")
        .replace("\"rank\":5,", "\"rank\":3,");
    workdir.file("a.ndjson", earlier + &slow_rank_5("alpha"));
    let json = workdir
        .run(&[
            "analyze",
            "a.ndjson",
            "--start",
            "2026-01-01",
            "--no-files",
            "--format",
            "json",
        ])
        .json();
    assert_eq!(json["anomaly_ranks"], serde_json::json!([5]));
    assert_eq!(json["data_quality"]["outside_time"], 320);
}

#[test]
fn the_run_that_came_last_counts() {
    let workdir = Workdir::new();
    let lost = job(
        "j",
        "forward-compute",
        8,
        40,
        |rank, _| if rank == 2 { 2.0 } else { 1.0 },
    );
    let counted: String = job(
        "j",
        "forward-compute",
        8,
        40,
        |rank, _| if rank == 6 { 2.0 } else { 1.0 },
    )
    .lines()
    .filter(|line| !line.contains("\"iteration\":1,"))
    .map(|line| {
        line.replace("\"rerun_uuid\":\"r0\"", "\"rerun_uuid\":\"r1\"")
            .replace("\"timestamp\":1767", "\"timestamp\":1777")
            + "\n"
    })
    .collect();
    // The later run lies first in the file: its time decides, not its place.
    workdir.file("a.ndjson", counted + &lost);
    let analyze = |more: &[&str]| {
        let args = [
            &["analyze", "a.ndjson", "--no-files", "--format", "json", "--warmup", "3"],
            more,
        ]
        .concat();
        workdir.run(&args).succeeded().json()
    };
    let json = analyze(&[]);
    assert_eq!(json["anomaly_ranks"], serde_json::json!([6]));
    assert_eq!(json["runs"].as_array().map(Vec::len), Some(2));
    assert_eq!(json["data_quality"]["superseded_by_rerun"], 8 * 39);
    // Iteration 1 of the lost run and 2 to 4 of the other are start-up.
    assert_eq!(json["data_quality"]["warmup"], 8 * 4);
    let json = analyze(&["--rerun", "r0"]);
    assert_eq!(json["anomaly_ranks"], serde_json::json!([2]));
    assert_eq!(json["data_quality"]["other_runs"], 8 * 39);
}

#[test]
fn what_is_left_out_is_counted() {
    let workdir = Workdir::new();
    let mut text = slow_rank_5("j");
    for (rank, value) in [(0, "1e999"), (1, "-1.0")] {
        text += &(row("j", "forward-compute", rank, 21, 1.0).replace("[1]", &format!("[{value}]")) + "\n");
    }
    text += &(row("j", "forward-compute", 2, 21, 1.0).replace("[1]", "[null]") + "\n");
    text += &(row("j", "forward-compute", 3, 21, 0.0) + "\n");
    text += &(row("j", "forward-compute", 4, 20, 9.0) + "\n");
    text += &(row("j", "forward-compute", 4, 20, 9.0).replace("\"rank\":4", "\"rank\":null") + "\n");
    text += &(row("j", "loss", 4, 20, 9.0).replace("megatron_timers", "megatron_loss") + "\n");
    workdir.file("a.ndjson", text.replace("[1e999]", "[-1]"));
    let json = workdir
        .run(&["analyze", "a.ndjson", "--no-files", "--format", "json", "--warmup", "0"])
        .json();
    let quality = &json["data_quality"];
    for (name, count) in [
        ("rows_read", 327),
        ("negative", 2),
        ("missing_values", 1),
        ("zero_durations", 1),
        ("duplicates", 1),
        ("unreadable_rows", 1),
        ("other_metrics", 1),
        ("timer_rows_used", 321),
    ] {
        assert_eq!(quality[name], count, "{name} in {quality}");
    }
    workdir.file(
        "a.csv",
        "timestamp,job,metric_name,subname,rank,iteration,metric_values\n\
         1767254400,j,megatron_timers,t,0,1,[nan]\n1767254400,j,megatron_timers,t,0,2,[inf]\n1767254400,j,megatron_timers,t,0,3,[1]\n",
    );
    let json = workdir
        .run(&["analyze", "a.csv", "--no-files", "--format", "json", "--warmup", "0"])
        .json();
    assert_eq!(json["data_quality"]["not_finite"], 2, "{json}");
    assert_eq!(
        json["anomaly_nodes"],
        serde_json::json!([]),
        "one rank: nobody to compare it with"
    );
}

#[test]
fn the_exit_code_tells_on_request() {
    let workdir = Workdir::new();
    workdir.file("slow.ndjson", slow_rank_5("j"));
    workdir.file("even.ndjson", job("j", "forward-compute", 8, 20, |_, _| 1.0));
    let code = |args: &[&str]| workdir.run(&[&["analyze", "--no-files"], args].concat()).code;
    assert_eq!(code(&["slow.ndjson"]), Some(0));
    assert_eq!(code(&["slow.ndjson", "--exit-code"]), Some(1));
    assert_eq!(code(&["even.ndjson", "--exit-code"]), Some(0));
}

#[test]
fn thresholds_are_flags() {
    let workdir = Workdir::new();
    let mild = |rank, _| if rank == 5 { 1.02 } else { 1.0 };
    workdir.file("a.ndjson", job("j", "forward-compute", 16, 20, mild));
    let ranks = |more: &[&str]| {
        let args = [&["analyze", "a.ndjson", "--no-files", "--format", "json"], more].concat();
        workdir.run(&args).succeeded().json()["anomaly_ranks"].clone()
    };
    assert_eq!(ranks(&[]), serde_json::json!([]));
    let low_floors = ["--effect-floor", "0.005", "--false-alarm-rate", "1"];
    assert_eq!(ranks(&low_floors), serde_json::json!([5]));
    assert_eq!(ranks(&["--rules", "classic"]), serde_json::json!([]));
    assert_eq!(
        ranks(&["--rules", "classic", "--min-spread", "0.01"]),
        serde_json::json!([5])
    );
}

#[test]
fn a_finding_says_who_how_much_and_since_when() {
    let workdir = Workdir::new();
    let begins = |rank, iteration: u32| {
        let uneven = 1.0 + 0.001 * f64::from((rank * 7 + iteration * 3) % 11);
        if rank == 5 && iteration >= 25 {
            1.2 * uneven
        } else {
            uneven
        }
    };
    workdir.file("a.ndjson", job("j", "forward-compute", 16, 40, begins));
    let json = workdir
        .run(&["analyze", "a.ndjson", "--no-files", "--format", "json"])
        .succeeded()
        .json();
    let finding = &json["findings"][0];
    for (key, expected) in [
        ("kind", serde_json::json!("slow-rank")),
        ("cause", serde_json::json!("compute")),
        ("named", serde_json::json!(true)),
        ("ranks", serde_json::json!([5])),
        ("nodes", serde_json::json!(["gpu-000"])),
        ("onset", serde_json::json!(25)),
        ("until", serde_json::Value::Null),
        ("first_iteration", serde_json::json!(25)),
        ("last_iteration", serde_json::json!(40)),
        ("slow_iterations", serde_json::json!(16)),
        ("iterations", serde_json::json!(30)),
    ] {
        assert_eq!(finding[key], expected, "{key} of {finding}");
    }
    let factor = finding["factor"].as_f64().expect("a factor");
    assert!((factor - 1.2).abs() < 0.01, "{finding}");
    assert!(finding["voters"].as_u64() >= Some(3), "{finding}");
    assert_eq!(finding["timers"][0]["timer"], "forward-compute");
    let text = workdir
        .run(&["analyze", "a.ndjson", "--no-files", "-v"])
        .succeeded()
        .stdout;
    let says = "slow-rank: rank 5 on node gpu-000 computes ";
    assert!(
        text.lines()
            .any(|line| line.starts_with(says) && line.ends_with(", since iteration 25, in 16 of 30 iterations")),
        "{text}"
    );
}

#[test]
fn tensor_parallel_peers_are_told_apart_by_their_own_timer_or_not_at_all() {
    let workdir = Workdir::new();
    let group = |axis: &str, of: fn(u32) -> u32| -> String {
        (0..16)
            .map(|rank| {
                row("j", axis, rank, 1, f64::from(of(rank))).replace("megatron_timers", "megatron_parallel_group_rank")
                    + "\n"
            })
            .collect()
    };
    let uneven = |rank: u32, iteration: u32| 1.0 + 0.001 * f64::from((rank * 7 + iteration * 3) % 11);
    // Rank 5 is slow; rank 4 waits for it inside forward.
    let forward = move |rank: u32, iteration: u32| if rank / 2 == 2 { 1.3 } else { 1.0 } * uneven(rank / 2, iteration);
    let own = move |rank: u32, iteration: u32| if rank == 5 { 1.3 } else { 1.0 } * uneven(rank, iteration);
    let rows =
        group("tp", |rank| rank % 2) + &group("dp", |rank| rank / 2) + &job("j", "forward-compute", 16, 40, forward);
    workdir.file("blind.ndjson", &rows);
    workdir.file(
        "seen.ndjson",
        rows + &job("j", "self-attention-linear-qkv", 16, 40, own),
    );
    let finding = |file: &str| {
        let args = ["analyze", file, "--no-files", "--format", "json"];
        workdir.run(&args).succeeded().json()["findings"][0].clone()
    };
    let (blind, seen) = (finding("blind.ndjson"), finding("seen.ndjson"));
    assert_eq!(
        (&blind["kind"], &blind["ranks"]),
        (&"one-of-group".into(), &serde_json::json!([4, 5]))
    );
    assert!(
        blind["says"]
            .as_str()
            .is_some_and(|says| says.starts_with("at least one of ranks 4 and 5 on node gpu-000 computes")),
        "{blind}"
    );
    assert_eq!(
        (&seen["kind"], &seen["ranks"]),
        (&"slow-rank".into(), &serde_json::json!([5]))
    );
}

#[test]
fn one_algorithm_may_be_asked_for() {
    let (workdir, file) = with_fixture("slow-rank");
    let json = workdir
        .run(&[
            "analyze",
            &file,
            "--no-files",
            "--format",
            "json",
            "--algorithm",
            "gmm,kmeans",
        ])
        .json();
    let names: Vec<&str> = json["algorithms"]
        .as_array()
        .expect("a list")
        .iter()
        .filter_map(|one| one["algorithm"].as_str())
        .collect();
    assert_eq!(names, ["kmeans", "gmm"]);
}

#[test]
fn a_closed_pipe_is_no_failure() {
    let (workdir, file) = with_fixture("slow-rank");
    let mut child = workdir
        .command(&["analyze", &file, "--no-files"])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("it starts");
    drop(child.stdout.take());
    let output = child.wait_with_output().expect("it ends");
    assert_eq!((output.status.code(), output.stderr.as_slice()), (Some(0), &b""[..]));
}

#[test]
fn jobs_lists_what_there_is() {
    let workdir = Workdir::new();
    std::fs::copy(fixture("slow-rank.parquet"), workdir.path("slow-rank.parquet")).expect("the fixture");
    workdir.file("b.ndjson", slow_rank_5("beta"));
    let outcome = workdir.run(&["jobs", "slow-rank.parquet", "b.ndjson"]).succeeded();
    golden("jobs.txt", &outcome.stdout);
    let json = workdir
        .run(&["jobs", "b.ndjson", "--format", "json"])
        .succeeded()
        .json();
    assert_eq!(json[0]["job"], "beta");
    assert_eq!(
        (&json[0]["ranks"], &json[0]["iterations"], &json[0]["rows"]),
        (&16.into(), &20.into(), &320.into())
    );
    assert_eq!(json[0]["pp_size"], serde_json::Value::Null);
    let outcome = workdir.run(&["jobs", "none.parquet"]);
    assert_eq!(outcome.code, Some(4), "{outcome:?}");
}

#[test]
fn help_and_version_are_there() {
    let workdir = Workdir::new();
    let help = workdir.run(&["--help"]).succeeded().stdout;
    for word in ["analyze", "jobs", "simulate", "Exit codes"] {
        assert!(help.contains(word), "{help}");
    }
    let flags = workdir.run(&["analyze", "--help"]).succeeded().stdout;
    for flag in [
        "--job-id",
        "--iterations",
        "--start",
        "--end",
        "--algorithm",
        "--warmup",
        "--rerun",
        "--out",
        "--no-files",
        "--format",
        "--exit-code",
        "--threads",
        "--rules",
        "--effect-floor",
        "--false-alarm-rate",
        "--lasting-share",
        "--min-spread",
    ] {
        assert!(flags.contains(flag), "{flag} is not in {flags}");
    }
    assert!(
        workdir
            .run(&["--version"])
            .succeeded()
            .stdout
            .starts_with("mt-detector ")
    );
}

#[test]
fn parts_of_files_that_can_not_matter_are_not_read() {
    let workdir = Workdir::new();
    let frame = ParquetReader::new(std::fs::File::open(fixture("slow-rank.parquet")).expect("the fixture"))
        .finish()
        .expect("a frame");
    let height = frame.height();
    let other = Column::new("job".into(), vec!["other"; height]);
    let mut both = frame.clone();
    both.with_column(other).expect("a column of the same length");
    both.vstack_mut(&frame).expect("the same columns");
    let rows = height as u64;
    let file = std::fs::File::create(workdir.path("both.parquet")).expect("a file");
    ParquetWriter::new(file)
        .with_statistics(StatisticsOptions::full())
        .with_row_group_size(Some(height / 6))
        .finish(&mut both)
        .expect("a file");
    let run = |args: &[&str]| {
        let args = [&["analyze", "both.parquet", "--no-files", "--format", "json"], args].concat();
        workdir.run(&args).succeeded().json()
    };
    let count = |json: &serde_json::Value, name: &str| json["data_quality"][name].as_u64().expect("a count");

    let json = run(&["--job-id", "slow-rank"]);
    assert_eq!(count(&json, "rows_read") + count(&json, "rows_not_read"), 2 * rows);
    assert!(
        count(&json, "rows_not_read") >= rows * 5 / 6,
        "the other job's row groups are skipped: {json}"
    );
    assert_eq!(json["anomaly_ranks"], serde_json::json!([5]));

    // A window in the middle: what lies before it still tells where the run began.
    let json = run(&["--job-id", "slow-rank", "--iterations", "5-20"]);
    assert_eq!(
        json["window"]["first_iteration"], 11,
        "warm-up counts from the first iteration of the run"
    );
    assert_eq!(json["runs"][0]["first_iteration"], 1);

    // Start-up is where the run began, not where the bound is; the topology was written before it too.
    let late = run(&["--job-id", "slow-rank", "--start", "2026-01-01 08:01:30"]);
    assert_eq!(late["window"]["first_iteration"], 21, "{late}");
    assert_eq!(late["topology"]["sizes"]["pp"], 2, "{late}");
    let early = run(&["--job-id", "slow-rank", "--end", "2026-01-01 08:01:00"]);
    assert!(
        count(&early, "rows_not_read") > count(&json, "rows_not_read"),
        "later row groups are skipped: {early}"
    );
}

/// Statistics hold unsigned numbers as the bits of signed ones: whatever a column's type, they may not hide a row.
#[test]
fn statistics_of_every_integer_type_change_nothing() {
    let workdir = Workdir::new();
    let frame = ParquetReader::new(std::fs::File::open(fixture("slow-rank.parquet")).expect("the fixture"))
        .finish()
        .expect("a frame");
    // A row group with rows of parallel groups would be read in any case.
    let names = frame.column("metric_name").expect("a column").cast(&DataType::String);
    let timers = names.expect("text").str().expect("text").equal("megatron_timers");
    let frame = frame.filter(&timers).expect("a mask of the same length");
    for (kind, largest) in [
        (DataType::Int32, i64::from(i32::MAX).cast_unsigned()),
        (DataType::Int64, i64::MAX.cast_unsigned()),
        (DataType::UInt32, u64::from(u32::MAX)),
        (DataType::UInt64, u64::MAX),
    ] {
        for column in ["iteration", "timestamp"] {
            let numbers = frame.column(column).expect("a column").cast(&DataType::Int64);
            let mut numbers: Vec<u64> = numbers
                .expect("numbers")
                .i64()
                .expect("whole ones")
                .iter()
                .map(|number| number.expect("no null").cast_unsigned())
                .collect();
            if column == "timestamp" {
                // Epoch seconds: whatever the fixture counts in, the first row is of 2026-01-01 08:00.
                let unit = numbers.iter().min().expect("rows") / 1_767_254_400;
                numbers.iter_mut().for_each(|number| *number /= unit);
            }
            let end = numbers.len() - 1;
            numbers[end] = largest;
            let column = Column::new(column.into(), numbers).cast(&kind).expect("it fits");
            let mut odd = frame.clone();
            odd.with_column(column).expect("a column of the same length");
            for (name, statistics) in [
                ("with.parquet", StatisticsOptions::full()),
                ("without.parquet", StatisticsOptions::empty()),
            ] {
                let file = std::fs::File::create(workdir.path(name)).expect("a file");
                ParquetWriter::new(file)
                    .with_statistics(statistics)
                    .with_row_group_size(Some(odd.height()))
                    .finish(&mut odd)
                    .expect("a file");
            }
            for window in [["--iterations", "5-20"], ["--start", "2026-01-01 08:00:30"]] {
                let run = |name: &str| {
                    let args = [&["analyze", name, "--no-files", "--format", "json"][..], &window].concat();
                    let outcome = workdir.run(&args).succeeded();
                    outcome.stdout.replace(name, "FILE")
                };
                assert_eq!(run("with.parquet"), run("without.parquet"), "{kind} {window:?}");
            }
        }
    }
}

#[test]
fn with_rerun_a_rank_is_on_that_runs_node() {
    let workdir = Workdir::new();
    let moved: String = slow_rank_5("j")
        .lines()
        .map(|line| {
            line.replace("gpu-000", "new-000")
                .replace("\"r0\"", "\"r1\"")
                .replace("\"timestamp\":1767", "\"timestamp\":1777")
                + "\n"
        })
        .collect();
    workdir.file("a.ndjson", slow_rank_5("j") + &moved);
    let nodes = |run: &str| {
        let args = ["analyze", "a.ndjson", "--rerun", run, "--no-files", "--format", "json"];
        workdir.run(&args).succeeded().json()["anomaly_nodes"].clone()
    };
    assert_eq!(nodes("r0"), serde_json::json!(["gpu-000"]));
    assert_eq!(nodes("r1"), serde_json::json!(["new-000"]));
}

#[test]
fn every_row_read_is_accounted_for() {
    for name in FIXTURES {
        let (workdir, file) = with_fixture(name);
        let json = workdir
            .run(&["analyze", &file, "--no-files", "--format", "json"])
            .succeeded()
            .json();
        let counts = json["data_quality"].as_object().expect("counts");
        let kept_or_dropped = |name: &str| {
            ![
                "rows_read",
                "rows_not_read",
                "zero_durations",
                "ranks_not_placed",
                "ranks_on_several_nodes",
            ]
            .contains(&name)
        };
        let sum: u64 = counts
            .iter()
            .filter(|(name, _)| kept_or_dropped(name))
            .filter_map(|(_, count)| count.as_u64())
            .sum();
        assert_eq!(json["data_quality"]["rows_read"], sum, "{name}: {counts:?}");
    }
}

#[test]
fn a_closed_pipe_keeps_the_exit_code() {
    let (workdir, file) = with_fixture("slow-rank");
    let mut child = workdir
        .command(&["analyze", &file, "--no-files", "--exit-code"])
        .stdout(Stdio::piped())
        .spawn()
        .expect("it starts");
    drop(child.stdout.take());
    assert_eq!(child.wait().expect("it ends").code(), Some(1));
}
