//! What is being built: beside its place under a hidden name, locked while its maker lives, put in place in one step.
//!
//! Whatever ends the program, the place holds all of the earlier result or all of the new one. What a killed program left
//! beside is known by its name and by the lock that nobody holds any more; the next run takes it away.

use std::ffi::OsString;
use std::fs::{self, File};
use std::io::{Error, ErrorKind, Result};
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use crate::interrupt::{self, Unfinished};

/// How names of unfinished things begin.
const PREFIX: &str = ".mt-detector-";
/// Between making a thing and locking it is a moment; what is younger may be in it.
const SETTLED: Duration = Duration::from_secs(60);
/// What is told after the last step.
const DONE: &str = "interrupted after everything was written";

/// A folder or file that takes itself away unless it is put in place.
#[derive(Debug)]
pub struct Building {
    path: PathBuf,
    /// Goes with the process, however that ends.
    _lock: Option<File>,
    _unfinished: Unfinished,
}

impl Building {
    /// An empty folder in `parent`, as readable as other new folders.
    ///
    /// # Errors
    /// The operating system's refusal.
    pub fn folder(parent: &Path) -> Result<Self> {
        clean(parent);
        let mut builder = tempfile::Builder::new();
        builder.prefix(PREFIX);
        #[cfg(unix)]
        {
            use std::os::unix::fs::PermissionsExt;
            // The umask takes its share of it.
            builder.permissions(fs::Permissions::from_mode(0o777));
        }
        Ok(Self::at(builder.tempdir_in(parent)?.keep()))
    }

    /// An empty file in `parent`, as readable as other new files.
    ///
    /// # Errors
    /// The operating system's refusal.
    pub fn file(parent: &Path) -> Result<Self> {
        clean(parent);
        let mut builder = tempfile::Builder::new();
        builder.prefix(PREFIX).suffix(".part");
        #[cfg(unix)]
        {
            use std::os::unix::fs::PermissionsExt;
            builder.permissions(fs::Permissions::from_mode(0o666));
        }
        let (_, path) = builder.tempfile_in(parent)?.keep().map_err(|error| error.error)?;
        Ok(Self::at(path))
    }

    fn at(path: PathBuf) -> Self {
        // Where folders or files can't be locked nothing is ever cleaned, for nobody gets the lock.
        let lock = File::open(&path).ok().filter(|lock| lock.try_lock().is_ok());
        Self {
            _lock: lock,
            _unfinished: interrupt::remove_on_interrupt(&path),
            path,
        }
    }

    /// Where it is.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Puts it in its place, in one step that an interrupt can't tear. With `replace` it takes the place of what is
    /// there, which goes then.
    ///
    /// # Errors
    /// [`ErrorKind::AlreadyExists`] where the place is taken and not to be replaced; the operating system's refusal. What
    /// was there before is there then.
    pub fn put(self, place: &Path, replace: bool) -> Result<()> {
        interrupt::undisturbed(|| {
            if replace {
                take_over(&self.path, place)?;
            } else {
                rename_to_free(&self.path, place)?;
            }
            interrupt::farewell(DONE);
            Ok(())
        })
        // What is at the path of the building now is the earlier result, if anything: dropping takes it away.
    }
}

/// Puts several things in their places, one after the other, in a step that an interrupt can't tear; what was there goes. Each of
/// them is whole or the earlier one, also where the program is killed in between.
///
/// # Errors
/// The operating system's refusal, or a place where something else than a plain file is.
pub fn put_files<const N: usize>(files: [(Building, &Path); N]) -> Result<()> {
    for (_, place) in &files {
        check_plain(place)?;
    }
    interrupt::undisturbed(|| {
        for (file, place) in &files {
            take_over(&file.path, place)?;
        }
        interrupt::farewell(DONE);
        Ok(())
    })
}

/// Writes a file whole or not at all. Where a device or a pipe is, it is written to.
///
/// # Errors
/// The operating system's refusal.
pub fn write_file(place: &Path, bytes: &[u8]) -> Result<()> {
    let is_open = fs::metadata(place).is_ok_and(|found| !found.is_file() && !found.is_dir());
    if is_open || fs::symlink_metadata(place).is_ok_and(|found| found.is_symlink()) {
        return fs::write(place, bytes);
    }
    let parent = place.parent().filter(|parent| !parent.as_os_str().is_empty());
    let file = Building::file(parent.unwrap_or_else(|| Path::new(".")))?;
    fs::write(file.path(), bytes)?;
    put_files([(file, place)])
}

