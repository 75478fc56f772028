//! What the pass over the rows keeps: columns, names as codes, the latest of several values.

use std::collections::BTreeMap;

use rustc_hash::FxHashMap;

use crate::source::Micros;

/// Timer rows of a batch that may count, in columns, those of a timer together.
#[derive(Debug, Default)]
pub(super) struct TimerRows {
    /// Timer and number of rows of each piece of the columns, one after the other.
    pub pieces: Vec<(u32, usize)>,
    /// The steps that [`TimerRows::step`] names by place.
    pub steps: Vec<StepOfRun>,
    pub rank: Vec<u32>,
    pub step: Vec<u32>,
    pub time: Times,
    pub seconds: Vec<f64>,
}

impl TimerRows {
    /// Number of rows.
    pub fn len(&self) -> usize {
        self.seconds.len()
    }
}

/// One iteration as one run wrote it; ordered by run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) struct StepOfRun {
    pub run: u32,
    pub iteration: i64,
}

/// The usable rows of a step.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct StepTally {
    pub rows: u64,
    pub first_time: Micros,
    pub last_time: Micros,
}

impl StepTally {
    /// That of no row.
    pub const NONE: Self = Self {
        rows: 0,
        first_time: Micros::MAX,
        last_time: Micros::MIN,
    };

    /// Takes in more rows.
    pub fn merge(&mut self, other: &Self) {
        self.rows += other.rows;
        self.first_time = self.first_time.min(other.first_time);
        self.last_time = self.last_time.max(other.last_time);
    }
}

/// Tallies by step.
pub(super) type StepTallies = BTreeMap<StepOfRun, StepTally>;

/// Points in time, as narrow as they can be: those of a batch are mostly minutes apart.
#[derive(Debug)]
pub(super) enum Times {
    /// Microseconds since the first.
    Offsets { first: Micros, since: Vec<u32> },
    /// Those that are more than an hour apart.
    Wide(Vec<Micros>),
}

impl Default for Times {
    fn default() -> Self {
        Self::Wide(Vec::new())
    }
}

impl Times {
    /// Takes the times of a batch.
    pub fn new(times: Vec<Micros>) -> Self {
        let first = times.iter().copied().min().unwrap_or_default();
        let last = times.iter().copied().max().unwrap_or_default();
        if last.checked_sub(first).is_none_or(|span| span > i64::from(u32::MAX)) {
            return Self::Wide(times);
        }
        let since = times.iter().map(|time| (time - first) as u32).collect();
        Self::Offsets { first, since }
    }

    /// The time of a row.
    pub fn get(&self, row: usize) -> Micros {
        match self {
            Self::Offsets { first, since } => first + i64::from(since[row]),
            Self::Wide(times) => times[row],
        }
    }
}

/// What is known of a run from all of its timer rows up to `--end`, in the window or not.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct RunExtent {
    pub first_time: Micros,
    pub last_time: Micros,
    pub first_iteration: i64,
    pub last_iteration: i64,
}

impl RunExtent {
    /// That of one row.
    pub fn of(time: Micros, iteration: i64) -> Self {
        Self {
            first_time: time,
            last_time: time,
            first_iteration: iteration,
            last_iteration: iteration,
        }
    }

    /// Takes in what is known of more of its rows.
    pub fn merge(&mut self, other: &Self) {
        self.first_time = self.first_time.min(other.first_time);
        self.last_time = self.last_time.max(other.last_time);
        self.first_iteration = self.first_iteration.min(other.first_iteration);
        self.last_iteration = self.last_iteration.max(other.last_iteration);
    }

    /// Adds an extent to what is known of a run, if anything is.
    pub fn add_to(self, known: &mut Option<Self>) {
        match known {
            Some(known) => known.merge(&self),
            none => *none = Some(self),
        }
    }
}

/// Names in order of first appearance, with their positions.
#[derive(Debug, Default)]
pub(super) struct Names {
    pub names: Vec<String>,
    lookup: FxHashMap<String, u32>,
}

impl Names {
    /// The position of a name, which is appended when it is new.
    pub fn code(&mut self, name: &str) -> u32 {
        if let Some(&code) = self.lookup.get(name) {
            return code;
        }
        let code = self.names.len() as u32;
        self.names.push(name.to_owned());
        self.lookup.insert(name.to_owned(), code);
        code
    }

    /// The positions of some names.
    pub fn codes(&mut self, names: &[String]) -> Vec<u32> {
        names.iter().map(|name| self.code(name)).collect()
    }
}

/// A rank's position in a parallel group, as a row told it; ordered so that of two about the same the latest comes last,
/// at the same moment the greater position.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct GroupRow {
    /// Code of the group's name.
    pub group: u32,
    pub rank: u32,
    pub run: u32,
    pub time: Micros,
    pub position: u32,
}

/// Keeps the latest of the rows about the same group, rank and run.
pub(super) fn keep_latest(rows: &mut Vec<GroupRow>) {
    rows.sort_unstable();
    // `dedup_by` keeps the first of those that are alike.
    rows.reverse();
    rows.dedup_by_key(|row| (row.group, row.rank, row.run));
    rows.reverse();
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_kept_whatever_their_span() {
        for times in [vec![], vec![7], vec![-5, 4_000_000_000, 3], vec![i64::MIN, 0, i64::MAX]] {
            let kept = Times::new(times.clone());
            assert!((0..times.len()).all(|row| kept.get(row) == times[row]), "{times:?}");
        }
    }

    #[test]
    fn the_latest_group_row_stays() {
        let row = |run, time, position| GroupRow {
            group: 0,
            rank: 3,
            run,
            time,
            position,
        };
        let mut rows = vec![row(0, 5, 1), row(0, 9, 2), row(0, 9, 4), row(1, 1, 7), row(0, 2, 9)];
        keep_latest(&mut rows);
        assert_eq!(rows, [row(0, 9, 4), row(1, 1, 7)]);
    }
}
