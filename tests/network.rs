//! Slow networks, as a user meets them: the program on jobs with single calls.

mod common;

use std::fmt::Write as _;

use common::{Workdir, row};
use mt_detector::evaluation::simulate::{Scenario, write_job};

/// 32 ranks in four stages; rank 13, on the second of four nodes, sends at an eighth of the speed.
fn slow_sender() -> Scenario {
    Scenario {
        job: "nic".to_owned(),
        tp: 1,
        pp: 4,
        dp: 8,
        iterations: 24,
        trace: true,
        slow_send: vec!["13:8".parse().expect("a fault")],
        ..Scenario::default()
    }
}

fn written(scenario: &Scenario) -> (Workdir, String) {
    let workdir = Workdir::new();
    write_job(scenario, &workdir.path("."), false).expect("a job");
    let file = format!("{}.parquet", scenario.job);
    (workdir, file)
}

#[test]
fn a_slow_sender_is_found_with_its_evidence_and_no_rank_is_blamed() {
    let (workdir, file) = written(&slow_sender());
    let ran = workdir.run(&["analyze", &file, "--out", "out", "--exit-code", "-v"]);
    assert_eq!(ran.code, Some(1), "{ran:?}");
    for line in [
        "anomaly_ranks: []",
        "anomaly_nodes: [\"gpu-001\"]",
        "cause: network",
        "communication: 48 of 48 transfers compared, 2 slow, from single calls",
        "slow-network: rank 13 on node gpu-001 sends slowly: ",
        "  forward-send of 13 to forward-recv of 21: ",
        "  backward-send of 13 to backward-recv of 5: ",
        "  decided by: sending: 2 slow transfers, all that the rank sends",
    ] {
        assert!(ran.stdout.contains(line), "`{line}` is not in\n{}", ran.stdout);
    }
    let table = |name: &str| std::fs::read_to_string(workdir.path("out/comm").join(name)).expect("a table");
    let links = table("links.csv");
    assert_eq!(links.lines().count(), 49);
    let slow: Vec<&str> = links.lines().filter(|line| line.ends_with(",slow")).collect();
    assert!(
        slow.len() == 2 && slow.iter().all(|line| line.starts_with("13,")),
        "{slow:?}"
    );
    let waits = table("waits.csv");
    assert_eq!(
        (waits.lines().count(), waits.lines().next()),
        (
            33,
            Some("rank,compute_seconds,transfer_seconds,waiting_seconds,waits_for")
        )
    );
}

#[test]
fn the_json_holds_the_same_and_the_window_cuts_calls_too() {
    let (workdir, file) = written(&slow_sender());
    let said = |more: &[&str]| {
        let args = ["analyze", &file, "--no-files", "--format", "json"];
        workdir.run(&[&args[..], more].concat()).succeeded().json()
    };
    let all = said(&[]);
    let finding = &all["findings"][0];
    assert_eq!(
        (&finding["kind"], &finding["cause"]),
        (&"slow-network".into(), &"network".into())
    );
    assert_eq!(
        (&finding["named"], &finding["names_nodes"]),
        (&false.into(), &true.into())
    );
    assert_eq!(finding["links"][0]["sender"], 13);
    assert!(
        finding["links"][0]["factor"]
            .as_f64()
            .is_some_and(|factor| (6.0..10.0).contains(&factor))
    );
    let count = |said: &serde_json::Value, name: &str| said["data_quality"][name].as_u64().expect("a count");
    let part = said(&["--iterations", "15-"]);
    assert!(count(&part, "calls_used") < count(&all, "calls_used"));
    for said in [&all, &part] {
        let parts = ["trace_rows_used", "trace_rows_not_needed", "trace_rows_left_out"];
        let sum: u64 = parts.iter().map(|name| count(said, name)).sum();
        assert_eq!(count(said, "trace_rows"), sum);
        assert_eq!(said["anomaly_nodes"][0], "gpu-001");
    }
}

#[test]
fn healthy_jobs_and_jobs_without_calls_name_no_node() {
    for scenario in [
        Scenario {
            slow_send: Vec::new(),
            ..slow_sender()
        },
        Scenario {
            slow_send: Vec::new(),
            trace: false,
            ..slow_sender()
        },
    ] {
        let (workdir, file) = written(&scenario);
        let said = workdir.run(&["analyze", &file, "--no-files", "-v"]).succeeded().stdout;
        assert!(
            said.contains("anomaly_nodes: []") && said.contains("cause: none"),
            "{said}"
        );
        assert_eq!(
            said.contains("no megatron_timers_trace rows"),
            !scenario.trace,
            "{said}"
        );
    }
}

