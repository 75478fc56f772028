//! The summary as JSON.

use std::fs;
use std::path::Path;

use super::error::WriteError;
use super::report::Report;
use super::summary::Summary;
use crate::contract::printable::json_printable;

/// Name of the file; what holds it is a result folder.
pub(super) const SUMMARY_JSON: &str = "summary.json";

/// Writes the summary into a result folder.
///
/// # Errors
/// A file that can't be written, a number that JSON can't hold.
pub(super) fn export(folder: &Path, report: &Report) -> Result<(), WriteError> {
    let file = folder.join(SUMMARY_JSON);
    fs::write(&file, json_pretty(&report.summary)?).map_err(WriteError::io(file))
}

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
