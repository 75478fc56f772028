//! What a user does wrong, or the machine: an exit code, one clear message, nothing written.

mod common;

use common::{Ran, Workdir, job, ran, row, slow_rank_5};

/// Runs `analyze` with a result folder and checks that it fails as documented and leaves nothing.
fn refused(workdir: &Workdir, args: &[&str], code: i32, says: &[&str]) -> Ran {
    let before = workdir.names();
    let all: Vec<&str> = ["analyze"]
        .iter()
        .chain(args)
        .chain(&["--out", "results/r"])
        .copied()
        .collect();
    let outcome = workdir.run(&all);
    assert_eq!(outcome.code, Some(code), "{outcome:?}");
    for part in says {
        assert!(outcome.stderr.contains(part), "`{part}` is not in: {outcome:?}");
    }
    assert_eq!(outcome.stdout, "", "nothing goes to standard output");
    assert_eq!(outcome.stderr.trim_end().lines().count(), 1, "one message: {outcome:?}");
    assert_eq!(workdir.names(), before, "nothing is written");
    outcome
}

#[test]
fn no_such_file() {
    refused(&Workdir::new(), &["gone.parquet"], 4, &["gone.parquet", "no such file"]);
}

#[test]
fn empty_files() {
    let workdir = Workdir::new();
    for name in ["a.parquet", "a.csv", "a.ndjson", "a.arrow"] {
        workdir.file(name, "");
        refused(&workdir, &[name], 4, &[name, "is empty"]);
    }
}

#[test]
fn not_what_the_ending_says() {
    let workdir = Workdir::new();
    workdir.file("a.parquet", "this is text\n");
    refused(&workdir, &["a.parquet"], 4, &["a.parquet", "no Parquet file"]);
    workdir.file("a.arrow", "this is text\n");
    refused(&workdir, &["a.arrow"], 4, &["a.arrow", "no Arrow IPC file"]);
    workdir.file("a.ndjson", "this is text\n");
    refused(&workdir, &["a.ndjson"], 4, &["a.ndjson", "line 1"]);
    workdir.file("notes.txt", "this is text\n");
    refused(&workdir, &["notes.txt"], 4, &["notes.txt"]);
}

#[test]
fn truncated_parquet() {
    let workdir = Workdir::new();
    let whole = std::fs::read(common::fixture("slow-rank.parquet")).expect("the fixture");
    for share in [1, 10, 50, 99] {
        workdir.file("cut.parquet", &whole[..whole.len() * share / 100]);
        refused(&workdir, &["cut.parquet"], 4, &["cut.parquet", "cut short"]);
    }
}

#[test]
fn parquet_with_damaged_pages() {
    let workdir = Workdir::new();
    let whole = std::fs::read(common::fixture("slow-rank.parquet")).expect("the fixture");
    let mut damaged = whole.clone();
    // The marks at both ends and the footer stay, the pages in between do not.
    for byte in &mut damaged[8..whole.len() / 2] {
        *byte ^= 0x5a;
    }
    workdir.file("bad.parquet", damaged);
    refused(&workdir, &["bad.parquet"], 4, &["bad.parquet", "row group"]);
    let mut damaged = whole.clone();
    let end = damaged.len() - 8;
    for byte in &mut damaged[end - 200..end] {
        *byte ^= 0x5a;
    }
    workdir.file("bad.parquet", damaged);
    refused(&workdir, &["bad.parquet"], 4, &["bad.parquet"]);
}

#[test]
fn a_missing_column_is_named_with_those_that_are_there() {
    let workdir = Workdir::new();
    workdir.file("a.csv", "timestamp,job,metric_name,subname,iteration,metric_values\n");
    refused(&workdir, &["a.csv"], 4, &["`rank` is missing", "subname, iteration"]);
    workdir.file("a.ndjson", "{\"job\":\"j\",\"rank\":0}\n");
    refused(
        &workdir,
        &["a.ndjson"],
        4,
        &["`timestamp` is missing", "job, rank", "line 1"],
    );
}

#[test]
fn a_wrong_type_of_values() {
    let workdir = Workdir::new();
    workdir.file(
        "a.csv",
        "timestamp,job,metric_name,subname,rank,iteration,metric_values\n2026-01-01 00:00:00,j,megatron_timers,t,0,1,slow\n",
    );
    refused(&workdir, &["a.csv"], 4, &["line 2", "`metric_values`", "nor an array"]);
    workdir.file("a.ndjson", row("j", "t", 0, 1, 0.5).replace("[0.5]", "\"slow\"") + "\n");
    refused(
        &workdir,
        &["a.ndjson"],
        4,
        &["line 1", "`metric_values`", "nor an array"],
    );
}

