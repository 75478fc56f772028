//! The first screen: the verdict in at most [`MOST_LINES`] lines, whatever is wrong and however many ranks there are.
//!
//! What is said first is what matters most: the costliest headlines whole, the next ones in a line each, the rest as a
//! number. Lines are counted as they are shown, wrapped at the width.

mod paragraph;
#[cfg(test)]
mod tests;
mod verdict_line;

pub use self::paragraph::Look;
use self::paragraph::Paragraph;
use super::headline::{Headline, seconds};
use super::summary::Summary;
use crate::contract::printable::on_one_line;
use crate::verdict::{Cause, FindingKind, Lasting, Status, words};

/// Most lines of a screen, with those for scripts.
const MOST_LINES: usize = 30;
/// Lines that are kept free for what was well, what is left out, and where the rest stands.
const KEPT: usize = 4;
/// Lines for scripts.
const FOR_SCRIPTS: usize = 5;
/// Share of its part below which a headline's own cost says little.
const HIDDEN: f64 = 0.3;
/// Timers told of a headline.
const TIMERS: usize = 3;
/// Metrics of machines told of a headline, and machines told besides.
const MACHINES: usize = 3;

/// The screen of a summary, without the lines for scripts.
#[must_use]
pub fn screen(summary: &Summary, look: Look) -> String {
    let mut shown = vec![verdict_line::verdict_line(summary)];
    if let Some(why) = &summary.unjudged {
        shown.push(Paragraph::new("WHY", why.clone()));
    }
    let parts: Vec<(Option<&Summary>, &Headline)> = if summary.windows.is_empty() {
        summary.headlines.iter().map(|headline| (None, headline)).collect()
    } else {
        let windows = summary.windows.iter();
        windows
            .flat_map(|window| window.headlines.iter().map(move |headline| (Some(window), headline)))
            .collect()
    };
    let mut free = (MOST_LINES - KEPT - FOR_SCRIPTS).saturating_sub(lines(&shown, look));
    let mut left_out = Vec::new();
    for (place, (window, headline)) in parts.iter().enumerate() {
        // Every headline after it gets a line, up to three of them.
        let reserved = (parts.len() - place - 1).min(3);
        let full = in_full(summary, headline, *window);
        let short = vec![full[0].clone()];
        let fits = |paragraphs: &[Paragraph]| lines(paragraphs, look) + reserved <= free;
        let chosen = if matters(headline) && fits(&full) {
            full
        } else if left_out.is_empty() && lines(&short, look) + usize::from(reserved > 0) <= free {
            short
        } else {
            left_out.push(*headline);
            continue;
        };
        free = free.saturating_sub(lines(&chosen, look));
        shown.extend(chosen);
    }
    if !left_out.is_empty() {
        shown.push(further(&left_out));
    }
    shown.extend(machines(summary, free, look));
    shown.extend(well(summary));
    shown.extend(left_out_rows(summary));
    shown.extend(nodes_in_doubt(summary));
    shown.iter().map(|paragraph| paragraph.text(look)).collect()
}

fn lines(paragraphs: &[Paragraph], look: Look) -> usize {
    paragraphs.iter().map(|paragraph| paragraph.lines(look)).sum()
}

/// What is told with its evidence: faults, and what costs time.
fn matters(headline: &Headline) -> bool {
    headline.kind.is_fault() || headline.kind == FindingKind::Imbalance
}

