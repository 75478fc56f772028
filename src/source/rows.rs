//! Rows of `megatron_metrics` as plain columns: what every reader makes and every scan takes.

use rustc_hash::FxHashMap;

use super::calls::Lists;
use super::numbers::Numbers;
use super::timestamp::Micros;
use super::unread::UnreadCells;

/// A text column as codes into the distinct words of this batch, in order of first appearance.
#[derive(Debug, Default, Clone)]
pub struct TextColumn {
    /// One code a row; [`TextColumn::MISSING`] where the cell is null.
    pub codes: Vec<u32>,
    /// The words that the codes stand for.
    pub words: Vec<String>,
    lookup: FxHashMap<String, u32>,
    last: Option<u32>,
}

impl TextColumn {
    /// The code of a null cell.
    pub const MISSING: u32 = u32::MAX;

    /// Appends one cell.
    pub fn push(&mut self, cell: Option<&str>) {
        let Some(cell) = cell else {
            self.codes.push(Self::MISSING);
            return;
        };
        // Tables are written timer by timer, so a cell mostly repeats the one before it.
        if let Some(last) = self.last
            && self.words[last as usize] == cell
        {
            self.codes.push(last);
            return;
        }
        let code = self.code(cell);
        self.last = Some(code);
        self.codes.push(code);
    }

    /// The code of a word, which is appended to the words when it is new. No cell is.
    pub(super) fn code(&mut self, word: &str) -> u32 {
        if let Some(&code) = self.lookup.get(word) {
            return code;
        }
        let code = self.words.len() as u32;
        self.words.push(word.to_owned());
        self.lookup.insert(word.to_owned(), code);
        code
    }

    /// Whether every cell is the one word that there is.
    #[must_use]
    pub fn is_uniform(&self) -> bool {
        self.words.len() == 1 && !self.codes.contains(&Self::MISSING)
    }

    /// The cell of a row, `None` where it is null.
    #[must_use]
    pub fn get(&self, row: usize) -> Option<&str> {
        self.words.get(self.codes[row] as usize).map(String::as_str)
    }
}

/// A batch of rows in columns of equal length.
///
/// A missing number or text stands for a null or unreadable cell; a column that the source lacks altogether is `None` as a whole.
#[derive(Debug, Default, Clone)]
pub struct Rows {
    /// When the row was written.
    pub timestamp: Numbers<Micros>,
    /// Job id.
    pub job: TextColumn,
    /// `megatron_timers`, `megatron_timers_trace` or `megatron_parallel_group_rank`.
    pub metric_name: TextColumn,
    /// Timer or parallel group.
    pub subname: TextColumn,
    /// 0-based rank.
    pub rank: Numbers<i64>,
    /// Training step.
    pub iteration: Numbers<i64>,
    /// Machine.
    pub node: Option<TextColumn>,
    /// Run that wrote the row.
    pub rerun_uuid: Option<TextColumn>,
    /// First element of `metric_values`: seconds for a timer, position for a group. Empty when only keys were read.
    pub value: Numbers<f64>,
    /// All of `metric_values` where a row tells the single calls of a transfer ([`TRANSFERS`](crate::contract::timers::TRANSFERS)
    /// in [`TRACE`](crate::contract::metrics::TRACE) rows), seconds; no element for other rows. Of every row where
    /// [`Columns::Stored`](super::Columns::Stored) are read.
    pub calls: Lists,
    /// Cluster of the machine; only where [`Columns::Stored`](super::Columns::Stored) are read.
    pub cluster: Option<TextColumn>,
    /// What the writer told besides, JSON mostly; only where [`Columns::Stored`](super::Columns::Stored) are read.
    pub attributes: Option<TextColumn>,
    /// Cells that are there and can't be read.
    pub unread: UnreadCells,
    /// What the reader noticed of its source, a sentence each; with one of its batches.
    pub notes: Vec<String>,
}

impl Rows {
    /// How many rows the batch holds.
    #[must_use]
    pub fn len(&self) -> usize {
        self.job.codes.len()
    }

    /// Whether the batch holds no row.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Takes the rows from one on away.
    pub(super) fn truncate(&mut self, rows: usize) {
        self.timestamp.truncate(rows);
        self.rank.truncate(rows);
        self.iteration.truncate(rows);
        self.value.truncate(rows);
        self.calls.truncate(rows);
        let optional = [
            &mut self.node,
            &mut self.rerun_uuid,
            &mut self.cluster,
            &mut self.attributes,
        ];
        let texts = [&mut self.job, &mut self.metric_name, &mut self.subname].into_iter();
        for column in texts.chain(optional.into_iter().flatten()) {
            column.codes.truncate(rows);
        }
    }

