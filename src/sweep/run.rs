//! Runs the analyses: processes side by side, ended when their time is up.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::io::{Read as _, Seek as _};
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use serde::Deserialize;

use super::children::{BEAT, Children};
use super::error::SweepError;
use super::job_folders::folders;
use super::ledger::{JobCost, JobResult, ListedJob, Status, fingerprint};
use crate::interrupt;
use crate::report::Headline;
use crate::source::clickhouse::Secret;
use crate::verdict;

/// Exit code of `analyze` when no row counts.
const NO_ROWS: i32 = 3;

/// How long things may take.
#[derive(Debug, Clone, Copy)]
pub struct Budget {
    /// Jobs side by side.
    pub in_parallel: usize,
    /// For each job.
    pub job: Duration,
    /// For all of them.
    pub all: Option<Duration>,
}

/// What is analysed, and how.
#[derive(Debug)]
pub struct Plan<'a> {
    /// The jobs.
    pub jobs: &'a [ListedJob],
    /// Arguments of `analyze` that name the connection and the span.
    pub arguments: &'a [OsString],
    /// Arguments of `analyze` that name files and folders.
    pub input: &'a [OsString],
    /// Variables that `analyze` is given beside those of this process: arguments can be read by everybody.
    pub environment: &'a [(&'static str, Secret)],
    /// Further flags of `analyze`.
    pub flags: &'a [String],
    /// Whether these have it exit with 1 where somebody stands out.
    pub exits_with_one: bool,
    /// The sweep's folder.
    pub folder: &'a Path,
    /// Results of an earlier sweep, by job; those that still hold are kept.
    pub earlier: &'a BTreeMap<String, JobResult>,
}

/// The parts of `summary.json` that a ledger repeats.
#[derive(Deserialize)]
struct ChildSummary {
    status: verdict::Status,
    anomaly_ranks: Vec<u32>,
    anomaly_nodes: Vec<String>,
    cause: String,
    headlines: Vec<Headline>,
    what_if: Option<ChildCost>,
    windows: Vec<ChildWindow>,
}

/// A slow window of several.
#[derive(Deserialize)]
struct ChildWindow {
    headlines: Vec<Headline>,
}

#[derive(Deserialize)]
struct ChildCost {
    reason: Option<String>,
    faults_share: Option<f64>,
    seconds: Option<f64>,
    gpu_hours: Option<f64>,
}

impl ChildSummary {
    fn cost(&self) -> Option<JobCost> {
        let cost = self.what_if.as_ref().filter(|cost| cost.reason.is_none())?;
        Some(JobCost {
            share: cost.faults_share?,
            seconds: cost.seconds?,
            gpu_hours: cost.gpu_hours?,
        })
    }
}

/// Analyses the jobs and gives each result, as it comes, to `each`; in the end all of them by id.
///
/// # Errors
/// What `each` returns; no job's own failure is one.
pub fn run(
    plan: &Plan<'_>,
    budget: Budget,
    each: &(dyn Fn(&JobResult) -> Result<(), SweepError> + Sync),
) -> Result<Vec<JobResult>, SweepError> {
    let folders = folders(plan.jobs);
    let children = Arc::new(Children::default());
    let ending = Arc::clone(&children);
    let _on_interrupt = interrupt::on_interrupt(move || ending.end());
    // A limit beyond the end of time is none.
    let deadline = budget.all.and_then(|limit| Instant::now().checked_add(limit));
    let next = AtomicUsize::new(0);
    let results = Mutex::new(Vec::with_capacity(plan.jobs.len()));
    let work = || -> Result<(), SweepError> {
        while let Some(listed) = plan.jobs.get(next.fetch_add(1, Ordering::Relaxed)) {
            let folder = folders.get(&listed.entry.job).map_or("", String::as_str);
            let result = result_of(plan, listed, folder, budget, deadline, &children);
            each(&result)?;
            results.lock().unwrap_or_else(PoisonError::into_inner).push(result);
        }
        Ok(())
    };
    std::thread::scope(|scope| {
        let workers: Vec<_> = (0..budget.in_parallel.min(plan.jobs.len()))
            .map(|_| scope.spawn(work))
            .collect();
        workers
            .into_iter()
            .try_for_each(|worker| worker.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)))
    })?;
    let mut results = results.into_inner().unwrap_or_else(PoisonError::into_inner);
    results.sort_by(|a: &JobResult, b| a.job.cmp(&b.job));
    Ok(results)
}

