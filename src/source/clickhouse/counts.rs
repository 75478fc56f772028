//! Rows that need not travel: the server counts them by reason, and tells where each run began and ended.

use clickhouse::Row;
use serde::Deserialize;

use super::error::Failure;
use super::layout::Layout;
use super::pull::Wanted;
use super::session::Attempt;
use super::tally;
use crate::source::Micros;

/// Why rows stay on the server, or that they do not. The first that fits counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reason {
    /// In the window: they are sent.
    Sent,
    /// No readable timestamp, name, rank or iteration.
    Unreadable,
    /// Written after the end.
    AfterEnd,
    /// Written before the start.
    BeforeStart,
    /// Outside of the asked iterations, or not of those that are sampled.
    OtherIteration,
    /// Of a metric whose lists are wanted: another subname, or no value.
    NotNeeded,
}

const REASONS: [Reason; 6] = [
    Reason::Sent,
    Reason::Unreadable,
    Reason::AfterEnd,
    Reason::BeforeStart,
    Reason::OtherIteration,
    Reason::NotNeeded,
];

/// Rows of one metric, run and reason.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CountedRows {
    /// Place in [`Wanted::metrics`]; `None` for every other metric name.
    pub metric: Option<usize>,
    /// Why they stay.
    pub reason: Reason,
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
    reason: u8,
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
    let with_lists = wanted.metrics.iter().position(|metric| metric.lists.is_some());
    let not_needed = match with_lists {
        Some(place) => format!(
            "metric = {} AND isNotNull(subname) AND (subname NOT IN {{lists:Array(String)}} OR empty(metric_values)), 5, ",
            place + 1
        ),
        None => String::new(),
    };
    let not_sampled = match (with_lists, wanted.sampled) {
        (Some(place), Some(_)) => format!(" OR (metric = {} AND i NOT IN {{sampled:Array(Int64)}})", place + 1),
        _ => String::new(),
    };
    let lists = with_lists
        .and_then(|place| wanted.metrics[place].lists)
        .unwrap_or_default();
    let left_out = beside.map_or_else(String::new, |_| tally::beside(layout, wanted));
    // Rows of parallel groups are written once, at a run's beginning: neither start nor iterations apply to them.
    let sql = format!(
        "WITH {micros} AS t, toInt64(rank) AS r, toInt64(iteration) AS i, \
         toUInt8(ifNull(indexOf({{metrics:Array(String)}}, toString(metric_name)), 0)) AS metric, \
         metric > 0 AND {{windowed:Array(UInt8)}}[metric] AS in_window \
         SELECT metric, toUInt8(multiIf({not_needed}isNull(t) OR isNull(r) OR r < 0 OR r > 4294967295 OR isNull(subname), 1, \
         t > {{end:Int64}}, 2, NOT in_window, 0, isNull(i) OR i < 0, 1, t < {{start:Int64}}, 3, \
         i < {{first:Int64}} OR i > {{last:Int64}}{not_sampled}, 4, 0)) AS reason, {run} AS run, count() AS row_count, \
         ifNull(min(t), 0) AS first_time, ifNull(max(t), 0) AS last_time, \
         ifNull(min(i), 0) AS first_iteration, ifNull(max(i), 0) AS last_iteration, \
         count() OVER () AS answer_rows \
         FROM {from} WHERE job = {{job:String}}{left_out} GROUP BY metric, reason, run"
    );
    let windowed: Vec<u8> = wanted.metrics.iter().map(|metric| u8::from(metric.windowed)).collect();
    let names: Vec<&str> = wanted.metrics.iter().map(|metric| metric.name).collect();
    let ask = |sql: &str| {
        tally::bound(attempt, sql, wanted, beside.unwrap_or_default())
            .param("metrics", &names)
            .param("windowed", &windowed)
            .param("lists", lists)
            .param("sampled", wanted.sampled.unwrap_or_default())
            .param("start", wanted.start.unwrap_or(i64::MIN))
            .param("end", wanted.end.unwrap_or(i64::MAX))
    };
    let lines = attempt.list(&sql, ask, |line: &Line| line.answer_rows).await?;
    Ok(lines
        .into_iter()
        .map(|line| CountedRows {
            metric: usize::from(line.metric).checked_sub(1),
            reason: REASONS
                .get(usize::from(line.reason))
                .copied()
                .unwrap_or(Reason::Unreadable),
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
        .filter(|rows| rows.metric == Some(metric) && rows.reason == Reason::Sent)
        .map(|rows| rows.rows)
        .sum()
}
