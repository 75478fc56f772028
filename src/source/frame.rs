//! From a Polars frame, with whatever column types the writer chose, to [`Rows`].

use std::cell::RefCell;
use std::path::Path;

use polars::prelude::*;
use polars_arrow::array::{Array, ListArray, PrimitiveArray, Utf8ViewArray};
use rustc_hash::FxHashMap;

use super::calls::{KeepsLists, Lists, all_of_text_array};
use super::columns::Columns;
use super::error::SourceError;
use super::numbers::Numbers;
use super::rows::{Rows, TextColumn, first_of_text_array, integer_of_text, whole};
use super::timestamp::{self, Micros};
use super::unread::UnreadCells;

/// Where the columns of some rows come from.
pub(super) trait ColumnSource {
    /// A column by its name; `None` where there is none.
    ///
    /// # Errors
    /// A column that can't be decoded.
    fn column(&self, name: &str) -> Result<Option<Decoded>, SourceError>;

    /// The names of all columns.
    fn names(&self) -> Vec<String>;
}

/// A column as it was decoded.
pub(super) enum Decoded {
    /// Of any type.
    Series(Series),
    /// Of text, coded already.
    Text(TextColumn),
}

impl Decoded {
    /// Text as any other that stands where numbers are expected.
    fn into_series(self) -> Series {
        match self {
            Self::Series(series) => series,
            Self::Text(text) => {
                let cells = (0..text.codes.len()).map(|row| text.get(row));
                cells.collect::<StringChunked>().into_series()
            }
        }
    }
}

impl ColumnSource for DataFrame {
    fn column(&self, name: &str) -> Result<Option<Decoded>, SourceError> {
        let column = Self::column(self, name).ok();
        Ok(column.map(|column| Decoded::Series(column.as_materialized_series().clone())))
    }

    fn names(&self) -> Vec<String> {
        let names = self.get_column_names().into_iter();
        names.map(|name| name.as_str().to_owned()).collect()
    }
}

/// Turns a frame into rows.
///
/// # Errors
/// A column whose type can't stand for what the contract asks for.
pub(crate) fn rows_of(path: &Path, frame: &DataFrame, columns: Columns) -> Result<Rows, SourceError> {
    rows_from(path, frame, columns)
}

/// Makes rows of columns, of which one is decoded after the other.
///
/// # Errors
/// A column whose type can't stand for what the contract asks for, or that can't be decoded.
pub(super) fn rows_from(path: &Path, source: &dyn ColumnSource, columns: Columns) -> Result<Rows, SourceError> {
    let reader = Reader {
        path,
        source,
        unread: RefCell::default(),
    };
    let (metric_name, subname) = (reader.text("metric_name")?, reader.text("subname")?);
    let keeps = KeepsLists::new(&metric_name, &subname);
    let any_keeps = columns.all() || keeps.any();
    let keeps = |row: usize| columns.all() || keeps.row(metric_name.codes[row], subname.codes[row]);
    let keeps: Option<&dyn Fn(usize) -> bool> = if any_keeps { Some(&keeps) } else { None };
    let stored = |column| {
        if columns.all() {
            reader.optional_text(column)
        } else {
            Ok(None)
        }
    };
    let (value, calls) = match source.column("metric_values")? {
        Some(cells) => reader.values("metric_values", &cells.into_series(), keeps)?,
        None => (Numbers::default(), Lists::default()),
    };
    Ok(Rows {
        timestamp: reader.times("timestamp")?,
        job: reader.text("job")?,
        metric_name,
        subname,
        rank: reader.integers("rank")?,
        iteration: reader.integers("iteration")?,
        node: reader.optional_text("node")?,
        rerun_uuid: reader.optional_text("rerun_uuid")?,
        cluster: stored("cluster")?,
        attributes: stored("attributes")?,
        value,
        calls,
        notes: Vec::new(),
        unread: reader.unread.into_inner(),
    })
}

struct Reader<'a> {
    path: &'a Path,
    source: &'a dyn ColumnSource,
    unread: RefCell<UnreadCells>,
}

