//! A kd-tree over weighted points whose nodes hold their weight and sum, so that a node wholly inside a ball
//! counts at once (Moore 1999, the "mrkd-tree"). It carries DBSCAN, the k-distances and mean shift.
//!
//! Build `O(n log n)`, memory `O(n)`; splits are medians of the widest side, so depth is logarithmic whatever
//! the data. Comparisons are on squared distances, `<=` inclusive, with each square summed in column order: a node's
//! bounds round the same way as its points do, so the short cuts never change an answer.

use super::Row;
use super::distance::squared_distance;

const LEAF: usize = 12;

/// As `f64::max` for finite values, in one instruction.
#[inline]
fn larger(a: f64, b: f64) -> f64 {
    if a > b { a } else { b }
}

/// A box of points; the left child follows its parent, `right` is 0 for a leaf.
#[derive(Debug, Clone)]
pub(crate) struct Node {
    low: Row,
    high: Row,
    sum: Row,
    weight: f64,
    pub(crate) start: u32,
    pub(crate) end: u32,
    pub(crate) right: u32,
}

impl Node {
    /// Squared distance from `centre` to the nearest point of the box.
    #[inline]
    pub(crate) fn nearest(&self, centre: &Row) -> f64 {
        let mut total = 0.0;
        for axis in 0..4 {
            let gap = larger(
                larger(self.low[axis] - centre[axis], centre[axis] - self.high[axis]),
                0.0,
            );
            total += gap * gap;
        }
        total
    }

    /// Squared distance from `centre` to the farthest corner of the box.
    #[inline]
    pub(crate) fn farthest(&self, centre: &Row) -> f64 {
        let mut total = 0.0;
        for axis in 0..4 {
            let gap = larger(self.high[axis] - centre[axis], centre[axis] - self.low[axis]);
            total += gap * gap;
        }
        total
    }

    /// Squared length of the diagonal: no two points of the box are farther apart.
    pub(crate) fn diameter(&self) -> f64 {
        squared_distance(&self.high, &self.low)
    }
}

/// The tree; see the module.
#[derive(Debug, Clone)]
pub struct KdTree {
    pub(crate) nodes: Vec<Node>,
    /// Points in tree order, and the index each had.
    pub(crate) points: Vec<Row>,
    pub(crate) index: Vec<u32>,
    weights: Vec<f64>,
}

impl KdTree {
    /// Builds the tree of finite `points` with their weights.
    pub fn new(points: &[Row], weights: &[f64]) -> Self {
        let mut index: Vec<u32> = (0..points.len() as u32).collect();
        let mut nodes = Vec::with_capacity(points.len() / LEAF * 4 + 1);
        if !points.is_empty() {
            grow(points, weights, &mut index, 0, &mut nodes);
        }
        Self {
            nodes,
            points: index.iter().map(|&i| points[i as usize]).collect(),
            weights: index.iter().map(|&i| weights[i as usize]).collect(),
            index,
        }
    }

    /// The weight within the ball (squared radius, inclusive); counting stops once it reaches `enough`.
    pub fn weight_within(&self, centre: &Row, radius_squared: f64, enough: f64) -> f64 {
        let mut weight = 0.0;
        self.visit(centre, radius_squared, |part| {
            weight += match part {
                Inside::Whole(node) => node.weight,
                Inside::Point(point) => self.weights[point],
            };
            weight < enough
        });
        weight
    }

    /// The weight within the ball (squared radius, inclusive) and the weighted sum of its points.
    pub fn sum_within(&self, centre: &Row, radius_squared: f64) -> (f64, Row) {
        let (mut weight, mut sum) = (0.0, [0.0; 4]);
        let mut stack = [0u32; 64]; // depth is at most log2(2^32) + 1
        let mut height = usize::from(!self.nodes.is_empty());
        while height > 0 {
            height -= 1;
            let at = stack[height];
            let node = &self.nodes[at as usize];
            if node.nearest(centre) > radius_squared {
                continue;
            }
            if node.farthest(centre) <= radius_squared {
                weight += node.weight;
                for axis in 0..4 {
                    sum[axis] += node.sum[axis];
                }
            } else if node.right != 0 {
                stack[height] = node.right;
                stack[height + 1] = at + 1;
                height += 2;
            } else {
                let members = node.start as usize..node.end as usize;
                for (point, &share) in self.points[members.clone()].iter().zip(&self.weights[members]) {
                    // A weight of 0, not a branch: whether a point of a leaf on the surface is inside is a coin toss.
                    let inside = squared_distance(point, centre) <= radius_squared;
                    let share = if inside { share } else { 0.0 };
                    weight += share;
                    for axis in 0..4 {
                        sum[axis] += share * point[axis];
                    }
                }
            }
        }
        (weight, sum)
    }

