//! The jobs of an input: what `jobs` lists and what an unknown job id is answered with.

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;

use schemars::JsonSchema;
use serde::Serialize;

use crate::contract::metrics::{GROUPS, SUMMARY, TIMERS};
use crate::source::{Micros, Need, PartStatistics, Rows, Scan, SourceError, SourceFile, TextColumn, scan, timestamp};

/// One job of an input.
#[derive(Debug, Default, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct JobEntry {
    /// Job id.
    pub job: String,
    /// Distinct ranks with a timer row.
    pub ranks: usize,
    /// Distinct nodes.
    pub nodes: usize,
    /// Distinct iterations with a timer row.
    pub iterations: usize,
    /// First iteration.
    pub first_iteration: Option<i64>,
    /// Last iteration.
    pub last_iteration: Option<i64>,
    /// Time of the first row, UTC.
    pub first_time: Option<String>,
    /// Time of the last row, UTC.
    pub last_time: Option<String>,
    /// Names of the timers.
    pub timers: Vec<String>,
    /// Pipeline stages that the job's group rows give; `None` when it has none.
    pub pp_size: Option<u32>,
    /// Runs (`rerun_uuid`).
    pub runs: usize,
    /// Rows of any metric.
    pub rows: u64,
}

/// Lists the jobs of the files, by id.
///
/// # Errors
/// The first file that can't be read.
pub fn list_jobs(files: &[SourceFile], progress: &dyn Fn(u64)) -> Result<Vec<JobEntry>, SourceError> {
    let mut catalog = Catalog::default();
    scan(files, &mut catalog, progress)?;
    Ok(catalog
        .jobs
        .into_iter()
        .map(|(job, seen)| seen.into_entry(job))
        .collect())
}

/// The jobs of files, and what could not be read.
#[derive(Debug)]
pub struct JobsOfFiles {
    /// By id, each with the files that hold rows of it.
    pub jobs: Vec<(JobEntry, Vec<PathBuf>)>,
    /// Files of which nothing counts, with what is wrong with them.
    pub unread: Vec<(PathBuf, SourceError)>,
}

/// Lists the jobs of the files, by id, each with the files that hold rows of it. A file that can't be read takes no other
/// one with it.
#[must_use]
pub fn list_jobs_with_files(files: &[SourceFile]) -> JobsOfFiles {
    let mut jobs: BTreeMap<String, (Seen, Vec<PathBuf>)> = BTreeMap::new();
    let mut unread = Vec::new();
    for file in files {
        let mut catalog = Catalog::default();
        if let Err(error) = scan(std::slice::from_ref(file), &mut catalog, &|_| ()) {
            unread.push((file.path.clone(), error));
            continue;
        }
        for (job, seen) in catalog.jobs {
            let (all, holders) = jobs.entry(job).or_default();
            all.merge(seen);
            holders.push(file.path.clone());
        }
    }
    let entry = |(job, (seen, files)): (String, (Seen, _))| (seen.into_entry(job), files);
    let jobs = jobs.into_iter().map(entry).collect();
    JobsOfFiles { jobs, unread }
}

/// A short list of job ids for a message.
#[must_use]
pub fn name_jobs(jobs: &[JobEntry]) -> String {
    name_ids(&jobs.iter().map(|entry| entry.job.as_str()).collect::<Vec<_>>())
}

/// The same of job ids alone.
pub(super) fn name_ids(ids: &[&str]) -> String {
    const SHOWN: usize = 10;
    let names = &ids[..ids.len().min(SHOWN)];
    match ids.len() {
        0 => "no job at all".to_owned(),
        count if count > SHOWN => format!("{count} jobs: {}, ...", names.join(", ")),
        1 => format!("the job {}", names.join(", ")),
        _ => format!("the jobs {}", names.join(", ")),
    }
}

#[derive(Default)]
struct Catalog {
    jobs: BTreeMap<String, Seen>,
}

#[derive(Default, Clone)]
struct Seen {
    ranks: BTreeSet<i64>,
    nodes: BTreeSet<String>,
    iterations: BTreeSet<i64>,
    times: Option<(Micros, Micros)>,
    timers: BTreeSet<String>,
    stages: Option<u32>,
    runs: BTreeSet<String>,
    rows: u64,
}

