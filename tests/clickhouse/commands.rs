//! `schema`, `load`, `export` and `replay`.

use crate::common::{Workdir, fixture};
use crate::server::database;

#[test]
fn the_schema_of_a_cluster_names_its_tables() {
    let workdir = Workdir::new();
    let args = ["schema", "--cluster", "main", "--database", "metrics", "--table", "t"];
    let text = workdir.run_with(&args, &[]).succeeded().stdout;
    for part in [
        "CREATE TABLE IF NOT EXISTS `metrics`.`t_local` ON CLUSTER `main`",
        "ReplicatedMergeTree('/clickhouse/tables/{uuid}/{shard}', '{replica}')",
        "PARTITION BY toYYYYMM(timestamp)",
        "ORDER BY (job, ",
        "CREATE TABLE IF NOT EXISTS `metrics`.`t` ON CLUSTER `main` AS `metrics`.`t_local`",
        "Distributed(`main`, 'metrics', 't_local', cityHash64(job))",
    ] {
        assert!(text.contains(part), "{part}: {text}");
    }
    assert_eq!(text.matches(";\n").count(), 2);
}

#[test]
fn loading_again_changes_nothing_and_completes_what_broke_off() {
    let Some(database) = database("loading") else { return };
    let workdir = Workdir::new();
    for name in ["restart-dirty", "slow-rank"] {
        let file = format!("{name}.parquet");
        std::fs::copy(fixture(&file), workdir.path(&file)).expect("a fixture");
    }
    let files = ["load", "restart-dirty.parquet", "slow-rank.parquet"];
    let missing = workdir.run_on(&database, &files);
    assert_eq!(missing.code, Some(4), "{missing:?}");
    assert!(missing.stderr.contains("code 60"), "{missing:?}");
    let load = |more: &[&str]| {
        let args: Vec<&str> = files.iter().chain(more).copied().collect();
        workdir.run_on(&database, &args).succeeded().stderr
    };
    let whole = |_: ()| database.sql("SELECT count(), sum(cityHash64(* EXCEPT attributes)) FROM megatron_metrics");
    let first = load(&["--create"]);
    assert!(
        first.contains("rows written, 0 were there already, 0 left out"),
        "{first}"
    );
    let there = whole(());
    let again = load(&["--create"]);
    assert!(again.contains(": 0 rows written"), "{again}");
    assert_eq!(whole(()), there);
    // A part is lost.
    database.sql("DELETE FROM megatron_metrics WHERE rank = 3");
    assert_ne!(whole(()), there);
    load(&[]);
    assert_eq!(whole(()), there);
    // The answer to an insert is lost, or the insert itself.
    database.sql("TRUNCATE TABLE megatron_metrics");
    database.faults("skip=5&fail=1");
    load(&[]);
    database.faults("");
    assert_eq!(whole(()), there);
}

#[test]
fn equal_rows_are_loaded_as_often_as_the_file_holds_them() {
    let Some(database) = database("equal") else { return };
    let database = database.with_slow_rank();
    let workdir = Workdir::new();
    database.sql("INSERT INTO megatron_metrics SELECT * FROM megatron_metrics");
    workdir
        .run_on(&database, &["export", "--out", "twice.parquet"])
        .succeeded();
    database.sql("TRUNCATE TABLE megatron_metrics");
    workdir.run_on(&database, &["load", "twice.parquet"]).succeeded();
    workdir.run_on(&database, &["load", "twice.parquet"]).succeeded();
    assert_eq!(database.sql("SELECT count() FROM megatron_metrics").trim(), "960");
}

