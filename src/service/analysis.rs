//! A slow window through `analyze`, in a process of its own: what fails there takes no watching with it.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::time::Duration;

use serde::Deserialize;

use super::known::{Detection, Due};
use super::state::RESULTS;
use crate::job::JobEntry;
use crate::report::job_folder;
use crate::source::clickhouse::Secret;
use crate::source::{Micros, timestamp};
use crate::sweep::{self, Budget, JobResult, ListedJob, Plan};

/// Result folders that a job keeps; older ones go.
const KEPT_RESULTS: usize = 20;

/// How analyses are run.
#[derive(Debug)]
pub struct Analyst {
    /// The folder of the service's state.
    pub state: PathBuf,
    /// Files and folders that `analyze` reads; none where it reads a table.
    pub input: Vec<OsString>,
    /// Flags of `analyze` that name the connection, or say of logs what they don't.
    pub arguments: Vec<OsString>,
    /// Variables that it is given beside those of this process.
    pub environment: Vec<(&'static str, Secret)>,
    /// Time for each.
    pub limit: Duration,
}

#[derive(Deserialize)]
struct Costs {
    #[serde(default)]
    findings: Vec<Cost>,
}

#[derive(Deserialize)]
struct Cost {
    cost: Option<f64>,
}

impl Analyst {
    /// Analyses the slow iterations, with rows since the job was registered only.
    #[must_use]
    pub fn analyse(&self, due: &Due) -> Detection {
        let (first, last) = due.iterations;
        let of_job = format!("{RESULTS}/{}", job_folder(&due.job));
        let place = self
            .state
            .join(&of_job)
            .join(format!("{}-{first}-{last}", due.asked / 1_000_000));
        let mut detection = Detection {
            first_iteration: first,
            last_iteration: last,
            asked: due.asked,
            ended: due.asked,
            status: None,
            cause: String::new(),
            ranks: Vec::new(),
            nodes: Vec::new(),
            findings: Vec::new(),
            cost: None,
            folder: None,
            error: None,
        };
        let result = std::fs::create_dir_all(&place)
            .map_err(|error| format!("{}: {error}", place.display()))
            .and_then(|()| self.run(due, &place));
        match result {
            Ok(result) => {
                let folder = result.folder.as_ref().map(|folder| place.join(folder));
                detection.status = result.verdict.map(|status| status.name().to_owned());
                detection.cause = result.cause;
                detection.ranks = result.anomaly_ranks;
                detection.nodes = result.anomaly_nodes;
                detection.findings = result.headlines.into_iter().map(|headline| headline.says).collect();
                detection.error = result.error;
                detection.cost = folder.as_deref().and_then(weightiest_cost);
                detection.folder = folder
                    .and_then(|folder| folder.strip_prefix(&self.state).ok().map(Path::to_owned))
                    .map(|folder| folder.to_string_lossy().into_owned());
            }
            Err(reason) => detection.error = Some(reason),
        }
        detection.ended = chrono::Utc::now().timestamp_micros().max(due.asked);
        prune(&self.state.join(of_job));
        detection
    }

    fn run(&self, due: &Due, place: &Path) -> Result<JobResult, String> {
        let listed = ListedJob {
            entry: JobEntry {
                job: due.job.clone(),
                ..JobEntry::default()
            },
            place: String::new(),
            files: None,
        };
        // Of a table's rows those of before the registration are another's; files are the job's from their beginning.
        let start = (self.input.is_empty()).then(|| format!("--start={}", timestamp::format(due.registered)).into());
        let arguments: Vec<OsString> = self.arguments.iter().cloned().chain(start).collect();
        let plan = Plan {
            jobs: &[listed],
            arguments: &arguments,
            input: &self.input,
            environment: &self.environment,
            flags: &[format!("--iterations={}-{}", due.iterations.0, due.iterations.1)],
            exits_with_one: false,
            folder: place,
            earlier: &Default::default(),
        };
        let budget = Budget {
            in_parallel: 1,
            job: self.limit,
            all: None,
        };
        let mut results = sweep::run(&plan, budget, &|_| Ok(())).map_err(|error| error.to_string())?;
        results.pop().ok_or_else(|| "the analysis gave no result".to_owned())
    }
}

/// What the weightiest finding costs: growth over the mended step.
fn weightiest_cost(folder: &Path) -> Option<f64> {
    let text = std::fs::read(folder.join("summary.json")).ok()?;
    let costs: Costs = serde_json::from_slice(&text).ok()?;
    costs
        .findings
        .into_iter()
        .filter_map(|finding| finding.cost)
        .reduce(f64::max)
}

/// Takes the oldest results of a job away. A folder that can't be read or removed stays.
fn prune(of_job: &Path) {
    let Ok(entries) = std::fs::read_dir(of_job) else {
        return;
    };
    let mut folders: Vec<(Micros, PathBuf)> = entries
        .flatten()
        .filter_map(|entry| {
            let name = entry.file_name();
            let asked = name.to_str()?.split('-').next()?.parse().ok()?;
            Some((asked, entry.path()))
        })
        .collect();
    folders.sort();
    let many = folders.len().saturating_sub(KEPT_RESULTS);
    for (_, folder) in folders.into_iter().take(many) {
        let _ = std::fs::remove_dir_all(folder);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_newest_results_stay() {
        let folder = tempfile::tempdir().expect("a folder");
        for asked in 100..130 {
            std::fs::create_dir(folder.path().join(format!("{asked}-1-5"))).expect("made");
        }
        prune(folder.path());
        let left = std::fs::read_dir(folder.path()).expect("entries").count();
        assert_eq!(left, KEPT_RESULTS);
        assert!(folder.path().join("129-1-5").is_dir() && !folder.path().join("100-1-5").exists());
    }
}
