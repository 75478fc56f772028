//! The table of each algorithm: `<algorithm>/fast_slow_summary.csv`.

use std::fs;
use std::path::Path;

use super::csv_table::write_table;
use super::error::WriteError;
use super::report::Report;
use crate::vote::RankBallot;

/// Name of the table in an algorithm's folder.
const FAST_SLOW_SUMMARY: &str = "fast_slow_summary.csv";

/// Writes a row a rank into a folder for each algorithm: `kind,key,label,slow_votes,total_subnames`.
///
/// The last two are summed weights of timers.
///
/// # Errors
/// A file that can't be written.
pub(super) fn export(result: &Path, report: &Report) -> Result<(), WriteError> {
    let header = ["kind", "key", "label", "slow_votes", "total_subnames"];
    let record = |(rank, ballot): (&u32, &RankBallot)| {
        let label = if ballot.slow { "slow" } else { "fast" };
        let (votes, total) = (ballot.slow_votes.to_string(), ballot.total.to_string());
        vec!["rank".to_owned(), format!("rank{rank}"), label.to_owned(), votes, total]
    };
    for algorithm in &report.verdict.algorithms {
        let folder = result.join(algorithm.name);
        fs::create_dir(&folder).map_err(WriteError::io(&folder))?;
        let records = report.ranks.iter().zip(&algorithm.ranks).map(record);
        write_table(
            &folder.join(FAST_SLOW_SUMMARY),
            "the table of an algorithm",
            &header,
            records,
        )?;
    }
    Ok(())
}
