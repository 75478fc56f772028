//! Reads the rows of an op trace.

use std::fs::File;
use std::path::Path;

use polars::prelude::*;

use super::kind::Kind;
use crate::whatif::error::WhatIfError;

/// Columns that must be there.
const REQUIRED: [&str; 7] = ["dp_rank", "stage", "step", "optype", "start_ts", "duration", "seq_id"];
/// Columns that may be.
const OPTIONAL: [&str; 3] = ["rank", "mc", "gmc"];
/// Rows that are decoded at once.
const BATCH: usize = 2_000_000;

/// The rows of an op trace, in columns. A row that can't be placed is counted and left out.
#[derive(Debug, Default, Clone, PartialEq)]
pub struct OpRows {
    /// Replica.
    pub replica: Vec<u32>,
    /// Pipeline stage.
    pub stage: Vec<u16>,
    /// Rank that was recorded; negative where it is not told.
    pub rank: Vec<i32>,
    /// Training step.
    pub step: Vec<i64>,
    /// Type.
    pub kind: Vec<Kind>,
    /// Start, seconds since the step began; NaN where it is not told.
    pub start: Vec<f64>,
    /// Duration, seconds; NaN where it is not told.
    pub seconds: Vec<f64>,
    /// Number among the operations of its type on its worker in its step.
    pub sequence: Vec<i32>,
    /// Model chunk among the worker's; negative where it has none.
    pub chunk: Vec<i16>,
    /// Model chunk among all; negative where it has none.
    pub global_chunk: Vec<i16>,
    /// Rows that name no place: a missing or negative rank, stage, step or number.
    pub unplaced: u64,
    /// Rows of types that the model has no place for, with their names, each once.
    pub unknown: u64,
    /// Those names.
    pub unknown_kinds: Vec<String>,
    /// Rows of calls that post several transfers; each was taken as one operation a transfer.
    pub fused: u64,
}

impl OpRows {
    /// Whether a file is Parquet with a column of operation types.
    #[must_use]
    pub fn is_op_trace(path: &Path) -> bool {
        let schema = File::open(path)
            .ok()
            .and_then(|file| ParquetReader::new(file).schema().ok());
        schema.is_some_and(|schema| schema.iter_names().any(|name| name.as_str() == "optype"))
    }

    /// Reads a Parquet file.
    ///
    /// # Errors
    /// A file that can't be read or decoded, or lacks a column.
    pub fn read(path: &Path) -> Result<Self, WhatIfError> {
        let failed = |reason: String| WhatIfError::Read {
            path: path.to_owned(),
            reason,
        };
        let open = || File::open(path).map_err(|error| failed(error.to_string()));
        let mut reader = ParquetReader::new(open()?);
        let schema = reader.schema().map_err(|error| failed(error.to_string()))?;
        let height = reader.num_rows().map_err(|error| failed(error.to_string()))?;
        let has = |column: &str| schema.iter_names().any(|name| name.as_str() == column);
        if let Some(column) = REQUIRED.into_iter().find(|column| !has(column)) {
            let names: Vec<&str> = schema.iter_names().map(|name| name.as_str()).collect();
            return Err(WhatIfError::MissingColumn {
                path: path.to_owned(),
                column,
                found: names.join(", "),
            });
        }
        let columns: Vec<String> = REQUIRED
            .into_iter()
            .chain(OPTIONAL.into_iter().filter(|column| has(column)))
            .map(str::to_owned)
            .collect();
        let mut rows = Self::default();
        for first in (0..height).step_by(BATCH) {
            let frame = ParquetReader::new(open()?)
                .with_columns(Some(columns.clone()))
                .with_slice(Some((first, BATCH.min(height - first))))
                .finish()
                .map_err(|error| failed(error.to_string()))?;
            rows.extend(&frame).map_err(|error| failed(error.to_string()))?;
        }
        rows.number_fused();
        Ok(rows)
    }

    /// Number of rows.
    #[must_use]
    pub fn len(&self) -> usize {
        self.kind.len()
    }

