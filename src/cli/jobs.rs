//! `jobs`: what the input holds.

use std::fmt::Write as _;
use std::path::PathBuf;

use clap::{Args, ValueEnum};

use super::clickhouse::ClickHouseArgs;
use super::exit::Exit;
use super::reading::ReadingArgs;
use super::source::Source;
use super::stdout::print;
use crate::contract::printable::{json_printable, on_one_line};
use crate::job::JobEntry;
use crate::report::WriteError;
use crate::source::SourceError;

/// Arguments of `jobs`.
#[derive(Debug, Args)]
pub struct JobsArgs {
    /// Files, folders or glob patterns with rows of megatron_metrics; - reads NDJSON from standard input. Without any,
    /// the table of a ClickHouse server is read
    #[arg(value_name = "INPUT")]
    input: Vec<PathBuf>,
    /// Form of the list
    #[arg(long, value_enum, default_value_t = Format::Text)]
    format: Format,
    #[command(flatten, next_help_heading = "ClickHouse")]
    clickhouse: ClickHouseArgs,
    #[command(flatten, next_help_heading = "Files")]
    reading: ReadingArgs,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Format {
    /// A block a job
    Text,
    /// One line of JSON
    Json,
}

/// Runs `jobs`.
///
/// # Errors
/// A source that fails or holds no row, standard output that can't be written.
pub fn run(args: &JobsArgs) -> anyhow::Result<Exit> {
    let mut source = Source::open(&args.input, &args.clickhouse)?.with_reading(&args.reading)?;
    let progress = source.progress();
    let jobs = source.jobs(&|rows| progress.rows(rows))?;
    drop(progress);
    if jobs.is_empty() {
        return Err(SourceError::NoRows("the input holds no rows".to_owned()).into());
    }
    let listing = match args.format {
        Format::Text => text(&jobs),
        Format::Json => {
            let line = serde_json::to_string(&jobs);
            let line = line.map_err(|reason| WriteError::Format {
                what: "the list of jobs",
                reason: reason.to_string(),
            })?;
            json_printable(&line) + "\n"
        }
    };
    print(&listing)?;
    Ok(Exit::Success)
}

fn text(jobs: &[JobEntry]) -> String {
    let mut out = String::new();
    for entry in jobs {
        let range = |first: Option<String>, last: Option<String>| match (first, last) {
            (Some(first), Some(last)) => format!("{first} to {last}"),
            _ => "none".to_owned(),
        };
        let number = |iteration: Option<i64>| iteration.map(|iteration| iteration.to_string());
        let stages = entry
            .pp_size
            .map_or_else(|| "unknown".to_owned(), |stages| stages.to_string());
        // Writing to a string can't fail.
        let _ = writeln!(
            out,
            "job: {}\n  ranks: {} on {} nodes\n  iterations: {} ({} of them)\n  time: {}\n  pipeline stages: {stages}\n  \
             runs: {}\n  rows: {}\n  timers: {}",
            on_one_line(&entry.job),
            entry.ranks,
            entry.nodes,
            range(number(entry.first_iteration), number(entry.last_iteration)),
            entry.iterations,
            range(entry.first_time.clone(), entry.last_time.clone()),
            entry.runs,
            entry.rows,
            on_one_line(&entry.timers.join(", ")),
        );
    }
    out
}