/// A headline with everything that is known of it.
fn in_full(summary: &Summary, headline: &Headline, window: Option<&Summary>) -> Vec<Paragraph> {
    let mut paragraphs = vec![Paragraph::new(tag(headline), headline.says.clone())];
    if let Some(when) = when(headline) {
        let inside = window.map_or(String::new(), |window| {
            format!(
                " (slow window: iterations {}-{})",
                window.window.first_iteration, window.window.last_iteration
            )
        });
        paragraphs.push(Paragraph::new("", when + &inside));
    }
    if let Some(worst) = worst(headline) {
        paragraphs.push(Paragraph::new("", worst));
    }
    if let Some(cost) = cost(headline) {
        paragraphs.push(Paragraph::new("cost", cost));
    }
    if let Some(why) = why(headline) {
        paragraphs.push(Paragraph::new("why", why));
    }
    let confirmed: Vec<_> = summary.confirmed_on(&headline.nodes).collect();
    for machine in confirmed.iter().take(MACHINES) {
        paragraphs.push(Paragraph::new("metric", machine.says.clone()));
    }
    if confirmed.len() > MACHINES {
        let more = confirmed.len() - MACHINES;
        paragraphs.push(Paragraph::new("", format!("{more} further metrics in summary.txt")));
    }
    if let Some(also) = &headline.may_also_be {
        let tell = if headline.kind == FindingKind::OneOfGroup {
            also.clone()
        } else {
            format!("it may also be {also}")
        };
        paragraphs.push(Paragraph::new("also", tell));
    }
    if let Some(next) = headline.next.first() {
        paragraphs.push(Paragraph::new("next", next.clone()));
    }
    paragraphs
}

/// The word in front of a headline.
pub(super) fn tag(headline: &Headline) -> &'static str {
    match headline.kind {
        kind if kind.is_fault() => "SLOW",
        FindingKind::Imbalance => "UNEVEN",
        FindingKind::Suspect => "maybe",
        FindingKind::Transient => "passed",
        _ => "stall",
    }
}

/// `since iteration 60 (2026-01-01 08:05:56 UTC) to the end`; `None` where it is not told step by step.
pub(super) fn when(headline: &Headline) -> Option<String> {
    let (first, last) = (headline.first_iteration?, headline.last_iteration?);
    let at = |iteration: i64, time: &Option<String>| {
        time.as_ref().map_or(format!("iteration {iteration}"), |time| {
            format!("iteration {iteration} ({})", clock(time))
        })
    };
    let from = at(first, &headline.first_time);
    let to_the_end = headline.ended != Some(true);
    let often = match (headline.lasting, headline.slow_iterations) {
        (Some(Lasting::Recurring), Some(count)) => {
            format!(", on and off: in {count} of {} iterations", headline.iterations)
        }
        (_, Some(count)) if count < headline.iterations => {
            format!(", in {count} of {} iterations", headline.iterations)
        }
        _ => String::new(),
    };
    Some(if headline.lasting == Some(Lasting::Throughout) && !headline.began {
        format!("since {from}, the first of the window, to its end")
    } else if first == last {
        format!("in {from}")
    } else if to_the_end {
        format!("since {from}, to the end of the window{often}")
    } else {
        format!("from {from} to {}, when it ended{often}", at(last, &headline.last_time))
    })
}

/// `2026-01-01 08:05:56 UTC` of `2026-01-01T08:05:56Z`.
pub(super) fn clock(time: &str) -> String {
    match time.strip_suffix('Z').and_then(|time| time.split_once('T')) {
        Some((day, clock)) => format!("{day} {} UTC", clock.split('.').next().unwrap_or(clock)),
        None => time.to_owned(),
    }
}

/// From one moment to another, the day once where it is the same.
pub(super) fn span(first: &str, last: &str) -> String {
    let (first, last) = (clock(first), clock(last));
    match (first.split_once(' '), last.split_once(' ')) {
        (Some((day, from)), Some((same, to))) if day == same => {
            format!("{day} {} to {to}", from.trim_end_matches(" UTC"))
        }
        _ => format!("{first} to {last}"),
    }
}

/// The worst ranks of several, where they differ.
fn worst(headline: &Headline) -> Option<String> {
    let (least, most) = (headline.least_factor?, headline.largest_factor?);
    if headline.ranks.len() < 3 || headline.findings.len() < 2 || most - least < 0.005 {
        return None;
    }
    let one = |rank: &super::headline::WorstRank| format!("rank {} on {} ({:.2} x)", rank.rank, rank.node, rank.factor);
    let worst: Vec<String> = headline.worst.iter().map(one).collect();
    Some(format!("the worst: {}", worst.join(", ")))
}

