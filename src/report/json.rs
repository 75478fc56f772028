//! The summary as JSON.

use super::error::WriteError;
use super::summary::Summary;
use crate::contract::printable::json_printable;

/// One line, for standard output.
///
/// # Errors
/// A number that JSON can't hold.
pub fn json_line(summary: &Summary) -> Result<String, WriteError> {
    serde_json::to_string(summary)
        .map(|text| json_printable(&text))
        .map_err(format_error)
}

/// Indented, for the result folder.
///
/// # Errors
/// A number that JSON can't hold.
pub fn json_pretty(summary: &Summary) -> Result<String, WriteError> {
    serde_json::to_string_pretty(summary)
        .map(|text| json_printable(&text) + "\n")
        .map_err(format_error)
}

fn format_error(reason: serde_json::Error) -> WriteError {
    WriteError::Format {
        what: "the summary as JSON",
        reason: reason.to_string(),
    }
}