    /// The smallest squared radii around `centre` that hold a weight of `k` or more and of `k + 1` or more (`k` >= 1, small).
    /// Infinite when the whole tree weighs less.
    pub fn kth_squared_distances(&self, centre: &Row, k: f64) -> [f64; 2] {
        // The nearest points so far, ascending, as many as it takes to weigh k + 1.
        let mut near: Vec<(f64, f64)> = Vec::with_capacity(k as usize + 2);
        let mut limit = f64::INFINITY;
        let mut stack = [(0u32, 0.0); 64]; // depth is at most log2(2^32) + 1
        let mut height = usize::from(!self.nodes.is_empty());
        while height > 0 {
            height -= 1;
            let (at, nearest) = stack[height];
            if nearest >= limit {
                continue;
            }
            let node = &self.nodes[at as usize];
            if node.right != 0 {
                let left = (at + 1, self.nodes[at as usize + 1].nearest(centre));
                let right = (node.right, self.nodes[node.right as usize].nearest(centre));
                let (near, far) = if left.1 <= right.1 {
                    (left, right)
                } else {
                    (right, left)
                };
                stack[height] = far;
                stack[height + 1] = near;
                height += 2;
                continue;
            }
            for point in node.start as usize..node.end as usize {
                let distance = squared_distance(&self.points[point], centre);
                if distance >= limit {
                    continue;
                }
                let position = near.iter().take_while(|(other, _)| *other <= distance).count();
                near.insert(position, (distance, self.weights[point]));
                let mut held = 0.0;
                for kept in 0..near.len() {
                    held += near[kept].1;
                    if held > k {
                        limit = near[kept].0;
                        near.truncate(kept + 1);
                        break;
                    }
                }
            }
        }
        let mut held = 0.0;
        let kth = near.iter().find(|(_, weight)| {
            held += weight;
            held >= k
        });
        [kth.map_or(f64::INFINITY, |kth| kth.0), limit]
    }

    /// The index of the nearest point; the lowest index on a tie. 0 for an empty tree.
    pub fn nearest(&self, centre: &Row) -> u32 {
        let mut best = (f64::INFINITY, 0);
        let mut stack = vec![0u32];
        while let Some(at) = stack.pop() {
            let Some(node) = self.nodes.get(at as usize) else {
                break;
            };
            if node.nearest(centre) > best.0 {
                continue;
            }
            if node.right != 0 {
                let (left, right) = (at + 1, node.right);
                let left_first =
                    self.nodes[left as usize].nearest(centre) <= self.nodes[right as usize].nearest(centre);
                stack.extend(if left_first { [right, left] } else { [left, right] });
                continue;
            }
            for point in node.start as usize..node.end as usize {
                let distance = squared_distance(&self.points[point], centre);
                let index = self.index[point];
                if distance < best.0 || (distance == best.0 && index < best.1) {
                    best = (distance, index);
                }
            }
        }
        best.1
    }

    #[inline]
    fn visit<'a>(&'a self, centre: &Row, radius_squared: f64, mut take: impl FnMut(Inside<'a>) -> bool) {
        if self.nodes.is_empty() {
            return;
        }
        let mut stack = [0u32; 64]; // depth is at most log2(2^32) + 1
        let mut height = 1;
        while height > 0 {
            height -= 1;
            let at = stack[height];
            let node = &self.nodes[at as usize];
            if node.nearest(centre) > radius_squared {
                continue;
            }
            if node.farthest(centre) <= radius_squared {
                if !take(Inside::Whole(node)) {
                    return;
                }
            } else if node.right != 0 {
                stack[height] = node.right;
                stack[height + 1] = at + 1;
                height += 2;
            } else {
                for point in node.start as usize..node.end as usize {
                    if squared_distance(&self.points[point], centre) <= radius_squared && !take(Inside::Point(point)) {
                        return;
                    }
                }
            }
        }
    }
}

