//! A document around all rows: a list of objects, or a table with its rows in `data`.

use std::io::BufRead;

use super::form::Form;
use super::values::{Broken, JsonValues};

/// Rows inside of one value, or values over several lines.
pub(super) struct Document<R> {
    values: JsonValues<R>,
    form: Form,
    begun: bool,
    rows: u64,
}

impl<R: BufRead> Document<R> {
    /// Rows of this form.
    pub fn new(input: R, form: Form) -> Self {
        Self {
            values: JsonValues::new(input),
            form,
            begun: false,
            rows: 0,
        }
    }

    /// The line that is being read, from 1.
    pub fn line(&self) -> u64 {
        self.values.line()
    }

    /// Copies the next row; `false` behind the last. The names of a table's columns go to `header`.
    ///
    /// # Errors
    /// A document that breaks off, or holds other than it says.
    pub fn next(&mut self, row: &mut Vec<u8>, header: &mut Option<Vec<String>>) -> Result<bool, Broken> {
        if self.form == Form::Values {
            return self.values.value(row);
        }
        if !std::mem::replace(&mut self.begun, true) {
            if self.form == Form::Table {
                self.go_to_the_rows(row, header)?;
            }
            self.values.expect(b'[')?;
        } else if self.values.peek()? == Some(b',') {
            self.values.expect(b',')?;
            if self.values.peek()? == Some(b']') {
                return Err(self.broken("a row is missing behind the comma"));
            }
        } else if self.rows > 0 && self.values.peek()? != Some(b']') {
            self.values.expect(b',')?;
        }
        if self.values.peek()? == Some(b']') {
            self.values.expect(b']')?;
            self.end(row)?;
            return Ok(false);
        }
        self.rows += 1;
        if self.values.value(row)? {
            Ok(true)
        } else {
            Err(self.broken("the file breaks off here"))
        }
    }

    fn broken(&self, reason: &str) -> Broken {
        Broken {
            line: self.values.line(),
            reason: reason.to_owned(),
        }
    }

    /// Goes to the rows of a table, and takes the names of its columns on the way.
    fn go_to_the_rows(&mut self, value: &mut Vec<u8>, header: &mut Option<Vec<String>>) -> Result<(), Broken> {
        self.values.expect(b'{')?;
        loop {
            let key = self.key(value)?;
            match key.as_str() {
                "data" => return Ok(()),
                "meta" => {
                    self.values.value(value)?;
                    let columns: Vec<MetaColumn> = serde_json::from_slice(value).unwrap_or_default();
                    *header = Some(columns.into_iter().map(|column| column.name).collect());
                }
                "columns" => {
                    self.values.value(value)?;
                    *header = serde_json::from_slice(value).ok();
                }
                _ => {
                    self.values.value(value)?;
                }
            }
            match self.values.peek()? {
                Some(b',') => self.values.expect(b',')?,
                Some(_) => return Err(self.broken("the document has no rows in `data`")),
                None => return Err(self.broken("the file breaks off here")),
            }
        }
    }

    fn key(&mut self, value: &mut Vec<u8>) -> Result<String, Broken> {
        self.values.value(value)?;
        let key = serde_json::from_slice(value).map_err(|_| self.broken("the name of a member is no text"))?;
        self.values.expect(b':')?;
        Ok(key)
    }

    /// What stands behind the rows: their number tells whether all are there.
    fn end(&mut self, value: &mut Vec<u8>) -> Result<(), Broken> {
        while self.form == Form::Table && self.values.peek()? == Some(b',') {
            self.values.expect(b',')?;
            let key = self.key(value)?;
            self.values.value(value)?;
            let text = String::from_utf8_lossy(value).into_owned();
            match key.as_str() {
                "rows" if text.parse().is_ok_and(|rows: u64| rows != self.rows) => {
                    return Err(self.broken(&format!(
                        "the document says that it has {text} rows, and holds {}",
                        self.rows
                    )));
                }
                "exception" => return Err(self.broken(&format!("the server broke off: {text}"))),
                _ => {}
            }
        }
        if self.form == Form::Table {
            self.values.expect(b'}')?;
        }
        match self.values.peek()? {
            None => Ok(()),
            Some(_) => Err(self.broken("something stands behind the end of the document")),
        }
    }
}

#[derive(serde::Deserialize)]
struct MetaColumn {
    name: String,
}

/// The line with null for each `NaN` and `Infinity` outside of its strings, as Python writes them; `None` where it has none.
pub(super) fn without_bare_numbers(line: &str) -> Option<String> {
    const WORDS: [&str; 4] = ["NaN", "-Infinity", "Infinity", "nan"];
    let mut text = String::with_capacity(line.len());
    let (mut rest, mut in_string, mut found) = (line, false, false);
    while let Some(letter) = rest.chars().next() {
        let word = WORDS.into_iter().find(|word| !in_string && rest.starts_with(word));
        if let Some(word) = word {
            text.push_str("null");
            found = true;
            rest = &rest[word.len()..];
            continue;
        }
        let length = match letter {
            '\\' if in_string => 1 + rest[1..].chars().next().map_or(0, char::len_utf8),
            _ => letter.len_utf8(),
        };
        in_string ^= letter == '"';
        text.push_str(&rest[..length]);
        rest = &rest[length..];
    }
    found.then_some(text)
}
