//! `export`: a job's rows from a table into a Parquet file.

use std::fs;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use clap::Args;

use super::clickhouse::ClickHouseArgs;
use super::exit::Exit;
use super::progress::Progress;
use super::source::open_table;
use super::stdout::tell;
use super::values::{iterations, moment};
use crate::building::Building;
use crate::job::export_job;
use crate::report::WriteError;

/// Arguments of `export`.
#[derive(Debug, Args)]
pub struct ExportArgs {
    /// Job id; may be left out when the table holds one job
    #[arg(long, value_name = "ID")]
    job_id: Option<String>,
    /// Iterations, both ends included: A-B, A-, -B or A [default: all]
    #[arg(long, value_name = "RANGE", allow_hyphen_values = true)]
    iterations: Option<String>,
    /// Leave out rows before this time: RFC 3339, "YYYY-MM-DD HH:MM:SS" (UTC) or epoch seconds
    #[arg(long, value_name = "TIME", allow_hyphen_values = true)]
    start: Option<String>,
    /// Leave out rows after this time
    #[arg(long, value_name = "TIME", allow_hyphen_values = true)]
    end: Option<String>,
    /// The file
    #[arg(long, value_name = "FILE")]
    out: PathBuf,
    /// Replace an earlier file at --out
    #[arg(long)]
    force: bool,
    #[command(flatten, next_help_heading = "ClickHouse")]
    clickhouse: ClickHouseArgs,
}

/// Runs `export`.
///
/// # Errors
/// Bad arguments, a server that fails or holds no such rows, a file that can't be written.
pub fn run(args: &ExportArgs) -> anyhow::Result<Exit> {
    let iterations = iterations(&args.iterations)?;
    let between = (moment("--start", &args.start)?, moment("--end", &args.end)?);
    check_free(&args.out, args.force)?;
    let table = open_table(&args.clickhouse)?;
    let folder = match args.out.parent() {
        Some(parent) if !parent.as_os_str().is_empty() => parent,
        _ => Path::new("."),
    };
    let file = Building::file(folder).map_err(WriteError::io(folder))?;
    let progress = Progress::start("exporting");
    let exported = export_job(&table, args.job_id.as_deref(), between, iterations, file.path())?;
    check_free(&args.out, args.force)?;
    file.put(&args.out, args.force).map_err(|error| match error.kind() {
        ErrorKind::AlreadyExists => WriteError::Exists { path: args.out.clone() },
        _ => WriteError::io(&args.out)(error),
    })?;
    drop(progress);
    tell(format_args!(
        "{}: {} rows, {} bytes",
        args.out.display(),
        exported.rows,
        exported.bytes
    ));
    Ok(Exit::Success)
}

/// A place is free where nothing is, and with `force` where a file is: never is a device, a pipe or a link replaced.
pub(super) fn check_free(place: &Path, force: bool) -> Result<(), WriteError> {
    let path = place.to_owned();
    match fs::symlink_metadata(place) {
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(()),
        Err(error) => Err(WriteError::io(path)(error)),
        Ok(_) if !force => Err(WriteError::Exists { path }),
        Ok(found) if found.is_file() => Ok(()),
        Ok(_) => Err(WriteError::NotAFile { path }),
    }
}
