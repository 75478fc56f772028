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

/// Room for the distance matrix, kept from one linkage to the next: fresh pages cost more than the linkage itself.
#[derive(Debug, Default)]
pub struct Scratch(Vec<f64>);

/// Labels 0 and 1 of the last two clusters; the first point is in cluster 0.
pub fn last_two(points: &[Row], weights: &[f64], method: Method, metric: Metric, scratch: &mut Scratch) -> Vec<u32> {
    if points.len() < 2 {
        return vec![0; points.len()];
    }
    let mut labels = match method {
        Method::Single => cut(&spanning_tree(points, metric)),
        _ => chain(points, weights, method, metric, scratch),
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

/// The distance of `centre` to every point (squared for [`Metric::Euclidean`]).
fn distances_from(columns: &[Vec<f64>; 4], centre: &Row, metric: Metric, out: &mut [f64]) {
    let [a, b, c, d] = columns.each_ref().map(|column| &column[..out.len()]);
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
        distances_from(&outside, &points[centre_index as usize], metric, &mut row[..left]);
        for ((distance, nearest), from) in row.iter().zip(&mut nearest).zip(&mut from) {
            *from = if distance < nearest { centre_index } else { *from };
            *nearest = if distance < nearest { *distance } else { *nearest };
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
            if edge.length >= longest.0 {
                (edge.length, i)
            } else {
                longest
            }
        })
        .1;
    // Prim's edges always start inside the tree, so a label is known before it is passed on.
    for (i, edge) in edges.iter().enumerate() {
        labels[edge.to as usize] = if i == longest { 1 } else { labels[edge.from as usize] };
    }
    labels
}

fn first_smallest(values: &[f64]) -> usize {
    // Independent lanes, which the compiler turns into vector instructions.
    let mut lanes = [f64::INFINITY; 8];
    let chunks = values.chunks_exact(8);
    let rest = chunks.remainder().iter().copied().fold(f64::INFINITY, f64::min);
    for chunk in chunks {
        for lane in 0..8 {
            lanes[lane] = if chunk[lane] < lanes[lane] {
                chunk[lane]
            } else {
                lanes[lane]
            };
        }
    }
    let smallest = lanes.iter().copied().fold(rest, f64::min);
    values.iter().position(|&value| value == smallest).unwrap_or(0)
}

/// The matrix of the clusters still apart, with the room of one row at most `points + PADDING` wide: a stride that is a
/// power of two would put a whole column into a few cache sets.
///
/// A merge writes its row only. Another row takes over what it missed when it is next read ([`Matrix::refresh`]):
/// most rows are read a few times, and by then most merged clusters have been merged again or are gone, so that few of
/// the `n^2 / 2` scattered writes of whole columns remain.
struct Matrix<'a> {
    values: &'a mut [f64],
    stride: usize,
    /// Slots in the order of their merges.
    log: Vec<u32>,
    /// For each slot the length of the log when it was last merged (0: never).
    merged: Vec<u32>,
    /// For each row the length of the log up to which it is true.
    written: Vec<u32>,
}

const PADDING: usize = 8;

impl Matrix<'_> {
    fn row(&self, i: usize, width: usize) -> &[f64] {
        &self.values[i * self.stride..i * self.stride + width]
    }

    /// Brings row `i` up to date.
    fn refresh(&mut self, i: usize, gone: &[f64]) {
        for place in self.written[i] as usize..self.log.len() {
            let slot = self.log[place] as usize;
            if self.merged[slot] as usize == place + 1 && gone[slot] == 0.0 {
                self.values[i * self.stride + slot] = self.values[slot * self.stride + i];
            }
        }
        self.written[i] = self.log.len() as u32;
    }

    /// Keeps the slots in `kept` (ascending), closing the gaps.
    fn compact(&mut self, kept: &[usize], gone: &[f64]) {
        let stride = kept.len() + PADDING;
        for (i, &slot) in kept.iter().enumerate() {
            for (j, &other) in kept.iter().enumerate() {
                // Targets never lie beyond sources: i <= slot, j <= other and the stride shrinks.
                self.values[i * stride + j] = self.values[slot * self.stride + other];
            }
        }
        self.stride = stride;
        // The log keeps the last merge of each slot that is left; `length[l]` is what remains of its first l entries.
        let mut log = Vec::new();
        let mut length = vec![0u32];
        for (place, &slot) in self.log.iter().enumerate() {
            if self.merged[slot as usize] as usize == place + 1 && gone[slot as usize] == 0.0 {
                log.push(kept.partition_point(|&other| other < slot as usize) as u32);
            }
            length.push(log.len() as u32);
        }
        self.log = log;
        for list in [&mut self.merged, &mut self.written] {
            *list = kept.iter().map(|&slot| length[list[slot] as usize]).collect();
        }
    }
}

