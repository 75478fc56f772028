//! Parquet: row groups that can't hold a row of the window are skipped by their statistics, the others are
//! read one by one.

use std::fs::File;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use polars::io::mmap::ReaderBytes;
use polars::prelude::*;
use polars_parquet::parquet::metadata::{FileMetadata, RowGroupMetadata};
use polars_parquet::parquet::schema::types::{
    IntegerType, PrimitiveConvertedType, PrimitiveLogicalType, PrimitiveType, TimeUnit as ParquetUnit,
};
use polars_parquet::parquet::statistics::Statistics;

use super::columns::Columns;
use super::decode::Decoder;
use super::discover::SourceFile;
use super::error::SourceError;
use super::frame::{ColumnSource, Decoded, rows_from};
use super::guard::guarded;
use super::rows::Rows;
use super::scan::{Need, PartStatistics};
use super::timestamp::{self, Micros};

/// Row groups that together have no more rows are read together: each costs what is fixed.
const SMALL_ROWS: usize = 1 << 16;
/// Rows of a slice of a row group at most, where little of a row is read. Where lists begin is not known beforehand, so
/// that each slice decodes those of all before it too: they are to be few.
const SLICE_ROWS: usize = 1 << 20;

/// A column of the contract and its name in the file.
type Named = (&'static str, String);

/// Rows in a row that are worth reading: a slice of one row group, or some small ones together.
#[derive(Debug)]
pub(super) struct RowGroup {
    path: Arc<PathBuf>,
    schema: Arc<ArrowSchema>,
    /// The row groups that it lies in.
    groups: Vec<RowGroupMetadata>,
    kind: Columns,
    columns: Arc<Vec<Named>>,
    /// With a row of this metric in it, these columns are read instead.
    unless_metric: Option<(&'static str, Arc<Vec<Named>>)>,
    /// Number of the first of the row groups.
    row_group: usize,
    /// First row, from the first of the row groups on.
    first_row: usize,
    pub(super) rows: usize,
    /// What it decodes to, about.
    pub(super) bytes: usize,
    /// What was noticed of the file, in its first part.
    notes: Vec<String>,
}

/// Reads the footer and decides which row groups are read.
///
/// # Errors
/// A file that is empty, no Parquet, cut short, or lacks a column.
pub(super) fn plan(
    source: &SourceFile,
    kind: Columns,
    need: &dyn Fn(&PartStatistics) -> Need,
) -> Result<(Vec<RowGroup>, Vec<PartStatistics>), SourceError> {
    let path = source.path.as_path();
    let file = File::open(path).map_err(SourceError::io(path))?;
    check_marks(path, &file)?;
    let mut reader = ParquetReader::new(file);
    let metadata = guarded(|| reader.get_metadata().cloned())
        .map_err(|reason| SourceError::corrupt(path, "the footer", reason))?;
    let schema = guarded(|| reader.schema()).map_err(|reason| SourceError::corrupt(path, "the schema", reason))?;
    let in_groups: usize = metadata.row_groups.iter().map(RowGroupMetadata::num_rows).sum();
    if in_groups != metadata.num_rows {
        let reason = format!(
            "it says that the file holds {} rows, and {in_groups} in its row groups",
            metadata.num_rows
        );
        return Err(SourceError::corrupt(path, "the footer", reason));
    }
    let names: Vec<&str> = schema.iter_names().map(|name| name.as_str()).collect();
    let places = source.options.names.places(path, &names, kind)?;
    let named = places.iter().map(|(column, place)| (column, names[place].to_owned()));
    let everything: Vec<Named> = named.collect();
    let keys = everything.iter().filter(|(column, _)| *column != "metric_values");
    let (keys, everything) = (Arc::new(keys.cloned().collect()), Arc::new(everything));
    check_places(&metadata, &everything).map_err(|reason| SourceError::corrupt(path, "the footer", reason))?;

    let path = Arc::new(path.to_owned());
    let (mut parts, mut skipped) = (Vec::<RowGroup>::new(), Vec::new());
    for (row_group, group) in metadata.row_groups.iter().enumerate() {
        let statistics = statistics_of(group, &metadata, &everything);
        let (columns, unless_metric) = match need(&statistics) {
            Need::Nothing => {
                skipped.push(statistics);
                continue;
            }
            Need::Keys => (&keys, None),
            Need::KeysUnlessMetric(metric) => (&keys, Some((metric, Arc::clone(&everything)))),
            Need::Everything => (&everything, None),
        };
        let bytes = match kind {
            Columns::Analysed => decoded_bytes(group, columns),
            Columns::Stored => decoded_bytes(group, columns).max(bytes_of_values(group, columns)),
        };
        let batch = match kind {
            Columns::Analysed => group
                .num_rows()
                .div_ceil(group.num_rows().div_ceil(SLICE_ROWS).max(1))
                .max(1),
            Columns::Stored => kind.batch(group.num_rows(), bytes),
        };
        let above = parts.last_mut().filter(|above| {
            let alike =
                Arc::ptr_eq(&above.columns, columns) && above.unless_metric.is_some() == unless_metric.is_some();
            let next = above.row_group + above.groups.len() == row_group && above.first_row == 0;
            alike
                && next
                && above.is_whole()
                && above.rows + group.num_rows() <= kind.batch(above.rows, above.bytes).min(SMALL_ROWS)
        });
        if let Some(above) = above {
            above.groups.push(group.clone());
            above.rows += group.num_rows();
            above.bytes += bytes;
            continue;
        }
        for first_row in (0..group.num_rows()).step_by(batch) {
            parts.push(RowGroup {
                path: Arc::clone(&path),
                schema: Arc::clone(&schema),
                groups: vec![group.clone()],
                kind,
                columns: Arc::clone(columns),
                unless_metric: unless_metric.clone(),
                row_group,
                first_row,
                rows: batch.min(group.num_rows() - first_row),
                bytes: bytes.div_ceil(group.num_rows().div_ceil(batch)),
                notes: Vec::new(),
            });
        }
    }
    if let Some(first) = parts.first_mut() {
        first.notes = places.notes;
    }
    Ok((parts, skipped))
}

impl RowGroup {
    /// Whether all rows of its row groups belong to it.
    fn is_whole(&self) -> bool {
        self.groups.iter().map(RowGroupMetadata::num_rows).sum::<usize>() == self.rows
    }

    /// Reads and decodes the part.
    ///
    /// # Errors
    /// Pages that can't be decoded, a column of a wrong type.
    pub(super) fn read(&self) -> Result<Rows, SourceError> {
        let mut rows = self.read_columns(&self.columns)?;
        rows.notes.clone_from(&self.notes);
        match &self.unless_metric {
            Some((metric, columns)) if rows.metric_name.words.iter().any(|word| word == metric) => {
                let mut rows = self.read_columns(columns)?;
                rows.notes.clone_from(&self.notes);
                Ok(rows)
            }
            _ => Ok(rows),
        }
    }

    fn read_columns(&self, columns: &[Named]) -> Result<Rows, SourceError> {
        let path = self.path.as_path();
        let mut file = File::open(path).map_err(SourceError::io(path))?;
        // Mapped for the time of a part only, so that what was read of a large file does not stay.
        let bytes = guarded(|| match ReaderBytes::from(&mut file) {
            ReaderBytes::Owned(bytes) => Ok(bytes),
            ReaderBytes::Borrowed(_) => Err("it can't be mapped"),
        });
        let decoder = Decoder {
            file: bytes.map_err(|reason| SourceError::corrupt(path, "the file", reason))?,
            schema: &self.schema,
            groups: &self.groups,
            first_row: self.first_row,
            rows: self.rows,
        };
        let source = PartColumns {
            part: self,
            decoder,
            columns,
        };
        rows_from(path, &source, self.kind)
    }
}

/// Those columns of a part that are asked for.
struct PartColumns<'a> {
    part: &'a RowGroup,
    decoder: Decoder<'a>,
    columns: &'a [Named],
}

impl ColumnSource for PartColumns<'_> {
    fn column(&self, name: &str) -> Result<Option<Decoded>, SourceError> {
        let Some((_, name)) = self.columns.iter().find(|(column, _)| *column == name) else {
            return Ok(None);
        };
        self.decoder.column(name).map_err(|damage| {
            let place = format!("row group {}", self.part.row_group + damage.group);
            SourceError::corrupt(self.part.path.as_path(), place, damage.reason)
        })
    }

    fn names(&self) -> Vec<String> {
        self.columns.iter().map(|(_, name)| name.clone()).collect()
    }
}

