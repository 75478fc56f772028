//! Both directions of a link, from the table of transfers.

use std::path::Path;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::report::stored::{Stored, StoredError};

/// A direction of a link.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct LinkExplanation {
    /// Rank that sends.
    pub sender: u32,
    /// Rank that receives.
    pub receiver: u32,
    /// Its node.
    pub sender_node: String,
    /// Its node.
    pub receiver_node: String,
    /// Which way data flows.
    pub direction: String,
    /// One transfer without waiting, seconds; null where it could not be measured.
    pub transfer_seconds: Option<f64>,
    /// Times what transfers of its kind usually take; null where there are too few to compare it with.
    pub factor: Option<f64>,
    /// Whether it is slow.
    pub slow: bool,
    /// Whether it could be compared.
    pub compared: bool,
}

#[derive(Debug, Deserialize)]
struct Row {
    sender: u32,
    receiver: u32,
    sender_node: String,
    receiver_node: String,
    direction: String,
    transfer_seconds: Option<f64>,
    factor: Option<f64>,
    label: String,
}

/// The directions between two ranks.
///
/// # Errors
/// A folder without a table of transfers, or without these.
pub(super) fn directions(stored: &Stored, from: u32, to: u32) -> Result<Vec<LinkExplanation>, StoredError> {
    let file = stored.path.join("comm").join("links.csv");
    let rows = if file.exists() { read(&file)? } else { Vec::new() };
    if rows.is_empty() {
        return Err(stored.lacks(
            "a table of transfers".to_owned(),
            "no transfers between stages were measured".to_owned(),
        ));
    }
    let count = rows.len();
    let between = |row: &Row| (row.sender, row.receiver) == (from, to) || (row.sender, row.receiver) == (to, from);
    let found: Vec<LinkExplanation> = rows.into_iter().filter(between).map(explanation).collect();
    if found.is_empty() {
        return Err(stored.lacks(
            format!("a link between ranks {from} and {to}"),
            format!("comm/links.csv lists the {count} that there are"),
        ));
    }
    Ok(found)
}

fn explanation(row: Row) -> LinkExplanation {
    LinkExplanation {
        sender: row.sender,
        receiver: row.receiver,
        sender_node: row.sender_node,
        receiver_node: row.receiver_node,
        direction: row.direction,
        transfer_seconds: row.transfer_seconds,
        factor: row.factor,
        slow: row.label == "slow",
        compared: row.label != "not_compared",
    }
}

fn read(file: &Path) -> Result<Vec<Row>, StoredError> {
    let content = |reason: csv::Error| StoredError::Content {
        path: file.to_owned(),
        reason: reason.to_string(),
    };
    let mut table = csv::Reader::from_path(file).map_err(content)?;
    table.deserialize().map(|row| row.map_err(content)).collect()
}
