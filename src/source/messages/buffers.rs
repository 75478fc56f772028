//! The buffers of an Arrow record batch: where they lie, how long they are and how many nulls they hold follows from the types
//! of the columns and the number of rows. A description that says anything else is damaged, and what is decoded by it would be
//! other cells of the same file.

use std::collections::VecDeque;

use polars_arrow::datatypes::{ArrowDataType, PhysicalType};
use polars_arrow::types::PrimitiveType;
use polars_arrow_format::ipc::{CompressionType, MetadataVersion, RecordBatchRef};

use super::body::{Body, Span, ones};
use super::types::children;

/// Multiples at which writers let buffers begin: 8 or 64 mostly, and what pyarrow's option `alignment` allows.
const ALIGNMENTS: [u64; 10] = [8, 16, 32, 64, 128, 256, 512, 1_024, 2_048, 4_096];
/// Bytes behind the last buffer that are no sign of damage, whatever the alignment.
const MOST_PADDING: u64 = 64;
/// Bytes of a view of a text.
const VIEW: u64 = 16;

/// Holds what a batch says of its buffers against the types of its columns.
///
/// # Errors
/// Buffers that lie elsewhere than writers put them, that are shorter than their rows need, and counts of rows or nulls that
/// are others than those found.
pub(super) fn check(batch: RecordBatchRef<'_>, types: &[ArrowDataType], body: &Body<'_>) -> Result<(), String> {
    let unreadable = |error: &dyn std::fmt::Display| format!("its description can't be read ({error})");
    let codec = match batch.compression().map_err(|error| unreadable(&error))? {
        Some(compression) => Some(compression.codec().map_err(|error| unreadable(&error))?),
        None => None,
    };
    let mut spans = Vec::new();
    for buffer in batch
        .buffers()
        .map_err(|error| unreadable(&error))?
        .into_iter()
        .flatten()
    {
        let (Ok(offset), Ok(length)) = (u64::try_from(buffer.offset()), u64::try_from(buffer.length())) else {
            return Err("a buffer begins or ends before its body".to_owned());
        };
        spans.push(Span { offset, length });
    }
    check_places(&spans, body.length)?;
    let mut nodes = VecDeque::new();
    for node in batch.nodes().map_err(|error| unreadable(&error))?.into_iter().flatten() {
        let (Ok(rows), Ok(nulls)) = (u64::try_from(node.length()), u64::try_from(node.null_count())) else {
            return Err("a column has less than no row, or less than no null".to_owned());
        };
        nodes.push_back(Node { rows, nulls });
    }
    let views = batch.variadic_buffer_counts().map_err(|error| unreadable(&error))?;
    let rows = batch.length().map_err(|error| unreadable(&error))?;
    let rows = u64::try_from(rows).map_err(|_| format!("it says that it holds {rows} rows"))?;
    let mut walk = Walk {
        body,
        codec,
        nodes,
        buffers: spans.into(),
        views: views.map(|counts| counts.iter().collect()).unwrap_or_default(),
    };
    for (number, dtype) in types.iter().enumerate() {
        walk.column(dtype, Rows::Exactly(rows))
            .map_err(|reason| format!("column {}: {reason}", number + 1))?;
    }
    if !(walk.nodes.is_empty() && walk.buffers.is_empty() && walk.views.is_empty()) {
        return Err("it describes more buffers than its columns have".to_owned());
    }
    Ok(())
}

/// Buffers lie one behind the other, each at the next multiple of the writer's alignment, and fill the body.
fn check_places(spans: &[Span], body: u64) -> Result<(), String> {
    let mut alignments = ALIGNMENTS.to_vec();
    let mut end: u64 = 0;
    // A buffer without bytes may be said to lie anywhere.
    for span in spans.iter().filter(|span| span.length > 0) {
        alignments.retain(|alignment| end.next_multiple_of(*alignment) == span.offset);
        if alignments.is_empty() {
            let offset = span.offset;
            return Err(format!(
                "a buffer begins at byte {offset} of its body, where the one before it ends at {end}"
            ));
        }
        end = match span.offset.checked_add(span.length) {
            Some(end) if end <= body => end,
            _ => return Err("a buffer ends behind its body".to_owned()),
        };
    }
    let padded = alignments
        .iter()
        .any(|alignment| end.next_multiple_of(*alignment) == body);
    if end > 0 && !padded && body - end >= MOST_PADDING {
        return Err(format!("its buffers take {end} bytes of a body of {body}"));
    }
    Ok(())
}

