//! What the timer rows of a window hold, summed up on the server: values by iteration and timer, nodes by rank.

use clickhouse::Row;
use clickhouse::query::Query;
use serde::Deserialize;

use super::Table;
use super::layout::{Layout, NULL};
use super::pull::Wanted;
use super::session::Attempt;
use super::window;
use crate::source::fate::Fate;
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

impl Table {
    /// Sums up the rows of one metric's window by run and iteration, in their order.
    ///
    /// # Errors
    /// A query that fails for good.
    pub fn tally(&self, wanted: &Wanted<'_>, metric: usize) -> Result<Vec<Tally>, SourceError> {
        let From { with, from } = rows(&self.layout, wanted, metric, "");
        let usable = window::is_usable();
        let [missing, not_finite, negative] =
            [Fate::MissingValue, Fate::NotFinite, Fate::Negative].map(window::value_is);
        let sql = format!(
            "{with} SELECT row_run AS run, row_iteration AS iteration_number, countIf({missing}) AS missing, \
             countIf({not_finite}) AS not_finite, countIf({negative}) AS negative, countIf({usable}) AS usable, \
             minIf(row_micros, {usable}) AS first_time, maxIf(row_micros, {usable}) AS last_time, \
             min(row_micros) AS first_seen, max(row_micros) AS last_seen, \
             count() OVER () AS answer_rows \
             {from} GROUP BY row_run, row_iteration ORDER BY row_run, row_iteration"
        );
        self.lines("sum up the job's rows", &sql, wanted, metric, |line: &Tally| {
            line.answer_rows
        })
    }

    /// The ranks with a row in one metric's window, ascending.
    ///
    /// # Errors
    /// A query that fails for good.
    pub fn ranks(&self, wanted: &Wanted<'_>, metric: usize) -> Result<Vec<u32>, SourceError> {
        let From { with, from } = rows(&self.layout, wanted, metric, "");
        let sql = format!(
            "{with} SELECT toUInt32(row_rank) AS rank_number, count() OVER () AS answer_rows {from} \
             GROUP BY rank_number ORDER BY rank_number"
        );
        let lines = self.lines("find the job's ranks", &sql, wanted, metric, |line: &(u32, u64)| line.1)?;
        Ok(lines.into_iter().map(|(found, _)| found).collect())
    }

    /// The subnames in one metric's window, sorted.
    ///
    /// # Errors
    /// A query that fails for good.
    pub fn subnames(&self, wanted: &Wanted<'_>, metric: usize) -> Result<Vec<String>, SourceError> {
        let From { with, from } = rows(&self.layout, wanted, metric, "");
        let sql = format!(
            "{with} SELECT row_subname AS timer, count() OVER () AS answer_rows {from} GROUP BY timer ORDER BY timer"
        );
        let lines = self.lines("find the job's timers", &sql, wanted, metric, |line: &(String, u64)| {
            line.1
        })?;
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
        let From { with, from } = rows(&self.layout, wanted, metric, " AND subname IN {asked:Array(String)}");
        let sql = format!(
            "{with} SELECT row_iteration AS iteration_number, count() OVER () AS answer_rows {from} \
             GROUP BY iteration_number ORDER BY iteration_number"
        );
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
        let From { with, from } = rows(
            &self.layout,
            wanted,
            metric,
            &format!(" AND row_node != '' AND {}", window::is_usable()),
        );
        let sql = format!(
            "{with} SELECT row_run AS run, toUInt32(row_rank) AS rank_number, row_node AS node_name, max(row_micros) AS last_time, \
              count() OVER () AS answer_rows \
             {from} GROUP BY row_run, rank_number, row_node ORDER BY row_run, rank_number, row_node"
        );
        self.lines("find the ranks' nodes", &sql, wanted, metric, |line: &Placed| {
            line.answer_rows
        })
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

/// A condition that leaves the rows of the window of a metric, named `{metric:String}`, out.
pub(super) fn beside(layout: &Layout, wanted: &Wanted<'_>, metric: usize) -> String {
    let Some(metric) = wanted.metrics.get(metric) else {
        return String::new();
    };
    let in_window = window::in_window(layout, wanted, metric);
    format!(" AND NOT ifNull(metric_name = {{metric:String}} AND {in_window}, 0)")
}

/// Rows that a query is about: what comes before its SELECT, and what comes from FROM on. In one query, so that the shards
/// of a distributed table sum up their own rows instead of sending them.
pub(super) struct From {
    pub with: String,
    pub from: String,
}

/// The rows of a metric's window that fit `condition`, with `row_subname`, `row_run`, `row_node`, `row_rank`,
/// `row_iteration`, `row_micros` (their time) and `row_value` in one shape whatever the columns' types.
pub(super) fn rows(layout: &Layout, wanted: &Wanted<'_>, metric: usize, condition: &str) -> From {
    let Layout {
        from,
        micros,
        subname,
        node,
        run,
        value,
        ..
    } = layout;
    let in_window = wanted.metrics.get(metric);
    let in_window = in_window.map_or("0".to_owned(), |metric| window::in_window(layout, wanted, metric));
    From {
        with: format!(
            "WITH {subname} AS row_subname, {run} AS row_run, {node} AS row_node, \
             toInt64(assumeNotNull(rank)) AS row_rank, ifNull(toInt64(iteration), {NULL}) AS row_iteration, \
             assumeNotNull({micros}) AS row_micros, {value} AS row_value"
        ),
        from: format!(
            "FROM {from} WHERE job = {{job:String}} AND metric_name = {{metric:String}} AND {in_window}{condition}"
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

#[cfg(test)]
mod tests {
    use super::super::layout::tests::layout;
    use super::*;
    use crate::source::fate::{WANTED, place};

    fn wanted() -> Wanted<'static> {
        Wanted {
            job: "j",
            metrics: &WANTED,
            start: None,
            end: None,
            iterations: (None, None),
            sampled: None,
        }
    }

    #[test]
    fn rows_beside_a_window_are_all_that_are_not_in_it() {
        let (layout, wanted) = (layout(), wanted());
        let From { with, from } = rows(&layout, &wanted, place::TIMERS, " AND row_value > 1");
        let in_window = from
            .split_once("metric_name = {metric:String} AND ")
            .expect("a metric")
            .1;
        let in_window = in_window.strip_suffix(" AND row_value > 1").expect("the condition");
        let beside = beside(&layout, &wanted, place::TIMERS);
        assert_eq!(
            beside,
            format!(" AND NOT ifNull(metric_name = {{metric:String}} AND {in_window}, 0)")
        );
        for name in ["subname", "run", "node", "rank", "iteration", "micros", "value"] {
            assert!(with.contains(&format!(" AS row_{name}")), "{name} in {with}");
        }
    }

    #[test]
    fn a_metric_that_is_not_wanted_has_no_rows() {
        assert!(rows(&layout(), &wanted(), 9, "").from.ends_with("AND 0"));
        assert_eq!(beside(&layout(), &wanted(), 9), "");
    }

    #[test]
    fn every_row_of_a_step_is_counted() {
        let tally = Tally {
            run: String::new(),
            iteration_number: 3,
            missing: 1,
            not_finite: 2,
            negative: 3,
            usable: 4,
            first_time: 0,
            last_time: 0,
            first_seen: 0,
            last_seen: 0,
            answer_rows: 1,
        };
        assert_eq!(tally.rows(), 10);
    }
}
