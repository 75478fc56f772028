//! `sweep`: every job of a span of time, whatever some of them do.

use std::process::Stdio;
use std::time::{Duration, Instant};

use crate::common::Workdir;
use crate::server::database;

#[test]
fn broken_jobs_stop_nothing_and_an_unchanged_one_is_not_analysed_again() {
    let Some(database) = database("sweeping") else { return };
    let database = database.with_table();
    for job in ["fine-1", "fine-2", "it's/odd"] {
        database.sql(&crate::insert_slow_rank(job, 30));
    }
    // Still starting up; a window that can't be tabulated; rows that say nothing.
    database.sql(&crate::insert_slow_rank("young", 4));
    database.sql(
        "INSERT INTO megatron_metrics SELECT toDateTime('2026-01-01 08:00:00', 'UTC'), 'sparse', 'megatron_timers', 'forward-compute', \
         number, number * 1000, 'n', '', '', [1], '{}' FROM numbers(20000)",
    );
    database.sql(
        "INSERT INTO megatron_metrics SELECT toDateTime('2026-01-01 08:00:00', 'UTC'), 'mute', 'megatron_timers', 'forward-compute', \
         number, 50, 'n', '', '', [nan], '{}' FROM numbers(20)",
    );
    database.sql(
        "INSERT INTO megatron_metrics SELECT toDateTime('2026-01-01 08:00:00', 'UTC'), 'garbled', 'megatron_timers', unhex('ff41'), \
         number % 16, intDiv(number, 16), 'n', '', '', [1], '{}' FROM numbers(480)",
    );
    let workdir = Workdir::new();
    let sweep = [
        "sweep",
        "--start",
        "2026-01-01",
        "--end",
        "2026-01-02",
        "--out",
        "s",
        "--resume",
    ];
    let outcome = workdir.run_on(&database, &sweep);
    assert_eq!(outcome.code, Some(4), "{outcome:?}");
    let json = || -> serde_json::Value {
        serde_json::from_slice(&std::fs::read(workdir.path("s/sweep.json")).expect("the ledger")).expect("JSON")
    };
    let ledger = json();
    let status = |ledger: &serde_json::Value, job: &str| {
        let jobs = ledger["jobs"].as_array().expect("jobs");
        let found = jobs.iter().find(|result| result["job"] == job).expect("the job");
        (
            found["status"].as_str().expect("a status").to_owned(),
            found["anomaly_ranks"].clone(),
        )
    };
    for job in ["fine-1", "fine-2", "it's/odd"] {
        assert_eq!(
            status(&ledger, job),
            ("analysed".to_owned(), serde_json::json!([5])),
            "{job}"
        );
        assert!(
            outcome.stdout.contains(&format!("{job}: compute: ranks [5]")),
            "{outcome:?}"
        );
    }
    assert_eq!(status(&ledger, "sparse").0, "failed");
    assert_eq!(status(&ledger, "garbled").0, "failed");
    assert!(outcome.stdout.contains("a text is not UTF-8"), "{outcome:?}");
    assert!(outcome.stdout.contains("too sparse"), "{outcome:?}");
    for job in ["young", "mute"] {
        assert_eq!(status(&ledger, job).0, "no-rows", "{job}");
        assert!(!outcome.stdout.contains(job), "{outcome:?}");
    }
    assert!(workdir.path("s/jobs/fine-1/summary.json").is_file());
    let page = std::fs::read_to_string(workdir.path("s/index.html")).expect("the page");
    assert!(
        page.contains("href=\"jobs/fine-1/report.html\"") && page.contains("it's/odd"),
        "{page}"
    );
    let table = std::fs::read_to_string(workdir.path("s/sweep.csv")).expect("the table");
    assert_eq!(table.lines().count(), 8, "{table}");

    // Once more: what failed is tried again, what is new is analysed, the rest is kept.
    let asked = |job: &str| database.count(&format!("\"param_job\": \"{job}\""));
    let (before, sparse) = (asked("fine-1"), asked("sparse"));
    database.sql(&crate::insert_slow_rank("fine-2", 31));
    let first = (asked("fine-2"), ledger);
    workdir.run_on(&database, &sweep);
    assert_eq!(asked("fine-1"), before);
    assert!(asked("sparse") > sparse && asked("fine-2") > first.0);
    assert_ne!(json(), first.1);
}

