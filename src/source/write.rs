//! Rows of any source as one Parquet file.

use std::fs::File;
use std::io::BufWriter;
use std::path::{Path, PathBuf};

use polars::prelude::*;

use super::columns::Columns;
use super::discover::SourceFile;
use super::error::SourceError;
use super::rows::{Rows, TextColumn};
use super::scan::{Need, PartStatistics, Scan, scan};

/// What [`write_parquet`] wrote.
#[derive(Debug, Default)]
pub struct WrittenRows {
    /// Rows in the file.
    pub rows: u64,
    /// What the readers noticed of their sources.
    pub notes: Vec<String>,
}

/// Writes all rows of some files into a Parquet file, in their order.
///
/// # Errors
/// A file that can't be read, files without a row, or a file that can't be written.
pub fn write_parquet(files: &[SourceFile], path: &Path, progress: &dyn Fn(u64)) -> Result<WrittenRows, SourceError> {
    let out = File::create(path).map_err(SourceError::io(path))?;
    let empty = frame(&Rows::default()).map_err(|error| SourceError::corrupt(path, "its columns", error))?;
    let writer = ParquetWriter::new(BufWriter::new(out))
        .with_compression(ParquetCompression::Zstd(None))
        .batched(empty.schema())
        .map_err(|error| SourceError::corrupt(path, "its columns", error))?;
    let mut writing = Writing {
        path: path.to_owned(),
        writer,
        written: WrittenRows::default(),
    };
    scan(files, &mut writing, progress)?;
    let Writing { writer, written, .. } = writing;
    if written.rows == 0 {
        return Err(SourceError::NoRows("the input holds no rows".to_owned()));
    }
    writer
        .finish()
        .map_err(|error| SourceError::corrupt(path, "its end", error))?;
    Ok(written)
}

struct Writing {
    path: PathBuf,
    writer: polars::io::parquet::write::BatchedWriter<BufWriter<File>>,
    written: WrittenRows,
}

impl Scan for Writing {
    type Digest = Rows;

    fn columns(&self) -> Columns {
        Columns::Stored
    }

    fn need(&self, _part: &PartStatistics) -> Need {
        Need::Everything
    }

    fn digest(&self, rows: Rows) -> Rows {
        rows
    }

    fn absorb(&mut self, mut rows: Rows) -> Result<(), SourceError> {
        self.written.rows += rows.len() as u64;
        self.written.notes.append(&mut rows.notes);
        if rows.is_empty() {
            return Ok(());
        }
        let wrong = |error: PolarsError| SourceError::corrupt(&self.path, "rows to write", error);
        let frame = frame(&rows).map_err(wrong)?;
        self.writer.write_batch(&frame).map_err(wrong)
    }

    fn skipped(&mut self, _part: &PartStatistics) {}

    fn note(&mut self, note: String) {
        self.written.notes.push(note);
    }
}

/// A batch as a frame with the columns of the contract.
fn frame(rows: &Rows) -> PolarsResult<DataFrame> {
    let height = rows.len();
    let text = |name: &str, column: Option<&TextColumn>| {
        let cells = (0..height).map(|row| column.and_then(|column| column.get(row)));
        cells
            .collect::<StringChunked>()
            .with_name(name.into())
            .into_series()
            .into_column()
    };
    let whole = |name: &str, cells: Int64Chunked| cells.with_name(name.into()).into_series();
    let utc = DataType::Datetime(TimeUnit::Microseconds, Some(TimeZone::UTC));
    let timestamp = whole("timestamp", rows.timestamp.iter().collect()).cast(&utc)?;
    let rank = whole("rank", rows.rank.iter().collect());
    let iteration = whole("iteration", rows.iteration.iter().collect());
    let mut values =
        ListPrimitiveChunkedBuilder::<Float64Type>::new("metric_values".into(), height, height, DataType::Float64);
    for row in 0..height {
        values.append_iter(
            rows.calls
                .get(row)
                .iter()
                .map(|&value| Some(value).filter(|value| !value.is_nan())),
        );
    }
    let columns = vec![
        timestamp.into_column(),
        text("job", Some(&rows.job)),
        text("metric_name", Some(&rows.metric_name)),
        text("subname", Some(&rows.subname)),
        rank.into_column(),
        iteration.into_column(),
        values.finish().into_series().into_column(),
        text("node", rows.node.as_ref()),
        text("rerun_uuid", rows.rerun_uuid.as_ref()),
        text("cluster", rows.cluster.as_ref()),
        text("attributes", rows.attributes.as_ref()),
    ];
    DataFrame::new(height, columns)
}
