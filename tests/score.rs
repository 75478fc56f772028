//! `mt-detector score` on files and on the simulated suite.

mod common;

use common::{Workdir, shared_data};

/// A folder `jobs` with a slow rank and a healthy job.
fn two_jobs() -> Workdir {
    let workdir = Workdir::new();
    let base = [
        "simulate",
        "--out",
        "jobs",
        "--pp",
        "1",
        "--tp",
        "1",
        "--dp",
        "16",
        "--iterations",
        "30",
        "--no-trace",
    ];
    let simulate = |more: &[&str]| {
        workdir.run(&[&base, more].concat()).succeeded();
    };
    simulate(&["--job", "slow", "--slow-rank", "5:1.6"]);
    simulate(&["--job", "well", "--noise", "0.004", "--rank-spread", "0.003"]);
    workdir
}

#[test]
fn a_folder_is_scored_by_kind() {
    let workdir = two_jobs();
    let json = workdir.run(&["score", "jobs", "--format", "json"]).succeeded().json();
    let score = &json["rules"][0];
    assert_eq!(score["rules"], "peer");
    let slow = score["kinds"]
        .as_array()
        .expect("kinds")
        .iter()
        .find(|tally| tally["kind"] == "gpu-slow");
    let slow = slow.expect("the slow kind");
    assert_eq!(
        (&slow["jobs"], &slow["exact"], &slow["tp"], &slow["fn"]),
        (&1.into(), &1.into(), &1.into(), &0.into())
    );
    assert_eq!(score["total"]["jobs"], 2);
    let text = workdir
        .run(&["score", "jobs", "--kinds", "gpu-slow"])
        .succeeded()
        .stdout;
    assert!(text.starts_with("kind "), "{text}");
    assert!(
        text.contains("\npeer: precision 1.000 recall 1.000 F1 1.000 exact 1/1 cause 1/1\n"),
        "{text}"
    );
}

#[test]
fn what_can_not_be_scored_is_told_and_stops_nothing() {
    let workdir = two_jobs();
    workdir.file("jobs/broken.parquet", "no parquet");
    workdir.file("jobs/unlabelled.parquet", "no parquet");
    let path = workdir.path("jobs/labels.json");
    let mut labels: serde_json::Value = serde_json::from_slice(&std::fs::read(&path).expect("labels")).expect("JSON");
    labels["broken"] = serde_json::json!({"kind": "gpu-slow", "cause": "compute", "slow_ranks": [1]});
    labels["missing"] = labels["broken"].clone();
    labels["slow"]["slow_ranks"] = "5".into();
    std::fs::write(&path, labels.to_string()).expect("labels");
    let text = workdir.run(&["score", "jobs"]).succeeded().stdout;
    assert!(text.contains("  broken: true [1] compute, failed: "), "{text}");
    assert!(text.contains("  slow: failed: its label can't be read: "), "{text}");
    assert!(text.contains(" failed 2"), "{text}");
    assert!(
        text.contains("labels without a file: missing\nfiles without a label: unlabelled\n"),
        "{text}"
    );
}

#[test]
fn the_suite_is_the_same_whatever_the_threads() {
    let workdir = Workdir::new();
    let run = |threads: &str| {
        let kinds = [
            "score",
            "--suite",
            "--kinds",
            "healthy,gpu-slow,loader,network-gpu",
            "--seeds",
            "0-2",
            "--show",
        ];
        let text = workdir
            .run(&[&kinds[..], &["--threads", threads]].concat())
            .succeeded()
            .stdout;
        text.lines()
            .filter(|line| !line.starts_with("seconds"))
            .collect::<Vec<_>>()
            .join("\n")
    };
    let one = run("1");
    assert!(one.contains("\ntotal                12 "), "{one}");
    assert_eq!(one, run("3"));
}

#[test]
fn healthy_jobs_are_counted_by_who_is_named() {
    let workdir = Workdir::new();
    let args = [
        "score",
        "--suite",
        "--healthy",
        "5",
        "--seeds",
        "100-100",
        "--noise",
        "hard",
        "--format",
        "json",
    ];
    let json = workdir.run(&args).succeeded().json();
    let score = &json["rules"][0];
    assert_eq!(score["healthy"]["jobs"], 5);
    let named = score["healthy"]["named"].as_u64().expect("a number");
    assert_eq!(score["total"]["exact"].as_u64(), Some(5 - named));
}

#[test]
fn network_faults_are_marked_by_node_and_sound_networks_by_blame() {
    let workdir = Workdir::new();
    let score = |group: &str, format: &str| {
        let args = ["score", "--suite", "--kinds", group, "--seeds", "0", "--format", format];
        workdir.run(&args).succeeded()
    };
    let json = score("network", "json").json();
    let score_of = &json["rules"][0];
    let kinds = score_of["network"].as_array().expect("kinds").len();
    assert!(kinds >= 10, "{kinds}");
    assert_eq!(score_of["network_total"]["jobs"].as_u64(), Some(kinds as u64));
    assert_eq!(
        (&score_of["sound"]["jobs"], &score_of["total"]["failed"]),
        (&0.into(), &0.into())
    );
    let text = score("traced,link-one-way,node-network", "text").stdout;
    assert!(
        text.contains("\nnetwork at fault   jobs  right within   only spared  cause\nlink-one-way "),
        "{text}"
    );
    assert!(
        text.contains("\npeer: of 2 jobs whose network is at fault, right node "),
        "{text}"
    );
    assert!(
        text.contains("; of 1 jobs with a sound network, 0 blame it\n"),
        "{text}"
    );
}

