//! The command line: arguments as typed, made into validated requests, and run.
//!
//! Each command has a file with its arguments and its run; [`main`] picks one and turns errors into exit codes.

mod analyze;
mod clickhouse;
mod exit;
mod export;
mod hints;
mod jobs;
mod load;
mod progress;
mod replay;
mod schema;
mod score;
mod simulate;
mod source;
mod stdout;
mod sweep;
mod thresholds;
mod topology;

use std::process::ExitCode;

use clap::{Parser, Subcommand};

use crate::interrupt;

pub use exit::{ArgumentError, Exit, exit_of};

/// Names the slow ranks of a finished Megatron-LM training job, with their nodes, from its per-rank timers.
#[derive(Debug, Parser)]
#[command(name = "mt-detector", version, about, arg_required_else_help = true, after_help = exit::HELP)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Find the slow ranks of one job
    Analyze(Box<analyze::AnalyzeArgs>),
    /// List the jobs in the input
    Jobs(jobs::JobsArgs),
    /// Analyse every job with rows in a span of time
    Sweep(Box<sweep::SweepArgs>),
    /// Print the statements that make the ClickHouse table
    Schema(schema::SchemaArgs),
    /// Write the rows of files into the table; what is there already is not written again
    Load(Box<load::LoadArgs>),
    /// Write a job's rows from the table into a Parquet file
    Export(Box<export::ExportArgs>),
    /// Copy a recorded job in the table under a new id, at its own pace or faster
    Replay(Box<replay::ReplayArgs>),
    /// Write a simulated job with known faults
    Simulate(Box<simulate::SimulateArgs>),
    /// Hold verdicts on labelled or simulated jobs against the truth
    Score(Box<score::ScoreArgs>),
}

/// Runs the program with the process's arguments.
#[must_use]
pub fn main() -> ExitCode {
    // `parse` exits by itself: 0 for --help and --version, 2 for bad arguments.
    let cli = Cli::parse();
    let outcome = interrupt::install()
        .map_err(anyhow::Error::from)
        .and_then(|()| match &cli.command {
            Command::Analyze(args) => analyze::run(args),
            Command::Jobs(args) => jobs::run(args),
            Command::Sweep(args) => sweep::run(args),
            Command::Schema(args) => schema::run(args),
            Command::Load(args) => load::run(args),
            Command::Export(args) => export::run(args),
            Command::Replay(args) => replay::run(args),
            Command::Simulate(args) => simulate::run(args).map(|()| Exit::Success),
            Command::Score(args) => score::run(args),
        });
    let exit = outcome.unwrap_or_else(|error| {
        let exit = exit_of(&error);
        if exit != Exit::Success {
            match hints::of(&error) {
                Some(hint) => stdout::tell(format_args!("error: {error:#} ({hint})")),
                None => stdout::tell(format_args!("error: {error:#}")),
            }
        }
        exit
    });
    ExitCode::from(exit)
}
