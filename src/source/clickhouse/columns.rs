//! Timer rows as ranks x columns: an answer's line is a timer and rank with its durations as arrays, so that no name
//! travels twice.
//!
//! A column is an iteration or, where all of them would be too many, some in a row that the server puts together, with
//! the sums over all of them beside.

use clickhouse::Row;
use clickhouse::query::Query;
use serde::Deserialize;
use serde::de::DeserializeOwned;

use super::Table;
use super::error::Failure;
use super::pull::Wanted;
use super::session::Attempt;
use super::tally::{From, bound, rows};
use super::window;
use crate::source::{Micros, SourceError};

/// Columns of so many iterations show a repeated row in the bits of one integer.
const BITS: usize = 64;
/// The place of timers that are not asked for.
const NOT_ASKED: u16 = u16::MAX;
/// Durations are summed up as integers of 2^-64 s: whatever the order in which threads and shards add, the sum is the same.
const GRAIN: &str = "18446744073709551616.";
/// The longest duration (s) that such a sum takes as it is: more than any step, and far below what the integers hold.
const MOST: &str = "1e12";

/// Which rows of a metric are wanted, and how they are put together.
#[derive(Debug, Clone, Copy)]
pub struct ColumnsAsked<'a> {
    /// Names of the timers.
    pub timers: &'a [&'a str],
    /// What stands for the iterations of a column in each of them: a [`Stands`] as a number.
    pub stands: &'a [u8],
    /// Iterations that count, ascending; [`ColumnsAsked::MOST`] of them at most, of [`ColumnsAsked::MOST_LISTED`] where some between
    /// them are missing or they count from several runs.
    pub iterations: &'a [i64],
    /// The run that each of them counts from.
    pub runs: &'a [&'a str],
    /// Time of the first and of the last of these rows.
    pub times: (Micros, Micros),
    /// Iterations that a column puts together.
    pub length: usize,
    /// The iteration of each column that [`Stands::Sample`] takes, by its place.
    pub samples: &'a [u16],
    /// How many rows the server counted before.
    pub counted: u64,
}

/// What stands for the durations above 0 of a column's iterations.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Stands {
    /// Their mean.
    Mean = 0,
    /// The shortest.
    Shortest = 1,
    /// That of one iteration, the same on all ranks.
    Sample = 2,
}

impl ColumnsAsked<'_> {
    /// Iterations that one query takes: their places travel as two bytes.
    pub const MOST: usize = 1 << 16;
    /// Numbers that one parameter lists: servers take parameters of 128 KB, and a number has 20 digits at most.
    pub const MOST_LISTED: usize = 5_000;

    /// Whether the iterations have no gap.
    #[must_use]
    pub fn are_gapless(iterations: &[i64]) -> bool {
        match (iterations.first(), iterations.last()) {
            (Some(&first), Some(&last)) => last.checked_sub(first) == Some(iterations.len() as i64 - 1),
            _ => true,
        }
    }

    /// Whether the place of an iteration and its run need no list.
    fn is_plain(&self) -> bool {
        Self::are_gapless(self.iterations) && self.runs.windows(2).all(|pair| pair[0] == pair[1])
    }

    /// The distinct runs, sorted.
    fn distinct_runs(&self) -> Vec<&str> {
        let mut runs = self.runs.to_vec();
        runs.sort_unstable();
        runs.dedup();
        runs
    }
}

/// The rows of one timer and rank, in no order.
#[derive(Debug, Clone, PartialEq, Row, Deserialize)]
pub struct RankRows {
    /// Position in [`ColumnsAsked::timers`].
    pub timer: u16,
    /// The rank.
    pub rank_number: u32,
    /// Iteration of each row, by its place in [`ColumnsAsked::iterations`].
    pub places: Vec<u16>,
    /// Duration of each row, finite and not below 0.
    pub seconds: Vec<f64>,
    /// Rows, with those that repeat another.
    pub row_count: u32,
}

/// The columns of one timer and rank, in no order, with sums over all of its rows. Of rows that repeat another the latest
/// counts.
#[derive(Debug, Clone, PartialEq, Row, Deserialize)]
pub struct RankColumns {
    /// Position in [`ColumnsAsked::timers`].
    pub timer: u16,
    /// The rank.
    pub rank_number: u32,
    /// Columns in which it has a row, by position.
    pub places: Vec<u16>,
    /// What stands for the durations above 0 of each; 0 where there is none, NaN where the sampled iteration has no row.
    pub seconds: Vec<f64>,
    /// Rows, with those that repeat another.
    pub row_count: u32,
    /// Rows that count.
    pub distinct: u32,
    /// Of them those with a duration of 0.
    pub zeros: u32,
    /// Sum of the others.
    pub total: f64,
    /// The shortest of the others; infinite without any.
    pub least: f64,
    /// The longest of the others; 0 without any.
    pub most: f64,
}

/// One iteration's longest duration.
#[derive(Debug, Clone, Copy, PartialEq, Row, Deserialize)]
pub struct Longest {
    /// The iteration.
    pub iteration_number: i64,
    /// Seconds.
    pub seconds: f64,
    /// Lines of the answer that this one came in.
    pub answer_rows: u64,
}