#[test]
fn a_sweep_is_quiet_when_nobody_stands_out_and_works_on_files() {
    let workdir = Workdir::new();
    let healthy = crate::common::job("well", "forward-compute", 16, 30, |rank, _| {
        1.0 + f64::from(rank % 3) / 1000.0
    });
    workdir.file("well.ndjson", healthy);
    let outcome = workdir
        .run_with(&["sweep", "well.ndjson", "--out", "s", "--exit-code"], &[])
        .succeeded();
    assert!(outcome.stdout.is_empty() && outcome.stderr.is_empty(), "{outcome:?}");
    let outcome = workdir
        .run_with(&["sweep", "well.ndjson", "--out", "s", "--verbose"], &[])
        .succeeded();
    assert!(
        outcome.stdout.contains("well: healthy: nobody is to blame"),
        "{outcome:?}"
    );
    workdir.file("slow.ndjson", crate::common::slow_rank_5("slow"));
    let outcome = workdir.run_with(
        &["sweep", "well.ndjson", "slow.ndjson", "--out", "s", "--exit-code"],
        &[],
    );
    assert_eq!(outcome.code, Some(1), "{outcome:?}");
    let args = ["sweep", "well.ndjson", "slow.ndjson", "--since", "1h", "--out", "s"];
    assert_eq!(
        workdir.run_with(&args, &[]).code,
        Some(0),
        "a night without jobs is no failure"
    );
    let args = [
        "sweep",
        "well.ndjson",
        "slow.ndjson",
        "--out",
        "s",
        "--",
        "--rules",
        "nonsense",
    ];
    let outcome = workdir.run_with(&args, &[]);
    assert_eq!(outcome.code, Some(2), "{outcome:?}");
    workdir.file("other", "x");
    for (args, code) in [
        (&["sweep", "well.ndjson", "--out", "."][..], 5),
        (&["sweep", "well.ndjson", "--since", "24"], 2),
        (&["sweep", "well.ndjson", "--jobs-in-parallel", "0"], 2),
        (&["sweep", "well.ndjson", "--since", "1h", "--start", "2026-01-01"], 2),
    ] {
        assert_eq!(workdir.run_with(args, &[]).code, Some(code), "{args:?}");
    }
}

#[test]
fn two_sweeps_do_not_overlap_and_time_that_is_up_ends_a_job() {
    let Some(database) = database("overlap") else { return };
    let database = database.with_table();
    for job in ["a", "b", "c"] {
        database.sql(&crate::insert_slow_rank(job, 30));
    }
    database.faults("delay_ms=400");
    let workdir = Workdir::new();
    let mut first = workdir.command(&["sweep", "--out", "s"]);
    first
        .env("CLICKHOUSE_URL", &database.server.url)
        .env("CLICKHOUSE_DATABASE", database.name);
    let mut first = first.stdout(Stdio::null()).spawn().expect("the program starts");
    let began = Instant::now();
    while !workdir.path("s/.lock").is_file() && began.elapsed() < Duration::from_secs(10) {
        std::thread::sleep(Duration::from_millis(10));
    }
    std::thread::sleep(Duration::from_millis(50));
    let second = workdir.run_on(&database, &["sweep", "--out", "s"]);
    assert_eq!(second.code, Some(6), "{second:?}");
    assert!(second.stderr.contains("another sweep is at work in s"), "{second:?}");
    assert!(first.wait().expect("it ends").success());
    let limited = [
        "sweep",
        "--out",
        "t",
        "--job-time-limit",
        "0.2s",
        "--jobs-in-parallel",
        "3",
    ];
    let outcome = workdir.run_on(&database, &limited);
    assert_eq!(outcome.code, Some(4), "{outcome:?}");
    assert_eq!(outcome.stdout.matches("out-of-time").count(), 3, "{outcome:?}");
    let limited = ["sweep", "--out", "u", "--time-limit", "0.3s", "--jobs-in-parallel", "1"];
    let outcome = workdir.run_on(&database, &limited);
    assert!(outcome.stdout.contains("not-reached"), "{outcome:?}");
}

