//! Mean shift with a flat kernel: every seed climbs to the mean of the ranks within the bandwidth until it rests;
//! ranks belong to the nearest of the modes found.
//!
//! Seeds are the occupied cells of a grid with the bandwidth as its step (all points when every rank has a cell of its own).
//! A seed rests after a move of at most `1e-3` bandwidths or 300 moves. Modes are taken in order of their ball's weight, then of
//! their coordinates, highest first, each removing the others within one bandwidth.
//! Tuned over [`QUANTILES`] x [`FACTORS`] of the estimated bandwidth.
//! Source: Comaniciu & Meer 2002; scikit-learn `MeanShift(bin_seeding=True)`, `estimate_bandwidth`.
//!
//! Cost: seeds x moves x a kd-tree ball query that adds whole nodes at once; a seed that gets to a place of an earlier
//! one stops there (a third of all moves). The bandwidth is scikit-learn's up to 500
//! ranks; above, 500 ranks evenly spaced in lexicographic order stand for all (scikit-learn draws them at random).
//! Bandwidth 0 (most rows equal): no candidate. Ranks equally near two modes go to the earlier one.

use std::collections::{BTreeMap, BTreeSet};

use rayon::prelude::*;

use super::distance::squared_distance;
use super::kdtree::KdTree;
use super::space::Space;
use super::{Algorithm, Clustering, Row};

/// Share of the ranks that a ball of the estimated bandwidth holds.
pub const QUANTILES: [f64; 3] = [0.2, 0.3, 0.5];
/// What the estimate is multiplied by.
pub const FACTORS: [f64; 3] = [0.75, 1.0, 1.5];

const SAMPLE: usize = 500;
const MAX_MOVES: usize = 300;
const REST: f64 = 1e-3;

/// See the module.
#[derive(Debug, Clone, Copy)]
pub struct MeanShift;

impl Algorithm for MeanShift {
    fn name(&self) -> &'static str {
        "mean_shift"
    }

    fn candidates(&self, space: &Space) -> Vec<Clustering> {
        let estimates = bandwidths(space, &QUANTILES);
        let grid: Vec<(f64, f64)> = QUANTILES
            .iter()
            .zip(&estimates)
            .flat_map(|(&quantile, &estimate)| FACTORS.map(|factor| (quantile, estimate * factor)))
            .collect();
        grid.par_iter()
            .filter(|(_, bandwidth)| *bandwidth > 0.0)
            .map(|&(quantile, bandwidth)| {
                let labels = point_labels(space, bandwidth);
                space.clustering(&labels, format!("bandwidth={bandwidth:.6}, quantile={quantile}"))
            })
            .collect()
    }
}

/// For each quantile q the mean distance from a rank to its `max(1, q n)`-th nearest rank, itself included
/// (see the module for n > 500). Zeros when there is no rank.
pub fn bandwidths(space: &Space, quantiles: &[f64]) -> Vec<f64> {
    let n = space.len();
    let size = n.min(SAMPLE);
    // Ranks in point order, so that the sample does not depend on rank order.
    let ordered: Vec<u32> = space
        .weights()
        .iter()
        .enumerate()
        .flat_map(|(point, &weight)| std::iter::repeat_n(point as u32, weight as usize))
        .collect();
    let sample: Vec<u32> = (0..size).map(|i| ordered[i * n / size]).collect();
    let columns: [Vec<f64>; 4] =
        [0, 1, 2, 3].map(|axis| sample.iter().map(|&i| space.points()[i as usize][axis]).collect());
    let ranks: Vec<usize> = quantiles
        .iter()
        .map(|quantile| ((size as f64 * quantile) as usize).max(1) - 1)
        .collect();
    let mut sums = vec![0.0; quantiles.len()];
    let mut distances = vec![0.0; size];
    for (position, &query) in sample.iter().enumerate() {
        if position > 0 && sample[position - 1] == query {
            // Equal rows have equal distances; `distances` is permuted by the selection but still the same set.
        } else {
            let centre = space.points()[query as usize];
            for (i, distance) in distances.iter_mut().enumerate() {
                let gap = [0, 1, 2, 3].map(|axis| columns[axis][i] - centre[axis]);
                *distance = gap[0] * gap[0] + gap[1] * gap[1] + gap[2] * gap[2] + gap[3] * gap[3];
            }
        }
        for (sum, &rank) in sums.iter_mut().zip(&ranks) {
            *sum += distances.select_nth_unstable_by(rank, f64::total_cmp).1.sqrt();
        }
    }
    sums.iter()
        .map(|sum| if size == 0 { 0.0 } else { sum / size as f64 })
        .collect()
}

