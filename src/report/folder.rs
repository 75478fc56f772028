//! The result folder: built beside its place, then renamed into it, so that it is there whole or not at all.

use std::fs;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use super::error::WriteError;
use super::exporters;
use super::json::SUMMARY_JSON;
use super::report::Report;
use crate::building::{self, Building};

/// Runs that may begin in one second and still find a name of their own.
const MOST_IN_A_SECOND: u32 = 10_000;

/// Where the results go.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ResultFolder {
    path: PathBuf,
    force: bool,
    /// Whether a number is put behind the name where the place is taken.
    counts_on: bool,
}

impl ResultFolder {
    /// Chooses the place; with `force` an earlier result folder there is replaced.
    ///
    /// # Errors
    /// A place that is taken: by anything without `force`, by anything but a result folder with it.
    pub fn at(path: PathBuf, force: bool) -> Result<Self, WriteError> {
        building::recover(&path);
        check_free(&path, force)?;
        Ok(Self {
            path,
            force,
            counts_on: false,
        })
    }

    /// A place that nobody asked for by name: where it is taken the results go beside it, with a number behind the name.
    #[must_use]
    pub fn near(path: PathBuf) -> Self {
        Self {
            path,
            force: false,
            counts_on: true,
        }
    }

    /// Writes everything, each window's report into a folder of its own, and tells where.
    ///
    /// # Errors
    /// Anything that can't be written; nothing of it stays then.
    pub fn write(&self, report: &Report) -> Result<PathBuf, WriteError> {
        let parent = match self.path.parent() {
            Some(parent) if !parent.as_os_str().is_empty() => parent,
            _ => Path::new("."),
        };
        let made = make_parents(parent)?;
        let outcome = self.build_and_put(parent, report);
        if outcome.is_err() {
            // Only empty folders go, deepest first.
            for folder in made.iter().rev() {
                let _ = fs::remove_dir(folder);
            }
        }
        outcome
    }

    fn build_and_put(&self, parent: &Path, report: &Report) -> Result<PathBuf, WriteError> {
        // Two runs may begin in the same second; each finds out only here which name is its own.
        for place in self.places() {
            self.check_replaceable(&place)?;
            let building = Building::folder(parent).map_err(WriteError::io(parent))?;
            exporters::export(building.path(), report)?;
            match building.put(&place, self.force) {
                Ok(()) => return Ok(place),
                Err(error) if error.kind() == ErrorKind::AlreadyExists && self.counts_on => {}
                Err(error) if error.kind() == ErrorKind::AlreadyExists => {
                    return Err(WriteError::Exists { path: place });
                }
                Err(error) => return Err(WriteError::io(place)(error)),
            }
        }
        Err(WriteError::Exists {
            path: self.path.clone(),
        })
    }

    /// Where the results may go, the first that is free.
    fn places(&self) -> impl Iterator<Item = PathBuf> {
        let further = if self.counts_on { MOST_IN_A_SECOND } else { 1 };
        (1..=further).map(|count| match count {
            1 => self.path.clone(),
            _ => {
                let mut name = self.path.as_os_str().to_owned();
                name.push(format!("-{count}"));
                PathBuf::from(name)
            }
        })
    }

    fn check_replaceable(&self, place: &Path) -> Result<(), WriteError> {
        if self.force { check_free(place, true) } else { Ok(()) }
    }
}

/// A place is free where nothing is, and with `force` where an earlier result is.
fn check_free(place: &Path, force: bool) -> Result<(), WriteError> {
    let path = place.to_owned();
    match fs::symlink_metadata(place) {
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(()),
        Err(error) => Err(WriteError::io(path)(error)),
        Ok(_) if !force => Err(WriteError::Exists { path }),
        Ok(found) if found.is_dir() && place.join(SUMMARY_JSON).is_file() => Ok(()),
        Ok(_) => Err(WriteError::NotAResult { path }),
    }
}

/// Creates the missing folders above and returns those that were made.
fn make_parents(parent: &Path) -> Result<Vec<PathBuf>, WriteError> {
    let missing = parent
        .ancestors()
        .take_while(|folder| !folder.as_os_str().is_empty() && !folder.exists());
    let mut made: Vec<PathBuf> = missing.map(Path::to_owned).collect();
    made.reverse();
    fs::create_dir_all(parent).map_err(WriteError::io(parent))?;
    Ok(made)
}
