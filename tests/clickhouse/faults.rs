//! What can go wrong between the program and the server: exit code, message, how often it was tried.

use std::process::Stdio;
use std::time::{Duration, Instant};

use crate::common::{Ran, Workdir};
use crate::server::{Database, database, server, tls_server};

const ANALYZE: [&str; 4] = ["analyze", "--no-files", "--format", "json"];

fn analyze(database: &Database, more: &[&str]) -> Ran {
    let args: Vec<&str> = ANALYZE.iter().chain(more).copied().collect();
    Workdir::new().run_on(database, &args)
}

/// The run failed at the source, and says all of this.
fn failed(outcome: &Ran, words: &[&str]) {
    assert_eq!(outcome.code, Some(4), "{outcome:?}");
    for word in words {
        assert!(outcome.stderr.contains(word), "{word}: {outcome:?}");
    }
    assert!(outcome.stdout.is_empty(), "{outcome:?}");
}

fn tried_again(outcome: &Ran) -> usize {
    outcome.stderr.matches("; attempt ").count()
}

#[test]
fn a_server_that_is_down_is_told_with_its_address() {
    let workdir = Workdir::new();
    let url = [("CLICKHOUSE_URL", "http://127.0.0.1:9")];
    let args: Vec<&str> = ANALYZE.iter().copied().chain(["--retries", "1"]).collect();
    let outcome = workdir.run_with(&args, &url);
    failed(
        &outcome,
        &[
            "http://127.0.0.1:9",
            "megatron_metrics",
            "refused",
            "tried 2 times",
            "--clickhouse-url",
        ],
    );
    assert_eq!(tried_again(&outcome), 1);
}

#[test]
fn an_address_that_swallows_everything_is_given_up_in_time() {
    let workdir = Workdir::new();
    let began = Instant::now();
    // Reserved for documentation: nobody answers there, or a router refuses at once.
    let url = [("CLICKHOUSE_URL", "http://192.0.2.1:8123")];
    let args: Vec<&str> = ANALYZE
        .iter()
        .copied()
        .chain(["--retries", "0", "--connect-timeout", "0.5"])
        .collect();
    failed(&workdir.run_with(&args, &url), &["http://192.0.2.1:8123"]);
    assert!(began.elapsed() < Duration::from_secs(10));
}

#[test]
fn a_gateway_that_is_away_twice_is_asked_again() {
    let Some(database) = database("gateway") else { return };
    let database = database.with_slow_rank();
    for status in ["502", "503", "504"] {
        database.faults(&format!("fail=2&status={status}"));
        let outcome = analyze(&database, &[]).succeeded();
        assert_eq!(tried_again(&outcome), 2, "{outcome:?}");
        assert_eq!(outcome.json()["anomaly_ranks"], serde_json::json!([5]));
    }
    // In the middle of the work as well as at its beginning.
    database.faults("skip=4&fail=1");
    assert_eq!(tried_again(&analyze(&database, &[]).succeeded()), 1);
    database.faults("fail=100");
    let outcome = analyze(&database, &["--retries", "2"]);
    failed(&outcome, &["upstream is away", "tried 3 times", "--clickhouse-url"]);
}

#[test]
fn an_overloaded_server_is_asked_again_and_a_refusal_is_not() {
    let Some(database) = database("overload") else { return };
    let database = database.with_slow_rank();
    for code in [202, 209, 210] {
        database.faults(&format!("fail=1&status=500&text=Code:+{code}.+DB::Exception:+busy"));
        assert_eq!(tried_again(&analyze(&database, &[]).succeeded()), 1, "{code}");
    }
    for (code, advice) in [(241, "narrow the window"), (159, "narrow the window"), (497, "right")] {
        database.faults(&format!("fail=1&status=500&text=Code:+{code}.+DB::Exception:+no"));
        let outcome = analyze(&database, &[]);
        failed(
            &outcome,
            &[&format!("code {code}: no"), advice, "overload.megatron_metrics"],
        );
        assert_eq!(tried_again(&outcome), 0);
    }
}

