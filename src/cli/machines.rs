//! `machines`: the faulty machine from hardware metrics.

mod detect;
mod score;
mod simulate;
mod train;

use clap::{Args, Subcommand, ValueEnum};

use super::exit::Exit;
use crate::machines::detect::Method;

/// Arguments of `machines`, as typed.
#[derive(Debug, Args)]
pub struct MachinesArgs {
    #[command(subcommand)]
    command: MachinesCommand,
}

#[derive(Debug, Subcommand)]
enum MachinesCommand {
    /// Name the machine that differs from its peers
    Detect(detect::DetectArgs),
    /// Hold verdicts on labelled or simulated tasks against the truth
    Score(score::ScoreArgs),
    /// Write simulated tasks with known faults
    Simulate(simulate::SimulateArgs),
    /// Train the denoisers on healthy tasks, and learn the order of the metrics on labelled ones
    Train(train::TrainArgs),
    /// Learn the order of the metrics on labelled tasks
    Order(train::OrderArgs),
}

/// How machines are compared.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum MethodName {
    /// Levels over minutes of the denoised windows
    LstmVae,
    /// Levels over minutes of the samples
    Raw,
    /// Minder's letter: the same candidate window by window
    Minder,
    /// Minder on samples instead of reconstructions
    MinderRaw,
    /// Minder with Manhattan distances
    Manhattan,
    /// Minder with Chebyshev distances
    Chebyshev,
    /// Minder without continuity
    NoContinuity,
    /// Minder on moments, with the Mahalanobis distance
    Mahalanobis,
}

impl MethodName {
    fn method(self) -> Method {
        match self {
            Self::LstmVae => Method::LstmVae,
            Self::Raw => Method::Raw,
            Self::Minder => Method::Minder,
            Self::MinderRaw => Method::MinderRaw,
            Self::Manhattan => Method::Manhattan,
            Self::Chebyshev => Method::Chebyshev,
            Self::NoContinuity => Method::NoContinuity,
            Self::Mahalanobis => Method::Mahalanobis,
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Format {
    /// For people
    Text,
    /// One line of JSON
    Json,
}

/// Runs `machines`.
///
/// # Errors
/// Those of the sub-command.
pub fn run(args: &MachinesArgs) -> anyhow::Result<Exit> {
    match &args.command {
        MachinesCommand::Detect(args) => detect::run(args),
        MachinesCommand::Score(args) => score::run(args),
        MachinesCommand::Simulate(args) => simulate::run(args),
        MachinesCommand::Train(args) => train::run(args),
        MachinesCommand::Order(args) => train::run_order(args),
    }
}

/// Reads `A-B` or `A`.
fn seeds(text: &str) -> Result<std::ops::RangeInclusive<u64>, super::exit::ArgumentError> {
    let wrong = || super::exit::ArgumentError::new("--seeds", format!("`{text}` is no range of seeds; write A-B or A"));
    let number = |part: &str| part.trim().parse::<u64>().map_err(|_| wrong());
    let (first, last) = match text.split_once('-') {
        None => (number(text)?, number(text)?),
        Some((first, last)) => (number(first)?, number(last)?),
    };
    if first > last { Err(wrong()) } else { Ok(first..=last) }
}
