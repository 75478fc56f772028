//! The last two clusters of an agglomerative tree over weighted points.
//!
//! Ward, complete and average run the nearest-neighbour chain (Murtagh 1983; Müllner 2011) on a full matrix, stopping
//! when two clusters are left: for these methods the last merge is the tree's root. On ties a cluster prefers the
//! one before it in the chain, then the lowest index, as SciPy does. Single linkage is the minimum spanning tree
//! (Prim) without its longest edge, the last such edge on a tie.
//!
//! Time `O(n^2)`; memory `8 n^2` bytes for the chain, `O(n)` for single. Fewer than two points: all in cluster 0.
//!
//! kodama 0.3 gives the same cuts and is the oracle in the tests, but knows no weights (neither merged equal rows nor
//! cells) and builds the whole dendrogram of every combination.

use super::Row;

/// How the distance of two clusters follows from their points.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Method {
    /// Growth of the within-cluster variance.
    Ward,
    /// The farthest pair.
    Complete,
    /// The mean over all pairs.
    Average,
    /// The nearest pair.
    Single,
}

impl Method {
    /// scikit-learn's word for it.
    pub fn name(self) -> &'static str {
        match self {
            Self::Ward => "ward",
            Self::Complete => "complete",
            Self::Average => "average",
            Self::Single => "single",
        }
    }
}

/// How the distance of two points is measured.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Metric {
    /// Root of the sum of squares.
    Euclidean,
    /// Sum of the absolute differences.
    Manhattan,
}

impl Metric {
    /// scikit-learn's word for it.
    pub fn name(self) -> &'static str {
        match self {
            Self::Euclidean => "euclidean",
            Self::Manhattan => "manhattan",
        }
    }
}

/// Labels 0 and 1 of the last two clusters; the first point is in cluster 0.
pub fn last_two(points: &[Row], weights: &[f64], method: Method, metric: Metric) -> Vec<u32> {
    let mut labels = match method {
        Method::Single => cut(&spanning_tree(points, metric)),
        _ => chain(points, weights, method, metric),
    };
    if labels.first() == Some(&1) {
        labels.iter_mut().for_each(|label| *label ^= 1);
    }
    labels
}

/// The columns of the rows, for loops over one row against all.
fn columns(points: &[Row]) -> [Vec<f64>; 4] {
    [0, 1, 2, 3].map(|axis| points.iter().map(|point| point[axis]).collect())
}

/// The distance of `centre` to every point from `start` on (squared for [`Metric::Euclidean`]).
fn distances_from(columns: &[Vec<f64>; 4], centre: &Row, metric: Metric, start: usize, out: &mut [f64]) {
    let end = start + out.len();
    let [a, b, c, d] = columns.each_ref().map(|column| &column[start..end]);
    match metric {
        Metric::Euclidean => {
            for i in 0..out.len() {
                let gap = [a[i] - centre[0], b[i] - centre[1], c[i] - centre[2], d[i] - centre[3]];
                out[i] = gap[0] * gap[0] + gap[1] * gap[1] + gap[2] * gap[2] + gap[3] * gap[3];
            }
        }
        Metric::Manhattan => {
            for i in 0..out.len() {
                out[i] = (a[i] - centre[0]).abs()
                    + (b[i] - centre[1]).abs()
                    + (c[i] - centre[2]).abs()
                    + (d[i] - centre[3]).abs();
            }
        }
    }
}

/// An edge of a minimum spanning tree: the point it reaches, from where, its length (squared for Euclidean).
pub(crate) struct Edge {
    from: u32,
    to: u32,
    pub(crate) length: f64,
}

/// Prim's tree from point 0, edges in the order of their discovery.
pub(crate) fn spanning_tree(points: &[Row], metric: Metric) -> Vec<Edge> {
    let n = points.len();
    // The points outside the tree, kept dense so that the scans stay contiguous.
    let mut outside = columns(points);
    let mut index: Vec<u32> = (0..n as u32).collect();
    let mut nearest = vec![f64::INFINITY; n];
    let mut from = vec![0u32; n];
    let mut row = vec![0.0; n];
    let mut edges = Vec::with_capacity(n.saturating_sub(1));
    let mut next = 0;
    while index.len() > 1 {
        let centre_index = index.remove(next);
        nearest.remove(next);
        from.remove(next);
        outside.iter_mut().for_each(|column| {
            column.remove(next);
        });
        let left = index.len();
        distances_from(&outside, &points[centre_index as usize], metric, 0, &mut row[..left]);
        for i in 0..left {
            if row[i] < nearest[i] {
                nearest[i] = row[i];
                from[i] = centre_index;
            }
        }
        next = first_smallest(&nearest[..left]);
        edges.push(Edge {
            from: from[next],
            to: index[next],
            length: nearest[next],
        });
    }
    edges
}

/// The two sides of the tree without its longest edge (the last on a tie).
fn cut(edges: &[Edge]) -> Vec<u32> {
    let mut labels = vec![0; edges.len() + 1];
    let longest = edges
        .iter()
        .enumerate()
        .fold((f64::NEG_INFINITY, 0), |longest, (i, edge)| {
            if edge.length >= longest.0 { (edge.length, i) } else { longest }
        })
        .1;
    // Prim's edges always start inside the tree, so a label is known before it is passed on.
    for (i, edge) in edges.iter().enumerate() {
        labels[edge.to as usize] = if i == longest { 1 } else { labels[edge.from as usize] };
    }
    labels
}

