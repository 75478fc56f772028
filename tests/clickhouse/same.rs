//! The same rows give the same results, byte for byte but for the source line, from files and from a table.

use crate::common::{Ran, Workdir, fixture};
use crate::server::{Database, database};

/// The result folder with what names the source made alike.
fn results(workdir: &Workdir, name: &str, source: &str) -> Vec<(String, String)> {
    let files = workdir.content(name).into_iter();
    files
        .map(|(name, content)| {
            (
                name,
                String::from_utf8(content).expect("text").replace(source, "SOURCE"),
            )
        })
        .collect()
}

/// Analyses a job from its file and from the table, whose results must be the same and there.
fn compare(workdir: &Workdir, database: &Database, job: &str, flags: &[&str]) {
    let (from_file, from_table) = both(workdir, database, job, flags);
    for ran in [&from_file, &from_table] {
        assert_eq!(ran.code, Some(0), "{job} {flags:?}: {ran:?}");
    }
    let file = format!("{job}.parquet");
    let source = format!("clickhouse {} {}.megatron_metrics", database.server.url, database.name);
    let (file, table) = (
        results(workdir, "from-file", &file),
        results(workdir, "from-table", &source),
    );
    assert!(
        file.iter().any(|(name, _)| name == "summary.json"),
        "{job} {flags:?}: {file:?}"
    );
    for (file, table) in file.iter().zip(&table) {
        assert_eq!(file, table, "{job} {flags:?}");
    }
    assert_eq!(file.len(), table.len(), "{job} {flags:?}");
}

/// Asks for a window in which nothing is left: both must say so, with the same counts of what took the rows.
fn compare_nothing(workdir: &Workdir, database: &Database, job: &str, flags: &[&str]) {
    let (from_file, from_table) = both(workdir, database, job, flags);
    let reason = |ran: &Ran| {
        let reason = ran.stderr.lines().find(|line| line.contains("nothing of job"));
        reason.unwrap_or_else(|| panic!("{job} {flags:?}: {ran:?}")).to_owned()
    };
    assert_eq!(
        (from_file.code, from_table.code),
        (Some(3), Some(3)),
        "{from_file:?} {from_table:?}"
    );
    assert_eq!(reason(&from_file), reason(&from_table), "{job} {flags:?}");
    for folder in ["from-file", "from-table"] {
        assert!(!workdir.path(folder).exists(), "{folder} of {job} {flags:?}");
    }
}

/// One analysis of the job's file and one of the table.
fn both(workdir: &Workdir, database: &Database, job: &str, flags: &[&str]) -> (Ran, Ran) {
    let file = format!("{job}.parquet");
    for folder in ["from-file", "from-table"] {
        let _ = std::fs::remove_dir_all(workdir.path(folder));
    }
    let with = |first: &[&'static str], more: &[&str]| {
        let args: Vec<&str> = first
            .iter()
            .copied()
            .chain(more.iter().copied())
            .chain(flags.iter().copied())
            .collect();
        workdir.run_on(database, &args)
    };
    let from_file = with(&["analyze", "--out", "from-file"], &[&file]);
    let from_table = with(&["analyze", "--out", "from-table"], &["--job-id", job]);
    (from_file, from_table)
}

