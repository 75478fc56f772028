//! Labelled jobs beside the checkout (`../shared/data`), skipped where they are not there: the peer rules against the
//! truth, the classic rules against what the scikit-learn system says (`tests/golden/classic_baseline.json`, made by
//! `tests/golden/make_classic_baseline.sh`).

mod common;

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use common::{Workdir, shared_data};
use serde::Deserialize;

/// Fewest jobs of which the classic verdict must be the same; reruns are undone here and not there, starts are random.
const CLASSIC_AT_LEAST: usize = 48;
/// Faults of the network name nodes; their ranks compute as the others do and are not named.
const NETWORK: &str = "network";

/// What is true of a job.
#[derive(Debug, Deserialize)]
struct Truth {
    slow_ranks: BTreeSet<u32>,
    #[serde(default)]
    slow_nodes: BTreeSet<String>,
    /// Ranks that the timers can't tell from the slow ones.
    same_as: BTreeSet<u32>,
    cause: String,
    warmup: Option<u32>,
}

/// What the program says of a job.
#[derive(Debug, Deserialize)]
struct Said {
    anomaly_ranks: BTreeSet<u32>,
    anomaly_nodes: BTreeSet<String>,
    cause: String,
}

fn truths(folder: &Path) -> BTreeMap<String, Truth> {
    let labels = std::fs::read_to_string(folder.join("labels.json")).expect("the labels");
    serde_json::from_str(&labels).expect("labels by job")
}

fn analyze(file: &Path, job: &str, warmup: u32, rules: &str) -> Said {
    let args = [
        "analyze",
        &file.display().to_string(),
        "--job-id",
        job,
        "--rules",
        rules,
    ];
    let warmup = warmup.to_string();
    let more = ["--warmup", &warmup, "--no-files", "--format", "json"];
    let ran = Workdir::new().run(&[&args[..], &more].concat()).succeeded();
    serde_json::from_str(&ran.stdout).expect("a summary")
}

/// Judges every job of a folder: how many there are, whose ranks are not exact, whose cause is another.
fn judge(folder: &Path) -> (usize, Vec<String>, Vec<String>) {
    let truths = truths(folder);
    let (mut inexact, mut other_cause) = (Vec::new(), Vec::new());
    for (job, truth) in &truths {
        let said = analyze(
            &folder.join(format!("{job}.parquet")),
            job,
            truth.warmup.unwrap_or(10),
            "peer",
        );
        let expected = &truth.cause;
        if said.cause != *expected {
            other_cause.push(format!("{job}: {} instead of {expected}", said.cause));
        }
        let exact = if truth.cause == NETWORK {
            said.anomaly_ranks.is_empty() && said.anomaly_nodes == truth.slow_nodes
        } else {
            // One of several that can't be told apart is as good as the slow one itself.
            let told = truth.slow_ranks.is_subset(&said.anomaly_ranks)
                || truth.same_as != truth.slow_ranks && !said.anomaly_ranks.is_disjoint(&truth.same_as);
            told && said.anomaly_ranks.is_subset(&truth.same_as)
        };
        if !exact {
            let names = &said.anomaly_ranks;
            inexact.push(format!("{job}: {names:?} instead of {:?}", truth.slow_ranks));
        }
    }
    (truths.len(), inexact, other_cause)
}

#[test]
fn peer_verdicts_agree_with_the_truth() {
    for (folder, jobs) in [("sim", 48), ("real", 5)] {
        let Some(data) = shared_data(folder) else { continue };
        let (count, inexact, other_cause) = judge(&data);
        assert_eq!(
            (count, inexact, other_cause),
            (jobs, Vec::new(), Vec::new()),
            "{folder}"
        );
    }
}

#[test]
fn classic_verdicts_agree_with_scikit_learn() {
    let (Some(real), Some(sim)) = (shared_data("real"), shared_data("sim")) else {
        return;
    };
    let golden = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden/classic_baseline.json");
    let expected: BTreeMap<String, BTreeSet<u32>> =
        serde_json::from_str(&std::fs::read_to_string(golden).expect("the golden file")).expect("ranks by job");
    let mut differences = Vec::new();
    for (job, ranks) in &expected {
        let file = [&real, &sim].map(|folder| folder.join(format!("{job}.parquet")));
        let file: &PathBuf = file
            .iter()
            .find(|file| file.is_file())
            .expect("every job of the golden file is there");
        let warmup = if job == "pai-job1" { 0 } else { 10 };
        let said = analyze(file, job, warmup, "classic");
        if said.anomaly_ranks != *ranks {
            differences.push(format!("{job}: {:?} here, {ranks:?} there", said.anomaly_ranks));
        }
    }
    let same = expected.len() - differences.len();
    println!(
        "{same} of {} verdicts are the same\n{}",
        expected.len(),
        differences.join("\n")
    );
    assert!(
        same >= CLASSIC_AT_LEAST,
        "only {same} of {} agree:\n{}",
        expected.len(),
        differences.join("\n")
    );
}
