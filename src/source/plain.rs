//! Arrow arrays of kinds that the frames are not built for, as kinds that they are: each such kind would be a feature of Polars
//! and minutes of every build, for a cast of a few lines.

use polars::prelude::pf16;
use polars_arrow::array::{Array, FixedSizeListArray, ListArray, PrimitiveArray};
use polars_arrow::datatypes::{ArrowDataType, Field};
use polars_arrow::offset::{Offset, OffsetsBuffer};
use polars_arrow::types::{NativeType, i256};

/// The type that stands for another in [`plain`].
pub(super) fn plain_type(kind: &ArrowDataType) -> ArrowDataType {
    let inner = |field: &Field| {
        Box::new(Field::new(
            field.name.clone(),
            plain_type(&field.dtype),
            field.is_nullable,
        ))
    };
    match kind {
        // Their values are UTC whatever the zone says, and zones like +05:30 or Z have no name.
        ArrowDataType::Timestamp(unit, Some(_)) => ArrowDataType::Timestamp(*unit, None),
        ArrowDataType::FixedSizeList(field, _) => ArrowDataType::LargeList(inner(field)),
        ArrowDataType::List(field) => ArrowDataType::List(inner(field)),
        ArrowDataType::LargeList(field) => ArrowDataType::LargeList(inner(field)),
        ArrowDataType::Float16
        | ArrowDataType::Decimal(..)
        | ArrowDataType::Decimal32(..)
        | ArrowDataType::Decimal64(..)
        | ArrowDataType::Decimal256(..) => ArrowDataType::Float64,
        other => other.clone(),
    }
}

/// Half floats and decimals as floats, lists of a fixed size as lists, times without their zone; everything else as it is.
///
/// # Errors
/// An array that is not of the type that it claims.
pub(super) fn plain(array: Box<dyn Array>) -> Result<Box<dyn Array>, String> {
    let to = plain_type(array.dtype());
    if to == *array.dtype() {
        return Ok(array);
    }
    match array.dtype() {
        ArrowDataType::Timestamp(..) => Ok(primitive::<i64>(&*array)?.clone().to(to).boxed()),
        ArrowDataType::Float16 => floats(&*array, |half: pf16| f64::from(f32::from(half))),
        ArrowDataType::Decimal(_, scale) => {
            let unit = 10f64.powi(i32::try_from(*scale).unwrap_or(i32::MAX));
            floats(&*array, |number: i128| number as f64 / unit)
        }
        ArrowDataType::Decimal64(_, scale) => {
            let unit = 10f64.powi(i32::try_from(*scale).unwrap_or(i32::MAX));
            floats(&*array, |number: i64| number as f64 / unit)
        }
        ArrowDataType::Decimal32(_, scale) => {
            let unit = 10f64.powi(i32::try_from(*scale).unwrap_or(i32::MAX));
            floats(&*array, |number: i32| f64::from(number) / unit)
        }
        ArrowDataType::Decimal256(_, scale) => {
            let unit = 10f64.powi(i32::try_from(*scale).unwrap_or(i32::MAX));
            floats(&*array, |number: i256| number.0.as_f64() / unit)
        }
        ArrowDataType::FixedSizeList(_, width) => {
            let width = *width;
            let lists = of_kind::<FixedSizeListArray>(&*array)?;
            let ends = (0..=lists.len()).map(|row| (row * width) as i64).collect::<Vec<_>>();
            let offsets = OffsetsBuffer::try_from(ends).map_err(|error| error.to_string())?;
            let values = plain(lists.values().clone())?;
            let lists = ListArray::<i64>::try_new(to, offsets, values, lists.validity().cloned());
            Ok(lists.map_err(|error| error.to_string())?.boxed())
        }
        ArrowDataType::List(_) => with_plain_values::<i32>(&*array, to),
        ArrowDataType::LargeList(_) => with_plain_values::<i64>(&*array, to),
        _ => Ok(array),
    }
}

fn with_plain_values<O: Offset>(array: &dyn Array, to: ArrowDataType) -> Result<Box<dyn Array>, String> {
    let lists = of_kind::<ListArray<O>>(array)?;
    let values = plain(lists.values().clone())?;
    let lists = ListArray::<O>::try_new(to, lists.offsets().clone(), values, lists.validity().cloned());
    Ok(lists.map_err(|error| error.to_string())?.boxed())
}

fn of_kind<A: 'static>(array: &dyn Array) -> Result<&A, String> {
    let other = || "its cells are not of the type that it claims".to_owned();
    array.as_any().downcast_ref::<A>().ok_or_else(other)
}

fn primitive<T: NativeType>(array: &dyn Array) -> Result<&PrimitiveArray<T>, String> {
    of_kind(array)
}

fn floats<T: NativeType>(array: &dyn Array, number: impl Fn(T) -> f64) -> Result<Box<dyn Array>, String> {
    let cells = primitive::<T>(array)?;
    let numbers: Vec<f64> = cells.values().iter().map(|&cell| number(cell)).collect();
    Ok(PrimitiveArray::new(ArrowDataType::Float64, numbers.into(), cells.validity().cloned()).boxed())
}

#[cfg(test)]
mod tests {
    use polars_arrow::datatypes::TimeUnit;

    use super::*;

    fn floats_of(array: &dyn Array) -> Vec<Option<f64>> {
        let cells = primitive::<f64>(array).expect("floats");
        cells.iter().map(|cell| cell.copied()).collect()
    }

    #[test]
    fn decimals_are_numbers() {
        let cells = PrimitiveArray::<i128>::from([Some(1250), None, Some(-5)]).to(ArrowDataType::Decimal(10, 3));
        assert_eq!(
            floats_of(&*plain(cells.boxed()).expect("floats")),
            [Some(1.25), None, Some(-0.005)]
        );
    }

    #[test]
    fn lists_of_a_fixed_size_are_lists() {
        let values = PrimitiveArray::<f64>::from_vec(vec![1.0, 2.0, 3.0, 4.0]).boxed();
        let field = Field::new("item".into(), ArrowDataType::Float64, true);
        let kind = ArrowDataType::FixedSizeList(Box::new(field), 2);
        let lists = plain(FixedSizeListArray::new(kind, 2, values, None).boxed()).expect("lists");
        let lists = of_kind::<ListArray<i64>>(&*lists).expect("lists");
        assert_eq!(lists.offsets().as_slice(), [0, 2, 4]);
        assert_eq!(
            floats_of(&**lists.values()),
            [Some(1.0), Some(2.0), Some(3.0), Some(4.0)]
        );
    }

    #[test]
    fn a_time_loses_its_zone_and_stays_the_same_moment() {
        let zoned = ArrowDataType::Timestamp(TimeUnit::Second, Some("+05:30".into()));
        let array = plain(PrimitiveArray::<i64>::from_vec(vec![7]).to(zoned).boxed()).expect("a time");
        assert_eq!(*array.dtype(), ArrowDataType::Timestamp(TimeUnit::Second, None));
        assert_eq!(primitive::<i64>(&*array).expect("numbers").value(0), 7);
    }
}
