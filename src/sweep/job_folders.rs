//! The jobs' own result folders: their names, and which of old ones go.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use super::error::SweepError;
use super::ledger::ListedJob;
use crate::report::{job_folder, job_folder_with_hash};

/// Folder of the jobs' own result folders, beside the ledger.
const JOBS: &str = "jobs";

/// A folder for each job, named after it as far as a file system bears.
pub(super) fn folders(jobs: &[ListedJob]) -> BTreeMap<String, String> {
    let mut taken = BTreeSet::new();
    let mut folders = BTreeMap::new();
    for ListedJob { entry, .. } in jobs {
        let mut name = job_folder(&entry.job);
        if !taken.insert(name.to_lowercase()) {
            name = job_folder_with_hash(&entry.job);
            taken.insert(name.to_lowercase());
        }
        folders.insert(entry.job.clone(), format!("{JOBS}/{name}"));
    }
    folders
}

/// Removes the results of jobs that a ledger does not list, but for the newest; gives how many went.
///
/// # Errors
/// A folder that can't be listed or removed.
pub fn prune(sweep: &Path, listed: &BTreeSet<String>, keep: usize) -> Result<usize, SweepError> {
    let jobs = sweep.join(JOBS);
    let entries = match fs::read_dir(&jobs) {
        Ok(entries) => entries,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(0),
        Err(error) => return Err(SweepError::io(jobs)(error)),
    };
    let mut old: Vec<(SystemTime, PathBuf)> = Vec::new();
    for entry in entries {
        let entry = entry.map_err(SweepError::io(&jobs))?;
        let (path, name) = (entry.path(), entry.file_name().to_string_lossy().into_owned());
        // What is no result of this program is not its to remove.
        let summary = path.join("summary.json");
        let is_result = entry.file_type().is_ok_and(|kind| kind.is_dir()) && summary.is_file();
        if is_result && !listed.contains(&format!("{JOBS}/{name}")) {
            let time = fs::metadata(&summary).and_then(|known| known.modified());
            old.push((time.unwrap_or(SystemTime::UNIX_EPOCH), path));
        }
    }
    old.sort();
    let going = old.len().saturating_sub(keep);
    for (_, path) in old.into_iter().take(going) {
        fs::remove_dir_all(&path).map_err(SweepError::io(&path))?;
    }
    Ok(going)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::job::JobEntry;

    fn listed(job: &str) -> ListedJob {
        let entry = JobEntry {
            job: job.to_owned(),
            ..JobEntry::default()
        };
        ListedJob {
            entry,
            place: String::new(),
            files: None,
        }
    }

    #[test]
    fn folders_are_safe_and_apart() {
        let jobs = ["llm-7b", "LLM-7B", "../../etc", "a/b", "a_b", "", "..", "it's"].map(listed);
        let folders = folders(&jobs);
        let names: BTreeSet<String> = folders.values().map(|folder| folder.to_lowercase()).collect();
        assert_eq!(names.len(), jobs.len(), "{folders:?}");
        assert_eq!(folders["llm-7b"], "jobs/llm-7b");
        for folder in folders.values() {
            let name = folder.strip_prefix("jobs/").expect("below jobs");
            assert!(!name.contains(['/', '\\']) && !name.starts_with('.'), "{folder}");
        }
    }

    #[test]
    fn old_results_go_and_nothing_else() {
        let folder = tempfile::tempdir().expect("a folder");
        for job in ["a", "b", "c"] {
            fs::create_dir_all(folder.path().join(JOBS).join(job)).expect("a folder");
            fs::write(folder.path().join(JOBS).join(job).join("summary.json"), "{}").expect("a file");
        }
        fs::create_dir_all(folder.path().join("jobs/notes")).expect("a folder");
        let listed = BTreeSet::from(["jobs/b".to_owned()]);
        assert_eq!(prune(folder.path(), &listed, 2).expect("pruned"), 0);
        assert_eq!(prune(folder.path(), &listed, 0).expect("pruned"), 2);
        let mut left: Vec<_> = fs::read_dir(folder.path().join(JOBS))
            .expect("jobs")
            .flatten()
            .map(|entry| entry.file_name())
            .collect();
        left.sort();
        assert_eq!(left, ["b", "notes"]);
        assert_eq!(prune(Path::new("no such folder"), &listed, 0).expect("nothing"), 0);
    }
}
