//! Which of the many forms of JSON a text has: an object a line, a list a line, a document around all rows.

use serde::de::IgnoredAny;
use serde_json::value::RawValue;

use super::values::first_value;
use crate::contract::columns::{OPTIONAL, REQUIRED};

/// How rows are written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Form {
    /// An object a line: ClickHouse's `JSONEachRow`.
    Lines,
    /// A list a line below a line of names: `JSONCompactEachRowWithNames`, with types below them or not.
    CompactLines,
    /// One object after the other, over several lines each.
    Values,
    /// A list of objects.
    Array,
    /// An object with rows in `data`: ClickHouse's `JSON` and `JSONCompact`, `orient="split"` of pandas.
    Table,
}

const A_LIST_A_COLUMN: &str = "it is JSONColumns, a list a column; write it as JSONEachRow or Parquet";
const AN_OBJECT_A_COLUMN: &str =
    "it holds an object a column, as pandas' to_json does by itself; write it with orient=\"records\", or as Parquet";

/// The columns whose cells are no lists.
fn columns() -> impl Iterator<Item = &'static str> {
    let all = REQUIRED.into_iter().chain(OPTIONAL);
    all.filter(|column| *column != "metric_values")
}

/// Whether a text can be rows in JSON: it begins with an object, or with a list of objects, lists, texts or numbers, which a log's
/// `[2026-03-01 ...` and `[default0]:` are not.
pub(in crate::source) fn may_be_json(head: &[u8]) -> bool {
    let text = begin(head);
    match text.first() {
        Some(b'{') => true,
        Some(b'[') => {
            let inside = text[1..].trim_ascii_start();
            match inside.first() {
                None | Some(b'{' | b'[' | b'"' | b']') => true,
                Some(_) => is_list(first_line(text)),
            }
        }
        _ => false,
    }
}

/// The text without the mark that some editors put first.
fn begin(head: &[u8]) -> &[u8] {
    head.strip_prefix(b"\xef\xbb\xbf").unwrap_or(head).trim_ascii_start()
}

fn first_line(text: &[u8]) -> &[u8] {
    text.split(|&byte| byte == b'\n').next().unwrap_or_default()
}

fn is_list(text: &[u8]) -> bool {
    serde_json::from_slice::<Vec<IgnoredAny>>(text).is_ok()
}

/// The form of a text that begins so.
///
/// # Errors
/// What to do with a form whose rows can't be read.
pub(super) fn form_of(head: &[u8]) -> Result<Form, String> {
    let text = begin(head);
    if text.first() == Some(&b'[') {
        return of_list(text);
    }
    let Some((value, rest)) = first_value(text) else {
        // Longer than what was looked at: a table's first keys stand before its rows.
        let of_table = ["\"meta\"", "\"data\"", "\"columns\"", "\"schema\""];
        let first = text[1..].trim_ascii_start();
        if of_table.iter().any(|key| first.starts_with(key.as_bytes())) {
            return Ok(Form::Table);
        }
        // A column that begins with all of its cells.
        let column = columns().find_map(|column| first.strip_prefix(format!("\"{column}\"").as_bytes()));
        let cells = column.and_then(|rest| rest.trim_ascii_start().strip_prefix(b":"));
        return match cells.and_then(|rest| rest.trim_ascii_start().first()) {
            Some(b'[') => Err(A_LIST_A_COLUMN.to_owned()),
            Some(b'{') => Err(AN_OBJECT_A_COLUMN.to_owned()),
            _ => Ok(Form::Lines),
        };
    };
    let Ok(members) = serde_json::from_slice::<std::collections::BTreeMap<String, &RawValue>>(value) else {
        return Ok(Form::Lines);
    };
    if members.get("data").is_some_and(|rows| rows.get().starts_with('[')) {
        return Ok(Form::Table);
    }
    let holds = |begin: char| {
        let is = |column: &str| members.get(column).is_some_and(|cells| cells.get().starts_with(begin));
        columns().filter(|column| is(column)).count() > 1
    };
    if holds('[') {
        return Err(A_LIST_A_COLUMN.to_owned());
    }
    if holds('{') {
        return Err(AN_OBJECT_A_COLUMN.to_owned());
    }
    let of_rows = |row: &&RawValue| row.get().starts_with('{') && row.get().contains("metric_name");
    if !members.is_empty() && members.values().all(of_rows) {
        return Err(
            "it is JSONObjectEachRow, an object around all rows; write it as JSONEachRow or Parquet".to_owned(),
        );
    }
    let on_one_line = memchr::memchr(b'\n', value).is_none() && first_line(rest).trim_ascii().is_empty();
    Ok(if on_one_line { Form::Lines } else { Form::Values })
}

