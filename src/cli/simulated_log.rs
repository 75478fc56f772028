//! The flags of `simulate` that print the job as a log too.

use std::fs::File;
use std::io::{BufWriter, ErrorKind};
use std::path::{Path, PathBuf};

use clap::{Args, ValueEnum, value_parser};

use crate::building::Building;
use crate::evaluation::simulate::WriteError;
use crate::source::logs::print::{LogForm, print_log};
use crate::source::{Format, SourceFile};

/// Whether and how a log is printed.
#[derive(Debug, Clone, Args)]
#[command(next_help_heading = "Log")]
pub struct SimulatedLogArgs {
    /// Print the job as a log of Megatron-LM too (NAME.log), as --timing-log-option all or minmax prints it, or on one line as
    /// until 2022
    #[arg(long = "log", value_enum, value_name = "FORM")]
    form: Option<FormName>,
    /// Iterations that a line of the log is the mean of
    #[arg(long = "log-interval", value_name = "N", default_value_t = 1, requires = "form", value_parser = value_parser!(u16).range(1..))]
    interval: u16,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum FormName {
    /// A line a timer and rank
    All,
    /// The least and the greatest over all ranks
    Minmax,
    /// The last rank's own times
    Oneline,
}

impl From<FormName> for LogForm {
    fn from(name: FormName) -> Self {
        match name {
            FormName::All => Self::All,
            FormName::Minmax => Self::MinMax,
            FormName::Oneline => Self::OneLine,
        }
    }
}

impl SimulatedLogArgs {
    /// Prints the log beside the rows that were just written, if one was asked for, and gives a line that tells of it.
    ///
    /// # Errors
    /// A log that is there and may not be replaced, or can't be written.
    pub(super) fn write(&self, parquet: &Path, replace: bool) -> anyhow::Result<Option<String>> {
        let Some(form) = self.form else { return Ok(None) };
        let path = parquet.with_extension("log");
        let io = |source| WriteError::Io {
            path: path.clone(),
            source,
        };
        let folder: PathBuf = parquet.parent().map_or_else(PathBuf::new, Path::to_owned);
        let unfinished = Building::file(&folder).map_err(io)?;
        let file = File::create(unfinished.path()).map_err(io)?;
        let rows = [SourceFile::new(parquet.to_owned(), Format::Parquet)];
        let mut out = BufWriter::new(file);
        let printed = print_log(&rows, form.into(), i64::from(self.interval), &path, &mut out)?;
        drop(out);
        unfinished.put(&path, replace).map_err(|error| match error.kind() {
            ErrorKind::AlreadyExists => WriteError::Exists { path: path.clone() },
            _ => io(error),
        })?;
        let sizes = match printed.sizes {
            true => "",
            false => "; without sizes of groups, which its arguments can't say",
        };
        Ok(Some(format!(
            "{}: {} iteration lines{sizes}\n",
            path.display(),
            printed.lines
        )))
    }
}