/// Only plain files are replaced: no link, device, pipe or folder.
fn check_plain(place: &Path) -> Result<()> {
    match fs::symlink_metadata(place) {
        Ok(found) if !found.is_file() => Err(Error::new(ErrorKind::AlreadyExists, "what is there is no plain file")),
        _ => Ok(()),
    }
}

impl Drop for Building {
    fn drop(&mut self) {
        remove(&self.path);
    }
}

/// Writes a file beside its place and puts it there in one step; what was there goes.
///
/// # Errors
/// The operating system's refusal; [`ErrorKind::AlreadyExists`] where something else than a plain file is there.
pub fn replace_file(place: &Path, content: &[u8]) -> Result<()> {
    if fs::symlink_metadata(place).is_ok_and(|found| !found.is_file()) {
        return Err(Error::new(ErrorKind::AlreadyExists, "what is there is no plain file"));
    }
    let parent = place.parent().filter(|parent| !parent.as_os_str().is_empty());
    let building = Building::file(parent.unwrap_or(Path::new(".")))?;
    fs::write(building.path(), content)?;
    building.put(place, true)
}

fn remove(path: &Path) {
    let _ = match fs::symlink_metadata(path) {
        Ok(found) if found.is_dir() => fs::remove_dir_all(path),
        Ok(_) => fs::remove_file(path),
        Err(error) => Err(error),
    };
}

/// Renames to a place where nothing is.
fn rename_to_free(from: &Path, place: &Path) -> Result<()> {
    match rename_noreplace(from, place) {
        Err(error) if is_unsupported(&error) => {
            if fs::symlink_metadata(place).is_ok() {
                return Err(Error::from(ErrorKind::AlreadyExists));
            }
            fs::rename(from, place)
        }
        outcome => outcome,
    }
}

/// Renames to a place; what was there is at `from` afterwards, or gone.
fn take_over(from: &Path, place: &Path) -> Result<()> {
    let is_folder = match fs::symlink_metadata(place) {
        Err(error) if error.kind() == ErrorKind::NotFound => false,
        Err(error) => return Err(error),
        Ok(found) => found.is_dir(),
    };
    // A file is replaced by renaming as it is.
    if !is_folder {
        return fs::rename(from, place);
    }
    match exchange(from, place) {
        Err(error) if is_unsupported(&error) => take_over_in_two(from, place),
        outcome => outcome,
    }
}

/// Where two folders can't be exchanged: the earlier one steps aside under a name by which [`recover`] finds it.
fn take_over_in_two(from: &Path, place: &Path) -> Result<()> {
    let aside = aside(place).ok_or_else(|| Error::from(ErrorKind::InvalidInput))?;
    remove(&aside);
    fs::rename(place, &aside)?;
    if let Err(error) = fs::rename(from, place) {
        // Back to where it was; the first error is the one to report.
        let _ = fs::rename(&aside, place);
        return Err(error);
    }
    remove(&aside);
    Ok(())
}

/// Where the earlier result of a place stands while the new one takes its place.
fn aside(place: &Path) -> Option<PathBuf> {
    let mut name = OsString::from(".");
    name.push(place.file_name()?);
    name.push(".mt-detector-earlier");
    Some(place.with_file_name(name))
}

/// Puts the earlier result back where a program was killed between the two steps of replacing it.
pub fn recover(place: &Path) {
    let Some(aside) = aside(place).filter(|aside| aside.is_dir()) else {
        return;
    };
    if rename_to_free(&aside, place).is_err() && place.is_dir() {
        // The new one is in place: only the earlier one was not taken away any more.
        remove(&aside);
    }
}

#[cfg(any(target_os = "linux", target_os = "macos"))]
fn rename_with(from: &Path, to: &Path, flags: rustix::fs::RenameFlags) -> Result<()> {
    use rustix::fs::{CWD, renameat_with};
    Ok(renameat_with(CWD, from, CWD, to, flags)?)
}

#[cfg(any(target_os = "linux", target_os = "macos"))]
fn exchange(from: &Path, to: &Path) -> Result<()> {
    rename_with(from, to, rustix::fs::RenameFlags::EXCHANGE)
}