/// A file that ends without the mark was cut short: the decoder's own words for that help nobody.
fn check_marks(path: &Path, file: &File) -> Result<(), SourceError> {
    use std::io::{Read, Seek, SeekFrom};
    const MARK: &[u8; 4] = b"PAR1";
    let (mut file, mut head, mut tail) = (file, [0; 4], [0; 4]);
    let length = file.metadata().map_err(SourceError::io(path))?.len();
    if length == 0 {
        return Err(SourceError::Empty(path.to_owned()));
    }
    if length >= 4 {
        file.read_exact(&mut head)
            .and_then(|()| file.seek(SeekFrom::End(-4)))
            .and_then(|_| file.read_exact(&mut tail))
            .map_err(SourceError::io(path))?;
    }
    if &head != MARK {
        return Err(SourceError::WrongFormat {
            path: path.to_owned(),
            expected: "Parquet",
            advice: "it does not begin with PAR1".to_owned(),
        });
    }
    if &tail != MARK || length < 12 {
        let reason = "it begins as Parquet and does not end so: the file was cut short";
        return Err(SourceError::corrupt(path, "the footer", reason));
    }
    file.rewind().map_err(SourceError::io(path))
}

/// No byte belongs to two columns: a damaged place of one would read as another one's.
fn check_places(metadata: &FileMetadata, columns: &[Named]) -> Result<(), String> {
    let mut places = Vec::new();
    for group in &metadata.row_groups {
        for (_, column) in columns {
            for chunk in group.columns_under_root_iter(column).into_iter().flatten() {
                let bytes = guarded(|| Ok::<_, String>(chunk.byte_range()))?;
                if bytes.start < bytes.end {
                    places.push((bytes.start, bytes.end, column));
                }
            }
        }
    }
    places.sort_unstable();
    match places.windows(2).find(|pair| pair[1].0 < pair[0].1) {
        Some(pair) => Err(format!(
            "it puts columns `{}` and `{}` into the same bytes",
            pair[0].2, pair[1].2
        )),
        None => Ok(()),
    }
}

