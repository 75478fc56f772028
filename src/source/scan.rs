//! Runs one pass over the files: readers make batches of rows, a [`Scan`] takes from them what it needs.

use std::path::Path;

use rayon::prelude::*;

use super::columns::Columns;
use super::discover::{Format, SourceFile};
use super::error::SourceError;
use super::guard::guarded;
use super::rows::Rows;
use super::timestamp::Micros;
use super::{arrow, csv, logs, ndjson, parquet};

/// Decoded bytes that are read at once, over all threads; a single part may be larger.
const BYTES_IN_FLIGHT: usize = 256 << 20;

/// What is known of a part of a file before it is read; `None` where the file does not say.
#[derive(Debug, Default, Clone, PartialEq)]
pub struct PartStatistics {
    /// Rows in the part.
    pub rows: usize,
    /// Smallest and largest job id.
    pub job: Option<(String, String)>,
    /// Smallest and largest metric name.
    pub metric_name: Option<(String, String)>,
    /// First and last time.
    pub timestamp: Option<(Micros, Micros)>,
    /// Smallest and largest iteration.
    pub iteration: Option<(i64, i64)>,
}

impl PartStatistics {
    /// Whether a row of the job can be in the part.
    #[must_use]
    pub fn may_hold_job(&self, job: &str) -> bool {
        may_hold(&self.job, job)
    }

    /// Whether a row of the metric can be in the part.
    #[must_use]
    pub fn may_hold_metric(&self, metric: &str) -> bool {
        may_hold(&self.metric_name, metric)
    }
}

fn may_hold(bounds: &Option<(String, String)>, word: &str) -> bool {
    bounds
        .as_ref()
        .is_none_or(|(first, last)| first.as_str() <= word && word <= last.as_str())
}

/// How much of a part of a file a scan wants.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Need {
    /// Nothing: the part can't hold a row that matters.
    Nothing,
    /// Every column but `metric_values`.
    Keys,
    /// Every column if the part holds a row of this metric, else every one but `metric_values`.
    KeysUnlessMetric(&'static str),
    /// Every column of the contract.
    Everything,
}

/// One pass over the rows of a source.
///
/// Batches are digested in parallel and absorbed one by one in the order of the files, so that what comes out
/// does not depend on the number of threads.
pub trait Scan: Sync {
    /// What a batch leaves behind.
    type Digest: Send;

    /// Which columns it takes.
    fn columns(&self) -> Columns {
        Columns::Analysed
    }

    /// Decides from its statistics how much of a part is read; called before any of it is.
    fn need(&self, part: &PartStatistics) -> Need;

    /// Takes from a batch what matters.
    fn digest(&self, rows: Rows) -> Self::Digest;

    /// Adds a digest to the result.
    ///
    /// # Errors
    /// Whatever makes going on useless.
    fn absorb(&mut self, digest: Self::Digest) -> Result<(), SourceError>;

    /// Called for each part that was left unread because of [`Need::Nothing`].
    fn skipped(&mut self, part: &PartStatistics);
}

/// Reads the files one after the other through a scan.
///
/// At most two batches a thread, and about 256 MB of them, are held at a time, whatever the size of the files. `progress` is called with
/// the number of rows passed so far. Of a file that turns out to be damaged the batches before the damage were absorbed.
///
/// # Errors
/// The first file that can't be read, or what [`Scan::absorb`] refuses.
pub fn scan<S: Scan>(files: &[SourceFile], scan: &mut S, progress: &dyn Fn(u64)) -> Result<(), SourceError> {
    let mut passed = 0;
    let columns = scan.columns();
    for file in files {
        match file.format {
            Format::Parquet => {
                let (parts, skipped) = parquet::plan(&file.path, columns, &|part| scan.need(part))?;
                for part in &skipped {
                    scan.skipped(part);
                    passed += part.rows as u64;
                }
                for few in in_flight(&parts, 2 * columns.at_once()) {
                    let digests: Vec<_> = few
                        .par_iter()
                        .map(|part| digested(&file.path, scan, || part.read()))
                        .collect();
                    absorb(scan, digests, &mut passed)?;
                    progress(passed);
                }
            }
            Format::Csv { delimiter } => {
                drain(file, csv::open(file, delimiter, columns)?, scan, &mut passed, progress)?;
            }
            Format::Ndjson => drain(file, ndjson::open(file, columns)?, scan, &mut passed, progress)?,
            Format::Arrow => drain(file, arrow::open(&file.path, columns)?, scan, &mut passed, progress)?,
            Format::Log => {}
        }
    }
    // Logs are parts of one job: which run a line is of shows from those before.
    let logs: Vec<&SourceFile> = files.iter().filter(|file| file.format == Format::Log).collect();
    if let Some(first) = logs.first() {
        drain(first, logs::open(&logs, columns)?, scan, &mut passed, progress)?;
    }
    Ok(())
}

/// Cuts the parts into runs of at most `count` that together decode to about [`BYTES_IN_FLIGHT`].
fn in_flight(mut parts: &[parquet::RowGroup], count: usize) -> impl Iterator<Item = &[parquet::RowGroup]> {
    std::iter::from_fn(move || {
        let mut bytes = 0;
        let fits = |part: &&parquet::RowGroup| {
            bytes += part.bytes;
            bytes <= BYTES_IN_FLIGHT
        };
        let few = parts.iter().take(count).take_while(fits).count().max(1);
        let (now, later) = parts.split_at_checked(few)?;
        parts = later;
        Some(now)
    })
}

/// Feeds the batches of a sequential reader to the scan, digesting as many at once as there are threads.
fn drain<S: Scan>(
    file: &SourceFile,
    mut batches: impl Iterator<Item = Result<Rows, SourceError>>,
    scan: &mut S,
    passed: &mut u64,
    progress: &dyn Fn(u64),
) -> Result<(), SourceError> {
    let at_once = scan.columns().at_once();
    loop {
        let few: Vec<_> = batches.by_ref().take(at_once).collect();
        if few.is_empty() {
            return Ok(());
        }
        let digests: Vec<_> = few
            .into_par_iter()
            .map(|rows| digested(&file.path, scan, || rows))
            .collect();
        absorb(scan, digests, passed)?;
        progress(*passed);
    }
}

/// Makes a batch and digests it, all of it guarded: what a damaged file decodes to need not fit together.
fn digested<S: Scan>(
    path: &Path,
    scan: &S,
    read: impl FnOnce() -> Result<Rows, SourceError>,
) -> Result<(usize, S::Digest), SourceError> {
    let damaged = |reason: String| SourceError::corrupt(path, "its rows", reason);
    guarded(|| {
        Ok::<_, String>(read().and_then(|rows| {
            rows.check_even().map_err(damaged)?;
            Ok((rows.len(), scan.digest(rows)))
        }))
    })
    .unwrap_or_else(|reason| Err(damaged(reason)))
}

fn absorb<S: Scan>(
    scan: &mut S,
    digests: Vec<Result<(usize, S::Digest), SourceError>>,
    passed: &mut u64,
) -> Result<(), SourceError> {
    for digest in digests {
        let (rows, digest) = digest?;
        *passed += rows as u64;
        scan.absorb(digest)?;
    }
    Ok(())
}
