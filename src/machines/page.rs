//! The verdict on machines as a page to look at: who, since when, and the curves.

use maud::{Markup, html};
use serde::Serialize;

use super::verdict::{Curve, Finding, Kind, Status, Verdict};
use crate::page::{Scripts, page as framed, section};

/// Findings with curves.
const CURVES: usize = 24;
/// Points of a curve.
const POINTS: usize = 1_500;

#[derive(Serialize)]
struct Plots {
    curves: Vec<PlottedCurve>,
}

/// A machine's values beside the others', as `plots.js` draws them.
#[derive(Debug, Clone, Serialize)]
pub struct PlottedCurve {
    name: String,
    start: String,
    every: f64,
    machine: Vec<Option<f32>>,
    median: Vec<Option<f32>>,
    low: Vec<Option<f32>>,
    high: Vec<Option<f32>>,
}

/// The text of the page.
///
/// # Errors
/// A number that JSON can't hold.
pub fn page(verdict: &Verdict) -> Result<String, serde_json::Error> {
    let curves = verdict
        .findings
        .iter()
        .take(CURVES)
        .map(|finding| PlottedCurve::new(&finding.node, &verdict.start, &finding.curve))
        .collect();
    let data = serde_json::to_string(&Plots { curves })?;
    let title = format!("{}: {}", verdict.job, word(verdict.status));
    Ok(framed(&title, &body(verdict), Scripts::Plots(&data)))
}

fn word(status: Status) -> &'static str {
    match status {
        Status::Fault => "fault",
        Status::Healthy => "healthy",
        Status::CannotTell => "cannot-tell",
    }
}

impl PlottedCurve {
    /// Thins a curve to what a page can show.
    #[must_use]
    pub fn new(node: &str, start: &str, curve: &Curve) -> Self {
        let points = curve.machine.len().max(curve.peers_median.len());
        let step = points.div_ceil(POINTS).max(1);
        let thin = |values: &[Option<f32>]| {
            let kept = values.iter().step_by(step);
            kept.map(|value| value.filter(|value| value.is_finite())).collect()
        };
        Self {
            name: node.to_owned(),
            start: start.to_owned(),
            every: curve.every_seconds * step as f64,
            machine: thin(&curve.machine),
            median: thin(&curve.peers_median),
            low: thin(&curve.peers_low),
            high: thin(&curve.peers_high),
        }
    }
}

fn headline(verdict: &Verdict) -> String {
    match (verdict.status, verdict.findings.as_slice()) {
        (Status::Fault, [only]) => says(only),
        (Status::Fault, [first, ..]) => format!(
            "{} machines stand out, first of all {}",
            verdict.anomaly_nodes.len(),
            says(first)
        ),
        (Status::CannotTell, _) => format!(
            "Cannot tell: {}",
            verdict
                .reason
                .as_deref()
                .unwrap_or("the machines could not be compared")
        ),
        _ => format!(
            "{} machines compared in {} metrics: none differs lastingly",
            verdict.machines,
            verdict.metrics.len()
        ),
    }
}

fn says(finding: &Finding) -> String {
    match finding.kind {
        Kind::Different => format!(
            "{}: {} is {} than on the other machines",
            finding.node, finding.metric, finding.direction
        ),
        Kind::Stuck => format!("{}: {} does not change any more", finding.node, finding.metric),
    }
}

fn body(verdict: &Verdict) -> Markup {
    html! {
        header.top {
            p.job { span class={ "badge " (word(verdict.status)) } { (word(verdict.status)) } " machines of job " (verdict.job) }
            h1 { (headline(verdict)) }
            dl.facts {
                div { dt { "machines" } dd { (verdict.machines) } }
                div { dt { "metrics" } dd { (verdict.metrics.len()) } }
                div { dt { "from" } dd { (verdict.start) } }
                div { dt { "to" } dd { (verdict.end) } }
                div { dt { "method" } dd { (verdict.method) } }
            }
        }
        main {
            @for (at, finding) in verdict.findings.iter().enumerate() { (card(at, finding)) }
            @if !verdict.missing_nodes.is_empty() || !verdict.also_different.is_empty() || !verdict.warnings.is_empty() {
                (section("also", "Also", "", &html! { ul {
                    @for missing in &verdict.missing_nodes {
                        li { (missing.node) ": no sample" @if let Some(last) = &missing.last_sample { " since " (last) } ": check whether the machine or its exporter is down" }
                    }
                    @for also in &verdict.also_different { li { (also.node) " differs in " (also.metric) ": told, not blamed" } }
                    @for warning in &verdict.warnings { li { (warning) } }
                } }))
            }
        }
    }
}

fn card(at: usize, finding: &Finding) -> Markup {
    let id = format!("finding-{at}");
    let until = if finding.lasts_to_end {
        "the end".to_owned()
    } else {
        finding.until.clone()
    };
    let also: Vec<&str> = finding.seen_in.iter().map(|seen| seen.metric.as_str()).collect();
    section(
        &id,
        &says(finding),
        "",
        &html! {
            div.scroll { table { tbody {
                tr { td { "when" } td.wrap { "since " (finding.since) " to " (until) } }
                tr { td { "mean" } td.wrap { (format!("{:.4} {}, the machines' median {:.4}; healthy machines differ by about {:.3}", finding.value, finding.unit, finding.peers, finding.usual_difference)) } }
                tr { td { "score" } td { (format!("{:.1}, more than {:.1} is needed", finding.score, finding.threshold)) } }
                @if !also.is_empty() { tr { td { "also in" } td.wrap { (also.join(", ")) } } }
            } } }
            @if at < CURVES { div data-at=(at) data-plot="curves" class="plot" style="height:260px" role="img" {} }
            @else { p.about { "Its curve stands in the verdict as JSON." } }
        },
    )
}
