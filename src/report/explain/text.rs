//! An explanation in words.

use std::fmt::Write as _;

use super::{CoursePoint, Explanation, GateExplanation, LinkExplanation, RankExplanation};
use crate::contract::printable::on_one_line;
use crate::report::headline::seconds;

/// Columns of a course.
const WIDTH: usize = 60;
const BLOCKS: [char; 8] = [
    '\u{2581}', '\u{2582}', '\u{2583}', '\u{2584}', '\u{2585}', '\u{2586}', '\u{2587}', '\u{2588}',
];

/// One rank in full; several in a line each, then those that are named in full.
#[must_use]
pub fn text(explanation: &Explanation) -> String {
    let mut out = String::new();
    let named = if explanation.named { "named" } else { "not named" };
    line(
        &mut out,
        &format!("{} of job {}: {named}", explanation.about, explanation.job),
    );
    for finding in &explanation.findings {
        line(&mut out, &format!("  finding: {finding}"));
    }
    if let [only] = explanation.ranks.as_slice() {
        in_full(&mut out, only);
    } else {
        for rank in &explanation.ranks {
            line(&mut out, &in_a_line(rank));
        }
        for rank in explanation.ranks.iter().filter(|rank| rank.named) {
            line(&mut out, "");
            line(&mut out, &format!("rank {}: named", rank.rank));
            in_full(&mut out, rank);
        }
    }
    for link in &explanation.links {
        line(&mut out, &of_link(link));
    }
    out
}

fn line(out: &mut String, text: &str) {
    // Writing to a string can't fail.
    let _ = writeln!(out, "{}", on_one_line(text));
}

fn mark(gate: &GateExplanation) -> &'static str {
    match gate.passed {
        Some(true) => "passed",
        Some(false) => "not passed",
        None => "not asked",
    }
}

fn in_full(out: &mut String, rank: &RankExplanation) {
    line(
        out,
        &format!(
            "  stands on {}, stage {}, replica {}",
            rank.node, rank.stage, rank.replica
        ),
    );
    for gate in &rank.gates {
        line(out, &format!("  {:<10}  {}: {}", mark(gate), gate.gate, gate.says));
    }
    if !rank.labels.is_empty() {
        let label = |label: &super::LabelExplanation| {
            format!("{} {}", label.algorithm, if label.slow { "slow" } else { "fast" })
        };
        let labels: Vec<String> = rank.labels.iter().map(label).collect();
        line(out, &format!("  labels      {}", labels.join(", ")));
    }
    course(out, &rank.course);
    if let Some(needed) = &rank.needed {
        line(out, &format!("  to be named it would have needed {needed}"));
    }
}

fn in_a_line(rank: &RankExplanation) -> String {
    let factor = rank.gates.iter().find(|gate| gate.gate == "the whole window");
    let measured = factor.and_then(|gate| Some((gate.measured?, gate.needed)));
    let factor = match measured {
        Some((factor, Some(needed))) => format!("{factor:.3} x its peers, more than {needed:.3} x needed"),
        Some((factor, None)) => format!("{factor:.3} x its peers"),
        None => "not compared".to_owned(),
    };
    format!(
        "  rank {}: {}; {factor}",
        rank.rank,
        if rank.named { "named" } else { "not named" }
    )
}

/// The rank's factor over time as a row of blocks, and its peers' on the same scale.
fn course(out: &mut String, points: &[CoursePoint]) {
    let known = |of: &dyn Fn(&CoursePoint) -> Option<f64>| -> Vec<f64> { points.iter().filter_map(of).collect() };
    let own = known(&|point| point.factor);
    let (Some(first), Some(last)) = (points.first(), points.last()) else {
        return;
    };
    if own.is_empty() {
        return;
    }
    let all = own
        .iter()
        .copied()
        .chain(known(&|point| point.peers_low))
        .chain(known(&|point| point.peers_high));
    let (low, high) = all.fold((f64::INFINITY, f64::NEG_INFINITY), |(low, high), factor| {
        (low.min(factor), high.max(factor))
    });
    let together = points.len().div_ceil(WIDTH);
    let drawn = |of: &dyn Fn(&CoursePoint) -> Option<f64>| -> String {
        let block = |points: &[CoursePoint]| {
            let most = points.iter().filter_map(of).fold(f64::NAN, f64::max);
            if !most.is_finite() {
                return ' ';
            }
            let share = if high > low { (most - low) / (high - low) } else { 0.0 };
            BLOCKS[((share * 7.0).round() as usize).min(7)]
        };
        points.chunks(together).map(block).collect()
    };
    line(
        out,
        &format!(
            "  over time   iterations {} to {}, from {low:.2} x to {high:.2} x",
            first.iteration, last.iteration
        ),
    );
    line(out, &format!("    it        {}", drawn(&|point| point.factor)));
    line(
        out,
        &format!(
            "    its peers {} (the one in the middle)",
            drawn(&|point| point.peers_middle)
        ),
    );
}

fn of_link(link: &LinkExplanation) -> String {
    let whom = format!(
        "  {} to {} ({}, from {} to {})",
        link.sender, link.receiver, link.direction, link.sender_node, link.receiver_node
    );
    match (link.transfer_seconds, link.factor) {
        (Some(time), Some(factor)) => format!(
            "{whom}: {} a transfer, {factor:.2} x what is usual: {}",
            seconds(time),
            if link.slow { "slow" } else { "not slow" }
        ),
        (Some(time), None) => format!(
            "{whom}: {} a transfer; too few of its kind to compare it with",
            seconds(time)
        ),
        _ => format!("{whom}: could not be measured"),
    }
}