/// Whether a sweep kept a job's result: one that is analysed again is written anew.
fn kept(workdir: &Workdir, job: &str, sweep: impl Fn() -> crate::common::Ran) -> bool {
    let summary = workdir.path(&format!("s/jobs/{job}/summary.txt"));
    let content = std::fs::read_to_string(&summary).expect("a summary");
    std::fs::write(&summary, "of the sweep before").expect("a summary");
    sweep().succeeded();
    let now = std::fs::read_to_string(&summary).expect("a summary");
    std::fs::write(&summary, content).expect("a summary");
    now == "of the sweep before"
}

#[test]
fn a_result_from_files_is_kept_as_long_as_its_rows_are_the_same() {
    let workdir = Workdir::new();
    std::fs::create_dir(workdir.path("in")).expect("a folder");
    // From 08:00:10 to 08:03:20.
    workdir.file("in/a.ndjson", crate::common::slow_rank_5("a"));
    workdir.file("other.ndjson", crate::common::slow_rank_5("a"));
    let (at, day) = (|time: &str| format!("2026-01-01 {time}"), ["--start", "2026-01-01"]);
    let kept = |input: &str, span: &[&str]| {
        let args = [&["sweep", input, "--out", "s", "--resume"], span].concat();
        kept(&workdir, "a", || workdir.run_with(&args, &[]))
    };
    workdir.run_with(&["sweep", "in", "--out", "s"], &[]).succeeded();
    assert!(kept("in", &[]) && kept("in", &day) && kept("in", &["--start", &at("08:00:10"), "--end", "2026-01-02"]));
    assert!(!kept("in", &["--end", &at("08:02:00")]));
    assert!(kept("in", &["--end", &at("08:02:00")]) && kept("in", &[&day[..], &["--end", &at("08:02:00")]].concat()));
    assert!(!kept("in", &["--start", &at("08:01:00")]));
    let window = std::fs::read(workdir.path("s/jobs/a/summary.json")).expect("a summary");
    let window: serde_json::Value = serde_json::from_slice(&window).expect("JSON");
    assert_eq!(window["window"]["last_iteration"], 20);
    assert!(!kept("in", &[]));
    // Another file; more files with other jobs, however they are named; more rows.
    assert!(!kept("other.ndjson", &[]) && !kept("in", &[]));
    workdir.file("in/b.ndjson", crate::common::slow_rank_5("b"));
    assert!(kept("in", &[]) && kept("in/*.ndjson", &[]));
    workdir.file("in/c.ndjson", crate::common::row("a", "forward-compute", 3, 21, 1.0));
    assert!(!kept("in", &[]) && kept("in", &[]));
    // The same letters, other flags.
    assert!(!kept("in", &["--", "--warmup", "2"]) && !kept("in", &["--", "--warmup=2"]));
}

#[test]
fn a_result_from_a_table_is_kept_as_long_as_its_rows_are_the_same() {
    let Some(database) = database("resuming") else { return };
    let database = database.with_table();
    database.sql(&crate::insert_slow_rank("a", 30));
    database.sql("CREATE TABLE b AS megatron_metrics");
    database.sql("INSERT INTO b SELECT * FROM megatron_metrics");
    let workdir = Workdir::new();
    let kept = |flags: &[&str]| {
        let args = [&["sweep", "--out", "s", "--resume"], flags].concat();
        kept(&workdir, "a", || workdir.run_on(&database, &args))
    };
    workdir.run_on(&database, &["sweep", "--out", "s"]).succeeded();
    // A start that moves, before the job's first row and between two of its rows.
    assert!(kept(&[]) && kept(&["--start", "2025-12-01"]) && kept(&["--start", "2026-01-01", "--end", "2026-01-02"]));
    assert!(!kept(&["--start", "2026-01-01 08:01:01"]));
    assert!(kept(&["--start", "2026-01-01 08:01:05.5"]) && !kept(&["--start", "2026-01-01 08:01:15"]));
    assert!(!kept(&["--end", "2026-01-01 08:03:00"]) && kept(&["--end", "2026-01-01 08:03:09"]));
    assert!(!kept(&[]) && !kept(&["--table", "b"]) && kept(&["--table", "b"]) && !kept(&[]));
}