fn result_of(
    plan: &Plan<'_>,
    listed: &ListedJob,
    folder: &str,
    budget: Budget,
    deadline: Option<Instant>,
    children: &Children,
) -> JobResult {
    let entry = &listed.entry;
    let fingerprint = fingerprint(listed, plan.flags);
    if let Some(earlier) = plan.earlier.get(&entry.job) {
        let there = earlier
            .folder
            .as_ref()
            .is_none_or(|folder| plan.folder.join(folder).is_dir());
        if earlier.fingerprint == fingerprint && !earlier.status.is_broken() && there {
            return earlier.clone();
        }
    }
    let without = |status, error| JobResult::without(&entry.job, status, error, fingerprint.clone());
    let now = Instant::now();
    let limit = [deadline, now.checked_add(budget.job)].into_iter().flatten().min();
    if limit.is_some_and(|limit| limit <= now) {
        return without(Status::NotReached, Some("the time of the sweep was up".to_owned()));
    }
    let place = plan.folder.join(folder);
    match analyse(plan, listed, &place, limit, children) {
        Err(error) => without(Status::Failed, Some(format!("failed to start: {error}"))),
        Ok(Ended::Late) => {
            let seconds = now.elapsed().as_secs();
            without(
                Status::OutOfTime,
                Some(format!("ended after {seconds} s, when its time was up")),
            )
        }
        Ok(Ended::Itself(Some(code), _)) if code == 0 || (code == 1 && plan.exits_with_one) => match verdict_in(&place)
        {
            Ok(verdict) => JobResult {
                folder: Some(folder.to_owned()),
                cost: verdict.cost(),
                verdict: Some(verdict.status),
                anomaly_ranks: verdict.anomaly_ranks,
                anomaly_nodes: verdict.anomaly_nodes,
                cause: verdict.cause,
                headlines: verdict
                    .headlines
                    .into_iter()
                    .chain(verdict.windows.into_iter().flat_map(|window| window.headlines))
                    .collect(),
                ..without(Status::Analysed, None)
            },
            Err(reason) => without(Status::Failed, Some(reason)),
        },
        Ok(Ended::Itself(Some(NO_ROWS), words)) => without(Status::NoRows, Some(words)),
        Ok(Ended::Itself(Some(code), words)) => without(Status::Failed, Some(format!("exit code {code}: {words}"))),
        Ok(Ended::Itself(None, words)) => without(
            Status::Failed,
            Some(format!("killed by a signal {words}").trim_end().to_owned()),
        ),
    }
}

/// How a process ended.
enum Ended {
    /// With an exit code (none after a signal) and its last words.
    Itself(Option<i32>, String),
    /// By us.
    Late,
}

fn analyse(
    plan: &Plan<'_>,
    listed: &ListedJob,
    place: &Path,
    limit: Option<Instant>,
    children: &Children,
) -> std::io::Result<Ended> {
    let job = &listed.entry.job;
    let mut words = tempfile::tempfile()?;
    let mut child = Command::new(std::env::current_exe()?);
    child
        .arg("analyze")
        .args(plan.arguments)
        .arg(job_argument(job))
        .arg("--out")
        .arg(place)
        .args(["--force", "--format", "json"])
        .args(plan.flags);
    match &listed.files {
        Some(files) => child.args(files.iter().map(|path| named(path))),
        None => child.args(plan.input),
    };
    child
        .env(interrupt::ENDS_WITH_INPUT, "1")
        .envs(plan.environment.iter().map(|(name, value)| (name, value.reveal())))
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .stderr(words.try_clone()?);
    let id = children.start(&mut child)?;
    let ended = loop {
        match children.look(id)? {
            Some(status) => break Ended::Itself(status.code(), String::new()),
            None if limit.is_some_and(|limit| Instant::now() >= limit) => {
                children.end_one(id)?;
                break Ended::Late;
            }
            None => std::thread::sleep(BEAT),
        }
    };
    children.forget(id);
    let Ended::Itself(code, _) = ended else {
        return Ok(ended);
    };
    let mut text = Vec::new();
    words.rewind()?;
    words.read_to_end(&mut text)?;
    Ok(Ended::Itself(code, last_words(&String::from_utf8_lossy(&text))))
}

/// The flag that names a job, with the equals sign, so that an id that begins with a dash is one. No argument of a process
/// holds a NUL, which an id may.
fn job_argument(job: &str) -> String {
    if job.contains('\0') {
        return format!("--job-id-json={}", serde_json::json!(job));
    }
    format!("--job-id={job}")
}

/// A path that can't be taken for a flag.
pub fn named(path: &Path) -> OsString {
    if path.as_os_str().as_encoded_bytes().starts_with(b"-") {
        return Path::new(".").join(path).into_os_string();
    }
    path.as_os_str().to_owned()
}

/// The line with the error, else the last one.
fn last_words(text: &str) -> String {
    let error = text.lines().rev().find_map(|line| line.strip_prefix("error: "));
    let line = error.or_else(|| text.lines().next_back()).unwrap_or_default();
    line.chars().take(1000).collect()
}

fn verdict_in(place: &Path) -> Result<ChildSummary, String> {
    let file = place.join("summary.json");
    let text = std::fs::read(&file).map_err(|error| format!("{}: {error}", file.display()))?;
    serde_json::from_slice(&text).map_err(|error| format!("{}: {error}", file.display()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_error_is_told_of_many_words() {
        assert_eq!(last_words("clickhouse: again\nerror: no rows\n"), "no rows");
        assert_eq!(last_words("thread panicked\nat x\n"), "at x");
        assert_eq!(last_words(""), "");
    }
}