#[test]
fn an_unknown_job_is_answered_with_those_there_are() {
    let workdir = Workdir::new();
    workdir.file("a.ndjson", slow_rank_5("alpha") + &slow_rank_5("beta"));
    refused(
        &workdir,
        &["a.ndjson", "--job-id", "gamma"],
        3,
        &["`gamma`", "alpha, beta"],
    );
    refused(&workdir, &["a.ndjson"], 3, &["--job-id", "alpha, beta"]);
}

#[test]
fn a_window_without_rows() {
    let workdir = Workdir::new();
    workdir.file("a.ndjson", slow_rank_5("alpha"));
    refused(
        &workdir,
        &["a.ndjson", "--iterations", "500-600"],
        3,
        &["outside of the asked iterations", "iterations 1-20"],
    );
    refused(
        &workdir,
        &["a.ndjson", "--start", "2030-01-01"],
        3,
        &["alpha", "2026-01-01"],
    );
    refused(&workdir, &["a.ndjson", "--warmup", "50"], 3, &["start-up iterations"]);
    refused(&workdir, &["a.ndjson", "--rerun", "r7"], 3, &["r7", "r0"]);
}

#[test]
fn arguments_that_make_no_sense() {
    let workdir = Workdir::new();
    workdir.file("a.ndjson", slow_rank_5("alpha"));
    for (args, says) in [
        (&["--iterations", "ten"][..], "--iterations"),
        (&["--iterations", "20-10"], "ends before it begins"),
        (&["--start", "noon"], "--start"),
        (&["--start", "2026-01-02", "--end", "2026-01-01"], "--start"),
        (&["--algorithm", "psychic"], "psychic"),
        (&["--rules", "classic", "--min-spread=-1"], "--min-spread"),
        (&["--rules", "classic", "--min-spread", "NaN"], "--min-spread"),
        (&["--rules", "classic", "--gate-factor", "inf"], "--gate-factor"),
        (
            &["--rules", "classic", "--timer-weight", "forward-compute"],
            "--timer-weight",
        ),
        (&["--min-spread", "0.1"], "it belongs to --rules classic"),
        (
            &["--rules", "classic", "--effect-floor", "0.1"],
            "it belongs to --rules peer",
        ),
        (&["--effect-floor=-1"], "--effect-floor"),
        (&["--false-alarm-rate", "0"], "--false-alarm-rate"),
        (&["--lasting-share", "NaN"], "--lasting-share"),
        (&["--threads", "0"], "--threads"),
        (&["--threads", "100000"], "--threads"),
    ] {
        let all: Vec<&str> = ["a.ndjson"].iter().chain(args).copied().collect();
        let outcome = workdir.run(&[&["analyze"], &all[..]].concat());
        assert_eq!(outcome.code, Some(2), "{args:?}: {outcome:?}");
        assert!(outcome.stderr.contains(says), "{args:?}: {outcome:?}");
        assert_eq!(workdir.names(), ["a.ndjson"]);
    }
}

#[test]
fn no_timer_left_is_an_answer_with_its_reasons() {
    let workdir = Workdir::new();
    let text = job("j", "forward-compute", 8, 20, |_, _| 1.0)
        + &job("j", "interval-time", 8, 20, |_, _| 3.0)
        + &job("j", "batch-generator", 3, 20, |_, _| 0.1);
    workdir.file("a.ndjson", text);
    let outcome = workdir
        .run(&["analyze", "a.ndjson", "--rules", "classic", "--no-files", "-v"])
        .succeeded();
    for line in ["anomaly_ranks: []", "anomaly_nodes: []", "cause: none"] {
        assert!(outcome.stdout.lines().any(|there| there == line), "{outcome:?}");
    }
    let why = outcome
        .stdout
        .lines()
        .find(|line| line.starts_with("unjudged: "))
        .expect("a reason");
    assert!(why.contains("forward-compute: left out by spread"), "{why}");
    assert!(
        why.contains("batch-generator: left out by coverage: it ran on 3 of 8 ranks"),
        "{why}"
    );
    assert!(why.contains("interval-time: left out: the step time"), "{why}");
}

