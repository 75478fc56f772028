//! Rows of files into the table, each once however often they are loaded.

use std::cell::Cell;
use std::collections::BTreeMap;

use bytes::Bytes;
use clickhouse::Row as ClickHouseRow;
use rustc_hash::FxHashMap;
use serde::Deserialize;

use super::Table;
use super::ddl::quoted;
use super::encode::{Encoder, Row, fingerprint_sql, unwritten};
use super::error::Failure;
use super::layout::Layout;
use super::session::{Attempt, Session};
use crate::source::{Columns, Micros, Need, PartStatistics, Rows, Scan, SourceError, SourceFile, TextColumn, scan};

/// Bytes that are handed to the connection at once.
const CHUNK: usize = 1 << 20;

/// What a load did.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub struct Loaded {
    /// Rows that were written.
    pub written: u64,
    /// Rows that the table held already.
    pub there: u64,
    /// Rows that the table can't hold: a null or a number too large in a column that takes none, attributes that are no
    /// object in a column of type JSON.
    pub left_out: u64,
}

#[derive(ClickHouseRow, Deserialize)]
struct Known {
    fingerprint: u64,
    times: u64,
    answer_rows: u64,
}

impl Table {
    /// Writes the rows of files, batch by batch. A row that the table holds already is not written again; of
    /// equal rows as many are there in the end as the files hold, so that loading twice changes nothing and a load that
    /// broke off is completed by another one.
    ///
    /// Of each job that is there already, 16 bytes a row are held. `loaded` tells what was done, also where the load broke
    /// off; `progress` the rows so far.
    ///
    /// # Errors
    /// A file that can't be read, a server that refuses, a table whose columns can't take the rows.
    pub fn load(&self, files: &[SourceFile], loaded: &mut Loaded, progress: &dyn Fn(u64)) -> Result<(), SourceError> {
        let (session, layout) = (&self.session, &self.layout);
        let encoder = Encoder::new(layout).map_err(|failure| failure.at(&session.settings, "look at the table", 1))?;
        let mut loader = Loader {
            session,
            layout,
            encoder,
            known: BTreeMap::new(),
            loaded,
        };
        scan(files, &mut loader, progress)
    }

    /// The type of the column `attributes`, where it is one into which none can be written: it keeps its default.
    #[must_use]
    pub fn attributes_unwritten(&self) -> Option<&str> {
        unwritten(&self.layout)
    }
}

fn row_of(rows: &Rows, place: usize) -> Row<'_> {
    fn cell(column: &Option<TextColumn>, place: usize) -> Option<&str> {
        column.as_ref()?.get(place)
    }
    Row {
        micros: rows.timestamp.get(place),
        job: rows.job.get(place),
        metric_name: rows.metric_name.get(place),
        subname: rows.subname.get(place),
        rank: rows.rank.get(place),
        iteration: rows.iteration.get(place),
        node: cell(&rows.node, place),
        cluster: cell(&rows.cluster, place),
        run: cell(&rows.rerun_uuid, place),
        values: rows.calls.get(place),
        attributes: cell(&rows.attributes, place),
    }
}

struct Loader<'a> {
    session: &'a Session,
    layout: &'a Layout,
    encoder: Encoder,
    /// Job -> fingerprint -> how many of its rows in the table are not yet matched by one of the files.
    known: BTreeMap<String, FxHashMap<u64, u64>>,
    loaded: &'a mut Loaded,
}

/// Rows that are written together.
#[derive(Default)]
struct Batch {
    bytes: Vec<u8>,
    rows: u64,
    jobs: Vec<String>,
    times: Option<(Micros, Micros)>,
}

impl Scan for Loader<'_> {
    type Digest = Rows;

    fn columns(&self) -> Columns {
        Columns::Stored
    }

    fn need(&self, _: &PartStatistics) -> Need {
        Need::Everything
    }

    fn digest(&self, rows: Rows) -> Rows {
        rows
    }

    fn absorb(&mut self, rows: Rows) -> Result<(), SourceError> {
        self.add(&rows)
    }

    fn skipped(&mut self, _: &PartStatistics) {}
}

