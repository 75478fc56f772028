//! `report.html`: the verdict as a page to look at.

mod findings;
mod machines;
mod plots;
mod quality;

use std::fs;
use std::path::Path;

use maud::{Markup, html};

use self::plots::Plots;
use super::error::WriteError;
use super::report::Report;
use super::screen::{in_a_sentence, span};
use super::summary::Summary;
use super::text::cost::cost;
use crate::page::{Scripts, page, plot, section};
use crate::verdict::words;

/// Name of the file.
pub(super) const REPORT_HTML: &str = "report.html";
/// Height of a row of a plot, and of what stands around rows; pixels.
const ROW: usize = 20;
const AROUND: usize = 110;

/// Writes the page.
///
/// # Errors
/// A file that can't be written.
pub(super) fn export(folder: &Path, report: &Report) -> Result<(), WriteError> {
    let file = folder.join(REPORT_HTML);
    fs::write(&file, text(report)?).map_err(WriteError::io(file))
}

/// The text of the page.
///
/// # Errors
/// A number that JSON can't hold.
fn text(report: &Report) -> Result<String, WriteError> {
    let plots = Plots::of(report);
    let data = serde_json::to_string(&plots).map_err(|reason| WriteError::Format {
        what: "the plots of a page",
        reason: reason.to_string(),
    })?;
    let title = format!("{}: {}", report.summary.job, report.summary.status.name());
    Ok(page(&title, &body(report, &plots), Scripts::Plots(&data)))
}

fn body(report: &Report, plots: &Plots) -> Markup {
    let summary = &report.summary;
    let sections = [
        ("heat", "Ranks over time", heat(plots)),
        ("grid", "Pipeline grid", grid(plots)),
        ("steps", "Step time", steps(plots)),
        ("timers", "Timers", timers(plots)),
        ("votes", "Votes", votes(plots)),
        ("waits", "Who waits", waits(plots)),
        ("links", "Transfers", links(plots, summary)),
        ("machines", "Machines", machines::machines(summary)),
        ("quality", "Data", Some(quality::quality(summary))),
    ];
    let shown: Vec<_> = sections
        .iter()
        .filter_map(|(id, title, body)| Some((*id, *title, body.as_ref()?)))
        .collect();
    html! {
        (head(summary))
        nav.inside { div {
            a href="#findings" { "Findings" }
            @for (id, title, _) in &shown { a href={ "#" (id) } { (title) } }
        } }
        main {
            (findings::section_of(summary))
            @for (_, _, body) in &shown { (body) }
        }
    }
}

fn head(summary: &Summary) -> Markup {
    let window = &summary.window;
    html! {
        header.top {
            p.job { span class={ "badge " (summary.status.name()) } { (summary.status.name()) } " job " (summary.job) }
            h1 { (capital(&in_a_sentence(summary))) }
            dl.facts {
                div { dt { "looked at" } dd { (words::number(window.ranks, "rank")) " on " (words::number(window.nodes, "node")) } }
                div { dt { "iterations" } dd { (window.first_iteration) "\u{2013}" (window.last_iteration) " (" (window.iterations) ")" } }
                @if let (Some(first), Some(last)) = (&window.first_time, &window.last_time) {
                    div { dt { "time" } dd { (span(first, last)) } }
                }
                div { dt { "slow ranks" } dd { @if summary.anomaly_ranks.is_empty() { "none named" } @else { (summary.anomaly_ranks.len()) } } }
                @if !summary.anomaly_nodes.is_empty() { div { dt { "nodes" } dd { (words::nodes(&summary.anomaly_nodes).trim_start_matches("nodes ").trim_start_matches("node ")) } } }
                div { dt { "main cause" } dd { (summary.cause.name()) } }
            }
            @if let Some(what_if) = &summary.what_if { p.about { "Cost: " (cost(what_if)) "." } }
        }
    }
}

/// The text with its first letter as at the beginning of a sentence; names stay.
fn capital(text: &str) -> String {
    let mut letters = text.chars();
    letters
        .next()
        .map_or(String::new(), |first| first.to_uppercase().chain(letters).collect())
}

