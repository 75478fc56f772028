//! Rows that need not travel: the server counts them by fate, and tells where each run began and ended.

use clickhouse::Row;
use serde::Deserialize;

use super::error::Failure;
use super::layout::Layout;
use super::pull::Wanted;
use super::session::Attempt;
use super::{tally, window};
use crate::source::Micros;
use crate::source::fate::Fate;

/// Rows of one metric, run and fate.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CountedRows {
    /// Position in [`Wanted::metrics`]; `None` for every other metric name.
    pub metric: Option<usize>,
    /// What becomes of them: those that are taken are sent. What their values decide is left open.
    pub fate: Fate,
    /// The run that wrote them; empty where the rows name none.
    pub run: String,
    /// How many there are.
    pub rows: u64,
    /// First and last time; 0 where no row has one.
    pub times: (Micros, Micros),
    /// First and last iteration; 0 where no row has one.
    pub iterations: (i64, i64),
}

#[derive(Row, Deserialize)]
struct Line {
    metric: u8,
    fate: u8,
    run: String,
    row_count: u64,
    first_time: i64,
    last_time: i64,
    first_iteration: i64,
    last_iteration: i64,
    answer_rows: u64,
}

/// Counts the job's rows, but for those of the window of the metric `beside`.
pub(super) async fn count(
    attempt: &Attempt<'_>,
    layout: &Layout,
    wanted: &Wanted<'_>,
    beside: Option<usize>,
) -> Result<Vec<CountedRows>, Failure> {
    let Layout { from, micros, run, .. } = layout;
    let fate = window::fate_code(layout, wanted);
    let lists = wanted
        .metrics
        .iter()
        .find_map(|metric| metric.lists)
        .unwrap_or_default();
    let left_out = beside.map_or_else(String::new, |place| tally::beside(layout, wanted, place));
    let sql = format!(
        "WITH {micros} AS row_micros, toInt64(iteration) AS row_iteration, \
         toUInt8(ifNull(indexOf({{metrics:Array(String)}}, toString(metric_name)), 0)) AS metric \
         SELECT metric, {fate} AS fate, {run} AS run, count() AS row_count, \
         ifNull(min(row_micros), 0) AS first_time, ifNull(max(row_micros), 0) AS last_time, \
         ifNull(min(row_iteration), 0) AS first_iteration, ifNull(max(row_iteration), 0) AS last_iteration, \
         count() OVER () AS answer_rows \
         FROM {from} WHERE job = {{job:String}}{left_out} GROUP BY metric, fate, run"
    );
    let names: Vec<&str> = wanted.metrics.iter().map(|metric| metric.name).collect();
    let ask = |sql: &str| {
        tally::bound(attempt, sql, wanted, beside.unwrap_or_default())
            .param("metrics", &names)
            .param("lists", lists)
            .param("sampled", wanted.sampled.unwrap_or_default())
    };
    let lines = attempt.list(&sql, ask, |line: &Line| line.answer_rows).await?;
    Ok(lines
        .into_iter()
        .map(|line| CountedRows {
            metric: usize::from(line.metric).checked_sub(1),
            fate: Fate::of_code(line.fate).unwrap_or(Fate::Unreadable),
            run: line.run,
            rows: line.row_count,
            times: (line.first_time, line.last_time),
            iterations: (line.first_iteration, line.last_iteration),
        })
        .collect())
}

/// How many rows of a metric are sent.
#[must_use]
pub fn sent(counted: &[CountedRows], metric: usize) -> u64 {
    counted
        .iter()
        .filter(|rows| rows.metric == Some(metric) && rows.fate == Fate::Taken)
        .map(|rows| rows.rows)
        .sum()
}