#[test]
fn an_export_gives_the_same_verdict_as_the_table() {
    let Some(database) = database("exporting") else { return };
    let workdir = Workdir::new();
    let file = "restart-dirty.parquet";
    std::fs::copy(fixture(file), workdir.path(file)).expect("a fixture");
    workdir.run_on(&database, &["load", "--create", file]).succeeded();
    workdir
        .run_on(&database, &["export", "--out", "out.parquet"])
        .succeeded();
    let analyze = |args: &[&str]| {
        let args: Vec<&str> = ["analyze", "--no-files", "--format", "json"]
            .iter()
            .chain(args)
            .copied()
            .collect();
        let mut summary = workdir.run_on(&database, &args).succeeded().json();
        summary["sources"] = serde_json::Value::Null;
        summary
    };
    assert_eq!(analyze(&[file]), analyze(&["out.parquet"]));
    let taken = workdir.run_on(&database, &["export", "--out", "out.parquet"]);
    assert_eq!(taken.code, Some(5), "{taken:?}");
    workdir
        .run_on(
            &database,
            &["export", "--out", "out.parquet", "--force", "--iterations", "15-20"],
        )
        .succeeded();
    let window = analyze(&["out.parquet", "--warmup", "0"]);
    assert_eq!(
        (
            &window["window"]["first_iteration"],
            &window["window"]["last_iteration"]
        ),
        (&15.into(), &20.into())
    );
    let nothing = workdir.run_on(
        &database,
        &[
            "export",
            "--out",
            "none.parquet",
            "--start",
            "2040-01-01",
            "--iterations",
            "9999-",
        ],
    );
    assert_eq!(nothing.code, Some(3), "{nothing:?}");
    // The questions before it have short answers.
    database.faults("cut=2&cut_after=3000");
    let outcome = workdir
        .run_on(&database, &["export", "--out", "cut.parquet"])
        .succeeded();
    assert!(outcome.stderr.contains("; attempt "), "{outcome:?}");
    assert_eq!(analyze(&[file]), analyze(&["cut.parquet"]));
    assert!(
        !workdir.names().iter().any(|name| name.contains(".part")),
        "{:?}",
        workdir.names()
    );
}

#[test]
fn a_replay_is_the_job_under_a_new_id_and_time() {
    let Some(database) = database("replaying") else { return };
    let database = database.with_slow_rank();
    let workdir = Workdir::new();
    let began = chrono::Utc::now().timestamp();
    // 290 recorded seconds, in about three.
    let outcome = workdir
        .run_on(&database, &["replay", "--job-id", "job", "--speed", "100"])
        .succeeded();
    let id = outcome.stdout.trim().to_owned();
    assert!(id.starts_with("sim-") && id.len() == 40, "{outcome:?}");
    let verdict = workdir
        .run_on(&database, &["analyze", "--no-files", "--job-id", &id])
        .succeeded();
    assert!(verdict.stdout.contains("anomaly_ranks: [5]"), "{verdict:?}");
    let times = database.sql(&format!(
        "SELECT toUnixTimestamp(min(timestamp)), toUnixTimestamp(max(timestamp)), count() FROM megatron_metrics WHERE job = '{id}'"
    ));
    let numbers: Vec<i64> = times
        .split_whitespace()
        .map(|number| number.parse().expect("a number"))
        .collect();
    assert!(
        numbers[0] >= began && (2..=4).contains(&(numbers[1] - numbers[0])),
        "{times}"
    );
    assert_eq!(numbers[2], 480);
    let at_once = ["replay", "--job-id", "job", "--speed", "inf", "--as-job", "it's a copy"];
    workdir.run_on(&database, &at_once).succeeded();
    assert_eq!(
        database
            .sql("SELECT count() FROM megatron_metrics WHERE job LIKE 'it%'")
            .trim(),
        "480"
    );
    for (args, code) in [
        (&["replay", "--job-id", "nobody"][..], 3),
        (&["replay", "--job-id", "job", "--speed", "0"], 2),
        (&["replay", "--job-id", "job", "--as-job", "job"], 2),
    ] {
        assert_eq!(workdir.run_on(&database, args).code, Some(code), "{args:?}");
    }
}