/// Bytes of all the numbers of a row group, of which a dictionary makes few where they repeat.
fn bytes_of_values(group: &RowGroupMetadata, columns: &[Named]) -> usize {
    let column = columns.iter().find(|(column, _)| *column == "metric_values");
    let chunks = column.and_then(|(_, name)| group.columns_under_root_iter(name));
    let chunks = chunks.into_iter().flatten();
    let values: i64 = chunks.map(|chunk| chunk.num_values()).sum();
    usize::try_from(values)
        .unwrap_or_default()
        .saturating_mul(size_of::<f64>())
}

/// Bytes that the columns of a row group take uncompressed.
fn decoded_bytes(group: &RowGroupMetadata, columns: &[Named]) -> usize {
    let chunks = columns
        .iter()
        .filter_map(|(_, name)| group.columns_under_root_iter(name))
        .flatten();
    chunks
        .map(|chunk| usize::try_from(chunk.uncompressed_size()).unwrap_or_default())
        .sum()
}

fn statistics_of(group: &RowGroupMetadata, file: &FileMetadata, columns: &[Named]) -> PartStatistics {
    let column = |column: &str| {
        let (_, name) = columns.iter().find(|(known, _)| *known == column)?;
        let chunk = group.columns_under_root_iter(name)?.next()?;
        let statistics = chunk.statistics(&file.footer_buf)?.ok()?;
        Some((chunk, statistics))
    };
    let text = |name: &str| match column(name)?.1 {
        // A text that is cut in statistics is cut to a bound: below the smallest, above the largest.
        Statistics::Binary(bounds) => {
            let text = |bytes: Vec<u8>| String::from_utf8(bytes).ok();
            Some((text(bounds.min_value?)?, text(bounds.max_value?)?))
        }
        _ => None,
    };
    PartStatistics {
        rows: group.num_rows(),
        job: text("job"),
        metric_name: text("metric_name"),
        timestamp: column("timestamp")
            .and_then(|(chunk, bounds)| time_bounds(&chunk.descriptor().descriptor.primitive_type, &bounds)),
        iteration: column("iteration")
            .and_then(|(chunk, bounds)| integer_bounds(&chunk.descriptor().descriptor.primitive_type, &bounds)),
    }
}

