//! What a job knows beside its tables where their columns put several iterations together.

use super::assemble::Job;

/// Where the columns of a job's tables stand for more than one iteration each.
#[derive(Debug)]
pub struct Reduced {
    /// Iterations that a column puts together; the last may hold fewer.
    pub length: usize,
    /// Last iteration of each column; [`Job::iterations`] holds the first ones.
    pub last_iterations: Vec<i64>,
    /// Iterations with a row in each column.
    pub counts: Vec<usize>,
    /// For each of [`Job::timers`] what a rank's durations come to over all iterations, by position of the rank; `None`
    /// where the timer never ran there. Empty where only the columns are known.
    pub sums: Vec<Vec<Option<DurationSums>>>,
    /// The longest step of any rank, iteration by iteration, as a job of one rank.
    pub steps: Job,
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

impl Job {
    /// Iterations that a column of the tables stands for: 1 unless the job was reduced where its rows are kept.
    #[must_use]
    pub fn iterations_per_column(&self) -> usize {
        self.reduced.as_ref().map_or(1, |reduced| reduced.length)
    }

    /// How many iterations were analysed.
    #[must_use]
    pub fn iteration_count(&self) -> usize {
        self.iterations_in(0..self.iterations.len())
    }

    /// How many iterations some columns stand for.
    #[must_use]
    pub fn iterations_in(&self, columns: impl IntoIterator<Item = usize>) -> usize {
        let of_column = |column: usize| self.reduced.as_ref().map_or(1, |reduced| reduced.counts[column]);
        columns.into_iter().map(of_column).sum()
    }

    /// The last iteration of a column.
    #[must_use]
    pub fn last_iteration_of(&self, column: usize) -> i64 {
        let last = self.reduced.as_ref().map(|reduced| reduced.last_iterations[column]);
        last.unwrap_or(self.iterations[column])
    }

    /// The job that tells the step times iteration by iteration.
    #[must_use]
    pub fn steps(&self) -> &Self {
        self.reduced.as_ref().map_or(self, |reduced| &reduced.steps)
    }
}
