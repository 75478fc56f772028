//! The jobs of a benchmark: a folder of labelled files, or simulated ones.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use super::error::{CaseError, ScoreError};
use super::truth::Truth;
use crate::contract::defaults::WARMUP_ITERATIONS;
use crate::evaluation::simulate::{LABELS, Label, Scenario, SimulateError, simulate_into};
use crate::evaluation::suite::{Kind, NoiseLevel};
use crate::job::{Collector, Job, Selection, load};
use crate::source::{Columns, Format, Scan, SourceError, SourceFile, rows_of};

/// Where a job's rows come from.
#[derive(Debug, Clone)]
pub enum Origin {
    /// A Parquet file; the name of the case is the job id in it.
    File(PathBuf),
    /// A simulation, made when it is needed.
    Simulated(Box<Scenario>),
}

/// One job of a benchmark.
#[derive(Debug)]
pub struct Case {
    /// Name of the job.
    pub name: String,
    /// What is true about it, where a file's label can be read; a simulation brings its own.
    pub truth: Result<Option<Truth>, CaseError>,
    /// Where its rows come from.
    pub origin: Origin,
}

/// What a folder holds.
#[derive(Debug, Default)]
pub struct LabelledJobs {
    /// Jobs with a label and a file, by name.
    pub cases: Vec<Case>,
    /// Labels of which there is no file.
    pub labels_without_file: Vec<String>,
    /// Files of which there is no label.
    pub files_without_label: Vec<String>,
}

/// Finds the labelled jobs of a folder: `labels.json`, and beside it `<job>.parquet` for each of its entries.
///
/// # Errors
/// A folder or labels that can't be read; a label that can't be read alone is its job's failure.
pub fn labelled_jobs(folder: &Path) -> Result<LabelledJobs, ScoreError> {
    let io = |path: &Path| {
        let path = path.to_owned();
        move |source| ScoreError::Io { path, source }
    };
    let path = folder.join(LABELS);
    let bytes = std::fs::read(&path).map_err(io(&path))?;
    let labels: BTreeMap<String, serde_json::Value> =
        serde_json::from_slice(&bytes).map_err(|source| ScoreError::Labels {
            path: path.clone(),
            source,
        })?;
    let mut files = BTreeSet::new();
    for entry in std::fs::read_dir(folder).map_err(io(folder))? {
        let path = entry.map_err(io(folder))?.path();
        let parquet = path.extension().is_some_and(|ending| ending == "parquet");
        if let Some(name) = path.file_stem().and_then(|name| name.to_str()).filter(|_| parquet) {
            files.insert(name.to_owned());
        }
    }
    let mut found = LabelledJobs {
        files_without_label: files
            .iter()
            .filter(|name| !labels.contains_key(*name))
            .cloned()
            .collect(),
        ..LabelledJobs::default()
    };
    for (name, label) in labels {
        if files.contains(&name) {
            found.cases.push(Case {
                truth: serde_json::from_value(label).map(Some).map_err(CaseError::Label),
                origin: Origin::File(folder.join(format!("{name}.parquet"))),
                name,
            });
        } else {
            found.labels_without_file.push(name);
        }
    }
    Ok(found)
}

/// The simulated jobs of some kinds, one a seed; with `wander` their ranks' levels wander besides.
#[must_use]
pub fn suite_jobs(
    kinds: &[&Kind],
    seeds: impl Iterator<Item = u64> + Clone,
    level: NoiseLevel,
    wander: bool,
) -> Vec<Case> {
    let scenario = |kind: &Kind, seed| {
        if wander {
            kind.wandering_scenario(seed, level)
        } else {
            kind.scenario(seed, level)
        }
    };
    let jobs = kinds
        .iter()
        .flat_map(|kind| seeds.clone().map(move |seed| scenario(kind, seed)));
    jobs.map(|scenario| Case {
        name: scenario.job.clone(),
        truth: Ok(None),
        origin: Origin::Simulated(Box::new(scenario)),
    })
    .collect()
}

impl Case {
    /// Its kind, where that is known before the job is.
    #[must_use]
    pub fn kind(&self) -> Option<&str> {
        match (&self.truth, &self.origin) {
            (Ok(Some(truth)), _) => Some(&truth.kind),
            (_, Origin::Simulated(scenario)) => scenario.kind.as_deref(),
            _ => None,
        }
    }

