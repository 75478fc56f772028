//! DBSCAN: ranks in dense places are clusters, all the others together one more (noise).
//!
//! `min_samples = min(4, n - 1)` (the rank itself counts). eps is a factor times the knee of the sorted distances
//! to the `min_samples`-th other rank, tuned over [`FACTORS`].
//! Source: Ester et al. 1996; scikit-learn `DBSCAN`, whose labels it gives for rows in lexicographic order: a border
//! point within reach of several clusters goes to the one whose first core row comes first in that order.
//!
//! Cost about `O(n log n)` whatever eps is: one nearest-neighbour
//! query a point serves the core test of every eps, the clusters of one eps grow on into those of the next, and a
//! kd-tree node whose core points are of one cluster is skipped by all of that cluster. Exact at any size.
//! n < 2: no candidates. Equal rows share their label; all rows equal is one cluster.

use super::distance::squared_distance;
use super::kdtree::KdTree;
use super::space::Space;
use super::{Algorithm, Clustering, Row};

/// What the knee of the k-distances is multiplied by.
pub const FACTORS: [f64; 6] = [0.5, 0.75, 1.0, 1.5, 2.0, 3.0];

/// The label of ranks in no cluster.
pub const NOISE: i32 = -1;

/// See the module.
#[derive(Debug, Clone, Copy)]
pub struct Dbscan;

impl Algorithm for Dbscan {
    fn name(&self) -> &'static str {
        "dbscan"
    }

    fn candidates(&self, space: &Space) -> Vec<Clustering> {
        if space.len() < 2 {
            return Vec::new();
        }
        let min_samples = min_samples(space.len());
        let reaches = Reaches::of(space, min_samples);
        let knee = knee(&reaches.k_distances(space)).max(1e-9);
        let mut clusters = Growth::new(space.tree());
        FACTORS
            .iter()
            .map(|factor| {
                let eps = knee * factor;
                let labels = clusters.grow_to(eps, &reaches);
                let shifted: Vec<u32> = labels.iter().map(|&label| (label + 1) as u32).collect();
                space.clustering(&shifted, format!("eps={eps:.6}, min_samples={min_samples}"))
            })
            .collect()
    }
}

/// The density that makes a core point, for `n` ranks.
pub fn min_samples(n: usize) -> usize {
    n.saturating_sub(1).min(4)
}

/// The distance of each rank to its `k`-th nearest other rank, ascending (`k` >= 1).
pub fn k_distances(space: &Space, k: usize) -> Vec<f64> {
    Reaches::of(space, k).k_distances(space)
}

/// For each point in the tree's order, the squared distances within which lie `min_samples` and one more ranks, itself counted:
/// eps from the first on makes it a core point; the second is that of the `min_samples`-th other rank.
struct Reaches(Vec<[f64; 2]>);

impl Reaches {
    fn of(space: &Space, min_samples: usize) -> Self {
        let tree = space.tree();
        let reach = |point| tree.kth_squared_distances(point, min_samples as f64);
        Self(tree.points.iter().map(reach).collect())
    }

    fn k_distances(&self, space: &Space) -> Vec<f64> {
        let weights = space.tree().index.iter().map(|&i| space.weights()[i as usize]);
        let mut distances: Vec<f64> = self
            .0
            .iter()
            .zip(weights)
            .flat_map(|(reach, weight)| std::iter::repeat_n(reach[1].sqrt(), weight as usize))
            .collect();
        distances.sort_unstable_by(f64::total_cmp);
        distances
    }
}

/// The knee of ascending distances: where the curve lies farthest below the straight line from its first to its last value
/// (first such place; 0 without distances).
pub fn knee(distances: &[f64]) -> f64 {
    let (Some(&first), Some(&last)) = (distances.first(), distances.last()) else {
        return 0.0;
    };
    let span = (last - first).max(1e-12);
    let steps = distances.len().saturating_sub(1).max(1) as f64;
    let mut deepest = (f64::NEG_INFINITY, first);
    for (i, &distance) in distances.iter().enumerate() {
        let depth = i as f64 / steps - (distance - first) / span;
        if depth > deepest.0 {
            deepest = (depth, distance);
        }
    }
    deepest.1
}

/// The label of each rank: a cluster, or [`NOISE`].
pub fn labels(space: &Space, eps: f64, min_samples: usize) -> Vec<i32> {
    let of_point = Growth::new(space.tree()).grow_to(eps, &Reaches::of(space, min_samples));
    space.point_of().iter().map(|&point| of_point[point as usize]).collect()
}

