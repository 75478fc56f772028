//! The findings as cards: who, since when, how much, what it costs, why, what next.

use maud::{Markup, html};

use super::capital;
use crate::page::section;
use crate::report::headline::{Headline, seconds};
use crate::report::report::folder_name;
use crate::report::screen::{cost, when};
use crate::report::summary::Summary;
use crate::verdict::{FindingKind, Status, TimerEvidence, words};

/// Headlines that are told with their evidence; the others in a table.
const IN_FULL: usize = 24;
/// Links of a card.
const LINKS: usize = 6;

/// The section of all findings, window by window where there are several.
pub(super) fn section_of(summary: &Summary) -> Markup {
    let body = if summary.windows.is_empty() {
        cards(summary)
    } else {
        html! {
            @for window in &summary.windows {
                h3 { "Slow window, iterations " (window.window.first_iteration) "\u{2013}" (window.window.last_iteration) ": "
                    a href={ (folder_name(window)) "/" (super::REPORT_HTML) } { (window.status.name()) } }
                (cards(window))
            }
        }
    };
    section("findings", "Findings", "", &body)
}

fn cards(summary: &Summary) -> Markup {
    html! {
        @if let Some(why) = &summary.unjudged { p { strong { "Could not be judged: " } (why) } }
        @if summary.headlines.is_empty() { p { (nothing(summary)) } }
        @for headline in summary.headlines.iter().take(IN_FULL) { (card(summary, headline)) }
        @if summary.headlines.len() > IN_FULL {
            p.about { (summary.headlines.len() - IN_FULL) " further findings are in summary.txt." }
        }
    }
}

fn nothing(summary: &Summary) -> &'static str {
    match summary.status {
        Status::CannotTell => {
            "Nothing stands out in what could be compared, which is not enough to call the job healthy."
        }
        _ => {
            "Nothing stands out: no rank, link or loader is slower than its peers, lastingly, by an amount that matters."
        }
    }
}

fn card(summary: &Summary, headline: &Headline) -> Markup {
    let class = match headline.kind {
        kind if kind.is_fault() => "finding fault",
        FindingKind::Imbalance => "finding uneven",
        _ => "finding",
    };
    html! {
        article class=(class) {
            h3 { (capital(&headline.says)) }
            dl {
                @if let Some(when) = when(headline) { dt { "when" } dd { (when) } }
                @if headline.ranks.len() > 1 { dt { "ranks" } dd { (words::ranks(&headline.ranks)) } }
                @if headline.nodes.len() > 1 { dt { "nodes" } dd { (words::nodes(&headline.nodes)) } }
                @if let Some(factor) = factor(headline) { dt { "how much" } dd { (factor) } }
                @if let Some(cost) = cost(headline) { dt { "cost" } dd { (cost) } }
                dt { "cause" } dd { (headline.cause.name()) }
                @if headline.voters > 0 { dt { "votes" } dd { (headline.votes) " of " (headline.voters) " algorithms call it slow" } }
                @if let Some(confidence) = headline.confidence { dt { "confidence" } dd { (format!("{:.0} %", 100.0 * confidence)) } }
                @if let Some(also) = &headline.may_also_be { dt { "may also be" } dd { (also) } }
                @if !headline.next.is_empty() { dt { "next" } dd { ul { @for step in &headline.next { li { (step) } } } } }
            }
            @if !headline.timers.is_empty() { (timers(headline)) }
            (links(summary, headline))
        }
    }
}

fn factor(headline: &Headline) -> Option<String> {
    let (least, most) = (headline.least_factor?, headline.largest_factor?);
    let words = if most - least < 0.005 {
        format!("{most:.2} x")
    } else {
        format!("{least:.2} x to {most:.2} x")
    };
    let worst: Vec<String> = headline
        .worst
        .iter()
        .map(|rank| format!("rank {} on {} {:.2} x", rank.rank, rank.node, rank.factor))
        .collect();
    Some(if headline.ranks.len() > 1 && headline.findings.len() > 1 {
        format!("{words}; the worst: {}", worst.join(", "))
    } else {
        words
    })
}

fn timers(headline: &Headline) -> Markup {
    let row = |timer: &TimerEvidence| {
        html! {
            tr {
                td.wrap { (timer.timer) }
                td.number { (seconds(timer.mean_seconds)) }
                td.number { (seconds(timer.reference_seconds)) }
                td.number.over { (format!("{:.2} x", timer.factor)) }
            }
        }
    };
    html! {
        div.scroll { table {
            thead { tr { th { "timer, per iteration" } th.number { "here" } th.number { "peers" } th.number { "factor" } } }
            tbody { @for timer in &headline.timers { (row(timer)) } }
        } }
    }
}

fn links(summary: &Summary, headline: &Headline) -> Markup {
    let links: Vec<_> = headline
        .findings
        .iter()
        .filter_map(|&place| summary.findings.get(place))
        .flat_map(|finding| &finding.links)
        .collect();
    if links.is_empty() {
        return html! {};
    }
    html! {
        div.scroll { table {
            thead { tr { th { "transfer" } th.number { "here" } th.number { "usual" } th.number { "factor" } } }
            tbody {
                @for link in links.iter().take(LINKS) {
                    tr {
                        td.wrap { "rank " (link.sender) " to " (link.receiver) ", " (link.send_timer) }
                        td.number { (seconds(link.seconds)) }
                        td.number { (seconds(link.usual_seconds)) }
                        td.number.over { (format!("{:.2} x", link.factor)) }
                    }
                }
            }
        } }
        @if links.len() > LINKS { p.about { (links.len() - LINKS) " further slow transfers are in comm/links.csv." } }
    }
}
