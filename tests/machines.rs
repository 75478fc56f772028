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

#[test]
fn the_json_keeps_its_schema() {
    let schema = schemars::schema_for!(mt_detector::machines::verdict::Verdict);
    let schema = serde_json::to_string_pretty(&schema).expect("a schema") + "\n";
    let path = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("schema/machines.schema.json");
    if std::env::var_os("UPDATE_GOLDEN").is_some() {
        std::fs::write(&path, &schema).expect("the schema is written");
    }
    let committed = std::fs::read_to_string(&path).expect("the committed schema");
    assert_eq!(schema, committed, "UPDATE_GOLDEN=1 writes it anew");
}

/// A long CSV of six machines: `reading` gives a machine's value at a second, or nothing.
fn long(every: usize, reading: impl Fn(usize, usize) -> Option<f64>) -> String {
    let mut text = "timestamp,node,metric,value\n".to_owned();
    for second in (0..900).step_by(every) {
        for machine in 0..6 {
            let noise = ((second * 31 + machine * 97) * 7919 % 101) as f64 / 50.0;
            if let Some(value) = reading(machine, second) {
                let time = 1_775_034_000 + second;
                writeln!(text, "{time},gpu-{machine},gpu_power_draw,{}", value + noise).expect("a string");
            }
        }
    }
    text
}

fn verdict(text: &str) -> serde_json::Value {
    let workdir = Workdir::new();
    workdir.file("m.csv", text);
    let run = ["machines", "detect", "m.csv", "--no-files", "--format", "json"];
    workdir.run(&run).succeeded().json()
}

#[test]
fn dirty_readings_neither_hide_a_fault_nor_make_one() {
    let faulty = |machine: usize, second: usize| if machine == 2 && second >= 500 { 200.0 } else { 300.0 };
    for every in [1, 2, 10, 30] {
        let got = verdict(&long(every, |machine, second| Some(faulty(machine, second))));
        assert_eq!(got["anomaly_nodes"], serde_json::json!(["gpu-2"]), "every {every} s");
    }
    // Gaps, a machine that joins late, and every row twice.
    let gaps = long(1, |machine, second| {
        let gone = second % 60 < 15 && machine == 4 || machine == 5 && second < 300;
        (!gone).then(|| faulty(machine, second))
    });
    let twice = format!("{gaps}{}", gaps.split_once('\n').map_or("", |(_, rows)| rows));
    let got = verdict(&twice);
    assert_eq!(got["anomaly_nodes"], serde_json::json!(["gpu-2"]));
    assert!(got["quality"]["duplicates"].as_u64() > Some(4000), "{}", got["quality"]);
    // All change together, and the job's phases move.
    let common = long(1, |_, second| {
        Some(if (400..700).contains(&second) { 150.0 } else { 300.0 })
    });
    assert_eq!(verdict(&common)["status"], "healthy");
    // A machine that goes silent is missing, not different.
    let silent = verdict(&long(1, |machine, second| {
        (machine != 3 || second < 500).then_some(300.0)
    }));
    assert_eq!(silent["anomaly_nodes"], serde_json::json!([]));
    assert_eq!(silent["missing_nodes"][0]["node"], "gpu-3");
    // Two faulty machines of six.
    let two = long(1, |machine, second| {
        Some(if [1, 4].contains(&machine) && second >= 450 {
            200.0
        } else {
            300.0
        })
    });
    assert_eq!(verdict(&two)["anomaly_nodes"], serde_json::json!(["gpu-1", "gpu-4"]));
}
