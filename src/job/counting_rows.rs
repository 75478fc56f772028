//! Which rows count: not those of other runs than asked for, of iterations that a later run repeated, and of start-ups.

use std::collections::{BTreeMap, BTreeSet};

use super::collected_rows::{StepOfRun, StepTally};
use super::quality::DataQuality;
use super::runs::Runs;
use crate::source::Micros;

/// What becomes of a row of the window.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Fate {
    Counts,
    OtherRun,
    Superseded,
    WarmUp,
}

impl Fate {
    /// Counts rows that share this fate.
    pub fn count(self, rows: u64, quality: &mut DataQuality) {
        match self {
            Self::Counts => {}
            Self::OtherRun => quality.other_runs += rows,
            Self::Superseded => quality.superseded_by_rerun += rows,
            Self::WarmUp => quality.warmup += rows,
        }
    }
}

/// Tells the fate of a row by its run and iteration.
pub(super) struct CountedRuns<'a> {
    runs: &'a Runs,
    /// Code of a run -> whether it is asked for.
    asked: Vec<bool>,
    /// Place of the last run that has an iteration; empty for a single run.
    last_run_of: BTreeMap<i64, usize>,
}

impl<'a> CountedRuns<'a> {
    /// `rows` are the (run, iteration) of usable rows, as codes in `names`; they may repeat, and are not looked at where
    /// there is one run. `asked` is the run that alone counts, where one is asked for.
    pub fn new(
        rows: impl Iterator<Item = (u32, i64)>,
        runs: &'a Runs,
        asked: Option<&String>,
        names: &[String],
    ) -> Self {
        let mut counts = Self {
            runs,
            asked: names
                .iter()
                .map(|name| asked.is_none_or(|asked| name == asked))
                .collect(),
            last_run_of: BTreeMap::new(),
        };
        if runs.runs.len() > 1 {
            for (run, iteration) in rows {
                if counts.asked[run as usize] {
                    let place = counts.place(run).unwrap_or_default();
                    let last = counts.last_run_of.entry(iteration).or_default();
                    *last = (*last).max(place);
                }
            }
        }
        counts
    }

    /// A run's place in the order; `None` for one without timer rows.
    fn place(&self, run: u32) -> Option<usize> {
        self.runs.order[run as usize]
    }

    /// What becomes of the rows of a run in an iteration.
    pub fn fate(&self, run: u32, iteration: i64) -> Fate {
        let Some(place) = self.place(run).filter(|_| self.asked[run as usize]) else {
            return Fate::OtherRun;
        };
        if self.last_run_of.get(&iteration).is_some_and(|&last| last != place) {
            Fate::Superseded
        } else if iteration < self.runs.first_counted[place] {
            Fate::WarmUp
        } else {
            Fate::Counts
        }
    }
}

/// The steps of a window that count, by iteration.
#[derive(Debug, Default)]
pub(super) struct CountedSteps {
    /// Runs with a row that counts.
    pub runs: BTreeSet<u32>,
    /// Iterations with a row that counts, ascending.
    pub iterations: Vec<i64>,
    /// Run of each iteration.
    pub run_of: Vec<u32>,
    /// Time of the first and of the last row of each iteration.
    pub times: Vec<(Micros, Micros)>,
    /// Rows of each iteration, with those that repeat another.
    pub rows: Vec<u64>,
}

impl CountedSteps {
    /// Sorts the steps out, and counts the rows of those that do not count.
    pub fn new<'a>(
        steps: impl Iterator<Item = (StepOfRun, &'a StepTally)>,
        counts: &CountedRuns<'_>,
        quality: &mut DataQuality,
    ) -> Self {
        let mut counted = BTreeMap::<i64, (u32, StepTally)>::new();
        for (step, tally) in steps.filter(|(_, tally)| tally.rows > 0) {
            let fate = counts.fate(step.run, step.iteration);
            fate.count(tally.rows, quality);
            if fate == Fate::Counts {
                let known = counted.entry(step.iteration).or_insert((step.run, StepTally::NONE));
                known.1.merge(tally);
            }
        }
        Self {
            runs: counted.values().map(|&(run, _)| run).collect(),
            run_of: counted.values().map(|&(run, _)| run).collect(),
            times: counted
                .values()
                .map(|(_, tally)| (tally.first_time, tally.last_time))
                .collect(),
            rows: counted.values().map(|(_, tally)| tally.rows).collect(),
            iterations: counted.into_keys().collect(),
        }
    }

    /// The place of a step's iteration, if the step counts.
    pub fn column(&self, step: StepOfRun) -> Option<usize> {
        let column = self.iterations.binary_search(&step.iteration).ok()?;
        (self.run_of[column] == step.run).then_some(column)
    }
}

#[cfg(test)]
mod tests {
    use super::super::collected_rows::RunExtent;
    use super::*;

    #[test]
    fn a_repeated_iteration_counts_from_the_last_run_and_start_ups_not_at_all() {
        let extent = |first_time, first_iteration| {
            Some(RunExtent {
                first_time,
                last_time: first_time + 50,
                first_iteration,
                last_iteration: first_iteration + 9,
            })
        };
        let names = ["second".to_owned(), "first".to_owned()];
        let runs = Runs::new(&names, &[extent(100, 4), extent(0, 0)], 2);
        let step = |run, iteration| StepOfRun { run, iteration };
        let tally = |time| StepTally {
            rows: 8,
            first_time: time,
            last_time: time + 1,
        };
        let steps = [
            (step(1, 1), tally(1)),
            (step(1, 3), tally(3)),
            (step(1, 6), tally(6)),
            (step(0, 5), tally(105)),
            (step(0, 6), tally(106)),
        ];
        let rows = steps.iter().map(|(step, _)| (step.run, step.iteration));
        let counts = CountedRuns::new(rows, &runs, None, &names);
        let mut quality = DataQuality::default();
        let counted = CountedSteps::new(steps.iter().map(|(step, tally)| (*step, tally)), &counts, &mut quality);
        assert_eq!(
            (counted.iterations.as_slice(), counted.run_of.as_slice()),
            (&[3, 6][..], &[1, 0][..])
        );
        assert_eq!((counted.times[1], counted.rows[1]), ((106, 107), 8));
        assert_eq!((quality.warmup, quality.superseded_by_rerun), (16, 8));
        assert_eq!(
            (counted.column(step(0, 6)), counted.column(step(1, 6))),
            (Some(1), None)
        );
        assert_eq!(counted.column(step(0, 7)), None);
    }
}
