//! The status page: jobs, states, their last steps. It asks for nothing but itself and comes anew every ten seconds.

use std::collections::BTreeMap;

use maud::{DOCTYPE, Markup, html};

use super::health::Health;
use super::known::State;
use super::watched::Watched;
use crate::contract::printable::on_one_line;
use crate::source::{Micros, timestamp};

const STYLE: &str = "
:root{color-scheme:light dark;--line:#8884;--bad:#c62828;--warn:#b26a00;--good:#2e7d32;--quiet:#777}
body{font:15px/1.45 system-ui,sans-serif;margin:0 auto;max-width:70rem;padding:1rem}
table{border-collapse:collapse;width:100%}
th,td{text-align:left;padding:.4rem .6rem;border-bottom:1px solid var(--line);vertical-align:top;overflow-wrap:break-word;max-width:28rem}
th{font-weight:600;color:var(--quiet)}
.spark{font-family:ui-monospace,monospace;letter-spacing:-1px;color:var(--quiet)}
.spark,.state{white-space:nowrap;overflow-wrap:normal}
.detected,.hanging{color:var(--bad);font-weight:600}.slowdown,.predicting{color:var(--warn);font-weight:600}
.active{color:var(--good)}.finished{color:var(--quiet)}
.broken{border:1px solid var(--bad);padding:.6rem;border-radius:.4rem}
@media(max-width:40rem){thead{display:none}tr{display:block;padding:.5rem 0;border-bottom:1px solid var(--line)}
td{display:block;border:0;padding:.1rem 0}}
";

/// Steps of a sparkline.
const STEPS: usize = 40;

/// Writes the page.
#[must_use]
pub fn page(jobs: &BTreeMap<String, Watched>, health: &Health) -> String {
    let loud = |state: State| matches!(state, State::Detected | State::Hanging);
    let mut order: Vec<&Watched> = jobs.values().collect();
    order.sort_by_key(|job| (!loud(job.state), job.state == State::Finished));
    let page = html! {
        (DOCTYPE)
        html lang="en" {
            head {
                meta charset="utf-8";
                meta name="viewport" content="width=device-width, initial-scale=1";
                meta http-equiv="refresh" content="10";
                title { "mt-detector: watched jobs" }
                style { (maud::PreEscaped(STYLE)) }
            }
            body {
                h1 { "Watched jobs" }
                @if let Some(error) = &health.error {
                    p class="broken" { "The last poll failed: " (on_one_line(error)) ". Polls go on." }
                }
                @if order.is_empty() {
                    p { "No job is watched. Register one with " code { "PUT /jobs/<job id>" } "." }
                } @else {
                    table {
                        thead { tr { th { "Job" } th { "State" } th { "Last steps" } th { "Step" } th { "Verdict" } } }
                        tbody { @for job in order { (row(job)) } }
                    }
                }
                @if let Some(last) = health.last_success {
                    p class="finished" { "Last poll " (moment(last)) }
                }
            }
        }
    };
    page.into_string()
}

fn row(job: &Watched) -> Markup {
    let id = percent(&job.job);
    let seconds = |seconds: Option<f64>| seconds.map_or("-".to_owned(), |seconds| format!("{seconds:.3} s"));
    html! {
        tr {
            td { a href={ "jobs/" (id) } { (on_one_line(&job.job)) } }
            td class={ "state " (job.state.name()) } { (job.state.name()) }
            td class="spark" { (sparkline(job)) }
            td {
                (seconds(job.last.as_ref().map(|step| step.seconds)))
                br; "usual " (seconds(job.baseline()))
                @if let Some(last) = &job.last { br; "iteration " (last.iteration) }
            }
            td { (verdict(job, &id)) }
        }
    }
}

fn verdict(job: &Watched, id: &str) -> Markup {
    html! {
        @if let (State::Hanging, Some(hang)) = (job.state, &job.hang) {
            "no new iteration since " (moment(hang.since))
            @if hang.ranks_behind > 0 { ", " (hang.ranks_behind) " ranks behind" }
        }
        @if let Some(detection) = &job.detection {
            @for finding in detection.findings.iter().take(3) { (on_one_line(finding)) br; }
            @if let Some(error) = &detection.error { "no verdict: " (on_one_line(error)) br; }
            @if detection.folder.is_some() { a href={ "jobs/" (id) "/report" } { "report" } }
        }
    }
}

/// To the second, UTC.
fn moment(micros: Micros) -> String {
    timestamp::format(micros - micros.rem_euclid(1_000_000))
}

/// Eight heights of text: from 0 to twice the usual step.
fn sparkline(job: &Watched) -> String {
    const HEIGHTS: [char; 8] = ['▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];
    let Some(usual) = job.baseline() else {
        return String::new();
    };
    let shown = job.recent.iter().rev().take(STEPS).rev();
    let height = |seconds: f64| (seconds / (2.0 * usual) * 8.0).clamp(0.0, 7.0) as usize;
    shown.map(|&(_, seconds)| HEIGHTS[height(seconds)]).collect()
}

/// A job id as one part of a path.
fn percent(job: &str) -> String {
    let mut out = String::new();
    for byte in job.bytes() {
        match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'-' | b'_' | b'.' | b'~' => out.push(byte as char),
            other => out += &format!("%{other:02X}"),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_hostile_name_is_text() {
        let job = Watched::new("<script>alert(1)</script>\"'\u{202e}", 0);
        let page = page(&BTreeMap::from([(job.job.clone(), job)]), &Health::default());
        assert!(!page.contains("<script>") && !page.contains('\u{202e}'), "{page}");
        assert!(page.contains("href=\"jobs/%3Cscript%3E"), "{page}");
    }

    #[test]
    fn a_slow_step_stands_out() {
        let mut job = Watched::new("j", 0);
        job.normal.extend([2.0; 5]);
        job.recent.extend([(1, 2.0), (2, 2.0), (3, 4.0)]);
        assert_eq!(sparkline(&job), "▅▅█");
    }
}