#[test]
fn ten_jobs_give_the_same_from_files_and_from_a_table() {
    let Some(database) = database("same") else { return };
    let workdir = Workdir::new();
    let mut jobs: Vec<String> = Vec::new();
    for name in ["healthy", "slow-rank", "slow-rank-pp1", "heavy-stage", "restart-dirty"] {
        std::fs::copy(
            fixture(&format!("{name}.parquet")),
            workdir.path(&format!("{name}.parquet")),
        )
        .expect("a fixture");
        jobs.push(name.to_owned());
    }
    for (seed, more) in [
        ("1", ["--slow-rank", "3:1.2"]),
        ("2", ["--dirty", "0.05"]),
        ("3", ["--sequence-spread", "0.2"]),
        ("4", ["--slow-loader", "2:0.1"]),
        ("5", ["--slow-link", "0-8:10"]),
    ] {
        let job = format!("simulated-{seed}");
        let shape = ["--job", &job, "--seed", seed, "--out", ".", "--iterations", "30"];
        let args: Vec<&str> = ["simulate"].into_iter().chain(shape).chain(more).collect();
        workdir.run(&args).succeeded();
        jobs.push(job);
    }
    let files: Vec<String> = jobs.iter().map(|job| format!("{job}.parquet")).collect();
    let mut load = vec!["load", "--create"];
    load.extend(files.iter().map(String::as_str));
    workdir.run_on(&database, &load).succeeded();
    for job in &jobs {
        compare(&workdir, &database, job, &[]);
        compare(&workdir, &database, job, &["--iterations", "15-22"]);
        compare(
            &workdir,
            &database,
            job,
            &["--rules", "classic", "--iterations", "-25", "--warmup", "3"],
        );
        compare(
            &workdir,
            &database,
            job,
            &["--start", "2026-01-01 08:00:40.5", "--end", "2026-01-01 08:01:59"],
        );
        compare_nothing(&workdir, &database, job, &["--iterations", "100000-"]);
        // Of a file that the end rules out by its statistics no row is read that could be counted.
        let (from_file, from_table) = both(&workdir, &database, job, &["--end", "2001-01-01"]);
        for ran in [from_file, from_table] {
            assert!(
                ran.code == Some(3) && ran.stderr.contains("error: no rows: "),
                "{job}: {ran:?}"
            );
        }
    }
    // The lists of jobs too.
    let mut from_files = vec!["jobs"];
    from_files.extend(files.iter().map(String::as_str));
    let from_files = workdir.run_on(&database, &from_files).succeeded();
    let from_table = workdir.run_on(&database, &["jobs"]).succeeded();
    assert_eq!(from_files.stdout, from_table.stdout);
}

/// The fixture's rows in a table of another layout.
fn in_layout(name: &'static str, columns: &str, engine: &str) {
    let Some(database) = database(name) else { return };
    let workdir = Workdir::new();
    let file = "restart-dirty.parquet";
    std::fs::copy(fixture(file), workdir.path(file)).expect("a fixture");
    database.sql(&format!("CREATE TABLE megatron_metrics ({columns}) ENGINE = {engine}"));
    workdir.run_on(&database, &["load", file]).succeeded();
    let again = workdir.run_on(&database, &["load", file]).succeeded();
    assert!(again.stderr.contains(": 0 rows written"), "{again:?}");
    compare(&workdir, &database, "restart-dirty", &[]);
    compare(&workdir, &database, "restart-dirty", &["--iterations", "20-"]);
}

#[test]
fn a_table_of_the_original_layout_is_read() {
    // Current servers refuse its Object('json'); JSON is what took its place.
    in_layout(
        "original",
        "timestamp DateTime, job LowCardinality(String), metric_name LowCardinality(String), subname LowCardinality(String), \
         rank Int32, iteration Int32, node LowCardinality(String), cluster LowCardinality(String), \
         metric_values Array(Float64), attributes JSON, rerun_uuid String",
        "MergeTree ORDER BY (job, rank)",
    );
}

#[test]
fn plain_text_nullable_columns_and_fractions_of_seconds_are_read() {
    in_layout(
        "nullable",
        "timestamp Nullable(DateTime64(3, 'Europe/Berlin')), job String, metric_name Nullable(String), \
         subname LowCardinality(Nullable(String)), rank Nullable(UInt16), iteration Nullable(Int64), node Nullable(String), \
         metric_values Array(Nullable(Float64)), rerun_uuid LowCardinality(String)",
        "MergeTree ORDER BY job",
    );
}

