//! What is new of jobs that still run: one query for all of them, from where the last one stopped.

use clickhouse::Row;
use serde::Deserialize;

use super::Table;
use crate::contract::metrics::TIMERS;
use crate::contract::timers::INTERVAL_TIME;
use crate::source::{Micros, SourceError};

/// Jobs that one query names: servers take parameters of 128 KB.
const JOBS_AT_ONCE: usize = 200;

/// From when on a job's rows are asked for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Since {
    /// Job id.
    pub job: String,
    /// Rows of this time and later.
    pub time: Micros,
}

/// One iteration of a job, as far as its rows are there.
#[derive(Debug, Clone, PartialEq, Row, Deserialize)]
pub struct LiveStep {
    /// Job id.
    pub name: String,
    /// The run; empty where the rows name none.
    pub run_id: String,
    /// The iteration.
    pub iteration_number: i64,
    /// The longest `interval-time` of any rank, seconds.
    pub seconds: f64,
    /// Time of its earliest row.
    pub first_time: Micros,
    /// Time of its latest row.
    pub last_time: Micros,
    /// Ranks with a row.
    pub ranks: u64,
    /// Lines of the answer that this one came in.
    pub answer_rows: u64,
}

/// Where a rank was last seen.
#[derive(Debug, Clone, PartialEq, Eq, Row, Deserialize)]
pub struct LastSeen {
    /// The rank.
    pub rank_number: i64,
    /// Its node, empty where the rows name none.
    pub node_name: String,
    /// Its last iteration.
    pub iteration_number: i64,
    /// Time of its latest row.
    pub last_time: Micros,
    /// The timer of that row.
    pub timer: String,
    /// Lines of the answer that this one came in.
    pub answer_rows: u64,
}

impl Table {
    /// The iterations of some jobs from a time of each on, by job, run and iteration. Without any `interval-time` a job has
    /// none.
    ///
    /// # Errors
    /// A query that fails for good.
    pub fn live_steps(&self, jobs: &[Since]) -> Result<Vec<LiveStep>, SourceError> {
        let mut steps = Vec::new();
        for jobs in jobs.chunks(JOBS_AT_ONCE) {
            let between = self.layout.between(jobs.iter().map(|since| since.time).min(), None);
            let sql = format!(
                "SELECT toString(job) AS name, {run} AS run_id, toInt64(iteration) AS iteration_number, \
                 assumeNotNull(max({value})) AS seconds, assumeNotNull(min({micros})) AS first_time, \
                 assumeNotNull(max({micros})) AS last_time, uniqExact(rank) AS ranks, count() OVER () AS answer_rows \
                 FROM {from} WHERE job IN {{jobs:Array(String)}} AND metric_name = {{metric:String}} \
                 AND subname = {{timer:String}} AND iteration >= 0 AND rank >= 0{between} \
                 AND {micros} >= {{times:Array(Int64)}}[indexOf({{jobs:Array(String)}}, toString(job))] \
                 AND ifNull(isFinite({value}) AND {value} > 0, 0) \
                 GROUP BY name, run_id, iteration_number ORDER BY name, run_id, iteration_number",
                run = self.layout.run,
                value = self.layout.value,
                micros = self.layout.micros,
                from = self.layout.from,
            );
            let names: Vec<&str> = jobs.iter().map(|since| since.job.as_str()).collect();
            let times: Vec<i64> = jobs.iter().map(|since| since.time).collect();
            steps.extend(self.session.run("read new iterations", async |attempt| {
                let ask = |sql: &str| {
                    let query = attempt.query(sql).param("jobs", &names).param("times", &times);
                    query.param("metric", TIMERS).param("timer", INTERVAL_TIME)
                };
                attempt.list(&sql, ask, |step: &LiveStep| step.answer_rows).await
            })?);
        }
        Ok(steps)
    }

    /// Where each rank of a job was last seen since a time, by rank.
    ///
    /// # Errors
    /// A query that fails for good.
    pub fn last_seen(&self, since: &Since) -> Result<Vec<LastSeen>, SourceError> {
        let sql = format!(
            "SELECT toInt64(rank) AS rank_number, argMax({node}, {micros}) AS node_name, \
             toInt64(max(iteration)) AS iteration_number, assumeNotNull(max({micros})) AS last_time, \
             argMax({subname}, ({micros}, iteration)) AS timer, count() OVER () AS answer_rows \
             FROM {from} WHERE job = {{job:String}} AND metric_name = {{metric:String}} AND iteration >= 0 AND rank >= 0 \
             AND isNotNull(timestamp){between} GROUP BY rank_number ORDER BY rank_number",
            node = self.layout.node,
            subname = self.layout.subname,
            micros = self.layout.micros,
            from = self.layout.from,
            between = self.layout.between(Some(since.time), None),
        );
        let seen = self
            .session
            .run("look where each rank was last seen", async |attempt| {
                let ask = |sql: &str| attempt.query(sql).param("job", &since.job).param("metric", TIMERS);
                attempt.list(&sql, ask, |rank: &LastSeen| rank.answer_rows).await
            })?;
        Ok(seen)
    }

    /// The jobs with an `interval-time` row since a time, sorted.
    ///
    /// # Errors
    /// A query that fails for good.
    pub fn live_jobs(&self, since: Micros) -> Result<Vec<String>, SourceError> {
        let sql = format!(
            "SELECT toValidUTF8(ifNull(toString(job), '')) AS name, count() OVER () AS answer_rows FROM {} \
             WHERE isNotNull(job) AND metric_name = {{metric:String}} AND subname = {{timer:String}}{} GROUP BY name ORDER BY name",
            self.layout.from,
            self.layout.between(Some(since), None),
        );
        let jobs = self.session.run("look for jobs", async |attempt| {
            let ask = |sql: &str| attempt.query(sql).param("metric", TIMERS).param("timer", INTERVAL_TIME);
            attempt.list(&sql, ask, |line: &(String, u64)| line.1).await
        })?;
        Ok(jobs.into_iter().map(|(job, _)| job).collect())
    }
}
