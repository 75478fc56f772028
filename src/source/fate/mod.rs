//! What becomes of a row of the job: one ordered list of reasons to leave it out, each as a test of a row that was read
//! and as SQL.
//!
//! A scan of files asks [`fate`] of every row; the SQL that counts, sums up, sends and exports rows of a table is made of
//! the same [`RULES`] in the same order. The first rule that a row does not pass decides.

mod wanted;

pub use wanted::{WANTED, WantedMetric, place};

use super::timestamp::Micros;

/// Seconds beyond which a number is no duration: 31 years. Sums and squares of shorter ones stay finite.
const LONGEST_DURATION: f64 = 1e9;

/// What becomes of a row of a wanted metric.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Fate {
    /// Of a metric whose lists are wanted: another subname, or no value.
    NotNeeded,
    /// No readable timestamp, name, rank or iteration.
    Unreadable,
    /// Written after the end.
    AfterEnd,
    /// Written before the start.
    BeforeStart,
    /// Outside of the asked iterations, or not of those that are sampled.
    OtherIteration,
    /// Without a value where a duration should be.
    MissingValue,
    /// NaN, infinite or longer than anything lasts where a duration should be.
    NotFinite,
    /// Below 0 where a duration should be.
    Negative,
    /// None of these: the row is taken.
    Taken,
}

impl Fate {
    /// All of them.
    pub const ALL: [Self; 9] = [
        Self::NotNeeded,
        Self::Unreadable,
        Self::AfterEnd,
        Self::BeforeStart,
        Self::OtherIteration,
        Self::MissingValue,
        Self::NotFinite,
        Self::Negative,
        Self::Taken,
    ];

    /// Its number in an answer of a server.
    #[must_use]
    pub fn code(self) -> u8 {
        self as u8
    }

    /// The fate of a number in an answer.
    #[must_use]
    pub fn of_code(code: u8) -> Option<Self> {
        Self::ALL.into_iter().find(|fate| fate.code() == code)
    }

    /// Whether a timer row of this fate tells where its run began and ended: all do that have a place in time up to the end.
    #[must_use]
    pub fn tells_the_run(self) -> bool {
        !matches!(self, Self::NotNeeded | Self::Unreadable | Self::AfterEnd)
    }
}

/// The cells of a row that decide on it; `None` where one is missing or can't be read.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Cells {
    /// When it was written.
    pub time: Option<Micros>,
    /// Rank.
    pub rank: Option<i64>,
    /// Iteration.
    pub iteration: Option<i64>,
    /// Whether it has a subname.
    pub named: bool,
    /// Whether it is of a subname whose lists are wanted.
    pub listed: bool,
    /// Whether `metric_values` was read and holds nothing.
    pub empty: bool,
    /// First value.
    pub value: Option<f64>,
}

/// The window that is asked for; an open end is `None`.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub struct Bounds {
    /// First moment.
    pub start: Option<Micros>,
    /// Last moment.
    pub end: Option<Micros>,
    /// First iteration.
    pub first: Option<i64>,
    /// Last iteration.
    pub last: Option<i64>,
}

/// Whose rows a rule decides on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Scope {
    /// Those of every wanted metric.
    Every,
    /// Those of windowed metrics.
    Windowed,
    /// Those of metrics whose lists are wanted.
    Lists,
    /// Those of metrics whose first value is a duration.
    Durations,
}

impl Scope {
    /// Whether it holds the rows of a metric.
    #[must_use]
    pub fn holds(self, metric: &WantedMetric) -> bool {
        match self {
            Self::Every => true,
            Self::Windowed => metric.windowed,
            Self::Lists => metric.lists.is_some(),
            Self::Durations => metric.durations,
        }
    }
}

/// What a rule asks of a row in SQL. `clickhouse::window` writes it for a table's layout.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Condition {
    /// This, as it stands; null is no. `row_value` is the first value.
    Sql(&'static str),
    /// The subname is null, or it is among `{lists:Array(String)}` and there is a value.
    NamedWithValues,
    /// The time column is not beyond the end: a constant of its own scale.
    UntilEnd,
    /// The time column is not before the start.
    FromStart,
    /// The iteration lies between `{first:Int64}` and `{last:Int64}`, and is among those that are sampled.
    InIterations,
}

/// One reason to leave a row out.
pub struct Rule {
    /// What becomes of a row that does not pass.
    pub fate: Fate,
    /// Whose rows it decides on.
    pub of: Scope,
    /// Whether a row passes.
    pub passes: fn(&Cells, &Bounds) -> bool,
    /// The same in SQL.
    pub sql: Condition,
}

