//! `import`: logs, or files of another format, as one Parquet file of canonical rows.

use std::path::PathBuf;

use clap::Args;

use super::exit::Exit;
use super::export::check_free;
use super::logs::LogArgs;
use super::reading::{ReadingArgs, progress_of};
use super::stdout::tell;
use crate::building::Building;
use crate::report::WriteError;
use crate::source::{discover, write_parquet};

/// Arguments of `import`.
#[derive(Debug, Args)]
pub struct ImportArgs {
    /// Logs (packed ones too), or files, folders or patterns of any format that `formats` lists; - reads standard input
    #[arg(value_name = "INPUT", required = true)]
    input: Vec<PathBuf>,
    /// The Parquet file
    #[arg(long, value_name = "FILE")]
    out: PathBuf,
    /// Replace an earlier file at --out
    #[arg(long)]
    force: bool,
    #[command(flatten, next_help_heading = "Logs")]
    logs: LogArgs,
    #[command(flatten, next_help_heading = "Files")]
    reading: ReadingArgs,
}

/// Runs `import`.
///
/// # Errors
/// Bad arguments, an input that can't be read or holds no rows, a file that can't be written.
pub fn run(args: &ImportArgs) -> anyhow::Result<Exit> {
    check_free(&args.out, args.force)?;
    let mut found = discover(&args.input)?;
    args.logs.apply(&mut found)?;
    args.reading.apply(&mut found)?;
    let folder = match args.out.parent() {
        Some(parent) if !parent.as_os_str().is_empty() => parent,
        _ => std::path::Path::new("."),
    };
    let file = Building::file(folder).map_err(WriteError::io(folder))?;
    let progress = progress_of(&mut found);
    let written = write_parquet(&found.files, file.path(), &|rows| progress.rows(rows))?;
    check_free(&args.out, args.force)?;
    file.put(&args.out, args.force).map_err(|error| match error.kind() {
        std::io::ErrorKind::AlreadyExists => WriteError::Exists { path: args.out.clone() },
        _ => WriteError::io(&args.out)(error),
    })?;
    drop(progress);
    for note in &written.notes {
        tell(format_args!("note: {note}"));
    }
    tell(format_args!("{}: {} rows", args.out.display(), written.rows));
    Ok(Exit::Success)
}