impl Reader<'_> {
    fn column(&self, column: &'static str) -> Result<Decoded, SourceError> {
        self.source.column(column)?.ok_or_else(|| SourceError::MissingColumn {
            path: self.path.to_owned(),
            column,
            found: self.source.names().join(", "),
        })
    }

    fn series(&self, column: &'static str) -> Result<Series, SourceError> {
        Ok(self.column(column)?.into_series())
    }

    fn wrong_type(&self, column: &'static str, found: &DataType, expected: &'static str) -> SourceError {
        SourceError::WrongType {
            path: self.path.to_owned(),
            column,
            found: type_name(found),
            expected,
        }
    }

    /// Casts a column whose type was already found to be castable.
    fn cast(&self, series: &Series, column: &'static str, to: &DataType) -> Result<Series, SourceError> {
        series
            .cast(to)
            .map_err(|reason| SourceError::corrupt(self.path, format!("column `{column}`"), reason))
    }

    fn text(&self, column: &'static str) -> Result<TextColumn, SourceError> {
        self.text_of(column, self.column(column)?)
    }

    fn text_of(&self, column: &'static str, cells: Decoded) -> Result<TextColumn, SourceError> {
        let series = match cells {
            Decoded::Text(text) => return Ok(text),
            Decoded::Series(series) => series,
        };
        let text = match series.dtype() {
            DataType::String => series,
            DataType::Null | DataType::Binary | DataType::Categorical(..) | DataType::Enum(..) => {
                self.cast(&series, column, &DataType::String)?
            }
            other => return Err(self.wrong_type(column, other, "text")),
        };
        let cells = text.str().map_err(|_| self.wrong_type(column, text.dtype(), "text"))?;
        let mut coded = TextColumn::default();
        coded.codes.reserve(cells.len());
        cells.downcast_iter().for_each(|chunk| code_views(chunk, &mut coded));
        Ok(coded)
    }

    fn optional_text(&self, column: &'static str) -> Result<Option<TextColumn>, SourceError> {
        let cells = self.source.column(column)?;
        cells.map(|cells| self.text_of(column, cells)).transpose()
    }

    fn integers(&self, column: &'static str) -> Result<Numbers<i64>, SourceError> {
        let series = self.series(column)?;
        let kind = series.dtype();
        if kind.is_integer() || kind.is_null() {
            let wide = self.cast(&series, column, &DataType::Int64)?;
            let cells = wide.i64().map_err(|_| self.wrong_type(column, kind, "an integer"))?;
            return Ok(numbers(cells, |number| number));
        }
        if kind.is_float() {
            let wide = self.cast(&series, column, &DataType::Float64)?;
            let cells = wide.f64().map_err(|_| self.wrong_type(column, kind, "an integer"))?;
            let cells = cells
                .iter()
                .map(|cell| self.read(column, cell, |cell| whole(*cell), |cell| !cell.is_nan()));
            return Ok(cells.collect());
        }
        if let Ok(cells) = series.str() {
            let cells = cells
                .iter()
                .map(|cell| self.read(column, cell, |cell| integer_of_text(cell), |_| true));
            return Ok(cells.collect());
        }
        Err(self.wrong_type(column, kind, "an integer"))
    }

    fn times(&self, column: &'static str) -> Result<Numbers<Micros>, SourceError> {
        const EXPECTED: &str = "a DateTime, epoch seconds or text";
        let series = self.series(column)?;
        let kind = series.dtype();
        let to_micros = match kind {
            DataType::Datetime(TimeUnit::Nanoseconds, _) => |ticks: i64| ticks.div_euclid(1_000),
            DataType::Datetime(TimeUnit::Microseconds, _) => |ticks: i64| ticks,
            DataType::Datetime(TimeUnit::Milliseconds, _) => |ticks: i64| ticks.saturating_mul(1_000),
            DataType::Date => |days: i64| days.saturating_mul(86_400_000_000),
            DataType::String => {
                let cells = series.str().map_err(|_| self.wrong_type(column, kind, EXPECTED))?;
                let cells = cells
                    .iter()
                    .map(|cell| self.read(column, cell, |cell| timestamp::parse(cell), |_| true));
                return Ok(cells.collect());
            }
            kind if kind.is_primitive_numeric() => {
                let wide = self.cast(&series, column, &DataType::Float64)?;
                let cells = wide.f64().map_err(|_| self.wrong_type(column, kind, EXPECTED))?;
                return Ok(cells.iter().map(|cell| cell.and_then(timestamp::from_epoch)).collect());
            }
            other => return Err(self.wrong_type(column, other, EXPECTED)),
        };
        let ticks = self.cast(&series.to_physical_repr(), column, &DataType::Int64)?;
        let cells = ticks.i64().map_err(|_| self.wrong_type(column, kind, EXPECTED))?;
        Ok(numbers(cells, to_micros))
    }

    /// Reads a cell; one that is there and can't be read is noted.
    fn read<C: std::fmt::Display, T>(
        &self,
        column: &'static str,
        cell: Option<C>,
        read: impl Fn(&C) -> Option<T>,
        is_there: impl Fn(&C) -> bool,
    ) -> Option<T> {
        let cell = cell?;
        let found = read(&cell);
        if found.is_none() && is_there(&cell) {
            self.unread.borrow_mut().note(column, &cell.to_string());
        }
        found
    }

    /// The first element of each list, and every element of the lists that a row `keeps`; of none without it.
    fn values(
        &self,
        column: &'static str,
        series: &Series,
        keeps: Option<&dyn Fn(usize) -> bool>,
    ) -> Result<(Numbers<f64>, Lists), SourceError> {
        const EXPECTED: &str = "an array of numbers";
        match series.dtype() {
            DataType::List(inner) if inner.is_primitive_numeric() || inner.is_null() => {
                let wide = self.cast(series, column, &DataType::List(Box::new(DataType::Float64)))?;
                let lists = wide
                    .list()
                    .map_err(|_| self.wrong_type(column, wide.dtype(), EXPECTED))?;
                let mut first = Numbers::default();
                let mut kept = Lists::default();
                for lists in lists.downcast_iter() {
                    let cells = lists
                        .values()
                        .as_any()
                        .downcast_ref::<PrimitiveArray<f64>>()
                        .ok_or_else(|| self.wrong_type(column, series.dtype(), EXPECTED))?;
                    // Rows of timers and groups have one element each.
                    if let Some(seconds) =
                        elements_of_single(lists, cells).filter(|_| keeps.is_none() && first.is_empty())
                    {
                        first = Numbers::from(seconds.to_vec());
                        continue;
                    }
                    for (row, ends) in lists.offsets().as_slice().windows(2).enumerate() {
                        let null = lists.validity().is_some_and(|valid| !valid.get_bit(row));
                        let cells_of = if null { 0..0 } else { ends[0] as usize..ends[1] as usize };
                        let keeps_it = keeps.is_some_and(|keeps| keeps(first.len()));
                        first.push(cells_of.clone().next().and_then(|place| cells.get(place)));
                        if keeps.is_some() {
                            let all = cells_of.filter(|_| keeps_it);
                            kept.push(all.map(|place| cells.get(place).unwrap_or(f64::NAN)));
                        }
                    }
                }
                Ok((first, kept))
            }
            DataType::String => {
                let expected = "an array of numbers, or text like [0.1,0.2]";
                let wrong = || self.wrong_type(column, series.dtype(), expected);
                let mut first = Numbers::default();
                let mut kept = Lists::default();
                for (row, cell) in series.str().map_err(|_| wrong())?.iter().enumerate() {
                    first.push(cell.map_or(Ok(None), first_of_text_array).map_err(|_| wrong())?);
                    if let Some(keeps) = keeps {
                        kept.push(cell.filter(|_| keeps(row)).into_iter().flat_map(all_of_text_array));
                    }
                }
                Ok((first, kept))
            }
            // A number in place of an array of one.
            kind if kind.is_primitive_numeric() => {
                let wide = self.cast(series, column, &DataType::Float64)?;
                let cells = wide.f64().map_err(|_| self.wrong_type(column, kind, EXPECTED))?;
                let mut kept = Lists::default();
                for (row, cell) in cells.iter().enumerate() {
                    if let Some(keeps) = keeps {
                        kept.push(cell.filter(|_| keeps(row)));
                    }
                }
                Ok((cells.iter().collect(), kept))
            }
            DataType::Null => Ok((std::iter::repeat_n(None, series.len()).collect(), Lists::default())),
            other => Err(self.wrong_type(column, other, EXPECTED)),
        }
    }
}

