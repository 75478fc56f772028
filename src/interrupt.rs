//! Ctrl-C and SIGTERM: nothing half-written stays.

use std::io::{Read as _, Write as _};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// Exit code after an interrupt: 128 + SIGINT, as shells write it.
pub const EXIT_INTERRUPTED: i32 = 130;

/// Variable that is set for a process whose standard input stays open as long as it is wanted.
pub const ENDS_WITH_INPUT: &str = "MT_DETECTOR_ENDS_WITH_INPUT";

/// The folders and files that are being built.
static BUILDING: Mutex<Vec<PathBuf>> = Mutex::new(Vec::new());

type Ending = Box<dyn Fn() + Send>;

/// What is to be done before the program goes, by number.
static ENDINGS: Mutex<Vec<(u64, Ending)>> = Mutex::new(Vec::new());
static NEXT_ENDING: AtomicU64 = AtomicU64::new(0);
/// What is told; commands that leave something behind say so.
static FAREWELL: Mutex<&str> = Mutex::new("interrupted, nothing was written");

fn building() -> MutexGuard<'static, Vec<PathBuf>> {
    BUILDING.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Installs the handler; call it once, at the start of the program.
///
/// # Errors
/// A handler that is there already, or the operating system's refusal.
pub fn install() -> Result<(), ctrlc::Error> {
    ctrlc::set_handler(end)?;
    // A process that another one started for its own sake goes with it, also where that one was killed: the pipe breaks.
    if std::env::var_os(ENDS_WITH_INPUT).is_some() {
        std::thread::spawn(|| {
            let mut input = std::io::stdin().lock();
            let mut bytes = [0; 64];
            while !matches!(input.read(&mut bytes), Ok(0)) {}
            end();
        });
    }
    Ok(())
}

/// Cleans up and goes.
fn end() {
    for (_, ending) in endings().iter() {
        ending();
    }
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
    let farewell = *FAREWELL.lock().unwrap_or_else(PoisonError::into_inner);
    let _ = writeln!(std::io::stderr(), "{farewell}");
    std::process::exit(EXIT_INTERRUPTED);
}

fn endings() -> MutexGuard<'static, Vec<(u64, Ending)>> {
    ENDINGS.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Has something done when the program is interrupted, on a thread of its own and before anything is cleaned up.
#[must_use]
pub fn on_interrupt(ending: impl Fn() + Send + 'static) -> OnInterrupt {
    let number = NEXT_ENDING.fetch_add(1, Ordering::Relaxed);
    endings().push((number, Box::new(ending)));
    OnInterrupt(number)
}

/// Keeps an ending in force; dropping it takes the ending away.
#[derive(Debug)]
pub struct OnInterrupt(u64);

impl Drop for OnInterrupt {
    fn drop(&mut self) {
        endings().retain(|(number, _)| *number != self.0);
    }
}

/// Sets what an interrupt tells, where something stays that was written before.
pub fn farewell(words: &'static str) {
    *FAREWELL.lock().unwrap_or_else(PoisonError::into_inner) = words;
}

/// Runs a step that an interrupt can't tear: it comes before or after.
pub fn undisturbed<T>(step: impl FnOnce() -> T) -> T {
    let building = building();
    let done = step();
    drop(building);
    done
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

impl Drop for Unfinished {
    fn drop(&mut self) {
        building().retain(|path| *path != self.0);
    }
}
