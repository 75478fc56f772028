//! Timer rows as ranks x columns: an answer's line is a rank with its durations as arrays, so that no name travels twice.
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
use super::tally::{bound, rows, whole};
use crate::source::{Micros, SourceError};

/// Columns of so many iterations show a repeated row in the bits of one integer.
const BITS: usize = 64;

/// Which rows of a metric are wanted, and how they are put together.
#[derive(Debug, Clone, Copy)]
pub struct Columns<'a> {
    /// Name of the timer.
    pub timer: &'a str,
    /// Iterations that count, ascending.
    pub iterations: &'a [i64],
    /// The run that each of them counts from.
    pub runs: &'a [&'a str],
    /// Iterations that a column puts together.
    pub length: usize,
    /// What stands for them: the shortest duration, else the mean.
    pub shortest: bool,
    /// How many rows the server counted before.
    pub counted: u64,
}

/// The rows of one rank, in no order; one of them may repeat another.
#[derive(Debug, Clone, PartialEq, Row, Deserialize)]
pub struct RankRows {
    /// The rank.
    pub rank_number: i64,
    /// Iteration of each row.
    pub iteration_numbers: Vec<i64>,
    /// Time of each row.
    pub times: Vec<Micros>,
    /// Duration of each row, finite and not below 0.
    pub seconds: Vec<f64>,
}

/// The columns of one rank, in no order, with sums over all of its rows. Of rows that repeat another the latest counts.
#[derive(Debug, Clone, PartialEq, Row, Deserialize)]
pub struct RankColumns {
    /// The rank.
    pub rank_number: i64,
    /// Columns in which it has a row, by place.
    pub places: Vec<u32>,
    /// What stands for the durations above 0 of each; 0 where there is none.
    pub seconds: Vec<f64>,
    /// Rows, with those that repeat another.
    pub row_count: u64,
    /// Rows that count.
    pub distinct: u64,
    /// Of them those with a duration of 0.
    pub zeros: u64,
    /// Of them those above 0.
    pub ran: u64,
    /// Sum of these.
    pub total: f64,
    /// The shortest of these; 0 without any.
    pub least: f64,
    /// The longest of these; 0 without any.
    pub most: f64,
}

/// One iteration's longest duration.
#[derive(Debug, Clone, Copy, PartialEq, Row, Deserialize)]
pub struct Longest {
    /// The iteration.
    pub iteration_number: i64,
    /// Seconds.
    pub seconds: f64,
}

impl Table {
    /// Passes the rows of a timer on, rank by rank. `begin` makes what they are added to, anew when a query is sent again.
    ///
    /// # Errors
    /// A query that fails for good.
    pub fn rank_rows<T>(
        &self,
        wanted: &Wanted<'_>,
        metric: usize,
        columns: &Columns<'_>,
        begin: impl Fn() -> T,
        add: impl Fn(&mut T, &RankRows),
    ) -> Result<T, SourceError> {
        let sql = format!(
            "SELECT r AS rank_number, groupArray(i) AS iteration_numbers, groupArray(t) AS times, \
             groupArray(x) AS seconds FROM ({}) GROUP BY r",
            self.counting(wanted, columns)
        );
        let count = |line: &RankRows| line.seconds.len() as u64;
        self.fold(&sql, wanted, metric, columns, begin, add, count)
    }

    /// Passes the columns of a timer on, rank by rank. Rows that repeat others are looked for only where `repeated` says
    /// that there are some: it costs the server several times as much.
    ///
    /// # Errors
    /// A query that fails for good.
    pub fn rank_columns<T>(
        &self,
        wanted: &Wanted<'_>,
        metric: usize,
        columns: &Columns<'_>,
        repeated: bool,
        begin: impl Fn() -> T,
        add: impl Fn(&mut T, &RankColumns),
    ) -> Result<T, SourceError> {
        let of_column = if columns.shortest { "lo" } else { "total / k" };
        let distinct = if repeated {
            "count()"
        } else if columns.length <= BITS {
            "toUInt64(bitCount(groupBitOr(bitShiftLeft(toUInt64(1), toUInt8(p % {length:UInt32})))))"
        } else {
            "uniqExact(p)"
        };
        let sql = format!(
            "SELECT r AS rank_number, groupArray(toUInt32(b)) AS places, groupArray(cell) AS seconds, \
             sum(c) AS row_count, sum(d) AS distinct, sum(z) AS zeros, sum(k) AS ran, sum(whole) AS total, \
             minIf(lo, k > 0) AS least, max(hi) AS most \
             FROM (SELECT r, b, c, d, z, k, total AS whole, lo, hi, if(k > 0, {of_column}, 0) AS cell \
             FROM (SELECT r, intDiv(p, {{length:UInt32}}) AS b, sum(w) AS c, {distinct} AS d, countIf(x = 0) AS z, \
             countIf(x > 0) AS k, sumIf(x, x > 0) AS total, minIf(x, x > 0) AS lo, maxIf(x, x > 0) AS hi \
             FROM ({}) GROUP BY r, b)) GROUP BY r",
            self.once(wanted, columns, repeated)
        );
        self.fold(&sql, wanted, metric, columns, begin, add, |line| line.row_count)
    }