#[test]
fn rows_that_a_replacing_engine_has_superseded_do_not_count() {
    let Some(database) = database("replacing") else { return };
    let workdir = Workdir::new();
    database.sql(
        "CREATE TABLE megatron_metrics (timestamp DateTime, job String, metric_name String, subname String, rank Int32, \
         iteration Int32, node String, metric_values Array(Float64), rerun_uuid String) \
         ENGINE = ReplacingMergeTree ORDER BY (job, metric_name, subname, rank, iteration)",
    );
    database.sql("SYSTEM STOP MERGES megatron_metrics");
    let rows = crate::insert_slow_rank("job", 30)
        .replace(r#","cluster":"c""#, "")
        .replace(r#","attributes":"{}""#, "");
    database.sql(&rows);
    database.sql(&rows);
    // A distributed table is read like the one behind it.
    database.sql(
        "CREATE TABLE everywhere AS megatron_metrics ENGINE = Distributed('one', currentDatabase(), megatron_metrics)",
    );
    for table in ["megatron_metrics", "everywhere"] {
        let args = ["analyze", "--no-files", "--format", "json", "--table", table];
        let summary = workdir.run_on(&database, &args).succeeded().json();
        assert_eq!(summary["anomaly_ranks"], serde_json::json!([5]));
        assert_eq!(summary["data_quality"]["rows_read"], 480, "{table}");
        assert_eq!(summary["data_quality"]["duplicates"], 0);
        let jobs = workdir.run_on(&database, &["jobs", "--table", table]).succeeded();
        assert!(jobs.stdout.contains("rows: 480\n"), "{jobs:?}");
    }
}

#[test]
fn nulls_and_odd_names_are_counted_as_from_a_file() {
    let Some(database) = database("nulls") else { return };
    let workdir = Workdir::new();
    database.sql(
        "CREATE TABLE megatron_metrics (timestamp Nullable(DateTime), job String, metric_name String, \
         subname Nullable(String), rank Nullable(Int32), iteration Nullable(Int32), node Nullable(String), \
         metric_values Array(Float64), rerun_uuid Nullable(String)) ENGINE = MergeTree ORDER BY job",
    );
    let job = r#"it's \ "odd" {x:Int} ? %"#;
    let quoted = serde_json::to_string(job).expect("JSON");
    let mut rows = String::new();
    let good = crate::common::slow_rank_5("job")
        .replace(r#","cluster":"c""#, "")
        .replace(r#","attributes":"{}""#, "");
    rows += &good.replace(r#""job":"job""#, &format!(r#""job":{quoted}"#));
    for (key, value) in [
        ("timestamp", "null"),
        ("subname", "null"),
        ("rank", "null"),
        ("rank", "-1"),
        ("iteration", "null"),
        ("iteration", "-7"),
        ("node", "null"),
        ("rerun_uuid", "null"),
        ("metric_values", "[]"),
        ("metric_values", "[-1]"),
        ("metric_name", "\"other\""),
        ("metric_name", "\"megatron_timers_trace\""),
    ] {
        let line = rows.lines().next().expect("a row").to_owned();
        let mut row: serde_json::Value = serde_json::from_str(&line).expect("JSON");
        row[key] = serde_json::from_str(value).expect("JSON");
        rows += &format!("{row}\n");
    }
    database.sql(&format!("INSERT INTO megatron_metrics FORMAT JSONEachRow\n{rows}"));
    workdir.file("job.ndjson", &rows);
    let quality = |args: &[&str]| {
        let mut all = vec!["analyze", "--no-files", "--format", "json"];
        all.extend(args);
        let summary = workdir.run_on(&database, &all).succeeded().json();
        (
            summary["data_quality"].clone(),
            summary["runs"].clone(),
            summary["votes"].clone(),
        )
    };
    assert_eq!(quality(&["job.ndjson"]), quality(&["--job-id", job]));
    assert_eq!(
        quality(&["job.ndjson", "--iterations", "3-18"]),
        quality(&["--iterations", "3-18"])
    );
    let unknown = workdir.run_on(&database, &["analyze", "--no-files", "--job-id", "nobody"]);
    assert_eq!(unknown.code, Some(3), "{unknown:?}");
    assert!(unknown.stderr.contains("no rows of job `nobody`"), "{unknown:?}");
}