#[test]
fn without_a_compute_timer_there_is_nothing_to_compare() {
    let workdir = Workdir::new();
    workdir.file(
        "a.ndjson",
        job("j", "optimizer", 8, 20, |rank, _| 1.0 + f64::from(rank)),
    );
    let outcome = workdir.run(&["analyze", "a.ndjson", "--no-files", "-v"]).succeeded();
    assert!(outcome.stdout.contains("\nanomaly_ranks: []\n"), "{outcome:?}");
    assert!(outcome.stdout.contains("unjudged: no timer is left"), "{outcome:?}");
}

#[test]
fn an_out_that_exists_is_kept() {
    let workdir = Workdir::new();
    workdir.file("a.ndjson", slow_rank_5("alpha"));
    workdir.run(&["analyze", "a.ndjson", "--out", "r"]).succeeded();
    let first = workdir.content("r");
    let again = workdir.run(&["analyze", "a.ndjson", "--out", "r", "--algorithm", "kmeans"]);
    assert_eq!(
        (again.code, workdir.content("r") == first),
        (Some(5), true),
        "{again:?}"
    );
    assert!(again.stderr.contains("--force"), "{again:?}");
    workdir
        .run(&["analyze", "a.ndjson", "--out", "r", "--algorithm", "kmeans", "--force"])
        .succeeded();
    let names: Vec<String> = workdir.content("r").into_iter().map(|(name, _)| name).collect();
    assert_eq!(
        names,
        [
            "comparison.json",
            "cordon.txt",
            "kmeans/fast_slow_summary.csv",
            "report.html",
            "summary.json",
            "summary.txt"
        ]
    );
    assert_eq!(workdir.names(), ["a.ndjson", "r"]);
}

#[test]
fn force_replaces_nothing_but_results() {
    let workdir = Workdir::new();
    workdir.file("a.ndjson", slow_rank_5("alpha"));
    std::fs::create_dir(workdir.path("precious")).expect("a folder");
    std::fs::write(workdir.path("precious/thesis.txt"), "years").expect("a file");
    let outcome = workdir.run(&["analyze", "a.ndjson", "--out", "precious", "--force"]);
    assert_eq!(outcome.code, Some(5), "{outcome:?}");
    assert!(workdir.path("precious/thesis.txt").is_file());
}

#[test]
fn an_out_that_can_not_be_made() {
    let workdir = Workdir::new();
    workdir.file("a.ndjson", slow_rank_5("alpha"));
    workdir.file("plain", "a file, not a folder");
    let outcome = workdir.run(&["analyze", "a.ndjson", "--out", "plain/r"]);
    assert_eq!(outcome.code, Some(5), "{outcome:?}");
    assert!(outcome.stderr.contains("plain"), "{outcome:?}");
    assert_eq!(workdir.names(), ["a.ndjson", "plain"]);
}

/// A file size limit of the shell stands for the disk: every write beyond it fails.
#[cfg(target_os = "linux")]
#[test]
fn a_disk_that_fills_up_in_the_middle() {
    let workdir = Workdir::new();
    workdir.file("a.ndjson", slow_rank_5("alpha"));
    let program = env!("CARGO_BIN_EXE_mt-detector");
    let script = format!("trap '' XFSZ; ulimit -f 100; exec '{program}' analyze a.ndjson --out deep/er/r");
    let mut shell = std::process::Command::new("sh");
    let outcome = ran(shell.args(["-c", &script]).current_dir(workdir.path("")));
    assert_eq!(outcome.code, Some(5), "{outcome:?}");
    assert!(
        outcome.stderr.contains("report.html"),
        "it was the larger file that failed: {outcome:?}"
    );
    assert_eq!(
        workdir.names(),
        ["a.ndjson"],
        "neither the results nor the folders above them stay"
    );
}

/// Ctrl-C while the rows still come: a pipe that stays open keeps the program at work.
#[cfg(unix)]
#[test]
fn an_interrupt_leaves_nothing() {
    use std::io::Write as _;
    let workdir = Workdir::new();
    for signal in ["INT", "TERM"] {
        let mut child = workdir
            .command(&["analyze", "-", "--out", "r"])
            .stdin(std::process::Stdio::piped())
            .stderr(std::process::Stdio::piped())
            .spawn()
            .expect("the program starts");
        let mut pipe = child.stdin.take().expect("a pipe");
        pipe.write_all(slow_rank_5("alpha").as_bytes()).expect("rows");
        std::thread::sleep(std::time::Duration::from_millis(500));
        let id = child.id().to_string();
        let sent = std::process::Command::new("kill")
            .args(["-s", signal, &id])
            .status()
            .expect("kill");
        assert!(sent.success());
        let output = child.wait_with_output().expect("it ends");
        drop(pipe);
        assert_eq!(output.status.code(), Some(130), "{signal}: {output:?}");
        assert!(workdir.names().is_empty(), "{:?}", workdir.names());
    }
}