    /// The longest sum of some timers that any rank ran all of, by iteration.
    ///
    /// # Errors
    /// A query that fails for good.
    pub fn longest(
        &self,
        wanted: &Wanted<'_>,
        metric: usize,
        parts: &[Columns<'_>],
        repeated: bool,
    ) -> Result<Vec<Longest>, SourceError> {
        let Some(first) = parts.first() else {
            return Ok(Vec::new());
        };
        let names: Vec<&str> = parts.iter().map(|part| part.timer).collect();
        let of_rank = match parts {
            [_] => format!(
                "SELECT i, x AS whole FROM ({}) WHERE x > 0",
                self.once(wanted, first, repeated)
            ),
            _ => {
                let each = names.iter().enumerate().map(|(place, _)| {
                    let of_part = self.once(wanted, first, repeated);
                    format!(
                        "SELECT r, i, x FROM ({}) WHERE x > 0",
                        of_part.replace("{timer:", &format!("{{timer{place}:"))
                    )
                });
                format!(
                    "SELECT i, sum(x) AS whole FROM ({}) GROUP BY r, i HAVING count() = {}",
                    each.collect::<Vec<_>>().join(" UNION ALL "),
                    names.len()
                )
            }
        };
        let sql = format!("SELECT i AS iteration_number, max(whole) AS seconds FROM ({of_rank}) GROUP BY i ORDER BY i");
        let lines = self.session.run("read the step times", async |attempt| {
            let mut query = asked(attempt, &sql, wanted, metric, first);
            for (place, name) in names.iter().enumerate() {
                query = query.param(&format!("timer{place}"), name);
            }
            query.fetch_all().await.map_err(|error| attempt.failure(&error))
        })?;
        Ok(lines)
    }

    /// A subquery: rank `r`, iteration `i`, its place `p`, time `t` and duration `x` of each row that counts.
    fn counting(&self, wanted: &Wanted<'_>, columns: &Columns<'_>) -> String {
        let iterations = columns.iterations;
        let first = iterations.first().copied().unwrap_or_default();
        let gapless = iterations
            .iter()
            .enumerate()
            .all(|(place, &at)| at.checked_sub(first) == Some(place as i64));
        let place = if gapless {
            format!(
                "if(i < {first} OR i - {first} >= {}, -1, i - {first})",
                iterations.len()
            )
        } else {
            "transform(i, {numbers:Array(Int64)}, {places:Array(Int64)}, toInt64(-1))".to_owned()
        };
        let run = match columns.runs {
            [first, rest @ ..] if rest.iter().all(|run| run == first) => "{run:String}",
            _ => "transform(i, {numbers:Array(Int64)}, {runs:Array(String)}, '')",
        };
        format!(
            "SELECT r, i, {place} AS p, t, assumeNotNull(v) AS x FROM ({}) \
             WHERE p >= 0 AND u = {run} AND ifNull(isFinite(v) AND v >= 0, 0)",
            rows(&self.layout, wanted, " AND subname = {timer:String}")
        )
    }

    /// The same with `w`, how many rows each stands for, itself counted.
    fn once(&self, wanted: &Wanted<'_>, columns: &Columns<'_>, repeated: bool) -> String {
        let counting = self.counting(wanted, columns);
        if repeated {
            format!(
                "SELECT r, i, p, argMax(y, (t, y)) AS x, count() AS w FROM (SELECT r, i, p, t, x AS y FROM ({counting})) GROUP BY r, i, p"
            )
        } else {
            format!("SELECT r, i, p, x, toUInt64(1) AS w FROM ({counting})")
        }
    }

    #[expect(
        clippy::too_many_arguments,
        reason = "what is asked for, and three steps of taking it in"
    )]
    fn fold<L, T>(
        &self,
        sql: &str,
        wanted: &Wanted<'_>,
        metric: usize,
        columns: &Columns<'_>,
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
            let mut lines = asked(attempt, sql, wanted, metric, columns)
                .fetch::<L>()
                .map_err(failure)?;
            let (mut taken, mut got) = (begin(), 0);
            while let Some(line) = lines.next().await.map_err(failure)? {
                got += count(&line);
                add(&mut taken, &line);
            }
            whole(got, columns.counted)?;
            Ok::<T, Failure>(taken)
        })?;
        Ok(taken)
    }
}

fn asked(attempt: &Attempt<'_>, sql: &str, wanted: &Wanted<'_>, metric: usize, columns: &Columns<'_>) -> Query {
    let places: Vec<i64> = (0..columns.iterations.len() as i64).collect();
    bound(attempt, sql, wanted, metric)
        .param("timer", columns.timer)
        .param("length", columns.length.max(1))
        .param("numbers", columns.iterations)
        .param("places", places)
        .param("run", columns.runs.first().copied().unwrap_or_default())
        .param("runs", columns.runs)
}