fn of_list(text: &[u8]) -> Result<Form, String> {
    let line = first_line(text);
    let without_names = |form: &str| {
        Err(format!(
            "it is {form}, whose rows don't name their columns; write it as JSONEachRow, JSONCompactEachRowWithNames or Parquet"
        ))
    };
    match text[1..].trim_ascii_start().first() {
        Some(b'{') | None => return Ok(Form::Array),
        Some(b']') if text[1..].trim_ascii_start().len() < 3 => return Ok(Form::Array),
        Some(b'[') => return without_names("a list of lists"),
        _ => {}
    }
    if serde_json::from_slice::<Vec<String>>(line).is_ok_and(|names| are_names(&names)) {
        return Ok(Form::CompactLines);
    }
    without_names("JSONCompactEachRow")
}

/// Whether texts are names of columns and no cells: none of them begins like a time, and there are no two alike.
fn are_names(texts: &[String]) -> bool {
    let is_name = |text: &String| {
        text.chars()
            .next()
            .is_some_and(|letter| letter.is_alphabetic() || letter == '_')
    };
    let mut sorted: Vec<&String> = texts.iter().collect();
    sorted.sort();
    sorted.dedup();
    texts.iter().all(is_name) && sorted.len() == texts.len()
}

/// Whether a line of texts holds the types that ClickHouse's `WithNamesAndTypes` writes below the names.
pub(super) fn are_types(texts: &[String]) -> bool {
    const KINDS: [&str; 14] = [
        "Nullable(",
        "LowCardinality(",
        "Array(",
        "Enum",
        "DateTime",
        "Date",
        "String",
        "FixedString",
        "Int",
        "UInt",
        "Float",
        "Decimal",
        "UUID",
        "JSON",
    ];
    !texts.is_empty()
        && texts
            .iter()
            .all(|text| KINDS.iter().any(|kind| text.starts_with(kind)) || text.starts_with("Map(") || text == "Bool")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn forms_are_told_by_their_begin() {
        for (text, form) in [
            ("{\"rank\":1}\n{\"rank\":2}\n", Form::Lines),
            ("{\"rank\":1}", Form::Lines),
            ("{\"rank\":", Form::Lines),
            ("\u{feff} {\"rank\":1}\n", Form::Lines),
            ("{\n \"rank\": 1\n}\n{\n", Form::Values),
            ("{\"rank\":1} {\"rank\":2}\n", Form::Values),
            ("[\n {\"rank\": 1},", Form::Array),
            ("[{\"rank\":1}]", Form::Array),
            ("[]", Form::Array),
            ("{\n\t\"meta\":\n\t[\n", Form::Table),
            ("{\"columns\":[\"rank\"],\"index\":[0],\"data\":[[1]]}", Form::Table),
            ("[\"timestamp\", \"job\"]\n[\"2026\", \"j\"]\n", Form::CompactLines),
        ] {
            assert_eq!(form_of(text.as_bytes()), Ok(form), "{text}");
            assert!(may_be_json(text.as_bytes()), "{text}");
        }
    }

    #[test]
    fn forms_without_names_say_what_to_do() {
        for (text, form) in [
            ("[\"2026-03-01 08:00:00\", \"j\", 5]\n", "JSONCompactEachRow,"),
            ("[[\"2026-03-01\"]]", "a list of lists"),
            ("{\"rank\":[1,2],\"job\":[\"j\",\"j\"]}", "JSONColumns"),
            ("{\"rank\":{\"0\":1},\"job\":{\"0\":\"j\"}}", "orient=\"records\""),
            ("{\"timestamp\": [\"2026", "JSONColumns"),
            ("{\"timestamp\": {\"0\": 1", "orient=\"records\""),
            ("{\"row_1\":{\"metric_name\":\"x\"}}", "JSONObjectEachRow"),
        ] {
            let advice = form_of(text.as_bytes()).expect_err("refused");
            assert!(advice.contains(form) && advice.contains("write it"), "{text}: {advice}");
        }
    }

    #[test]
    fn logs_are_no_json() {
        for text in [
            "[2026-03-01 08:00:00] iteration",
            "[default0]: x",
            "[1,15]<stdout>: x",
            "[Rank 0] x",
            "[rank7]: x",
            "",
        ] {
            assert!(!may_be_json(text.as_bytes()), "{text}");
        }
    }

    #[test]
    fn types_are_told_from_cells() {
        let texts = |texts: &[&str]| texts.iter().map(|&text| text.to_owned()).collect::<Vec<_>>();
        assert!(are_types(&texts(&[
            "DateTime64(6, 'UTC')",
            "LowCardinality(String)",
            "Array(Float64)",
            "UInt32"
        ])));
        assert!(!are_types(&texts(&["2026-03-01 08:00:00", "String"])));
    }
}
