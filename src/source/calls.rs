//! Which rows keep every element of `metric_values`: those of `megatron_timers_trace` that tell of passes and transfers, and
//! those of `megatron_timers_summary`.

use super::rows::TextColumn;
use crate::contract::metrics::{SUMMARY, TRACE};
use crate::contract::timers::is_traced;

/// A list of numbers for each row of a batch, one after the other; empty for a row whose list is not kept.
#[derive(Debug, Default, Clone)]
pub struct Lists {
    ends: Vec<usize>,
    elements: Vec<f64>,
}

impl Lists {
    /// Appends the list of the next row; an element that can't be read is NaN.
    pub fn push(&mut self, elements: impl IntoIterator<Item = f64>) {
        self.elements.extend(elements);
        self.ends.push(self.elements.len());
    }

    /// Takes the lists from a row on away.
    pub(super) fn truncate(&mut self, rows: usize) {
        self.ends.truncate(rows);
        self.elements.truncate(self.ends.last().copied().unwrap_or_default());
    }

    /// Number of rows whose lists were looked at.
    pub(super) fn len(&self) -> usize {
        self.ends.len()
    }

    /// The list of a row; empty where it is not kept.
    #[must_use]
    pub fn get(&self, row: usize) -> &[f64] {
        let Some(&end) = self.ends.get(row) else {
            return &[];
        };
        let begin = row.checked_sub(1).map_or(0, |above| self.ends[above]);
        &self.elements[begin..end]
    }
}

/// Tells the rows of a batch that keep their lists.
#[derive(Debug)]
pub(super) struct KeepsLists {
    summaries: Vec<bool>,
    metrics: Vec<bool>,
    timers: Vec<bool>,
}

impl KeepsLists {
    /// Looks the batch's words up once.
    pub fn new(metric_name: &TextColumn, subname: &TextColumn) -> Self {
        Self {
            summaries: metric_name.words.iter().map(|word| word == SUMMARY).collect(),
            metrics: metric_name.words.iter().map(|word| word == TRACE).collect(),
            timers: subname.words.iter().map(|word| is_traced(word)).collect(),
        }
    }

    /// Whether any row can.
    pub fn any(&self) -> bool {
        self.summaries.contains(&true) || self.metrics.contains(&true) && self.timers.contains(&true)
    }

    /// Whether a row with these codes does.
    pub fn row(&self, metric: u32, timer: u32) -> bool {
        let of = |known: &[bool], code: u32| known.get(code as usize).copied().unwrap_or(false);
        of(&self.summaries, metric) || of(&self.metrics, metric) && of(&self.timers, timer)
    }
}

/// Whether a row read alone keeps its list.
pub(super) fn keeps_list(metric: Option<&str>, timer: Option<&str>) -> bool {
    metric == Some(SUMMARY) || metric == Some(TRACE) && timer.is_some_and(is_traced)
}

/// The elements of an array written as text; one that is no number is NaN.
///
/// The caller has found the text to be an array.
pub(super) fn all_of_text_array(text: &str) -> impl Iterator<Item = f64> {
    let inner = match text.trim() {
        "null" => "",
        array => array.trim_start_matches('[').trim_end_matches(']'),
    };
    let number = |element: &str| element.trim().trim_matches(['"', '\'']).parse().unwrap_or(f64::NAN);
    // numpy writes blanks between the elements.
    let commas = inner.contains(',');
    let separates = move |letter: char| if commas { letter == ',' } else { letter.is_whitespace() };
    let elements = inner.trim().split(separates);
    elements
        .filter(move |element| commas || !element.is_empty())
        .map(number)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_stand_one_after_the_other() {
        let mut lists = Lists::default();
        lists.push([1.0, 2.0]);
        lists.push([]);
        lists.push([3.0]);
        assert_eq!(
            (lists.get(0), lists.get(1), lists.get(2)),
            (&[1.0, 2.0][..], &[][..], &[3.0][..])
        );
        assert!(lists.get(3).is_empty());
    }

    #[test]
    fn transfers_of_the_trace_keep_their_lists() {
        assert!(keeps_list(Some(TRACE), Some("forward-recv")));
        assert!(keeps_list(Some(TRACE), Some("forward-compute")));
        assert!(!keeps_list(Some(TRACE), Some("optimizer")));
        assert!(!keeps_list(Some("megatron_timers"), Some("forward-recv")));
        assert!(!keeps_list(None, None));
    }

    #[test]
    fn text_gives_every_element_and_nan_for_what_is_none() {
        let all = |text| all_of_text_array(text).collect::<Vec<f64>>();
        assert_eq!(all(" [1, 2.5,\"3\"] "), [1.0, 2.5, 3.0]);
        assert!(all("[]").is_empty() && all("[ ]").is_empty());
        assert_eq!(all("[1.5 2]"), [1.5, 2.0]);
        assert_eq!(all("0.5"), [0.5]);
        assert!(all("").is_empty() && all("null").is_empty());
        assert!(all("[1,null]")[1].is_nan() && all("[null]")[0].is_nan());
    }
}
