//! What survives a restart: every job with its baseline, its last iteration and its verdicts, in one file that is written whole.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use serde::{Deserialize, Serialize};

use super::error::ServiceError;
use super::watched::Watched;
use super::watcher::Watcher;
use crate::building::Building;
use crate::interrupt;

/// Version of the file's layout.
const VERSION: u32 = 1;
const FILE: &str = "state.json";
const LOCK: &str = "lock";
/// What is told when the program is ended.
pub const FAREWELL: &str = "ended; the watched jobs and the verdicts so far are kept";
/// Folder of the verdicts' result folders.
pub const RESULTS: &str = "results";

#[derive(Serialize, Deserialize)]
struct Kept<'a> {
    version: u32,
    jobs: Cow<'a, BTreeMap<String, Watched>>,
}

/// The folder of a service's state, held by one process at a time.
#[derive(Debug)]
pub struct StateFolder {
    path: PathBuf,
    /// Goes with the process.
    _lock: File,
    /// Held while a state is written: an older one must not follow a newer.
    writing: Mutex<()>,
}

impl StateFolder {
    /// Makes or opens the folder.
    ///
    /// # Errors
    /// A folder that can't be made or that another service holds.
    pub fn open(path: &Path) -> Result<Self, ServiceError> {
        let failed = |reason: String| ServiceError::State {
            path: path.to_owned(),
            reason,
        };
        fs::create_dir_all(path.join(RESULTS)).map_err(|error| failed(error.to_string()))?;
        let lock = File::create(path.join(LOCK)).map_err(|error| failed(error.to_string()))?;
        if lock.try_lock().is_err() {
            return Err(failed(
                "another service is at work in it; give each a folder of its own".to_owned(),
            ));
        }
        Ok(Self {
            path: path.to_owned(),
            _lock: lock,
            writing: Mutex::new(()),
        })
    }

    /// Where it is.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The jobs that were watched; none in a new folder.
    ///
    /// # Errors
    /// A file that can't be read: nothing registered is lost in silence.
    pub fn load(&self) -> Result<BTreeMap<String, Watched>, ServiceError> {
        let path = self.path.join(FILE);
        let failed = |reason: String| ServiceError::State {
            path: path.clone(),
            reason,
        };
        let bytes = match fs::read(&path) {
            Ok(bytes) => bytes,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(BTreeMap::new()),
            Err(error) => return Err(failed(error.to_string())),
        };
        let kept: Kept =
            serde_json::from_slice(&bytes).map_err(|error| failed(format!("{error}; move it away to begin anew")))?;
        if kept.version != VERSION {
            return Err(failed(format!(
                "it is of version {}, this program reads {VERSION}; move it away to begin anew",
                kept.version
            )));
        }
        Ok(kept.jobs.into_owned())
    }

    /// Keeps the jobs where anything changed since they were kept; whatever ends the program, the file holds all of this or all
    /// of what was there.
    ///
    /// # Errors
    /// A folder that can't be written; the changes are kept with the next ones.
    pub fn keep_changes(&self, watcher: &Watcher) -> Result<(), ServiceError> {
        let _one_at_a_time = self.writing.lock().unwrap_or_else(PoisonError::into_inner);
        watcher
            .changed_jobs(|jobs| self.json(jobs))
            .map_or(Ok(()), |json| self.write(&json?))
            .inspect_err(|_| watcher.not_kept())
    }

    fn json(&self, jobs: &BTreeMap<String, Watched>) -> Result<Vec<u8>, ServiceError> {
        let kept = Kept {
            version: VERSION,
            jobs: Cow::Borrowed(jobs),
        };
        serde_json::to_vec(&kept).map_err(|error| ServiceError::State {
            path: self.path.join(FILE),
            reason: error.to_string(),
        })
    }

    fn write(&self, json: &[u8]) -> Result<(), ServiceError> {
        let path = self.path.join(FILE);
        let failed = |reason: String| ServiceError::State {
            path: path.clone(),
            reason,
        };
        let building = Building::file(&self.path).map_err(|error| failed(error.to_string()))?;
        fs::write(building.path(), json).map_err(|error| failed(error.to_string()))?;
        building.put(&path, true).map_err(|error| failed(error.to_string()))?;
        interrupt::farewell(FAREWELL);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::super::watched::WatchSettings;
    use super::super::watcher::Discovery;
    use super::*;

    #[test]
    fn what_was_kept_comes_back() {
        let folder = tempfile::tempdir().expect("a folder");
        let state = StateFolder::open(folder.path()).expect("a state");
        assert!(state.load().expect("nothing").is_empty());
        let watcher = Watcher::new(WatchSettings::default(), Discovery::default(), BTreeMap::new());
        watcher.register("ein/Job ü", 7_000_000);
        state.keep_changes(&watcher).expect("kept");
        let jobs = BTreeMap::from([("ein/Job ü".to_owned(), Watched::new("ein/Job ü", 7_000_000))]);
        assert_eq!(state.load().expect("jobs"), jobs);
        fs::remove_file(folder.path().join(FILE)).expect("removed");
        state.keep_changes(&watcher).expect("nothing changed");
        assert!(!folder.path().join(FILE).exists());
        let second = StateFolder::open(folder.path()).expect_err("it is held").to_string();
        assert!(second.contains("another service"), "{second}");
    }

    #[test]
    fn a_damaged_file_is_no_empty_state() {
        let folder = tempfile::tempdir().expect("a folder");
        let state = StateFolder::open(folder.path()).expect("a state");
        for damaged in ["", "{\"version\":1,\"jobs\":{", "{\"version\":9,\"jobs\":{}}"] {
            fs::write(folder.path().join(FILE), damaged).expect("written");
            let error = state.load().expect_err(damaged).to_string();
            assert!(error.contains("move it away"), "{error}");
        }
    }
}