    /// Loads or simulates the job, with its truth.
    pub(super) fn job(&self) -> Result<(Job, Truth), CaseError> {
        match &self.origin {
            Origin::Simulated(scenario) => {
                let (job, label) = simulated_job(scenario, WARMUP_ITERATIONS)?;
                Ok((job, Truth::from(&label)))
            }
            Origin::File(path) => {
                // A label that can't be read was told before.
                let truth = self.truth.as_ref().ok().and_then(Clone::clone);
                let truth = truth.ok_or_else(|| SourceError::NoRows("the job has no label".to_owned()))?;
                let file = SourceFile::new(path.clone(), Format::Parquet);
                let selection = selection(&self.name, truth.warmup);
                Ok((load(&[file], &selection, &|_| ())?, truth))
            }
        }
    }
}

/// Everything of a job but its start-up.
fn selection(job: &str, warmup: u32) -> Selection {
    Selection {
        job: Some(job.to_owned()),
        warmup,
        ..Selection::default()
    }
}

/// Simulates a job into its tables, without a file between; the same job as one that is written and loaded.
///
/// # Errors
/// A scenario that is not possible, or that leaves nothing after the start-up of `warmup` iterations.
pub fn simulated_job(scenario: &Scenario, warmup: u32) -> Result<(Job, Label), CaseError> {
    let selection = selection(&scenario.job, warmup);
    let mut collector = Collector::new(&selection);
    let mut refused: Option<SourceError> = None;
    let label = simulate_into(scenario, |frame| {
        let absorbed = rows_of(Path::new("simulation"), &frame, Columns::Analysed)
            .map(|rows| collector.digest(rows))
            .and_then(|digest| collector.absorb(digest));
        if let Err(error) = absorbed {
            refused.get_or_insert(error);
        }
        Ok::<(), SimulateError>(())
    })?;
    match refused {
        Some(error) => Err(error.into()),
        None => Ok((Job::assemble(collector, &selection)?, label)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::evaluation::simulate::write_job;

    #[test]
    fn a_simulation_gives_the_same_job_as_its_file() {
        let scenario = Scenario {
            dirty: 0.01,
            iterations: 16,
            rerun: Some("13".parse().expect("a rerun")),
            trace: false,
            ..Scenario::default()
        };
        let folder = tempfile::tempdir().expect("a folder");
        let written = write_job(&scenario, folder.path(), false).expect("a job");
        let found = labelled_jobs(folder.path()).expect("labels");
        let (read, truth) = found.cases[0].job().expect("a job");
        let (made, label) = simulated_job(&scenario, WARMUP_ITERATIONS).expect("a job");
        assert_eq!((&label, truth), (&written.label, Truth::from(&label)));
        assert_eq!(
            (&read.ranks, &read.nodes, &read.iterations),
            (&made.ranks, &made.nodes, &made.iterations)
        );
        assert_eq!(
            (&read.iteration_times, &read.topology, &read.runs),
            (&made.iteration_times, &made.topology, &made.runs)
        );
        assert_eq!(read.quality, made.quality);
        assert_eq!(read.timers.len(), made.timers.len());
        for (one, other) in read.timers.iter().zip(&made.timers) {
            assert_eq!(one.name, other.name);
            let same = |(a, b): (&f64, &f64)| a == b || (a.is_nan() && b.is_nan());
            assert!(one.seconds.iter().zip(&other.seconds).all(same), "{}", one.name);
        }
    }

    #[test]
    fn files_and_labels_that_lack_each_other_are_told() {
        let folder = tempfile::tempdir().expect("a folder");
        let write = |name: &str, text: &str| std::fs::write(folder.path().join(name), text).expect("a file");
        assert!(matches!(labelled_jobs(folder.path()), Err(ScoreError::Io { .. })));
        write("labels.json", "[1]");
        assert!(matches!(labelled_jobs(folder.path()), Err(ScoreError::Labels { .. })));
        write(
            "labels.json",
            r#"{"a":{"kind":"k","cause":"none"},"b":{"kind":"k","cause":"none"},"c":3}"#,
        );
        write("b.parquet", "");
        write("c.parquet", "");
        write("d.parquet", "");
        let found = labelled_jobs(folder.path()).expect("labels");
        assert_eq!(
            (found.labels_without_file, found.files_without_label),
            (vec!["a".to_owned()], vec!["d".to_owned()])
        );
        assert_eq!(
            (found.cases.len(), found.cases[0].kind(), found.cases[1].kind()),
            (2, Some("k"), None)
        );
        assert!(found.cases[1].truth.is_err());
    }
}
