//! CSV files of the result folder: a header, then a record a line.

use std::path::Path;

use super::error::WriteError;

/// Writes a table; `what` names it in an error.
///
/// # Errors
/// A file that can't be written.
pub(super) fn write_table(
    path: &Path,
    what: &'static str,
    header: &[&str],
    records: impl Iterator<Item = Vec<String>>,
) -> Result<(), WriteError> {
    let failed = |error: csv::Error| match error.into_kind() {
        csv::ErrorKind::Io(source) => WriteError::io(path)(source),
        other => WriteError::Format {
            what,
            reason: format!("{other:?}"),
        },
    };
    let mut table = csv::Writer::from_path(path).map_err(failed)?;
    table.write_record(header).map_err(failed)?;
    for record in records {
        table.write_record(record).map_err(failed)?;
    }
    table.flush().map_err(WriteError::io(path))
}
