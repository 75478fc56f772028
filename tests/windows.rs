//! `--iterations auto`: each slow window is analysed on its own, and says so.

#![allow(clippy::unwrap_used, reason = "a test that can't go on fails")]

mod common;

use common::Workdir;
use serde_json::Value;

/// 16 data-parallel ranks, 90 iterations; what goes wrong is given.
fn simulated(faults: &[&str]) -> Workdir {
    let workdir = Workdir::new();
    let job = "simulate --out jobs --tp 1 --pp 1 --dp 16 --iterations 90 --no-trace --seed 5";
    let args: Vec<&str> = job.split(' ').chain(faults.iter().copied()).collect();
    workdir.run(&args).succeeded();
    workdir
}

fn summary(workdir: &Workdir, flags: &[&str]) -> Value {
    let mut args = vec!["analyze", "jobs", "--no-files", "--format", "json"];
    args.extend(flags);
    serde_json::from_str(&workdir.run(&args).succeeded().stdout).unwrap()
}

#[test]
fn one_window_is_analysed_as_if_it_had_been_asked_for() {
    let workdir = simulated(&["--slow-rank", "3:1.8", "--onset", "40", "--until", "55"]);
    let auto = summary(&workdir, &["--iterations", "auto"]);
    let (first, last) = (
        auto["window"]["first_iteration"].clone(),
        auto["window"]["last_iteration"].clone(),
    );
    assert!((38..=42).contains(&first.as_i64().unwrap()) && (53..=57).contains(&last.as_i64().unwrap()));
    assert_eq!(auto["anomaly_ranks"], serde_json::json!([3]));
    assert_eq!(auto["windows"], serde_json::json!([]));
    let range = format!("{first}-{last}");
    let asked = summary(&workdir, &["--iterations", &range]);
    for key in [
        "anomaly_ranks",
        "anomaly_nodes",
        "cause",
        "findings",
        "votes",
        "algorithms",
    ] {
        assert_eq!(auto[key], asked[key], "{key}");
    }
}

#[test]
fn several_windows_have_a_report_each() {
    let workdir = simulated(&["--transient", "3:2@30+8", "--transient", "12:2@60+9"]);
    let auto = summary(&workdir, &["--iterations", "auto"]);
    assert_eq!(auto["anomaly_ranks"], serde_json::json!([3, 12]));
    assert_eq!(auto["cause"], "compute");
    let windows = auto["windows"].as_array().unwrap();
    let ranks: Vec<&Value> = windows.iter().map(|window| &window["anomaly_ranks"]).collect();
    assert_eq!(ranks, [&serde_json::json!([3]), &serde_json::json!([12])]);
    let rows = |summary: &Value, count: &str| summary["data_quality"][count].as_u64().unwrap();
    let whole = summary(&workdir, &[]);
    for count in ["timer_rows_used", "outside_iterations"] {
        assert!(rows(&auto, count) != rows(&whole, count), "{count}");
    }
    let sum = |summary: &Value| rows(summary, "timer_rows_used") + rows(summary, "outside_iterations");
    assert_eq!(sum(&auto), sum(&whole), "no row is lost");

    let text = workdir
        .run(&["analyze", "jobs", "--iterations", "auto", "--out", "r", "-v"])
        .succeeded()
        .stdout;
    assert!(text.contains("anomaly_ranks: [3, 12]"), "{text}");
    assert_eq!(text.matches("\nslow window: iterations ").count(), 2, "{text}");
    let files: Vec<String> = workdir.content("r").into_iter().map(|(name, _)| name).collect();
    for window in windows {
        let (first, last) = (
            &window["window"]["first_iteration"],
            &window["window"]["last_iteration"],
        );
        for file in ["summary.json", "summary.txt", "kmeans/fast_slow_summary.csv"] {
            let expected = format!("window-{first}-{last}/{file}");
            assert!(files.contains(&expected), "{expected} is not in {files:?}");
        }
    }
}

#[test]
fn without_a_slow_window_all_iterations_are_analysed() {
    let workdir = simulated(&["--slow-rank", "3:1.1"]);
    let auto = summary(&workdir, &["--iterations", "auto"]);
    assert_eq!(auto["anomaly_ranks"], serde_json::json!([3]));
    assert_eq!(auto["window"]["iterations"], 80);
    let said = auto["window"]["asked_iterations"].as_str().unwrap();
    assert!(said.contains("no slow window"), "{said}");
    // Slower than usual by less than a quarter: a lower threshold makes it a window.
    let workdir = simulated(&["--slow-rank", "3:1.15", "--onset", "50"]);
    assert_eq!(summary(&workdir, &[])["step_times"]["windows"], serde_json::json!([]));
    let low = summary(&workdir, &["--iterations", "auto", "--slowdown-threshold", "0.08"]);
    assert_eq!(low["window"]["first_iteration"], 50);
    let refused = workdir.run(&["analyze", "jobs", "--no-files", "--slowdown-threshold", "0"]);
    assert_eq!(refused.code, Some(2), "{}", refused.stderr);
}
