//! A recorded job once more under another id, at its own pace or another: for trying what watches jobs.
//!
//! The rows never leave the server: each second it copies those of the next stretch of recorded time.

use std::cell::Cell;
use std::time::{Duration, Instant};

use super::Table;
use super::ddl::quoted;
use super::error::Failure;
use super::session::Attempt;
use crate::source::{Micros, SourceError};

/// How often rows are written.
const TICK: Duration = Duration::from_secs(1);

/// What is replayed, and how.
#[derive(Debug, Clone)]
pub struct Replay<'a> {
    /// The recorded job.
    pub job: &'a str,
    /// The id of the copy.
    pub as_job: &'a str,
    /// Recorded seconds a second; infinite for all at once.
    pub speed: f64,
    /// First recorded moment.
    pub start: Option<Micros>,
    /// Last recorded moment.
    pub end: Option<Micros>,
}

/// What a replay wrote.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub struct Replayed {
    /// Rows of the copy.
    pub rows: u64,
    /// Rows without a time, which have no place in it.
    pub untimed: u64,
    /// First and last recorded moment.
    pub times: (Micros, Micros),
}

impl Table {
    /// Copies the job; the copy's times run from now on, at the pace of the replay. `progress` is told the rows so far.
    ///
    /// # Errors
    /// No row of the job in that time; a server that fails or lets the user not write; a copy of more or fewer rows
    /// than there were at the beginning.
    pub fn replay(&self, replay: &Replay<'_>, progress: &dyn Fn(u64)) -> Result<Replayed, SourceError> {
        let layout = &self.layout;
        let between = layout.between(replay.start, replay.end);
        let sql = format!(
            "SELECT count({0}), countIf(isNull({0})), ifNull(min({0}), 0), ifNull(max({0}), 0) FROM {1} WHERE job = {{job:String}}{between}",
            layout.micros, layout.from
        );
        let (rows, untimed, first, last) = self.session.run("look at the recorded job", async |attempt| {
            let span = attempt
                .query(&sql)
                .param("job", replay.job)
                .fetch_one::<(u64, u64, i64, i64)>()
                .await;
            span.map_err(|error| attempt.failure(&error))
        })?;
        if rows == 0 {
            return Err(SourceError::NoRows(format!(
                "job `{}` has none in that time",
                replay.job
            )));
        }
        let began = (Instant::now(), chrono::Utc::now().timestamp_micros());
        let (mut from, mut written) = (first, 0);
        while from <= last {
            let passed = began.0.elapsed().as_secs_f64() * replay.speed * 1e6;
            // A float beyond the end of time saturates.
            let to = first.saturating_add(passed as i64).min(last);
            if to >= from {
                written += self.copy(replay, (first, began.1), (from, to))?;
                progress(written);
                from = to + 1;
            }
            if from <= last {
                std::thread::sleep(TICK);
            }
        }
        if written != rows {
            let differs = Failure::Miscopied {
                copied: written,
                counted: rows,
            };
            return Err(differs.at(&self.session.settings, "copy the whole job", 1).into());
        }
        Ok(Replayed {
            rows: written,
            untimed,
            times: (first, last),
        })
    }

    /// Copies the rows of a stretch of recorded time; `origin` is the recorded and the replayed beginning.
    fn copy(
        &self,
        replay: &Replay<'_>,
        origin: (Micros, Micros),
        stretch: (Micros, Micros),
    ) -> Result<u64, SourceError> {
        let layout = &self.layout;
        let (first, now) = origin;
        let pace = if replay.speed.is_finite() {
            1.0 / replay.speed
        } else {
            0.0
        };
        let moved = format!(
            "fromUnixTimestamp64Micro({{now:Int64}} + toInt64(({} - {{first:Int64}}) * {{pace:Float64}}))",
            layout.micros
        );
        let mut into = Vec::new();
        let mut select = Vec::new();
        for column in &layout.columns {
            let writable = matches!(column.default_kind.as_str(), "" | "DEFAULT");
            // Current servers refuse the type; the copy gets its default.
            if !writable || column.kind.starts_with("Object(") {
                continue;
            }
            into.push(quoted(&column.name));
            select.push(match column.name.as_str() {
                "timestamp" => moved.clone(),
                "job" => "{as_job:String}".to_owned(),
                other => quoted(other),
            });
        }
        let there = format!(
            "FROM {} WHERE job = {{job:String}}{}",
            layout.from,
            layout.between(Some(stretch.0), Some(stretch.1))
        );
        let table = quoted(&self.session.settings.table);
        let insert = format!(
            "INSERT INTO {table} ({}) SELECT {} {there}",
            into.join(", "),
            select.join(", ")
        );
        let count = format!("SELECT count() {there}");
        let copied = "SELECT count() FROM {table:Identifier} WHERE job = {as_job:String}";
        let before = Cell::new(None);
        let rows = self.session.run("copy rows", async |attempt| {
            let rows = number(attempt, &count, replay).await?;
            let there = number(attempt, copied, replay).await?;
            match before.get() {
                None => before.set(Some(there)),
                Some(before) if there == before => {}
                // The answer to the attempt before was lost; its rows were not.
                Some(before) if there == before + rows => return Ok(rows),
                Some(_) => return Err(Failure::Torn("a stretch of the copy arrived in part")),
            }
            if rows > 0 {
                attempt
                    .query(&insert)
                    .param("job", replay.job)
                    .param("as_job", replay.as_job)
                    .param("first", first)
                    .param("now", now)
                    .param("pace", pace)
                    .execute()
                    .await
                    .map_err(|error| attempt.failure(&error))?;
            }
            Ok(rows)
        })?;
        Ok(rows)
    }
}

async fn number(attempt: &Attempt<'_>, sql: &str, replay: &Replay<'_>) -> Result<u64, Failure> {
    let query = attempt
        .query(sql)
        .param("job", replay.job)
        .param("as_job", replay.as_job);
    query.fetch_one::<u64>().await.map_err(|error| attempt.failure(&error))
}