fn first_smallest(values: &[f64]) -> usize {
    let smallest = smallest(values.iter().copied());
    values.iter().position(|&value| value == smallest).unwrap_or(0)
}

/// The minimum over independent lanes, which the compiler turns into vector instructions.
#[inline]
fn smallest(values: impl ExactSizeIterator<Item = f64>) -> f64 {
    let mut lanes = [f64::INFINITY; 8];
    for (i, value) in values.enumerate() {
        let lane = &mut lanes[i % 8];
        *lane = if value < *lane { value } else { *lane };
    }
    lanes.iter().copied().fold(f64::INFINITY, f64::min)
}

fn chain(points: &[Row], weights: &[f64], method: Method, metric: Metric) -> Vec<u32> {
    let n = points.len();
    let mut matrix = full_matrix(points, weights, method, metric);
    let mut size = weights.to_vec();
    // Added to a row before its minimum is taken: infinite for clusters that are gone.
    let mut gone = vec![0.0; n];
    let mut parent: Vec<u32> = (0..n as u32).collect();
    let mut links: Vec<usize> = Vec::new();
    let mut left = n;
    let mut first_alive = 0;
    while left > 2 {
        if links.is_empty() {
            while gone[first_alive] > 0.0 {
                first_alive += 1;
            }
            links.push(first_alive);
        }
        let (x, y) = loop {
            let x = links[links.len() - 1];
            let row = &matrix[x * n..(x + 1) * n];
            let closest = nearest_alive(row, &gone);
            if links.len() > 1 {
                let before = links[links.len() - 2];
                if row[before] <= closest {
                    links.truncate(links.len() - 2);
                    break (x.min(before), x.max(before));
                }
            }
            let y = (0..n).find(|&i| row[i] + gone[i] == closest).unwrap_or(x);
            links.push(y);
        };
        merge(&mut matrix, &size, x, y, method);
        size[y] += size[x];
        gone[x] = f64::INFINITY;
        parent[x] = y as u32;
        left -= 1;
    }
    // A merged cluster lives on under the higher index, so parents are resolved from the top down.
    let mut root = parent.clone();
    for i in (0..n).rev() {
        root[i] = root[parent[i] as usize];
    }
    let zero = root.first().copied();
    root.iter().map(|&root| u32::from(Some(root) != zero)).collect()
}

fn nearest_alive(row: &[f64], gone: &[f64]) -> f64 {
    let mut lanes = [f64::INFINITY; 4];
    let (mut values, mut penalties) = (row.chunks_exact(4), gone.chunks_exact(4));
    for (value, penalty) in values.by_ref().zip(penalties.by_ref()) {
        for lane in 0..4 {
            let distance = value[lane] + penalty[lane];
            lanes[lane] = if distance < lanes[lane] { distance } else { lanes[lane] };
        }
    }
    let rest = values.remainder().iter().zip(penalties.remainder());
    rest.map(|(value, penalty)| value + penalty)
        .chain(lanes)
        .fold(f64::INFINITY, f64::min)
}

fn full_matrix(points: &[Row], weights: &[f64], method: Method, metric: Metric) -> Vec<f64> {
    let n = points.len();
    let columns = columns(points);
    let mut matrix = vec![0.0; n * n];
    for (i, row) in matrix.chunks_exact_mut(n.max(1)).enumerate() {
        distances_from(&columns, &points[i], metric, 0, row);
        match method {
            // Squared distances throughout, so that equal and near points lose no digits to roots.
            Method::Ward => {
                for (value, &weight) in row.iter_mut().zip(weights) {
                    *value *= weight * weights[i] / (weight + weights[i]);
                }
            }
            // The largest pair is the same pair squared or not; the mean is not.
            Method::Average if metric == Metric::Euclidean => {
                row.iter_mut().for_each(|value| *value = value.sqrt());
            }
            _ => {}
        }
        row[i] = f64::INFINITY;
    }
    matrix
}

/// Lance and Williams: the distances of `x` joined with `y`, written to `y`.
fn merge(matrix: &mut [f64], size: &[f64], x: usize, y: usize, method: Method) {
    let n = size.len();
    let (low, high) = matrix.split_at_mut(y * n);
    let (of_x, of_y) = (&low[x * n..(x + 1) * n], &mut high[..n]);
    let apart = of_y[x];
    let (size_x, size_y) = (size[x], size[y]);
    match method {
        Method::Complete | Method::Single => {
            for (y, x) in of_y.iter_mut().zip(of_x) {
                *y = if *x > *y { *x } else { *y };
            }
        }
        Method::Average => {
            let (part_x, part_y) = (size_x / (size_x + size_y), size_y / (size_x + size_y));
            for (y, x) in of_y.iter_mut().zip(of_x) {
                *y = part_x * x + part_y * *y;
            }
        }
        Method::Ward => {
            for ((y, x), other) in of_y.iter_mut().zip(of_x).zip(size) {
                *y = ((size_x + other) * x + (size_y + other) * *y - other * apart) / (size_x + size_y + other);
            }
        }
    }
    of_y[y] = f64::INFINITY;
    for i in 0..n {
        matrix[i * n + y] = matrix[y * n + i];
    }
}

/// Distance of two rows.
#[cfg(test)]
pub(crate) fn distance(a: &Row, b: &Row, metric: Metric) -> f64 {
    match metric {
        Metric::Euclidean => super::space::squared_distance(a, b).sqrt(),
        Metric::Manhattan => a.iter().zip(b).map(|(x, y)| (x - y).abs()).sum(),
    }
}
