//! `analyze --machines` and `sweep --machines` as a user runs them: hardware metrics beside the timers.

mod common;

use std::fmt::Write as _;

use common::{Workdir, job};

/// Times of the rows of [`job`] begin here, 10 s an iteration.
const START: usize = 1_767_254_400;
const ITERATIONS: u32 = 120;

/// 32 ranks on gpu-000 to gpu-003; rank 13 (on gpu-001) is slow from iteration 50 on, if `slow`.
fn timers(slow: bool) -> String {
    job("beside", "forward-compute", 32, ITERATIONS, move |rank, iteration| {
        let wave = f64::from((rank * 31 + iteration * 17) % 13) * 1e-3;
        if slow && rank == 13 && iteration >= 50 {
            1.6 + wave
        } else {
            1.0 + wave
        }
    })
}

/// A wide CSV a second; the clock of machine `fallen` is a third lower from `from` on.
fn clocks(names: &[&str], start: usize, seconds: usize, fallen: Option<usize>, from: usize) -> String {
    let mut text = format!("timestamp,{}\n", names.join(","));
    for second in 0..seconds {
        write!(text, "{}", start + second).expect("a string");
        for machine in 0..names.len() {
            let noise = ((second * 31 + machine * 97) * 7919 % 101) as f64 / 10.0;
            let level = if fallen == Some(machine) && second >= from {
                1_100.0
            } else {
                1_700.0
            };
            write!(text, ",{}", level + noise).expect("a string");
        }
        text.push('\n');
    }
    text
}

const NODES: [&str; 4] = ["gpu-000", "gpu-001", "gpu-002", "gpu-003"];
const RUN: [&str; 6] = [
    "analyze",
    "job.ndjson",
    "--no-files",
    "--machines",
    "gpu_sm_clock.csv",
    "--format",
];

#[test]
fn a_slow_rank_on_a_machine_that_differs_is_confirmed_with_the_metric() {
    let workdir = Workdir::new();
    workdir.file("job.ndjson", timers(true));
    workdir.file("gpu_sm_clock.csv", clocks(&NODES, START, 1_210, Some(1), 490));
    let summary = workdir.run(&[&RUN[..], &["json"]].concat()).succeeded().json();
    assert_eq!(summary["status"], "fault");
    assert_eq!(summary["anomaly_ranks"], serde_json::json!([13]));
    let machines = summary["machines"]["different"].as_array().expect("machines");
    let [only] = machines.as_slice() else {
        panic!("{machines:#?}")
    };
    assert_eq!((&only["node"], &only["confirmed"]), (&"gpu-001".into(), &true.into()));
    assert_eq!(only["ranks"], serde_json::json!([13]));
    let text = workdir.run(&[&RUN[..], &["text"]].concat()).succeeded().stdout;
    let text = text.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(
        text.contains("rank 13 slow since") && text.contains("gpu-001's gpu_sm_clock fell at"),
        "{text}"
    );

    // In the folder too: both texts, the JSON, the curve of the page.
    let ran = workdir.run(&["analyze", "job.ndjson", "--machines", "gpu_sm_clock.csv", "--out", "r"]);
    ran.succeeded();
    let file = |name: &str| std::fs::read_to_string(workdir.path(&format!("r/{name}"))).expect("a file");
    assert!(file("summary.txt").contains("machine_confirmed: rank 13 slow since"));
    assert!(file("summary.json").contains("\"confirmed\": true"));
    let page = file("report.html");
    assert!(page.contains("data-plot=\"curves\"") && page.contains("gpu_sm_clock fell at"));
}

