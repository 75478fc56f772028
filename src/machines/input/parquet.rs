//! Parquet, long or wide, in slices so that memory stays bounded.

use std::fs::File;
use std::path::Path;

use polars::prelude::*;

use super::table::{Layout, LongRows, layout, metric_of_file, time_ms};
use crate::machines::error::MachinesError;
use crate::machines::samples::Collector;
use crate::source::guard::guarded;
use crate::source::timestamp;

const ROWS_A_SLICE: usize = 1 << 20;

/// Reads a file.
///
/// # Errors
/// A file that can't be read or is no Parquet, columns that are missing or of a wrong type.
pub fn read(path: &Path, collector: &mut Collector) -> Result<(), MachinesError> {
    let wrong = |reason: String| MachinesError::content(path, reason);
    let file = File::open(path).map_err(MachinesError::read(path))?;
    let mut reader = ParquetReader::new(file);
    let total = guarded(|| reader.num_rows()).map_err(|reason| wrong(format!("no Parquet: {reason}")))?;
    let schema = guarded(|| reader.schema()).map_err(|reason| wrong(format!("no Parquet: {reason}")))?;
    let metadata =
        guarded(|| reader.get_metadata().cloned()).map_err(|reason| wrong(format!("no Parquet: {reason}")))?;
    let names: Vec<String> = schema.iter_names().map(|name| name.to_string()).collect();
    let layout = layout(path, &names)?;
    let wanted = match &layout {
        Layout::Long {
            time,
            job,
            node,
            metric,
            value,
        } => {
            let places = [Some(*time), *job, Some(*node), Some(*metric), Some(*value)];
            places.into_iter().flatten().map(|place| names[place].clone()).collect()
        }
        Layout::Wide { .. } => names.clone(),
    };
    let mut first = 0;
    while first < total {
        let file = File::open(path).map_err(MachinesError::read(path))?;
        let rows = ROWS_A_SLICE.min(total - first);
        let frame = guarded(|| {
            let mut reader = ParquetReader::new(file)
                .with_columns(Some(wanted.clone()))
                .with_slice(Some((first, rows)));
            reader.set_metadata(metadata.clone());
            reader.finish()
        })
        .map_err(|reason| wrong(format!("rows from {first} on can't be decoded: {reason}")))?;
        absorb(path, &frame, &layout, &names, collector)?;
        first += rows;
    }
    Ok(())
}

fn absorb(
    path: &Path,
    frame: &DataFrame,
    layout: &Layout,
    names: &[String],
    collector: &mut Collector,
) -> Result<(), MachinesError> {
    let column = |place: usize| Named {
        path,
        frame,
        name: &names[place],
    };
    match layout {
        Layout::Long {
            time,
            job,
            node,
            metric,
            value,
        } => {
            let times = column(*time).times()?;
            let jobs = job.map(|place| column(place).text()).transpose()?;
            let (nodes, metrics) = (column(*node).text()?, column(*metric).text()?);
            let values = column(*value).numbers()?;
            let mut jobs = jobs.as_ref().map(|jobs| jobs.iter());
            let (mut nodes, mut metrics, mut values) = (nodes.iter(), metrics.iter(), values.iter());
            let mut rows = LongRows::new(collector);
            for time in times {
                let job = jobs.as_mut().map_or(Some(""), |jobs| jobs.next().flatten());
                let (node, metric) = (nodes.next().flatten(), metrics.next().flatten());
                rows.add(time, job, node, metric, values.next().flatten());
            }
        }
        Layout::Wide { time, nodes } => {
            collector.wants_job("");
            let metric = collector.metric(&metric_of_file(path));
            let times = column(*time).times()?;
            for &place in nodes {
                let values = column(place).numbers()?;
                let node = collector.node(&names[place]);
                let series = collector.series(metric, node);
                for (time, value) in times.iter().zip(values.iter()) {
                    match (time, value) {
                        (Some(time), Some(value)) => collector.push(series, *time, value),
                        (None, _) => collector.unreadable(),
                        (_, None) => {}
                    }
                }
            }
        }
    }
    Ok(())
}

/// A column with what its errors tell.
struct Named<'a> {
    path: &'a Path,
    frame: &'a DataFrame,
    name: &'a str,
}

impl Named<'_> {
    fn cast(&self, to: &DataType, what: &str) -> Result<Column, MachinesError> {
        let wrong = |reason: String| MachinesError::content(self.path, format!("column `{}`: {reason}", self.name));
        let column = self.frame.column(self.name).map_err(|error| wrong(error.to_string()))?;
        guarded(|| column.cast(to)).map_err(|reason| {
            let reason = format!("{what} are needed, not {} ({reason})", column.dtype());
            MachinesError::content(self.path, format!("column `{}`: {reason}", self.name))
        })
    }

    fn text(&self) -> Result<StringChunked, MachinesError> {
        let column = self.cast(&DataType::String, "names")?;
        column
            .str()
            .cloned()
            .map_err(|error| MachinesError::content(self.path, error.to_string()))
    }

    fn numbers(&self) -> Result<Float64Chunked, MachinesError> {
        let column = self.cast(&DataType::Float64, "numbers")?;
        column
            .f64()
            .cloned()
            .map_err(|error| MachinesError::content(self.path, error.to_string()))
    }

    fn times(&self) -> Result<Vec<Option<i64>>, MachinesError> {
        let wrong = |reason: String| MachinesError::content(self.path, format!("column `{}`: {reason}", self.name));
        let column = self.frame.column(self.name).map_err(|error| wrong(error.to_string()))?;
        match column.dtype() {
            DataType::Datetime(unit, _) => {
                let a_ms = match unit {
                    TimeUnit::Nanoseconds => 1_000_000,
                    TimeUnit::Microseconds => 1_000,
                    TimeUnit::Milliseconds => 1,
                };
                let numbers = self.cast(&DataType::Int64, "times")?;
                let numbers = numbers.i64().map_err(|error| wrong(error.to_string()))?;
                Ok(numbers.iter().map(|time| Some(time?.div_euclid(a_ms))).collect())
            }
            DataType::String => Ok(self.text()?.iter().map(|time| time_ms(time?)).collect()),
            _ => {
                let numbers = self.numbers()?;
                let time = |number: Option<f64>| Some(timestamp::from_epoch(number?)?.div_euclid(1000));
                Ok(numbers.iter().map(time).collect())
            }
        }
    }
}