    /// Whether there is none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.kind.is_empty()
    }

    fn extend(&mut self, frame: &DataFrame) -> PolarsResult<()> {
        let whole = |column: &str| -> PolarsResult<Int64Chunked> {
            let cast = frame.column(column)?.as_materialized_series().cast(&DataType::Int64)?;
            Ok(cast.i64()?.rechunk().into_owned())
        };
        let number = |column: &str| -> PolarsResult<Float64Chunked> {
            let cast = frame
                .column(column)?
                .as_materialized_series()
                .cast(&DataType::Float64)?;
            Ok(cast.f64()?.rechunk().into_owned())
        };
        let optional = |column: &str| frame.column(column).is_ok().then(|| whole(column)).transpose();
        let (replica, stage, step) = (whole("dp_rank")?, whole("stage")?, whole("step")?);
        let sequence = whole("seq_id")?;
        let (start, seconds) = (number("start_ts")?, number("duration")?);
        let (rank, chunk, global_chunk) = (optional("rank")?, optional("mc")?, optional("gmc")?);
        let kinds = frame
            .column("optype")?
            .as_materialized_series()
            .cast(&DataType::String)?;
        let kinds = kinds.str()?;
        let kinds: Vec<Option<&str>> = kinds.iter().collect();

        let of = |column: &Option<Int64Chunked>, row: usize| column.as_ref().and_then(|column| column.get(row));
        let mut known: (&str, &'static [Kind]) = ("", &[]);
        for (row, name) in kinds.iter().enumerate() {
            let place = (|| {
                Some((
                    u32::try_from(replica.get(row)?).ok()?,
                    u16::try_from(stage.get(row)?).ok()?,
                    step.get(row)?,
                    i32::try_from(sequence.get(row)?).ok().filter(|number| *number >= 0)?,
                ))
            })();
            let (Some((replica, stage, step, sequence)), Some(name)) = (place, name) else {
                self.unplaced += 1;
                continue;
            };
            if known.0 != *name {
                known = (name, Kind::of_name(name));
            }
            if known.1.is_empty() {
                self.unknown += 1;
                if !self.unknown_kinds.iter().any(|known| known == name) {
                    self.unknown_kinds.push((*name).to_owned());
                }
                continue;
            }
            self.fused += u64::from(known.1.len() > 1);
            for kind in known.1 {
                self.replica.push(replica);
                self.stage.push(stage);
                self.rank
                    .push(of(&rank, row).and_then(|rank| i32::try_from(rank).ok()).unwrap_or(-1));
                self.step.push(step);
                self.kind.push(*kind);
                self.start.push(start.get(row).unwrap_or(f64::NAN));
                self.seconds.push(seconds.get(row).unwrap_or(f64::NAN));
                self.sequence.push(sequence);
                let chunk_of = |column| of(column, row).map_or(-1, |chunk| i16::try_from(chunk).unwrap_or(-1));
                self.chunk.push(chunk_of(&chunk));
                self.global_chunk.push(chunk_of(&global_chunk));
            }
        }
        Ok(())
    }

    /// Numbers transfers anew where some came from fused calls, which are numbered among themselves: by their start.
    fn number_fused(&mut self) {
        if self.fused == 0 {
            return;
        }
        let mut transfers: Vec<usize> = (0..self.len()).filter(|&row| self.kind[row].is_transfer()).collect();
        let worker = |row: usize| (self.step[row], self.replica[row], self.stage[row], self.kind[row]);
        transfers.sort_by(|&a, &b| {
            let by_time = || self.start[a].total_cmp(&self.start[b]);
            worker(a).cmp(&worker(b)).then_with(by_time).then(a.cmp(&b))
        });
        let mut numbers = Vec::with_capacity(transfers.len());
        for (place, &row) in transfers.iter().enumerate() {
            let same = place > 0 && worker(transfers[place - 1]) == worker(row);
            let above = numbers.last().copied().filter(|_| same);
            numbers.push(above.map_or(0, |number: i32| number + 1));
        }
        for (row, number) in transfers.into_iter().zip(numbers) {
            self.sequence[row] = number;
        }
    }
}