#[test]
fn a_machine_that_differs_alone_is_told_and_not_blamed() {
    let workdir = Workdir::new();
    workdir.file("job.ndjson", timers(false));
    workdir.file("gpu_sm_clock.csv", clocks(&NODES, START, 1_210, Some(2), 490));
    let bare = workdir
        .run(&["analyze", "job.ndjson", "--no-files", "--format", "json"])
        .succeeded()
        .json();
    let summary = workdir.run(&[&RUN[..], &["json"]].concat()).succeeded().json();
    for key in [
        "status",
        "anomaly_ranks",
        "anomaly_nodes",
        "cause",
        "findings",
        "headlines",
    ] {
        assert_eq!(summary[key], bare[key], "{key}");
    }
    assert!(bare.get("machines").is_none());
    assert_eq!(summary["machines"]["different"][0]["confirmed"], false);
    let says = summary["machines"]["different"][0]["says"]
        .as_str()
        .expect("a sentence");
    assert!(says.contains("gpu-002") && says.contains("told, not blamed"), "{says}");
    let ran = workdir.run(&[&RUN[..], &["text", "--exit-code"]].concat());
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
}

#[test]
fn another_machine_than_the_slow_rank_s_confirms_nothing() {
    let workdir = Workdir::new();
    workdir.file("job.ndjson", timers(true));
    workdir.file("gpu_sm_clock.csv", clocks(&NODES, START, 1_210, Some(3), 490));
    let summary = workdir.run(&[&RUN[..], &["json"]].concat()).succeeded().json();
    assert_eq!(summary["anomaly_nodes"], serde_json::json!(["gpu-001"]));
    assert_eq!(summary["machines"]["different"][0]["node"], "gpu-003");
    assert_eq!(summary["machines"]["different"][0]["confirmed"], false);
}

#[test]
fn metrics_of_another_time_or_of_other_machines_change_nothing_and_say_so() {
    let workdir = Workdir::new();
    workdir.file("job.ndjson", timers(true));
    workdir.file("gpu_sm_clock.csv", clocks(&NODES, START + 900_000, 1_210, Some(1), 490));
    let summary = workdir.run(&[&RUN[..], &["json"]].concat()).succeeded().json();
    assert_eq!(
        (&summary["status"], &summary["machines"]["status"]),
        (&"fault".into(), &"cannot-tell".into())
    );
    assert!(
        summary["machines"]["reason"]
            .as_str()
            .expect("a reason")
            .contains("the job ran from")
    );

    workdir.file("gpu_sm_clock.csv", clocks(&["a", "b", "c"], START, 1_210, Some(1), 490));
    let summary = workdir.run(&[&RUN[..], &["json"]].concat()).succeeded().json();
    assert!(
        summary["machines"]["reason"]
            .as_str()
            .expect("a reason")
            .contains("is a node of the job")
    );

    // Names with a port are the same machines; machines of nobody are left out and counted.
    let names = [
        "gpu-000:9400",
        "gpu-001:9400",
        "gpu-002:9400",
        "gpu-003:9400",
        "spare:9400",
    ];
    workdir.file("gpu_sm_clock.csv", clocks(&names, START, 1_210, Some(1), 490));
    let summary = workdir.run(&[&RUN[..], &["json"]].concat()).succeeded().json();
    assert_eq!(summary["machines"]["machines_of_others"], 1);
    assert_eq!(summary["machines"]["different"][0]["node"], "gpu-001");
    assert_eq!(summary["machines"]["different"][0]["confirmed"], true);
}

#[test]
fn a_sweep_hands_the_metrics_to_every_job() {
    let workdir = Workdir::new();
    workdir.file("job.ndjson", timers(true));
    workdir.file("gpu_sm_clock.csv", clocks(&NODES, START, 1_210, Some(1), 490));
    workdir
        .run(&["sweep", "job.ndjson", "--machines", "gpu_sm_clock.csv", "--out", "s"])
        .succeeded();
    let text = workdir.content("s").into_iter().find_map(|(name, bytes)| {
        name.ends_with("summary.txt")
            .then(|| String::from_utf8_lossy(&bytes).into_owned())
    });
    assert!(
        text.expect("a summary")
            .contains("machine_confirmed: rank 13 slow since")
    );
}
