//! What a job knows beside its tables where their columns put several iterations together.

use super::steps::Steps;

/// Where the columns of a job's tables stand for more than one iteration each.
#[derive(Debug)]
pub struct Reduced {
    /// Iterations that a column puts together; the last may hold fewer.
    pub length: usize,
    /// Last iteration of each column; [`Job::iterations`](super::Job::iterations) holds the first ones.
    pub last_iterations: Vec<i64>,
    /// Iterations with a row in each column.
    pub counts: Vec<usize>,
    /// For each of [`Job::timers`](super::Job::timers) what a rank's durations come to over all iterations, by position of the rank; `None`
    /// where the timer never ran there. Empty where only the columns are known.
    pub sums: Vec<Vec<Option<DurationSums>>>,
    /// How long each iteration took.
    pub steps: Steps,
    /// Whether the means were printed so, where a server made them else.
    pub printed: bool,
}

/// A rank's durations above 0 in one timer, seconds.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct DurationSums {
    /// The shortest.
    pub least: f64,
    /// The longest.
    pub most: f64,
    /// All together.
    pub total: f64,
    /// How many.
    pub count: u64,
}

impl DurationSums {
    /// These and others.
    pub(super) fn with(&self, other: &Self) -> Self {
        Self {
            least: self.least.min(other.least),
            most: self.most.max(other.most),
            total: self.total + other.total,
            count: self.count + other.count,
        }
    }
}
