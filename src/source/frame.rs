//! From a Polars frame, with whatever column types the writer chose, to [`Rows`].

use std::path::Path;

use polars::prelude::*;

use super::calls::{KeepsLists, Lists, all_of_text_array};
use super::columns::Columns;
use super::error::SourceError;
use super::rows::{Rows, TextColumn, first_of_text_array, integer_of_text, whole};
use super::timestamp::{self, Micros};
use crate::contract::columns::REQUIRED;

/// The columns to ask a file for.
///
/// # Errors
/// A required column that the file lacks, with those that it has.
pub(super) fn wanted_columns(path: &Path, there: &[&str], columns: Columns) -> Result<Vec<String>, SourceError> {
    let known = columns.known();
    if let Some(column) = known
        .clone()
        .find(|column| there.iter().filter(|name| *name == column).count() > 1)
    {
        return Err(SourceError::DoubleColumn {
            path: path.to_owned(),
            column,
        });
    }
    if let Some(column) = REQUIRED.into_iter().find(|column| !there.contains(column)) {
        let found = there.join(", ");
        return Err(SourceError::MissingColumn {
            path: path.to_owned(),
            column,
            found,
        });
    }
    Ok(known
        .filter(|column| there.contains(column))
        .map(str::to_owned)
        .collect())
}

/// Turns a frame into rows.
///
/// # Errors
/// A column whose type can't stand for what the contract asks for.
pub(crate) fn rows_of(path: &Path, frame: &DataFrame, columns: Columns) -> Result<Rows, SourceError> {
    let reader = Frame { path, frame };
    let (metric_name, subname) = (reader.text("metric_name")?, reader.text("subname")?);
    let keeps = KeepsLists::new(&metric_name, &subname);
    let keeps = |row: usize| columns.all() || keeps.any() && keeps.row(metric_name.codes[row], subname.codes[row]);
    let stored = |column| {
        if columns.all() {
            reader.optional_text(column)
        } else {
            Ok(None)
        }
    };
    let (value, calls) = match frame.column("metric_values") {
        Ok(_) => reader.values("metric_values", &keeps)?,
        Err(_) => (Vec::new(), Lists::default()),
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
    })
}

struct Frame<'a> {
    path: &'a Path,
    frame: &'a DataFrame,
}

