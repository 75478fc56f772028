//! What is read: files, or a table of a ClickHouse server.

use std::path::{Path, PathBuf};

use super::clickhouse::ClickHouseArgs;
use super::exit::ArgumentError;
use super::logs::LogArgs;
use super::progress::Progress;
use super::reading::{ReadingArgs, progress_of};
use super::stdout::tell;
use crate::job::{
    Job, JobEntry, JobError, JobsOfFiles, Reduction, Selection, list_jobs, list_jobs_with_files, list_table_jobs, load,
    load_table,
};
use crate::source::clickhouse::{Notice, ServerSettings, Table};
use crate::source::{Discovered, Micros, SourceError, discover, timestamp};
use crate::sweep::ListedJob;

/// The jobs with a row in a span of time.
pub(super) struct JobsBetween {
    /// The jobs.
    pub jobs: Vec<ListedJob>,
    /// Files that can't be read; they may hold rows of these jobs and of others.
    pub unread: Vec<SourceError>,
}

/// The source that the arguments name.
pub(super) enum Source {
    Files(Discovered),
    Table(Box<Table>),
}

impl Source {
    /// Files where any are named, else the server of the flags, the environment or the configuration file.
    ///
    /// # Errors
    /// Neither or both of them; files that are not there, a server that does not answer.
    pub fn open(input: &[PathBuf], clickhouse: &ClickHouseArgs) -> anyhow::Result<Self> {
        if !input.is_empty() {
            if let Some(flag) = clickhouse.given() {
                return Err(ArgumentError::new(flag, "files are read; leave them out to read from a server").into());
            }
            return Ok(Self::Files(discover(input)?));
        }
        Ok(Self::Table(Box::new(open_table(clickhouse)?)))
    }

    /// Says of logs what they don't.
    ///
    /// # Errors
    /// Flags that make no sense, or that no log needs.
    pub fn with_logs(mut self, logs: &LogArgs) -> Result<Self, ArgumentError> {
        match (&mut self, logs.given()) {
            (Self::Files(found), _) => logs.apply(found)?,
            (Self::Table(_), Some(flag)) => return Err(ArgumentError::new(flag, "it belongs to logs")),
            (Self::Table(_), None) => {}
        }
        Ok(self)
    }

    /// Says how files are read.
    ///
    /// # Errors
    /// Flags that make no sense, or that no file needs.
    pub fn with_reading(mut self, reading: &ReadingArgs) -> Result<Self, ArgumentError> {
        match (&mut self, reading.given()) {
            (Self::Files(found), _) => reading.apply(found)?,
            (Self::Table(_), Some(flag)) => return Err(ArgumentError::new(flag, "it belongs to files")),
            (Self::Table(_), None) => {}
        }
        Ok(self)
    }

    /// A sign of life while it is read.
    pub fn progress(&mut self) -> Progress {
        match self {
            Self::Files(found) => progress_of(found),
            Self::Table(_) => Progress::start("reading"),
        }
    }

    /// Reads the selected window of one job; of a server's work `reduction` says how much it does.
    pub fn load(&self, selection: &Selection, reduction: Reduction, progress: &dyn Fn(u64)) -> Result<Job, JobError> {
        match self {
            Self::Files(found) => load(&found.files, selection, progress),
            Self::Table(table) => load_table(table, selection, reduction, progress),
        }
    }

    /// Lists the jobs.
    pub fn jobs(&self, progress: &dyn Fn(u64)) -> Result<Vec<JobEntry>, SourceError> {
        match self {
            Self::Files(found) => list_jobs(&found.files, progress),
            Self::Table(table) => list_table_jobs(table, (None, None)),
        }
    }

    /// Lists the jobs with rows between two moments. A server counts the rows of that time only; of files the whole job
    /// is summed up, so that its place names the bounds that cut it, and the files with rows of it.
    pub fn jobs_between(&self, start: Option<Micros>, end: Option<Micros>) -> Result<JobsBetween, SourceError> {
        match self {
            Self::Files(found) => {
                let time = |text: &Option<String>| text.as_deref().and_then(timestamp::parse);
                let mut listed = Vec::new();
                let JobsOfFiles { jobs, mut unread } = list_jobs_with_files(&found.files);
                if jobs.is_empty() && !unread.is_empty() {
                    return Err(unread.swap_remove(0).1);
                }
                for (entry, files) in jobs {
                    let (first, last) = (time(&entry.first_time), time(&entry.last_time));
                    let after_start = start.is_none_or(|start| last.is_some_and(|last| start <= last));
                    let before_end = end.is_none_or(|end| first.is_some_and(|first| first <= end));
                    if !after_start || !before_end {
                        continue;
                    }
                    let cut_start = start.filter(|start| first.is_some_and(|first| first < *start));
                    let cut_end = end.filter(|end| last.is_some_and(|last| *end < last));
                    let bound = |bound: Option<Micros>| bound.map_or_else(String::new, timestamp::format);
                    let files: Vec<_> = files.iter().map(|path| absolute(path)).collect();
                    let place = format!("{files:?}, cut at {} to {}", bound(cut_start), bound(cut_end));
                    // An analysis of all would stumble over what can't be read.
                    let files = (!unread.is_empty()).then_some(files);
                    listed.push(ListedJob { entry, place, files });
                }
                Ok(JobsBetween {
                    jobs: listed,
                    unread: unread.into_iter().map(|(_, error)| error).collect(),
                })
            }
            Self::Table(table) => {
                let jobs = list_table_jobs(table, (start, end))?.into_iter();
                let place = table.name();
                let listed = |entry| ListedJob {
                    entry,
                    place: place.clone(),
                    files: None,
                };
                Ok(JobsBetween {
                    jobs: jobs.map(listed).collect(),
                    unread: Vec::new(),
                })
            }
        }
    }

    /// What is read, as the report names it.
    pub fn names(&self) -> Vec<String> {
        match self {
            Self::Files(found) => found.files.iter().map(|file| file.path.display().to_string()).collect(),
            Self::Table(table) => vec![table.name()],
        }
    }

    /// Files in the named folders that are passed over.
    pub fn passed_over(&self) -> Vec<String> {
        match self {
            Self::Files(found) => found
                .passed_over
                .iter()
                .map(|path| path.display().to_string())
                .collect(),
            Self::Table(_) => Vec::new(),
        }
    }
}

/// A path as every working folder would name it, where that can be told.
fn absolute(path: &Path) -> PathBuf {
    std::path::absolute(path).unwrap_or_else(|_| path.to_owned())
}

/// Opens the table that the flags, the environment or the configuration file name.
///
/// # Errors
/// No server named, or one that fails.
pub(super) fn open_table(clickhouse: &ClickHouseArgs) -> anyhow::Result<Table> {
    Ok(Table::open(server(clickhouse)?, notice())?)
}

/// The server that the flags, the environment or the configuration file name.
///
/// # Errors
/// None named, or a setting that makes no sense.
pub(super) fn server(clickhouse: &ClickHouseArgs) -> Result<ServerSettings, ArgumentError> {
    let nothing = "name files or folders, or a server with --clickhouse-url, CLICKHOUSE_URL or a configuration file";
    clickhouse
        .settings()?
        .ok_or_else(|| ArgumentError::new("INPUT", nothing))
}

/// Tells on standard error that a query is sent again.
pub(super) fn notice() -> Notice {
    Box::new(|notice| tell(format_args!("{notice}")))
}
