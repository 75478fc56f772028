//! What the timer rows of a window hold, summed up on the server: values by iteration and timer, nodes by rank.

use clickhouse::Row;
use clickhouse::query::Query;
use serde::Deserialize;

use super::Table;
use super::layout::{Layout, NULL};
use super::pull::Wanted;
use super::session::Attempt;
use crate::source::{Micros, SourceError};

/// The rows of one iteration of one run, by what their values are worth.
#[derive(Debug, Clone, PartialEq, Eq, Row, Deserialize)]
pub struct Tally {
    /// The run; empty where the rows name none.
    pub run: String,
    /// The iteration.
    pub iteration_number: i64,
    /// Without a value.
    pub missing: u64,
    /// NaN or infinite.
    pub not_finite: u64,
    /// Below 0.
    pub negative: u64,
    /// The others.
    pub usable: u64,
    /// Time of the first usable row; meaningless without one.
    pub first_time: Micros,
    /// Time of the last usable row; meaningless without one.
    pub last_time: Micros,
    /// Time of the first row of any of these.
    pub first_seen: Micros,
    /// Time of the last row of any of these.
    pub last_seen: Micros,
    /// Lines of the answer that this one came in.
    pub answer_rows: u64,
}

impl Tally {
    /// All of its rows.
    #[must_use]
    pub fn rows(&self) -> u64 {
        self.missing + self.not_finite + self.negative + self.usable
    }
}

/// A rank with a usable row, and the node that such rows name.
#[derive(Debug, Clone, PartialEq, Eq, Row, Deserialize)]
pub struct Placed {
    /// The run; empty where the rows name none.
    pub run: String,
    /// The rank.
    pub rank_number: u32,
    /// Its node.
    pub node_name: String,
    /// Time of the last such row.
    pub last_time: Micros,
    /// Lines of the answer that this one came in.
    pub answer_rows: u64,
}

/// Whether a value is a duration.
pub(super) const USABLE: &str = "ifNull(isFinite(v) AND v >= 0, 0)";

impl Table {
    /// Sums up the rows of one metric's window by run and iteration, in their order.
    ///
    /// # Errors
    /// A query that fails for good.
    pub fn tally(&self, wanted: &Wanted<'_>, metric: usize) -> Result<Vec<Tally>, SourceError> {
        let From { with, from } = rows(&self.layout, wanted, "");
        let sql = format!(
            "{with} SELECT u AS run, i AS iteration_number, countIf(isNull(v)) AS missing, \
             countIf(isNotNull(v) AND NOT isFinite(v)) AS not_finite, countIf(isFinite(v) AND v < 0) AS negative, \
             countIf({USABLE}) AS usable, minIf(t, {USABLE}) AS first_time, maxIf(t, {USABLE}) AS last_time, \
             min(t) AS first_seen, max(t) AS last_seen, count() OVER () AS answer_rows \
             {from} GROUP BY u, i ORDER BY u, i"
        );
        self.lines("sum up the job's rows", &sql, wanted, metric, |line: &Tally| line.answer_rows)
    }

    /// The ranks with a row in one metric's window, ascending.
    ///
    /// # Errors
    /// A query that fails for good.
    pub fn ranks(&self, wanted: &Wanted<'_>, metric: usize) -> Result<Vec<u32>, SourceError> {
        let From { with, from } = rows(&self.layout, wanted, "");
        let sql = format!("{with} SELECT toUInt32(r) AS rank_number, count() OVER () AS answer_rows {from} GROUP BY rank_number ORDER BY rank_number");
        let lines = self.lines("find the job's ranks", &sql, wanted, metric, |line: &(u32, u64)| line.1)?;
        Ok(lines.into_iter().map(|(found, _)| found).collect())
    }

    /// The subnames in one metric's window, sorted.
    ///
    /// # Errors
    /// A query that fails for good.
    pub fn subnames(&self, wanted: &Wanted<'_>, metric: usize) -> Result<Vec<String>, SourceError> {
        let From { with, from } = rows(&self.layout, wanted, "");
        let sql = format!("{with} SELECT s AS timer, count() OVER () AS answer_rows {from} GROUP BY timer ORDER BY timer");
        let lines = self.lines("find the job's timers", &sql, wanted, metric, |line: &(String, u64)| line.1)?;
        Ok(lines.into_iter().map(|(found, _)| found).collect())
    }

