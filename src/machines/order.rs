//! Which metrics to ask first: a decision tree on labelled stretches (Minder, section 4.3).
//!
//! A row is a stretch of a task; its features are, metric by metric, the largest score of any machine; it is faulty when
//! the fault covers it. A tree of Gini splits is grown; metrics are ordered by the impurity that their splits take away.

use super::detect::Detection;
use super::simulate::Label;

/// A stretch with what the metrics say of it.
#[derive(Debug, Clone, PartialEq)]
pub struct Row {
    /// Largest score by metric.
    pub scores: Vec<f32>,
    /// Whether a fault that some metric shows covers the stretch.
    pub faulty: bool,
}

const DEPTH: usize = 6;
const FEWEST_ROWS: usize = 8;

/// The rows of a judged task; `metrics` are the columns.
#[must_use]
pub fn rows_of(detection: &Detection, label: &Label, metrics: &[String], continuity_s: f32) -> Vec<Row> {
    let shown = label
        .abnormal_metrics
        .as_ref()
        .is_some_and(|metrics| !metrics.is_empty());
    let covered = |start: f32| match (label.onset_s, label.halt_s) {
        (Some(onset), Some(halt)) => {
            let (start, end) = (f64::from(start), f64::from(start + continuity_s));
            shown && end.min(halt) - start.max(onset) >= 0.9 * f64::from(continuity_s)
        }
        _ => false,
    };
    let Some(most) = detection
        .scores
        .iter()
        .map(|metric| metric.scores.by_stretch.len())
        .min()
    else {
        return Vec::new();
    };
    let column = |name: &String| detection.scores.iter().find(|metric| metric.name == *name);
    let columns: Vec<_> = metrics.iter().map(column).collect();
    (0..most)
        .map(|place| {
            let of = |metric: &Option<&super::detect::JudgedMetric>| {
                metric.map_or(0.0, |metric| {
                    metric.scores.by_stretch[place].1.iter().copied().fold(0.0, f32::max)
                })
            };
            let start = detection
                .scores
                .first()
                .map_or(0.0, |metric| metric.scores.by_stretch[place].0 as f32 * metric.slide_s);
            Row {
                scores: columns.iter().map(of).collect(),
                faulty: covered(start),
            }
        })
        .collect()
}

/// Places of the metrics, the most telling first; metrics that no split uses follow in their own order.
#[must_use]
pub fn order(rows: &[Row], metrics: usize) -> Vec<usize> {
    let mut importance = vec![0.0; metrics];
    let all: Vec<&Row> = rows.iter().collect();
    grow(&all, DEPTH, &mut importance);
    let mut order: Vec<usize> = (0..metrics).collect();
    order.sort_by(|&a, &b| f64::total_cmp(&importance[b], &importance[a]));
    order
}

/// Gini impurity times the number of rows.
fn impurity(faulty: usize, count: usize) -> f64 {
    if count == 0 {
        return 0.0;
    }
    let share = faulty as f64 / count as f64;
    2.0 * share * (1.0 - share) * count as f64
}

fn grow(rows: &[&Row], depth: usize, importance: &mut [f64]) {
    let faulty = rows.iter().filter(|row| row.faulty).count();
    if depth == 0 || rows.len() < FEWEST_ROWS || faulty == 0 || faulty == rows.len() {
        return;
    }
    let whole = impurity(faulty, rows.len());
    let mut best: Option<(f64, usize, f32)> = None;
    for metric in 0..importance.len() {
        let mut sorted: Vec<(f32, bool)> = rows.iter().map(|row| (row.scores[metric], row.faulty)).collect();
        sorted.sort_by(|a, b| a.0.total_cmp(&b.0));
        let mut below = 0;
        for place in 1..sorted.len() {
            below += usize::from(sorted[place - 1].1);
            if sorted[place].0 == sorted[place - 1].0 {
                continue;
            }
            let gain = whole - impurity(below, place) - impurity(faulty - below, sorted.len() - place);
            if best.is_none_or(|(best, ..)| gain > best + 1e-9) {
                best = Some((gain, metric, f32::midpoint(sorted[place].0, sorted[place - 1].0)));
            }
        }
    }
    let Some((gain, metric, at)) = best.filter(|best| best.0 > 1e-9) else {
        return;
    };
    importance[metric] += gain;
    let (low, high): (Vec<&Row>, Vec<&Row>) = rows.iter().copied().partition(|row| row.scores[metric] < at);
    grow(&low, depth - 1, importance);
    grow(&high, depth - 1, importance);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_metric_that_tells_comes_first() {
        let rows: Vec<Row> = (0..100_u32)
            .map(|place| Row {
                scores: vec![
                    (place * 37 % 11) as f32,
                    (place % 2) as f32 * 5.0 + (place * 7 % 5) as f32 * 0.1,
                ],
                faulty: place % 2 == 1,
            })
            .collect();
        assert_eq!(order(&rows, 2), [1, 0]);
    }
}
