//! Cells: at most [`CELL_LIMIT`] small groups of neighbouring points that stand for all of them.
//!
//! The box with the longest side is halved (at the middle of that side, each half shrunk to its points) until there
//! are enough cells, so the largest cell diameter falls evenly and far outliers end up alone. A method that runs on
//! cells instead of points sees every distance off by at most two cell diameters; linkage heights likewise
//! (the argument of BIRCH, Zhang et al. 1996). Cost `O(n log n)`; depends on the set of points only.

use std::cmp::Ordering;
use std::collections::BinaryHeap;

use super::Row;

/// The most cells a space is split into.
pub const CELL_LIMIT: usize = 1_200;

/// A partition of the points into small boxes.
#[derive(Debug, Clone, PartialEq)]
pub struct Cells {
    /// Cell of each point, `0..count`, numbered by first appearance.
    pub of_point: Vec<u32>,
    /// Number of cells.
    pub count: usize,
}

struct Box4 {
    members: Vec<u32>,
    axis: usize,
    middle: f64,
    length: f64,
    serial: usize,
}

impl Box4 {
    fn new(points: &[Row], members: Vec<u32>, serial: usize) -> Self {
        let (mut axis, mut middle, mut length) = (0, 0.0, -1.0);
        for candidate in 0..4 {
            let values = members.iter().map(|&i| points[i as usize][candidate]);
            let (low, high) = values.fold((f64::INFINITY, f64::NEG_INFINITY), |(low, high), v| {
                (low.min(v), high.max(v))
            });
            if high - low > length {
                (axis, middle, length) = (candidate, low + (high - low) / 2.0, high - low);
            }
        }
        Self {
            members,
            axis,
            middle,
            length,
            serial,
        }
    }
}

impl PartialEq for Box4 {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other).is_eq()
    }
}
impl Eq for Box4 {}
impl PartialOrd for Box4 {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}
impl Ord for Box4 {
    fn cmp(&self, other: &Self) -> Ordering {
        self.length
            .total_cmp(&other.length)
            .then(other.serial.cmp(&self.serial))
    }
}

/// Splits distinct points into cells.
pub fn split(points: &[Row]) -> Cells {
    let mut heap = BinaryHeap::new();
    if !points.is_empty() {
        heap.push(Box4::new(points, (0..points.len() as u32).collect(), 0));
    }
    let mut serial = 1;
    while heap.len() < CELL_LIMIT {
        let Some(widest) = heap.pop() else { break };
        if widest.length <= 0.0 {
            heap.push(widest);
            break;
        }
        let (low, high): (Vec<u32>, Vec<u32>) = widest
            .members
            .iter()
            .partition(|&&i| points[i as usize][widest.axis] <= widest.middle);
        if high.is_empty() || low.is_empty() {
            // The middle rounded onto an end: two neighbouring floats. Nothing is gained by splitting them.
            heap.push(Box4 { length: 0.0, ..widest });
            continue;
        }
        for half in [low, high] {
            heap.push(Box4::new(points, half, serial));
            serial += 1;
        }
    }
    let mut boxes = heap.into_vec();
    boxes.sort_by_key(|cell| cell.members.first().copied());
    let mut of_point = vec![0; points.len()];
    for (index, cell) in boxes.iter().enumerate() {
        for &member in &cell.members {
            of_point[member as usize] = index as u32;
        }
    }
    Cells {
        of_point,
        count: boxes.len(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn few_points_are_cells_of_their_own() {
        let points: Vec<Row> = (0..50).map(|i| [i as f64, 0.0, 1.0, -(i as f64)]).collect();
        let cells = split(&points);
        assert_eq!(cells.count, 50);
        assert_eq!(cells.of_point, (0..50).collect::<Vec<u32>>());
        assert_eq!(split(&[]).count, 0);
    }

    #[test]
    fn an_outlier_has_a_cell_to_itself() {
        let mut points: Vec<Row> = (0..5_000).map(|i| [i as f64, (i % 7) as f64, 0.0, 0.0]).collect();
        points.push([1e6, 0.0, 0.0, 0.0]);
        let cells = split(&points);
        assert_eq!(cells.count, CELL_LIMIT);
        let outlier = cells.of_point[5_000];
        assert_eq!(cells.of_point.iter().filter(|&&c| c == outlier).count(), 1);
    }
}