/// What the processes of a running sweep can be seen with.
#[cfg(target_os = "linux")]
fn arguments_of_children(id: u32) -> String {
    let list = std::fs::read_dir("/proc").expect("processes").flatten();
    let mut all = String::new();
    for process in list {
        let read = |name: &str| std::fs::read_to_string(process.path().join(name)).unwrap_or_default();
        let parent = format!("PPid:\t{id}\n");
        if read("status").contains(&parent) {
            all += &read("cmdline").replace('\0', " ");
            all.push('\n');
        }
    }
    all
}

#[cfg(target_os = "linux")]
#[test]
fn the_password_of_an_address_is_in_no_argument_of_a_process() {
    let Some(database) = database("argv") else { return };
    let database = database.with_table();
    database.sql(&crate::insert_slow_rank("a", 30));
    database.faults("delay_ms=200");
    let workdir = Workdir::new();
    let address = database.server.url.replace("http://", "http://reader:s3cret@");
    let address = format!("--clickhouse-url={address}/?database=argv");
    let mut command = workdir.bare_command(&["sweep", &address, "--out", "s"]);
    let mut sweep = command.stdout(Stdio::null()).spawn().expect("the program starts");
    let mut seen = String::new();
    let ended = loop {
        seen += &arguments_of_children(sweep.id());
        if let Some(ended) = sweep.try_wait().expect("it can be looked at") {
            break ended;
        }
        std::thread::sleep(Duration::from_millis(20));
    };
    assert!(ended.success());
    assert!(
        seen.contains("--clickhouse-url=http://") && seen.contains("--job-id=a"),
        "{seen}"
    );
    assert!(!seen.contains("s3cret") && !seen.contains("reader"), "{seen}");
    // What the environment says counts before the address, as without processes.
    let wrong = [("CLICKHOUSE_PASSWORD", "wr0ng-one")];
    let outcome = workdir.run_with(&["sweep", &address, "--out", "t"], &wrong);
    assert!(
        outcome.code == Some(4) && outcome.stderr.contains("code 516"),
        "{outcome:?}"
    );
}

/// Processes whose time is up, and those of a sweep that is interrupted, still end their queries.
#[cfg(unix)]
#[test]
fn an_analysis_that_is_ended_ends_its_queries() {
    let Some(database) = database("ending") else { return };
    let database = database.with_table();
    for job in ["a", "b"] {
        database.sql(&crate::insert_slow_rank(job, 30));
    }
    database.faults("delay_ms=1000");
    let workdir = Workdir::new();
    let late = ["sweep", "--out", "s", "--job-time-limit", "0.7s"];
    let outcome = workdir.run_on(&database, &late);
    assert_eq!(outcome.stdout.matches("out-of-time").count(), 2, "{outcome:?}");
    assert_eq!(database.count("KILL QUERY"), 2);
    assert!(workdir.content("s").iter().all(|(name, _)| !name.starts_with("jobs")));

    let mut command = workdir.command(&["sweep", "--out", "t"]);
    command.env("CLICKHOUSE_URL", &database.server.url);
    let command = command.env("CLICKHOUSE_DATABASE", database.name).stderr(Stdio::null());
    let mut sweep = command.spawn().expect("the program starts");
    let asked = |job: &str| database.count(&format!("\"param_job\": \"{job}\""));
    let before = (asked("a"), asked("b"));
    let began = Instant::now();
    while (asked("a") == before.0 || asked("b") == before.1) && began.elapsed() < Duration::from_secs(30) {
        std::thread::sleep(Duration::from_millis(20));
    }
    let id = sweep.id().to_string();
    let sent = std::process::Command::new("kill").args(["-s", "TERM", &id]).status();
    assert!(sent.expect("kill").success());
    assert_eq!(sweep.wait().expect("it ends").code(), Some(130));
    assert!(database.count("KILL QUERY") >= 4, "{}", database.count("KILL QUERY"));
}
