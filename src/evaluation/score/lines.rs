//! Lines of a report for people.

use std::fmt::Write as _;

/// Adds a line without blanks at its end.
pub(super) fn push_line(out: &mut String, line: &str) {
    // Writing to a string can't fail.
    let _ = writeln!(out, "{}", line.trim_end());
}
