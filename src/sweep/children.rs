//! The processes of a sweep: none outlives it.

use std::collections::BTreeMap;
use std::process::{Child, Command};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// How often a process is looked at.
pub(super) const BEAT: Duration = Duration::from_millis(20);
/// How long a process that is asked to end may take to end its queries and to clean up.
const GRACE: Duration = Duration::from_secs(5);

/// The processes that run.
#[derive(Default)]
pub(super) struct Children {
    running: Mutex<BTreeMap<u32, Child>>,
}

impl Children {
    fn running(&self) -> MutexGuard<'_, BTreeMap<u32, Child>> {
        self.running.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Starts one, unless all are being ended: it would be missed then.
    pub fn start(&self, command: &mut Command) -> std::io::Result<u32> {
        let mut running = self.running();
        let child = command.spawn()?;
        let id = child.id();
        running.insert(id, child);
        Ok(id)
    }

    pub fn look(&self, id: u32) -> std::io::Result<Option<std::process::ExitStatus>> {
        match self.running().get_mut(&id) {
            Some(child) => child.try_wait(),
            None => Ok(None),
        }
    }

    /// Asks one to end, and kills it when it does not.
    pub fn end_one(&self, id: u32) -> std::io::Result<()> {
        if let Some(child) = self.running().get_mut(&id) {
            ask_to_end(child);
        }
        let began = Instant::now();
        while self.look(id)?.is_none() {
            if began.elapsed() >= GRACE {
                if let Some(child) = self.running().get_mut(&id) {
                    let _ = child.kill();
                    let _ = child.wait();
                }
                break;
            }
            std::thread::sleep(BEAT);
        }
        Ok(())
    }

    pub fn forget(&self, id: u32) {
        self.running().remove(&id);
    }

    /// Ends them all; none is started any more, as the lock is kept.
    pub fn end(&self) {
        let mut running = self.running();
        running.values_mut().for_each(ask_to_end);
        let began = Instant::now();
        let runs = |child: &mut Child| matches!(child.try_wait(), Ok(None));
        while running.values_mut().any(runs) && began.elapsed() < GRACE {
            std::thread::sleep(BEAT);
        }
        for child in running.values_mut() {
            let _ = child.kill();
            let _ = child.wait();
        }
        std::mem::forget(running);
    }
}

/// Asks a process to end as Ctrl-C does, so that it ends its queries on the server and cleans up.
#[cfg(unix)]
fn ask_to_end(child: &mut Child) {
    use nix::sys::signal::{Signal, kill};
    use nix::unistd::Pid;
    // The id of one that was waited for may be another's by now.
    if let (Ok(None), Ok(id)) = (child.try_wait(), i32::try_from(child.id())) {
        let _ = kill(Pid::from_raw(id), Signal::SIGTERM);
    }
}

/// There is no asking here.
#[cfg(not(unix))]
fn ask_to_end(child: &mut Child) {
    let _ = child.kill();
}
