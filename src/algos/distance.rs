//! Order of rows, and the distance between them.

use super::Row;

/// Lexicographic order of two rows.
pub(crate) fn compare(a: &Row, b: &Row) -> std::cmp::Ordering {
    a.iter()
        .zip(b)
        .map(|(x, y)| x.total_cmp(y))
        .find(|order| order.is_ne())
        .unwrap_or(std::cmp::Ordering::Equal)
}

/// Squared Euclidean distance.
#[inline]
pub(crate) fn squared_distance(a: &Row, b: &Row) -> f64 {
    let d = [a[0] - b[0], a[1] - b[1], a[2] - b[2], a[3] - b[3]];
    d[0] * d[0] + d[1] * d[1] + d[2] * d[2] + d[3] * d[3]
}