fn heat(plots: &Plots) -> Option<Markup> {
    let first = plots.heat.first()?;
    let rows = first.rows.len().min(40);
    let about = "A row a rank, a column an iteration; the colour is the rank's time over that of its peers, which do the same work in the same step. \
                 A slow rank is a red row; a slow step that all share leaves no trace. Ctrl and the wheel zoom.";
    Some(section(
        "heat",
        "Ranks over time",
        about,
        &html! {
            @if plots.heat.len() > 1 {
                div.choice data-choice="heat" {
                    @for (place, heat) in plots.heat.iter().enumerate() {
                        button type="button" aria-pressed=(if place == 0 { "true" } else { "false" }) { (heat.title) }
                    }
                }
            }
            (plot("heat", rows * ROW + AROUND))
            @for heat in plots.heat.iter().filter(|heat| heat.left_out > 0) {
                p.about { "Of " (heat.title) " the worst " (heat.rows.len()) " are shown; " (heat.left_out) " further ones are left out." }
            }
            @if plots.together > 1 { p.about { "Each value is the mean of " (plots.together) " iterations." } }
        },
    ))
}

fn grid(plots: &Plots) -> Option<Markup> {
    let grid = plots.grid.as_ref()?;
    let about = "A row a pipeline stage, a column a replica. A slow GPU is one cell; a heavy stage colours nothing here, for its ranks are compared with each other; \
                 a column is a replica with more data, or its network.";
    Some(section(
        "grid",
        "Pipeline grid",
        about,
        &html! {
            @if !grid.costs.is_empty() {
                div.choice data-choice="grid" {
                    button type="button" aria-pressed="true" { "how slow" }
                    button type="button" aria-pressed="false" { "what it costs" }
                }
            }
            (plot("grid", grid.stages.min(24) * 26 + AROUND))
        },
    ))
}

fn steps(plots: &Plots) -> Option<Markup> {
    plots.steps.as_ref()?;
    let about = "How long each step took. Shaded: windows in which the steps were slow. Lines: where a fault began, stalls, restarts.";
    Some(section("steps", "Step time", about, &plot("steps", 280)))
}

fn timers(plots: &Plots) -> Option<Markup> {
    let strips = plots.timers.as_ref()?;
    let about = "Each rank's mean in each timer over the median of its stage; named ranks in red. A rank that is slow itself is right in the timers of computing; \
                 one that only waits is right in those of transfers. What lies beyond the scale is drawn at its edge.";
    Some(section(
        "timers",
        "Timers",
        about,
        &html! {
            (plot("timers", strips.names.len() * 26 + 80))
            @if strips.is_a_sample { p.about { "Of the ranks that are not named an even sample is drawn." } }
            @if strips.timers_left_out > 0 { p.about { (words::number(strips.timers_left_out, "further timer")) " are not drawn; summary.json lists them." } }
        },
    ))
}

fn votes(plots: &Plots) -> Option<Markup> {
    let votes = plots.votes.as_ref()?;
    let about = "The six algorithms vote on the ranks that pass the thresholds; who is named needs half of those that could tell. Red: calls it slow.";
    Some(section(
        "votes",
        "Votes",
        about,
        &html! {
            (plot("votes", votes.rows.len().min(30) * ROW + 100))
            @if votes.left_out > 0 { p.about { (votes.left_out) " further ranks with votes are not drawn: algorithms that split all ranks in two call many slow." } }
        },
    ))
}

fn waits(plots: &Plots) -> Option<Markup> {
    let waits = plots.waits.as_ref()?;
    let about = "What each rank does in an iteration: passes, transfers, and waiting for its neighbours in the pipeline. Who waits longest is the victim; \
                 who hardly waits is who the others wait for.";
    Some(section(
        "waits",
        "Who waits for whom",
        about,
        &html! {
            (plot("waits", waits.rows.len().min(32) * ROW + 90))
            @if waits.left_out > 0 { p.about { "The " (waits.rows.len()) " ranks that wait least are shown; " (waits.left_out) " are left out." } }
        },
    ))
}

fn links(plots: &Plots, summary: &Summary) -> Option<Markup> {
    let links = plots.links.as_ref()?;
    let about = "One transfer without waiting, sender to receiver, beside what transfers of its kind usually take; slow ones in red, the worst first.";
    Some(section(
        "links",
        "Transfers between stages",
        about,
        &html! {
            (plot("links", links.rows.len().min(24) * ROW + 100))
            @if links.left_out > 0 { p.about { (links.left_out) " further transfers are in comm/links.csv." } }
            p.about { (capital(&summary.communication)) "." }
        },
    ))
}