#[test]
fn what_is_wrong_for_good_is_told_at_once() {
    let Some(database) = database("wrong") else { return };
    let database = database.with_slow_rank();
    let wrong_password = ["--user", "reader"];
    let outcome = analyze(&database, &wrong_password);
    failed(&outcome, &["code 516", "Authentication failed", "--password-file"]);
    assert_eq!(tried_again(&outcome), 0);
    let outcome = analyze(&database, &["--table", "nothing"]);
    failed(&outcome, &["wrong.nothing", "code 60", "--table"]);
    let outcome = analyze(&database, &["--database", "nowhere"]);
    failed(&outcome, &["nowhere.megatron_metrics", "code 81", "--database"]);
    database.sql("CREATE TABLE short (timestamp DateTime, job String) ENGINE = Memory");
    let outcome = analyze(&database, &["--table", "short"]);
    failed(
        &outcome,
        &["column `metric_name` is missing; found timestamp, job", "schema"],
    );
    database.sql("CREATE TABLE odd AS megatron_metrics ENGINE = Memory");
    database.sql("ALTER TABLE odd MODIFY COLUMN rank String");
    let outcome = analyze(&database, &["--table", "odd"]);
    failed(&outcome, &["column `rank` has type String, expected an integer"]);
}

#[test]
fn a_read_only_user_will_do() {
    let Some(database) = database("readonly") else { return };
    let database = database.with_slow_rank();
    let workdir = Workdir::new();
    let password = workdir.file("password", "s3cret\n");
    let user = ["--user", "reader", "--password-file", &password];
    let url = [
        ("CLICKHOUSE_URL", database.server.url.as_str()),
        ("CLICKHOUSE_DATABASE", database.name),
    ];
    let run = |args: &[&str]| {
        let args: Vec<&str> = args.iter().copied().chain(user).collect();
        workdir.run_with(&args, &url)
    };
    assert_eq!(
        run(&ANALYZE).succeeded().json()["anomaly_ranks"],
        serde_json::json!([5])
    );
    run(&["jobs"]).succeeded();
    run(&["export", "--out", "job.parquet"]).succeeded();
    let outcome = run(&["replay", "--job-id", "job", "--speed", "inf"]);
    assert_eq!(outcome.code, Some(4), "{outcome:?}");
    assert!(
        outcome.stderr.contains("code 164") && outcome.stderr.contains("read-only"),
        "{outcome:?}"
    );
}

/// Enough rows that an answer comes in many pieces.
fn many_rows(database: &Database) {
    database.sql(
        "INSERT INTO megatron_metrics SELECT toDateTime('2026-01-01 08:00:00', 'UTC') + intDiv(number, 64) % 4000, 'big', \
         'megatron_timers', ['forward-compute', 'backward-compute'][intDiv(number, 256000) + 1], number % 64, \
         intDiv(number, 64) % 4000, 'gpu-' || toString(number % 64 DIV 8), '', 'r0', [1 + cityHash64(number) % 1000003 / 1e8 + (number % 64 = 9)], '{}' \
         FROM numbers(512000)",
    );
}

#[test]
fn an_answer_that_breaks_off_is_thrown_away_and_asked_for_again() {
    let Some(database) = database("cut") else { return };
    let database = database.with_table();
    many_rows(&database);
    for (reduce, cut_after) in [("local", 1_500_000), ("server", 700_000)] {
        let run = |retries: &str| analyze(&database, &["--reduce", reduce, "--retries", retries]);
        let whole = run("0").succeeded();
        assert_eq!(whole.json()["anomaly_ranks"], serde_json::json!([9]));
        // In the middle of a chunk, at the boundary of one, and as an answer that seems to end well.
        for cut in [
            format!("cut=2&cut_after={cut_after}"),
            "cut=2&cut_after=0".to_owned(),
            format!("cut=2&cut_after={cut_after}&cut_clean=1"),
            "cut=2&cut_after=1&cut_clean=1".to_owned(),
        ] {
            database.faults(&cut);
            let outcome = run("8").succeeded();
            assert_eq!(outcome.stdout, whole.stdout, "{reduce} {cut}");
            assert!(tried_again(&outcome) >= 1, "{reduce} {cut}: {outcome:?}");
        }
        database.faults(&format!("cut=1000&cut_after={cut_after}&cut_clean=1"));
        failed(&run("1"), &["cut", "tried 2 times"]);
        database.faults("");
    }
}

