//! What is told of a machine that a metric names: since when, how long, how far from its peers, and the curves.

use super::detect::{JudgedMetric, clock};
use super::samples::Task;
use super::score::median;
use super::verdict::{Curve, Finding, Kind, SeenIn};

/// What a metric says of a machine that it names.
pub(super) fn finding(
    task: &Task,
    metric: &JudgedMetric,
    node: usize,
    kind: Kind,
    threshold: f64,
    unit: String,
    seen_in: Vec<SeenIn>,
) -> Finding {
    let slide = f64::from(metric.slide_s);
    let score = metric.scores.machines[node];
    let stuck = metric
        .stuck
        .iter()
        .find(|stuck| stuck.node == node && kind == Kind::Stuck);
    let (from_ms, until_ms, score_value) = match stuck {
        Some(stuck) => (stuck.from_ms, stuck.until_ms, stuck.surprise),
        None => {
            let (first, end) = match &metric.deviations {
                Some(deviations) => extent(&deviations.smooth[node], score.first, score.end, score.deviation as f32),
                None => (score.first, score.end),
            };
            let ms = |window: usize| ((window as f64 * slide * 1000.0) as i32).min(task.length_ms);
            // The last window covers its samples too.
            let end_ms = if end >= metric.values[node].len() {
                task.length_ms
            } else {
                ms(end)
            };
            (ms(first), end_ms, score.score)
        }
    };
    let window = |ms: i32| ((f64::from(ms) / 1000.0 / slide) as usize).min(metric.values[node].len());
    let (first, end) = (window(from_ms), window(until_ms).max(window(from_ms) + 1));
    let value = mean_between(&metric.values[node], first, end);
    let middle = middles(&metric.values);
    let peers = mean_between(&middle, first, end);
    // Counted from the machine's own last sample: an exporter may be late.
    let last = [task.length_ms - (2.0 * slide * 1000.0) as i32, task.length_ms - 15_000];
    Finding {
        node: task.nodes[node].clone(),
        kind,
        metric: metric.name.clone(),
        unit,
        direction: match stuck {
            Some(_) => "constant",
            None if value >= peers => "higher",
            None => "lower",
        },
        since: clock(task, from_ms),
        until: clock(task, until_ms),
        seconds: f64::from(until_ms - from_ms) / 1000.0,
        lasts_to_end: until_ms >= last[0].min(last[1]),
        score: score_value,
        threshold,
        value: stuck.map_or(value, |stuck| f64::from(stuck.value)),
        peers,
        usual_difference: score.usual,
        seen_in,
        curve: curve(metric, node, &middle),
    }
}

/// Widens a stretch while the deviation has the level's sign and half its size.
fn extent(row: &[f32], mut first: usize, mut end: usize, deviation: f32) -> (usize, usize) {
    let on = |value: f32| value * deviation.signum() >= 0.5 * deviation.abs();
    while first > 0 && on(row[first - 1]) {
        first -= 1;
    }
    // The stretch may begin before the fault did: it lasts in nearly all of it.
    while first + 1 < end && !on(row[first]) {
        first += 1;
    }
    while end < row.len() && on(row[end]) {
        end += 1;
    }
    (first, end)
}

fn middles(values: &[Vec<f32>]) -> Vec<f32> {
    let mut column = Vec::new();
    (0..values.first().map_or(0, Vec::len))
        .map(|window| {
            column.clear();
            column.extend(values.iter().map(|row| row[window]).filter(|value| !value.is_nan()));
            median(&mut column)
        })
        .collect()
}

fn mean_between(row: &[f32], first: usize, end: usize) -> f64 {
    let present = row[first.min(row.len())..end.min(row.len())]
        .iter()
        .filter(|value| !value.is_nan());
    let (count, sum) = present.fold((0_u32, 0.0), |(count, sum), &value| (count + 1, sum + f64::from(value)));
    if count == 0 { 0.0 } else { sum / f64::from(count) }
}

fn curve(metric: &JudgedMetric, node: usize, middle: &[f32]) -> Curve {
    let present = |value: f32| (!value.is_nan()).then_some(value);
    let extreme = |pick: fn(f32, f32) -> f32| {
        (0..middle.len())
            .map(|window| {
                let others = metric.values.iter().enumerate().filter(|(other, _)| *other != node);
                others.filter_map(|(_, row)| present(row[window])).reduce(pick)
            })
            .collect()
    };
    Curve {
        every_seconds: f64::from(metric.slide_s),
        machine: metric.values[node].iter().map(|&value| present(value)).collect(),
        peers_median: middle.iter().map(|&value| present(value)).collect(),
        peers_low: extreme(f32::min),
        peers_high: extreme(f32::max),
    }
}
