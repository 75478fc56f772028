//! Lloyd's iteration, without the work that cannot change a label.
//!
//! A point keeps its label while twice the way that the centres have gone since it was last looked at is shorter than
//! the difference of its distances to its two nearest centres (the bound of Hamerly 2010, summed over iterations). Points are kept in blocks
//! with their sums by cluster; a block is looked at when a point of it may change, and summed anew when one did.
//! The labels are those of the plain iteration with means summed by blocks: nothing is subtracted from a
//! sum, so far values that leave a cluster take no digits with them. Late iterations move few points and cost `O(n / 64)`.

use super::Row;
use super::distance::squared_distance;

/// The outcome of Lloyd's iteration.
#[derive(Debug, Clone, PartialEq)]
pub struct Partition {
    /// The cluster of each point, below k.
    pub labels: Vec<u32>,
    /// Weighted sum of squared distances to the cluster means.
    pub inertia: f64,
}

const MAX_ITERATIONS: usize = 300;
const BLOCK: usize = 64;
/// Rounding allowed for in a bound, as a part of the lengths it comes from.
const ROUNDING: f64 = 1e-12;

/// The sum of the weighted points of a cluster and their weight.
type Sum = (Row, f64);

struct Lloyd<'a> {
    points: &'a [Row],
    weights: &'a [f64],
    labels: Vec<u32>,
    /// How far the centres may have gone, in all, before each point must be looked at again.
    keeps: Vec<f64>,
    /// The smallest of a block's `keeps`.
    block_keeps: Vec<f64>,
    /// k sums a block.
    block_sums: Vec<Sum>,
    clusters: usize,
    /// Twice the longest step of a centre, summed over the iterations.
    gone: f64,
}

/// Iterates from `centres` until no label changes, at most [`MAX_ITERATIONS`] times.
pub(super) fn run(points: &[Row], weights: &[f64], mut centres: Vec<Row>) -> Partition {
    let blocks = points.len().div_ceil(BLOCK);
    let mut state = Lloyd {
        points,
        weights,
        labels: vec![0; points.len()],
        keeps: vec![f64::NEG_INFINITY; points.len()],
        block_keeps: vec![f64::NEG_INFINITY; blocks],
        block_sums: vec![([0.0; 4], 0.0); blocks * centres.len()],
        clusters: centres.len(),
        gone: 0.0,
    };
    let mut first = true;
    for _ in 0..MAX_ITERATIONS {
        let changed = state.assign(&centres, first);
        if !changed {
            break;
        }
        first = false;
        let next = state.means(&centres);
        let step = centres.iter().zip(&next).map(|(a, b)| squared_distance(a, b));
        state.gone += 2.0 * step.fold(0.0, f64::max).sqrt();
        centres = next;
    }
    state.finish(&centres)
}

impl Lloyd<'_> {
    /// Gives each point the label of its nearest centre (the earlier on a tie); whether any changed.
    fn assign(&mut self, centres: &[Row], first: bool) -> bool {
        let mut any = false;
        for block in 0..self.block_keeps.len() {
            if self.block_keeps[block] > self.gone {
                continue;
            }
            let members = block * BLOCK..self.points.len().min((block + 1) * BLOCK);
            let mut changed = 0;
            let mut soonest = f64::INFINITY;
            for i in members.clone() {
                if self.keeps[i] <= self.gone {
                    let (nearest, keeps) = look(&self.points[i], centres, self.gone);
                    changed |= self.labels[i] ^ nearest;
                    self.labels[i] = nearest;
                    self.keeps[i] = keeps;
                }
                soonest = soonest.min(self.keeps[i]);
            }
            self.block_keeps[block] = soonest;
            if first || changed != 0 {
                any = true;
                let sums = &mut self.block_sums[block * self.clusters..(block + 1) * self.clusters];
                sums.fill(([0.0; 4], 0.0));
                for i in members {
                    let (sum, total) = &mut sums[self.labels[i] as usize];
                    *total += self.weights[i];
                    for axis in 0..4 {
                        sum[axis] += self.weights[i] * self.points[i][axis];
                    }
                }
            }
        }
        any
    }

    /// The cluster means; a cluster that lost all its points moves to the point farthest from its own centre.
    fn means(&self, centres: &[Row]) -> Vec<Row> {
        let mut sums = vec![([0.0; 4], 0.0); self.clusters];
        for block in self.block_sums.chunks_exact(self.clusters) {
            for ((sum, total), (part, weight)) in sums.iter_mut().zip(block) {
                *total += weight;
                for axis in 0..4 {
                    sum[axis] += part[axis];
                }
            }
        }
        let mut taken = Vec::new();
        sums.iter()
            .map(|&(sum, total)| {
                if total > 0.0 {
                    return sum.map(|value| value / total);
                }
                let mut farthest = (-1.0, 0);
                for (i, (point, &label)) in self.points.iter().zip(&self.labels).enumerate() {
                    let distance = squared_distance(point, &centres[label as usize]);
                    if distance > farthest.0 && !taken.contains(&i) {
                        farthest = (distance, i);
                    }
                }
                taken.push(farthest.1);
                self.points[farthest.1]
            })
            .collect()
    }

    fn finish(self, centres: &[Row]) -> Partition {
        let centres = self.means(centres);
        let members = self.points.iter().zip(self.weights).zip(&self.labels);
        let inertia = members
            .map(|((point, weight), &label)| weight * squared_distance(point, &centres[label as usize]))
            .sum();
        Partition {
            labels: self.labels,
            inertia,
        }
    }
}

/// The nearest centre, and how far the centres may have gone in all before it may be another.
#[inline]
fn look(point: &Row, centres: &[Row], gone: f64) -> (u32, f64) {
    let (mut shortest, mut second, mut nearest) = (f64::INFINITY, f64::INFINITY, 0);
    for (i, centre) in centres.iter().enumerate() {
        let distance = squared_distance(point, centre);
        // Selects, not branches: near a boundary the outcome is a coin toss.
        let closer = distance < shortest;
        second = if closer { shortest } else { second.min(distance) };
        nearest = if closer { i as u32 } else { nearest };
        shortest = if closer { distance } else { shortest };
    }
    let (shortest, second) = (shortest.sqrt(), second.sqrt());
    let margin = second - shortest - ROUNDING * (shortest + second + gone);
    // Without a margin, or with a single centre (infinite less infinite), it is looked at each time.
    (nearest, if margin > 0.0 { gone + margin } else { f64::NEG_INFINITY })
}