#[test]
fn every_job_with_a_sound_network_can_be_scored() {
    let workdir = Workdir::new();
    let args = [
        "score",
        "--suite",
        "--kinds",
        "sound-network",
        "--seeds",
        "7",
        "--noise",
        "hard",
        "--format",
        "json",
    ];
    let json = workdir.run(&args).succeeded().json();
    let score = &json["rules"][0];
    assert!(score["sound"]["jobs"].as_u64() >= Some(15));
    assert_eq!(
        (&score["network_total"]["jobs"], &score["total"]["failed"]),
        (&0.into(), &0.into())
    );
}

#[test]
fn too_few_exact_jobs_exit_with_1() {
    let workdir = two_jobs();
    let code = |share: &str| {
        workdir
            .run(&["score", "jobs", "--kinds", "gpu-slow", "--fail-under", share])
            .code
    };
    assert_eq!(code("1"), Some(0));
    workdir
        .run(&[
            "simulate",
            "--out",
            "jobs",
            "--job",
            "hidden",
            "--slow-rank",
            "5:1.01",
            "--kind",
            "gpu-slow",
            "--no-trace",
        ])
        .succeeded();
    assert_eq!((code("1"), code("0.5")), (Some(1), Some(0)));
}

#[test]
fn arguments_that_make_no_sense_are_refused() {
    let workdir = two_jobs();
    for args in [
        vec!["score"],
        vec!["score", "jobs", "--suite"],
        vec!["score", "jobs", "--seeds", "1-2"],
        vec!["score", "jobs", "--fail-under", "90"],
        vec!["score", "jobs", "--threads", "0"],
        vec!["score", "--suite", "--seeds", "5-1"],
        vec!["score", "--suite", "--seeds", "x"],
        vec!["score", "--suite", "--kinds", "gpu-slwo"],
        vec!["score", "--suite", "--kinds", "network,netwrok"],
    ] {
        assert_eq!(workdir.run(&args).code, Some(2), "{args:?}");
    }
    assert_eq!(workdir.run(&["score", "jobs", "--kinds", "no-such"]).code, Some(3));
    assert_eq!(workdir.run(&["score", "nowhere"]).code, Some(4));
    let list = workdir.run(&["score", "--suite", "--kinds", "list"]).succeeded().stdout;
    assert!(list.lines().count() >= 28 && list.contains("\nnic-send "), "{list}");
}

#[test]
fn labelled_jobs_beside_the_checkout_are_read() {
    let Some(data) = shared_data("real") else { return };
    let json = Workdir::new()
        .run(&["score", &data.display().to_string(), "--format", "json"])
        .succeeded()
        .json();
    assert_eq!(
        (&json["rules"][0]["total"]["jobs"], &json["rules"][0]["total"]["failed"]),
        (&5.into(), &0.into())
    );
}

#[test]
fn numbers_of_the_rules_are_moved_one_by_one_and_put_back() {
    let workdir = Workdir::new();
    let jobs = [
        "score",
        "--suite",
        "--seeds",
        "900",
        "--kinds",
        "gpu-faint,majority,healthy",
        "--noise",
        "hard",
        "--format",
        "json",
    ];
    let plain = workdir.run(&jobs).succeeded().json();
    let moved = workdir
        .run(&[&jobs[..], &["--sensitivity"]].concat())
        .succeeded()
        .json();
    let total = &plain["rules"][0]["total"];
    assert_eq!(
        (&moved["unmoved"]["exact"], &moved["unmoved"]["cause"], &moved["jobs"]),
        (&total["exact"], &total["cause"], &total["jobs"])
    );
    let constants = moved["constants"].as_array().expect("constants");
    let moves = |constant: &serde_json::Value| constant["moves"].as_array().cloned().unwrap_or_default();
    let with_half = constants
        .iter()
        .filter(|&constant| moves(constant).iter().any(|moved| moved["factor"] == 0.5));
    assert!(
        constants.len() > 100 && with_half.count() > 90,
        "{} numbers",
        constants.len()
    );
    let changes = |constant: &serde_json::Value| moves(constant).iter().any(|moved| moved["changed"] != 0);
    assert!(constants.iter().any(changes), "{constants:?}");
    let alone = [&jobs[..5], &["healthy", "--sensitivity"]].concat();
    let text = workdir.run(&alone).succeeded().stdout;
    assert!(
        text.contains("no answer depends on these here: ") && text.contains("LASTING_SHARE"),
        "{text}"
    );
}

#[test]
fn the_suites_jobs_can_be_written_and_judged_from_their_files() {
    let workdir = Workdir::new();
    let suite = ["score", "--suite", "--seeds", "900", "--kinds", "gpu-slow,healthy"];
    let text = workdir
        .run(&[&suite[..], &["--write", "jobs"]].concat())
        .succeeded()
        .stdout;
    assert_eq!(text, "2 jobs in jobs\n");
    let exact = |args: &[&str]| {
        let told = workdir.run(&[args, &["--format", "json"]].concat()).succeeded().json();
        told["rules"][0]["total"]["exact"].clone()
    };
    assert_eq!(exact(&["score", "jobs"]), exact(&suite));
}
