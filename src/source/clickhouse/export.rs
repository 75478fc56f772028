//! A job's rows as a Parquet file, written by the server.

use std::fs::File;
use std::io::{BufWriter, Write as _};
use std::path::Path;

use clickhouse::query::BytesCursor;
use polars::prelude::*;

use super::Table;
use super::error::Failure;
use super::layout::Layout;
use super::pull::Wanted;
use super::session::Attempt;
use super::window;
use crate::source::SourceError;
use crate::source::fate::WantedMetric;
use crate::source::guard::guarded;

/// What an export wrote.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Exported {
    /// Rows in the file.
    pub rows: u64,
    /// Its size.
    pub bytes: u64,
}

impl Table {
    /// Writes the wanted rows, of every metric and with every column of the contract, into a new file.
    ///
    /// A row that does not say when it was written or of which iteration it is goes along whatever the window: an analysis
    /// of the table counts it too. The server makes the Parquet; what comes is checked to be whole by its own count of rows. Nothing is written where
    /// the window holds no row.
    ///
    /// # Errors
    /// A server that fails, a file that can't be written.
    pub fn export(&self, wanted: &Wanted<'_>, path: &Path) -> Result<Exported, SourceError> {
        let layout = &self.layout;
        let count = format!(
            "SELECT count(), countIf(metric_name NOT IN {{whole:Array(String)}} AND {}) FROM {} WHERE {}",
            in_window(layout, wanted),
            layout.from,
            condition(layout, wanted)
        );
        let select = format!(
            "SELECT {} FROM {} WHERE {} ORDER BY metric_name, {}, subname, rank",
            columns(layout),
            layout.from,
            condition(layout, wanted),
            "timestamp"
        );
        let exported = self.session.run("export rows", async |attempt| {
            let failure = |error| attempt.failure(&error);
            let counts = bound(attempt, &count, wanted).fetch_one::<(u64, u64)>().await;
            let (counted, in_window) = counts.map_err(failure)?;
            if in_window == 0 {
                return Ok(Exported { rows: 0, bytes: 0 });
            }
            let bytes = bound(attempt, &select, wanted)
                .fetch_bytes("Parquet")
                .map_err(failure)?;
            let bytes = save(attempt, bytes, path).await?;
            let got = rows_of_file(path)?;
            if got < counted {
                return Err(Failure::Cut { got, counted });
            }
            Ok(Exported { rows: got, bytes })
        })?;
        Ok(exported)
    }
}

async fn save(attempt: &Attempt<'_>, mut bytes: BytesCursor, path: &Path) -> Result<u64, Failure> {
    let unwritable = |error: std::io::Error| Failure::File(format!("{}: {error}", path.display()));
    let mut file = BufWriter::new(File::create(path).map_err(unwritable)?);
    let mut size = 0;
    while let Some(chunk) = bytes.next().await.map_err(|error| attempt.failure(&error))? {
        file.write_all(&chunk).map_err(unwritable)?;
        size += chunk.len() as u64;
    }
    file.into_inner()
        .map_err(|error| unwritable(error.into_error()))?
        .sync_all()
        .map_err(unwritable)?;
    Ok(size)
}

/// A file that ends well and says so in its footer.
fn rows_of_file(path: &Path) -> Result<u64, Failure> {
    let file = File::open(path).map_err(|error| Failure::File(format!("{}: {error}", path.display())))?;
    let rows = guarded(|| ParquetReader::new(file).num_rows());
    rows.map(|rows| rows as u64)
        .map_err(|reason| Failure::Network(format!("the Parquet that came is not whole ({reason})")))
}

fn columns(layout: &Layout) -> String {
    let time = format!("fromUnixTimestamp64Micro(assumeNotNull({}), 'UTC')", layout.micros);
    let mut columns = vec![
        if nullable(layout, "timestamp") {
            format!("if(isNull({}), NULL, {time}) AS timestamp", layout.micros)
        } else {
            format!("{time} AS timestamp")
        },
        "toString(job) AS job".to_owned(),
        "toString(metric_name) AS metric_name".to_owned(),
        "toString(subname) AS subname".to_owned(),
        "rank".to_owned(),
        "iteration".to_owned(),
    ];
    for (name, there) in [
        ("node", layout.has_node),
        ("cluster", layout.has("cluster")),
        ("rerun_uuid", layout.has_run),
    ] {
        if there {
            columns.push(format!("toString({name}) AS {name}"));
        }
    }
    columns.push("metric_values".to_owned());
    let attributes = layout.columns.iter().find(|column| column.name == "attributes");
    match attributes.map(|column| column.bare()) {
        Some("String") => columns.push("toString(attributes) AS attributes".to_owned()),
        Some(kind) if kind.starts_with("JSON") || kind.starts_with("Map(") => {
            columns.push("toJSONString(attributes) AS attributes".to_owned());
        }
        // Object('json') can't be asked for: current servers refuse the type.
        _ => {}
    }
    columns.join(", ")
}

/// The conditions of the window, of rows that say when they were written and of which iteration they are.
fn in_window(layout: &Layout, wanted: &Wanted<'_>) -> String {
    let all = |conditions: Vec<Option<String>>| {
        let asked: Vec<String> = conditions.into_iter().flatten().collect();
        if asked.is_empty() {
            "1".to_owned()
        } else {
            asked.join(" AND ")
        }
    };
    let iterations = (wanted.iterations != (None, None)).then(|| window::in_iterations().to_owned());
    let windowed = all(vec![window::from_start(layout, wanted), iterations]);
    let until_end = all(vec![window::until_end(layout, wanted)]);
    format!("({until_end} AND (metric_name IN {{whole:Array(String)}} OR ({windowed})))")
}

fn condition(layout: &Layout, wanted: &Wanted<'_>) -> String {
    let mut rows = in_window(layout, wanted);
    if nullable(layout, "timestamp") {
        rows += " OR isNull(timestamp)";
    }
    if nullable(layout, "iteration") {
        let until_end = layout.between(None, wanted.end);
        rows += &format!(" OR (isNull(iteration) AND metric_name IN {{windowed:Array(String)}}{until_end})");
    }
    format!("job = {{job:String}} AND ({rows})")
}

fn nullable(layout: &Layout, name: &str) -> bool {
    let mut columns = layout.columns.iter();
    columns.any(|column| column.name == name && column.kind.contains("Nullable("))
}

fn bound(attempt: &Attempt<'_>, sql: &str, wanted: &Wanted<'_>) -> clickhouse::query::Query {
    let (windowed, whole): (Vec<_>, Vec<_>) = wanted.metrics.iter().partition(|metric| metric.windowed);
    let names = |metrics: &[&WantedMetric]| metrics.iter().map(|metric| metric.name).collect::<Vec<_>>();
    let (first, last) = wanted.iterations;
    attempt
        .query(sql)
        .param("job", wanted.job)
        .param("whole", names(&whole))
        .param("windowed", names(&windowed))
        .param("first", first.unwrap_or(i64::MIN))
        .param("last", last.unwrap_or(i64::MAX))
}
