//! The folder of a sweep: its lock, its ledger in three forms.

use std::collections::BTreeMap;
use std::fs::{self, File, OpenOptions, TryLockError};
use std::path::{Path, PathBuf};

use serde::Deserialize;

use super::error::SweepError;
use super::ledger::{JobCost, JobResult, LEDGER_VERSION, Ledger, News};
use super::page::page;
use crate::contract::printable::{as_cell, json_printable};
use crate::interrupt;

const JSON: &str = "sweep.json";
const CSV: &str = "sweep.csv";
const HTML: &str = "index.html";
const LOCK: &str = ".lock";

#[derive(Deserialize)]
struct Layout {
    ledger_version: u32,
}

/// A folder that one sweep has to itself.
#[derive(Debug)]
pub struct SweepFolder {
    path: PathBuf,
    /// Locked as long as it is open, also when the program dies.
    _lock: File,
}

impl SweepFolder {
    /// Makes the folder if need be and locks it.
    ///
    /// # Errors
    /// A folder that another sweep works in, that holds something else, or that can't be written.
    pub fn open(path: &Path) -> Result<Self, SweepError> {
        fs::create_dir_all(path).map_err(SweepError::io(path))?;
        let mut entries = fs::read_dir(path).map_err(SweepError::io(path))?;
        let known = path.join(JSON).is_file() || path.join(LOCK).is_file();
        if !known && entries.next().is_some() {
            return Err(SweepError::NotASweep { path: path.to_owned() });
        }
        let file = path.join(LOCK);
        let lock = OpenOptions::new()
            .create(true)
            .truncate(false)
            .write(true)
            .open(&file)
            .map_err(SweepError::io(&file))?;
        match lock.try_lock() {
            Ok(()) => Ok(Self {
                path: path.to_owned(),
                _lock: lock,
            }),
            Err(TryLockError::WouldBlock) => Err(SweepError::Locked { path: path.to_owned() }),
            Err(TryLockError::Error(error)) => Err(SweepError::io(file)(error)),
        }
    }

    /// Where it is.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The results of the sweep before, by job; none without one, or where its layout was another.
    ///
    /// # Errors
    /// A ledger that can't be read.
    pub fn earlier(&self) -> Result<BTreeMap<String, JobResult>, SweepError> {
        let path = self.path.join(JSON);
        let unreadable = |reason: String| SweepError::Unreadable {
            path: path.clone(),
            reason,
        };
        let text = match fs::read(&path) {
            Ok(text) => text,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(BTreeMap::new()),
            Err(error) => return Err(unreadable(error.to_string())),
        };
        let Layout { ledger_version } = serde_json::from_slice(&text).map_err(|error| unreadable(error.to_string()))?;
        if ledger_version != LEDGER_VERSION {
            return Ok(BTreeMap::new());
        }
        let ledger: Ledger = serde_json::from_slice(&text).map_err(|error| unreadable(error.to_string()))?;
        Ok(ledger
            .jobs
            .into_iter()
            .map(|result| (result.job.clone(), result))
            .collect())
    }

    /// Writes the ledger as JSON: after each job, so that a sweep that was ended can be resumed.
    ///
    /// # Errors
    /// A file that can't be written.
    pub fn keep(&self, ledger: &Ledger) -> Result<(), SweepError> {
        let text = serde_json::to_string_pretty(ledger).map_err(|error| SweepError::Unreadable {
            path: self.path.join(JSON),
            reason: error.to_string(),
        })?;
        self.write(JSON, (json_printable(&text) + "\n").as_bytes())
    }

    /// Writes the ledger in all three forms.
    ///
    /// # Errors
    /// A file that can't be written.
    pub fn finish(&self, ledger: &Ledger) -> Result<(), SweepError> {
        self.keep(ledger)?;
        self.write(
            CSV,
            &table(ledger).map_err(|error| SweepError::io(self.path.join(CSV))(error.into()))?,
        )?;
        self.write(HTML, page(ledger).as_bytes())
    }

    /// Writes a file beside and renames it, so that it is there whole.
    fn write(&self, name: &str, content: &[u8]) -> Result<(), SweepError> {
        let path = self.path.join(name);
        let beside = self.path.join(format!(".{name}.part"));
        let unfinished = interrupt::remove_on_interrupt(&beside);
        fs::write(&beside, content).map_err(SweepError::io(&beside))?;
        let renamed = interrupt::undisturbed(|| fs::rename(&beside, &path));
        drop(unfinished);
        renamed.map_err(SweepError::io(path))
    }
}

fn table(ledger: &Ledger) -> Result<Vec<u8>, csv::Error> {
    let mut table = csv::Writer::from_writer(Vec::new());
    table.write_record([
        "job",
        "status",
        "anomaly_ranks",
        "anomaly_nodes",
        "cause",
        "findings",
        "cost_seconds",
        "cost_gpu_hours",
        "news",
        "folder",
        "error",
    ])?;
    for result in &ledger.jobs {
        let findings: Vec<&str> = result.headlines.iter().map(|headline| headline.says.as_str()).collect();
        let cost = |of: fn(&JobCost) -> f64| {
            result
                .cost
                .as_ref()
                .map_or(String::new(), |cost| format!("{:.3}", of(cost)))
        };
        let ranks: Vec<String> = result.anomaly_ranks.iter().map(u32::to_string).collect();
        let record: [String; 11] = [
            as_cell(&result.job),
            result.word().to_owned(),
            ranks.join(" "),
            as_cell(&result.anomaly_nodes.join(" ")),
            as_cell(&result.cause),
            as_cell(&findings.join("; ")),
            cost(|cost| cost.seconds),
            cost(|cost| cost.gpu_hours),
            result.news.map_or("", News::word).to_owned(),
            as_cell(result.folder.as_deref().unwrap_or("")),
            as_cell(result.error.as_deref().unwrap_or("")),
        ];
        table.write_record(&record)?;
    }
    table.into_inner().map_err(|error| error.into_error().into())
}
