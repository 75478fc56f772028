//! `cordon.txt`: the nodes to take out of service, one a line; empty where no fault names a node.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use super::error::WriteError;
use super::report::Report;
use super::summary::Summary;

/// Name of the file.
const CORDON_TXT: &str = "cordon.txt";

/// Writes the file.
///
/// # Errors
/// A file that can't be written.
pub(super) fn export(folder: &Path, report: &Report) -> Result<(), WriteError> {
    let file = folder.join(CORDON_TXT);
    let lines: String = nodes(&report.summary).iter().map(|node| format!("{node}\n")).collect();
    fs::write(&file, lines).map_err(WriteError::io(file))
}

/// Nodes of faults that name them, that still last, and whose name a script can take as a word.
fn nodes(summary: &Summary) -> Vec<String> {
    let faults = summary
        .findings
        .iter()
        .filter(|finding| finding.kind.is_fault() && (finding.named || finding.names_nodes));
    let lasting = faults.filter(|finding| finding.ended != Some(true));
    let named: BTreeSet<&String> = lasting.flat_map(|finding| &finding.nodes).collect();
    let is_a_word = |node: &&&String| {
        !node.is_empty()
            && !node.starts_with('-')
            && node
                .chars()
                .all(|letter| letter.is_ascii_alphanumeric() || "-._:".contains(letter))
    };
    let known = named.iter().filter(|node| summary.anomaly_nodes.contains(node));
    known.filter(is_a_word).map(|node| (*node).clone()).collect()
}