#[test]
fn an_export_keeps_the_nulls_of_a_table() {
    let Some(database) = database("exporting_nulls") else {
        return;
    };
    let workdir = Workdir::new();
    database.sql(
        "CREATE TABLE megatron_metrics (timestamp Nullable(DateTime64(3, 'Europe/Berlin')), job String, \
         metric_name Nullable(String), subname Nullable(String), rank Nullable(Int32), iteration Nullable(Int32), \
         node Nullable(String), metric_values Array(Nullable(Float64)), rerun_uuid Nullable(String)) \
         ENGINE = MergeTree ORDER BY job",
    );
    let mut rows = crate::common::slow_rank_5("job")
        .replace(r#","cluster":"c""#, "")
        .replace(r#","attributes":"{}""#, "");
    let lines: Vec<String> = rows.lines().map(str::to_owned).collect();
    for (key, times, iteration) in [
        ("timestamp", 3, 1),
        ("iteration", 2, 1),
        ("subname", 1, 10),
        ("rank", 1, 10),
        ("node", 1, 10),
    ] {
        let line = &lines[16 * (iteration - 1)];
        for _ in 0..times {
            let mut row: serde_json::Value = serde_json::from_str(line).expect("JSON");
            row[key] = serde_json::Value::Null;
            rows += &format!("{row}\n");
        }
    }
    database.sql(&format!("INSERT INTO megatron_metrics FORMAT JSONEachRow\n{rows}"));
    let quality = |args: &[&str]| {
        let args = [&["analyze", "--no-files", "--warmup", "0", "--format", "json"], args].concat();
        let summary = workdir.run_on(&database, &args).succeeded().json();
        (summary["data_quality"].clone(), summary["anomaly_ranks"].clone())
    };
    workdir
        .run_on(&database, &["export", "--out", "all.parquet"])
        .succeeded();
    assert_eq!(quality(&["all.parquet"]), quality(&[]));
    assert_eq!(quality(&["all.parquet"]).0["unreadable_rows"], 7);
    // What says nothing of its place goes along with every window.
    for window in [
        ["--iterations", "5-18"],
        ["--start", "2026-01-01 08:01:00"],
        ["--end", "2026-01-01 08:03:00"],
    ] {
        let export = [&["export", "--out", "window.parquet", "--force"][..], &window].concat();
        workdir.run_on(&database, &export).succeeded();
        let (file, table) = (quality(&["window.parquet"]).0, quality(&window).0);
        for count in ["unreadable_rows", "timer_rows_used"] {
            assert_eq!(file[count], table[count], "{count} {window:?}: {file} {table}");
        }
    }
    // They are no window by themselves.
    let export = [
        "export",
        "--out",
        "none.parquet",
        "--start",
        "2040-01-01",
        "--iterations",
        "9999-",
    ];
    let nothing = workdir.run_on(&database, &export);
    assert_eq!(nothing.code, Some(3), "{nothing:?}");
    // A replay has no place for what has no time.
    let outcome = workdir
        .run_on(&database, &["replay", "--job-id", "job", "--speed", "inf"])
        .succeeded();
    assert!(
        outcome
            .stderr
            .contains("325 rows of job `job` copied, 3 without a time left out"),
        "{outcome:?}"
    );
}

#[test]
fn a_replay_of_a_job_whose_rows_go_meanwhile_fails() {
    let Some(database) = database("replaying_less") else {
        return;
    };
    let database = database.with_slow_rank();
    let workdir = Workdir::new();
    let copy = std::thread::scope(|scope| {
        let replay = scope.spawn(|| {
            workdir.run_on(
                &database,
                &["replay", "--job-id", "job", "--as-job", "copy", "--speed", "100"],
            )
        });
        let copied = "SELECT count() FROM megatron_metrics WHERE job = 'copy'";
        while database.sql(copied).trim() == "0" && !replay.is_finished() {
            std::thread::sleep(std::time::Duration::from_millis(20));
        }
        database.sql("DELETE FROM megatron_metrics WHERE job = 'job' AND iteration = 30");
        replay.join().expect("it ends")
    });
    assert_eq!(copy.code, Some(4), "{copy:?}");
    assert!(copy.stderr.contains("464 rows were copied of 480"), "{copy:?}");
}