#[derive(Debug, Clone, Copy)]
struct Node {
    rows: u64,
    nulls: u64,
}

/// How many rows a column has.
#[derive(Debug, Clone, Copy)]
enum Rows {
    Exactly(u64),
    /// Writers may leave values in that no row refers to.
    AtLeast(u64),
}

struct Walk<'w, 'f> {
    body: &'w Body<'f>,
    codec: Option<CompressionType>,
    nodes: VecDeque<Node>,
    buffers: VecDeque<Span>,
    /// Buffers of texts that each column of views has.
    views: VecDeque<i64>,
}

impl Walk<'_, '_> {
    fn column(&mut self, dtype: &ArrowDataType, expected: Rows) -> Result<(), String> {
        let storage = dtype.to_storage();
        let node = self.nodes.pop_front().ok_or("it is not described")?;
        match expected {
            Rows::Exactly(rows) if node.rows != rows => {
                return Err(format!("it says that it has {} rows of {rows}", node.rows));
            }
            Rows::AtLeast(rows) if node.rows < rows => {
                return Err(format!(
                    "it says that it has {} values where {rows} are needed",
                    node.rows
                ));
            }
            _ => {}
        }
        let rows = node.rows;
        match storage.to_physical_type() {
            PhysicalType::Null => Ok(()),
            PhysicalType::Boolean => {
                self.validity(node)?;
                self.buffer(rows.div_ceil(8))
            }
            PhysicalType::Primitive(primitive) => {
                self.validity(node)?;
                self.buffer(bytes(rows, width(primitive))?)
            }
            PhysicalType::Dictionary(key) => {
                let PhysicalType::Primitive(key) = ArrowDataType::from(key).to_physical_type() else {
                    return Err("its keys are no numbers".to_owned());
                };
                self.validity(node)?;
                self.buffer(bytes(rows, width(key))?)
            }
            PhysicalType::FixedSizeBinary => {
                let ArrowDataType::FixedSizeBinary(width) = storage else {
                    return Err("its type has no width".to_owned());
                };
                self.validity(node)?;
                self.buffer(bytes(rows, *width as u64)?)
            }
            PhysicalType::Binary | PhysicalType::Utf8 => {
                self.validity(node)?;
                self.offsets(rows, 4)?;
                self.buffer(0)
            }
            PhysicalType::LargeBinary | PhysicalType::LargeUtf8 => {
                self.validity(node)?;
                self.offsets(rows, 8)?;
                self.buffer(0)
            }
            PhysicalType::List | PhysicalType::Map => {
                self.validity(node)?;
                self.offsets(rows, 4)?;
                self.children(storage, Rows::AtLeast(0))
            }
            PhysicalType::LargeList => {
                self.validity(node)?;
                self.offsets(rows, 8)?;
                self.children(storage, Rows::AtLeast(0))
            }
            PhysicalType::FixedSizeList => {
                let ArrowDataType::FixedSizeList(_, width) = storage else {
                    return Err("its type has no width".to_owned());
                };
                self.validity(node)?;
                self.children(storage, Rows::AtLeast(bytes(rows, *width as u64)?))
            }
            PhysicalType::Struct => {
                self.validity(node)?;
                self.children(storage, Rows::Exactly(rows))
            }
            PhysicalType::Union => {
                let ArrowDataType::Union(union) = storage else {
                    return Err("its type has no parts".to_owned());
                };
                if self.body.version != MetadataVersion::V5 {
                    self.buffer(0)?;
                }
                self.buffer(rows)?;
                if union.mode.is_dense() {
                    self.buffer(bytes(rows, 4)?)?;
                    self.children(storage, Rows::AtLeast(0))
                } else {
                    self.children(storage, Rows::Exactly(rows))
                }
            }
            PhysicalType::BinaryView | PhysicalType::Utf8View => {
                self.validity(node)?;
                self.buffer(bytes(rows, VIEW)?)?;
                let texts = self.views.pop_front().ok_or("its buffers are not counted")?;
                let texts = u64::try_from(texts).map_err(|_| "it has less than no buffer")?;
                if texts > self.buffers.len() as u64 {
                    return Err(format!("it says that it has {texts} buffers"));
                }
                (0..texts).try_for_each(|_| self.buffer(0))
            }
        }
    }

