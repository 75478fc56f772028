//! Sensors that stand still and machines that send nothing.
//!
//! A sensor that keeps its last value looks like its peers in every mean, and a machine without samples has no mean.
//! Both are found in the samples themselves.

use rayon::prelude::*;

use super::samples::{Metric, Series, Task};

/// A sensor that kept one value.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Stuck {
    /// Number of the machine.
    pub node: usize,
    /// The value it kept.
    pub value: f32,
    /// First sample with it, milliseconds since the task's start.
    pub from_ms: i32,
    /// Last sample with it.
    pub until_ms: i32,
    /// Natural logarithm of how unlikely the run is by the pace at which the peers' values change, negated.
    pub surprise: f64,
}

/// A machine without samples for long, at the end of the window.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Silent {
    /// Number of the machine.
    pub node: usize,
    /// Its last sample in milliseconds since the task's start; none at all when `None`.
    pub last_ms: Option<i32>,
}

/// Runs less surprising than this are chance: with e^-20 one in half a billion runs.
const LEAST_SURPRISE: f64 = 20.0;
/// Peers' own runs in the same minutes may last at most this share of the stuck one.
const PEERS_SHARE: f64 = 0.5;
const FEWEST_SAMPLES: usize = 20;

/// Machines whose reading of a metric kept one value for at least `continuity_s`, while the peers' readings changed.
///
/// A value at the edge of what the metric takes on any machine (0, 100 %) is a level, not a stuck sensor.
#[must_use]
pub fn stuck(metric: &Metric, continuity_s: f32) -> Vec<Stuck> {
    if metric
        .series
        .iter()
        .filter(|series| !series.times_ms.is_empty())
        .count()
        < 3
    {
        return Vec::new();
    }
    let runs: Vec<Option<Run>> = metric.series.par_iter().map(longest_run).collect();
    let least_ms = (continuity_s * 1000.0) as i32;
    let candidates = runs.iter().enumerate().filter_map(|(node, run)| {
        let run = run.filter(|run| run.until_ms - run.from_ms >= least_ms && run.samples >= FEWEST_SAMPLES)?;
        Some((node, run))
    });
    candidates.filter_map(|(node, run)| judge(metric, node, run)).collect()
}

fn judge(metric: &Metric, node: usize, run: Run) -> Option<Stuck> {
    let (mut low, mut high) = (f32::INFINITY, f32::NEG_INFINITY);
    let (mut pairs, mut equal) = (0_u64, 0_u64);
    let mut peers_longest = Vec::new();
    for (peer, series) in metric.series.iter().enumerate() {
        if series.times_ms.is_empty() {
            continue;
        }
        if peer != node {
            for &value in &series.values {
                low = low.min(value);
                high = high.max(value);
            }
            let begin = series.times_ms.partition_point(|&time| time < run.from_ms);
            let end = series.times_ms.partition_point(|&time| time <= run.until_ms);
            let inside = Series {
                times_ms: series.times_ms[begin..end].to_vec(),
                values: series.values[begin..end].to_vec(),
            };
            pairs += inside.values.windows(2).count() as u64;
            equal += inside.values.windows(2).filter(|pair| pair[0] == pair[1]).count() as u64;
            peers_longest.push(longest_run(&inside).map_or(0, |run| run.until_ms - run.from_ms));
        }
    }
    if pairs < FEWEST_SAMPLES as u64 || run.value <= low || run.value >= high {
        return None;
    }
    let same = (equal as f64 + 1.0) / (pairs as f64 + 2.0);
    let surprise = -same.ln() * run.samples as f64;
    // The longest run of the peers, without a second stuck one.
    peers_longest.sort_unstable();
    let spared = peers_longest.len() / 4;
    let longest = f64::from(peers_longest[peers_longest.len() - 1 - spared]);
    let own = f64::from(run.until_ms - run.from_ms);
    (surprise >= LEAST_SURPRISE && longest <= PEERS_SHARE * own).then_some(Stuck {
        node,
        value: run.value,
        from_ms: run.from_ms,
        until_ms: run.until_ms,
        surprise,
    })
}

#[derive(Debug, Clone, Copy)]
struct Run {
    value: f32,
    from_ms: i32,
    until_ms: i32,
    samples: usize,
}

fn longest_run(series: &Series) -> Option<Run> {
    let mut best: Option<Run> = None;
    let mut begin = 0;
    for place in 1..=series.values.len() {
        if place < series.values.len() && series.values[place] == series.values[begin] {
            continue;
        }
        let run = Run {
            value: series.values[begin],
            from_ms: series.times_ms[begin],
            until_ms: series.times_ms[place - 1],
            samples: place - begin,
        };
        if best.is_none_or(|best| run.until_ms - run.from_ms > best.until_ms - best.from_ms) {
            best = Some(run);
        }
        begin = place;
    }
    best
}

/// Machines that sent nothing for at least `continuity_s` up to the end, in no metric.
#[must_use]
pub fn silent(task: &Task, continuity_s: f32) -> Vec<Silent> {
    let since = task.length_ms - (continuity_s * 1000.0) as i32;
    (0..task.nodes.len())
        .filter_map(|node| {
            let last = task
                .metrics
                .iter()
                .filter_map(|metric| metric.series[node].times_ms.last())
                .max();
            last.is_none_or(|&last| last < since).then_some(Silent {
                node,
                last_ms: last.copied(),
            })
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn metric(stuck: Option<usize>, coarse: f32) -> Metric {
        let series = (0..5)
            .map(|node| Series {
                times_ms: (0..600).map(|second| second * 1000).collect(),
                values: (0..600)
                    .map(|second| {
                        let second = if stuck == Some(node) && second > 300 {
                            300
                        } else {
                            second
                        };
                        let wave = (second as f32 * 0.37 + node as f32).sin();
                        (wave * coarse).round()
                    })
                    .collect(),
            })
            .collect();
        Metric {
            name: "m".to_owned(),
            series,
        }
    }

    #[test]
    fn only_the_sensor_that_stands_still_is_stuck() {
        let found = stuck(&metric(Some(3), 50.0), 240.0);
        assert_eq!(found.len(), 1, "{found:?}");
        assert_eq!(
            (found[0].node, found[0].from_ms, found[0].until_ms),
            (3, 300_000, 599_000)
        );
        assert_eq!(stuck(&metric(None, 50.0), 240.0), []);
        // A metric that hardly changes on anybody.
        assert_eq!(stuck(&metric(Some(3), 0.3), 240.0), []);
    }
}
