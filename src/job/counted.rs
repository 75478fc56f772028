//! Which rows count: not those of other runs than asked for, of iterations that a later run repeated, and of start-ups.

use std::collections::BTreeMap;

use super::quality::DataQuality;
use super::runs::Runs;

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
