//! The tables of communication: `comm/links.csv` and `comm/waits.csv`.

use std::fs;
use std::path::Path;

use super::csv_table::write_table;
use super::error::WriteError;
use super::report::Report;
use crate::comm::Communication;
use crate::comm::flows::Flow;
use crate::contract::printable::as_cell;

/// What an error calls them.
const WHAT: &str = "a table of communication";
/// Folder of the tables in the result folder.
const FOLDER: &str = "comm";
/// A row a direction of a link.
const LINKS: &str = "links.csv";
/// A row a rank.
const WAITS: &str = "waits.csv";

/// Writes both tables; none where communication was not looked at.
///
/// Times are seconds, those of waits an iteration; an empty cell is not known.
///
/// # Errors
/// A file that can't be written.
pub(super) fn export(result: &Path, report: &Report) -> Result<(), WriteError> {
    let communication = &report.verdict.communication;
    if communication.flows.is_empty() {
        return Ok(());
    }
    let folder = result.join(FOLDER);
    fs::create_dir(&folder).map_err(WriteError::io(&folder))?;
    write_links(&folder.join(LINKS), &report.ranks, &report.nodes, &communication.flows)?;
    write_waits(&folder.join(WAITS), &report.ranks, communication)
}

fn write_links(path: &Path, ranks: &[u32], nodes: &[String], flows: &[Flow]) -> Result<(), WriteError> {
    let header = [
        "sender",
        "receiver",
        "sender_node",
        "receiver_node",
        "direction",
        "transfer_seconds",
        "factor",
        "label",
    ];
    let record = |flow: &Flow| {
        let label = match (flow.is_compared(), &flow.slow) {
            (false, _) => "not_compared",
            (true, Some(_)) => "slow",
            (true, None) => "usual",
        };
        let factor = flow.slow.as_ref().map_or(flow.seconds / flow.usual, |slow| slow.factor);
        vec![
            ranks[flow.sender].to_string(),
            ranks[flow.receiver].to_string(),
            as_cell(&nodes[flow.sender]),
            as_cell(&nodes[flow.receiver]),
            flow.direction.name().to_owned(),
            number(flow.seconds, 6),
            number(factor, 3),
            label.to_owned(),
        ]
    };
    write_table(path, WHAT, &header, flows.iter().map(record))
}

fn write_waits(path: &Path, ranks: &[u32], communication: &Communication) -> Result<(), WriteError> {
    let header = [
        "rank",
        "compute_seconds",
        "transfer_seconds",
        "waiting_seconds",
        "waits_for",
    ];
    let records = communication.waits.iter().zip(ranks).map(|(waits, rank)| {
        vec![
            rank.to_string(),
            number(waits.compute, 6),
            number(waits.transfer, 6),
            number(waits.waiting, 6),
            waits.waits_for.map_or(String::new(), |rank| ranks[rank].to_string()),
        ]
    });
    write_table(path, WHAT, &header, records)
}

fn number(value: f64, decimals: usize) -> String {
    if value.is_finite() {
        format!("{value:.decimals$}")
    } else {
        String::new()
    }
}