/// `steps 8.0 s instead of 5.9 s (+35 %); 86 s of the window, 0.4 GPU-hours`.
pub(super) fn cost(headline: &Headline) -> Option<String> {
    let growth = headline.growth?;
    // What another finding hides shows only once that is mended.
    if let (Some(alone), Some(part)) = (headline.cost_seconds, headline.part_seconds)
        && alone < HIDDEN * part
    {
        return Some(format!(
            "{} of what all findings cost together; mended alone it saves {}, for the others hold up the steps as well",
            seconds(part),
            seconds(alone.max(0.0))
        ));
    }
    let steps = match (headline.step_seconds, headline.mended_step_seconds) {
        (Some(step), Some(mended)) => {
            format!(
                "steps {} instead of {} (+{:.1} %)",
                seconds(step),
                seconds(mended),
                100.0 * growth
            )
        }
        _ => format!("steps take {:.1} % longer", 100.0 * growth),
    };
    let lost = match (headline.cost_seconds, headline.cost_gpu_hours) {
        (Some(lost), Some(hours)) => format!("; {} of the window, {hours:.2} GPU-hours", seconds(lost)),
        _ => String::new(),
    };
    Some(steps + &lost)
}

/// `forward 2.44 s against 1.65 s, backward 4.85 s against 3.26 s, per iteration; 6 of 6 algorithms agree`.
pub(super) fn why(headline: &Headline) -> Option<String> {
    let timer = |timer: &crate::verdict::TimerEvidence| {
        format!(
            "{} {} against {}",
            timer.timer,
            seconds(timer.mean_seconds),
            seconds(timer.reference_seconds)
        )
    };
    let timers: Vec<String> = headline.timers.iter().take(TIMERS).map(timer).collect();
    let mut parts = Vec::new();
    if !timers.is_empty() {
        let whose = if headline.findings.len() > 1 {
            " (of the costliest)"
        } else {
            ""
        };
        parts.push(format!("{}, per iteration{whose}", timers.join(", ")));
    }
    if headline.voters > 0 {
        parts.push(format!("{} of {} algorithms agree", headline.votes, headline.voters));
    }
    (!parts.is_empty()).then(|| parts.join("; "))
}

/// Machines that differ in hardware metrics while no rank on them is slow, and what was compared.
fn machines(summary: &Summary, mut free: usize, look: Look) -> Vec<Paragraph> {
    let Some(metrics) = &summary.machines else {
        return Vec::new();
    };
    let mut shown = vec![Paragraph::new("metric", metrics.compared())];
    free = free.saturating_sub(lines(&shown, look));
    let told: Vec<_> = metrics.unconfirmed().collect();
    for (place, machine) in told.iter().enumerate() {
        let paragraph = Paragraph::new("told", machine.says.clone());
        let needed = paragraph.lines(look) + usize::from(place + 1 < told.len());
        if needed > free || place == MACHINES {
            shown.push(Paragraph::new(
                "told",
                format!("{} further in summary.txt", told.len() - place),
            ));
            break;
        }
        free -= paragraph.lines(look);
        shown.push(paragraph);
    }
    shown
}

/// What did not find room.
fn further(left_out: &[&Headline]) -> Paragraph {
    let mut counts = std::collections::BTreeMap::<&str, usize>::new();
    for headline in left_out {
        *counts.entry(headline.kind.name()).or_default() += headline.findings.len();
    }
    let counts: Vec<String> = counts.iter().map(|(kind, count)| format!("{count} {kind}")).collect();
    Paragraph::new(
        "more",
        format!("not shown here: {}; -v and summary.txt list them", counts.join(", ")),
    )
}