/// Whether a column's integers are unsigned, whose bits statistics hold as if they were not; `None` where it has no
/// integers.
fn is_unsigned(kind: &PrimitiveType) -> Option<bool> {
    use IntegerType as Logical;
    use PrimitiveConvertedType as Old;
    match (&kind.logical_type, &kind.converted_type) {
        (Some(PrimitiveLogicalType::Integer(kind)), _) => Some(matches!(
            kind,
            Logical::UInt8 | Logical::UInt16 | Logical::UInt32 | Logical::UInt64
        )),
        (Some(_), _) => None,
        (None, Some(Old::Uint8 | Old::Uint16 | Old::Uint32 | Old::Uint64)) => Some(true),
        (None, None | Some(Old::Int8 | Old::Int16 | Old::Int32 | Old::Int64)) => Some(false),
        (None, Some(_)) => None,
    }
}

/// `None` where they can't be told: beyond what an `i64` holds, or out of order because the writer compared the bits of
/// unsigned numbers as signed ones.
fn integer_bounds(kind: &PrimitiveType, bounds: &Statistics) -> Option<(i64, i64)> {
    let unsigned = is_unsigned(kind)?;
    let (first, last) = match bounds {
        Statistics::Int32(bounds) => {
            let wide = |number: i32| {
                if unsigned {
                    i64::from(number.cast_unsigned())
                } else {
                    i64::from(number)
                }
            };
            (wide(bounds.min_value?), wide(bounds.max_value?))
        }
        Statistics::Int64(bounds) => {
            let fits = |number: &i64| !unsigned || *number >= 0;
            (bounds.min_value.filter(fits)?, bounds.max_value.filter(fits)?)
        }
        _ => return None,
    };
    (first <= last).then_some((first, last))
}

fn time_bounds(kind: &PrimitiveType, bounds: &Statistics) -> Option<(Micros, Micros)> {
    let unit = match (&kind.logical_type, &kind.converted_type) {
        (Some(PrimitiveLogicalType::Timestamp { unit, .. }), _) => Some(*unit),
        (None, Some(PrimitiveConvertedType::TimestampMillis)) => Some(ParquetUnit::Milliseconds),
        (None, Some(PrimitiveConvertedType::TimestampMicros)) => Some(ParquetUnit::Microseconds),
        _ => None,
    };
    let to_micros = |number: i64| match unit {
        Some(ParquetUnit::Milliseconds) => number.checked_mul(1_000),
        Some(ParquetUnit::Microseconds) => Some(number),
        Some(ParquetUnit::Nanoseconds) => Some(number.div_euclid(1_000)),
        None => timestamp::from_epoch(number as f64),
    };
    let (first, last) = match (unit, bounds) {
        (Some(_), Statistics::Int64(bounds)) => (bounds.min_value?, bounds.max_value?),
        (Some(_), _) => return None,
        (None, _) => integer_bounds(kind, bounds)?,
    };
    Some((to_micros(first)?, to_micros(last)?))
}
