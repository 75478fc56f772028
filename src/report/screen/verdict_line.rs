//! The first line: the status, and what was looked at.

use super::paragraph::Paragraph;
use super::span;
use crate::report::summary::Summary;
use crate::verdict::{Status, words};

/// `FAULT  job a, iterations 11-30 (2026-01-01 08:00:48 to 08:02:10 UTC), 16 ranks on 2 nodes`.
pub(super) fn verdict_line(summary: &Summary) -> Paragraph {
    let tag = match summary.status {
        Status::Fault => "FAULT",
        Status::Imbalance => "UNEVEN",
        Status::CannotTell => "CANNOT TELL",
        Status::Healthy => "HEALTHY",
    };
    let window = &summary.window;
    let times = match (&window.first_time, &window.last_time) {
        (Some(first), Some(last)) => format!(" ({})", span(first, last)),
        _ => String::new(),
    };
    let ranks = words::number(window.ranks, "rank");
    let nodes = if window.nodes > 0 {
        format!(" on {}", words::number(window.nodes, "node"))
    } else {
        String::new()
    };
    let windows = match summary.windows.len() {
        0 => String::new(),
        count => format!(", {}", words::number(count, "slow window")),
    };
    let (first, last) = (window.first_iteration, window.last_iteration);
    Paragraph::new(
        tag,
        format!(
            "job {}, iterations {first}-{last}{times}, {ranks}{nodes}{windows}",
            summary.job
        ),
    )
}
