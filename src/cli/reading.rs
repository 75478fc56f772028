//! The flags that say how files are read: what their columns are called, what becomes of a broken one.

use std::sync::Arc;

use clap::Args;

use super::exit::ArgumentError;
use super::progress::Progress;
use crate::source::{BytesRead, ColumnNames, Discovered, Format, NamedColumn};

/// How files are read, as typed.
#[derive(Debug, Args)]
pub(super) struct ReadingArgs {
    /// What a column is called in the files, such as node=hostname; may be repeated. Capitals and usual names (host, step,
    /// timer, value) are known
    #[arg(long, value_name = "COLUMN=NAME")]
    column: Vec<NamedColumn>,
    /// Leave out files that can't be read, and tell which, instead of stopping at the first
    #[arg(long)]
    skip_broken: bool,
}

impl ReadingArgs {
    /// Tells the files.
    ///
    /// # Errors
    /// Names of columns where no file has columns.
    pub(super) fn apply(&self, found: &mut Discovered) -> Result<(), ArgumentError> {
        let names: ColumnNames = self.column.iter().cloned().collect();
        if !self.column.is_empty() && found.files.iter().all(|file| file.format == Format::Log) {
            return Err(ArgumentError::new(
                "--column",
                "only logs are read, which have no columns",
            ));
        }
        let names = Arc::new(names);
        for file in &mut found.files {
            file.options.names = Arc::clone(&names);
            file.options.skip_broken = self.skip_broken;
        }
        Ok(())
    }

    /// The first of these flags that was given.
    pub(super) fn given(&self) -> Option<&'static str> {
        let column = (!self.column.is_empty()).then_some("--column");
        column.or(self.skip_broken.then_some("--skip-broken"))
    }
}

/// A sign of life while files are read: a share of their bytes where they are read from begin to end.
pub(super) fn progress_of(found: &mut Discovered) -> Progress {
    let from_begin_to_end = |format: Format| !matches!(format, Format::Parquet | Format::Arrow);
    let known = found
        .files
        .iter()
        .all(|file| !file.is_stdin() && from_begin_to_end(file.format));
    if !known {
        return Progress::start("reading");
    }
    let bytes = BytesRead::default();
    let mut total = 0;
    for file in &mut found.files {
        file.options.bytes = bytes.clone();
        total += std::fs::metadata(&file.path).map_or(0, |metadata| metadata.len());
    }
    Progress::of_bytes("reading", total, bytes)
}
