//! `mt-detector machines` as a user runs it.

mod common;

use std::fmt::Write as _;

use common::Workdir;

/// A wide CSV: five machines, of which number 2 falls by a third from second 300 on if `faulty`.
fn wide(machines: usize, seconds: usize, faulty: bool) -> String {
    let names: Vec<String> = (0..machines).map(|machine| format!("gpu-{machine}")).collect();
    let mut text = format!("timestamp,{}\n", names.join(","));
    for second in 0..seconds {
        write!(text, "{}", 1_775_034_000 + second).expect("a string");
        for machine in 0..machines {
            let noise = ((second * 31 + machine * 97) * 7919 % 101) as f64 / 50.0;
            let level = if faulty && machine == 2 && second >= 300 {
                200.0
            } else {
                300.0
            };
            write!(text, ",{}", level + noise).expect("a string");
        }
        text.push('\n');
    }
    text
}

#[test]
fn the_machine_that_falls_is_named_and_nobody_in_a_healthy_job() {
    let workdir = Workdir::new();
    workdir.file("gpu_power_draw.csv", wide(5, 800, true));
    let run = [
        "machines",
        "detect",
        "gpu_power_draw.csv",
        "--no-files",
        "--format",
        "json",
    ];
    for method in ["lstm-vae", "raw"] {
        let verdict = workdir
            .run(&[&run[..], &["--method", method]].concat())
            .succeeded()
            .json();
        assert_eq!(verdict["status"], "fault", "{method}");
        assert_eq!(verdict["anomaly_nodes"], serde_json::json!(["gpu-2"]), "{method}");
        assert_eq!(verdict["findings"][0]["direction"], "lower");
    }
    let ran = workdir.run(&[&run[..], &["--exit-code"]].concat());
    assert_eq!(ran.code, Some(1));
    workdir.file("gpu_power_draw.csv", wide(5, 800, false));
    let ran = workdir.run(&[&run[..], &["--exit-code"]].concat());
    assert_eq!((ran.code, &ran.json()["status"]), (Some(0), &"healthy".into()));
}

#[test]
fn two_machines_or_few_minutes_can_not_be_told() {
    let workdir = Workdir::new();
    let run = ["machines", "detect", "m.csv", "--no-files", "--format", "json"];
    for (machines, seconds) in [(2, 800), (5, 100)] {
        workdir.file("m.csv", wide(machines, seconds, true));
        let verdict = workdir.run(&run).succeeded().json();
        assert_eq!(verdict["status"], "cannot-tell");
        assert!(verdict["reason"].is_string());
    }
}

#[test]
fn what_can_not_be_read_has_its_exit_code() {
    let workdir = Workdir::new();
    workdir.file("broken.parquet", "no parquet");
    workdir.file("empty.csv", "timestamp,node,metric,value\n");
    for (file, code) in [("broken.parquet", 4), ("missing.csv", 4), ("empty.csv", 3)] {
        let ran = workdir.run(&["machines", "detect", file, "--no-files"]);
        assert_eq!(ran.code, Some(code), "{ran:?}");
        assert!(ran.stderr.contains("error: "), "{ran:?}");
    }
}
