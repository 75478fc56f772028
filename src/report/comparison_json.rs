//! `comparison.json`: every rank beside its peers, which `explain` reads.

use std::fs;
use std::path::Path;

use super::error::WriteError;
use super::report::Report;
use crate::contract::printable::json_printable;
use crate::verdict::comparison::Comparison;

/// Name of the file.
pub(super) const COMPARISON_JSON: &str = "comparison.json";

/// Writes it; none where ranks were not compared with peers.
///
/// # Errors
/// A file that can't be written.
pub(super) fn export(folder: &Path, report: &Report) -> Result<(), WriteError> {
    if report.verdict.comparison.ranks.is_empty() {
        return Ok(());
    }
    let file = folder.join(COMPARISON_JSON);
    fs::write(&file, json(&report.verdict.comparison)?).map_err(WriteError::io(file))
}

/// A rank a line, so that the file can be searched.
fn json(comparison: &Comparison) -> Result<String, WriteError> {
    let failed = |reason: serde_json::Error| WriteError::Format {
        what: "the comparison of ranks as JSON",
        reason: reason.to_string(),
    };
    let head = Comparison {
        ranks: Vec::new(),
        ..comparison.clone()
    };
    let head = serde_json::to_string(&head).map_err(failed)?;
    let ranks: Result<Vec<String>, _> = comparison.ranks.iter().map(serde_json::to_string).collect();
    let ranks = ranks.map_err(failed)?.join(",\n");
    let text = head.replacen("\"ranks\":[]", &format!("\"ranks\":[\n{ranks}\n]"), 1);
    Ok(json_printable(&text) + "\n")
}
