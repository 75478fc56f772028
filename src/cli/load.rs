//! `load`: rows of files into a table.

use std::fs::{File, TryLockError};
use std::hash::{Hash as _, Hasher as _};
use std::path::PathBuf;

use clap::Args;
use rustc_hash::FxHasher;

use super::clickhouse::ClickHouseArgs;
use super::exit::Exit;
use super::progress::Progress;
use super::reading::ReadingArgs;
use super::source::{notice, open_table, server};
use super::stdout::tell;
use crate::interrupt;
use crate::source::clickhouse::{Loaded, Placement, Table};
use crate::source::discover;

/// Arguments of `load`.
#[derive(Debug, Args)]
pub struct LoadArgs {
    /// Parquet, CSV, NDJSON or Arrow files, folders or glob patterns; `-` is NDJSON on standard input
    #[arg(required = true, value_name = "FILE")]
    input: Vec<PathBuf>,
    /// Make the table where it is missing, as `schema` prints it
    #[arg(long)]
    create: bool,
    /// Make the tables of a cluster
    #[arg(long, value_name = "NAME", requires = "create")]
    cluster: Option<String>,
    #[command(flatten, next_help_heading = "ClickHouse")]
    clickhouse: ClickHouseArgs,
    #[command(flatten, next_help_heading = "Files")]
    reading: ReadingArgs,
}

/// Runs `load`.
///
/// # Errors
/// No server named, a server that fails, files that can't be read.
pub fn run(args: &LoadArgs) -> anyhow::Result<Exit> {
    let mut found = discover(&args.input)?;
    args.reading.apply(&mut found)?;
    for path in &found.passed_over {
        tell(format_args!("passed over for its ending: {}", path.display()));
    }
    if args.create {
        let place = match &args.cluster {
            None => Placement::Single,
            Some(cluster) => Placement::Cluster(cluster.clone()),
        };
        Table::create(server(&args.clickhouse)?, &place, notice())?;
    }
    let table = open_table(&args.clickhouse)?;
    let _alone = alone(&table.name());
    interrupt::farewell("interrupted; the rows that were sent stay, loading again writes the rest");
    if let Some(kind) = table.attributes_unwritten() {
        tell(format_args!(
            "attributes are not written: the table's column has type {kind}, rows go into String and JSON"
        ));
    }
    let progress = Progress::start("loading");
    let mut loaded = Loaded::default();
    let outcome = table.load(&found.files, &mut loaded, &|rows| progress.rows(rows));
    drop(progress);
    tell(format_args!(
        "{}: {} rows written, {} were there already, {} left out because the table can't hold them{}",
        table.name(),
        loaded.written,
        loaded.there,
        loaded.left_out,
        match outcome {
            Ok(()) => "",
            Err(_) => "; then it broke off, and loading again writes the rest",
        }
    ));
    outcome?;
    Ok(Exit::Success)
}

/// Waits until no other load of this machine writes into the table: each would look for rows that are there before the
/// other writes them. The lock goes with what is returned, also when the program dies; without a place for it there is none.
fn alone(table: &str) -> Option<File> {
    let mut hasher = FxHasher::default();
    table.hash(&mut hasher);
    let path = std::env::temp_dir().join(format!("mt-detector-load-{:016x}.lock", hasher.finish()));
    // Reading is enough to lock it, and somebody else may have made it.
    let made = File::create_new(&path);
    let lock = made.or_else(|_| File::open(&path)).ok()?;
    match lock.try_lock() {
        Ok(()) => {}
        Err(TryLockError::WouldBlock) => {
            tell(format_args!("waiting for another load into {table}"));
            lock.lock().ok()?;
        }
        Err(TryLockError::Error(_)) => return None,
    }
    Some(lock)
}
