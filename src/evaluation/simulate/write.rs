//! Files of a simulated job: `<job>.parquet` and its entry in `labels.json`.

use std::collections::BTreeMap;
use std::fs;
use std::io::{BufWriter, ErrorKind};
use std::path::{Path, PathBuf};

use polars::prelude::*;

use super::error::{SimulateError, WriteError};
use super::labels::Label;
use super::rows::Rows;
use super::scenario::Scenario;
use super::simulate_into;
use crate::building::{Building, put_files};

/// Name of the file with the labels of all jobs in a folder.
pub const LABELS: &str = "labels.json";

/// The files that [`write_job`] wrote.
#[derive(Debug, Clone)]
pub struct Written {
    /// The job's rows.
    pub parquet: PathBuf,
    /// Number of rows in it.
    pub rows: usize,
    /// The labels of the folder.
    pub labels: PathBuf,
    /// The job's own label.
    pub label: Label,
}

/// Simulates a job into `folder` (made if missing). Both files are written beside and renamed when
/// whole; an existing `labels.json` keeps its other jobs. Memory stays bounded: row groups are
/// written as they are made. Jobs of one folder must be written one after the other.
///
/// # Errors
/// A scenario that is not possible, an existing job without `replace`, an existing `labels.json`
/// that is no JSON object, or a failure to write.
pub fn write_job(scenario: &Scenario, folder: &Path, replace: bool) -> Result<Written, SimulateError> {
    scenario.validate()?;
    let parquet = folder.join(format!("{}.parquet", scenario.job));
    let labels = folder.join(LABELS);
    if !replace && parquet.exists() {
        return Err(WriteError::Exists { path: parquet }.into());
    }
    fs::create_dir_all(folder).map_err(io(folder))?;
    let mut known = read_labels(&labels)?;

    let unfinished = Building::file(folder).map_err(io(folder))?;
    let file = fs::File::create(unfinished.path()).map_err(io(&parquet))?;
    let encode = |source| WriteError::Parquet {
        path: parquet.clone(),
        source,
    };
    let schema = Rows::new(scenario).take()?.schema().clone();
    let mut rows = 0;
    let label = {
        let mut writer = ParquetWriter::new(BufWriter::new(&file))
            .with_compression(ParquetCompression::Zstd(None))
            .batched(&schema)
            .map_err(encode)?;
        let label = simulate_into(scenario, |frame| {
            rows += frame.height();
            Ok(writer.write_batch(&frame).map_err(encode)?)
        })?;
        writer.finish().map_err(encode)?;
        label
    };
    known.insert(
        scenario.job.clone(),
        serde_json::to_value(&label).map_err(|source| WriteError::Labels {
            path: labels.clone(),
            source,
        })?,
    );
    file.sync_all().map_err(io(&parquet))?;
    let unfinished_labels = stage_labels(folder, &labels, &known)?;
    put_files([(unfinished, &parquet), (unfinished_labels, &labels)]).map_err(io(folder))?;
    Ok(Written {
        parquet,
        rows,
        labels,
        label,
    })
}

fn io(path: &Path) -> impl FnOnce(std::io::Error) -> WriteError {
    let path = path.to_owned();
    move |source| WriteError::Io { path, source }
}

fn read_labels(path: &Path) -> Result<BTreeMap<String, serde_json::Value>, WriteError> {
    match fs::read(path) {
        Ok(bytes) => serde_json::from_slice(&bytes).map_err(|source| WriteError::Labels {
            path: path.to_owned(),
            source,
        }),
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(BTreeMap::new()),
        Err(error) => Err(io(path)(error)),
    }
}

fn stage_labels(
    folder: &Path,
    path: &Path,
    labels: &BTreeMap<String, serde_json::Value>,
) -> Result<Building, WriteError> {
    let file = Building::file(folder).map_err(io(folder))?;
    let mut text = serde_json::to_vec_pretty(labels).map_err(|source| WriteError::Labels {
        path: path.to_owned(),
        source,
    })?;
    text.push(b'\n');
    fs::write(file.path(), text).map_err(io(path))?;
    Ok(file)
}
