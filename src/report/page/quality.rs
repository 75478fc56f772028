//! What the verdict rests on: rows read and left out, timers and their fate, runs, where it comes from.

use maud::{Markup, html};

use crate::features::TimerFate;
use crate::page::section;
use crate::report::screen::clock;
use crate::report::summary::Summary;

/// Timers of the table.
const TIMERS: usize = 200;
/// Runs of the table.
const RUNS: usize = 50;

/// The section.
pub(super) fn quality(summary: &Summary) -> Markup {
    let counts: Vec<(&str, u64)> = summary
        .data_quality
        .counts()
        .into_iter()
        .filter(|(_, count)| *count > 0)
        .collect();
    let about = "What was read, and what was left out with the reason. Nothing is dropped silently.";
    section(
        "quality",
        "Data",
        about,
        &html! {
            div.scroll { table {
                thead { tr { th { "rows" } th.number { "count" } } }
                tbody { @for (name, count) in counts { tr { td { (name.replace('_', " ")) } td.number { (count) } } } }
            } }
            details {
                summary { "Timers and what became of them (" (summary.timers.len()) ")" }
                div.scroll { table {
                    thead { tr { th { "timer" } th.number { "ranks" } th { "fate" } } }
                    tbody {
                        @for timer in summary.timers.iter().take(TIMERS) {
                            tr { td.wrap { (timer.timer) } td.number { (timer.ranks) } td { (fate(&timer.fate)) } }
                        }
                    }
                } }
                @if summary.timers.len() > TIMERS { p.about { (summary.timers.len() - TIMERS) " further timers are in summary.json." } }
            }
            details {
                summary { "Runs (" (summary.runs.len()) ")" }
                div.scroll { table {
                    thead { tr { th { "run" } th { "iterations" } th { "from" } th { "to" } } }
                    tbody {
                        @for run in summary.runs.iter().take(RUNS) {
                            tr {
                                td.wrap { @if run.uuid.is_empty() { "(unnamed)" } @else { (run.uuid) } }
                                td { (run.first_iteration) "\u{2013}" (run.last_iteration) }
                                td { (clock(&run.first_time)) }
                                td { (clock(&run.last_time)) }
                            }
                        }
                    }
                } }
            }
            details {
                summary { "Where it comes from" }
                div.scroll { table { tbody {
                    tr { td { "source" } td.wrap { (summary.sources) } }
                    tr { td { "rules" } td { (summary.rules) } }
                    tr { td { "version" } td { (summary.tool_version) } }
                    tr { td { "warm-up" } td { (summary.window.warmup) " iterations of every run" } }
                    tr { td { "asked" } td.wrap { (summary.window.asked_iterations) } }
                } } }
            }
        },
    )
}

fn fate(fate: &TimerFate) -> String {
    match fate {
        TimerFate::Compared { .. } => "compared".to_owned(),
        TimerFate::Clustered { spread } => format!("clustered, spread {spread:.3}"),
        TimerFate::Spread { spread } => format!("left out: ranks too much alike, spread {spread:.3}"),
        TimerFate::Coverage { ranks } => format!("left out: on {ranks} ranks only"),
        TimerFate::NotCompute => "left out: no timer of computing".to_owned(),
        TimerFate::NotCompared => "not compared".to_owned(),
        TimerFate::StepTime => "the step time".to_owned(),
    }
}