    /// Whether all columns are of one length, as they are in anything but a damaged file.
    pub(super) fn check_even(&self) -> Result<(), String> {
        let rows = self.len();
        let text = |column: &Option<TextColumn>| column.as_ref().map_or(rows, |column| column.codes.len());
        let unread = |length: usize| if length == 0 { rows } else { length };
        let lengths = [
            ("timestamp", self.timestamp.len()),
            ("metric_name", self.metric_name.codes.len()),
            ("subname", self.subname.codes.len()),
            ("rank", self.rank.len()),
            ("iteration", self.iteration.len()),
            ("metric_values", unread(self.value.len())),
            ("metric_values", unread(self.calls.len())),
            ("node", text(&self.node)),
            ("rerun_uuid", text(&self.rerun_uuid)),
            ("cluster", text(&self.cluster)),
            ("attributes", text(&self.attributes)),
        ];
        match lengths.into_iter().find(|(_, length)| *length != rows) {
            Some((column, length)) => Err(format!("column `{column}` has {length} rows where `job` has {rows}")),
            None => Ok(()),
        }
    }

    /// Whether `metric_values` was read.
    #[must_use]
    pub fn has_values(&self) -> bool {
        self.value.len() == self.len()
    }
}

/// A whole number from a float: data frames turn integers with a gap into floats.
#[must_use]
pub fn whole(number: f64) -> Option<i64> {
    (number.fract() == 0.0 && number.abs() < 9e15).then_some(number as i64)
}

/// An integer written as text, `5` or `5.0`.
#[must_use]
pub fn integer_of_text(text: &str) -> Option<i64> {
    let text = text.trim();
    text.parse().ok().or_else(|| text.parse().ok().and_then(whole))
}

/// Reads the first element of an array written as text, `[0.1,0.2]`; elements may be in quotes.
///
/// `Ok(None)` for an empty cell, an empty array or a null element.
///
/// # Errors
/// The text when it is no array of numbers.
pub fn first_of_text_array(text: &str) -> Result<Option<f64>, String> {
    let text = text.trim();
    if text.is_empty() || text == "null" {
        return Ok(None);
    }
    let inner = match text.strip_prefix('[') {
        Some(rest) => rest
            .strip_suffix(']')
            .ok_or_else(|| format!("`{}` is no array like [0.1,0.2]", shortened(text)))?,
        // A number in place of an array of one.
        None => text,
    };
    // numpy writes blanks between the elements.
    let first = inner
        .split(|letter: char| letter == ',' || letter.is_whitespace())
        .find(|element| !element.is_empty());
    let first = first.unwrap_or_default().trim().trim_matches(['"', '\'']);
    match first {
        "" | "null" | "NULL" | "None" => Ok(None),
        number => number
            .parse()
            .map(Some)
            .map_err(|_| format!("`{}` is no number, nor an array like [0.1,0.2]", shortened(text))),
    }
}

/// The begin of a text that may be long.
fn shortened(text: &str) -> String {
    const SHOWN: usize = 60;
    match text.char_indices().nth(SHOWN) {
        Some((end, _)) => format!("{}...", &text[..end]),
        None => text.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_coded_in_order_of_appearance() {
        let mut column = TextColumn::default();
        for cell in [Some("b"), Some("b"), None, Some("a"), Some("b")] {
            column.push(cell);
        }
        assert_eq!(column.codes, [0, 0, TextColumn::MISSING, 1, 0]);
        assert_eq!(column.words, ["b", "a"]);
        assert_eq!(column.get(3), Some("a"));
        assert_eq!(column.get(2), None);
    }

    #[test]
    fn integers_may_be_written_as_floats() {
        assert_eq!(integer_of_text(" 5 "), Some(5));
        assert_eq!(integer_of_text("5.0"), Some(5));
        assert_eq!(integer_of_text("9007199254740993"), Some(9_007_199_254_740_993));
        for text in ["5.5", "five", "", "NaN", "1e300"] {
            assert_eq!(integer_of_text(text), None, "{text}");
        }
    }

    #[test]
    fn arrays_in_text_give_their_first_element() {
        assert_eq!(first_of_text_array("[0.25,1]"), Ok(Some(0.25)));
        assert_eq!(first_of_text_array(" [ 3 ] "), Ok(Some(3.0)));
        assert_eq!(first_of_text_array("[]"), Ok(None));
        assert_eq!(first_of_text_array(""), Ok(None));
        assert_eq!(first_of_text_array("[\"0.5\",1]"), Ok(Some(0.5)));
        assert_eq!(first_of_text_array("[1e999]"), Ok(Some(f64::INFINITY)));
        assert!(first_of_text_array("[nan]").is_ok_and(|value| value.is_some_and(f64::is_nan)));
        assert_eq!(first_of_text_array("0.25"), Ok(Some(0.25)));
        assert_eq!(first_of_text_array("[0.5 1.25]"), Ok(Some(0.5)));
        assert!(first_of_text_array("[0.25").is_err());
        assert!(first_of_text_array("[slow]").is_err());
    }
}
