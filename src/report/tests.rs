use std::fs;
use std::path::Path;

use super::*;
use crate::contract::defaults::SLOWDOWN_THRESHOLD;
use crate::job::{Job, slow_windows};
use crate::rules::{AlgorithmVerdict, Rules, RulesSettings, Verdict};
use crate::verdict::{Cause, Finding, FindingKind};
use crate::vote::RankBallot;

/// Two nodes of two ranks, ten iterations.
fn job() -> Job {
    Job::sample(1, 4, 2, 10)
}

/// A verdict that names one rank, at a cost of the usual step.
fn verdict(job: &Job, rank: usize, cause: Cause, cost: f64) -> Verdict {
    let mut finding = Finding::new(FindingKind::SlowRank, cause, 10);
    finding.named = true;
    finding.says = format!("rank {rank} is slow");
    finding.ranks = vec![rank as u32];
    finding.nodes = vec![job.nodes[rank].clone()];
    finding.cost = Some(cost);
    (finding.slow_iterations, finding.first_iteration, finding.last_iteration) = (Some(4), Some(6), Some(9));
    finding.onset = Some(6);
    let slow = |other: usize| RankBallot {
        slow_votes: 3.0,
        total: 4.0,
        slow: other == rank,
    };
    Verdict {
        algorithms: vec![AlgorithmVerdict {
            name: "kmeans",
            timers: Vec::new(),
            ranks: (0..job.ranks.len()).map(slow).collect(),
        }],
        votes: (0..job.ranks.len()).map(|other| u32::from(other == rank)).collect(),
        anomalies: vec![rank],
        cause,
        findings: vec![finding],
        ..Verdict::default()
    }
}

/// Hands on what the command line would.
fn with_asked<T>(job: &Job, make: impl FnOnce(Asked<'_>) -> T) -> T {
    let (settings, step_times) = (RulesSettings::of(Rules::Peer), slow_windows(job, SLOWDOWN_THRESHOLD));
    make(Asked {
        source: vec!["a.parquet".to_owned()],
        files_passed_over: Vec::new(),
        settings: &settings,
        iterations: "all".to_owned(),
        warmup: 10,
        step_times: &step_times,
    })
}

fn report(job: &Job, verdict: Verdict) -> Report {
    with_asked(job, |asked| Report::new(job, verdict, asked))
}

/// The report of two slow windows: iterations 0-3, in which rank 0 is slow, and 4-9, in which rank 3 is.
fn two_windows(first: (Cause, f64), second: (Cause, f64)) -> Report {
    let job = job();
    let window = |range: &str, rank, (cause, cost)| {
        let cut = job.window(range.parse().expect("a range"));
        report(&cut, verdict(&cut, rank, cause, cost))
    };
    let windows = vec![window("0-3", 0, first), window("4-9", 3, second)];
    with_asked(&job, |asked| Report::of_windows(&job, windows, asked))
}

/// The value of a `key: value` line.
fn value<'a>(text: &'a str, key: &str) -> &'a str {
    let prefix = format!("{key}: ");
    let line = text.lines().find_map(|line| line.strip_prefix(&prefix));
    line.unwrap_or_else(|| panic!("no line `{key}`:\n{text}"))
}

#[test]
fn a_summary_names_ranks_by_number_and_nodes_by_name() {
    let mut job = job();
    job.ranks = vec![4, 5, 8, 9];
    let report = report(&job, verdict(&job, 3, Cause::Compute, 0.5));
    let summary = &report.summary;
    assert_eq!(
        (&summary.anomaly_ranks, &summary.anomaly_nodes),
        (&vec![9], &vec!["n1".to_owned()])
    );
    assert_eq!((summary.votes.len(), summary.votes[0].rank), (1, 9));
    assert_eq!(summary.algorithms[0].slow_ranks, [9]);
    let text = text(summary, Look::default()).expect("text");
    assert_eq!(value(&text, "anomaly_ranks"), "[9]");
    assert_eq!(value(&text, "  when"), "iterations 6-9, 4 of 10 (40 %); began at 6");
}

#[test]
fn names_forge_no_lines() {
    let mut job = job();
    job.id = "job\nanomaly_ranks: [7]".to_owned();
    job.nodes[1] = "n0\ncause: none".to_owned();
    let mut verdict = verdict(&job, 1, Cause::Compute, 0.5);
    verdict.findings[0].says = "rank 1\nslow-rank: rank 2".to_owned();
    let report = report(&job, verdict);
    let text = text(&report.summary, Look::default()).expect("text");
    for key in ["anomaly_ranks: ", "cause: ", "slow-rank: "] {
        let lines = text.lines().filter(|line| line.starts_with(key)).count();
        assert_eq!(lines, 1, "{key}\n{text}");
    }
    assert!(!json_line(&report.summary).expect("JSON").contains('\n'));
}

#[test]
fn what_could_not_be_judged_is_told_in_words() {
    let lone = Job::sample(1, 1, 1, 10);
    let verdict = Verdict {
        unjudged: Some("the job has one rank".to_owned()),
        ..Verdict::default()
    };
    let report = report(&lone, verdict);
    let text = text(&report.summary, Look::default()).expect("text");
    assert!(value(&text, "unjudged").contains("one rank"), "{text}");
    assert_eq!(value(&text, "anomaly_ranks"), "[]");
}