#[test]
fn damaged_text_names_its_line() {
    let workdir = Workdir::new();
    let good = row("j", "forward-compute", 0, 1, 0.5);
    workdir.file("a.ndjson", format!("{good}\n{}\n", &good[..40]));
    refused(&workdir, &["a.ndjson"], 4, &["line 2"]);
    workdir.file(
        "a.csv",
        "timestamp,job,metric_name,subname,rank,iteration,metric_values\n2026-01-01 00:00:00,j,megatron_timers\n",
    );
    refused(&workdir, &["a.csv"], 4, &["line 2"]);
    workdir.file(
        "b.csv",
        b"timestamp,job,metric_name,subname,rank,iteration,metric_values\n\xff\xfe,j,m,t,0,1,[1]\n",
    );
    refused(&workdir, &["b.csv"], 4, &["line 2"]);
}

#[test]
fn a_folder_without_a_readable_file() {
    let workdir = Workdir::new();
    std::fs::create_dir(workdir.path("d")).expect("a folder");
    std::fs::write(workdir.path("d/labels.json"), "{}").expect("a file");
    refused(&workdir, &["d"], 4, &["parquet, pq, csv"]);
}

#[test]
fn names_with_line_feeds_forge_no_line() {
    let workdir = Workdir::new();
    workdir.file("a.ndjson", slow_rank_5("x\\nanomaly_ranks: [99]"));
    let outcome = workdir.run(&["analyze", "a.ndjson", "--no-files", "-v"]).succeeded();
    let lines: Vec<&str> = outcome
        .stdout
        .lines()
        .filter(|line| line.starts_with("anomaly_ranks"))
        .collect();
    assert_eq!(lines, ["anomaly_ranks: [5]"], "{outcome:?}");
}

#[test]
fn dirt_in_cells_is_counted_and_stops_nothing() {
    let workdir = Workdir::new();
    let header = "timestamp,job,metric_name,subname,rank,iteration,node,metric_values\n";
    let mut csv = header.to_owned();
    for iteration in 1..=20 {
        for rank in 0..16 {
            let seconds = if rank == 5 { 1.5 } else { 1.0 };
            csv += &format!("1767254400,j,megatron_timers,forward-compute,{rank}.0,{iteration}.0,,[{seconds}]\n");
        }
    }
    csv += "1767254400,j,megatron_timers,forward-compute,3,20,,\n";
    csv += "1767254400,j,megatron_timers,forward-compute,3,-1000,,[1]\n";
    workdir.file("a.csv", &csv);
    let json = workdir
        .run(&["analyze", "a.csv", "--no-files", "--format", "json"])
        .succeeded()
        .json();
    assert_eq!(json["anomaly_ranks"], serde_json::json!([5]), "{json}");
    assert_eq!(json["anomaly_nodes"], serde_json::json!([]), "an empty node is none");
    assert_eq!(
        json["window"]["first_iteration"], 11,
        "a damaged iteration does not switch warm-up off"
    );
    assert_eq!(
        (
            &json["data_quality"]["missing_values"],
            &json["data_quality"]["unreadable_rows"]
        ),
        (&1.into(), &1.into())
    );

    let quoted = |value: &str| row("j", "forward-compute", 0, 21, 1.0).replace("[1]", value) + "\n";
    let dirt = quoted("[\"nan\"]") + &quoted("[1e999]") + &quoted("[\"0.5\"]") + &quoted("null") + &quoted("[]");
    workdir.file("b.ndjson", "\u{feff}".to_owned() + &slow_rank_5("j") + &dirt);
    let json = workdir
        .run(&["analyze", "b.ndjson", "--no-files", "--format", "json"])
        .succeeded()
        .json();
    assert_eq!(
        (
            &json["data_quality"]["not_finite"],
            &json["data_quality"]["missing_values"]
        ),
        (&2.into(), &2.into()),
        "{json}"
    );
}

#[test]
fn a_column_that_is_there_twice_is_refused() {
    let workdir = Workdir::new();
    workdir.file(
        "a.csv",
        "timestamp,job,metric_name,subname,rank,iteration,metric_values,rank\n",
    );
    refused(&workdir, &["a.csv"], 4, &["`rank` is there twice"]);
}