/// What was looked at and found well.
fn well(summary: &Summary) -> Option<Paragraph> {
    let window = &summary.window;
    let others = window.ranks.saturating_sub(summary.anomaly_ranks.len());
    let compared: Vec<String> = [
        (others > 0).then(|| {
            if others == window.ranks {
                words::number(others, "rank")
            } else {
                format!("{others} other rank{}", if others == 1 { "" } else { "s" })
            }
        }),
        Some(words::number(window.iterations, "iteration")),
        (summary.links_compared > 0).then(|| words::number(summary.links_compared, "transfer")),
    ]
    .into_iter()
    .flatten()
    .collect();
    let tag = if summary.status == Status::CannotTell {
        "seen"
    } else {
        "OK"
    };
    let words = match summary.status {
        Status::CannotTell => format!("{}: not enough to say that nothing is wrong", compared.join(", ")),
        Status::Fault if summary.anomaly_ranks.is_empty() => {
            format!("{} compared: no rank computes slowly", compared.join(", "))
        }
        Status::Healthy | Status::Imbalance => format!("{} compared: nobody is to blame", compared.join(", ")),
        Status::Fault => format!("{} compared: nobody else is to blame", compared.join(", ")),
    };
    (others > 0 || summary.status != Status::Fault).then(|| Paragraph::new(tag, words))
}

/// Rows that are not used for a reason that somebody may want to mend.
fn left_out_rows(summary: &Summary) -> Option<Paragraph> {
    let usual = [
        "rows_read",
        "timer_rows_used",
        "group_rows",
        "warmup",
        "trace_rows",
        "trace_rows_used",
        "trace_rows_left_out",
        "calls_used",
        "zero_durations",
        "trace_rows_not_needed",
        "other_metrics",
        "other_jobs",
        "outside_time",
        "outside_iterations",
        "rows_not_read",
        // Told in words of its own.
        "ranks_on_several_nodes",
    ];
    let counts: Vec<String> = summary
        .data_quality
        .counts()
        .into_iter()
        .filter(|(name, count)| *count > 0 && !usual.contains(name))
        .map(|(name, count)| format!("{} {count}", name.replace('_', " ")))
        .collect();
    (!counts.is_empty()).then(|| Paragraph::new("data", format!("rows left out: {}", counts.join(", "))))
}

/// Whether the name of a node is to be trusted.
fn nodes_in_doubt(summary: &Summary) -> Option<Paragraph> {
    let ranks = summary.data_quality.ranks_on_several_nodes;
    let rows = if ranks == 1 { "has rows" } else { "have rows" };
    let words = format!(
        "{} {rows} of more than one node in one run: the node of the latest row is named; look at the rows before a node is \
         taken out",
        words::number(ranks as usize, "rank")
    );
    (ranks > 0).then(|| Paragraph::new("data", words))
}

/// The lines for scripts: `key: value`, lists as JSON arrays.
pub(super) fn is_for_scripts(line: &str) -> bool {
    ["job: ", "status: ", "anomaly_ranks: ", "anomaly_nodes: ", "cause: "]
        .iter()
        .any(|key| line.starts_with(key))
}

/// The verdict in one sentence, for a page's head or a list of jobs.
pub(crate) fn in_a_sentence(summary: &Summary) -> String {
    let headlines = summary.all_headlines();
    let first = headlines
        .iter()
        .find(|headline| headline.kind.is_fault())
        .or(headlines.first());
    let text = match (summary.status, first) {
        (Status::Fault, Some(headline)) => with_more(headline, &headlines),
        (Status::CannotTell, _) => format!(
            "cannot tell: {}",
            summary.unjudged.as_deref().unwrap_or("too little could be compared")
        ),
        (Status::Imbalance, Some(headline)) => format!("nobody is to blame; {}", headline.says),
        _ if summary.cause == Cause::None => "nothing is wrong: nobody stands out".to_owned(),
        _ => "nobody is to blame".to_owned(),
    };
    on_one_line(&text)
}

fn with_more(headline: &Headline, all: &[&Headline]) -> String {
    let more = all.iter().filter(|other| other.kind.is_fault()).count() - 1;
    let since = headline
        .first_iteration
        .filter(|_| headline.began)
        .map_or(String::new(), |first| format!(" since iteration {first}"));
    let more = if more > 0 {
        format!("; and {}", words::number(more, "more fault"))
    } else {
        String::new()
    };
    format!("{}{since}{more}", headline.says)
}
