//! The first screen as people see it: at most 30 lines, whatever is wrong and however many ranks there are.

mod common;

use common::{Workdir, golden};

/// Lines of a screen.
const MOST_LINES: usize = 30;
/// Columns where there is no terminal.
const WIDTH: usize = 100;

/// Simulates a job, gives its screen.
fn screen(flags: &[&str]) -> String {
    let workdir = Workdir::new();
    workdir
        .run(&[&["simulate", "--out", ".", "--job", "j"], flags].concat())
        .succeeded();
    workdir.run(&["analyze", "j.parquet", "--no-files"]).succeeded().stdout
}

/// Checks what every screen keeps to: few lines, none wider than it should be but those for scripts.
fn checked(name: &str, screen: &str) {
    assert!(screen.lines().count() <= MOST_LINES, "{screen}");
    for line in screen.lines().take_while(|line| !line.is_empty()) {
        assert!(line.chars().count() <= WIDTH, "{line}");
    }
    for key in ["job: ", "status: ", "anomaly_ranks: [", "anomaly_nodes: [", "cause: "] {
        assert_eq!(
            screen.lines().filter(|line| line.starts_with(key)).count(),
            1,
            "{key} in\n{screen}"
        );
    }
    golden(&format!("{name}.screen.txt"), screen);
}

#[test]
fn sixteen_slow_ranks_of_a_thousand_are_one_thing() {
    let ranks = [
        5, 100, 133, 260, 261, 300, 333, 400, 450, 512, 600, 700, 801, 802, 900, 1000,
    ];
    let faults: Vec<String> = ranks
        .iter()
        .map(|rank| format!("{rank}:1.{}", 30 + rank % 20))
        .collect();
    let mut flags = vec![
        "--tp",
        "1",
        "--pp",
        "8",
        "--dp",
        "128",
        "--iterations",
        "30",
        "--no-trace",
    ];
    faults.iter().for_each(|fault| flags.extend(["--slow-rank", fault]));
    let screen = screen(&flags);
    assert!(screen.contains("16 ranks on 14 nodes compute"), "{screen}");
    checked("1024-ranks-16-slow", &screen);
}

#[test]
fn two_slow_nodes_are_told_once_each() {
    let screen = screen(&[
        "--tp",
        "4",
        "--pp",
        "2",
        "--dp",
        "16",
        "--no-trace",
        "--slow-node",
        "2:1.3",
        "--slow-node",
        "5:1.35",
    ]);
    for node in ["all 8 ranks of gpu-002 compute", "all 8 ranks of gpu-005 compute"] {
        assert_eq!(screen.matches(node).count(), 1, "{node} in\n{screen}");
    }
    checked("two-slow-nodes-tp4", &screen);
}

#[test]
fn a_slow_link_is_told_with_what_to_swap() {
    let screen = screen(&["--tp", "1", "--pp", "4", "--dp", "8", "--slow-link", "0-8:10"]);
    assert!(
        screen.contains("swap the cable or the port between gpu-000 and gpu-001"),
        "{screen}"
    );
    checked("slow-link", &screen);
}

#[test]
fn a_healthy_job_says_what_was_compared() {
    let screen = screen(&["--tp", "1", "--pp", "2", "--dp", "8", "--no-trace"]);
    assert!(
        screen.starts_with("HEALTHY job j") && screen.contains("nobody is to blame"),
        "{screen}"
    );
    checked("healthy-job", &screen);
}

#[test]
fn what_can_not_be_told_is_no_health() {
    let screen = screen(&[
        "--tp",
        "1",
        "--pp",
        "2",
        "--dp",
        "8",
        "--no-trace",
        "--iterations",
        "12",
    ]);
    assert!(
        screen.starts_with("CANNOT TELL") && screen.contains("WHY") && !screen.contains("OK "),
        "{screen}"
    );
    checked("cannot-tell", &screen);
}

#[test]
fn since_when_is_an_iteration_and_a_clock_time() {
    let screen = screen(&[
        "--tp",
        "1",
        "--pp",
        "2",
        "--dp",
        "8",
        "--no-trace",
        "--slow-rank",
        "5:1.5",
        "--onset",
        "25",
    ]);
    assert!(screen.contains("since iteration 25 (2026-01-01 08:"), "{screen}");
    assert!(screen.contains("GPU 5 on gpu-000"), "{screen}");
}

#[test]
fn quiet_verbose_and_colours() {
    let workdir = Workdir::new();
    let file = workdir.file("a.ndjson", common::slow_rank_5("j"));
    let run = |more: &[&str]| {
        workdir
            .run(&[&["analyze", &file, "--no-files"], more].concat())
            .succeeded()
            .stdout
    };
    let quiet = run(&["-q"]);
    assert_eq!(quiet.lines().count(), 5, "{quiet}");
    assert!(quiet.contains("anomaly_ranks: [5]\n"), "{quiet}");
    let (usual, verbose) = (run(&[]), run(&["-v"]));
    assert!(
        verbose.contains("data_quality: ") && !usual.contains("data_quality: "),
        "{verbose}"
    );
    assert!(!usual.contains('\u{1b}') && run(&["--color", "always"]).contains("\u{1b}[1;31m"));
    let plain = common::ran(
        workdir
            .command(&["analyze", &file, "--no-files", "--color", "never"])
            .env("CLICOLOR_FORCE", "1"),
    );
    assert!(!plain.stdout.contains('\u{1b}'));
    assert_eq!(workdir.run(&["analyze", &file, "-q", "-v"]).code, Some(2));
}
