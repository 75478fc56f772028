//! Every JSON that is printed has a schema under `schema/`, and keeps to it.

mod common;

use common::{Workdir, committed, fixture, validates};
use schemars::Schema;
use serde_json::Value;

/// Each schema by the name of its file.
fn schemas() -> Vec<(&'static str, Schema)> {
    let mut schemas = mt_detector::cli::json_schemas();
    schemas.extend([
        ("summary", schemars::schema_for!(mt_detector::report::Summary)),
        (
            "comparison",
            schemars::schema_for!(mt_detector::verdict::comparison::Comparison),
        ),
        (
            "explain",
            schemars::schema_for!(mt_detector::report::explain::Explanation),
        ),
        (
            "compare",
            schemars::schema_for!(mt_detector::report::compare::Difference),
        ),
        ("jobs", schemars::schema_for!(Vec<mt_detector::job::JobEntry>)),
        ("sweep", schemars::schema_for!(mt_detector::sweep::Ledger)),
        ("score", schemars::schema_for!(mt_detector::evaluation::score::Report)),
        (
            "machines",
            schemars::schema_for!(mt_detector::machines::verdict::Verdict),
        ),
        (
            "sensitivity",
            schemars::schema_for!(mt_detector::evaluation::score::Sensitivity),
        ),
        (
            "machines-score",
            schemars::schema_for!(mt_detector::machines::evaluate::Score),
        ),
    ]);
    schemas
}

#[test]
fn the_committed_schemas_are_those_of_the_types() {
    for (name, schema) in schemas() {
        let text = serde_json::to_string_pretty(&schema).expect("a schema") + "\n";
        committed(&format!("schema/{name}.schema.json"), &text);
    }
}

#[test]
fn what_is_printed_keeps_to_its_schema() {
    let workdir = Workdir::new();
    let simulated: [&[&str]; 3] = [
        &[
            "--job",
            "a",
            "--tp",
            "1",
            "--pp",
            "2",
            "--dp",
            "8",
            "--slow-rank",
            "5:1.5",
            "--onset",
            "25",
            "--stall",
            "30:60",
            "--dirty",
            "0.01",
        ],
        &[
            "--job",
            "b",
            "--tp",
            "2",
            "--pp",
            "2",
            "--dp",
            "4",
            "--heavy-stage",
            "1:1.5",
            "--slow-link",
            "0-8:10",
        ],
        &[
            "--job",
            "c",
            "--tp",
            "1",
            "--pp",
            "2",
            "--dp",
            "4",
            "--iterations",
            "12",
            "--no-topology",
        ],
    ];
    for flags in simulated {
        workdir
            .run(&[&["simulate", "--out", "jobs"], flags].concat())
            .succeeded();
    }
    for (job, more) in [
        ("a", &[][..]),
        ("b", &[]),
        ("c", &[]),
        ("a", &["--iterations", "auto"]),
        ("a", &["--rules", "classic"]),
    ] {
        let file = format!("jobs/{job}.parquet");
        let summary = workdir
            .run(&[&["analyze", &file, "--no-files", "--format", "json"], more].concat())
            .succeeded()
            .json();
        validates("summary", &summary);
    }
    for fixture_name in ["slow-rank", "healthy"] {
        workdir
            .run(&[
                "analyze",
                &fixture(&format!("{fixture_name}.parquet")),
                "--out",
                fixture_name,
            ])
            .succeeded();
        let text = std::fs::read(workdir.path(fixture_name).join("comparison.json")).expect("a comparison");
        validates("comparison", &serde_json::from_slice(&text).expect("JSON"));
    }
    validates(
        "jobs",
        &workdir.run(&["jobs", "jobs", "--format", "json"]).succeeded().json(),
    );
    validates(
        "explain",
        &workdir
            .run(&["explain", "slow-rank", "--rank", "5", "--format", "json"])
            .succeeded()
            .json(),
    );
    validates(
        "explain",
        &workdir
            .run(&["explain", "slow-rank", "--node", "gpu-001", "--format", "json"])
            .succeeded()
            .json(),
    );
    validates(
        "compare",
        &workdir
            .run(&["compare", "healthy", "slow-rank", "--format", "json"])
            .succeeded()
            .json(),
    );
    workdir.run(&["sweep", "jobs", "--out", "s"]).succeeded();
    let ledger = std::fs::read(workdir.path("s/sweep.json")).expect("a ledger");
    validates("sweep", &serde_json::from_slice(&ledger).expect("JSON"));
    validates(
        "score",
        &workdir.run(&["score", "jobs", "--format", "json"]).succeeded().json(),
    );
    let drawn = ["machines", "simulate", "--out", "m", "--seeds", "0", "--machines", "8"];
    workdir
        .run(&[&drawn[..], &["--fault", "pcie-downgrade"]].concat())
        .succeeded();
    let files = workdir.content("m");
    let (task, _) = files
        .iter()
        .find(|(name, _)| name.ends_with(".parquet"))
        .expect("a task");
    let detect = [
        "machines",
        "detect",
        &format!("m/{task}"),
        "--out",
        "found",
        "--format",
        "json",
    ];
    validates("machines", &workdir.run(&detect).succeeded().json());
    let page = std::fs::read_to_string(workdir.path("found/report.html")).expect("a page");
    assert!(page.contains("machines of job") && page.contains("loads nothing"));
    let job = fixture("slow-rank.parquet");
    validates(
        "whatif-job",
        &workdir.run(&["whatif", &job, "--format", "json"]).succeeded().json(),
    );
    validates(
        "whatif-job",
        &workdir
            .run(&["whatif", &job, "--mend", "rank:5", "--format", "json"])
            .succeeded()
            .json(),
    );
}

