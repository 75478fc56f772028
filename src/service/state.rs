//! What survives a restart: every job with its baseline, its last iteration and its verdicts, in one file that is written whole.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use super::error::ServiceError;
use super::watched::Watched;
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
struct Kept {
    version: u32,
    jobs: BTreeMap<String, Watched>,
}

/// The folder of a service's state, held by one process at a time.
#[derive(Debug)]
pub struct StateFolder {
    path: PathBuf,
    /// Goes with the process.
    _lock: File,
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
        Ok(kept.jobs)
    }

    /// Keeps the jobs; whatever ends the program, the file holds all of this or all of what was there.
    ///
    /// # Errors
    /// A folder that can't be written.
    pub fn keep(&self, jobs: &BTreeMap<String, Watched>) -> Result<(), ServiceError> {
        let path = self.path.join(FILE);
        let failed = |reason: String| ServiceError::State {
            path: path.clone(),
            reason,
        };
        let kept = Kept {
            version: VERSION,
            jobs: jobs.clone(),
        };
        let json = serde_json::to_vec(&kept).map_err(|error| failed(error.to_string()))?;
        let building = Building::file(&self.path).map_err(|error| failed(error.to_string()))?;
        fs::write(building.path(), json).map_err(|error| failed(error.to_string()))?;
        building.put(&path, true).map_err(|error| failed(error.to_string()))?;
        interrupt::farewell(FAREWELL);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_kept_comes_back() {
        let folder = tempfile::tempdir().expect("a folder");
        let state = StateFolder::open(folder.path()).expect("a state");
        assert!(state.load().expect("nothing").is_empty());
        let jobs = BTreeMap::from([("ein/Job ü".to_owned(), Watched::new("ein/Job ü", 7))]);
        state.keep(&jobs).expect("kept");
        assert_eq!(state.load().expect("jobs"), jobs);
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
