//! `explain` and `compare` on result folders.

mod common;

use common::{Workdir, job, slow_rank_5};

fn analysed(workdir: &Workdir, name: &str, rows: String) {
    let file = workdir.file(&format!("{name}.ndjson"), rows);
    workdir.run(&["analyze", &file, "--out", name]).succeeded();
}

#[test]
fn a_named_rank_is_explained_gate_by_gate_and_a_usual_one_with_what_it_would_have_needed() {
    let workdir = Workdir::new();
    analysed(&workdir, "r", slow_rank_5("j"));
    let named = workdir.run(&["explain", "r", "--rank", "5"]).succeeded().stdout;
    for part in [
        "rank 5 of job j: named",
        "passed      the whole window: 1.5",
        "passed      vote: ",
        "kmeans slow",
        "over time   iterations 11 to 20",
        "its peers",
    ] {
        assert!(named.contains(part), "{part} is not in\n{named}");
    }
    let usual = workdir.run(&["explain", "r", "--rank", "6"]).succeeded().stdout;
    for part in [
        "rank 6 of job j: not named",
        "not passed  the whole window: ",
        "no stretch of iterations is slow",
        "to be named it would have needed more than 1.0",
    ] {
        assert!(usual.contains(part), "{part} is not in\n{usual}");
    }
    let json = workdir
        .run(&["explain", "r", "--rank", "5", "--format", "json"])
        .succeeded()
        .json();
    assert_eq!(json["ranks"][0]["gates"][0]["gate"], "peers");
    assert_eq!(json["ranks"][0]["course"].as_array().map(Vec::len), Some(10));
}

#[test]
fn a_node_and_a_link_are_explained_and_what_is_not_there_is_said() {
    let workdir = Workdir::new();
    analysed(&workdir, "r", slow_rank_5("j"));
    let node = workdir.run(&["explain", "r", "--node", "gpu-000"]).succeeded().stdout;
    assert_eq!(node.matches("\n  rank ").count(), 8, "{node}");
    for (asked, says) in [
        (["--rank", "99"], "its ranks are 0-15"),
        (["--node", "x"], "its nodes are nodes gpu-000 and gpu-001"),
        (["--link", "0-8"], "no transfers between stages"),
    ] {
        let refused = workdir.run(&[&["explain", "r"], &asked[..]].concat());
        assert_eq!(refused.code, Some(3), "{refused:?}");
        assert!(refused.stderr.contains(says), "{refused:?}");
    }
    assert_eq!(workdir.run(&["explain", "r", "--link", "zero"]).code, Some(2));
    assert_eq!(workdir.run(&["explain", "r"]).code, Some(2));
    assert_eq!(workdir.run(&["explain", "nowhere", "--rank", "1"]).code, Some(4));
    workdir
        .run(&[
            "simulate",
            "--out",
            ".",
            "--job",
            "link",
            "--tp",
            "1",
            "--pp",
            "4",
            "--dp",
            "4",
            "--slow-link",
            "0-4:10",
        ])
        .succeeded();
    workdir.run(&["analyze", "link.parquet", "--out", "link"]).succeeded();
    let link = workdir.run(&["explain", "link", "--link", "4-0"]).succeeded().stdout;
    assert!(
        link.contains("0 to 4 (forward") && link.contains("what is usual: slow"),
        "{link}"
    );
}

#[test]
fn two_results_are_held_side_by_side() {
    let workdir = Workdir::new();
    let well = |extra: f64| {
        job("j", "forward-compute", 16, 20, |rank, iteration| {
            extra * (1.0 + 0.001 * f64::from((rank * 7 + iteration * 3) % 11))
        })
    };
    analysed(&workdir, "well", well(1.0));
    analysed(&workdir, "longer", well(1.2));
    analysed(&workdir, "slow", slow_rank_5("j"));
    let worse = workdir.run(&["compare", "well", "slow", "--exit-code"]);
    assert_eq!(worse.code, Some(1), "{worse:?}");
    assert!(worse.stdout.contains("became slow: rank 5 on gpu-000"), "{worse:?}");
    let better = workdir.run(&["compare", "slow", "well", "--exit-code"]).succeeded();
    assert!(better.stdout.contains("recovered: rank 5 on gpu-000"), "{better:?}");
    let same = workdir.run(&["compare", "well", "well", "--exit-code"]).succeeded();
    assert!(same.stdout.contains("nobody became slow or recovered"), "{same:?}");
    let longer = workdir.run(&["compare", "well", "longer", "--exit-code"]).succeeded();
    assert!(
        longer.stdout.contains("forward-compute 1.00 s to 1.21 s (+20.0 %)") || longer.stdout.contains("(+20.0 %)"),
        "{longer:?}"
    );
    let json = workdir
        .run(&["compare", "well", "slow", "--format", "json"])
        .succeeded()
        .json();
    assert_eq!(
        (json["became_slow"][0]["rank"].as_u64(), json["worse"].as_bool()),
        (Some(5), Some(true))
    );
    assert_eq!(
        workdir.run(&["compare", "well", "slow", "--threshold", "-1"]).code,
        Some(2)
    );
    assert_eq!(workdir.run(&["compare", "well", "nowhere"]).code, Some(4));
}
