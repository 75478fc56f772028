//! Rows as the bytes that a table takes, and a fingerprint by which a row is known again.

use std::hash::Hasher as _;

use serde::de::IgnoredAny;
use twox_hash::XxHash64;

use super::error::Failure;
use super::layout::{Column, Layout, bare};
use crate::source::Micros;

/// One row on its way into a table.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Row<'a> {
    pub micros: Option<Micros>,
    pub job: Option<&'a str>,
    pub metric_name: Option<&'a str>,
    pub subname: Option<&'a str>,
    pub rank: Option<i64>,
    pub iteration: Option<i64>,
    pub node: Option<&'a str>,
    pub cluster: Option<&'a str>,
    pub run: Option<&'a str>,
    pub values: &'a [f64],
    pub attributes: Option<&'a str>,
}

/// What a column is filled with.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Field {
    Micros,
    Text(Text),
    Rank,
    Iteration,
    Values,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Text {
    Job,
    MetricName,
    Subname,
    Node,
    Cluster,
    Run,
    Attributes,
}

const FIELDS: [(&str, Field); 11] = [
    ("timestamp", Field::Micros),
    ("job", Field::Text(Text::Job)),
    ("metric_name", Field::Text(Text::MetricName)),
    ("subname", Field::Text(Text::Subname)),
    ("rank", Field::Rank),
    ("iteration", Field::Iteration),
    ("node", Field::Text(Text::Node)),
    ("cluster", Field::Text(Text::Cluster)),
    ("rerun_uuid", Field::Text(Text::Run)),
    ("metric_values", Field::Values),
    ("attributes", Field::Text(Text::Attributes)),
];

/// How a column's cells are written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Form {
    Seconds,
    /// Ticks of 10^-n seconds.
    Ticks(u32),
    Text,
    /// An object as its text; see [`Encoder::setting`].
    Json,
    /// Signed or not, bytes.
    Integer(bool, usize),
    /// Arrays of 8- or 4-byte floats; whether an element may be null.
    Floats(usize, bool),
}

#[derive(Debug, Clone)]
struct Target {
    name: String,
    field: Field,
    form: Form,
    nullable: bool,
}

/// Writes rows for one table.
#[derive(Debug, Clone)]
pub(super) struct Encoder {
    targets: Vec<Target>,
}

impl Encoder {
    /// Finds out how each column is written.
    ///
    /// # Errors
    /// A column of a type that can't be written.
    pub fn new(layout: &Layout) -> Result<Self, Failure> {
        let mut targets = Vec::new();
        for (name, field) in FIELDS {
            let Some(column) = layout.columns.iter().find(|column| column.name == name) else {
                continue;
            };
            match form(field, column) {
                Some(form) => targets.push(Target {
                    name: name.to_owned(),
                    field,
                    form,
                    nullable: column.kind.contains("Nullable(") && !matches!(form, Form::Floats(..)),
                }),
                // It has a default, whatever its type; [`unwritten`] tells it.
                None if name == "attributes" => {}
                None => {
                    return Err(Failure::Layout(format!(
                        "column `{name}` has type {}, into which rows can't be written",
                        column.kind
                    )));
                }
            }
        }
        Ok(Self { targets })
    }

    /// The columns that are written, in their order.
    pub fn columns(&self) -> impl Iterator<Item = &str> {
        self.targets.iter().map(|target| target.name.as_str())
    }

    /// The setting that an insert needs, for a column of type JSON.
    pub fn setting(&self) -> Option<(&'static str, &'static str)> {
        let json = self.targets.iter().any(|target| target.form == Form::Json);
        json.then_some(("input_format_binary_read_json_as_string", "1"))
    }

    /// Appends a row in RowBinary; `false`, and nothing appended, where the table can't hold a cell.
    pub fn write(&self, row: &Row<'_>, bytes: &mut Vec<u8>) -> bool {
        let before = bytes.len();
        for target in &self.targets {
            if !write_cell(target, row, bytes) {
                bytes.truncate(before);
                return false;
            }
        }
        true
    }

