//! The jobs of a table, summed up by the server.

use clickhouse::Row;
use serde::Deserialize;

use super::error::Failure;
use super::layout::Layout;
use super::session::Attempt;
use crate::source::Micros;

/// One job of a table.
#[derive(Debug, Clone, PartialEq, Eq, Row, Deserialize)]
pub struct JobLine {
    /// Job id.
    pub name: String,
    /// Distinct ranks with a timer row.
    pub ranks: u64,
    /// Distinct nodes.
    pub nodes: u64,
    /// Distinct iterations with a timer row.
    pub iterations: u64,
    /// First iteration; meaningless without any.
    pub first_iteration: i64,
    /// Last iteration; meaningless without any.
    pub last_iteration: i64,
    /// Time of the first row.
    pub first_time: Micros,
    /// Time of the last row.
    pub last_time: Micros,
    /// Whether any row has a time.
    pub timed: u8,
    /// Names of the timers, sorted.
    pub timers: Vec<String>,
    /// Pipeline stages that the group rows give; 0 without any.
    pub stages: u64,
    /// Distinct runs.
    pub runs: u64,
    /// Rows of any metric.
    pub row_count: u64,
    /// Lines of the answer that this one came in.
    pub answer_rows: u64,
}

/// Metric names that a list of jobs tells apart.
#[derive(Debug, Clone, Copy)]
pub struct Metrics {
    /// Durations.
    pub timers: &'static str,
    /// Positions in parallel groups.
    pub groups: &'static str,
}

/// Sums up the jobs with a row between two moments, by id.
pub(super) async fn list(
    attempt: &Attempt<'_>,
    layout: &Layout,
    metrics: Metrics,
    (start, end): (Option<Micros>, Option<Micros>),
) -> Result<Vec<JobLine>, Failure> {
    let Layout {
        from, micros, value, ..
    } = layout;
    let none = "CAST(NULL AS Nullable(String))";
    let node = if layout.has_node { "toString(node)" } else { none };
    let run = if layout.has_run { "toString(rerun_uuid)" } else { none };
    let between = layout.between(start, end);
    // Text that is not UTF-8 makes its own job unreadable, not the list.
    let sql = format!(
        "WITH toValidUTF8(toString(ifNull(subname, ''))) AS s, {node} AS n, {run} AS u, {micros} AS t, \
         ifNull(metric_name = {{timers:String}}, 0) AS is_timer, ifNull(floor({value}) + 1, 0) AS v, \
         ifNull(metric_name = {{groups:String}} AND subname = 'pp' AND {value} >= 0 AND {value} < 1e9, 0) AS is_stage \
         SELECT toValidUTF8(ifNull(toString(job), '')) AS name, \
         uniqExactIf(rank, is_timer) AS ranks, uniqExact(n) AS nodes, uniqExactIf(iteration, is_timer) AS iterations, \
         ifNull(toInt64(minIf(iteration, is_timer)), 0) AS first_iteration, \
         ifNull(toInt64(maxIf(iteration, is_timer)), 0) AS last_iteration, \
         ifNull(min(t), 0) AS first_time, ifNull(max(t), 0) AS last_time, toUInt8(count(t) > 0) AS timed, \
         arraySort(groupUniqArrayIf(s, is_timer AND isNotNull(subname))) AS timers, \
         toUInt64(maxIf(v, is_stage)) AS stages, uniqExact(u) AS runs, count() AS row_count, \
         count() OVER () AS answer_rows \
         FROM {from} WHERE isNotNull(job){between} GROUP BY job ORDER BY name"
    );
    let ask = |sql: &str| {
        let query = attempt.query(sql).param("timers", metrics.timers);
        query.param("groups", metrics.groups)
    };
    attempt.list(&sql, ask, |line: &JobLine| line.answer_rows).await
}

/// The ids of all jobs, sorted; of the table only their column is read.
pub(super) async fn ids(attempt: &Attempt<'_>, layout: &Layout) -> Result<Vec<String>, Failure> {
    let sql = format!(
        "SELECT toValidUTF8(ifNull(toString(job), '')) AS name, count() OVER () AS answer_rows FROM {} WHERE isNotNull(job) GROUP BY job ORDER BY name",
        layout.from
    );
    let ids = attempt
        .list(&sql, |sql| attempt.query(sql), |line: &(String, u64)| line.1)
        .await?;
    Ok(ids.into_iter().map(|(id, _)| id).collect())
}
