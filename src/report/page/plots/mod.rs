//! What the plots of a report show, one file a plot, as small as they need it.
//!
//! Thousands of ranks are put together by node, the worst first; whatever is left out is told on the page.

mod grid;
mod heat;
mod links;
mod steps;
mod strips;
mod votes;
mod waits;

use std::collections::BTreeSet;

use serde::Serialize;

use self::grid::Grid;
use self::heat::Heat;
use self::links::Links;
use self::steps::Steps;
use self::strips::Strips;
use self::votes::Votes;
use self::waits::WaitBars;
use crate::machines::page::PlottedCurve;
use crate::report::report::Report;

/// Rows of votes, waits and links.
const LISTED: usize = 128;

/// All plots of a page; `None` where there is nothing to draw.
#[derive(Debug, Default, Serialize)]
pub(super) struct Plots {
    pub heat: Vec<Heat>,
    /// Iterations that a column stands for.
    pub together: usize,
    pub grid: Option<Grid>,
    pub steps: Option<Steps>,
    pub timers: Option<Strips>,
    pub votes: Option<Votes>,
    pub waits: Option<WaitBars>,
    pub links: Option<Links>,
    /// A machine beside the others, one for each that differs.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub curves: Vec<PlottedCurve>,
}

impl Plots {
    /// Of a report.
    pub fn of(report: &Report) -> Self {
        let comparison = &report.verdict.comparison;
        Self {
            heat: heat::heats(report, comparison),
            together: comparison.steps_per_column,
            grid: grid::grid(report, comparison),
            steps: steps::steps(report),
            timers: strips::strips(report),
            votes: votes::votes(report),
            waits: waits::waits(report),
            links: links::links(report),
            curves: super::machines::curves(&report.summary),
        }
    }
}

/// The ranks that are named.
fn named_ranks(report: &Report) -> BTreeSet<u32> {
    report.summary.anomaly_ranks.iter().copied().collect()
}

/// A rank and its node, for an axis.
fn rank_name(report: &Report, rank: usize) -> String {
    format!("rank {} {}", report.ranks[rank], report.nodes[rank])
}

/// A number that there is; JSON has no others.
fn known(number: f64) -> Option<f64> {
    number.is_finite().then(|| rounded(number))
}

/// Five digits: more show in no plot.
fn rounded(number: f64) -> f64 {
    if number == 0.0 || !number.is_finite() {
        return 0.0;
    }
    let scale = 10f64.powi(4 - number.abs().log10().floor() as i32);
    let rounded = (number * scale).round() / scale;
    if rounded.is_finite() { rounded } else { number }
}
