//! What the way between two stages takes: racks and switches differ, and all replicas of a link pass alike ones.
//!
//! A link is held against the same link of the other replicas. Where the better quarter of the replicas of a stage pair
//! takes longer than other pairs do, in both directions and in all of the window, the way between them is long. What slows one
//! direction only is not the way, nor what begins or ends, nor what slows the collectives of one of the stages too.

use std::collections::BTreeMap;

use super::links::Link;
use super::thresholds::{LEAST_FACTOR, REPLICA_QUANTILE, WAY_QUANTILE, WAY_REPLICAS};
use crate::stats::{median, quantile, sorted};

/// A way: the stage it leads from (to the next), and whether it stays inside a node.
type Key = (u32, bool);

/// What is known of a stage's network besides its transfers.
#[derive(Debug, Default, Clone, Copy)]
pub struct StageNetwork {
    /// Whether its collectives take longer than those of other stages.
    pub slow_collectives: bool,
    /// Whether all of its ranks are on one node.
    pub on_one_node: bool,
}

/// What each way takes longer than the shortest of its kind, log.
#[derive(Debug, Default)]
pub(super) struct Ways {
    longer: BTreeMap<Key, f64>,
}

impl Ways {
    /// Reads the ways from the times of flows (log, by link, forward first); `kinds` are the flows whose times are
    /// transfers.
    pub fn of(links: &[Link], logs: &[Vec<f64>], kinds: &[Vec<usize>; 2], stages: &[StageNetwork]) -> Self {
        let mut levels = BTreeMap::<Key, BTreeMap<u32, BTreeMap<usize, Vec<f64>>>>::new();
        for &flow in kinds.iter().flatten() {
            let link = &links[flow / 2];
            let level = quantile(&sorted(logs[flow].iter().copied()), WAY_QUANTILE.get());
            let replicas = levels.entry((link.stage, link.inside_node)).or_default();
            let directions = replicas.entry(link.pipeline).or_default();
            directions.entry(flow % 2).or_default().push(level);
        }
        let mut known = BTreeMap::<Key, f64>::new();
        for (key, replicas) in levels {
            let of_replica = |directions: &BTreeMap<usize, Vec<f64>>| {
                let lanes = directions.values().map(|lanes| median(lanes.iter().copied()));
                lanes.fold(f64::NAN, f64::min)
            };
            let replicas = sorted(replicas.values().map(of_replica));
            if replicas.len() >= WAY_REPLICAS.get() {
                let at = (REPLICA_QUANTILE.get() * (replicas.len() - 1) as f64) as usize;
                known.insert(key, replicas[at.min(replicas.len() - 1)]);
            }
        }
        let more = |stage: u32, inside: bool| -> f64 {
            let kind = known.iter().filter(|((_, other), _)| *other == inside);
            let usual = quantile(&sorted(kind.map(|(_, level)| *level)), 0.0);
            known.get(&(stage, inside)).map_or(f64::NAN, |level| level - usual)
        };
        let is_long = |stage: u32, inside: bool| more(stage, inside) > LEAST_FACTOR.get().ln();
        let is_at_fault = |stage: u32, inside: bool| {
            let network = stages.get(stage as usize).copied().unwrap_or_default();
            let both = || stage > 0 && is_long(stage - 1, inside) && is_long(stage, inside);
            network.slow_collectives || (network.on_one_node && both())
        };
        let mut longer = BTreeMap::new();
        for &(stage, inside) in known.keys() {
            let more = more(stage, inside);
            if more.is_finite() && !is_at_fault(stage, inside) && !is_at_fault(stage + 1, inside) {
                longer.insert((stage, inside), more);
            }
        }
        Self { longer }
    }

    /// What a link's way takes longer than the shortest, log.
    pub fn longer(&self, link: &Link) -> f64 {
        self.longer.get(&(link.stage, link.inside_node)).copied().unwrap_or(0.0)
    }

    /// Ways that take so much longer that a single link of that length would be a fault, and how many times as long.
    pub fn long(&self) -> Vec<(u32, f64)> {
        let long = self
            .longer
            .iter()
            .filter(|(_, longer)| **longer > LEAST_FACTOR.get().ln());
        long.map(|(&(stage, _), longer)| (stage, longer.exp())).collect()
    }
}
