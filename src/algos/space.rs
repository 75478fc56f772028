//! The rows of one timer in the form that all algorithms share.
//!
//! Ranks whose rows are equal are one *point* with a weight, and the points are sorted lexicographically
//! (`total_cmp`). Everything runs on the points, so that the answer cannot depend on the order of the ranks:
//! the same rows in another order give the same points, the same sums bit for bit, and the same labels after
//! mapping back. Equal rows always get the same label. Timers repeat values, so fewer points also means less work.
//!
//! Cost: `O(n log n)` to build; what is derived (kd-tree, cells, distance totals, fits by two means) is made on first use.
//! Rows must be finite. When the largest magnitude lies outside `1e-50 ..= 1e50` the points are scaled by a power
//! of two (exact), so that squares neither overflow nor vanish; no method here changes its labels under that scale.

use std::sync::OnceLock;

use super::cells::{self, Cells};
use super::distance::compare;
use super::kdtree::KdTree;
use super::kmeans_fits;
use super::lloyd::Partition;
use super::{Clustering, Row};

/// Up to this many distinct rows, quadratic methods are exact; above it they run on [`Cells`].
pub const EXACT_LIMIT: usize = 2_048;

/// The scaled rows of one timer, one a rank, with what the algorithms share of them.
#[derive(Debug)]
pub struct Space {
    rows: Vec<Row>,
    points: Vec<Row>,
    weights: Vec<f64>,
    point_of: Vec<u32>,
    tree: OnceLock<KdTree>,
    cells: OnceLock<Cells>,
    totals: OnceLock<Vec<f64>>,
    two_means: OnceLock<Vec<Partition>>,
}

impl Space {
    /// Builds the space of `rows` (finite; any number of them).
    pub fn new(rows: Vec<Row>) -> Self {
        Self::build(rows, true)
    }

    /// As [`Space::new`], but equal rows stay separate points: for labellings that tell equal rows apart.
    pub(crate) fn without_merging(rows: Vec<Row>) -> Self {
        Self::build(rows, false)
    }

    fn build(rows: Vec<Row>, merge: bool) -> Self {
        let factor = magnitude_factor(&rows);
        let scaled: Vec<Row> = rows
            .iter()
            .map(|row| row.map(|value| value * factor + 0.0)) // + 0.0 turns -0.0 into 0.0: they are equal
            .collect();
        let mut order: Vec<u32> = (0..rows.len() as u32).collect();
        order.sort_by(|&a, &b| compare(&scaled[a as usize], &scaled[b as usize]));
        let mut points: Vec<Row> = Vec::with_capacity(rows.len());
        let mut weights: Vec<f64> = Vec::with_capacity(rows.len());
        let mut point_of = vec![0; rows.len()];
        for &rank in &order {
            let row = scaled[rank as usize];
            match weights.last_mut() {
                Some(weight) if merge && points.last() == Some(&row) => *weight += 1.0,
                _ => {
                    points.push(row);
                    weights.push(1.0);
                }
            }
            point_of[rank as usize] = (points.len() - 1) as u32;
        }
        Self {
            rows,
            points,
            weights,
            point_of,
            tree: OnceLock::new(),
            cells: OnceLock::new(),
            totals: OnceLock::new(),
            two_means: OnceLock::new(),
        }
    }

    /// The rows as given, by rank.
    pub fn rows(&self) -> &[Row] {
        &self.rows
    }

    /// Number of ranks.
    pub fn len(&self) -> usize {
        self.rows.len()
    }

    /// Whether there is no rank at all.
    pub fn is_empty(&self) -> bool {
        self.rows.is_empty()
    }

    /// The distinct rows in lexicographic order.
    pub fn points(&self) -> &[Row] {
        &self.points
    }

    /// How many ranks have the row of each point.
    pub fn weights(&self) -> &[f64] {
        &self.weights
    }

    /// The point of each rank.
    pub fn point_of(&self) -> &[u32] {
        &self.point_of
    }

    /// The kd-tree over the points.
    pub fn tree(&self) -> &KdTree {
        self.tree.get_or_init(|| KdTree::new(&self.points, &self.weights))
    }

    /// Small groups of neighbouring points that stand for them above [`EXACT_LIMIT`].
    pub fn cells(&self) -> &Cells {
        self.cells.get_or_init(|| cells::split(&self.points))
    }

    /// For each point the sum of its Euclidean distances to all ranks.
    pub(crate) fn distance_totals(&self, make: impl FnOnce() -> Vec<f64>) -> &[f64] {
        self.totals.get_or_init(make)
    }

    /// The k-means fits of all starts with two clusters: k-means takes the best of them, the mixture starts from each.
    /// There must be two distinct rows.
    pub(crate) fn two_means(&self) -> &[Partition] {
        self.two_means
            .get_or_init(|| kmeans_fits::singles(&self.points, &self.weights, 2).collect())
    }

    /// The clustering that gives every rank the label of its point.
    pub fn clustering(&self, point_labels: &[u32], parameters: String) -> Clustering {
        let by_rank: Vec<u32> = self
            .point_of
            .iter()
            .map(|&point| point_labels[point as usize])
            .collect();
        Clustering::new(&by_rank, parameters)
    }

    /// The label of each point; `None` when ranks of one point have different labels.
    pub(crate) fn point_labels(&self, labels: &[u32]) -> Option<Vec<u32>> {
        let mut of_point = vec![u32::MAX; self.points.len()];
        for (&point, &label) in self.point_of.iter().zip(labels) {
            let known = &mut of_point[point as usize];
            if *known != u32::MAX && *known != label {
                return None;
            }
            *known = label;
        }
        Some(of_point)
    }
}

fn magnitude_factor(rows: &[Row]) -> f64 {
    let largest = rows.iter().flatten().fold(0.0f64, |most, value| most.max(value.abs()));
    if largest == 0.0 || (1e-50..=1e50).contains(&largest) {
        return 1.0;
    }
    // Two factors of at most 2^511 each stay finite; log2 of a subnormal still is.
    let exponent = -(largest.log2().floor()) as i32;
    2f64.powi(exponent.clamp(-1022, 1022))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equal_rows_become_one_weighted_point() {
        let space = Space::new(vec![[2.0; 4], [-0.0; 4], [2.0; 4], [0.0; 4], [1.0; 4]]);
        assert_eq!(space.points(), [[0.0; 4], [1.0; 4], [2.0; 4]]);
        assert_eq!(space.weights(), [2.0, 1.0, 2.0]);
        assert_eq!(space.point_of(), [2, 0, 2, 0, 1]);
        assert_eq!(space.len(), 5);
    }

    #[test]
    fn extreme_magnitudes_are_brought_near_one() {
        for magnitude in [1e300, 1e-300, f64::MAX, f64::MIN_POSITIVE] {
            let space = Space::new(vec![[magnitude; 4], [-magnitude; 4], [0.0; 4]]);
            let largest = space.points()[2][0];
            assert!((0.5..=4.0).contains(&largest), "{magnitude}: {largest}");
        }
        let space = Space::new(vec![[1e-200, 2e-200, 1e-200, 3.0]]);
        assert_eq!(space.points()[0][3], 3.0);
    }
}
