use super::*;
use crate::contract::defaults::SLOWDOWN_THRESHOLD;
use crate::job::{Job, slow_windows};
use crate::report::{Asked, Report};
use crate::rules::{Rules, RulesSettings, Verdict};
use crate::verdict::Finding;

/// A summary of 1,024 ranks with these findings.
fn summary(findings: Vec<Finding>) -> Summary {
    let job = Job::sample(8, 128, 8, 40);
    let (settings, step_times) = (RulesSettings::of(Rules::Peer), slow_windows(&job, SLOWDOWN_THRESHOLD));
    let verdict = Verdict {
        status: Status::of(&findings, None),
        findings,
        ..Verdict::default()
    };
    let asked = Asked {
        source: vec!["a.parquet".to_owned()],
        files_passed_over: Vec::new(),
        settings: &settings,
        iterations: "all".to_owned(),
        warmup: 10,
        step_times: &step_times,
    };
    Report::new(&job, verdict, asked).summary
}

fn finding(kind: FindingKind, cause: Cause, number: usize) -> Finding {
    let rank = (number * 37 % 1024) as u32;
    Finding {
        named: kind.is_fault(),
        says: format!(
            "rank {rank} does what it should not do, in a sentence that is as long as sentences of findings are"
        ),
        ranks: vec![rank],
        nodes: vec![format!("n{}", rank / 8)],
        stages: vec![rank / 128],
        factor: Some(1.1 + 0.01 * (number % 30) as f64),
        cost: Some(0.1),
        cost_seconds: Some(10.0),
        cost_gpu_hours: Some(1.0),
        first_iteration: Some(number as i64 % 40),
        last_iteration: Some(39),
        slow_iterations: Some(40 - number % 40),
        onset: Some(number as i64 % 40),
        ended: Some(false),
        ..Finding::new(kind, cause, 40)
    }
}

#[test]
fn whatever_is_wrong_fits_on_a_screen() {
    let kinds = [
        (FindingKind::SlowRank, Cause::Compute),
        (FindingKind::SlowLink, Cause::Network),
        (FindingKind::OneOfGroup, Cause::Compute),
        (FindingKind::SlowRank, Cause::DataLoading),
        (FindingKind::JobWide, Cause::Network),
        (FindingKind::Imbalance, Cause::DataImbalance),
        (FindingKind::Transient, Cause::None),
        (FindingKind::Suspect, Cause::Compute),
    ];
    for count in [1, 2, 3, 5, 9, 20, 60, 300] {
        for sorts in [1, 3, 8] {
            let findings = (0..count).map(|number| {
                let (kind, cause) = kinds[number % sorts];
                finding(kind, cause, number)
            });
            let summary = summary(findings.collect());
            for width in [60, 80, 100, 120] {
                let text = screen(&summary, Look { width, colours: false });
                let lines = text.lines().count() + 1 + FOR_SCRIPTS;
                assert!(
                    lines <= MOST_LINES,
                    "{count} findings of {sorts} sorts at {width}: {lines}\n{text}"
                );
                assert!(text.lines().all(|line| line.chars().count() <= width), "{text}");
                assert!(text.contains("SLOW  "), "the worst is shown\n{text}");
            }
        }
    }
}

#[test]
fn what_finds_no_room_is_counted() {
    let links = (0..40).map(|number| finding(FindingKind::JobWide, Cause::Network, number));
    let text = screen(&summary(links.collect()), Look::default());
    let shown = text.lines().filter(|line| line.starts_with("SLOW")).count();
    assert!(
        text.contains(&format!("not shown here: {} job-wide", 40 - shown)),
        "{text}"
    );
}

#[test]
fn a_day_is_told_once() {
    assert_eq!(
        span("2026-01-01T08:00:00Z", "2026-01-01T08:02:10Z"),
        "2026-01-01 08:00:00 to 08:02:10 UTC"
    );
    assert_eq!(
        span("2026-01-01T23:00:00Z", "2026-01-02T01:00:00Z"),
        "2026-01-01 23:00:00 UTC to 2026-01-02 01:00:00 UTC"
    );
    assert_eq!(clock("yesterday"), "yesterday");
}
