//! What is known of a job as a whole and of no single rank: logs of training programs tell little else.

use std::collections::BTreeMap;

use ndarray::Array2;

use super::collected_rows::StepOfRun;
use super::counting_rows::CountedSteps;
use super::reduced::Reduced;
use super::steps::Steps;
use super::tables::Job;
use super::timer_table::TimerTable;
use crate::contract::timers::INTERVAL_TIME;
use crate::source::Micros;

/// Steps that means are spread over at most; of more each line counts as one step.
const MOST_STEPS: i64 = 1 << 22;
/// Times the lines beside it from which a line holds one long step rather than many slow ones.
const PEAK: f64 = 1.1;

/// What is known of the job as a whole.
#[derive(Debug, Default, Clone)]
pub struct JobWide {
    /// Timers of which the least and the greatest of any rank are known, by name.
    pub timers: Vec<JobWideTimer>,
    /// What programs that look for slow ranks said of ranks.
    pub reports: Vec<ReportedRank>,
    /// What the reader of the source noticed, a sentence each.
    pub notes: Vec<String>,
}

/// A timer of the whole job; both lists are parallel to [`Job::iterations`], NaN where nothing is told.
#[derive(Debug, Clone, PartialEq)]
pub struct JobWideTimer {
    /// Its name.
    pub name: String,
    /// The least duration of any rank, seconds.
    pub least: Vec<f64>,
    /// The greatest, or that of the one rank that printed its own and did not say which it is.
    pub most: Vec<f64>,
}

/// What a report says of a rank.
#[derive(Debug, Clone, PartialEq)]
pub struct ReportedRank {
    /// Program and measure: `NVRx/relative`, `StragglerDetector/MxRtt`, `FlagScale/detected`.
    pub measure: String,
    /// The rank.
    pub rank: u32,
    /// Its node, where the report names it.
    pub node: Option<String>,
    /// The step of the report, or its number where it names none.
    pub iteration: i64,
    /// In the measure's own unit.
    pub value: f64,
}

/// A row of the whole job, with codes of its timer and run.
#[derive(Debug, Clone, Copy)]
pub(super) struct SummaryRow {
    pub timer: u32,
    pub run: u32,
    pub iteration: i64,
    pub time: Micros,
    pub least: f64,
    pub most: f64,
}

impl JobWide {
    /// The timer of a name.
    #[must_use]
    pub fn timer(&self, name: &str) -> Option<&JobWideTimer> {
        self.timers.iter().find(|timer| timer.name == name)
    }

    /// Puts rows that count into their columns; of several the latest, at the same moment the longer.
    pub(super) fn tabulate(rows: &[SummaryRow], names: &[String], counted: &CountedSteps) -> Vec<JobWideTimer> {
        let columns = counted.iterations.len();
        let mut tables: BTreeMap<&str, (JobWideTimer, Vec<Micros>)> = BTreeMap::new();
        for row in rows {
            let step = StepOfRun {
                run: row.run,
                iteration: row.iteration,
            };
            let Some(column) = counted.column(step) else { continue };
            let name = &names[row.timer as usize];
            let (timer, times) = tables.entry(name).or_insert_with(|| {
                let timer = JobWideTimer {
                    name: name.clone(),
                    least: vec![f64::NAN; columns],
                    most: vec![f64::NAN; columns],
                };
                (timer, vec![Micros::MIN; columns])
            });
            let longer = row.time == times[column] && row.most > timer.most[column];
            if timer.most[column].is_nan() || row.time > times[column] || longer {
                (times[column], timer.least[column], timer.most[column]) = (row.time, row.least, row.most);
            }
        }
        tables.into_values().map(|(timer, _)| timer).collect()
    }

    /// Cells that hold a value.
    pub(super) fn used(timers: &[JobWideTimer]) -> u64 {
        let used = |timer: &JobWideTimer| timer.most.iter().filter(|seconds| !seconds.is_nan()).count();
        timers.iter().map(used).sum::<usize>() as u64
    }

    /// The part of it in some columns.
    pub(super) fn select(&self, columns: &[usize]) -> Self {
        let of = |values: &[f64]| columns.iter().map(|&column| values[column]).collect::<Vec<f64>>();
        let timers = self.timers.iter().map(|timer| JobWideTimer {
            name: timer.name.clone(),
            least: of(&timer.least),
            most: of(&timer.most),
        });
        Self {
            timers: timers.collect(),
            ..self.clone()
        }
    }
}

impl Job {
    /// Gives every rank the length of the steps, which is the same for all, where only the job's is told.
    pub(super) fn with_interval_time(mut self) -> Self {
        let told = self
            .job_wide
            .timer(INTERVAL_TIME)
            .filter(|_| self.timer(INTERVAL_TIME).is_none());
        if let Some(told) = told.filter(|_| !self.ranks.is_empty()) {
            let shape = (self.ranks.len(), self.iterations.len());
            self.timers.push(TimerTable {
                name: INTERVAL_TIME.to_owned(),
                seconds: Array2::from_shape_fn(shape, |(_, column)| told.most[column]),
            });
            self.timers.sort_by(|a, b| a.name.cmp(&b.name));
        }
        self
    }

