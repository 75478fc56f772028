//! The result folder: built beside its place, then renamed into it, so that it is there whole or not at all.

use std::fs;
use std::path::{Path, PathBuf};

use super::error::WriteError;
use super::exporters;
use super::json::SUMMARY_JSON;
use super::report::Report;
use crate::interrupt;

/// Where the results go.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ResultFolder {
    path: PathBuf,
    force: bool,
}

impl ResultFolder {
    /// Chooses the place; with `force` an earlier result folder there is replaced.
    ///
    /// # Errors
    /// A place that is taken: by anything without `force`, by anything but a result folder with it.
    pub fn at(path: PathBuf, force: bool) -> Result<Self, WriteError> {
        let folder = Self { path, force };
        folder.check_free()?;
        Ok(folder)
    }

    /// Where it is.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    fn check_free(&self) -> Result<(), WriteError> {
        let path = self.path.clone();
        match fs::symlink_metadata(&self.path) {
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(()),
            Err(error) => Err(WriteError::io(path)(error)),
            Ok(_) if !self.force => Err(WriteError::Exists { path }),
            Ok(found) if found.is_dir() && self.path.join(SUMMARY_JSON).is_file() => Ok(()),
            Ok(_) => Err(WriteError::NotAResult { path }),
        }
    }

    /// Writes everything, each window's report into a folder of its own.
    ///
    /// # Errors
    /// Anything that can't be written; nothing of it stays then.
    pub fn write(&self, report: &Report) -> Result<(), WriteError> {
        let parent = match self.path.parent() {
            Some(parent) if !parent.as_os_str().is_empty() => parent,
            _ => Path::new("."),
        };
        let made = make_parents(parent)?;
        let outcome = self.build_and_rename(parent, report);
        if outcome.is_err() {
            // Only empty folders go, deepest first.
            for folder in made.iter().rev() {
                let _ = fs::remove_dir(folder);
            }
        }
        outcome
    }

    fn build_and_rename(&self, parent: &Path, report: &Report) -> Result<(), WriteError> {
        let building = folder_beside(parent).map_err(WriteError::io(parent))?;
        let guard = interrupt::remove_on_interrupt(building.path());
        exporters::export(building.path(), report)?;
        let built = building.path().to_owned();
        guard.finish(|| self.put_in_place(&built))?;
        // The temporary folder is the result now.
        let _ = building.keep();
        Ok(())
    }

    fn put_in_place(&self, built: &Path) -> Result<(), WriteError> {
        self.check_free()?;
        if !self.path.exists() {
            return fs::rename(built, &self.path).map_err(WriteError::io(&self.path));
        }
        let old = built.with_extension("old");
        fs::rename(&self.path, &old).map_err(WriteError::io(&self.path))?;
        if let Err(error) = fs::rename(built, &self.path) {
            // Back to where it was; the first error is the one to report.
            let _ = fs::rename(&old, &self.path);
            return Err(WriteError::io(&self.path)(error));
        }
        fs::remove_dir_all(&old).map_err(WriteError::io(&old))
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

/// A folder that removes itself unless kept; as readable as other new folders, unlike temporary ones usually.
fn folder_beside(parent: &Path) -> std::io::Result<tempfile::TempDir> {
    let mut builder = tempfile::Builder::new();
    builder.prefix(".mt-detector-");
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt;
        // The umask takes its share of it.
        builder.permissions(fs::Permissions::from_mode(0o777));
    }
    builder.tempdir_in(parent)
}