/// Clusters while they grow; places are positions in the tree's order.
///
/// A larger eps keeps every core point and every join of a smaller one, so the grid is run in ascending order on one state.
struct Growth<'a> {
    tree: &'a KdTree,
    core: Vec<bool>,
    reach: f64,
    parent: Vec<u32>,
    /// First core place of each node, `u32::MAX` without one.
    first_core: Vec<u32>,
    /// Nodes whose core points are known to be of one cluster.
    joined: Vec<bool>,
}

impl<'a> Growth<'a> {
    fn new(tree: &'a KdTree) -> Self {
        Self {
            parent: (0..tree.points.len() as u32).collect(),
            joined: vec![false; tree.nodes.len()],
            core: vec![false; tree.points.len()],
            reach: 0.0,
            first_core: vec![u32::MAX; tree.nodes.len()],
            tree,
        }
    }

    /// The labels by point index for `eps`, which is not below that of an earlier call.
    fn grow_to(&mut self, eps: f64, reaches: &Reaches) -> Vec<i32> {
        self.reach = eps * eps;
        for (core, needed) in self.core.iter_mut().zip(&reaches.0) {
            *core = needed[0] <= self.reach;
        }
        self.prepare_nodes();
        self.join_all();
        self.labels()
    }

    /// Joins the core points of each node no wider than eps, and finds the nodes that are of one cluster already.
    fn prepare_nodes(&mut self) {
        let tree = self.tree;
        // Children come after their parent.
        for (at, node) in tree.nodes.iter().enumerate().rev() {
            let narrow = node.diameter() <= self.reach;
            let mut first = u32::MAX;
            let mut joined = true;
            if node.right == 0 {
                for place in node.start..node.end {
                    if self.core[place as usize] {
                        joined &= self.is_joined(&mut first, place, narrow);
                    }
                }
            } else {
                for child in [at + 1, node.right as usize] {
                    let place = self.first_core[child];
                    if place != u32::MAX {
                        joined &= self.is_joined(&mut first, place, narrow) && self.joined[child];
                    }
                }
            }
            self.first_core[at] = first;
            self.joined[at] = joined;
        }
    }

    /// Whether `place` is of the cluster of `first` (which becomes `place` when there is none); makes it so for `narrow`.
    fn is_joined(&mut self, first: &mut u32, place: u32, narrow: bool) -> bool {
        if *first == u32::MAX {
            *first = place;
        } else if narrow {
            self.union(*first, place);
        }
        self.root(*first) == self.root(place)
    }

    fn root(&mut self, mut place: u32) -> u32 {
        while self.parent[place as usize] != place {
            let above = self.parent[self.parent[place as usize] as usize];
            self.parent[place as usize] = above;
            place = above;
        }
        place
    }

    fn union(&mut self, a: u32, b: u32) {
        let (a, b) = (self.root(a), self.root(b));
        self.parent[a.max(b) as usize] = a.min(b);
    }

    fn join_all(&mut self) {
        let tree = self.tree;
        let mut stack = Vec::new();
        for place in 0..tree.points.len() as u32 {
            if !self.core[place as usize] {
                continue;
            }
            let centre = &tree.points[place as usize];
            stack.push(0u32);
            while let Some(at) = stack.pop() {
                let node = &tree.nodes[at as usize];
                let first = self.first_core[at as usize];
                // Pairs are met from their lower place.
                if node.end <= place || first == u32::MAX || node.nearest(centre) > self.reach {
                    continue;
                }
                let whole = self.joined[at as usize];
                if whole && self.root(first) == self.root(place) {
                    continue;
                }
                if node.farthest(centre) <= self.reach {
                    if whole {
                        self.union(place, first);
                    } else {
                        for other in node.start..node.end {
                            if self.core[other as usize] {
                                self.union(place, other);
                            }
                        }
                        self.joined[at as usize] = true;
                    }
                } else if node.right != 0 {
                    stack.extend([node.right, at + 1]);
                } else {
                    for other in node.start.max(place + 1)..node.end {
                        if self.core[other as usize]
                            && squared_distance(&tree.points[other as usize], centre) <= self.reach
                        {
                            self.union(place, other);
                        }
                    }
                }
            }
        }
    }

    /// Labels by point index; clusters are numbered by their first core point.
    fn labels(&mut self) -> Vec<i32> {
        let tree = self.tree;
        let n = tree.points.len();
        let mut place_of = vec![0u32; n];
        for (place, &index) in tree.index.iter().enumerate() {
            place_of[index as usize] = place as u32;
        }
        let mut cluster_of_root = vec![NOISE; n];
        let mut labels = vec![NOISE; n];
        let mut count = 0;
        for index in 0..n {
            let place = place_of[index];
            if self.core[place as usize] {
                let root = self.root(place) as usize;
                if cluster_of_root[root] == NOISE {
                    cluster_of_root[root] = count;
                    count += 1;
                }
                labels[index] = cluster_of_root[root];
            }
        }
        for index in 0..n {
            let place = place_of[index] as usize;
            if !self.core[place] {
                labels[index] = self.border(&tree.points[place], &cluster_of_root);
            }
        }
        labels
    }

