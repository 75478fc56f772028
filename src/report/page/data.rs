//! What the plots of a report show, as small as they need it.
//!
//! Thousands of ranks are put together by node, the worst first; whatever is left out is told on the page.

use std::collections::{BTreeMap, BTreeSet};

use serde::Serialize;

use crate::machines::page::PlottedCurve;
use crate::report::report::Report;
use crate::verdict::comparison::Comparison;

/// Ranks up to which each has a row of its own from the start.
const RANKS_ONE_BY_ONE: usize = 256;
/// Rows of a heat map.
const ROWS: usize = 256;
/// Columns of a heat map of many rows.
const COLUMNS_OF_MANY: usize = 100;
/// Points of a timer's strip, beside those of named ranks.
const POINTS: usize = 400;
/// Timers that have a strip.
const STRIPS: usize = 24;
/// Ranks with votes that are not named.
const OTHER_VOTERS: usize = 16;
/// Rows of votes, waits and links.
const LISTED: usize = 128;
/// Cells of the grid of stages and replicas.
const GRID: usize = 20_000;

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
    pub curves: Vec<PlottedCurve>,
}

/// Rows x iterations: thousandths beyond the peers' time.
#[derive(Debug, Serialize)]
pub(super) struct Heat {
    pub title: String,
    pub rows: Vec<String>,
    pub marked: Vec<bool>,
    pub columns: Vec<i64>,
    pub cells: Vec<Vec<Option<i64>>>,
    #[serde(skip)]
    pub left_out: usize,
}

/// Stages x replicas: stage, replica, value, who.
#[derive(Debug, Serialize)]
pub(super) struct Grid {
    pub stages: usize,
    pub replicas: usize,
    pub factors: Vec<(u32, u32, u32, String)>,
    pub costs: Vec<(u32, u32, f64, String)>,
}

#[derive(Debug, Serialize)]
pub(super) struct Steps {
    pub iterations: Vec<i64>,
    pub times: Vec<String>,
    pub seconds: Vec<Option<f64>>,
    pub baseline: Option<f64>,
    pub windows: Vec<(i64, i64)>,
    pub stalls: Vec<(i64, f64)>,
    pub restarts: Vec<i64>,
    pub begins: Vec<i64>,
}

/// Each timer's ranks: timer, thousandths of the stage's median, seconds, rank, named, node.
#[derive(Debug, Serialize)]
pub(super) struct Strips {
    pub names: Vec<String>,
    /// Of the names the first so many were compared: they choose the scale.
    pub compared: usize,
    pub nodes: Vec<String>,
    pub points: Vec<(usize, i64, f64, u32, u8, usize)>,
    #[serde(skip)]
    pub timers_left_out: usize,
    #[serde(skip)]
    pub is_a_sample: bool,
}

#[derive(Debug, Serialize)]
pub(super) struct Votes {
    pub rows: Vec<String>,
    pub algorithms: Vec<String>,
    pub cells: Vec<Vec<u8>>,
    #[serde(skip)]
    pub left_out: usize,
}

#[derive(Debug, Serialize)]
pub(super) struct WaitBars {
    pub rows: Vec<String>,
    pub compute: Vec<Option<f64>>,
    pub transfer: Vec<Option<f64>>,
    pub waiting: Vec<Option<f64>>,
    pub whom: Vec<Option<u32>>,
    #[serde(skip)]
    pub left_out: usize,
}

#[derive(Debug, Serialize)]
pub(super) struct Links {
    pub rows: Vec<String>,
    pub seconds: Vec<Option<f64>>,
    pub usual: Vec<Option<f64>>,
    pub slow: Vec<bool>,
    #[serde(skip)]
    pub left_out: usize,
}

impl Plots {
    /// Of a report.
    pub fn of(report: &Report) -> Self {
        let comparison = &report.verdict.comparison;
        Self {
            heat: heats(report, comparison),
            together: comparison.steps_per_column,
            grid: grid(report, comparison),
            steps: steps(report),
            timers: strips(report),
            votes: votes(report),
            waits: waits(report),
            links: links(report),
            curves: super::machines::curves(&report.summary),
        }
    }
}

/// The ranks that are named.
fn named(report: &Report) -> BTreeSet<u32> {
    report.summary.anomaly_ranks.iter().copied().collect()
}