#[test]
fn the_classic_rules_have_their_own_thresholds() {
    let (workdir, file) = written(&slow_sender());
    let said =
        |more: &[&str]| workdir.run(&[&["analyze", &file, "--no-files", "-v", "--rules", "classic"], more].concat());
    let usual = said(&[]).succeeded().stdout;
    assert!(usual.contains("communication: of 32 ranks "), "{usual}");
    let high = [
        "--comm-threshold",
        "1000",
        "--comm-baseline-factor",
        "1000",
        "--comm-jump-factor",
        "1000",
    ];
    let none = said(&high).succeeded().stdout;
    assert!(none.contains("of 32 ranks 0 suspect on all links"), "{none}");
    let refused = workdir.run(&["analyze", &file, "--no-files", "--comm-threshold", "2"]);
    assert_eq!(refused.code, Some(2), "{refused:?}");
    assert_eq!(said(&["--comm-jump-factor", "0.5"]).code, Some(2));
}

#[test]
fn csv_and_ndjson_give_the_same_calls_and_count_the_bad_ones() {
    let workdir = Workdir::new();
    let times = |iteration: u32| match iteration {
        // An end before its start, and a start without an end.
        12 => "2.0,1.0,3.0,3.5",
        13 => "1.0,1.5,2.0",
        _ => "1.0,1.5,2.0,2.5",
    };
    let mut ndjson = String::new();
    let mut csv = String::from("timestamp,job,metric_name,subname,rank,iteration,node,metric_values\n");
    for iteration in 1..=14u32 {
        for rank in 0..2u32 {
            let (time, calls) = (1_767_254_400 + 10 * iteration, times(iteration));
            writeln!(ndjson, "{}", row("j", "forward-compute", rank, iteration, 1.0)).expect("a string");
            writeln!(
                csv,
                "{time},j,megatron_timers,forward-compute,{rank},{iteration},n,[1.0]"
            )
            .expect("a string");
            let traced = row("j", "forward-send", rank, iteration, 0.0)
                .replace("megatron_timers", "megatron_timers_trace")
                .replace("[0]", &format!("[{calls}]"));
            writeln!(ndjson, "{traced}").expect("a string");
            writeln!(
                csv,
                "{time},j,megatron_timers_trace,forward-send,{rank},{iteration},n,\"[{calls}]\""
            )
            .expect("a string");
        }
    }
    workdir.file("j.ndjson", ndjson);
    workdir.file("j.csv", csv);
    for file in ["j.ndjson", "j.csv"] {
        let said = workdir
            .run(&["analyze", file, "--no-files", "--format", "json"])
            .succeeded()
            .json();
        let quality = &said["data_quality"];
        let count = |name: &str| quality[name].as_u64().expect("a count");
        // Ten iterations of start-up, four that count, two ranks.
        assert_eq!(
            (
                count("trace_rows"),
                count("trace_rows_used"),
                count("trace_rows_left_out")
            ),
            (28, 8, 20),
            "{file}"
        );
        assert_eq!((count("calls_used"), count("bad_calls")), (12, 4), "{file}");
    }
}

/// 32 ranks in four stages of an interleaved schedule, eight a node: stage by node.
fn interleaved(overlap: bool) -> Scenario {
    Scenario {
        job: "interleaved".to_owned(),
        tp: 2,
        pp: 4,
        dp: 4,
        virtual_stages: 2,
        overlap_p2p: overlap,
        iterations: 30,
        trace: true,
        ..Scenario::default()
    }
}

#[test]
fn an_interleaved_schedule_tells_the_slow_link_by_its_first_and_last_transfers() {
    for overlap in [false, true] {
        // From node 1 to node 2: activations one way, gradients the other.
        for (sender, receiver) in [(11, 19), (19, 11)] {
            let link = format!("{sender}-{receiver}:8");
            let slow = Scenario {
                slow_links_one_way: vec![link.parse().expect("a fault")],
                ..interleaved(overlap)
            };
            let (workdir, file) = written(&slow);
            let ran = workdir.run(&["analyze", &file, "--no-files", "-v"]).succeeded();
            for line in ["anomaly_ranks: []", "cause: network"] {
                assert!(ran.stdout.contains(line), "{link}: `{line}` is not in\n{}", ran.stdout);
            }
            // One end or both, and nobody else.
            let ends = ["[\"gpu-001\"]", "[\"gpu-002\"]", "[\"gpu-001\", \"gpu-002\"]"];
            let named = |nodes: &&str| ran.stdout.contains(&format!("anomaly_nodes: {nodes}\n"));
            assert!(ends.iter().any(named), "{link}: {}", ran.stdout);
        }
        let (workdir, file) = written(&interleaved(overlap));
        let ran = workdir.run(&["analyze", &file, "--no-files", "-v"]).succeeded();
        assert!(
            ran.stdout.contains("anomaly_nodes: []\ncause: none\n"),
            "{}",
            ran.stdout
        );
    }
}

#[test]
fn a_slow_card_in_an_interleaved_schedule_is_no_slow_link() {
    let slow = Scenario {
        slow_ranks: vec!["11:1.6".parse().expect("a fault")],
        ..interleaved(false)
    };
    let (workdir, file) = written(&slow);
    let ran = workdir.run(&["analyze", &file, "--no-files", "-v"]).succeeded();
    assert!(
        ran.stdout
            .contains("anomaly_ranks: [11]\nanomaly_nodes: [\"gpu-001\"]\ncause: compute\n"),
        "{}",
        ran.stdout
    );
}