impl Seen {
    fn merge(&mut self, mut other: Self) {
        self.ranks.append(&mut other.ranks);
        self.nodes.append(&mut other.nodes);
        self.iterations.append(&mut other.iterations);
        self.timers.append(&mut other.timers);
        self.runs.append(&mut other.runs);
        self.times = match (self.times, other.times) {
            (Some((first, last)), Some((begin, end))) => Some((first.min(begin), last.max(end))),
            (mine, theirs) => mine.or(theirs),
        };
        self.stages = self.stages.max(other.stages);
        self.rows += other.rows;
    }

    fn into_entry(self, job: String) -> JobEntry {
        JobEntry {
            job,
            ranks: self.ranks.len(),
            nodes: self.nodes.len(),
            iterations: self.iterations.len(),
            first_iteration: self.iterations.first().copied(),
            last_iteration: self.iterations.last().copied(),
            first_time: self.times.map(|(first, _)| timestamp::format(first)),
            last_time: self.times.map(|(_, last)| timestamp::format(last)),
            timers: self.timers.into_iter().collect(),
            pp_size: self.stages,
            runs: self.runs.len(),
            rows: self.rows,
        }
    }
}

impl Scan for Catalog {
    type Digest = BTreeMap<String, Seen>;

    fn need(&self, part: &PartStatistics) -> Need {
        if part.may_hold_metric(GROUPS) {
            Need::KeysUnlessMetric(GROUPS)
        } else {
            Need::Keys
        }
    }

    fn digest(&self, rows: Rows) -> Self::Digest {
        let mut seen = vec![Seen::default(); rows.job.words.len()];
        // The sets are only asked about a cell that differs from the one above it.
        let mut above = (TextColumn::MISSING, None, None, TextColumn::MISSING);
        for row in 0..rows.len() {
            let job = rows.job.codes[row];
            let Some(seen) = seen.get_mut(job as usize) else {
                continue;
            };
            seen.rows += 1;
            if let Some(time) = rows.timestamp.get(row) {
                let (first, last) = seen.times.unwrap_or((time, time));
                seen.times = Some((first.min(time), last.max(time)));
            }
            let subname = rows.subname.codes[row];
            match rows.metric_name.get(row) {
                Some(TIMERS) => {
                    let same_job = above.0 == job;
                    let (rank, iteration) = (rows.rank.get(row), rows.iteration.get(row));
                    if !same_job || above.1 != rank {
                        seen.ranks.extend(rank);
                    }
                    if !same_job || above.2 != iteration {
                        seen.iterations.extend(iteration);
                    }
                    if !same_job || above.3 != subname {
                        seen.timers.extend(rows.subname.get(row).map(str::to_owned));
                    }
                    above = (job, rank, iteration, subname);
                }
                Some(SUMMARY) => seen.iterations.extend(rows.iteration.get(row)),
                Some(GROUPS) if rows.subname.get(row) == Some("pp") => {
                    let stage = rows.value.get(row);
                    if let Some(stage) = stage.filter(|stage| (0.0..1e9).contains(stage)) {
                        seen.stages = seen.stages.max(Some(stage as u32 + 1));
                    }
                }
                _ => {}
            }
        }
        for (column, names) in [(&rows.node, true), (&rows.rerun_uuid, false)] {
            let Some(column) = column else { continue };
            let mut pairs: Vec<(u32, u32)> = rows
                .job
                .codes
                .iter()
                .copied()
                .zip(column.codes.iter().copied())
                .collect();
            pairs.dedup();
            pairs.sort_unstable();
            pairs.dedup();
            for (job, word) in pairs {
                if let (Some(seen), Some(word)) = (seen.get_mut(job as usize), column.words.get(word as usize)) {
                    let set = if names { &mut seen.nodes } else { &mut seen.runs };
                    set.insert(word.clone());
                }
            }
        }
        rows.job.words.into_iter().zip(seen).collect()
    }

    fn absorb(&mut self, digest: Self::Digest) -> Result<(), SourceError> {
        for (job, seen) in digest {
            self.jobs.entry(job).or_default().merge(seen);
        }
        Ok(())
    }

    fn skipped(&mut self, _part: &PartStatistics) {}
}
