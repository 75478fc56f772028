//! Ctrl-C and SIGTERM: nothing half-written stays.

use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// Exit code after an interrupt: 128 + SIGINT, as shells write it.
pub const EXIT_INTERRUPTED: i32 = 130;

/// The folders and files that are being built.
static BUILDING: Mutex<Vec<PathBuf>> = Mutex::new(Vec::new());

fn building() -> MutexGuard<'static, Vec<PathBuf>> {
    BUILDING.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Installs the handler; call it once, at the start of the program.
///
/// # Errors
/// A handler that is there already, or the operating system's refusal.
pub fn install() -> Result<(), ctrlc::Error> {
    ctrlc::set_handler(|| {
        // The lock is held on until the end, so that nothing is put in place any more.
        let building = building();
        for path in building.iter() {
            // A file that is written just now can reappear while its folder is emptied.
            for _ in 0..10 {
                let _ = if path.is_dir() {
                    std::fs::remove_dir_all(path)
                } else {
                    std::fs::remove_file(path)
                };
                if !path.exists() {
                    break;
                }
            }
        }
        let _ = writeln!(std::io::stderr(), "interrupted, nothing was written");
        std::process::exit(EXIT_INTERRUPTED);
    })
}

/// Marks a path as unfinished: an interrupt removes it.
#[must_use]
pub fn remove_on_interrupt(path: &Path) -> Unfinished {
    building().push(path.to_owned());
    Unfinished(path.to_owned())
}

/// The mark of an unfinished path; dropping it takes the mark away.
#[derive(Debug)]
pub struct Unfinished(PathBuf);

impl Unfinished {
    /// Runs the last step, which an interrupt can't tear: it comes before or after.
    pub fn finish<T>(self, last_step: impl FnOnce() -> T) -> T {
        let mut building = building();
        let done = last_step();
        building.retain(|path| *path != self.0);
        drop(building);
        done
    }
}

impl Drop for Unfinished {
    fn drop(&mut self) {
        building().retain(|path| *path != self.0);
    }
}
