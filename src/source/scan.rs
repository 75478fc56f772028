//! Runs one pass over the files: readers make batches of rows, a [`Scan`] takes from them what it needs.

use std::path::Path;

use rayon::prelude::*;

use super::columns::Columns;
use super::discover::{Format, SourceFile};
use super::error::SourceError;
use super::guard::guarded;
use super::rows::Rows;
use super::timestamp::Micros;
use super::unread::UnreadCells;
use super::{arrow, csv, json, kineto, logs, parquet};

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

    /// Called with what is to be told of a file beside its rows, a sentence.
    fn note(&mut self, note: String) {
        drop(note);
    }
}

/// Reads the files one after the other through a scan.
///
/// At most two batches a thread, and about 256 MB of them, are held at a time, whatever the size of the files. `progress` is called with
/// the number of rows passed so far. Of a file that turns out to be damaged the batches before the damage were absorbed.
///
/// # Errors
/// The first file that can't be read, or what [`Scan::absorb`] refuses.
pub fn scan<S: Scan>(files: &[SourceFile], scan: &mut S, progress: &dyn Fn(u64)) -> Result<(), SourceError> {
    let mut pass = Pass {
        passed: 0,
        unread: UnreadCells::default(),
        progress,
    };
    let mut broken = Vec::new();
    for file in files.iter().filter(|file| file.format != Format::Log) {
        let before = pass.passed;
        let outcome = pass.file(file, scan);
        for note in std::mem::take(&mut pass.unread).notes(&file.path) {
            scan.note(note);
        }
        match outcome {
            Err(Stopped::File(error)) if file.options.skip_broken => {
                let read = match pass.passed - before {
                    0 => "nothing of it counts".to_owned(),
                    rows => format!("the {rows} rows before that count, the rest does not"),
                };
                scan.note(format!("left out: {error}; {read}"));
                broken.push(error);
            }
            other => other.map_err(Stopped::into_error)?,
        }
    }
    // Nothing but broken files is no input.
    if !broken.is_empty() && broken.len() == files.len() {
        return Err(broken.swap_remove(0));
    }
    // Logs are parts of one job: which run a line is of shows from those before.
    let logs: Vec<&SourceFile> = files.iter().filter(|file| file.format == Format::Log).collect();
    if let Some(first) = logs.first() {
        let batches = logs::open(&logs, scan.columns());
        pass.drain(first, batches, scan).map_err(Stopped::into_error)?;
    }
    Ok(())
}

/// Why a pass ends before its end.
enum Stopped {
    /// The file can't be read.
    File(SourceError),
    /// The scan refuses what it was given.
    Scan(SourceError),
}

impl Stopped {
    fn into_error(self) -> SourceError {
        match self {
            Self::File(error) | Self::Scan(error) => error,
        }
    }
}

/// Where a pass over files is.
struct Pass<'a> {
    /// Rows so far.
    passed: u64,
    /// Of the file at hand.
    unread: UnreadCells,
    progress: &'a dyn Fn(u64),
}

impl Pass<'_> {
    fn file<S: Scan>(&mut self, file: &SourceFile, scan: &mut S) -> Result<(), Stopped> {
        let columns = scan.columns();
        match file.format {
            Format::Parquet => {
                let plan = parquet::plan(file, columns, &|part| scan.need(part));
                let (parts, skipped) = plan.map_err(Stopped::File)?;
                for part in &skipped {
                    scan.skipped(part);
                    self.passed += part.rows as u64;
                }
                for few in in_flight(&parts, 2 * columns.at_once()) {
                    let digests: Vec<_> = few
                        .par_iter()
                        .map(|part| digested(&file.path, scan, || part.read()))
                        .collect();
                    self.absorb(scan, digests)?;
                    (self.progress)(self.passed);
                }
                Ok(())
            }
            Format::Csv { delimiter } => {
                let batches = csv::open(file, delimiter, columns).map_err(Stopped::File)?;
                self.drain(file, batches, scan)
            }
            Format::Ndjson => self.drain(file, json::open(file, columns).map_err(Stopped::File)?, scan),
            Format::Arrow => self.drain(file, arrow::open(file, columns).map_err(Stopped::File)?, scan),
            Format::Trace => self.drain(file, kineto::open(file, columns).map_err(Stopped::File)?, scan),
            Format::Log => Ok(()),
        }
    }

    /// Feeds the batches of a sequential reader to the scan, digesting as many at once as there are threads.
    fn drain<S: Scan>(
        &mut self,
        file: &SourceFile,
        mut batches: impl Iterator<Item = Result<Rows, SourceError>>,
        scan: &mut S,
    ) -> Result<(), Stopped> {
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
            self.absorb(scan, digests)?;
            (self.progress)(self.passed);
        }
    }

    fn absorb<S: Scan>(
        &mut self,
        scan: &mut S,
        digests: Vec<Result<Digested<S::Digest>, SourceError>>,
    ) -> Result<(), Stopped> {
        for digest in digests {
            let digest = digest.map_err(Stopped::File)?;
            self.passed += digest.rows as u64;
            self.unread.merge(digest.unread);
            scan.absorb(digest.digest).map_err(Stopped::Scan)?;
        }
        Ok(())
    }
}

/// What a batch leaves behind.
struct Digested<D> {
    rows: usize,
    unread: UnreadCells,
    digest: D,
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

/// Makes a batch and digests it, all of it guarded: what a damaged file decodes to need not fit together.
fn digested<S: Scan>(
    path: &Path,
    scan: &S,
    read: impl FnOnce() -> Result<Rows, SourceError>,
) -> Result<Digested<S::Digest>, SourceError> {
    let damaged = |reason: String| SourceError::corrupt(path, "its rows", reason);
    guarded(|| {
        Ok::<_, String>(read().and_then(|mut rows| {
            rows.check_even().map_err(damaged)?;
            Ok(Digested {
                rows: rows.len(),
                unread: std::mem::take(&mut rows.unread),
                digest: scan.digest(rows),
            })
        }))
    })
    .unwrap_or_else(|reason| Err(damaged(reason)))
}
