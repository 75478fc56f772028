//! Logs printed from jobs: the verdict is that of the rows where the form of the log can tell, and "cannot tell" where it can't.

mod common;

use std::fs::File;
use std::io::BufWriter;

use common::{Workdir, shared_data};
use mt_detector::source::logs::print::{LogForm, print_log};
use mt_detector::source::{Format, SourceFile};
use serde_json::Value;

fn verdict(workdir: &Workdir, file: &str) -> Value {
    workdir
        .run(&["analyze", file, "--no-files", "--format", "json"])
        .succeeded()
        .json()
}

/// Simulates a job with a log of a form.
fn simulated(workdir: &Workdir, form: &str, flags: &[&str]) -> (Value, Value) {
    let args = [
        "simulate",
        "--out",
        "jobs",
        "--job",
        "sim",
        "--force",
        "--no-trace",
        "--log",
        form,
    ];
    workdir.run(&[&args, flags].concat()).succeeded();
    (verdict(workdir, "jobs/sim.parquet"), verdict(workdir, "jobs/sim.log"))
}

#[test]
fn a_line_a_rank_gives_the_verdict_of_the_rows() {
    let workdir = Workdir::new();
    for flags in [
        &["--seed", "3"][..],
        &["--seed", "4", "--slow-rank", "13:1.35"],
        &["--seed", "5", "--slow-node", "1:1.3", "--rerun", "30"],
        &["--seed", "6", "--heavy-stage", "3:1.5"],
        &["--seed", "7", "--slow-rank", "9:1.4", "--order", "tp-cp-ep-pp-dp"],
    ] {
        let (rows, log) = simulated(&workdir, "all", flags);
        assert_eq!(log["anomaly_ranks"], rows["anomaly_ranks"], "{flags:?}");
        assert_eq!(log["status"], rows["status"], "{flags:?}");
        assert_eq!(log["cause"], rows["cause"], "{flags:?}");
    }
}

#[test]
fn means_over_an_interval_name_the_same_rank() {
    let workdir = Workdir::new();
    let flags = [
        "--seed",
        "8",
        "--iterations",
        "200",
        "--slow-rank",
        "13:1.35",
        "--log-interval",
        "5",
    ];
    let (rows, log) = simulated(&workdir, "all", &flags);
    assert_eq!(rows["anomaly_ranks"], serde_json::json!([13]));
    assert_eq!(log["anomaly_ranks"], rows["anomaly_ranks"]);
}

#[test]
fn what_names_no_rank_can_not_tell() {
    let workdir = Workdir::new();
    let flags = [
        "--seed",
        "9",
        "--iterations",
        "80",
        "--slow-rank",
        "13:1.6",
        "--onset",
        "40",
        "--until",
        "60",
    ];
    for form in ["minmax", "oneline"] {
        let (_, log) = simulated(&workdir, form, &flags);
        assert_eq!(log["anomaly_ranks"], serde_json::json!([]), "{form}");
        assert_eq!(log["status"], "cannot-tell", "{form}: {log}");
        let window = &log["step_times"]["windows"][0];
        let near = |name: &str, expected: i64| {
            let found = window[name].as_i64().unwrap_or(-1);
            assert!((found - expected).abs() <= 1, "{form}: {window}");
        };
        near("first", 40);
        near("last", 60);
    }
    let (_, healthy) = simulated(&workdir, "minmax", &["--seed", "10"]);
    assert_eq!(healthy["anomaly_ranks"], serde_json::json!([]));
    assert_eq!(healthy["step_times"]["windows"], serde_json::json!([]), "{healthy}");
}

#[test]
fn jobs_of_the_shared_data_are_judged_from_their_logs_as_from_their_rows() {
    let Some(folder) = shared_data("sim") else { return };
    let workdir = Workdir::new();
    let mut differ = Vec::new();
    let mut jobs = 0;
    let mut files: Vec<_> = std::fs::read_dir(folder)
        .expect("the folder")
        .flatten()
        .map(|entry| entry.path())
        .collect();
    files.sort();
    for path in files
        .iter()
        .filter(|path| path.extension().is_some_and(|ending| ending == "parquet"))
    {
        let name = path.file_stem().unwrap_or_default().to_string_lossy().into_owned();
        // What a slow network card does shows in single calls, which no log has.
        if name.starts_with("nic-") {
            continue;
        }
        let log = workdir.path(&format!("{name}.log"));
        let rows = [SourceFile::new(path.clone(), Format::Parquet)];
        let mut out = BufWriter::new(File::create(&log).expect("a file"));
        print_log(&rows, LogForm::All, 1, &log, &mut out).expect("printed");
        drop(out);
        let (rows, log) = (
            verdict(&workdir, &path.display().to_string()),
            verdict(&workdir, &log.display().to_string()),
        );
        jobs += 1;
        if rows["anomaly_ranks"] != log["anomaly_ranks"] {
            differ.push(format!(
                "{name}: {} from rows, {} from the log",
                rows["anomaly_ranks"], log["anomaly_ranks"]
            ));
        }
    }
    assert!(jobs >= 40 && differ.is_empty(), "{jobs} jobs:\n{}", differ.join("\n"));
}