fn heats(report: &Report, comparison: &Comparison) -> Vec<Heat> {
    if comparison
        .ranks
        .iter()
        .all(|rank| rank.factors.iter().all(Option::is_none))
    {
        return Vec::new();
    }
    let named = named(report);
    let rows = |rank: &crate::verdict::comparison::RankComparison| Row {
        name: format!("rank {}", rank.rank),
        marked: named.contains(&rank.rank),
        factors: rank.factors.clone(),
    };
    let by_rank: Vec<Row> = comparison.ranks.iter().map(rows).collect();
    if by_rank.len() <= RANKS_ONE_BY_ONE {
        return vec![heat("all ranks".to_owned(), by_rank, comparison, false)];
    }
    let mut by_node = BTreeMap::<&str, Row>::new();
    for (rank, row) in comparison.ranks.iter().zip(&by_rank) {
        let node = by_node.entry(&rank.node).or_insert_with(|| Row {
            name: rank.node.clone(),
            marked: false,
            factors: vec![None; row.factors.len()],
        });
        node.marked |= row.marked;
        for (worst, &factor) in node.factors.iter_mut().zip(&row.factors) {
            *worst = (*worst).max(factor);
        }
    }
    let mut heats = Vec::new();
    if by_node.len() > 1 {
        heats.push(heat(
            "nodes: their slowest rank in each step".to_owned(),
            by_node.into_values().collect(),
            comparison,
            true,
        ));
    }
    heats.push(heat("the worst ranks".to_owned(), by_rank, comparison, true));
    heats
}

struct Row {
    name: String,
    marked: bool,
    factors: Vec<Option<u32>>,
}

impl Row {
    /// Mean factor: what rows are ordered by.
    fn mean(&self) -> f64 {
        let known = || self.factors.iter().flatten();
        known().map(|&factor| f64::from(factor)).sum::<f64>() / known().count().max(1) as f64
    }
}

fn heat(title: String, mut rows: Vec<Row>, comparison: &Comparison, worst_first: bool) -> Heat {
    let mut left_out = 0;
    if worst_first {
        rows.sort_by(|a, b| b.marked.cmp(&a.marked).then(b.mean().total_cmp(&a.mean())));
        left_out = rows.len().saturating_sub(ROWS);
        rows.truncate(ROWS);
    }
    let columns = comparison.iterations.len();
    let most = if rows.len() > RANKS_ONE_BY_ONE / 2 {
        COLUMNS_OF_MANY
    } else {
        columns
    };
    let together = columns.div_ceil(most.max(1)).max(1);
    // Of columns that are put together the worst shows: a short spell must not fade.
    let cells = |row: &Row| {
        let worst = |factors: &[Option<u32>]| factors.iter().flatten().max().map(|&factor| i64::from(factor) - 1000);
        row.factors.chunks(together).map(worst).collect()
    };
    Heat {
        title,
        marked: rows.iter().map(|row| row.marked).collect(),
        cells: rows.iter().map(cells).collect(),
        rows: rows.into_iter().map(|row| row.name).collect(),
        columns: comparison.iterations.iter().step_by(together).copied().collect(),
        left_out,
    }
}

fn grid(report: &Report, comparison: &Comparison) -> Option<Grid> {
    let places = &report.picture.places;
    let stages = places.iter().map(|place| place.0).max()? as usize + 1;
    let replicas = places.iter().map(|place| place.1).max()? as usize + 1;
    if stages * replicas > GRID || stages * replicas < 2 {
        return None;
    }
    // Where findings tell when a rank was slow, its factor is that of those steps; else that of the window.
    let mut factors = BTreeMap::<(u32, u32), (u32, Vec<u32>)>::new();
    let mut costs = BTreeMap::<(u32, u32), (f64, Vec<u32>)>::new();
    let place_of = |rank: u32| {
        report
            .ranks
            .binary_search(&rank)
            .ok()
            .and_then(|position| places.get(position).copied())
    };
    for rank in &comparison.ranks {
        let Some(place) = place_of(rank.rank) else { continue };
        let fault = rank.fault.as_ref().and_then(|fault| fault.gate.factor);
        let Some(factor) = fault.or(rank.window.factor) else {
            continue;
        };
        let cell = factors.entry(place).or_insert((0, Vec::new()));
        cell.0 = cell.0.max((1000.0 * factor.min(1e3)).round() as u32);
        cell.1.push(rank.rank);
    }
    for finding in report.summary.findings.iter().filter(|finding| finding.kind.is_fault()) {
        let Some(seconds) = finding.cost_part_seconds.or(finding.cost_seconds) else {
            continue;
        };
        for &rank in &finding.ranks {
            let Some(place) = place_of(rank) else { continue };
            let cell = costs.entry(place).or_insert((0.0, Vec::new()));
            cell.0 = cell.0.max(seconds);
            cell.1.push(rank);
        }
    }
    let who = |ranks: &[u32]| crate::verdict::words::ranks(ranks);
    Some(Grid {
        stages,
        replicas,
        factors: factors
            .iter()
            .map(|(&(stage, replica), (factor, ranks))| (stage, replica, *factor, who(ranks)))
            .collect(),
        costs: costs
            .iter()
            .map(|(&(stage, replica), (cost, ranks))| (stage, replica, rounded(*cost), who(ranks)))
            .collect(),
    })
    .filter(|grid| !grid.factors.is_empty())
}