/// Numbers of a column whose gaps stay gaps.
fn numbers(cells: &Int64Chunked, of: impl Fn(i64) -> i64) -> Numbers<i64> {
    if cells.null_count() > 0 {
        return cells.iter().map(|cell| cell.map(&of)).collect();
    }
    let mut numbers = Vec::with_capacity(cells.len());
    for chunk in cells.downcast_iter() {
        numbers.extend(chunk.values().iter().map(|&cell| of(cell)));
    }
    Numbers::from(numbers)
}

/// Appends a chunk's cells to a column. A decoded dictionary gives equal cells equal views, of which only new ones are
/// looked at: what is compared a row is a number.
fn code_views(chunk: &Utf8ViewArray, column: &mut TextColumn) {
    let mut known = FxHashMap::<u128, u32>::default();
    let mut above: Option<(u128, u32)> = None;
    let validity = chunk.validity();
    for (row, view) in chunk.views().iter().enumerate() {
        if validity.is_some_and(|valid| !valid.get_bit(row)) {
            column.codes.push(TextColumn::MISSING);
            continue;
        }
        let view = view.as_u128();
        let code = match above {
            Some((same, code)) if same == view => code,
            _ => *known.entry(view).or_insert_with(|| column.code(chunk.value(row))),
        };
        above = Some((view, code));
        column.codes.push(code);
    }
}

/// The elements of lists that hold one each, none of them null.
fn elements_of_single<'a>(lists: &ListArray<i64>, cells: &'a PrimitiveArray<f64>) -> Option<&'a [f64]> {
    let ends = lists.offsets().as_slice();
    let single = ends.windows(2).all(|ends| ends[1] - ends[0] == 1);
    let whole = lists.null_count() == 0 && cells.null_count() == 0;
    let (first, last) = (*ends.first()? as usize, *ends.last()? as usize);
    (single && whole).then(|| cells.values().get(first..last)).flatten()
}

