//! An answer is whole, a foreign text steers nothing, a result is never lost: `docs/trust.md` promises it.

mod common;

use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use common::{Ran, Workdir, job, ran, row, slow_rank_5};

/// The answer of an analysis without files.
fn verdict(workdir: &Workdir, input: &str) -> Ran {
    workdir.run(&["analyze", input, "--no-files", "--format", "json"])
}

fn ranks(outcome: &Ran) -> serde_json::Value {
    outcome.json()["anomaly_ranks"].clone()
}

/// What no output may hold raw, whatever a name holds: what steers a terminal, ends a line or turns text around.
const STEERING: &str = "a\u{1b}]0;owned\u{7}\nanomaly_ranks: [0]\u{2028}b\u{2029}c\u{85}d\u{202e}e\u{2066}f\r\u{9b}31m";

fn is_tame(text: &str) -> bool {
    let steers = |letter: char| {
        (letter.is_control() && letter != '\n')
            || matches!(letter, '\u{200e}' | '\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
    };
    !text.chars().any(steers)
}

#[test]
fn lists_in_ndjson_are_refused_for_columns_go_by_name() {
    let workdir = Workdir::new();
    let line = r#"[1767254410,"j","megatron_timers","forward-compute",0,1,[1.0],"n","r"]"#;
    workdir.file("a.ndjson", format!("{line}\n"));
    let outcome = verdict(&workdir, "a.ndjson");
    assert_eq!(outcome.code, Some(4), "{outcome:?}");
    assert!(outcome.stderr.contains("don't name their columns"), "{outcome:?}");
}

#[test]
fn escapes_of_tsv_are_undone() {
    let workdir = Workdir::new();
    let mut text = "timestamp\tjob\tmetric_name\tsubname\trank\titeration\tmetric_values\tnode\n".to_owned();
    for iteration in 1..=20 {
        for rank in 0..16 {
            let seconds = if rank == 5 { 1.5 } else { 1.0 };
            let time = 1_767_254_400 + iteration;
            text += &format!(
                "{time}\ta\\tb\\\\c\\'d\tmegatron_timers\tforward-compute\t{rank}\t{iteration}\t[{seconds}]\tn\\\\{rank}\n"
            );
        }
    }
    workdir.file("a.tsv", text);
    let outcome = verdict(&workdir, "a.tsv").succeeded();
    assert_eq!(outcome.json()["job"], "a\tb\\c'd");
    assert_eq!(outcome.json()["anomaly_nodes"], serde_json::json!(["n\\5"]));
    workdir
        .run(&["analyze", "a.tsv", "--job-id", "a\tb\\c'd", "--no-files"])
        .succeeded();
}

#[test]
fn no_name_steers_what_is_shown() {
    let workdir = Workdir::new();
    let name = serde_json::to_string(STEERING).expect("json");
    let text = slow_rank_5("job").replace("\"job\":\"job\"", &format!("\"job\":{name}"));
    let text = text.replace("gpu-000", name.trim_matches('"'));
    workdir.file("a.ndjson", text);
    for format in ["text", "json"] {
        let outcome = workdir
            .run(&["analyze", "a.ndjson", "--format", format, "--out", format])
            .succeeded();
        assert!(is_tame(&outcome.stdout) && is_tame(&outcome.stderr), "{outcome:?}");
        let summary = fs::read_to_string(workdir.path(format).join("summary.txt")).expect("a summary");
        assert!(is_tame(&summary), "{summary:?}");
        let lines = summary.lines().filter(|line| line.starts_with("anomaly_ranks: "));
        assert_eq!(lines.collect::<Vec<_>>(), ["anomaly_ranks: [5]"]);
        let nodes = summary
            .lines()
            .find_map(|line| line.strip_prefix("anomaly_nodes: "))
            .expect("nodes");
        assert_eq!(
            serde_json::from_str::<Vec<String>>(nodes).expect("a JSON array"),
            [STEERING]
        );
        let whole = fs::read_to_string(workdir.path(format).join("summary.json")).expect("a summary");
        assert!(is_tame(&whole) && whole.contains("\\u2028"));
    }
    let jobs = workdir.run(&["jobs", "a.ndjson"]).succeeded();
    assert!(is_tame(&jobs.stdout), "{jobs:?}");
    let jobs = workdir.run(&["jobs", "a.ndjson", "--format", "json"]).succeeded();
    assert!(is_tame(&jobs.stdout) && jobs.json()[0]["job"] == STEERING, "{jobs:?}");
    // Messages: of ours, and of the parser.
    for args in [
        &["analyze", "a.ndjson", "--job-id", STEERING, "--iterations", "900-"][..],
        &["analyze", "a.ndjson", "--job-id", "other"],
        &["analyze", STEERING],
        &["analyze", "a.ndjson", "--iterations", STEERING],
        &["analyze", "a.ndjson", STEERING, &format!("--rules={STEERING}")],
    ] {
        let outcome = workdir.run(args);
        assert!(outcome.code.is_some_and(|code| (2..=4).contains(&code)), "{outcome:?}");
        assert!(is_tame(&outcome.stderr) && outcome.stdout.is_empty(), "{outcome:?}");
    }
}

#[test]
fn no_cell_of_a_table_is_a_formula() {
    let workdir = Workdir::new();
    workdir.file("a.ndjson", slow_rank_5("=cmd()").replace("gpu-000", "@gpu"));
    workdir.run(&["sweep", "a.ndjson", "--out", "s"]).succeeded();
    let table = fs::read_to_string(workdir.path("s/sweep.csv")).expect("a table");
    assert!(table.contains("\n'=cmd(),") && table.contains(",'@gpu,"), "{table}");
}

#[test]
fn a_verdict_that_cannot_be_kept_is_printed() {
    let workdir = Workdir::new();
    workdir.file("a.ndjson", slow_rank_5("j"));
    // Its parent is a file.
    let outcome = workdir.run(&["analyze", "a.ndjson", "--format", "json", "--out", "a.ndjson/x"]);
    if outcome.code == Some(5) && outcome.stdout.is_empty() {
        // Found out before anything was read: nothing is lost.
        return;
    }
    assert_eq!(outcome.code, Some(5), "{outcome:?}");
    assert_eq!(ranks(&outcome), serde_json::json!([5]));
}

#[cfg(target_os = "linux")]
#[test]
fn a_verdict_is_printed_where_the_folder_vanished_meanwhile() {
    let workdir = Workdir::new();
    workdir.file("a.ndjson", slow_rank_5("j"));
    // Nobody makes a folder there, be it root.
    let outcome = workdir.run(&["analyze", "a.ndjson", "--format", "json", "--out", "/proc/self/x"]);
    assert_eq!(outcome.code, Some(5), "{outcome:?}");
    assert_eq!(ranks(&outcome), serde_json::json!([5]));
}

#[test]
fn runs_of_one_second_have_a_folder_each() {
    let workdir = Workdir::new();
    workdir.file("a.ndjson", slow_rank_5("j"));
    let children: Vec<_> = (0..6)
        .map(|_| {
            let mut command = workdir.command(&["analyze", "a.ndjson", "--threads", "1"]);
            command
                .stdout(Stdio::null())
                .stderr(Stdio::piped())
                .spawn()
                .expect("it starts")
        })
        .collect();
    for child in children {
        let output = child.wait_with_output().expect("it ends");
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    }
    let folders = fs::read_dir(workdir.path("prediction_results"))
        .expect("a folder")
        .flatten();
    let whole = folders
        .filter(|entry| entry.path().join("summary.json").is_file())
        .count();
    assert_eq!(whole, 6);
}

#[test]
fn what_the_tool_wrote_is_not_read_again() {
    let workdir = Workdir::new();
    workdir.file("a.ndjson", slow_rank_5("j"));
    workdir.file("notes.csv", "a,b\n1,2\n");
    for _ in 0..2 {
        let outcome = workdir.run(&["analyze", ".", "--format", "json"]).succeeded();
        assert_eq!(ranks(&outcome), serde_json::json!([5]));
        assert!(
            outcome.stdout.contains("notes.csv"),
            "what is passed over is told: {outcome:?}"
        );
    }
    workdir.run(&["sweep", "."]).succeeded();
    workdir.run(&["sweep", ".", "--resume"]).succeeded();
    let listed = workdir.run(&["jobs", "."]).succeeded();
    assert_eq!(listed.stdout.matches("job: ").count(), 1, "{listed:?}");
    // Named outright, a table without the columns is refused.
    assert_eq!(verdict(&workdir, "notes.csv").code, Some(4));
}

#[cfg(unix)]
#[test]
fn a_pipe_in_a_folder_is_passed_over() {
    let workdir = Workdir::new();
    workdir.file("a.ndjson", slow_rank_5("j"));
    let made = Command::new("mkfifo")
        .arg(workdir.path("b.ndjson"))
        .status()
        .expect("mkfifo");
    assert!(made.success());
    let outcome = verdict(&workdir, ".").succeeded();
    assert_eq!(ranks(&outcome), serde_json::json!([5]));
    assert!(outcome.stdout.contains("b.ndjson"), "{outcome:?}");
}

#[test]
fn one_damaged_file_ends_no_sweep() {
    let workdir = Workdir::new();
    workdir.file("a.ndjson", slow_rank_5("alpha"));
    let whole = fs::read(common::fixture("slow-rank.parquet")).expect("the fixture");
    workdir.file("b.parquet", &whole[..whole.len() / 2]);
    workdir.file("c.ndjson", slow_rank_5("gamma"));
    let outcome = workdir.run(&["sweep", ".", "--out", "s"]);
    assert_eq!(outcome.code, Some(4), "{outcome:?}");
    assert!(outcome.stderr.contains("b.parquet"), "{outcome:?}");
    let ledger: serde_json::Value =
        serde_json::from_slice(&fs::read(workdir.path("s/sweep.json")).expect("a ledger")).expect("json");
    for job in ledger["jobs"].as_array().expect("jobs") {
        assert_eq!(job["status"], "analysed", "{job}");
        assert_eq!(job["anomaly_ranks"], serde_json::json!([5]), "{job}");
    }
    assert_eq!(ledger["jobs"].as_array().map(Vec::len), Some(2));
    assert!(
        ledger["unread"][0]
            .as_str()
            .is_some_and(|text| text.contains("b.parquet")),
        "{ledger}"
    );
    let page = fs::read_to_string(workdir.path("s/index.html")).expect("a page");
    assert!(page.contains("b.parquet"));
}

#[test]
fn flags_behind_the_dashes_are_checked_first() {
    let workdir = Workdir::new();
    workdir.file("a.ndjson", slow_rank_5("j"));
    for (flags, says) in [
        (&["--no-such-flag"][..], "--no-such-flag"),
        (&["--effect-floor=-1"], "--effect-floor"),
        (&["--out", "x"], "--out"),
        (&["--clickhouse-url", "http://bob:hunter2@h:8123"], "--clickhouse-url"),
        (&["--job-id", "j"], "--job-id"),
    ] {
        let args: Vec<&str> = ["sweep", "a.ndjson", "--"].iter().chain(flags).copied().collect();
        let outcome = workdir.run(&args);
        assert_eq!(outcome.code, Some(2), "{outcome:?}");
        assert!(
            outcome.stderr.contains(says) && !outcome.stderr.contains("hunter2"),
            "{outcome:?}"
        );
        assert_eq!(workdir.names(), ["a.ndjson"], "nothing is written");
    }
    let outcome = workdir.run(&["sweep", "a.ndjson", "--", "--exit-code"]).succeeded();
    assert!(outcome.stdout.contains("ranks [5]"), "{outcome:?}");
}

#[test]
fn any_id_can_be_swept_and_no_limit_is_too_long() {
    let workdir = Workdir::new();
    let id = "a\u{0}b\n-c";
    let json = serde_json::to_string(id).expect("json");
    workdir.file(
        "a.ndjson",
        slow_rank_5("job").replace("\"job\":\"job\"", &format!("\"job\":{json}")),
    );
    let outcome = workdir.run(&[
        "sweep",
        "a.ndjson",
        "--out",
        "s",
        "--job-time-limit",
        "200000000000000d",
        "--time-limit",
        "200000000000000d",
    ]);
    assert_eq!(outcome.code, Some(0), "{outcome:?}");
    assert!(
        outcome.stdout.contains("ranks [5]") && is_tame(&outcome.stdout),
        "{outcome:?}"
    );
}

#[test]
fn no_file_of_settings_is_read_without_end() {
    let workdir = Workdir::new();
    workdir.file("long", "x".repeat(100_000));
    let outcome = workdir.run(&[
        "jobs",
        "--clickhouse-url",
        "http://127.0.0.1:9",
        "--password-file",
        "long",
    ]);
    assert_eq!(outcome.code, Some(2), "{outcome:?}");
    assert!(outcome.stderr.contains("longer than 64 KB"), "{outcome:?}");
    if Path::new("/dev/zero").exists() {
        for flag in ["--password-file", "--config"] {
            let outcome = workdir.run(&["jobs", "--clickhouse-url", "http://127.0.0.1:9", flag, "/dev/zero"]);
            assert_eq!(outcome.code, Some(2), "{outcome:?}");
        }
    }
}

#[cfg(unix)]
#[test]
fn a_configuration_that_everybody_may_write_is_told() {
    use std::os::unix::fs::PermissionsExt;
    let workdir = Workdir::new();
    workdir.file(
        "c.toml",
        "[clickhouse]\nurl = \"http://127.0.0.1:9\"\npassword = \"hunter2\"\nretries = 0\n",
    );
    for (mode, told) in [(0o666, true), (0o600, false)] {
        fs::set_permissions(workdir.path("c.toml"), fs::Permissions::from_mode(mode)).expect("permissions");
        let outcome = workdir.run(&["jobs", "--config", "c.toml"]);
        assert_eq!(
            outcome.stderr.contains("everybody may write c.toml"),
            told,
            "{outcome:?}"
        );
        assert!(!outcome.stderr.contains("hunter2"), "{outcome:?}");
    }
}

#[test]
fn a_server_that_never_shakes_hands_is_given_up_in_time() {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").expect("a port");
    let url = format!(
        "https://127.0.0.1:{}",
        listener.local_addr().expect("an address").port()
    );
    let workdir = Workdir::new();
    let authority = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/clickhouse/certificate.pem");
    let began = Instant::now();
    let outcome = workdir.run(&[
        "jobs",
        "--clickhouse-url",
        &url,
        "--connect-timeout",
        "0.5",
        "--retries",
        "0",
        "--ca-file",
        &authority.display().to_string(),
    ]);
    assert_eq!(outcome.code, Some(4), "{outcome:?}");
    assert!(outcome.stderr.contains("no connection within 0.5 s"), "{outcome:?}");
    assert!(began.elapsed() < Duration::from_secs(20));
}

#[cfg(unix)]
mod signals {
    //! Killed and interrupted at any moment: the whole result or the whole earlier one.
    use super::*;

    /// How often each command is killed, and interrupted; `MT_DETECTOR_SIGNALS=N` for more.
    fn rounds() -> u32 {
        std::env::var("MT_DETECTOR_SIGNALS")
            .ok()
            .and_then(|text| text.parse().ok())
            .unwrap_or(25)
    }

    /// Spreads moments over the run without a random generator: the golden ratio's multiples.
    fn moment(round: u32, whole: Duration) -> Duration {
        whole.mul_f64((f64::from(round) * 0.618_033_988_75).fract() * 1.2)
    }

    fn started(workdir: &Workdir, args: &[&str]) -> std::process::Child {
        let mut command = workdir.command(args);
        command
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .expect("it starts")
    }

    fn signal(child: &std::process::Child, name: &str) {
        // It may be over already.
        let _ = Command::new("kill")
            .args([name, &child.id().to_string()])
            .stderr(Stdio::null())
            .status();
    }

    #[test]
    fn a_result_is_whole_whatever_ends_the_program() {
        let workdir = Workdir::new();
        workdir.file("a.ndjson", slow_rank_5("j"));
        let args = ["analyze", "a.ndjson", "--out", "r", "--force", "--threads", "1"];
        let began = Instant::now();
        workdir.run(&args).succeeded();
        let whole = began.elapsed();
        let expected = workdir.content("r");
        for round in 0..2 * rounds() {
            let name = if round % 2 == 0 { "-KILL" } else { "-TERM" };
            let child = started(&workdir, &args);
            std::thread::sleep(moment(round, whole));
            signal(&child, name);
            let output = child.wait_with_output().expect("it ends");
            let words = String::from_utf8_lossy(&output.stderr);
            let denied = words.contains("nothing was written");
            assert!(!(denied && words.contains("results in")), "{words}");
            assert_eq!(workdir.content("r"), expected, "round {round} {name}");
            if name == "-TERM" && output.status.code() == Some(130) {
                let hidden = workdir
                    .names()
                    .into_iter()
                    .filter(|name| name.starts_with(".mt-detector-"));
                // What a kill left before is taken away when it is a minute old.
                assert!(hidden.count() <= round as usize / 2 + 1);
            }
        }
    }

    #[test]
    fn a_simulated_job_is_whole_whatever_ends_the_program() {
        let workdir = Workdir::new();
        let args = ["simulate", "--out", ".", "--job", "s", "--iterations", "12", "--force"];
        let began = Instant::now();
        workdir.run(&args).succeeded();
        let whole = began.elapsed();
        let files = ["s.parquet", "labels.json"];
        let read = || files.map(|name| fs::read(workdir.path(name)).expect("a file"));
        let expected = read();
        for round in 0..2 * rounds() {
            let child = started(&workdir, &args);
            std::thread::sleep(moment(round, whole));
            signal(&child, if round % 2 == 0 { "-KILL" } else { "-TERM" });
            child.wait_with_output().expect("it ends");
            assert!(read() == expected, "round {round}");
        }
    }

    #[test]
    fn a_first_result_is_there_whole_or_not_at_all() {
        let workdir = Workdir::new();
        workdir.file("a.ndjson", slow_rank_5("j"));
        let args = ["analyze", "a.ndjson", "--out", "r", "--threads", "1"];
        let began = Instant::now();
        workdir.run(&args).succeeded();
        let whole = began.elapsed();
        let expected = workdir.content("r");
        for round in 0..rounds() {
            fs::remove_dir_all(workdir.path("r")).expect("removed");
            let child = started(&workdir, &args);
            std::thread::sleep(moment(round, whole));
            signal(&child, if round % 2 == 0 { "-KILL" } else { "-TERM" });
            child.wait_with_output().expect("it ends");
            if workdir.path("r").exists() {
                assert_eq!(workdir.content("r"), expected);
            } else {
                workdir.run(&args).succeeded();
            }
        }
    }

    /// Processes of this program that work in a folder.
    fn at_work(folder: &Path) -> usize {
        let Ok(entries) = fs::read_dir("/proc") else { return 0 };
        let works = |path: std::path::PathBuf| {
            fs::read_link(path.join("cwd")).is_ok_and(|cwd| cwd == folder)
                && fs::read_link(path.join("exe")).is_ok_and(|exe| exe.ends_with("mt-detector"))
        };
        entries.flatten().filter(|entry| works(entry.path())).count()
    }

    #[test]
    fn no_process_of_a_sweep_outlives_it() {
        let workdir = Workdir::new();
        let mut text = String::new();
        for number in 0..6 {
            text += &job(&format!("j{number}"), "forward-compute", 32, 60, |rank, _| {
                1.0 + f64::from(rank) / 1e3
            });
        }
        workdir.file("a.ndjson", text);
        let args = ["sweep", "a.ndjson", "--out", "s"];
        let began = Instant::now();
        workdir.run(&args).succeeded();
        let whole = began.elapsed();
        let folder = workdir.path(".").canonicalize().expect("a folder");
        for round in 0..rounds().div_ceil(2) {
            let child = started(&workdir, &args);
            std::thread::sleep(moment(round, whole));
            signal(&child, if round % 2 == 0 { "-KILL" } else { "-TERM" });
            child.wait_with_output().expect("it ends");
            let ended = Instant::now();
            while at_work(&folder) > 0 {
                assert!(ended.elapsed() < Duration::from_secs(10), "a process is left");
                std::thread::sleep(Duration::from_millis(20));
            }
            let ledger = fs::read(workdir.path("s/sweep.json")).expect("a ledger");
            assert!(
                serde_json::from_slice::<serde_json::Value>(&ledger).is_ok(),
                "round {round}"
            );
        }
    }
}

#[test]
fn places_that_are_not_sure_are_not_used() {
    // 64 ranks without rows of their groups, of which every one has every timer of a pipeline: 64 stages, or any other number.
    const TIMERS: [&str; 8] = [
        "forward-compute",
        "backward-compute",
        "forward-recv",
        "forward-send",
        "backward-recv",
        "backward-send",
        "forward-send-backward-recv",
        "backward-send-forward-recv",
    ];
    let workdir = Workdir::new();
    let mut text = String::new();
    for (number, timer) in TIMERS.into_iter().enumerate() {
        text += &job("j", timer, 64, 30, |rank, iteration| {
            let uneven = 1.0 + 0.002 * f64::from((rank * 7 + iteration * 3 + number as u32) % 11);
            match (number, rank) {
                (0 | 1, 21) => 1.3 * uneven,
                (0 | 1, _) => uneven,
                // Who computes longer waits less.
                (_, 21) => 0.05 * uneven,
                _ => 0.1 * uneven,
            }
        });
    }
    workdir.file("a.ndjson", text);
    let outcome = verdict(&workdir, "a.ndjson").succeeded();
    let told = outcome.json();
    let stages = &told["topology"]["sizes"]["pipeline"];
    assert_ne!(*stages, 64, "{}", told["topology"]);
    assert!(
        ranks(&outcome) == serde_json::json!([21]) || told["status"] == "cannot-tell",
        "{} {}",
        told["status"],
        told["anomaly_ranks"]
    );
}

#[test]
fn calls_of_any_length_leave_the_verdict_finite() {
    let workdir = Workdir::new();
    let mut text = slow_rank_5("j");
    for (number, values) in [
        "[0, 1e308]",
        "[-1e308, 1e308]",
        "[1e308, 1e308, 1e308, 1.7e308]",
        "[0, 0.5, 1e300, 1e301]",
        "[1e308]",
    ]
    .into_iter()
    .enumerate()
    {
        for iteration in 1..=20 {
            let line = row("j", "forward-send", number as u32, iteration, 7.0);
            text += &line
                .replace("\"megatron_timers\"", "\"megatron_timers_trace\"")
                .replace("[7]", values);
            text += "\n";
        }
    }
    workdir.file("a.ndjson", text);
    for format in ["text", "json"] {
        let outcome = workdir
            .run(&["analyze", "a.ndjson", "--no-files", "--format", format, "--pp", "1"])
            .succeeded();
        for word in ["inf", "NaN", "nan", "e307", "e308"] {
            let words = outcome.stdout.replace("inferred", "").replace("info", "");
            assert!(!words.contains(word), "{word}: {words}");
        }
    }
    let outcome = workdir
        .run(&["analyze", "a.ndjson", "--no-files", "--format", "json", "--pp", "1"])
        .succeeded();
    assert_eq!(ranks(&outcome), serde_json::json!([5]));
    assert_eq!(outcome.json()["data_quality"]["trace_rows"], 100);
}

#[cfg(unix)]
#[test]
fn a_simulated_job_replaces_plain_files_only() {
    let workdir = Workdir::new();
    let args = ["simulate", "--out", ".", "--job", "s", "--iterations", "12", "--force"];
    workdir.run(&args).succeeded();
    let whole = workdir.content(".");
    fs::remove_file(workdir.path("s.parquet")).expect("removed");
    workdir.file("target", "keep");
    std::os::unix::fs::symlink(workdir.path("target"), workdir.path("s.parquet")).expect("a link");
    let outcome = workdir.run(&args);
    assert_eq!(outcome.code, Some(5), "{outcome:?}");
    assert_eq!(fs::read_to_string(workdir.path("target")).expect("a file"), "keep");
    fs::remove_file(workdir.path("s.parquet")).expect("removed");
    fs::remove_file(workdir.path("target")).expect("removed");
    workdir.run(&args).succeeded();
    assert_eq!(workdir.content("."), whole);
}

#[test]
fn a_run_of_one_name_is_refused_and_replaced_only_when_asked() {
    let workdir = Workdir::new();
    workdir.file("a.ndjson", slow_rank_5("j"));
    workdir.run(&["analyze", "a.ndjson", "--out", "r"]).succeeded();
    let before = workdir.content("r");
    let outcome = ran(&mut workdir.command(&["analyze", "a.ndjson", "--out", "r"]));
    assert_eq!(outcome.code, Some(5), "{outcome:?}");
    assert_eq!(workdir.content("r"), before);
    // A result that stepped aside when its program was killed comes back.
    fs::rename(workdir.path("r"), workdir.path(".r.mt-detector-earlier")).expect("renamed");
    let outcome = workdir.run(&["analyze", "a.ndjson", "--out", "r"]);
    assert_eq!(outcome.code, Some(5), "{outcome:?}");
    assert_eq!(workdir.content("r"), before);
    assert!(row("j", "t", 0, 1, 1.0).starts_with('{'));
}