/// The label of each rank: its mode's place among the modes, strongest first.
pub fn labels(space: &Space, bandwidth: f64) -> Vec<u32> {
    let of_point = point_labels(space, bandwidth);
    space.point_of().iter().map(|&point| of_point[point as usize]).collect()
}

fn point_labels(space: &Space, bandwidth: f64) -> Vec<u32> {
    let modes = modes(space, bandwidth);
    if modes.len() <= 1 {
        return vec![0; space.points().len()];
    }
    let tree = KdTree::new(&modes, &vec![1.0; modes.len()]);
    space
        .points()
        .iter()
        .map(|point| {
            if modes.len() > 32 {
                return tree.nearest(point);
            }
            let mut nearest = (f64::INFINITY, 0);
            for (i, mode) in modes.iter().enumerate() {
                let distance = squared_distance(point, mode);
                if distance < nearest.0 {
                    nearest = (distance, i as u32);
                }
            }
            nearest.1
        })
        .collect()
}

fn modes(space: &Space, bandwidth: f64) -> Vec<Row> {
    let mut visited = BTreeSet::new();
    let mut rests: Vec<(f64, Row)> = seeds(space, bandwidth)
        .into_iter()
        .filter_map(|seed| climb(space.tree(), seed, bandwidth, &mut visited))
        .collect();
    rests.sort_by(|a, b| b.0.total_cmp(&a.0).then_with(|| super::distance::compare(&b.1, &a.1)));
    let reach = bandwidth * bandwidth;
    let mut kept: Vec<Row> = Vec::new();
    for (_, rest) in rests {
        if kept.iter().all(|mode| squared_distance(mode, &rest) > reach) {
            kept.push(rest);
        }
    }
    kept
}

fn seeds(space: &Space, bandwidth: f64) -> Vec<Row> {
    let mut bins: BTreeMap<[u64; 4], Row> = BTreeMap::new();
    for point in space.points() {
        let bin = point.map(|value| (value / bandwidth).round_ties_even() + 0.0);
        bins.entry(bin.map(f64::to_bits)).or_insert(bin);
    }
    if bins.len() == space.len() {
        return space.points().to_vec();
    }
    bins.into_values()
        .map(|bin| bin.map(|value| value * bandwidth))
        .collect()
}

/// Where a seed comes to rest and the weight of its last ball; `None` when it starts in empty space, or gets to a place that
/// an earlier seed has `visited` and so would rest where that one does.
fn climb(tree: &KdTree, mut mean: Row, bandwidth: f64, visited: &mut BTreeSet<[u64; 4]>) -> Option<(f64, Row)> {
    let reach = bandwidth * bandwidth;
    let rest = (REST * bandwidth) * (REST * bandwidth);
    for moves in 0.. {
        if !visited.insert(mean.map(f64::to_bits)) {
            return None;
        }
        let (weight, sum) = tree.sum_within(&mean, reach);
        if weight == 0.0 {
            return None;
        }
        let next = sum.map(|value| value / weight);
        let moved = squared_distance(&next, &mean);
        mean = next;
        if moved <= rest || moves == MAX_MOVES {
            return Some((weight, mean));
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn two_clouds_are_two_modes() {
        let rows: Vec<Row> = (0..30)
            .map(|i| {
                [
                    f64::from(i % 5) / 10.0 + if i % 3 == 0 { 8.0 } else { 0.0 },
                    0.0,
                    0.0,
                    0.0,
                ]
            })
            .collect();
        let labels = labels(&Space::new(rows), 2.0);
        assert!((0..30).all(|i| labels[i] == u32::from(i % 3 == 0)), "{labels:?}");
    }

    #[test]
    fn the_bandwidth_is_the_mean_distance_to_a_neighbour() {
        let rows: Vec<Row> = (0..10).map(|i| [f64::from(i), 0.0, 0.0, 0.0]).collect();
        // The second of ten, itself counted, is one step away; the fifth is two or more.
        assert_eq!(bandwidths(&Space::new(rows), &[0.2]), [1.0]);
        assert_eq!(bandwidths(&Space::new(vec![]), &[0.2]), [0.0]);
        assert!(MeanShift.candidates(&Space::new(vec![[3.0; 4]; 9])).is_empty());
    }
}
