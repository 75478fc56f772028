//! With pipeline stages: a rank that is hardly slower than the fastest in the slowest steps goes back to fast.

use std::cmp::Ordering;

use crate::job::{Job, TimerTable};

/// Each rank's compute time over the slowest iterations, against the fastest rank's.
#[derive(Debug, Clone, PartialEq)]
pub struct SlowStepGate {
    /// Clustered timers' mean durations over those iterations, summed, one a rank; NaN where there is none.
    seconds: Vec<f64>,
    fastest: f64,
    factor: f64,
}

impl SlowStepGate {
    /// Measures every rank in the `iterations` slowest steps.
    ///
    /// The step time is that of [`Job::step_seconds`]. `factor` is how many times the fastest rank's compute time is needed to stay slow.
    #[must_use]
    pub fn measure(job: &Job, clustered: &[&TimerTable], iterations: usize, factor: f64) -> Self {
        let slowest = slowest_iterations(&job.step_seconds().1, iterations);
        let seconds = (0..job.ranks.len())
            .map(|rank| {
                known_sum(
                    clustered
                        .iter()
                        .map(|timer| mean(slowest.iter().map(|&iteration| timer.seconds[(rank, iteration)]))),
                )
            })
            .collect();
        Self::new(seconds, factor)
    }

    fn new(seconds: Vec<f64>, factor: f64) -> Self {
        let fastest = seconds.iter().copied().fold(f64::INFINITY, f64::min);
        Self {
            seconds,
            fastest,
            factor,
        }
    }

    /// Whether a rank may be called slow: at or above the factor, or not measured in the slowest steps.
    #[must_use]
    pub fn passes(&self, rank: usize) -> bool {
        // A rank without a row in the slowest steps (NaN) is not acquitted by them.
        self.seconds[rank].partial_cmp(&(self.factor * self.fastest)) != Some(Ordering::Less)
    }

    /// How many times the fastest rank's compute time a rank takes.
    #[must_use]
    pub fn ratio(&self, rank: usize) -> Option<f64> {
        let ratio = self.seconds[rank] / self.fastest;
        ratio.is_finite().then_some(ratio)
    }
}

/// The sum of what is there; NaN where nothing is.
fn known_sum(values: impl Iterator<Item = f64>) -> f64 {
    values
        .filter(|value| !value.is_nan())
        .reduce(|sum, value| sum + value)
        .unwrap_or(f64::NAN)
}

/// Positions of the largest step times; of equal ones the earlier.
fn slowest_iterations(steps: &[f64], count: usize) -> Vec<usize> {
    let mut order: Vec<usize> = (0..steps.len())
        .filter(|&iteration| steps[iteration].is_finite())
        .collect();
    order.sort_by(|&a, &b| steps[b].total_cmp(&steps[a]).then(a.cmp(&b)));
    order.truncate(count);
    order
}

/// The mean of what is there; NaN where nothing is.
fn mean(values: impl Iterator<Item = f64>) -> f64 {
    let (sum, count) = values
        .filter(|value| !value.is_nan())
        .fold((0.0, 0.0), |(sum, count), value| (sum + value, count + 1.0));
    sum / count
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_earlier_of_equal_steps_counts() {
        assert_eq!(slowest_iterations(&[1.0, 3.0, 2.0, 3.0, 3.0], 2), [1, 3]);
        assert_eq!(slowest_iterations(&[1.0, f64::NAN], 5), [0]);
    }

    #[test]
    fn below_the_factor_a_rank_goes_free() {
        let gate = SlowStepGate::new(vec![1.0, 1.29, 1.3, f64::NAN], 1.3);
        let passing: Vec<bool> = (0..4).map(|rank| gate.passes(rank)).collect();
        assert_eq!(passing, [false, false, true, true]);
        assert_eq!(gate.ratio(2), Some(1.3));
        assert_eq!(gate.ratio(3), None);
    }
}