fn steps(report: &Report) -> Option<Steps> {
    let picture = &report.picture;
    if !picture.seconds.iter().any(|seconds| seconds.is_finite()) {
        return None;
    }
    let times = &report.summary.step_times;
    let begins: BTreeSet<i64> = report
        .summary
        .all_headlines()
        .iter()
        .filter(|headline| headline.kind.is_fault() && headline.began)
        .filter_map(|headline| headline.first_iteration)
        .collect();
    Some(Steps {
        iterations: picture.iterations.clone(),
        times: picture.times.clone(),
        seconds: picture.seconds.iter().map(|&seconds| known(seconds)).collect(),
        baseline: times.baseline_seconds,
        windows: times.windows.iter().map(|window| (window.first, window.last)).collect(),
        stalls: times
            .stalls
            .iter()
            .map(|stall| (stall.iteration, stall.seconds))
            .collect(),
        restarts: times.restarts.iter().map(|restart| restart.iteration).collect(),
        begins: begins.into_iter().collect(),
    })
}

fn strips(report: &Report) -> Option<Strips> {
    let named = named(report);
    let places = &report.picture.places;
    let stage_of = |rank: usize| places.get(rank).map_or(0, |place| place.0);
    // Of timers the ones that were compared come first; the others by the share that they take.
    let mut order: Vec<usize> = (0..report.verdict.timers.len()).collect();
    let weight = |timer: usize| {
        let ranks = report.verdict.timers[timer].features.ranks.iter().flatten();
        ranks.map(|feature| feature[3]).fold(0.0, f64::max)
    };
    let compared = |timer: usize| {
        matches!(
            report.verdict.timers[timer].fate,
            crate::features::TimerFate::Compared { .. } | crate::features::TimerFate::Clustered { .. }
        )
    };
    order.sort_by(|&a, &b| {
        compared(b)
            .cmp(&compared(a))
            .then(weight(b).total_cmp(&weight(a)))
            .then(a.cmp(&b))
    });
    let timers_left_out = order.len().saturating_sub(STRIPS);
    order.truncate(STRIPS);
    let every = report.ranks.len().div_ceil(POINTS).max(1);
    let node_names: BTreeSet<&String> = report.nodes.iter().collect();
    let nodes: Vec<String> = node_names.iter().map(|node| (*node).clone()).collect();
    let mut points = Vec::new();
    for (row, &timer) in order.iter().enumerate() {
        let features = &report.verdict.timers[timer].features;
        let mut by_stage = BTreeMap::<u32, Vec<f64>>::new();
        for (rank, feature) in features.ranks.iter().enumerate() {
            by_stage
                .entry(stage_of(rank))
                .or_default()
                .extend(feature.map(|feature| feature[3]));
        }
        let medians: BTreeMap<u32, f64> = by_stage
            .into_iter()
            .map(|(stage, means)| (stage, crate::stats::median(means)))
            .collect();
        for (rank, feature) in features.ranks.iter().enumerate() {
            let Some([_, _, _, mean]) = *feature else { continue };
            let number = report.ranks[rank];
            let is_named = named.contains(&number);
            let ratio = 1000.0 * mean / medians.get(&stage_of(rank)).copied().unwrap_or(f64::NAN);
            if ratio.is_finite() && (is_named || rank % every == 0) {
                let node = nodes.binary_search(&report.nodes[rank]).unwrap_or(0);
                points.push((
                    row,
                    ratio.min(1e7).round() as i64,
                    rounded(mean),
                    number,
                    u8::from(is_named),
                    node,
                ));
            }
        }
    }
    let names = order
        .iter()
        .map(|&timer| report.verdict.timers[timer].features.timer.clone())
        .collect();
    (!points.is_empty()).then_some(Strips {
        names,
        compared: order.iter().filter(|&&timer| compared(timer)).count(),
        nodes,
        points,
        timers_left_out,
        is_a_sample: every > 1,
    })
}

