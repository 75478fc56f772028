//! `export`: a job's rows from a table into a Parquet file.

use std::path::{Path, PathBuf};

use clap::Args;

use super::analyze::{iterations, moment};
use super::clickhouse::ClickHouseArgs;
use super::exit::Exit;
use super::progress::Progress;
use super::source::open_table;
use super::stdout::tell;
use crate::interrupt;
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
    if !args.force && args.out.exists() {
        return Err(WriteError::Exists { path: args.out.clone() }.into());
    }
    let table = open_table(&args.clickhouse)?;
    let folder = match args.out.parent() {
        Some(parent) if !parent.as_os_str().is_empty() => parent,
        _ => Path::new("."),
    };
    let file = tempfile::Builder::new()
        .prefix(".mt-detector-")
        .suffix(".part")
        .tempfile_in(folder)
        .map_err(WriteError::io(folder))?;
    let unfinished = interrupt::remove_on_interrupt(file.path());
    let progress = Progress::start("exporting");
    let exported = export_job(&table, args.job_id.as_deref(), between, iterations, file.path())?;
    unfinished
        .finish(|| file.persist(&args.out).map(drop))
        .map_err(|error| WriteError::io(&args.out)(error.error))?;
    drop(progress);
    tell(format_args!(
        "{}: {} rows, {} bytes",
        args.out.display(),
        exported.rows,
        exported.bytes
    ));
    Ok(Exit::Success)
}
