//! Files of simulated tasks: `<task>.parquet` and its entry in `labels.json`.

use std::collections::BTreeMap;
use std::fs::File;
use std::path::Path;

use polars::prelude::*;

use super::error::MachinesError;
use super::samples::Task;
use super::simulate::Label;

/// Writes a task into a folder, long; an existing `labels.json` keeps its other tasks.
///
/// # Errors
/// What can't be written, or a `labels.json` that is none.
pub fn write_task(folder: &Path, task: &Task, label: &Label) -> Result<(), MachinesError> {
    std::fs::create_dir_all(folder).map_err(|error| MachinesError::write(folder, error))?;
    let path = folder.join(format!("{}.parquet", task.job));
    let failed = |error: PolarsError| MachinesError::write(&path, error);
    let file = tempfile::NamedTempFile::new_in(folder).map_err(|error| MachinesError::write(folder, error))?;
    let open = || File::create(file.path()).map_err(|error| MachinesError::write(&path, error));
    let mut writer = None;
    for metric in &task.metrics {
        let mut frame = frame(task, metric).map_err(failed)?;
        frame.rechunk_mut();
        if writer.is_none() {
            let new = ParquetWriter::new(open()?)
                .with_compression(ParquetCompression::Zstd(None))
                .batched(frame.schema())
                .map_err(failed)?;
            writer = Some(new);
        }
        if let Some(writer) = &mut writer {
            writer.write_batch(&frame).map_err(failed)?;
        }
    }
    if let Some(writer) = writer {
        writer.finish().map_err(failed)?;
    }
    let labels_path = folder.join("labels.json");
    let mut labels: BTreeMap<String, serde_json::Value> = match std::fs::read(&labels_path) {
        Ok(bytes) => {
            serde_json::from_slice(&bytes).map_err(|error| MachinesError::content(&labels_path, error.to_string()))?
        }
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => BTreeMap::new(),
        Err(error) => return Err(MachinesError::read(&labels_path)(error)),
    };
    let label = serde_json::to_value(label).map_err(|error| MachinesError::write(&labels_path, error))?;
    labels.insert(task.job.clone(), label);
    let text = serde_json::to_string_pretty(&labels).map_err(|error| MachinesError::write(&labels_path, error))?;
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt;
        let readable = std::fs::Permissions::from_mode(0o644);
        std::fs::set_permissions(file.path(), readable).map_err(|error| MachinesError::write(&path, error))?;
    }
    file.persist(&path)
        .map_err(|error| MachinesError::write(&path, error))?;
    std::fs::write(&labels_path, text + "\n").map_err(|error| MachinesError::write(&labels_path, error))
}

fn frame(task: &Task, metric: &super::samples::Metric) -> PolarsResult<DataFrame> {
    let rows: usize = metric.series.iter().map(|series| series.times_ms.len()).sum();
    let (mut times, mut nodes, mut values) = (
        Vec::with_capacity(rows),
        Vec::with_capacity(rows),
        Vec::with_capacity(rows),
    );
    for (node, series) in task.nodes.iter().zip(&metric.series) {
        for (&time, &value) in series.times_ms.iter().zip(&series.values) {
            times.push(task.start_ms + i64::from(time));
            nodes.push(node.as_str());
            values.push(value);
        }
    }
    let times = Column::new("timestamp".into(), times).cast(&DataType::Datetime(TimeUnit::Milliseconds, None))?;
    let column =
        |name: &str, value: &str| Column::new_scalar(name.into(), Scalar::from(PlSmallStr::from_str(value)), rows);
    DataFrame::new(
        rows,
        vec![
            times,
            column("job", &task.job),
            Column::new("node".into(), nodes),
            column("metric", &metric.name),
            Column::new("value".into(), values),
        ],
    )
}
