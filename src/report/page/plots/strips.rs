//! A strip a timer: each rank's mean over the median of its stage.

use std::collections::{BTreeMap, BTreeSet};

use serde::Serialize;

use super::{named_ranks, rounded};
use crate::features::TimerFate;
use crate::report::report::Report;
use crate::stats::median;

/// Points of a timer's strip, beside those of named ranks.
const POINTS: usize = 400;
/// Timers that have a strip.
const STRIPS: usize = 24;

/// Each timer's ranks: timer, thousandths of the stage's median, seconds, rank, named, node.
#[derive(Debug, Serialize)]
pub(in crate::report::page) struct Strips {
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

pub(super) fn strips(report: &Report) -> Option<Strips> {
    let named = named_ranks(report);
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
            TimerFate::Compared { .. } | TimerFate::Clustered { .. }
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
            .map(|(stage, means)| (stage, median(means)))
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
