//! What part of a job is asked for: iterations, time, run.

use std::fmt;
use std::str::FromStr;

use thiserror::Error;

use super::topology::TopologyFlags;
use crate::source::Micros;

/// A range of iterations, both ends included; an open end is `None`.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub struct IterationRange {
    /// First iteration.
    pub first: Option<i64>,
    /// Last iteration.
    pub last: Option<i64>,
}

impl IterationRange {
    /// Whether an iteration lies in the range.
    #[must_use]
    pub fn contains(&self, iteration: i64) -> bool {
        self.first.is_none_or(|first| first <= iteration) && self.last.is_none_or(|last| iteration <= last)
    }

    /// Whether any iteration of `first..=last` lies in the range.
    #[must_use]
    pub fn overlaps(&self, first: i64, last: i64) -> bool {
        self.first.is_none_or(|mine| mine <= last) && self.last.is_none_or(|mine| first <= mine)
    }
}

/// Why a text is no range of iterations.
#[derive(Debug, Error, PartialEq, Eq)]
pub enum IterationRangeError {
    /// Neither `A-B` nor one of its short forms.
    #[error("`{0}` is no range of iterations; write A-B, A-, -B or A with whole numbers")]
    Malformed(String),
    /// The first iteration comes after the last.
    #[error("the range {0}-{1} ends before it begins")]
    Reversed(i64, i64),
}

impl FromStr for IterationRange {
    type Err = IterationRangeError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let malformed = || IterationRangeError::Malformed(text.to_owned());
        // `parse` would take "+5"; a sign has no place here.
        let end = |part: &str| match part.trim() {
            "" => Ok(None),
            part if part.bytes().all(|byte| byte.is_ascii_digit()) => part.parse().map(Some).map_err(|_| malformed()),
            _ => Err(malformed()),
        };
        let range = match text.split_once('-') {
            None => {
                let only = end(text)?;
                Self {
                    first: only,
                    last: only,
                }
            }
            Some((first, last)) => Self {
                first: end(first)?,
                last: end(last)?,
            },
        };
        match (range.first, range.last) {
            (None, None) => Err(malformed()),
            (Some(first), Some(last)) if first > last => Err(IterationRangeError::Reversed(first, last)),
            _ => Ok(range),
        }
    }
}

impl fmt::Display for IterationRange {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (self.first, self.last) {
            (None, None) => out.write_str("all"),
            (Some(first), Some(last)) if first == last => write!(out, "{first}"),
            (first, last) => {
                if let Some(first) = first {
                    write!(out, "{first}")?;
                }
                out.write_str("-")?;
                last.map_or(Ok(()), |last| write!(out, "{last}"))
            }
        }
    }
}

/// Which rows of the source make up the analysis, and what the caller knows of them.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub struct Selection {
    /// The job; `None` takes the only one that the source holds.
    pub job: Option<String>,
    /// Timer rows written before this moment are left out; they still tell where a run began.
    pub start: Option<Micros>,
    /// Rows written after this moment are left out.
    pub end: Option<Micros>,
    /// Iterations to analyse.
    pub iterations: IterationRange,
    /// Keep the rows of this run only; `None` lets the run that came last win.
    pub rerun: Option<String>,
    /// Iterations dropped at the beginning of every run.
    pub warmup: u32,
    /// Sizes and order of the parallel groups, as far as the caller states them.
    pub topology: TopologyFlags,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_documented_forms_are_read_and_written_back() {
        for (text, first, last) in [
            ("10-20", Some(10), Some(20)),
            ("10-", Some(10), None),
            ("-20", None, Some(20)),
            ("7", Some(7), Some(7)),
        ] {
            let range: IterationRange = text.parse().expect(text);
            assert_eq!((range.first, range.last), (first, last));
            assert_eq!(range.to_string(), text);
        }
        let range = IterationRange {
            first: Some(10),
            last: Some(20),
        };
        assert!(range.contains(10) && range.contains(20) && !range.contains(21));
        assert!(range.overlaps(20, 30) && !range.overlaps(21, 30));
    }

    #[test]
    fn anything_else_is_refused() {
        for text in [
            "",
            "-",
            "a-b",
            "1-2-3",
            "1..2",
            "--5",
            "+5",
            "1.5",
            "99999999999999999999",
        ] {
            let refused = text.parse::<IterationRange>();
            assert_eq!(refused, Err(IterationRangeError::Malformed(text.to_owned())), "{text}");
        }
        assert_eq!(
            "9-3".parse::<IterationRange>(),
            Err(IterationRangeError::Reversed(9, 3))
        );
    }
}