    /// Makes columns stand for the iterations that they are the means of, by the log interval of each run.
    pub(super) fn averaged(mut self, intervals: &BTreeMap<u32, i64>, run_of: &[u32]) -> Self {
        let lengths = lengths(&self.iterations, run_of, intervals);
        let longest = lengths.iter().copied().max().unwrap_or(1);
        if longest <= 1 {
            return self;
        }
        let steps = self.spread_over(&lengths, run_of);
        let last_iterations = self.iterations.clone();
        for (iteration, length) in self.iterations.iter_mut().zip(&lengths) {
            *iteration -= length - 1;
        }
        self.reduced = Some(Box::new(Reduced {
            length: longest as usize,
            last_iterations,
            counts: lengths.iter().map(|&length| length as usize).collect(),
            sums: Vec::new(),
            steps,
            printed: true,
        }));
        self
    }

    /// The steps one by one.
    ///
    /// A mean does not tell whether all of its steps were slow or one was long. Where the lines on both sides of it are not,
    /// one long step explains it, and so it is read: the first line of a run holds its start-up, another an evaluation.
    fn spread_over(&self, lengths: &[i64], run_of: &[u32]) -> Steps {
        let (measure, seconds) = self.step_seconds();
        let too_many = lengths.iter().sum::<i64>() > MOST_STEPS;
        let mut iterations = Vec::new();
        let mut times = Vec::new();
        let mut steps = Vec::new();
        for (column, &length) in lengths.iter().enumerate() {
            let mean = seconds[column];
            let length = if too_many { 1 } else { length };
            let beside = |other: Option<usize>| {
                let other = other.filter(|&other| run_of.get(other) == run_of.get(column))?;
                // The first iteration of a run alone is its start-up, and no measure of another line.
                let is_first = other
                    .checked_sub(1)
                    .is_none_or(|before| run_of.get(before) != run_of.get(other));
                let told = !(is_first && lengths[other] == 1);
                seconds.get(other).copied().filter(|seconds| told && !seconds.is_nan())
            };
            let around = [beside(column.checked_sub(1)), beside(Some(column + 1))];
            let usual = around.into_iter().flatten().fold(f64::NAN, f64::max);
            let is_peak = length > 1 && mean > PEAK * usual;
            for step in 0..length {
                let left = length - 1 - step;
                iterations.push(self.iterations[column] - left);
                let back = (left as f64 * mean * 1e6).clamp(0.0, 1e15) as Micros;
                times.push(self.iteration_times[column].saturating_sub(back));
                steps.push(match (is_peak, step) {
                    (false, _) => mean,
                    (true, 0) => mean * length as f64 - usual * (length - 1) as f64,
                    (true, _) => usual,
                });
            }
        }
        Steps {
            measure,
            iterations,
            times,
            seconds: steps,
        }
    }
}

/// How many iterations each column is the mean of: the interval of its run, and 1 for a line outside of its grid, which the
/// first iteration of a run has.
fn lengths(iterations: &[i64], run_of: &[u32], intervals: &BTreeMap<u32, i64>) -> Vec<i64> {
    let interval = |run: u32| intervals.get(&run).copied().unwrap_or(1).max(1);
    let mut grid: BTreeMap<u32, i64> = BTreeMap::new();
    for (&iteration, &run) in iterations.iter().zip(run_of) {
        grid.insert(run, iteration.rem_euclid(interval(run)));
    }
    let lengths = (0..iterations.len()).map(|column| {
        let run = run_of[column];
        let interval = interval(run);
        let on_grid = iterations[column].rem_euclid(interval) == grid[&run];
        let before = column
            .checked_sub(1)
            .map_or(interval, |before| iterations[column] - iterations[before]);
        if on_grid { interval.min(before).max(1) } else { 1 }
    });
    lengths.collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::contract::defaults::SLOWDOWN_THRESHOLD;
    use crate::job::slow_windows;

    /// The windows of a job whose lines are the means of ten iterations.
    fn windows(means: &[f64]) -> Vec<(i64, i64)> {
        let job = Job {
            iterations: (1..=means.len() as i64).map(|line| line * 10).collect(),
            ..Job::sample(1, 1, 1, means.len()).with_timer(INTERVAL_TIME, |_, step| means[step])
        };
        let job = job.averaged(&[(0, 10)].into(), &vec![0; means.len()]);
        assert_eq!((job.iteration_count(), job.iterations[0]), (means.len() * 10, 1));
        let windows = slow_windows(&job, SLOWDOWN_THRESHOLD).windows;
        windows.iter().map(|window| (window.first, window.last)).collect()
    }

    #[test]
    fn a_window_is_told_from_means() {
        let (usual, slow) = (1.0, 1.6);
        let lines = [
            usual, usual, usual, slow, slow, slow, usual, usual, slow, slow, usual, usual,
        ];
        assert_eq!(windows(&lines), [(31, 60), (81, 100)]);
    }

    #[test]
    fn a_single_line_may_hold_one_long_step() {
        assert_eq!(windows(&[9.0, 1.0, 1.0, 1.0, 1.0, 1.0]), [(0, 0); 0]);
        assert_eq!(windows(&[1.0, 1.0, 1.0, 1.5, 1.0, 1.0]), [(0, 0); 0]);
    }

    #[test]
    fn lines_outside_of_the_grid_are_one_iteration() {
        let intervals = [(0, 10), (1, 1)].into();
        assert_eq!(lengths(&[1, 10, 20, 40], &[0; 4], &intervals), [1, 9, 10, 10]);
        assert_eq!(lengths(&[7, 8, 9], &[1; 3], &intervals), [1, 1, 1]);
    }
}
