//! The cells of one row in JSON, by the columns of the contract, as they are written.

use std::borrow::Cow;

use serde::de::{DeserializeSeed, Deserializer, Error as _, IgnoredAny, MapAccess, Visitor};
use serde_json::value::RawValue;

use crate::contract::columns::{OPTIONAL, REQUIRED, STORED};

/// The columns of the contract, those that must be there first.
pub(super) const COLUMNS: [&str; REQUIRED.len() + OPTIONAL.len() + STORED.len()] = {
    let mut columns = [""; REQUIRED.len() + OPTIONAL.len() + STORED.len()];
    let mut at = 0;
    while at < columns.len() {
        columns[at] = if at < REQUIRED.len() {
            REQUIRED[at]
        } else if at < REQUIRED.len() + OPTIONAL.len() {
            OPTIONAL[at - REQUIRED.len()]
        } else {
            STORED[at - REQUIRED.len() - OPTIONAL.len()]
        };
        at += 1;
    }
    columns
};

/// The cells of a row; `None` where the row does not name the column.
pub(super) type Cells<'a> = [Option<&'a RawValue>; COLUMNS.len()];

/// What the columns are called: parallel to [`COLUMNS`], and `None` for one that is not read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Keys(pub [Option<String>; COLUMNS.len()]);

impl Keys {
    fn column(&self, key: &str) -> Option<usize> {
        self.0.iter().position(|name| name.as_deref() == Some(key))
    }
}

/// Reads the object of a row.
///
/// # Errors
/// A text that is no object, or names a column twice.
pub(super) fn cells_of<'a>(text: &'a str, keys: &Keys) -> serde_json::Result<Cells<'a>> {
    let mut input = serde_json::Deserializer::from_str(text);
    let cells = Object(keys).deserialize(&mut input)?;
    input.end()?;
    Ok(cells)
}

/// The keys of an object in their order.
///
/// # Errors
/// A text that is no object.
pub(super) fn keys_of(text: &str) -> serde_json::Result<Vec<String>> {
    struct Names;
    impl<'de> Visitor<'de> for Names {
        type Value = Vec<String>;

        fn expecting(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
            out.write_str("an object with a row")
        }

        fn visit_map<M: MapAccess<'de>>(self, mut members: M) -> Result<Self::Value, M::Error> {
            let mut names = Vec::new();
            while let Some((name, _)) = members.next_entry::<String, IgnoredAny>()? {
                names.push(name);
            }
            Ok(names)
        }
    }
    let mut input = serde_json::Deserializer::from_str(text);
    let names = input.deserialize_map(Names)?;
    input.end()?;
    Ok(names)
}

struct Object<'k>(&'k Keys);

impl<'de> DeserializeSeed<'de> for Object<'_> {
    type Value = Cells<'de>;

    fn deserialize<D: Deserializer<'de>>(self, input: D) -> Result<Self::Value, D::Error> {
        input.deserialize_map(self)
    }
}

impl<'de> Visitor<'de> for Object<'_> {
    type Value = Cells<'de>;

    fn expecting(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.write_str("an object with a row")
    }

    fn visit_map<M: MapAccess<'de>>(self, mut members: M) -> Result<Self::Value, M::Error> {
        let mut cells: Cells<'de> = [None; COLUMNS.len()];
        while let Some(column) = members.next_key_seed(Key(self.0))? {
            match column {
                None => {
                    members.next_value::<IgnoredAny>()?;
                }
                Some(column) => {
                    let cell = members.next_value::<&'de RawValue>()?;
                    if cells[column].replace(cell).is_some() {
                        return Err(M::Error::custom(format_args!(
                            "column `{}` is there twice",
                            COLUMNS[column]
                        )));
                    }
                }
            }
        }
        Ok(cells)
    }
}

/// The column that a key names, found without a copy of the key.
struct Key<'k>(&'k Keys);

impl<'de> DeserializeSeed<'de> for Key<'_> {
    type Value = Option<usize>;

    fn deserialize<D: Deserializer<'de>>(self, input: D) -> Result<Self::Value, D::Error> {
        input.deserialize_str(self)
    }
}

impl Visitor<'_> for Key<'_> {
    type Value = Option<usize>;

    fn expecting(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.write_str("the name of a column")
    }

    fn visit_str<E>(self, key: &str) -> Result<Self::Value, E> {
        Ok(self.0.column(key))
    }
}

/// A cell that is null, or not there.
pub(super) fn is_null(cell: &RawValue) -> bool {
    cell.get() == "null"
}

/// A cell as text: what stands in quotes, or a number as it is written; `None` where it is null.
pub(super) fn text_of(cell: &RawValue) -> Option<Cow<'_, str>> {
    let written = cell.get();
    if is_null(cell) {
        return None;
    }
    match written.strip_prefix('"').and_then(|rest| rest.strip_suffix('"')) {
        Some(inner) if !inner.contains('\\') => Some(Cow::Borrowed(inner)),
        Some(_) => serde_json::from_str(written).ok().map(Cow::Owned),
        None => Some(Cow::Borrowed(written)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cells_are_found_by_the_names_of_their_columns() {
        let mut keys = Keys(COLUMNS.map(|column| Some(column.to_owned())));
        keys.0[4] = Some("Rank".to_owned());
        let cells = cells_of(
            r#"{"Rank": 5, "rank": 6, "job": "a\"b", "node": null, "x": {"job": 1}}"#,
            &keys,
        )
        .expect("a row");
        let text = |column: usize| cells[column].and_then(text_of).map(Cow::into_owned);
        assert_eq!(
            (text(4).as_deref(), text(1).as_deref(), text(7)),
            (Some("5"), Some("a\"b"), None)
        );
        assert!(cells[7].is_some() && cells[0].is_none());
        let error = cells_of(r#"{"job": 1, "job": 2}"#, &keys)
            .expect_err("twice")
            .to_string();
        assert!(error.contains("column `job` is there twice"), "{error}");
        assert_eq!(keys_of(r#"{"b": [1], "a": {}}"#).expect("keys"), ["b", "a"]);
        assert!(cells_of("[1]", &keys).is_err() && cells_of("{} 1", &keys).is_err());
    }
}