/// Every reason, in the order in which they are asked for.
pub const RULES: [Rule; 9] = [
    Rule {
        fate: Fate::NotNeeded,
        of: Scope::Lists,
        passes: |row, _| !row.named || row.listed && !row.empty,
        sql: Condition::NamedWithValues,
    },
    Rule {
        fate: Fate::Unreadable,
        of: Scope::Every,
        passes: |row, _| {
            row.time.is_some() && row.named && row.rank.is_some_and(|rank| (0..=0xffff_ffff).contains(&rank))
        },
        sql: Condition::Sql("rank >= 0 AND rank <= 4294967295 AND isNotNull(subname) AND isNotNull(timestamp)"),
    },
    Rule {
        fate: Fate::AfterEnd,
        of: Scope::Every,
        passes: |row, bounds| bounds.end.is_none_or(|end| row.time.is_some_and(|time| time <= end)),
        sql: Condition::UntilEnd,
    },
    // A negative number is damage, and would pass for the run's first iteration.
    Rule {
        fate: Fate::Unreadable,
        of: Scope::Windowed,
        passes: |row, _| row.iteration.is_some_and(|iteration| 0 <= iteration),
        sql: Condition::Sql("iteration >= 0"),
    },
    Rule {
        fate: Fate::BeforeStart,
        of: Scope::Windowed,
        passes: |row, bounds| {
            bounds
                .start
                .is_none_or(|start| row.time.is_some_and(|time| start <= time))
        },
        sql: Condition::FromStart,
    },
    Rule {
        fate: Fate::OtherIteration,
        of: Scope::Windowed,
        passes: |row, bounds| {
            let from = |first| row.iteration.is_some_and(|iteration| first <= iteration);
            let until = |last| row.iteration.is_some_and(|iteration| iteration <= last);
            bounds.first.is_none_or(from) && bounds.last.is_none_or(until)
        },
        sql: Condition::InIterations,
    },
    Rule {
        fate: Fate::MissingValue,
        of: Scope::Durations,
        passes: |row, _| row.value.is_some(),
        sql: Condition::Sql("isNotNull(row_value)"),
    },
    Rule {
        fate: Fate::NotFinite,
        of: Scope::Durations,
        passes: |row, _| {
            row.value
                .is_some_and(|value| value.is_finite() && value <= LONGEST_DURATION)
        },
        sql: Condition::Sql("isFinite(row_value) AND row_value <= 1e9"),
    },
    Rule {
        fate: Fate::Negative,
        of: Scope::Durations,
        passes: |row, _| row.value.is_some_and(|value| 0.0 <= value),
        sql: Condition::Sql("row_value >= 0"),
    },
];

/// What becomes of a row of a metric.
#[must_use]
pub fn fate(metric: &WantedMetric, row: &Cells, bounds: &Bounds) -> Fate {
    let stops = |rule: &&Rule| rule.of.holds(metric) && !(rule.passes)(row, bounds);
    RULES.iter().find(stops).map_or(Fate::Taken, |rule| rule.fate)
}

#[cfg(test)]
mod tests {
    use super::*;

    const TIMER: &WantedMetric = &WANTED[place::TIMERS];
    const GROUP: &WantedMetric = &WANTED[place::GROUPS];
    const CALLS: &WantedMetric = &WANTED[place::TRACE];

    fn row() -> Cells {
        Cells {
            time: Some(50),
            rank: Some(3),
            iteration: Some(12),
            named: true,
            listed: true,
            empty: false,
            value: Some(0.5),
        }
    }

    fn bounds() -> Bounds {
        Bounds {
            start: Some(10),
            end: Some(90),
            first: Some(5),
            last: Some(20),
        }
    }

    #[test]
    fn the_first_reason_counts() {
        let taken = |metric| fate(metric, &row(), &bounds());
        assert_eq!([taken(TIMER), taken(GROUP), taken(CALLS)], [Fate::Taken; 3]);
        let late = Cells {
            time: Some(91),
            iteration: None,
            value: None,
            ..row()
        };
        assert_eq!(fate(TIMER, &late, &bounds()), Fate::AfterEnd);
        let early = Cells {
            time: Some(9),
            iteration: Some(99),
            ..row()
        };
        assert_eq!(fate(TIMER, &early, &bounds()), Fate::BeforeStart);
        assert_eq!(fate(TIMER, &Cells { rank: None, ..late }, &bounds()), Fate::Unreadable);
        assert_eq!(
            fate(
                TIMER,
                &Cells {
                    iteration: None,
                    ..early
                },
                &bounds()
            ),
            Fate::Unreadable
        );
        let useless = Cells {
            time: None,
            listed: false,
            ..row()
        };
        assert_eq!(fate(CALLS, &useless, &bounds()), Fate::NotNeeded);
        assert_eq!(
            fate(
                CALLS,
                &Cells {
                    named: false,
                    ..useless
                },
                &bounds()
            ),
            Fate::Unreadable
        );
        assert_eq!(fate(CALLS, &Cells { empty: true, ..row() }, &bounds()), Fate::NotNeeded);
    }

    #[test]
    fn both_ends_belong_to_the_window() {
        for (time, iteration) in [(10, 5), (90, 20)] {
            let edge = Cells {
                time: Some(time),
                iteration: Some(iteration),
                ..row()
            };
            assert_eq!(fate(TIMER, &edge, &bounds()), Fate::Taken);
        }
        let other = Cells {
            iteration: Some(21),
            ..row()
        };
        assert_eq!(fate(TIMER, &other, &bounds()), Fate::OtherIteration);
        assert_eq!(fate(TIMER, &other, &Bounds::default()), Fate::Taken);
        // Neither the start nor the iterations bound what is written once.
        let early = Cells {
            time: Some(0),
            iteration: None,
            value: None,
            ..row()
        };
        assert_eq!(fate(GROUP, &early, &bounds()), Fate::Taken);
    }

    #[test]
    fn only_durations_are_taken_of_timers() {
        for (value, expected) in [
            (None, Fate::MissingValue),
            (Some(f64::NAN), Fate::NotFinite),
            (Some(f64::NEG_INFINITY), Fate::NotFinite),
            (Some(1e308), Fate::NotFinite),
            (Some(1e9), Fate::Taken),
            (Some(-1e-300), Fate::Negative),
            (Some(-0.0), Fate::Taken),
        ] {
            assert_eq!(fate(TIMER, &Cells { value, ..row() }, &bounds()), expected);
            assert_eq!(fate(CALLS, &Cells { value, ..row() }, &bounds()), Fate::Taken);
        }
    }

    #[test]
    fn codes_come_back() {
        assert!(
            Fate::ALL
                .into_iter()
                .all(|fate| Fate::of_code(fate.code()) == Some(fate))
        );
        assert_eq!(Fate::of_code(99), None);
        assert!(RULES.iter().all(|rule| rule.fate != Fate::Taken));
    }
}
