//! The classic rules on labelled jobs beside the checkout (`../shared/data`), against what the scikit-learn system says
//! of them (`tests/golden/classic_baseline.json`, made by `tests/golden/make_classic_baseline.sh`). Skipped where the
//! jobs are not there.

mod common;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use common::Workdir;

/// Fewest jobs of which the verdict must be the same; reruns are undone here and not there, and starts are random.
const AT_LEAST: usize = 48;

#[test]
fn classic_verdicts_agree_with_scikit_learn() {
    let data = Path::new(env!("CARGO_MANIFEST_DIR")).join("../shared/data");
    if !data.is_dir() {
        eprintln!("skipped: {} is not there", data.display());
        return;
    }
    let golden = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden/classic_baseline.json");
    let expected: BTreeMap<String, Vec<u32>> =
        serde_json::from_str(&std::fs::read_to_string(golden).expect("the golden file")).expect("ranks by job");
    let workdir = Workdir::new();
    let mut differences = Vec::new();
    for (job, ranks) in &expected {
        let file = [data.join("real"), data.join("sim")].map(|folder| folder.join(format!("{job}.parquet")));
        let file: &PathBuf = file
            .iter()
            .find(|file| file.is_file())
            .expect("every job of the golden file is there");
        let warmup = if job == "pai-job1" { "0" } else { "10" };
        let json = workdir
            .run(&[
                "analyze",
                &file.display().to_string(),
                "--job-id",
                job,
                "--warmup",
                warmup,
                "--rules",
                "classic",
                "--no-files",
                "--format",
                "json",
            ])
            .succeeded()
            .json();
        if json["anomaly_ranks"] != serde_json::json!(ranks) {
            differences.push(format!("{job}: {} here, {ranks:?} there", json["anomaly_ranks"]));
        }
    }
    let same = expected.len() - differences.len();
    println!(
        "{same} of {} verdicts are the same\n{}",
        expected.len(),
        differences.join("\n")
    );
    assert!(
        same >= AT_LEAST,
        "only {same} of {} agree:\n{}",
        expected.len(),
        differences.join("\n")
    );
}