    /// The iterations of one metric's window in which any of some subnames has a row, ascending.
    ///
    /// # Errors
    /// A query that fails for good.
    pub fn iterations_with(
        &self,
        wanted: &Wanted<'_>,
        metric: usize,
        subnames: &[&str],
    ) -> Result<Vec<i64>, SourceError> {
        let From { with, from } = rows(&self.layout, wanted, " AND subname IN {asked:Array(String)}");
        let sql = format!("{with} SELECT i AS iteration_number, count() OVER () AS answer_rows {from} \
             GROUP BY iteration_number ORDER BY iteration_number");
        let lines = self.session.run("find the job's transfers", async |attempt| {
            let ask = |sql: &str| bound(attempt, sql, wanted, metric).param("asked", subnames);
            attempt.list(&sql, ask, |line: &(i64, u64)| line.1).await
        })?;
        Ok(lines.into_iter().map(|(found, _)| found).collect())
    }

    /// Whether rows can name nodes.
    #[must_use]
    pub fn has_nodes(&self) -> bool {
        self.layout.has_node
    }

    /// The nodes that the usable rows of one metric's window name, by run, rank and node.
    ///
    /// # Errors
    /// A query that fails for good.
    pub fn placed(&self, wanted: &Wanted<'_>, metric: usize) -> Result<Vec<Placed>, SourceError> {
        let From { with, from } = rows(&self.layout, wanted, &format!(" AND n != '' AND {USABLE}"));
        let sql = format!(
            "{with} SELECT u AS run, toUInt32(r) AS rank_number, n AS node_name, max(t) AS last_time, \
             count() OVER () AS answer_rows \
             {from} GROUP BY u, rank_number, n ORDER BY u, rank_number, n"
        );
        self.lines("find the ranks' nodes", &sql, wanted, metric, |line: &Placed| line.answer_rows)
    }

    fn lines<T>(
        &self,
        doing: &'static str,
        sql: &str,
        wanted: &Wanted<'_>,
        metric: usize,
        rows: impl Fn(&T) -> u64,
    ) -> Result<Vec<T>, SourceError>
    where
        T: clickhouse::RowOwned + clickhouse::RowRead,
    {
        let lines = self.session.run(doing, async |attempt| {
            let ask = |sql: &str| bound(attempt, sql, wanted, metric);
            attempt.list(sql, ask, &rows).await
        })?;
        Ok(lines)
    }
}

/// The readable rows of a metric, as a condition; where it is not `windowed`, neither start nor iterations bound them.
fn readable(layout: &Layout, wanted: &Wanted<'_>, windowed: bool) -> String {
    let (start, in_window) = if windowed {
        let in_window = " AND iteration >= {first:Int64} AND iteration <= {last:Int64}";
        (wanted.start, in_window)
    } else {
        (None, "")
    };
    let between = layout.between(start, wanted.end);
    format!("rank >= 0 AND rank <= 4294967295 AND isNotNull(subname) AND isNotNull(timestamp){in_window}{between}")
}

/// A condition that leaves the readable rows of the window of the metric `{metric:String}` out.
pub(super) fn beside(layout: &Layout, wanted: &Wanted<'_>) -> String {
    format!(
        " AND NOT ifNull(metric_name = {{metric:String}} AND {}, 0)",
        readable(layout, wanted, true)
    )
}

/// Rows that a query is about: what comes before its SELECT, and what comes from FROM on. In one query, so that the shards
/// of a distributed table sum up their own rows instead of sending them.
pub(super) struct From {
    pub with: String,
    pub from: String,
}

/// The readable rows of the window that fit `condition`, as name `s`, run `u`, node `n`, rank `r`, iteration `i`, time `t`
/// and value `v`.
pub(super) fn rows(layout: &Layout, wanted: &Wanted<'_>, condition: &str) -> From {
    metric_rows(layout, wanted, true, condition)
}

/// The same of a metric that may not be `windowed`.
pub(super) fn metric_rows(layout: &Layout, wanted: &Wanted<'_>, windowed: bool, condition: &str) -> From {
    let Layout {
        from,
        micros,
        subname,
        node,
        run,
        value,
        ..
    } = layout;
    From {
        with: format!(
            "WITH {subname} AS s, {run} AS u, {node} AS n, toInt64(assumeNotNull(rank)) AS r, \
             ifNull(toInt64(iteration), {NULL}) AS i, assumeNotNull({micros}) AS t, {value} AS v"
        ),
        from: format!(
            "FROM {from} WHERE job = {{job:String}} AND metric_name = {{metric:String}} AND {}{condition}",
            readable(layout, wanted, windowed)
        ),
    }
}

/// A query with what [`rows`] needs.
pub(super) fn bound(attempt: &Attempt<'_>, sql: &str, wanted: &Wanted<'_>, metric: usize) -> Query {
    let (first, last) = wanted.iterations;
    let name = wanted.metrics.get(metric).map_or("", |metric| metric.name);
    attempt
        .query(sql)
        .param("job", wanted.job)
        .param("metric", name)
        .param("first", first.unwrap_or(0).max(0))
        .param("last", last.unwrap_or(i64::MAX))
}
