//! Hardware metrics of machines: a table of its own, `machine_metrics`, read in one query whose window the server cuts.

use clickhouse::Row;
use serde::Deserialize;

use super::ddl::quoted;
use super::error::Failure;
use super::session::Session;
use super::{Notice, ServerSettings};
use crate::source::{Micros, SourceError};

/// The table's usual name.
pub const MACHINE_TABLE: &str = "machine_metrics";

/// The columns; a job's metric lies together, machine by machine, in the order of time.
const COLUMNS: &str = "\
    timestamp DateTime64(3, 'UTC') CODEC(DoubleDelta, ZSTD(1)),
    job       LowCardinality(String),
    node      LowCardinality(String),
    metric    LowCardinality(String),
    value     Float64 CODEC(Gorilla, ZSTD(1))";
const ORDER: &str = "PARTITION BY toYYYYMM(timestamp)\nORDER BY (job, metric, node, timestamp)";

/// The statement that makes the table on one server.
#[must_use]
pub fn machine_statement(database: Option<&str>, table: &str) -> String {
    let name = match database {
        Some(database) => format!("{}.{}", quoted(database), quoted(table)),
        None => quoted(table),
    };
    format!("CREATE TABLE IF NOT EXISTS {name}\n(\n{COLUMNS}\n)\nENGINE = MergeTree\n{ORDER}")
}

/// Which samples are asked for.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct MachineSamplesAsked {
    /// The job; the only one of the table when `None`.
    pub job: Option<String>,
    /// From this moment on; the server counts `last_seconds` back from the job's last sample when `None`.
    pub from: Option<Micros>,
    /// Up to this moment.
    pub to: Option<Micros>,
    /// The last so many seconds.
    pub last_seconds: Option<f64>,
}

/// The samples of a machine in a metric, in the order of time.
#[derive(Debug, Clone, PartialEq, Row, Deserialize)]
pub struct MachineSeries {
    /// The job.
    pub job_name: String,
    /// The machine.
    pub node_name: String,
    /// The metric.
    pub metric_name: String,
    /// Milliseconds since 1970.
    pub times_ms: Vec<i64>,
    /// The readings.
    pub readings: Vec<f64>,
    /// Lines of the answer that this one came in.
    pub answer_rows: u64,
}

/// Reads the asked samples of a table of hardware metrics, sorted by metric and machine.
///
/// # Errors
/// A server that can't be reached or refuses, a table that is not there or lacks a column.
pub fn machine_samples(
    settings: ServerSettings,
    notice: Notice,
    asked: &MachineSamplesAsked,
) -> Result<Vec<MachineSeries>, SourceError> {
    let session = Session::new(settings, notice)?;
    session.run("look at the user's settings", async |attempt| {
        super::profile::overrides(attempt).await.map(drop)
    })?;
    let of_job = if asked.job.is_some() { "job = {job:String}" } else { "1" };
    let last = |column: &str, to: &str| format!("(SELECT max({column}) FROM {{table:Identifier}} WHERE {of_job}{to})");
    let to = asked.to.map_or(String::new(), |to| {
        format!(" AND timestamp <= fromUnixTimestamp64Micro(toInt64({to}))")
    });
    let from = match (asked.from, asked.last_seconds) {
        (Some(from), _) => format!(" AND timestamp >= fromUnixTimestamp64Micro(toInt64({from}))"),
        (None, Some(seconds)) => {
            let millis = (seconds * 1e3).round() as i64;
            format!(
                " AND timestamp >= {} - toIntervalMillisecond({millis})",
                last("timestamp", &to)
            )
        }
        (None, None) => String::new(),
    };
    let sql = format!(
        "SELECT toString(job) AS job_name, toString(node) AS node_name, toString(metric) AS metric_name, \
         arrayMap(sample -> sample.1, samples) AS times_ms, arrayMap(sample -> sample.2, samples) AS readings, \
         count() OVER () AS answer_rows FROM (SELECT job, node, metric, \
         arraySort(groupArray((toUnixTimestamp64Milli(toDateTime64(timestamp, 3, 'UTC')), toFloat64(value)))) AS samples \
         FROM {{table:Identifier}} WHERE {of_job}{from}{to} GROUP BY job, node, metric) ORDER BY metric_name, node_name, job_name"
    );
    let series = session.run("read the machines' metrics", async |attempt| -> Result<_, Failure> {
        let ask = |sql: &str| {
            let query = attempt.query(sql);
            match &asked.job {
                Some(job) => query.param("job", job),
                None => query,
            }
        };
        attempt
            .list(&sql, ask, |series: &MachineSeries| series.answer_rows)
            .await
    })?;
    Ok(series)
}
