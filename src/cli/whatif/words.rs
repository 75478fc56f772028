//! The figures as rows of a CSV, as a matrix and in words.

use std::fmt::Write as _;

use super::JobAnswer;
use crate::report::cost_in_words;
use crate::whatif::slowdown::Slowdown;

/// A row a figure; of figures by type, replica, stage or worker the key stands beside.
pub(super) fn rows(figures: &serde_json::Value) -> String {
    let mut text = "figure,key,value\n".to_owned();
    let plain = |value: &serde_json::Value| match value {
        serde_json::Value::Null => Some(String::new()),
        serde_json::Value::Number(number) => Some(number.to_string()),
        serde_json::Value::String(word) => Some(format!("\"{}\"", word.replace('"', "\"\""))),
        _ => None,
    };
    for (figure, value) in figures.as_object().into_iter().flatten() {
        if let Some(value) = plain(value) {
            let _ = writeln!(text, "{figure},,{value}");
        }
        for (key, value) in value.as_object().into_iter().flatten() {
            if let Some(value) = plain(value) {
                let _ = writeln!(text, "{figure},{key},{value}");
            }
        }
    }
    text
}

pub(super) fn heat_map(slowdown: &Slowdown) -> String {
    let names: Vec<String> = slowdown
        .by_dp
        .keys()
        .map(|replica| format!("replica {replica}"))
        .collect();
    let mut text = format!("stage,{}\n", names.join(","));
    for (stage, row) in slowdown.heat_map.iter().enumerate() {
        let cells: Vec<String> = row.iter().map(|slowdown| format!("{slowdown:.6}")).collect();
        let _ = writeln!(text, "{stage},{}", cells.join(","));
    }
    text
}

pub(super) fn in_words(slowdown: &Slowdown) -> String {
    const LISTED: usize = 8;
    let mut text = String::new();
    let mut line = |key: &str, value: String| {
        let _ = writeln!(text, "{key}: {value}");
    };
    line("steps", format!("{} of {} replicas", slowdown.steps, slowdown.replicas));
    line(
        "slowdown",
        format!(
            "{:.4}: steps take {:.3} s instead of {:.3} s, {:.1} % of the time is lost",
            slowdown.slowdown,
            slowdown.replayed_seconds,
            slowdown.ideal_seconds,
            100.0 * slowdown.waste
        ),
    );
    line(
        "launch_slowdown",
        format!(
            "{:.4}: {:.3} s with delayed launches",
            slowdown.launch_slowdown, slowdown.step_seconds
        ),
    );
    line("replay_error", format!("{:.2} %", 100.0 * slowdown.replay_error));
    let ranked = |figures: Vec<(String, f64)>| {
        let mut figures = figures;
        figures.sort_by(|one, other| other.1.total_cmp(&one.1).then_with(|| one.0.cmp(&other.0)));
        let listed: Vec<String> = figures
            .iter()
            .take(LISTED)
            .map(|(name, slowdown)| format!("{name} {slowdown:.4}"))
            .collect();
        let more = figures.len().saturating_sub(LISTED);
        let more = if more > 0 {
            format!(" and {more} more")
        } else {
            String::new()
        };
        listed.join(", ") + &more
    };
    let named = |figures: &mut dyn Iterator<Item = (String, f64)>| ranked(figures.collect());
    line(
        "by_optype",
        named(&mut slowdown.by_optype.iter().map(|(name, figure)| (name.clone(), *figure))),
    );
    line(
        "by_stage",
        named(
            &mut slowdown
                .by_stage
                .iter()
                .map(|(stage, figure)| (stage.to_string(), *figure)),
        ),
    );
    line(
        "by_dp",
        named(
            &mut slowdown
                .by_dp
                .iter()
                .map(|(replica, figure)| (replica.to_string(), *figure)),
        ),
    );
    line(
        "by_worker",
        named(
            &mut slowdown
                .by_worker
                .iter()
                .map(|(rank, figure)| (format!("rank {rank}"), *figure)),
        ),
    );
    let share = |share: Option<f64>| share.map_or("-".to_owned(), |share| format!("{:.1} %", 100.0 * share));
    line(
        "m_w",
        format!(
            "{} of the lost time goes away with ranks {:?}",
            share(slowdown.m_w),
            slowdown.slowest_workers
        ),
    );
    line("m_s", format!("{} goes away with the last stage", share(slowdown.m_s)));
    let quality = &slowdown.trace_quality;
    let counts = [
        ("rows", quality.rows),
        ("unplaced_rows", quality.unplaced_rows),
        ("unknown_rows", quality.unknown_rows),
        ("fused_rows", quality.fused_rows),
        ("bad_rows", quality.bad_rows),
        ("repeated_rows", quality.repeated_rows),
        ("stray_rows", quality.stray_rows),
        ("filled_operations", quality.filled_operations),
        ("absent_operations", quality.absent_operations),
        ("missing_workers", quality.missing_workers),
        ("steps_left_out", quality.steps_left_out.len() as u64),
    ];
    let counts: Vec<String> = counts
        .iter()
        .filter(|(_, count)| *count > 0)
        .map(|(name, count)| format!("{name} {count}"))
        .collect();
    line("trace_quality", counts.join(", "));
    text
}

pub(super) fn job_in_words(answer: &JobAnswer) -> String {
    let mut text = String::new();
    if let Some(question) = &answer.mended {
        let _ = writeln!(text, "mended: {question}");
    }
    if let (Some(growth), Some(seconds)) = (answer.growth, answer.saved_seconds) {
        let _ = writeln!(text, "growth: {:.1} %, {seconds:.1} s of the window", 100.0 * growth);
    }
    let what_if = &answer.what_if;
    let _ = writeln!(text, "cost: {}", cost_in_words(what_if));
    if what_if.reason.is_none() {
        let _ = writeln!(
            text,
            "schedule: {} microbatches, {} chunks a stage; {} steps replayed",
            what_if.microbatches, what_if.chunks, what_if.replayed_steps
        );
    }
    text
}