enum Inside<'a> {
    Whole(&'a Node),
    Point(usize),
}

fn grow(points: &[Row], weights: &[f64], index: &mut [u32], start: usize, nodes: &mut Vec<Node>) {
    let (mut low, mut high) = ([f64::INFINITY; 4], [f64::NEG_INFINITY; 4]);
    let (mut sum, mut weight) = ([0.0; 4], 0.0);
    for &i in index.iter() {
        let (point, share) = (&points[i as usize], weights[i as usize]);
        weight += share;
        for axis in 0..4 {
            low[axis] = low[axis].min(point[axis]);
            high[axis] = high[axis].max(point[axis]);
            sum[axis] += share * point[axis];
        }
    }
    let this = nodes.len();
    nodes.push(Node {
        low,
        high,
        sum,
        weight,
        start: start as u32,
        end: (start + index.len()) as u32,
        right: 0,
    });
    if index.len() <= LEAF {
        return;
    }
    let axis = (0..4).fold(0, |widest, axis| {
        if high[axis] - low[axis] > high[widest] - low[widest] {
            axis
        } else {
            widest
        }
    });
    let middle = index.len() / 2;
    index.select_nth_unstable_by(middle, |&a, &b| {
        points[a as usize][axis]
            .total_cmp(&points[b as usize][axis])
            .then(a.cmp(&b))
    });
    let (left, right) = index.split_at_mut(middle);
    grow(points, weights, left, start, nodes);
    nodes[this].right = nodes.len() as u32;
    grow(points, weights, right, start + middle, nodes);
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn grid_points() -> impl Strategy<Value = Vec<(Row, f64)>> {
        let row = prop::array::uniform4((-6i32..6).prop_map(|v| f64::from(v) * 0.5));
        prop::collection::vec((row, (1u8..4).prop_map(f64::from)), 1..80)
    }

    proptest! {
        #[test]
        fn queries_equal_brute_force(set in grid_points(), radius in 0.0f64..6.0, k in 1u8..6) {
            let points: Vec<Row> = set.iter().map(|p| p.0).collect();
            let weights: Vec<f64> = set.iter().map(|p| p.1).collect();
            let tree = KdTree::new(&points, &weights);
            let limit = radius * radius;
            for centre in &points {
                let inside: Vec<usize> = (0..points.len())
                    .filter(|&i| squared_distance(&points[i], centre) <= limit)
                    .collect();
                let weight: f64 = inside.iter().map(|&i| weights[i]).sum();
                let (found, sum) = tree.sum_within(centre, limit);
                prop_assert_eq!(found, weight);
                for axis in 0..4 {
                    let direct: f64 = inside.iter().map(|&i| weights[i] * points[i][axis]).sum();
                    prop_assert!((sum[axis] - direct).abs() < 1e-9);
                }
                prop_assert_eq!(tree.weight_within(centre, limit, f64::INFINITY), weight);
                prop_assert!(tree.weight_within(centre, limit, 2.0) >= weight.min(2.0));
                let nearest = (0..points.len())
                    .min_by(|&a, &b| squared_distance(&points[a], centre).total_cmp(&squared_distance(&points[b], centre)))
                    .unwrap_or(0);
                prop_assert_eq!(tree.nearest(centre) as usize, nearest);
                let mut all: Vec<f64> = (0..points.len())
                    .flat_map(|i| vec![squared_distance(&points[i], centre); weights[i] as usize])
                    .collect();
                all.sort_by(f64::total_cmp);
                let kth = |k: u8| all.get(usize::from(k) - 1).copied().unwrap_or(f64::INFINITY);
                prop_assert_eq!(tree.kth_squared_distances(centre, f64::from(k)), [kth(k), kth(k + 1)]);
            }
        }
    }

    #[test]
    fn an_empty_tree_holds_nothing() {
        let tree = KdTree::new(&[], &[]);
        assert_eq!(tree.weight_within(&[0.0; 4], 1.0, 1.0), 0.0);
        assert_eq!(tree.kth_squared_distances(&[0.0; 4], 1.0), [f64::INFINITY; 2]);
    }
}