/// A type's name without the crate's default formatting of frames.
fn type_name(kind: &DataType) -> String {
    match kind {
        DataType::List(inner) => format!("array of {}", type_name(inner)),
        other => other.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn frame_with(timestamp: Column, rank: Column, values: Column) -> DataFrame {
        let rows = timestamp.len();
        let text = |name: &str, word: &str| Column::new(name.into(), vec![word; rows]);
        DataFrame::new_infer_height(vec![
            timestamp,
            text("job", "j"),
            text("metric_name", "megatron_timers"),
            text("subname", "forward-compute"),
            rank,
            Column::new("iteration".into(), vec![7i64; rows]),
            values,
        ])
        .expect("columns of one length")
    }

    fn arrays(cells: &[&[f64]]) -> Column {
        let lists: Vec<Series> = cells.iter().map(|cell| Series::new("".into(), cell)).collect();
        Column::new("metric_values".into(), lists)
    }

    #[test]
    fn the_writers_types_do_not_matter() {
        let moment = 1_772_352_000_000_000;
        let times = [
            Column::new("timestamp".into(), [1_772_352_000u32]),
            Column::new("timestamp".into(), ["2026-03-01 08:00:00"]),
            Column::new("timestamp".into(), [1_772_352_000_000i64])
                .cast(&DataType::Datetime(TimeUnit::Milliseconds, None))
                .expect("a time"),
        ];
        let ranks = [
            Column::new("rank".into(), [5u8]),
            Column::new("rank".into(), [5i16]),
            Column::new("rank".into(), [5.0f64]),
            Column::new("rank".into(), ["5"]),
        ];
        for time in &times {
            for rank in &ranks {
                let frame = frame_with(time.clone(), rank.clone(), arrays(&[&[0.5, 0.25]]));
                let rows = rows_of(Path::new("x"), &frame, Columns::Analysed).expect("rows");
                assert_eq!(rows.timestamp.whole(), Some(&[moment][..]), "{time:?}");
                assert_eq!(rows.rank.whole(), Some(&[5][..]), "{rank:?}");
                assert_eq!(rows.value.whole(), Some(&[0.5][..]));
            }
        }
    }

    #[test]
    fn empty_and_textual_arrays_are_read() {
        let time = Column::new("timestamp".into(), [0u32, 1]);
        let rank = Column::new("rank".into(), [0i32, 1]);
        let frame = frame_with(time.clone(), rank.clone(), arrays(&[&[], &[2.0]]));
        assert_eq!(
            rows_of(Path::new("x"), &frame, Columns::Analysed).expect("rows").value,
            [None, Some(2.0)].into_iter().collect()
        );
        let text = Column::new("metric_values".into(), ["[]", "[0.5]"]);
        let frame = frame_with(time, rank, text);
        assert_eq!(
            rows_of(Path::new("x"), &frame, Columns::Analysed).expect("rows").value,
            [None, Some(0.5)].into_iter().collect()
        );
    }

    #[test]
    fn single_calls_of_transfers_are_kept_whole() {
        let time = Column::new("timestamp".into(), [0u32, 1]);
        let rank = Column::new("rank".into(), [0i32, 1]);
        let forms = [
            arrays(&[&[0.5, 0.75], &[2.0, 2.5, 3.0, 3.25]]),
            Column::new("metric_values".into(), ["[0.5,0.75]", "[2,2.5,3,3.25]"]),
        ];
        for values in forms {
            let mut frame = frame_with(time.clone(), rank.clone(), values);
            frame
                .with_column(Column::new("metric_name".into(), ["megatron_timers_trace"; 2]))
                .and_then(|frame| frame.with_column(Column::new("subname".into(), ["optimizer", "forward-recv"])))
                .expect("columns of one length");
            let rows = rows_of(Path::new("x"), &frame, Columns::Analysed).expect("rows");
            assert_eq!(rows.value.whole(), Some(&[0.5, 2.0][..]));
            assert!(rows.calls.get(0).is_empty());
            assert_eq!(rows.calls.get(1), [2.0, 2.5, 3.0, 3.25]);
        }
    }

    #[test]
    fn a_wrong_type_names_the_column_and_what_was_found() {
        let time = Column::new("timestamp".into(), [0u32]);
        let rank = Column::new("rank".into(), [0i32]);
        let frame = frame_with(time, rank, Column::new("metric_values".into(), [true]));
        let error = rows_of(Path::new("x.parquet"), &frame, Columns::Analysed)
            .expect_err("not an array")
            .to_string();
        assert!(error.contains("`metric_values`") && error.contains("bool"), "{error}");
    }
}
