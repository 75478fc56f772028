//! A page that shows a sweep, with a filter and sorting, and links each job's report.

use maud::{Markup, html};

use super::ledger::{JobResult, Ledger, News};
use crate::page::{Scripts, page as framed};
use crate::verdict::words;

/// Sentences of a job; its report has all.
const FINDINGS: usize = 3;

/// The page. What was found or broken comes first, the costliest before the others.
pub(super) fn page(ledger: &Ledger) -> String {
    framed("mt-detector sweep", &body(ledger), Scripts::Tables)
}

fn class(result: &JobResult) -> &'static str {
    match (result.status.is_broken(), result.is_fault()) {
        (true, _) => "broken",
        (_, true) => "fault",
        _ => "well",
    }
}

fn body(ledger: &Ledger) -> Markup {
    let count = |wanted: &str| ledger.jobs.iter().filter(|result| class(result) == wanted).count();
    let (faults, broken) = (count("fault"), count("broken"));
    let hours: f64 = ledger
        .jobs
        .iter()
        .filter_map(|result| result.cost.as_ref())
        .map(|cost| cost.gpu_hours)
        .sum();
    let news = ledger.jobs.iter().filter(|result| result.news.is_some()).count();
    let open = |time: &Option<String>| time.clone().unwrap_or_else(|| "open".to_owned());
    let mut jobs: Vec<&JobResult> = ledger.jobs.iter().collect();
    let place = |result: &JobResult| {
        ["broken", "fault", "well"]
            .iter()
            .position(|known| *known == class(result))
    };
    jobs.sort_by(|a, b| {
        place(a)
            .cmp(&place(b))
            .then(lost(b).total_cmp(&lost(a)))
            .then(a.job.cmp(&b.job))
    });
    html! {
        header.top {
            p.job { "sweep of " (ledger.made) }
            h1 { (words::number(ledger.jobs.len(), "job")) ", " (faults) " with a fault, " (broken) " not analysed" }
            dl.facts {
                div { dt { "from" } dd { (open(&ledger.start)) } }
                div { dt { "to" } dd { (open(&ledger.end)) } }
                div { dt { "lost to faults" } dd { (format!("{hours:.2} GPU-hours")) } }
                div { dt { "news" } dd { (news) } }
            }
            p.about { (ledger.source.join(", ")) }
            @for file in &ledger.unread { p { span.badge.fault { "not read" } " " (file) } }
        }
        main { section {
            h2 { "Jobs" }
            p { input type="search" placeholder="filter: a job, node, cause" aria-label="filter"; }
            div.choice {
                button type="button" data-only="" aria-pressed="true" { "all" }
                button type="button" data-only="fault" aria-pressed="false" { "faults (" (faults) ")" }
                button type="button" data-only="broken" aria-pressed="false" { "not analysed (" (broken) ")" }
            }
            p.about id="shown" {}
            div.scroll { table.cards data-sort="yes" {
                thead { tr {
                    @for head in ["job", "status", "news", "cause", "ranks", "nodes", "cost", "findings"] { th { button type="button" { (head) } } }
                } }
                tbody { @for result in jobs { (row(result)) } }
            } }
        } }
    }
}

fn lost(result: &JobResult) -> f64 {
    result.cost.as_ref().map_or(0.0, |cost| cost.gpu_hours)
}

fn row(result: &JobResult) -> Markup {
    let ranks = &result.anomaly_ranks;
    let named = if ranks.is_empty() {
        String::new()
    } else {
        words::ranks(ranks)
    };
    let nodes = if result.anomaly_nodes.is_empty() {
        String::new()
    } else {
        words::nodes(&result.anomaly_nodes)
    };
    let cost = result.cost.as_ref().filter(|cost| cost.seconds > 0.0);
    html! {
        tr class=(class(result)) data-class=(class(result)) {
            td.wrap { @match &result.folder {
                Some(folder) => a href={ (folder) "/report.html" } { (result.job) },
                None => (result.job),
            } }
            td data-label="status" { (result.word()) }
            td data-label="news" { (result.news.map_or("", News::word)) }
            td data-label="cause" { (result.cause) }
            td data-label="ranks" data-value=(ranks.len()) { (named.trim_start_matches("ranks ").trim_start_matches("rank ")) }
            td.wrap data-label="nodes" { (nodes.trim_start_matches("nodes ").trim_start_matches("node ")) }
            td.number data-label="cost" data-value=(lost(result)) { @if let Some(cost) = cost { (format!("{:.2} GPU-h (+{:.1} %)", cost.gpu_hours, 100.0 * cost.share)) } }
            td.wrap {
                @if let Some(error) = &result.error { (error) }
                @for headline in result.headlines.iter().take(FINDINGS) { div { (headline.says) } }
                @if result.headlines.len() > FINDINGS { div { "and " (result.headlines.len() - FINDINGS) " more" } }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::ledger::Status;
    use super::*;

    #[test]
    fn names_forge_no_markup_and_the_broken_come_first() {
        let ledger = Ledger {
            ledger_version: 2,
            tool_version: "0".to_owned(),
            made: "2026-01-01T00:00:00Z".to_owned(),
            source: Vec::new(),
            start: None,
            end: None,
            unread: Vec::new(),
            flags: Vec::new(),
            jobs: vec![
                JobResult::without("<script>x", Status::NoRows, None, String::new()),
                JobResult::without("z", Status::Failed, Some("a & b".to_owned()), String::new()),
            ],
        };
        let page = page(&ledger);
        assert!(!page.contains("<script>x") && page.contains("&lt;script&gt;x"));
        assert!(page.find("a &amp; b").expect("the error") < page.find("&lt;script&gt;x").expect("the job"));
    }
}
