//! `machines`: the faulty machine from hardware metrics.

mod detect;

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
    }
}
