//! Files with machine metrics.
//!
//! | ending | content |
//! |---|---|
//! | `.parquet`, `.csv`, `.csv.*` | long: columns `timestamp`, `node`, `metric`, `value`, and `job` if there are several |
//! | the same | wide: a time column and a column a machine; the file's name is the metric |
//! | `.ndjson`, `.jsonl` | long, a JSON object a line |
//! | `.json` | a `query_range` answer of Prometheus (`resultType` `matrix`) |

mod csv;
mod json;
mod parquet;
mod table;

use std::path::{Path, PathBuf};

use super::error::MachinesError;
use super::names::Names;
use super::samples::{Collector, Minutes, Task};
use crate::source::clickhouse::MachineSeries;

/// Reads the files of one task. Folders stand for the files in them that have a known ending.
///
/// # Errors
/// A file that can't be read or is not understood, several jobs without a choice, no samples.
pub fn read(paths: &[PathBuf], job: Option<&str>, minutes: Minutes, names: &Names) -> Result<Task, MachinesError> {
    let mut collector = Collector::new(job, minutes);
    for path in &files(paths)? {
        match ending(path) {
            Some(Ending::Parquet) => parquet::read(path, &mut collector)?,
            Some(Ending::Csv) => csv::read(path, &mut collector)?,
            Some(Ending::Lines) => json::read_lines(path, &mut collector)?,
            Some(Ending::Prometheus) => json::read_matrix(path, &mut collector)?,
            None => {
                let reason = "unknown kind of file; .parquet, .csv, .ndjson, .jsonl or a Prometheus .json is needed";
                return Err(MachinesError::content(path, reason));
            }
        }
    }
    collector.finish(names)
}

/// Takes the samples that a server sent for one task.
///
/// # Errors
/// Several jobs without a choice, no samples.
pub fn of_server(
    series: &[MachineSeries],
    job: Option<&str>,
    minutes: Minutes,
    names: &Names,
) -> Result<Task, MachinesError> {
    let mut collector = Collector::new(job, minutes);
    for series in series {
        if !collector.wants_job(&series.job_name) {
            continue;
        }
        let (metric, node) = (collector.metric(&series.metric_name), collector.node(&series.node_name));
        let place = collector.series(metric, node);
        for (&time, &value) in series.times_ms.iter().zip(&series.readings) {
            collector.push(place, time, value);
        }
    }
    collector.finish(names)
}

#[derive(Debug, Clone, Copy)]
enum Ending {
    Parquet,
    Csv,
    Lines,
    Prometheus,
}

fn ending(path: &Path) -> Option<Ending> {
    match path.extension()?.to_str()? {
        "parquet" => Some(Ending::Parquet),
        "csv" => Some(Ending::Csv),
        "ndjson" | "jsonl" => Some(Ending::Lines),
        "json" => Some(Ending::Prometheus),
        _ => None,
    }
}

fn files(paths: &[PathBuf]) -> Result<Vec<PathBuf>, MachinesError> {
    let mut found = Vec::new();
    for path in paths {
        if !path.is_dir() {
            found.push(path.clone());
            continue;
        }
        let mut inside: Vec<PathBuf> = std::fs::read_dir(path)
            .map_err(MachinesError::read(path))?
            .flatten()
            .map(|entry| entry.path())
            .filter(|path| ending(path).is_some() && path.file_name().is_some_and(|name| name != "labels.json"))
            .collect();
        if inside.is_empty() {
            return Err(MachinesError::content(
                path,
                "no file with machine metrics in this folder",
            ));
        }
        inside.sort();
        found.append(&mut inside);
    }
    Ok(found)
}
