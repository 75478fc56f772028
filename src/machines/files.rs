//! The folder of results: the verdict as text, JSON and page, the scores as Parquet.

use std::fs::{self, File};
use std::path::Path;

use polars::prelude::*;

use super::detect::Detection;
use super::error::MachinesError;
use super::page::page;
use super::text::text;
use crate::interrupt::remove_on_interrupt;

/// Writes `summary.txt`, `verdict.json`, `report.html` and `scores.parquet` into a folder, whole or not at all.
///
/// # Errors
/// A folder that is there already without `replace`, or what can't be written.
pub fn write_folder(folder: &Path, detection: &Detection, replace: bool) -> Result<(), MachinesError> {
    let failed = |error: std::io::Error| MachinesError::write(folder, error);
    if folder.exists() && !replace {
        return Err(MachinesError::write(
            folder,
            "it is there already; --replace replaces it",
        ));
    }
    let parent = folder
        .parent()
        .filter(|parent| !parent.as_os_str().is_empty())
        .unwrap_or(Path::new("."));
    fs::create_dir_all(parent).map_err(failed)?;
    let building = tempfile::Builder::new()
        .prefix(".machines-")
        .tempdir_in(parent)
        .map_err(failed)?;
    let _unfinished = remove_on_interrupt(building.path());
    let verdict = &detection.verdict;
    fs::write(building.path().join("summary.txt"), text(verdict)).map_err(failed)?;
    let json = serde_json::to_string_pretty(verdict).map_err(|error| MachinesError::write(folder, error))?;
    fs::write(building.path().join("verdict.json"), json + "\n").map_err(failed)?;
    let page = page(verdict).map_err(|error| MachinesError::write(folder, error))?;
    fs::write(building.path().join("report.html"), page).map_err(failed)?;
    let path = building.path().join("scores.parquet");
    let file = File::create(&path).map_err(failed)?;
    let mut frame = scores(detection).map_err(|error| MachinesError::write(&path, error))?;
    ParquetWriter::new(file)
        .with_compression(ParquetCompression::Zstd(None))
        .finish(&mut frame)
        .map_err(|error| MachinesError::write(&path, error))?;
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt;
        // Temporary folders are their owner's alone; results are for everybody.
        fs::set_permissions(building.path(), fs::Permissions::from_mode(0o755)).map_err(failed)?;
    }
    if folder.exists() {
        fs::remove_dir_all(folder).map_err(failed)?;
    }
    fs::rename(building.keep(), folder).map_err(failed)
}

/// A row a metric, stretch and machine: `metric`, `start_seconds` (of the stretch, from the window's start), `machine`
/// (its place in the sorted list), `score`. Scores of 0 are left out: most machines have none in most stretches.
fn scores(detection: &Detection) -> PolarsResult<DataFrame> {
    let (mut metrics, mut starts, mut machines, mut scores) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
    for metric in &detection.scores {
        for (window, by_machine) in &metric.scores.by_stretch {
            for (machine, &score) in by_machine.iter().enumerate().filter(|(_, score)| **score > 0.0) {
                metrics.push(metric.name.as_str());
                starts.push(*window as f32 * metric.slide_s);
                machines.push(machine as u32);
                scores.push(score);
            }
        }
    }
    DataFrame::new(
        metrics.len(),
        vec![
            Column::new("metric".into(), metrics),
            Column::new("start_seconds".into(), starts),
            Column::new("machine".into(), machines),
            Column::new("score".into(), scores),
        ],
    )
}