fn votes(report: &Report) -> Option<Votes> {
    let named = named(report);
    let algorithms = &report.verdict.algorithms;
    let mut ranks: Vec<usize> = (0..report.ranks.len())
        .filter(|&rank| {
            named.contains(&report.ranks[rank]) || report.verdict.votes.get(rank).is_some_and(|&votes| votes > 0)
        })
        .collect();
    if ranks.is_empty() || algorithms.is_empty() || report.verdict.votes.iter().all(|&votes| votes == 0) {
        return None;
    }
    ranks.sort_by_key(|&rank| {
        (
            !named.contains(&report.ranks[rank]),
            std::cmp::Reverse(report.verdict.votes[rank]),
            rank,
        )
    });
    let is_named = ranks
        .iter()
        .filter(|&&rank| named.contains(&report.ranks[rank]))
        .count();
    let shown = LISTED.min(is_named + OTHER_VOTERS);
    let left_out = ranks.len().saturating_sub(shown);
    ranks.truncate(shown);
    Some(Votes {
        rows: ranks.iter().map(|&rank| rank_name(report, rank)).collect(),
        algorithms: algorithms.iter().map(|algorithm| algorithm.name.to_owned()).collect(),
        cells: ranks
            .iter()
            .map(|&rank| {
                algorithms
                    .iter()
                    .map(|algorithm| u8::from(algorithm.ranks[rank].slow))
                    .collect()
            })
            .collect(),
        left_out,
    })
}

fn rank_name(report: &Report, rank: usize) -> String {
    format!("rank {} {}", report.ranks[rank], report.nodes[rank])
}

fn waits(report: &Report) -> Option<WaitBars> {
    let waits = &report.verdict.communication.waits;
    let mut ranks: Vec<usize> = (0..waits.len()).collect();
    if ranks.is_empty() {
        return None;
    }
    let left_out = ranks.len().saturating_sub(LISTED);
    if left_out > 0 {
        // Who waits least is who the others wait for.
        ranks.sort_by(|&a, &b| waits[a].waiting.total_cmp(&waits[b].waiting).then(a.cmp(&b)));
        ranks.truncate(LISTED);
    }
    let column = |of: &dyn Fn(usize) -> f64| ranks.iter().map(|&rank| known(of(rank))).collect();
    Some(WaitBars {
        rows: ranks.iter().map(|&rank| rank_name(report, rank)).collect(),
        compute: column(&|rank| waits[rank].compute),
        transfer: column(&|rank| waits[rank].transfer),
        waiting: column(&|rank| waits[rank].waiting),
        whom: ranks
            .iter()
            .map(|&rank| waits[rank].waits_for.map(|other| report.ranks[other]))
            .collect(),
        left_out,
    })
}

fn links(report: &Report) -> Option<Links> {
    let mut flows: Vec<_> = report
        .verdict
        .communication
        .flows
        .iter()
        .filter(|flow| flow.seconds.is_finite())
        .collect();
    if flows.is_empty() {
        return None;
    }
    let seconds = |flow: &crate::comm::flows::Flow| match &flow.slow {
        Some(slow) if flow.usual.is_finite() => flow.usual * slow.factor,
        _ => flow.seconds,
    };
    let over = |flow: &crate::comm::flows::Flow| {
        Some(seconds(flow) / flow.usual)
            .filter(|over| over.is_finite())
            .unwrap_or(0.0)
    };
    flows.sort_by(|a, b| {
        b.slow
            .is_some()
            .cmp(&a.slow.is_some())
            .then(over(b).total_cmp(&over(a)))
    });
    let left_out = flows.len().saturating_sub(LISTED);
    flows.truncate(LISTED);
    let rank = |position: usize| report.ranks[position];
    Some(Links {
        rows: flows
            .iter()
            .map(|flow| {
                format!(
                    "{} to {} {}",
                    rank(flow.sender),
                    rank(flow.receiver),
                    flow.direction.name()
                )
            })
            .collect(),
        seconds: flows.iter().map(|flow| known(seconds(flow))).collect(),
        usual: flows.iter().map(|flow| known(flow.usual)).collect(),
        slow: flows.iter().map(|flow| flow.slow.is_some()).collect(),
        left_out,
    })
}

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
