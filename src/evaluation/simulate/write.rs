//! Files of a simulated job: `<job>.parquet` and its entry in `labels.json`.

use std::collections::BTreeMap;
use std::fs;
use std::io::{BufWriter, ErrorKind, Write};
use std::path::{Path, PathBuf};

use polars::prelude::*;
use tempfile::{Builder, NamedTempFile};

use super::error::{SimulateError, WriteError};
use super::labels::Label;
use super::rows::Rows;
use super::scenario::Scenario;
use super::simulate_into;
use crate::interrupt::remove_on_interrupt;

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

    let mut file = beside(folder)?;
    let unfinished = remove_on_interrupt(file.path());
    let encode = |source| WriteError::Parquet {
        path: parquet.clone(),
        source,
    };
    let schema = Rows::new(scenario).take()?.schema().clone();
    let mut rows = 0;
    let label = {
        let mut writer = ParquetWriter::new(BufWriter::new(file.as_file_mut()))
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
    let labels_file = stage_labels(folder, &labels, &known)?;
    unfinished.finish(|| rename(file, &parquet).and_then(|()| rename(labels_file, &labels)))?;
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
) -> Result<NamedTempFile, WriteError> {
    let mut file = beside(folder)?;
    let mut text = serde_json::to_vec_pretty(labels).map_err(|source| WriteError::Labels {
        path: path.to_owned(),
        source,
    })?;
    text.push(b'\n');
    file.write_all(&text).map_err(io(path))?;
    Ok(file)
}

/// A file that removes itself unless renamed. Readable by others, unlike temporary files usually.
fn beside(folder: &Path) -> Result<NamedTempFile, WriteError> {
    let mut builder = Builder::new();
    builder.prefix(".simulate-").suffix(".part");
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt;
        builder.permissions(fs::Permissions::from_mode(0o666));
    }
    builder.tempfile_in(folder).map_err(io(folder))
}

fn rename(file: NamedTempFile, path: &Path) -> Result<(), WriteError> {
    file.as_file().sync_all().map_err(io(path))?;
    file.persist(path).map_err(|error| io(path)(error.error))?;
    Ok(())
}