#[test]
fn a_query_that_takes_too_long_is_ended_on_the_server() {
    let Some(database) = database("slow") else { return };
    let database = database.with_slow_rank();
    database.faults("delay_ms=3000");
    let began = Instant::now();
    let outcome = analyze(&database, &["--query-timeout", "0.5"]);
    failed(&outcome, &["no complete answer within 0.5 s", "--query-timeout"]);
    assert!(began.elapsed() < Duration::from_secs(10));
    database.faults("");
    assert!(database.count("KILL QUERY") >= 1);
    // A little slow is no fault.
    database.faults("delay_ms=50");
    analyze(&database, &[]).succeeded();
}

#[cfg(unix)]
#[test]
fn an_interrupt_ends_the_query_on_the_server() {
    let Some(database) = database("interrupted") else {
        return;
    };
    let database = database.with_table();
    // A view that is never done.
    database.sql(
        "CREATE VIEW endless AS SELECT m.* FROM megatron_metrics AS m, (SELECT sum(sleepEachRow(0.1)) FROM numbers(10000)) AS s",
    );
    database.sql(
        "CREATE VIEW slow AS SELECT toDateTime('2026-01-01 08:00:00', 'UTC') AS timestamp, 'job' AS job, 'megatron_timers' AS metric_name, \
         'forward-compute' AS subname, toInt32(0) AS rank, toInt32(sleepEachRow(0.05) + number) AS iteration, [1.0] AS metric_values \
         FROM numbers(10000) SETTINGS max_block_size = 1, function_sleep_max_microseconds_per_block = 1000000000",
    );
    let workdir = Workdir::new();
    let mut command = workdir.command(&["analyze", "--no-files", "--table", "slow", "--job-id", "job"]);
    command
        .env("CLICKHOUSE_URL", &database.server.url)
        .env("CLICKHOUSE_DATABASE", database.name);
    let child = command
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("the program starts");
    let running = || {
        database.sql("SELECT count() FROM system.processes WHERE query LIKE '%slow%' AND query NOT LIKE '%processes%'")
    };
    let wait_for = |done: &dyn Fn() -> bool| {
        let began = Instant::now();
        while !done() {
            assert!(began.elapsed() < Duration::from_secs(30), "it does not happen");
            std::thread::sleep(Duration::from_millis(50));
        }
    };
    wait_for(&|| database.count("GROUP BY metric") >= 1);
    std::thread::sleep(Duration::from_millis(300));
    let interrupt = std::process::Command::new("kill")
        .args(["-INT", &child.id().to_string()])
        .status();
    assert!(interrupt.expect("kill").success());
    let output = child.wait_with_output().expect("it ends");
    assert_eq!(output.status.code(), Some(130), "{output:?}");
    assert!(database.count("KILL QUERY") >= 1);
    wait_for(&|| running().trim() == "0");
}

#[test]
fn https_needs_an_authority_that_is_trusted() {
    let (Some(server), Some(_)) = (tls_server(), self::server()) else {
        return;
    };
    let workdir = Workdir::new();
    let authority = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/clickhouse/certificate.pem");
    let run = |more: &[&str]| {
        let args: Vec<&str> = [
            "jobs",
            "--clickhouse-url",
            &server.url,
            "--retries",
            "0",
            "--table",
            "none",
        ]
        .iter()
        .chain(more)
        .copied()
        .collect();
        workdir.run_with(&args, &[])
    };
    failed(&run(&[]), &["certificate", "--ca-file"]);
    // Past the handshake the server says what is wrong.
    failed(&run(&["--ca-file", &authority.display().to_string()]), &["code 60"]);
    let nonsense = workdir.file("nonsense.pem", "nonsense");
    failed(&run(&["--ca-file", &nonsense]), &["nonsense.pem", "no certificate"]);
}

#[test]
fn rows_that_go_between_the_count_and_the_reading_are_counted_anew() {
    let Some(database) = database("deleted") else { return };
    let database = database.with_table();
    for requests in 0..12 {
        database.sql("TRUNCATE TABLE megatron_metrics");
        database.sql(&crate::insert_slow_rank("job", 30));
        let delete = "ALTER+TABLE+deleted.megatron_metrics+DELETE+WHERE+iteration+=+30+SETTINGS+mutations_sync+=+1";
        database.faults(&format!("sql_at={requests}&sql={}", delete.replace("=+", "%3D+")));
        let outcome = analyze(&database, &["--reduce", "local"]).succeeded();
        assert_eq!(
            outcome.json()["anomaly_ranks"],
            serde_json::json!([5]),
            "after {requests} requests"
        );
    }
    database.faults("");
}
