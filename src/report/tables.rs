//! The table of each algorithm: `fast_slow_summary.csv`.

use std::path::Path;

use super::error::WriteError;
use crate::rules::AlgorithmVerdict;

/// Name of the table in an algorithm's folder.
pub const FAST_SLOW_SUMMARY: &str = "fast_slow_summary.csv";

/// Writes a row a rank: `kind,key,label,slow_votes,total_subnames`.
///
/// The last two are summed weights of timers.
///
/// # Errors
/// A file that can't be written.
pub fn write_fast_slow_summary(path: &Path, ranks: &[u32], algorithm: &AlgorithmVerdict) -> Result<(), WriteError> {
    let failed = |error: csv::Error| match error.into_kind() {
        csv::ErrorKind::Io(source) => WriteError::io(path)(source),
        other => WriteError::Format {
            what: "the table of an algorithm",
            reason: format!("{other:?}"),
        },
    };
    let mut table = csv::Writer::from_path(path).map_err(failed)?;
    table
        .write_record(["kind", "key", "label", "slow_votes", "total_subnames"])
        .map_err(failed)?;
    for (rank, ballot) in ranks.iter().zip(&algorithm.ranks) {
        let label = if ballot.slow { "slow" } else { "fast" };
        let record = [
            "rank",
            &format!("rank{rank}"),
            label,
            &ballot.slow_votes.to_string(),
            &ballot.total.to_string(),
        ];
        table.write_record(record).map_err(failed)?;
    }
    table.flush().map_err(WriteError::io(path))
}