impl Loader<'_> {
    fn add(&mut self, rows: &Rows) -> Result<(), SourceError> {
        let mut batch = Batch::default();
        for job in &rows.job.words {
            if !self.known.contains_key(job) {
                let known = self.ask(job)?;
                self.known.insert(job.clone(), known);
            }
            batch.jobs.push(job.clone());
        }
        for place in 0..rows.len() {
            let row = row_of(rows, place);
            let before = batch.bytes.len();
            if !self.encoder.write(&row, &mut batch.bytes) {
                self.loaded.left_out += 1;
                continue;
            }
            let known = row
                .job
                .and_then(|job| self.known.get_mut(job))
                .filter(|known| !known.is_empty());
            if let Some(left) = known.and_then(|known| known.get_mut(&self.encoder.fingerprint(&row)))
                && *left > 0
            {
                *left -= 1;
                batch.bytes.truncate(before);
                self.loaded.there += 1;
                continue;
            }
            batch.rows += 1;
            if let Some(time) = row.micros {
                let (first, last) = batch.times.unwrap_or((time, time));
                batch.times = Some((first.min(time), last.max(time)));
            }
        }
        if batch.rows > 0 {
            self.write(batch)?;
        }
        Ok(())
    }

    /// The fingerprints of a job's rows in the table.
    fn ask(&self, job: &str) -> Result<FxHashMap<u64, u64>, SourceError> {
        let sql = format!(
            "SELECT {} AS fingerprint, count() AS times, count() OVER () AS answer_rows FROM {{table:Identifier}} WHERE job = {{job:String}} GROUP BY fingerprint",
            fingerprint_sql(self.layout)
        );
        let known = self
            .session
            .run("look for rows that are there already", async |attempt| {
                let failure = |error| attempt.failure(&error);
                let mut lines = attempt
                    .query(&sql)
                    .param("job", job)
                    .fetch::<Known>()
                    .map_err(failure)?;
                let mut known = FxHashMap::default();
                let mut counted = 0;
                while let Some(line) = lines.next().await.map_err(failure)? {
                    known.insert(line.fingerprint, line.times);
                    counted = line.answer_rows;
                }
                if known.is_empty() {
                    let there = "SELECT count() FROM {table:Identifier} WHERE job = {job:String}";
                    let there = attempt.query(there).param("job", job).fetch_one::<u64>().await;
                    counted = there.map_err(failure)?;
                }
                // With half of them, rows would be written that are there.
                let got = known.len() as u64;
                if got < counted {
                    return Err(Failure::Cut { got, counted });
                }
                Ok(known)
            })?;
        Ok(known)
    }

    /// Writes a batch, once: when the answer to an insert is lost, what there is tells whether it was done.
    fn write(&mut self, batch: Batch) -> Result<(), SourceError> {
        let columns: Vec<String> = self.encoder.columns().map(quoted).collect();
        let insert = format!(
            "INSERT INTO {} ({}) FORMAT RowBinary",
            quoted(&self.session.settings.table),
            columns.join(", ")
        );
        let (bytes, rows) = (Bytes::from(batch.bytes), batch.rows);
        let before = Cell::new(None);
        self.session.run("write rows", async |attempt| {
            let there = self.rows_around(attempt, &batch.jobs, batch.times).await?;
            match before.get() {
                None => before.set(Some(there)),
                Some(before) if there == before => {}
                Some(before) if there == before + rows => return Ok(()),
                Some(_) => {
                    let torn = "a batch arrived in part, or somebody else writes the same job";
                    return Err(Failure::Torn(torn));
                }
            }
            let failure = |error| attempt.failure(&error);
            let mut client = attempt.client();
            if let Some((name, value)) = self.encoder.setting() {
                client = client.with_setting(name, value);
            }
            let mut body = client.insert_formatted_with(insert.clone());
            for start in (0..bytes.len()).step_by(CHUNK) {
                let end = bytes.len().min(start + CHUNK);
                body.send(bytes.slice(start..end)).await.map_err(failure)?;
            }
            body.end().await.map_err(failure)
        })?;
        self.check_alone(&batch.jobs, batch.times, before.get().unwrap_or_default() + rows)?;
        self.loaded.written += rows;
        Ok(())
    }

    /// Of rows that somebody else wrote meanwhile nobody knows whether they are these once more.
    fn check_alone(&self, jobs: &[String], times: Option<(Micros, Micros)>, expected: u64) -> Result<(), SourceError> {
        self.session
            .run("look at the rows that were written", async |attempt| {
                let there = self.rows_around(attempt, jobs, times).await?;
                if there > expected {
                    return Err(Failure::Torn(
                        "somebody else wrote rows of the same job meanwhile, perhaps the same ones",
                    ));
                }
                Ok(())
            })?;
        Ok(())
    }

    /// How many rows of these jobs the table has in a span of time.
    async fn rows_around(
        &self,
        attempt: &Attempt<'_>,
        jobs: &[String],
        times: Option<(Micros, Micros)>,
    ) -> Result<u64, Failure> {
        let between = self
            .layout
            .between(times.map(|(first, _)| first - 1_000_000), times.map(|(_, last)| last));
        let sql = format!("SELECT count() FROM {{table:Identifier}} WHERE job IN {{jobs:Array(String)}}{between}");
        let count = attempt.query(&sql).param("jobs", jobs).fetch_one::<u64>().await;
        count.map_err(|error| attempt.failure(&error))
    }
}