#[test]
fn windows_come_to_all_who_stand_out_in_one_of_them() {
    let report = two_windows((Cause::Compute, 0.9), (Cause::DataLoading, 0.5));
    let whole = &report.summary;
    assert_eq!((&whole.anomaly_ranks, whole.anomaly_nodes.len()), (&vec![0, 3], 2));
    assert_eq!((whole.findings.len(), whole.windows.len()), (2, 2));
    assert_eq!(whole.algorithms[0].slow_ranks, [0, 3]);
    assert_eq!(whole.votes.iter().map(|votes| votes.rank).collect::<Vec<_>>(), [0, 3]);
    assert_eq!(
        (
            whole.window.first_iteration,
            whole.window.last_iteration,
            whole.window.iterations
        ),
        (0, 9, 10)
    );
    // 0.9 of a step four times is more than 0.5 six times, and 0.7 is less than 0.5 x 6 / 4.
    assert_eq!(whole.cause, Cause::Compute);
    let report = two_windows((Cause::Compute, 0.7), (Cause::DataLoading, 0.5));
    assert_eq!(report.summary.cause, Cause::DataLoading);
    let none = two_windows((Cause::None, 0.0), (Cause::None, 0.0));
    assert_eq!(none.summary.cause, Cause::None);
}

fn files(folder: &Path) -> Vec<String> {
    let walk = walkdir::WalkDir::new(folder).sort_by_file_name();
    let files = walk.into_iter().map(|entry| entry.expect("an entry"));
    let name = |entry: walkdir::DirEntry| entry.path().strip_prefix(folder).expect("inside").display().to_string();
    files.filter(|entry| entry.file_type().is_file()).map(name).collect()
}

#[test]
fn a_result_folder_holds_every_file_and_each_windows() {
    let temporary = tempfile::tempdir().expect("a folder");
    let place = temporary.path().join("deep/result");
    let folder = ResultFolder::at(place.clone(), false).expect("free");
    let report = two_windows((Cause::Compute, 0.9), (Cause::Compute, 0.5));
    folder.write(&report).expect("written");
    assert_eq!(
        files(temporary.path()),
        [
            "deep/result/cordon.txt",
            "deep/result/report.html",
            "deep/result/summary.json",
            "deep/result/summary.txt",
            "deep/result/window-0-3/cordon.txt",
            "deep/result/window-0-3/kmeans/fast_slow_summary.csv",
            "deep/result/window-0-3/report.html",
            "deep/result/window-0-3/summary.json",
            "deep/result/window-0-3/summary.txt",
            "deep/result/window-4-9/cordon.txt",
            "deep/result/window-4-9/kmeans/fast_slow_summary.csv",
            "deep/result/window-4-9/report.html",
            "deep/result/window-4-9/summary.json",
            "deep/result/window-4-9/summary.txt",
        ]
    );
    let table = fs::read_to_string(place.join("window-4-9/kmeans/fast_slow_summary.csv")).expect("the table");
    assert_eq!(
        table,
        "kind,key,label,slow_votes,total_subnames\n\
         rank,rank0,fast,3,4\nrank,rank1,fast,3,4\nrank,rank2,fast,3,4\nrank,rank3,slow,3,4\n"
    );
    let summary = fs::read_to_string(place.join("summary.json")).expect("the summary");
    assert_eq!(summary, json_pretty(&report.summary).expect("JSON"));
}

#[test]
fn a_place_that_is_taken_is_replaced_only_where_it_holds_a_result_and_that_is_asked() {
    let temporary = tempfile::tempdir().expect("a folder");
    let place = temporary.path().join("result");
    fs::create_dir(&place).expect("a folder");
    fs::write(place.join("notes.txt"), "mine").expect("a file");
    let at = |force| ResultFolder::at(place.clone(), force);
    assert!(matches!(at(false), Err(WriteError::Exists { .. })));
    assert!(matches!(at(true), Err(WriteError::NotAResult { .. })));
    fs::write(place.join("summary.json"), "{}").expect("a file");
    let job = job();
    let report = report(&job, verdict(&job, 0, Cause::Compute, 0.5));
    at(true).expect("a result").write(&report).expect("written");
    assert!(!place.join("notes.txt").exists());
    assert_eq!(
        fs::read_dir(temporary.path()).expect("a folder").count(),
        1,
        "nothing stays beside"
    );
}

#[test]
fn what_can_not_be_written_leaves_nothing() {
    let temporary = tempfile::tempdir().expect("a folder");
    let job = job();
    let mut verdict = verdict(&job, 0, Cause::Compute, 0.5);
    // No folder can have this name.
    verdict.algorithms[0].name = "no/such/folder";
    let folder = ResultFolder::at(temporary.path().join("a/b/result"), false).expect("free");
    let error = folder.write(&report(&job, verdict)).expect_err("it can't be written");
    assert!(error.to_string().contains("no/such/folder"), "{error}");
    assert_eq!(fs::read_dir(temporary.path()).expect("a folder").count(), 0);
}