    /// The fingerprint of a row as the table holds it after [`Self::write`].
    pub fn fingerprint(&self, row: &Row<'_>) -> u64 {
        use std::fmt::Write as _;
        let mut text = String::with_capacity(160);
        let stored = |name: &str| {
            self.targets
                .iter()
                .find(|target| target.name == name)
                .map(|target| target.form)
        };
        let number = |text: &mut String, number: Option<i64>| match number {
            Some(number) => write!(text, "{number}"),
            None => write!(text, "\\N"),
        };
        let micros = row.micros.map(|micros| match stored("timestamp") {
            Some(Form::Seconds) => micros.div_euclid(1_000_000) * 1_000_000,
            Some(Form::Ticks(digits)) if digits < 6 => {
                let tick = 10_i64.pow(6 - digits);
                micros.div_euclid(tick) * tick
            }
            _ => micros,
        });
        // Writing to a string can't fail.
        let _ = number(&mut text, micros);
        for cell in [row.metric_name, row.subname] {
            let _ = write!(text, "\t{}", cell.unwrap_or(""));
        }
        for cell in [row.rank, row.iteration] {
            text.push('\t');
            let _ = number(&mut text, cell);
        }
        for (name, cell) in [("node", row.node), ("rerun_uuid", row.run)] {
            let _ = write!(text, "\t{}", stored(name).and(cell).unwrap_or(""));
        }
        text.push('\t');
        let narrow = matches!(stored("metric_values"), Some(Form::Floats(4, _)));
        for (place, &value) in row.values.iter().enumerate() {
            let value = if narrow { f64::from(value as f32) } else { value };
            let comma = if place > 0 { "," } else { "" };
            // Of NaN there are many, and the way to the table need not keep which.
            let _ = match value.is_nan() {
                true => write!(text, "{comma}nan"),
                false => write!(text, "{comma}{}", value.to_bits()),
            };
        }
        let mut hasher = XxHash64::with_seed(0);
        hasher.write(text.as_bytes());
        hasher.finish()
    }
}

/// The type of the table's `attributes`, where it is one that can't be written.
pub(super) fn unwritten(layout: &Layout) -> Option<&str> {
    let column = layout.columns.iter().find(|column| column.name == "attributes")?;
    form(Field::Text(Text::Attributes), column)
        .is_none()
        .then_some(column.kind.as_str())
}

/// SQL for the same fingerprint of a row that is in the table.
pub(super) fn fingerprint_sql(layout: &Layout) -> String {
    let Layout {
        micros,
        subname,
        node,
        run,
        ..
    } = layout;
    let number = |sql: &str| format!("ifNull(toString({sql}), '\\\\N')");
    format!(
        "xxHash64(concat({}, '\\t', ifNull(toString(metric_name), ''), '\\t', {subname}, '\\t', {}, '\\t', {}, '\\t', {node}, \
         '\\t', {run}, '\\t', arrayStringConcat(arrayMap(v -> if(ifNull(isNaN(v), 1), 'nan', \
         toString(reinterpretAsUInt64(toFloat64(assumeNotNull(v))))), metric_values), ',')))",
        number(micros),
        number("rank"),
        number("iteration"),
    )
}

fn form(field: Field, column: &Column) -> Option<Form> {
    let kind = column.bare();
    match field {
        Field::Micros => match kind.strip_prefix("DateTime64(") {
            Some(arguments) => arguments.split([',', ')']).next()?.trim().parse().ok().map(Form::Ticks),
            None => kind.starts_with("DateTime").then_some(Form::Seconds),
        },
        Field::Text(Text::Attributes) if kind == "JSON" || kind.starts_with("JSON(") => Some(Form::Json),
        Field::Text(_) => (kind == "String").then_some(Form::Text),
        Field::Rank | Field::Iteration => {
            let (signed, bits) = match kind.strip_prefix("UInt") {
                Some(bits) => (false, bits),
                None => (true, kind.strip_prefix("Int")?),
            };
            let bits: usize = bits.parse().ok().filter(|bits| [8, 16, 32, 64].contains(bits))?;
            Some(Form::Integer(signed, bits / 8))
        }
        Field::Values => {
            let element = kind.strip_prefix("Array(")?.strip_suffix(')')?;
            let nullable = element.starts_with("Nullable(");
            match bare(element) {
                "Float64" => Some(Form::Floats(8, nullable)),
                "Float32" => Some(Form::Floats(4, nullable)),
                _ => None,
            }
        }
    }
}

