//! `machines`: the faulty machine from hardware metrics.

mod beside;
mod detect;
mod score;
mod simulate;
mod train;

use clap::builder::{PossibleValue, PossibleValuesParser, TypedValueParser};
use clap::{Args, Subcommand, ValueEnum};

pub(super) use self::beside::beside;
use super::exit::Exit;
use crate::machines::method::Method;

/// Arguments of `machines`, as typed.
#[derive(Debug, Args)]
pub struct MachinesArgs {
    #[command(subcommand)]
    command: MachinesCommand,
}

#[derive(Debug, Subcommand)]
enum MachinesCommand {
    /// Name the machine that differs from its peers
    Detect(Box<detect::DetectArgs>),
    /// Hold verdicts on labelled or simulated tasks against the truth
    Score(score::ScoreArgs),
    /// Write simulated tasks with known faults
    Simulate(simulate::SimulateArgs),
    /// Train the denoisers on healthy tasks, and learn the order of the metrics on labelled ones
    Train(train::TrainArgs),
    /// Learn the order of the metrics on labelled tasks
    Order(train::OrderArgs),
}

/// Reads the name of a method.
fn methods() -> impl TypedValueParser<Value = Method> {
    let value = |method: Method| PossibleValue::new(method.name()).help(method.about());
    PossibleValuesParser::new(Method::ALL.map(value)).try_map(|name| {
        Method::of_name(&name)
            .ok_or_else(|| super::exit::ArgumentError::new("--method", format!("`{name}` is unknown")))
    })
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
