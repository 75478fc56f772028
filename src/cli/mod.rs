//! The command line: arguments as typed, made into validated requests, and run.
//!
//! In: arguments, environment, configuration file. Out: text, files, an exit code. May use: everything; only it knows clap.
//!
//! Each command has a file with its arguments and its run; [`main`] picks one and turns errors into exit codes.

mod analyze;
mod clickhouse;
mod compare;
mod completions;
mod exit;
mod explain;
mod export;
mod formats;
mod hints;
mod import;
mod jobs;
mod load;
mod logs;
mod machines;
mod progress;
mod reading;
mod replay;
mod schema;
mod score;
mod screen;
mod serve;
mod simulate;
mod simulated_log;
mod source;
mod stdout;
mod sweep;
mod thresholds;
mod topology;
mod values;
mod watch;
mod whatif;

use std::process::ExitCode;

use clap::{Parser, Subcommand};

use crate::contract::printable::on_one_line;
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
    /// Say why a rank, a node or a link was or was not named, from a result folder
    Explain(explain::ExplainArgs),
    /// Hold two results side by side: who became slow or recovered, which timers moved
    Compare(compare::CompareArgs),
    /// Print the statements that make the ClickHouse table
    Schema(schema::SchemaArgs),
    /// Write the rows of files into the table; what is there already is not written again
    Load(Box<load::LoadArgs>),
    /// List what can be read, and what each form can tell
    Formats(formats::FormatsArgs),
    /// Write logs, or files of any format, as one Parquet file
    Import(import::ImportArgs),
    /// Write a job's rows from the table into a Parquet file
    Export(Box<export::ExportArgs>),
    /// Copy a recorded job in the table under a new id, at its own pace or faster
    Replay(Box<replay::ReplayArgs>),
    /// Watch running jobs and answer over HTTP
    Serve(Box<serve::ServeArgs>),
    /// Watch one running job in the terminal until there is a verdict
    Watch(Box<watch::WatchArgs>),
    /// Name the faulty machine of a job from hardware metrics
    Machines(Box<machines::MachinesArgs>),
    /// Write a simulated job with known faults
    Simulate(Box<simulate::SimulateArgs>),
    /// Replay a trace of operations as measured and with something mended
    Whatif(whatif::WhatIfArgs),
    /// Hold verdicts on labelled or simulated jobs against the truth
    Score(Box<score::ScoreArgs>),
    /// Print a script that completes commands and flags in a shell
    Completions(completions::CompletionsArgs),
    /// Print the manual page, or write all of them
    Man(completions::ManArgs),
}

/// JSON Schemas of what only the command line prints, by name.
#[must_use]
pub fn json_schemas() -> Vec<(&'static str, schemars::Schema)> {
    whatif::schemas().into()
}

/// Runs the program with the process's arguments.
#[must_use]
pub fn main() -> ExitCode {
    let cli = match Cli::try_parse() {
        Ok(cli) => cli,
        Err(error) => return refused(&error),
    };
    let outcome = interrupt::install()
        .map_err(anyhow::Error::from)
        .and_then(|()| match &cli.command {
            Command::Analyze(args) => analyze::run(args),
            Command::Jobs(args) => jobs::run(args),
            Command::Sweep(args) => sweep::run(args),
            Command::Explain(args) => explain::run(args),
            Command::Compare(args) => compare::run(args),
            Command::Completions(args) => completions::completions(args),
            Command::Man(args) => completions::man(args),
            Command::Schema(args) => schema::run(args),
            Command::Load(args) => load::run(args),
            Command::Formats(args) => formats::run(args),
            Command::Import(args) => import::run(args),
            Command::Export(args) => export::run(args),
            Command::Replay(args) => replay::run(args),
            Command::Serve(args) => serve::run(args),
            Command::Watch(args) => watch::run(args),
            Command::Machines(args) => machines::run(args),
            Command::Simulate(args) => simulate::run(args).map(|()| Exit::Success),
            Command::Whatif(args) => whatif::run(args),
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

/// Arguments of `analyze` as the parser reads them.
///
/// # Errors
/// What the parser has against them.
fn parsed_analyze(flags: &[String]) -> Result<analyze::AnalyzeArgs, ArgumentError> {
    let arguments = ["mt-detector", "analyze"]
        .into_iter()
        .chain(flags.iter().map(String::as_str));
    let refused = |error: &clap::Error| {
        let text = error.render().to_string();
        let first = text.lines().next().unwrap_or_default();
        ArgumentError::new("--", first.strip_prefix("error: ").unwrap_or(first))
    };
    match Cli::try_parse_from(arguments) {
        Ok(Cli {
            command: Command::Analyze(args),
        }) => Ok(*args),
        Ok(_) => Err(ArgumentError::new("--", "only flags of `analyze` stand behind it")),
        Err(error) => Err(refused(&error)),
    }
}

/// Prints what the parser says: help and version with 0, bad arguments with 2.
fn refused(error: &clap::Error) -> ExitCode {
    let typed: Vec<String> = std::env::args_os()
        .map(|argument| argument.to_string_lossy().into_owned())
        .collect();
    let steers = |text: &&str| on_one_line(text) != **text;
    let parts = typed.iter().flat_map(|argument| {
        let value = argument.split_once('=').map(|(_, value)| value);
        [Some(argument.as_str()), value]
    });
    let steering: Vec<&str> = parts.flatten().filter(steers).collect();
    if steering.is_empty() || !error.use_stderr() {
        error.exit();
    }
    // The parser repeats arguments as they were typed.
    let mut text = error.render().to_string();
    for part in steering {
        text = text.replace(part, &on_one_line(part));
    }
    for line in text.lines() {
        stdout::tell(format_args!("{line}"));
    }
    Exit::BadArguments.into()
}