/// Appends a cell; `false` where it can't be.
fn write_cell(target: &Target, row: &Row<'_>, bytes: &mut Vec<u8>) -> bool {
    let null = match target.field {
        Field::Micros => row.micros.is_none(),
        Field::Rank => row.rank.is_none(),
        Field::Iteration => row.iteration.is_none(),
        // A text without a default of its own is empty.
        Field::Text(Text::Job | Text::MetricName | Text::Subname) => text_of(target.field, row).is_none(),
        Field::Text(_) | Field::Values => false,
    };
    if null && !target.nullable {
        return false;
    }
    if target.nullable {
        bytes.push(u8::from(null));
        if null {
            return true;
        }
    }
    match target.form {
        Form::Seconds => {
            let seconds = row
                .micros
                .map(|micros| micros.div_euclid(1_000_000))
                .and_then(|s| u32::try_from(s).ok());
            seconds.map(|seconds| bytes.extend(seconds.to_le_bytes())).is_some()
        }
        Form::Ticks(digits) => {
            let ticks = row.micros.and_then(|micros| match digits {
                0..=6 => Some(micros.div_euclid(10_i64.pow(6 - digits))),
                _ => micros.checked_mul(10_i64.pow((digits - 6).min(3))),
            });
            ticks.map(|ticks| bytes.extend(ticks.to_le_bytes())).is_some()
        }
        Form::Text => {
            write_text(text_of(target.field, row).unwrap_or(""), bytes);
            true
        }
        Form::Json => {
            let text = row.attributes.map_or("", str::trim);
            let text = if text.is_empty() { "{}" } else { text };
            // The server would refuse all of the batch.
            let object = text.starts_with('{') && serde_json::from_str::<IgnoredAny>(text).is_ok();
            if object {
                write_text(text, bytes);
            }
            object
        }
        Form::Integer(signed, size) => {
            let number = if target.field == Field::Rank {
                row.rank
            } else {
                row.iteration
            };
            number.is_some_and(|number| write_integer(number, signed, size, bytes))
        }
        Form::Floats(size, nullable) => {
            write_length(row.values.len(), bytes);
            for &value in row.values {
                if nullable {
                    bytes.push(0);
                }
                if size == 4 {
                    bytes.extend((value as f32).to_le_bytes());
                } else {
                    bytes.extend(value.to_le_bytes());
                }
            }
            true
        }
    }
}

fn text_of<'a>(field: Field, row: &Row<'a>) -> Option<&'a str> {
    let Field::Text(text) = field else { return None };
    match text {
        Text::Job => row.job,
        Text::MetricName => row.metric_name,
        Text::Subname => row.subname,
        Text::Node => row.node,
        Text::Cluster => row.cluster,
        Text::Run => row.run,
        Text::Attributes => Some(row.attributes.unwrap_or("{}")),
    }
}

fn write_text(text: &str, bytes: &mut Vec<u8>) {
    write_length(text.len(), bytes);
    bytes.extend(text.as_bytes());
}

fn write_length(mut length: usize, bytes: &mut Vec<u8>) {
    while length >= 0x80 {
        bytes.push(length as u8 | 0x80);
        length >>= 7;
    }
    bytes.push(length as u8);
}

fn write_integer(number: i64, signed: bool, size: usize, bytes: &mut Vec<u8>) -> bool {
    let bits = 8 * size as u32;
    let fits = match (signed, bits) {
        (true, 64) => true,
        (true, _) => (-(1_i64 << (bits - 1))..1_i64 << (bits - 1)).contains(&number),
        (false, 64) => number >= 0,
        (false, _) => (0..1_i64 << bits).contains(&number),
    };
    if fits {
        bytes.extend(&number.to_le_bytes()[..size]);
    }
    fits
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn integers_that_do_not_fit_are_refused() {
        let mut bytes = Vec::new();
        assert!(write_integer(-1, true, 4, &mut bytes) && bytes == [255; 4]);
        assert!(!write_integer(-1, false, 4, &mut bytes));
        assert!(!write_integer(1 << 31, true, 4, &mut bytes) && write_integer(1 << 31, false, 4, &mut bytes));
        assert_eq!(bytes.len(), 8);
    }

    #[test]
    fn lengths_are_written_seven_bits_a_byte() {
        let mut bytes = Vec::new();
        write_length(300, &mut bytes);
        write_length(5, &mut bytes);
        assert_eq!(bytes, [0xac, 0x02, 5]);
    }
}