/// The chain works on slots; a merged cluster keeps the higher slot and slots are compacted in order now and then.
fn chain(points: &[Row], weights: &[f64], method: Method, metric: Metric, scratch: &mut Scratch) -> Vec<u32> {
    let n = points.len();
    let mut matrix = full_matrix(points, weights, method, metric, &mut scratch.0);
    let mut size = weights.to_vec();
    let mut point_of_slot: Vec<u32> = (0..n as u32).collect();
    // Added to a row before its minimum is taken: infinite for slots that are gone.
    let mut gone = vec![0.0; n];
    let mut parent: Vec<u32> = (0..n as u32).collect();
    let mut links: Vec<usize> = Vec::new();
    let mut left = n;
    while left > 2 {
        if left * 3 < size.len() * 2 {
            let kept: Vec<usize> = (0..size.len()).filter(|&slot| gone[slot] == 0.0).collect();
            matrix.compact(&kept, &gone);
            for link in &mut links {
                *link = kept.partition_point(|slot| slot < link);
            }
            size = kept.iter().map(|&slot| size[slot]).collect();
            point_of_slot = kept.iter().map(|&slot| point_of_slot[slot]).collect();
            gone = vec![0.0; left];
        }
        if links.is_empty() {
            links.extend(gone.iter().position(|&gone| gone == 0.0));
        }
        let (x, y) = loop {
            let x = links[links.len() - 1];
            matrix.refresh(x, &gone);
            let row = matrix.row(x, gone.len());
            let closest = nearest_alive(row, &gone);
            if links.len() > 1 {
                let before = links[links.len() - 2];
                if row[before] <= closest {
                    links.truncate(links.len() - 2);
                    break (x.min(before), x.max(before));
                }
            }
            let nearest = row
                .iter()
                .zip(&gone)
                .position(|(distance, gone)| distance + gone == closest);
            links.push(nearest.unwrap_or(x));
        };
        matrix.refresh(x, &gone);
        matrix.refresh(y, &gone);
        merge(&mut matrix, &size, x, y, method);
        size[y] += size[x];
        gone[x] = f64::INFINITY;
        parent[point_of_slot[x] as usize] = point_of_slot[y];
        left -= 1;
    }
    // Parents have the higher index, so roots are resolved from the top down.
    let mut root = parent;
    for i in (0..n).rev() {
        root[i] = root[root[i] as usize];
    }
    let zero = root.first().copied();
    root.iter().map(|&root| u32::from(Some(root) != zero)).collect()
}

fn nearest_alive(row: &[f64], gone: &[f64]) -> f64 {
    let mut lanes = [f64::INFINITY; 8];
    let (mut values, mut penalties) = (row.chunks_exact(8), gone.chunks_exact(8));
    for (value, penalty) in values.by_ref().zip(penalties.by_ref()) {
        for lane in 0..8 {
            let distance = value[lane] + penalty[lane];
            lanes[lane] = if distance < lanes[lane] { distance } else { lanes[lane] };
        }
    }
    let rest = values.remainder().iter().zip(penalties.remainder());
    rest.map(|(value, penalty)| value + penalty)
        .chain(lanes)
        .fold(f64::INFINITY, f64::min)
}

fn full_matrix<'a>(
    points: &[Row],
    weights: &[f64],
    method: Method,
    metric: Metric,
    room: &'a mut Vec<f64>,
) -> Matrix<'a> {
    let n = points.len();
    let stride = n + PADDING;
    let columns = columns(points);
    if room.len() < n * stride {
        *room = vec![0.0; n * stride];
    }
    let values = &mut room[..n * stride];
    for (i, row) in values.chunks_exact_mut(stride).enumerate() {
        let row = &mut row[..n];
        distances_from(&columns, &points[i], metric, row);
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
    Matrix {
        values,
        stride,
        log: Vec::new(),
        merged: vec![0; n],
        written: vec![0; n],
    }
}

/// Lance and Williams: the distances of `x` joined with `y`, written to `y` (`x < y`).
fn merge(matrix: &mut Matrix<'_>, size: &[f64], x: usize, y: usize, method: Method) {
    let (n, stride) = (size.len(), matrix.stride);
    let (low, high) = matrix.values.split_at_mut(y * stride);
    let (of_x, of_y) = (&low[x * stride..x * stride + n], &mut high[..n]);
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
    matrix.log.push(y as u32);
    matrix.merged[y] = matrix.log.len() as u32;
    matrix.written[y] = matrix.log.len() as u32;
}

#[cfg(test)]
mod tests;
