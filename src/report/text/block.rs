//! A finding as a block of lines, for a ticket.

use super::cost::cost_alone;
use super::json_array;
use crate::contract::printable::on_one_line;
use crate::report::error::WriteError;
use crate::verdict::{Finding, FindingKind, LinkEvidence, TimerEvidence};

/// A finding for a ticket: the sentence, then what it rests on.
pub(super) fn block(finding: &Finding) -> Result<String, WriteError> {
    let mut lines = vec![String::new(), format!("{}: {}", finding.kind.name(), finding.says)];
    let mut put = |key: &str, value: String| lines.push(format!("  {key}: {value}"));
    if !finding.ranks.is_empty() {
        put("ranks", json_array(&finding.ranks)?);
        put("nodes", json_array(&finding.nodes)?);
    }
    match finding.stages.as_slice() {
        [] => {}
        [stage] => put("pipeline stage", stage.to_string()),
        stages => put("pipeline stages", listed(stages)),
    }
    if let Some(factor) = finding.factor {
        put("factor", format!("{factor:.3} x {}", compared_with(finding)));
    }
    if let Some(when) = when(finding) {
        put("when", when);
    }
    if let Some(cost) = finding.cost {
        put("cost", cost_alone(finding, cost));
    }
    if finding.voters > 0 {
        let (votes, voters) = (finding.voted_by.len(), finding.voters);
        let names = finding.voted_by.join(", ");
        put("votes", format!("{votes} of {voters}{}", in_brackets(&names)));
    }
    if let Some(confidence) = finding.confidence {
        put("confidence", format!("{confidence:.2}"));
    }
    if let Some(ratio) = finding.slow_step_ratio {
        put("compute in the slowest steps", format!("{ratio:.3} x the fastest rank"));
    }
    for timer in &finding.timers {
        put(&timer.timer, on_timer(timer));
    }
    for link in finding.links.iter().take(LINKS_SHOWN) {
        put(&on_link(link), on_transfer(link, finding.iterations));
    }
    if finding.links.len() > LINKS_SHOWN {
        put("further transfers", (finding.links.len() - LINKS_SHOWN).to_string());
    }
    if let Some(rule) = &finding.decided_by {
        put("decided by", rule.clone());
    }
    let lines: Vec<String> = lines.iter().map(|line| on_one_line(line)).collect();
    Ok(lines.join("\n") + "\n")
}

fn compared_with(finding: &Finding) -> &'static str {
    match finding.kind {
        FindingKind::Stall => "the usual step",
        FindingKind::SlowNetwork | FindingKind::SlowLink => "the usual transfer",
        FindingKind::Transient => "its own usual time",
        FindingKind::Imbalance if finding.ranks.is_empty() => "the other stages",
        FindingKind::Imbalance => "the other pipelines",
        _ => "the peers",
    }
}

/// The iterations in which it shows, of how many, and what is known of its beginning and end.
fn when(finding: &Finding) -> Option<String> {
    let count = finding.slow_iterations?;
    let (first, last) = (finding.first_iteration?, finding.last_iteration?);
    let share = 100.0 * count as f64 / finding.iterations.max(1) as f64;
    let mut words = if first == last {
        format!("iteration {first}")
    } else {
        format!("iterations {first}-{last}")
    };
    words += &format!(", {count} of {} ({share:.0} %)", finding.iterations);
    if let Some(onset) = finding.onset {
        words += &format!("; began at {onset}");
    }
    if let Some(until) = finding.until {
        words += &format!("; ended with {until}");
    }
    Some(words)
}

fn on_timer(timer: &TimerEvidence) -> String {
    let called = if timer.slow_by.is_empty() {
        String::new()
    } else {
        format!("; called slow by {}", timer.slow_by.join(", "))
    };
    format!(
        "mean {:.6} s, {:.3} x the peers' {:.6} s{called}",
        timer.mean_seconds, timer.factor, timer.reference_seconds
    )
}

/// Slow transfers that a finding lists; summary.json has them all.
const LINKS_SHOWN: usize = 8;

fn on_link(link: &LinkEvidence) -> String {
    let LinkEvidence { sender, receiver, .. } = link;
    format!("{} of {sender} to {} of {receiver}", link.send_timer, link.recv_timer)
}

fn on_transfer(link: &LinkEvidence, iterations: usize) -> String {
    format!(
        "{:.6} s, {:.2} x the usual {:.6} s, in {} of {iterations} iterations",
        link.seconds, link.factor, link.usual_seconds, link.slow_iterations
    )
}

fn in_brackets(words: &str) -> String {
    if words.is_empty() {
        String::new()
    } else {
        format!(" ({words})")
    }
}

fn listed(stages: &[u32]) -> String {
    let stages: Vec<String> = stages.iter().map(u32::to_string).collect();
    stages.join(", ")
}