impl Table {
    /// Passes rows on, timer by timer and rank by rank. `begin` makes what they are added to, anew when a query is sent
    /// again. Of rows that repeat another the latest comes alone where `repeated` says that there are some, which costs the
    /// server several times as much; else all of them come.
    ///
    /// # Errors
    /// A query that fails for good.
    pub fn rank_rows<T>(
        &self,
        (wanted, metric): (&Wanted<'_>, usize),
        columns: &ColumnsAsked<'_>,
        repeated: bool,
        begin: impl Fn() -> T,
        add: impl Fn(&mut T, &RankRows),
    ) -> Result<T, SourceError> {
        let From { with, from } = self.once((wanted, metric), columns, repeated);
        let sql = format!(
            "{with} SELECT timer_place AS timer, rank_code AS rank_number, groupArray(toUInt16(step_place)) AS places, \
             groupArray(duration) AS seconds, toUInt32(sum(stands_for_rows)) AS row_count {from} \
             GROUP BY timer_place, rank_code"
        );
        self.fold(&sql, (wanted, metric), columns, begin, add, |line| {
            line.row_count.into()
        })
    }

    /// Passes columns on, timer by timer and rank by rank. Rows that repeat others are looked for only where `repeated`
    /// says that there are some: it costs the server several times as much.
    ///
    /// # Errors
    /// A query that fails for good.
    pub fn rank_columns<T>(
        &self,
        (wanted, metric): (&Wanted<'_>, usize),
        columns: &ColumnsAsked<'_>,
        repeated: bool,
        begin: impl Fn() -> T,
        add: impl Fn(&mut T, &RankColumns),
    ) -> Result<T, SourceError> {
        let distinct = if repeated {
            "count()"
        } else if columns.length <= BITS {
            "toUInt64(bitCount(groupBitOr(bitShiftLeft(toUInt64(1), toUInt8(step_place % {length:UInt32})))))"
        } else {
            "uniqExact(step_place)"
        };
        let From { with, from } = self.once((wanted, metric), columns, repeated);
        let sql = format!(
            "SELECT timer_place AS timer, rank_code AS rank_number, groupArray(column_place) AS places, \
             groupArray(cell) AS seconds, toUInt32(sum(column_rows)) AS row_count, \
             toUInt32(sum(column_distinct)) AS distinct, toUInt32(sum(column_zeros)) AS zeros, \
             toFloat64(sum(grains)) / {GRAIN} AS total, min(shortest) AS least, max(longest) AS most \
             FROM ({with} SELECT timer_place, rank_code, toUInt16(intDiv(step_place, {{length:UInt32}})) AS column_place, \
             sum(stands_for_rows) AS column_rows, {distinct} AS column_distinct, countIf(duration = 0) AS column_zeros, \
             sum(toInt128(least(duration, {MOST}) * {GRAIN})) AS grains, \
             min(if(duration > 0, duration, inf)) AS shortest, max(duration) AS longest, \
             max(if(step_place IN {{samples:Array(UInt16)}}, duration, -1.)) AS sampled, \
             {{stands:Array(UInt8)}}[timer_place + 1] AS stands_for, \
             multiIf(stands_for = {sample}, if(sampled < 0, nan, sampled), longest = 0, 0., \
             stands_for = {shortest_stands}, shortest, \
             toFloat64(grains) / {GRAIN} / (toInt64(column_distinct) - toInt64(column_zeros))) AS cell \
             {from} GROUP BY timer_place, rank_code, column_place) GROUP BY timer_place, rank_code",
            sample = Stands::Sample as u8,
            shortest_stands = Stands::Shortest as u8,
        );
        self.fold(&sql, (wanted, metric), columns, begin, add, |line| {
            line.row_count.into()
        })
    }

    /// The longest sum of the timers of any rank that ran all of them, by iteration.
    ///
    /// # Errors
    /// A query that fails for good.
    pub fn longest(
        &self,
        (wanted, metric): (&Wanted<'_>, usize),
        columns: &ColumnsAsked<'_>,
        repeated: bool,
    ) -> Result<Vec<Longest>, SourceError> {
        let From { with, from } = self.once((wanted, metric), columns, repeated);
        let sql = match columns.timers {
            [_] => format!(
                "{with} SELECT row_iteration AS iteration_number, max(duration) AS seconds, count() OVER () AS answer_rows {from} \
                 GROUP BY row_iteration HAVING seconds > 0 ORDER BY row_iteration"
            ),
            timers => format!(
                "SELECT iteration_number, max(whole) AS seconds, count() OVER () AS answer_rows FROM ({with} \
                 SELECT row_iteration AS iteration_number, sum(duration) AS whole \
                 {from} GROUP BY rank_code, row_iteration HAVING countIf(duration > 0) = {}) GROUP BY iteration_number ORDER BY iteration_number",
                timers.len()
            ),
        };
        let lines = self.session.run("read the step times", async |attempt| {
            let ask = |sql: &str| asked(attempt, sql, (wanted, metric), columns);
            attempt.list(&sql, ask, |line: &Longest| line.answer_rows).await
        })?;
        Ok(lines)
    }

    /// `timer_place`, `rank_code`, `row_iteration`, its place `step_place`, `row_micros` and `duration` of each row that
    /// counts. Timer, rank and place are as narrow as they can be: the server groups by them.
    fn counting(&self, (wanted, metric): (&Wanted<'_>, usize), columns: &ColumnsAsked<'_>) -> From {
        let iterations = columns.iterations;
        let (first, last) = (iterations.first(), iterations.last());
        let (first, last) = (first.copied().unwrap_or_default(), last.copied().unwrap_or_default());
        let place = if columns.is_plain() {
            format!("row_iteration - {first}")
        } else {
            "transform(row_iteration, {numbers:Array(Int64)}, {places:Array(Int64)}, toInt64(-1))".to_owned()
        };
        // The code of the row's run is that of the run from which its iteration counts.
        let of_that_run = if columns.is_plain() {
            "row_run = {run:String}"
        } else {
            "transform(row_run, {run_names:Array(String)}, {run_codes:Array(Int64)}, toInt64(-1)) \
             = transform(row_iteration, {numbers:Array(Int64)}, {run_of:Array(Int64)}, toInt64(-2))"
        };
        let times = self.layout.between(Some(columns.times.0), Some(columns.times.1));
        let counts = format!(
            " AND iteration >= {first} AND iteration <= {last}{times} AND timer_place != {NOT_ASKED} AND step_place >= 0 \
             AND {of_that_run} AND {}",
            window::is_usable()
        );
        let From { with, from } = rows(&self.layout, wanted, metric, &counts);
        From {
            with: format!(
                "{with}, toUInt16(transform(row_subname, {{timers:Array(String)}}, {{codes:Array(UInt16)}}, toUInt16({NOT_ASKED}))) \
                 AS timer_place, toUInt32(row_rank) AS rank_code, {place} AS step_place, \
                 assumeNotNull(row_value) AS duration, toUInt64(1) AS stands_for_rows"
            ),
            from,
        }
    }

    /// The same, without those that another one repeats later where there are `repeated` ones; `stands_for_rows`
    /// is how many rows each stands for, itself counted.
    fn once(&self, (wanted, metric): (&Wanted<'_>, usize), columns: &ColumnsAsked<'_>, repeated: bool) -> From {
        let counting = self.counting((wanted, metric), columns);
        if !repeated {
            return counting;
        }
        let From { with, from } = counting;
        let latest = format!(
            "{with} SELECT timer_place, rank_code, row_iteration, step_place, argMax(duration, (row_micros, duration)) AS latest, \
             count() AS rows_of_it {from} GROUP BY timer_place, rank_code, row_iteration, step_place"
        );
        From {
            with: "WITH latest AS duration, rows_of_it AS stands_for_rows".to_owned(),
            from: format!("FROM ({latest})"),
        }
    }

    fn fold<L, T>(
        &self,
        sql: &str,
        (wanted, metric): (&Wanted<'_>, usize),
        columns: &ColumnsAsked<'_>,
        begin: impl Fn() -> T,
        add: impl Fn(&mut T, &L),
        count: impl Fn(&L) -> u64,
    ) -> Result<T, SourceError>
    where
        L: clickhouse::RowOwned + DeserializeOwned,
        for<'a> L: Row<Value<'a> = L>,
    {
        let taken = self.session.run("read the job's rows", async |attempt| {
            let failure = |error| attempt.failure(&error);
            let query = asked(attempt, sql, (wanted, metric), columns);
            let mut lines = query.fetch::<L>().map_err(failure)?;
            let (mut taken, mut got) = (begin(), 0);
            while let Some(line) = lines.next().await.map_err(failure)? {
                got += count(&line);
                add(&mut taken, &line);
            }
            // An answer with fewer rows than were counted before broke off, however well it ended.
            if got < columns.counted {
                let counted = columns.counted;
                return Err(Failure::Cut { got, counted });
            }
            Ok(taken)
        })?;
        Ok(taken)
    }
}

fn asked(
    attempt: &Attempt<'_>,
    sql: &str,
    (wanted, metric): (&Wanted<'_>, usize),
    columns: &ColumnsAsked<'_>,
) -> Query {
    let places = |count: usize| -> Vec<i64> { (0..count as i64).collect() };
    let query = bound(attempt, sql, wanted, metric)
        .param("timers", columns.timers)
        .param("codes", places(columns.timers.len()))
        .param("stands", columns.stands)
        .param("samples", columns.samples)
        .param("length", columns.length.max(1))
        .param("run", columns.runs.first().copied().unwrap_or_default());
    if columns.is_plain() {
        return query;
    }
    let runs = columns.distinct_runs();
    let run_of: Vec<i64> = columns
        .runs
        .iter()
        .map(|run| runs.partition_point(|known| known < run) as i64)
        .collect();
    query
        .param("numbers", columns.iterations)
        .param("places", places(columns.iterations.len()))
        .param("run_codes", places(runs.len()))
        .param("run_names", runs)
        .param("run_of", run_of)
}
