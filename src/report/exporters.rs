//! The files of a result folder: one list, a function for each sort of file.

use std::fs;
use std::path::Path;

use super::error::WriteError;
use super::report::Report;
use super::{comm_tables, comparison_json, cordon, json, page, tables, text, trace_view};

/// Puts one sort of file of a report into a folder that exists.
type Exporter = fn(&Path, &Report) -> Result<(), WriteError>;

/// What is written, in this order. The summary as JSON comes last: a folder that holds it is a whole result.
const EXPORTERS: [Exporter; 8] = [
    tables::export,
    comm_tables::export,
    text::export,
    cordon::export,
    comparison_json::export,
    page::export,
    trace_view::export,
    json::export,
];

/// Writes a report's files, those of each window into a folder of its own.
///
/// # Errors
/// Anything that can't be written.
pub(super) fn export(folder: &Path, report: &Report) -> Result<(), WriteError> {
    for window in &report.windows {
        let folder = folder.join(window.folder_name());
        fs::create_dir(&folder).map_err(WriteError::io(&folder))?;
        export(&folder, window)?;
    }
    EXPORTERS.iter().try_for_each(|exporter| exporter(folder, report))
}