#[cfg(any(target_os = "linux", target_os = "macos"))]
fn rename_noreplace(from: &Path, to: &Path) -> Result<()> {
    rename_with(from, to, rustix::fs::RenameFlags::NOREPLACE)
}

#[cfg(not(any(target_os = "linux", target_os = "macos")))]
fn exchange(_: &Path, _: &Path) -> Result<()> {
    Err(Error::from(ErrorKind::Unsupported))
}

#[cfg(not(any(target_os = "linux", target_os = "macos")))]
fn rename_noreplace(_: &Path, _: &Path) -> Result<()> {
    Err(Error::from(ErrorKind::Unsupported))
}

/// What kernels and file systems answer that don't know the flags of a rename.
fn is_unsupported(error: &Error) -> bool {
    matches!(error.kind(), ErrorKind::Unsupported | ErrorKind::InvalidInput)
}

/// Takes away what killed programs left in a folder. What can't be taken away stays, and does no harm.
fn clean(parent: &Path) {
    let Ok(entries) = fs::read_dir(parent) else { return };
    for entry in entries.flatten() {
        if !entry.file_name().as_encoded_bytes().starts_with(PREFIX.as_bytes()) {
            continue;
        }
        let path = entry.path();
        let settled = fs::symlink_metadata(&path).is_ok_and(|found| {
            let age = found.modified().map(|at| SystemTime::now().duration_since(at));
            (found.is_dir() || found.is_file()) && matches!(age, Ok(Ok(age)) if age >= SETTLED)
        });
        if settled && File::open(&path).is_ok_and(|lock| lock.try_lock().is_ok()) {
            remove(&path);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn folder_with(parent: &Path, name: &str, content: &str) -> PathBuf {
        let folder = parent.join(name);
        fs::create_dir(&folder).expect("a folder");
        fs::write(folder.join("file"), content).expect("a file");
        folder
    }

    fn content(folder: &Path) -> String {
        fs::read_to_string(folder.join("file")).expect("a file")
    }

    #[test]
    fn a_place_is_taken_over_with_and_without_an_exchange() {
        for take_over in [take_over, take_over_in_two] {
            let parent = tempfile::tempdir().expect("a folder");
            let place = folder_with(parent.path(), "place", "old");
            let new = folder_with(parent.path(), "new", "new");
            take_over(&new, &place).expect("taken over");
            assert_eq!(content(&place), "new");
            assert!(!new.exists() || content(&new) == "old");
        }
    }

    #[test]
    fn a_result_that_stepped_aside_comes_back() {
        let parent = tempfile::tempdir().expect("a folder");
        let place = parent.path().join("place");
        let aside = aside(&place).expect("a name");
        fs::rename(folder_with(parent.path(), "x", "old"), &aside).expect("aside");
        recover(&place);
        assert_eq!(content(&place), "old");
        fs::rename(folder_with(parent.path(), "x", "older"), &aside).expect("aside");
        recover(&place);
        assert_eq!(content(&place), "old");
        assert!(!aside.exists());
    }

    #[test]
    fn only_what_nobody_builds_any_more_is_cleaned() {
        let parent = tempfile::tempdir().expect("a folder");
        let alive = Building::folder(parent.path()).expect("a folder");
        let dead = folder_with(parent.path(), ".mt-detector-dead", "x");
        let other = folder_with(parent.path(), ".other", "x");
        let long_ago = SystemTime::now() - 2 * SETTLED;
        for folder in [alive.path(), &dead, &other] {
            File::open(folder)
                .and_then(|file| file.set_modified(long_ago))
                .expect("an older time");
        }
        let young = folder_with(parent.path(), ".mt-detector-young", "x");
        clean(parent.path());
        let there = [alive.path().exists(), dead.exists(), other.exists(), young.exists()];
        assert_eq!(there, [true, false, true, true]);
    }

    #[test]
    fn a_taken_place_is_told() {
        let parent = tempfile::tempdir().expect("a folder");
        let place = folder_with(parent.path(), "place", "old");
        let building = Building::folder(parent.path()).expect("a folder");
        let built = building.path().to_owned();
        let error = building.put(&place, false).expect_err("it is taken");
        assert_eq!(error.kind(), ErrorKind::AlreadyExists);
        assert!(!built.exists() && content(&place) == "old");
    }
}