    fn children(&mut self, storage: &ArrowDataType, rows: Rows) -> Result<(), String> {
        children(storage)
            .iter()
            .try_for_each(|child| self.column(&child.dtype, rows))
    }

    /// The next buffer, which takes so many bytes at least when it is decoded.
    fn buffer(&mut self, needed: u64) -> Result<(), String> {
        let span = self.next()?;
        let found = self.body.decoded_size(self.codec, span)?;
        if found < needed {
            return Err(format!("a buffer holds {found} bytes where its rows need {needed}"));
        }
        Ok(())
    }

    fn offsets(&mut self, rows: u64, width: u64) -> Result<(), String> {
        // Without rows some writers leave the first one out as well.
        let needed = if rows == 0 {
            0
        } else {
            bytes(rows.saturating_add(1), width)?
        };
        self.buffer(needed)
    }

    fn next(&mut self) -> Result<Span, String> {
        self.buffers.pop_front().ok_or_else(|| "it lacks a buffer".to_owned())
    }

    /// The next buffer, whose bits say which rows are there; without any all are.
    fn validity(&mut self, node: Node) -> Result<(), String> {
        let span = self.next()?;
        let nulls = if span.length == 0 {
            0
        } else {
            let bits = self.body.decoded(self.codec, span, node.rows.div_ceil(8))?;
            node.rows - ones(&bits, node.rows)
        };
        if nulls != node.nulls {
            return Err(format!("it says that it has {} nulls, and has {nulls}", node.nulls));
        }
        Ok(())
    }
}

/// Bytes of so many values of a width.
fn bytes(rows: u64, width: u64) -> Result<u64, String> {
    rows.checked_mul(width)
        .ok_or_else(|| format!("it says that it has {rows} values"))
}

/// Bytes of a value.
const fn width(primitive: PrimitiveType) -> u64 {
    use PrimitiveType as P;
    match primitive {
        P::Int8 | P::UInt8 => 1,
        P::Int16 | P::UInt16 | P::Float16 => 2,
        P::Int32 | P::UInt32 | P::Float32 => 4,
        P::Int64 | P::UInt64 | P::Float64 | P::DaysMs => 8,
        P::MonthDayMillis => 12,
        P::Int128 | P::UInt128 | P::MonthDayNano => 16,
        P::Int256 => 32,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn spans(of: &[(u64, u64)]) -> Vec<Span> {
        of.iter().map(|&(offset, length)| Span { offset, length }).collect()
    }

    #[test]
    fn buffers_lie_one_behind_the_other() {
        // At multiples of 8, of 64, and without padding; an empty one anywhere.
        assert!(check_places(&spans(&[(0, 3), (8, 16), (24, 5)]), 32).is_ok());
        assert!(check_places(&spans(&[(0, 3), (64, 16), (128, 5)]), 192).is_ok());
        assert!(check_places(&spans(&[(0, 64), (7, 0), (64, 64)]), 128).is_ok());
        assert!(check_places(&spans(&[(0, 0), (0, 0)]), 0).is_ok());
        assert!(check_places(&[], 0).is_ok());
    }

    #[test]
    fn a_buffer_that_was_moved_is_found() {
        for (moved, body) in [
            // Over another one, away from it, beyond the body, off the multiples, and by another multiple than the rest.
            (&[(0, 64), (0, 64)][..], 128),
            (&[(0, 64), (72, 56)], 128),
            (&[(0, 64), (64, 128)], 128),
            (&[(0, 3), (4, 16)], 24),
            (&[(0, 3), (8, 16), (64, 5)], 72),
            // A part of the body that is nobody's.
            (&[(0, 64)], 192),
            (&[(0, u64::MAX)], 64),
        ] {
            assert!(check_places(&spans(moved), body).is_err(), "{moved:?}");
        }
    }
}
