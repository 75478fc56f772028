//! What `analyze` says of recorded rows.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use crate::common::Workdir;
use crate::releases::{Release, releases};
use crate::training::Training;

/// Trains, analyses what was recorded, and gives the summary and what the recorder told.
fn judged(training: &Training) -> (Value, String) {
    let workdir = Workdir::new();
    let told = training.run(&workdir);
    let arguments = ["analyze", "recorded", "--no-files", "--format", "json"];
    (workdir.run(&arguments).succeeded().json(), told)
}

fn newest() -> Option<&'static Release> {
    releases().and_then(<[Release]>::last)
}

#[test]
fn the_slowed_rank_is_named_with_every_release() {
    for release in releases().unwrap_or_default() {
        let (summary, told) = judged(&Training::new(release).asking(json!({"slow": {"5": 1.3}})));
        assert_eq!(summary["anomaly_ranks"], json!([5]), "{}: {told}", release.version);
        assert_eq!(summary["anomaly_nodes"], json!(["gpu-001"]), "{}", release.version);
        assert_eq!(summary["cause"], "compute", "{}", release.version);
        assert_eq!(
            told.lines().count(),
            1,
            "only the first rank says that it records: {told}"
        );
    }
}

#[test]
fn nobody_is_named_in_a_healthy_job() {
    let Some(release) = newest() else {
        return;
    };
    for asked in [json!({}), json!({"tp": 2, "pp": 1}), json!({"evaluate_every": 10})] {
        let (summary, _) = judged(
            &Training::new(release)
                .asking(asked.clone())
                .with("MT_RECORDER_QKV", "all"),
        );
        assert_eq!(summary["status"], "healthy", "{asked}");
        assert_eq!(summary["anomaly_ranks"], json!([]), "{asked}");
    }
}

#[test]
fn timers_that_megatron_runs_itself_give_the_same_verdict() {
    let Some(release) = newest() else {
        return;
    };
    for barrier in [true, false] {
        let asked = json!({"slow": {"6": 1.3}, "log_level": 2, "barrier": barrier});
        let (summary, _) = judged(&Training::new(release).asking(asked));
        assert_eq!(summary["anomaly_ranks"], json!([6]), "barrier {barrier}");
    }
}

#[test]
fn the_qkv_projection_tells_tensor_parallel_ranks_apart() {
    let Some(release) = newest() else {
        return;
    };
    for sequence_parallel in [true, false] {
        let asked = json!({"slow": {"3": 1.3}, "tp": 2, "pp": 1, "sequence_parallel": sequence_parallel});
        let training = || Training::new(release).asking(asked.clone());
        let (pair, _) = judged(&training());
        assert_eq!(pair["anomaly_ranks"], json!([2, 3]), "they wait for each other");
        let (one, told) = judged(&training().with("MT_RECORDER_QKV", "all"));
        assert_eq!(one["anomaly_ranks"], json!([3]), "{told}");
    }
    // A gathering that can't be told from the product would make both members alike: then there is no such timer.
    let hidden = json!({"slow": {"3": 1.3}, "tp": 2, "pp": 1, "sequence_parallel": true, "hidden_gather": true});
    let (pair, told) = judged(&Training::new(release).asking(hidden).with("MT_RECORDER_QKV", "all"));
    assert_eq!(pair["anomaly_ranks"], json!([2, 3]));
    assert_eq!(
        told.matches("self-attention-linear-qkv is not recorded").count(),
        1,
        "{told}"
    );
}

#[test]
fn positions_are_those_of_megatrons_groups() {
    for release in releases().unwrap_or_default() {
        let workdir = Workdir::new();
        let asked = json!({"tp": 2, "cp": 2, "dp": 2, "pp": 2, "ep": 2, "iterations": 2});
        Training::new(release).ranks(16).asking(asked).run(&workdir);
        let mut positions = BTreeMap::<u64, BTreeMap<String, u64>>::new();
        for (_, content) in workdir.content("recorded") {
            for line in String::from_utf8(content).expect("text").lines() {
                let row: Value = serde_json::from_str(line).expect("JSON");
                if row["metric_name"] == "megatron_parallel_group_rank" {
                    let rank = row["rank"].as_u64().expect("a rank");
                    let group = row["subname"].as_str().expect("a name").to_owned();
                    let position = row["metric_values"][0].as_u64().expect("a position");
                    positions.entry(rank).or_default().insert(group, position);
                }
            }
        }
        assert_eq!(positions.len(), 16, "{}", release.version);
        for (rank, at) in positions {
            // rank = tp + TP (cp + CP (dp + DP pp)), Megatron's default order.
            assert_eq!(
                at["tp"] + 2 * (at["cp"] + 2 * (at["dp"] + 2 * at["pp"])),
                rank,
                "{}",
                release.version
            );
            assert!(at["ep"] < 2, "{}", release.version);
        }
        let sizes = workdir.run(&["analyze", "recorded", "--no-files", "--format", "json", "--warmup", "0"]);
        let groups = &sizes.json()["topology"];
        for axis in ["tp", "cp", "dp", "pp", "ep"] {
            assert_eq!(groups["sizes"][axis], 2, "{}: {groups}", release.version);
        }
    }
}