#[test]
fn what_judges_of_rules_and_machines_print_keeps_to_its_schema() {
    let workdir = Workdir::new();
    workdir
        .run(&[
            "simulate",
            "--out",
            "jobs",
            "--job",
            "a",
            "--tp",
            "1",
            "--pp",
            "1",
            "--dp",
            "4",
            "--iterations",
            "24",
            "--no-trace",
            "--slow-rank",
            "2:1.5",
        ])
        .succeeded();
    let moved = ["score", "jobs", "--sensitivity", "--rules", "peer", "--format", "json"];
    validates("sensitivity", &workdir.run(&moved).succeeded().json());
    let drawn = ["machines", "simulate", "--out", "m", "--seeds", "0", "--machines", "8"];
    workdir
        .run(&[&drawn[..], &["--fault", "pcie-downgrade"]].concat())
        .succeeded();
    let judged = ["machines", "score", "m", "--method", "raw", "--format", "json"];
    let scores = workdir.run(&judged).succeeded().json();
    let scores = scores.as_array().expect("a score a method");
    assert!(!scores.is_empty());
    scores.iter().for_each(|score| validates("machines-score", score));
}

#[test]
fn sources_are_told_as_a_pattern_where_they_are_many() {
    let workdir = Workdir::new();
    for part in 0..12 {
        let rows = common::slow_rank_5("j");
        let lines: Vec<&str> = rows.lines().collect();
        let share = lines.len().div_ceil(12);
        workdir.file(
            &format!("part-{part:02}.ndjson"),
            lines.chunks(share).nth(part).expect("rows").join("\n"),
        );
    }
    let summary = workdir
        .run(&["analyze", ".", "--no-files", "--format", "json"])
        .succeeded()
        .json();
    assert_eq!(summary["sources"]["count"], 12);
    let names = summary["sources"]["names"].as_array().expect("names");
    assert_eq!(names.len(), 1, "{names:?}");
    assert!(names[0].as_str().expect("a name").contains('*'), "{names:?}");
}

#[test]
fn metrics_for_prometheus_are_written_in_one_step() {
    let workdir = Workdir::new();
    let file = workdir.file("a.ndjson", common::slow_rank_5("j\\\"ob"));
    workdir
        .run(&["analyze", &file, "--no-files", "--prometheus", "mt.prom"])
        .succeeded();
    let text = std::fs::read_to_string(workdir.path("mt.prom")).expect("metrics");
    for line in [
        "mt_detector_status{job=\"j\\\"ob\",status=\"fault\"} 1",
        "mt_detector_status{job=\"j\\\"ob\",status=\"healthy\"} 0",
        "mt_detector_slow_ranks{job=\"j\\\"ob\"} 1",
        "mt_detector_slow_rank_factor{job=\"j\\\"ob\",rank=\"5\"} 1.",
    ] {
        assert!(text.contains(line), "{line} is not in\n{text}");
    }
    for line in text.lines().filter(|line| !line.starts_with('#')) {
        let (name, value) = line.rsplit_once(' ').expect("a value");
        assert!(
            name.starts_with("mt_detector_") && value.parse::<f64>().is_ok(),
            "{line}"
        );
    }
    assert_eq!(workdir.names(), ["a.ndjson", "mt.prom"], "nothing beside");
    std::fs::create_dir(workdir.path("folder")).expect("a folder");
    assert_eq!(
        workdir
            .run(&["analyze", &file, "--no-files", "--prometheus", "folder"])
            .code,
        Some(5)
    );
}

#[test]
fn only_faults_that_last_are_to_be_cordoned() {
    let workdir = Workdir::new();
    for (job, flags) in [
        ("slow", &["--slow-rank", "5:1.5"][..]),
        ("well", &[]),
        ("over", &["--slow-rank", "5:1.5", "--onset", "15", "--until", "28"]),
    ] {
        workdir
            .run(
                &[
                    &[
                        "simulate", "--out", ".", "--job", job, "--tp", "1", "--pp", "2", "--dp", "8",
                    ],
                    flags,
                ]
                .concat(),
            )
            .succeeded();
        workdir
            .run(&["analyze", &format!("{job}.parquet"), "--out", job, "--trace-view"])
            .succeeded();
    }
    let cordon = |job: &str| std::fs::read_to_string(workdir.path(job).join("cordon.txt")).expect("a list");
    assert_eq!(
        (
            cordon("slow").as_str(),
            cordon("well").as_str(),
            cordon("over").as_str()
        ),
        ("gpu-000\n", "", "")
    );
    let trace: Value =
        serde_json::from_slice(&std::fs::read(workdir.path("slow/trace.json")).expect("a trace")).expect("JSON");
    assert!(trace["traceEvents"].as_array().is_some_and(|events| events.len() > 32));
}