    /// The lowest cluster with a core point within reach.
    fn border(&mut self, centre: &Row, cluster_of_root: &[i32]) -> i32 {
        let tree = self.tree;
        let mut lowest = i32::MAX;
        let mut stack = vec![0u32];
        while let Some(at) = stack.pop() {
            let node = &tree.nodes[at as usize];
            if self.first_core[at as usize] == u32::MAX || node.nearest(centre) > self.reach {
                continue;
            }
            if node.right != 0 {
                stack.extend([node.right, at + 1]);
                continue;
            }
            for other in node.start..node.end {
                if self.core[other as usize] && squared_distance(&tree.points[other as usize], centre) <= self.reach {
                    let root = self.root(other) as usize;
                    lowest = lowest.min(cluster_of_root[root]);
                }
            }
        }
        if lowest == i32::MAX { NOISE } else { lowest }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::algos::tests::timer_rows;
    use proptest::prelude::*;

    /// The definition: clusters are the components of the core rows; ranks in lexicographic order of their rows.
    fn by_definition(rows: &[Row], eps: f64, min_samples: usize) -> Vec<i32> {
        let n = rows.len();
        let near = |i: usize, j: usize| squared_distance(&rows[i], &rows[j]) <= eps * eps;
        let core: Vec<bool> = (0..n)
            .map(|i| (0..n).filter(|&j| near(i, j)).count() >= min_samples)
            .collect();
        let mut labels = vec![NOISE; n];
        let mut count = 0;
        for seed in 0..n {
            if !core[seed] || labels[seed] != NOISE {
                continue;
            }
            let mut stack = vec![seed];
            labels[seed] = count;
            while let Some(i) = stack.pop() {
                for j in 0..n {
                    if near(i, j) && labels[j] == NOISE {
                        labels[j] = count;
                        if core[j] {
                            stack.push(j);
                        }
                    }
                }
            }
            count += 1;
        }
        labels
    }

    proptest! {
        #[test]
        fn labels_equal_the_definition(
            mut rows in prop::collection::vec(prop::array::uniform4((-4i32..4).prop_map(|v| f64::from(v) * 0.5)), 1..60),
            eps in 0.1f64..3.0,
            min_samples in 1usize..6,
        ) {
            rows.sort_by(super::super::distance::compare);
            let rows: Vec<Row> = rows.iter().map(|row| row.map(|value| value + 0.0)).collect();
            let space = Space::new(rows.clone());
            prop_assert_eq!(labels(&space, eps, min_samples), by_definition(&rows, eps, min_samples));
        }

        #[test]
        fn k_distances_equal_brute_force(
            rows in prop::collection::vec(prop::array::uniform4((-4i32..4).prop_map(f64::from)), 2..40), k in 1usize..5,
        ) {
            let k = k.min(rows.len() - 1);
            let mut direct: Vec<f64> = rows
                .iter()
                .map(|row| {
                    let mut all: Vec<f64> = rows.iter().map(|other| squared_distance(row, other)).collect();
                    all.sort_by(f64::total_cmp);
                    all[k].sqrt()
                })
                .collect();
            direct.sort_by(f64::total_cmp);
            prop_assert_eq!(k_distances(&Space::new(rows), k), direct);
        }
    }

    #[test]
    fn the_knee_is_where_the_curve_bends() {
        assert_eq!(knee(&[]), 0.0);
        assert_eq!(knee(&[2.0]), 2.0);
        assert_eq!(knee(&[1.0, 1.1, 1.2, 1.3, 9.0]), 1.3);
        assert_eq!(knee(&[1.0, 1.0, 1.0]), 1.0);
    }

    #[test]
    fn labels_equal_linfas() {
        use linfa::traits::Transformer;
        let mut rows = timer_rows(300, 1, None);
        rows.sort_by(super::super::distance::compare);
        let flat: Vec<f64> = rows.iter().flatten().copied().collect();
        let records = ndarray::Array2::from_shape_vec((300, 4), flat).expect("300 rows of 4");
        for eps in [0.8, 1.5, 3.0] {
            let theirs = linfa_clustering::Dbscan::params(4)
                .tolerance(eps)
                .transform(&records)
                .expect("valid parameters");
            let theirs: Vec<i32> = theirs
                .iter()
                .map(|label| label.map_or(NOISE, |label| label as i32))
                .collect();
            assert_eq!(labels(&Space::new(rows.clone()), eps, 4), theirs, "{eps}");
        }
    }
}
