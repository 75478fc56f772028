//! Parquet files with everything that a table stores, not only what an analysis needs.

use std::fs::File;
use std::path::Path;

use polars::prelude::*;
use polars_arrow::array::PrimitiveArray;

use super::discover::{Format, SourceFile};
use super::error::SourceError;
use super::frame::rows_of;
use super::guard::guarded;
use super::rows::{OPTIONAL, REQUIRED, Rows, TextColumn};

/// Rows of a batch.
const BATCH_ROWS: usize = 1 << 17;

/// A batch of rows with all of their values.
pub(super) struct WholeRows {
    /// The columns of the contract, of `metric_values` the first.
    pub rows: Rows,
    /// `cluster`, if the file has it.
    pub cluster: Option<TextColumn>,
    /// `attributes`, if the file has it as text.
    pub attributes: Option<TextColumn>,
    /// Where each row's values end.
    ends: Vec<usize>,
    values: Vec<f64>,
}

impl WholeRows {
    /// All of a row's `metric_values`; a null is NaN.
    pub fn values(&self, row: usize) -> &[f64] {
        let begin = row.checked_sub(1).map_or(0, |above| self.ends[above]);
        &self.values[begin..self.ends[row]]
    }
}

/// Passes the rows of a Parquet file on, in the file's order.
///
/// # Errors
/// A file of another format, one that can't be read or decoded or lacks a column, or what `each` returns.
pub(super) fn read(
    file: &SourceFile,
    each: &mut dyn FnMut(WholeRows) -> Result<(), SourceError>,
) -> Result<(), SourceError> {
    let path = &file.path;
    if file.format != Format::Parquet {
        return Err(SourceError::WrongFormat {
            path: path.clone(),
            expected: "Parquet",
            advice: "other formats are loaded with ClickHouse's own client".to_owned(),
        });
    }
    let open = || File::open(path).map_err(SourceError::io(path.as_path()));
    let mut reader = ParquetReader::new(open()?);
    let total = guarded(|| reader.num_rows()).map_err(|reason| SourceError::corrupt(path, "the footer", reason))?;
    let schema = guarded(|| reader.schema()).map_err(|reason| SourceError::corrupt(path, "the schema", reason))?;
    let stored = REQUIRED.iter().chain(&OPTIONAL).chain(&["cluster", "attributes"]);
    let columns: Vec<String> = stored
        .filter(|name| schema.contains(name))
        .map(|name| (*name).to_owned())
        .collect();
    for first in (0..total).step_by(BATCH_ROWS) {
        let file = open()?;
        let decode = || {
            ParquetReader::new(file)
                .read_parallel(ParallelStrategy::None)
                .with_columns(Some(columns.clone()))
                .with_slice(Some((first, BATCH_ROWS)))
                .finish()
        };
        let frame = guarded(decode)
            .map_err(|reason| SourceError::corrupt(path, format!("the rows from {first} on"), reason))?;
        each(whole_rows(path, &frame)?)?;
    }
    Ok(())
}

fn whole_rows(path: &Path, frame: &DataFrame) -> Result<WholeRows, SourceError> {
    let rows = rows_of(path, frame)?;
    let text = |name: &str| {
        let column = frame.column(name).ok()?.cast(&DataType::String).ok()?;
        let mut coded = TextColumn::default();
        column.str().ok()?.iter().for_each(|cell| coded.push(cell));
        Some(coded)
    };
    let (values, ends) = lists(frame).map_err(|reason| SourceError::corrupt(path, "column `metric_values`", reason))?;
    Ok(WholeRows {
        rows,
        cluster: text("cluster"),
        attributes: text("attributes"),
        ends,
        values,
    })
}

/// The elements of `metric_values`, row after row, and where each row's end; `rows_of` has checked the type.
fn lists(frame: &DataFrame) -> PolarsResult<(Vec<f64>, Vec<usize>)> {
    let column = frame.column("metric_values")?.as_materialized_series().rechunk();
    let (mut values, mut ends) = (Vec::new(), Vec::with_capacity(column.len()));
    if let Ok(cells) = column.str() {
        for cell in cells.iter() {
            let inner = cell.unwrap_or_default().trim().trim_matches(['[', ']']).to_owned();
            let elements = inner.split(',').map(|element| element.trim().trim_matches(['"', '\'']));
            values.extend(
                elements
                    .filter(|element| !element.is_empty())
                    .map(|element| element.parse().unwrap_or(f64::NAN)),
            );
            ends.push(values.len());
        }
        return Ok((values, ends));
    }
    if column.dtype().is_null() {
        return Ok((values, vec![0; column.len()]));
    }
    let wide = column.cast(&DataType::List(Box::new(DataType::Float64)))?;
    for lists in wide.list()?.downcast_iter() {
        let Some(cells) = lists.values().as_any().downcast_ref::<PrimitiveArray<f64>>() else {
            polars_bail!(ComputeError: "its elements are no numbers");
        };
        for (row, pair) in lists.offsets().as_slice().windows(2).enumerate() {
            let null = lists.validity().is_some_and(|valid| !valid.get_bit(row));
            if !null {
                let cell = |place: i64| cells.get(place as usize).unwrap_or(f64::NAN);
                values.extend((pair[0]..pair[1]).map(cell));
            }
            ends.push(values.len());
        }
    }
    Ok((values, ends))
}