impl Frame<'_> {
    fn series(&self, column: &'static str) -> Result<Series, SourceError> {
        self.frame
            .column(column)
            .map(|found| found.as_materialized_series().rechunk())
            .map_err(|_| SourceError::MissingColumn {
                path: self.path.to_owned(),
                column,
                found: self
                    .frame
                    .get_column_names()
                    .iter()
                    .map(|name| name.as_str())
                    .collect::<Vec<_>>()
                    .join(", "),
            })
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
        let series = self.series(column)?;
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
        cells.iter().for_each(|cell| coded.push(cell));
        Ok(coded)
    }

    fn optional_text(&self, column: &'static str) -> Result<Option<TextColumn>, SourceError> {
        match self.frame.column(column) {
            Ok(_) => self.text(column).map(Some),
            Err(_) => Ok(None),
        }
    }

    fn integers(&self, column: &'static str) -> Result<Vec<Option<i64>>, SourceError> {
        let series = self.series(column)?;
        let kind = series.dtype();
        if kind.is_integer() || kind.is_null() {
            let wide = self.cast(&series, column, &DataType::Int64)?;
            let cells = wide.i64().map_err(|_| self.wrong_type(column, kind, "an integer"))?;
            return Ok(cells.iter().collect());
        }
        if kind.is_float() {
            let wide = self.cast(&series, column, &DataType::Float64)?;
            let cells = wide.f64().map_err(|_| self.wrong_type(column, kind, "an integer"))?;
            return Ok(cells.iter().map(|cell| cell.and_then(whole)).collect());
        }
        if let Ok(cells) = series.str() {
            return Ok(cells.iter().map(|cell| cell.and_then(integer_of_text)).collect());
        }
        Err(self.wrong_type(column, kind, "an integer"))
    }

    fn times(&self, column: &'static str) -> Result<Vec<Option<Micros>>, SourceError> {
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
                return Ok(cells.iter().map(|cell| cell.and_then(timestamp::parse)).collect());
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
        Ok(cells.iter().map(|cell| cell.map(to_micros)).collect())
    }

    /// The first element of each list, and every element of the lists that a row `keeps`.
    fn values(
        &self,
        column: &'static str,
        keeps: &dyn Fn(usize) -> bool,
    ) -> Result<(Vec<Option<f64>>, Lists), SourceError> {
        const EXPECTED: &str = "an array of numbers";
        let series = self.series(column)?;
        match series.dtype() {
            DataType::List(inner) if inner.is_primitive_numeric() || inner.is_null() => {
                let wide = self.cast(&series, column, &DataType::List(Box::new(DataType::Float64)))?;
                let lists = wide
                    .list()
                    .map_err(|_| self.wrong_type(column, wide.dtype(), EXPECTED))?;
                let mut first = Vec::with_capacity(lists.len());
                let mut kept = Lists::default();
                for lists in lists.downcast_iter() {
                    let cells = lists
                        .values()
                        .as_any()
                        .downcast_ref::<polars_arrow::array::PrimitiveArray<f64>>()
                        .ok_or_else(|| self.wrong_type(column, series.dtype(), EXPECTED))?;
                    for (row, ends) in lists.offsets().as_slice().windows(2).enumerate() {
                        let null = lists.validity().is_some_and(|valid| !valid.get_bit(row));
                        let cells_of = if null { 0..0 } else { ends[0] as usize..ends[1] as usize };
                        let keeps = keeps(first.len());
                        first.push(cells_of.clone().next().and_then(|place| cells.get(place)));
                        let all = cells_of.filter(|_| keeps);
                        kept.push(all.map(|place| cells.get(place).unwrap_or(f64::NAN)));
                    }
                }
                Ok((first, kept))
            }
            DataType::String => {
                let expected = "an array of numbers, or text like [0.1,0.2]";
                let wrong = || self.wrong_type(column, series.dtype(), expected);
                let mut first = Vec::with_capacity(series.len());
                let mut kept = Lists::default();
                for (row, cell) in series.str().map_err(|_| wrong())?.iter().enumerate() {
                    first.push(cell.map_or(Ok(None), first_of_text_array).map_err(|_| wrong())?);
                    kept.push(cell.filter(|_| keeps(row)).into_iter().flat_map(all_of_text_array));
                }
                Ok((first, kept))
            }
            DataType::Null => Ok((vec![None; series.len()], Lists::default())),
            other => Err(self.wrong_type(column, other, EXPECTED)),
        }
    }
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
                assert_eq!(rows.timestamp, [Some(moment)], "{time:?}");
                assert_eq!(rows.rank, [Some(5)], "{rank:?}");
                assert_eq!(rows.value, [Some(0.5)]);
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
            [None, Some(2.0)]
        );
        let text = Column::new("metric_values".into(), ["[]", "[0.5]"]);
        let frame = frame_with(time, rank, text);
        assert_eq!(
            rows_of(Path::new("x"), &frame, Columns::Analysed).expect("rows").value,
            [None, Some(0.5)]
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
                .and_then(|frame| frame.with_column(Column::new("subname".into(), ["forward-compute", "forward-recv"])))
                .expect("columns of one length");
            let rows = rows_of(Path::new("x"), &frame, Columns::Analysed).expect("rows");
            assert_eq!(rows.value, [Some(0.5), Some(2.0)]);
            assert!(rows.calls.get(0).is_empty());
            assert_eq!(rows.calls.get(1), [2.0, 2.5, 3.0, 3.25]);
        }
    }

    #[test]
    fn a_wrong_type_names_the_column_and_what_was_found() {
        let time = Column::new("timestamp".into(), [0u32]);
        let rank = Column::new("rank".into(), [0i32]);
        let frame = frame_with(time, rank, Column::new("metric_values".into(), [1.5f64]));
        let error = rows_of(Path::new("x.parquet"), &frame, Columns::Analysed)
            .expect_err("not an array")
            .to_string();
        assert!(error.contains("`metric_values`") && error.contains("f64"), "{error}");
    }
}
