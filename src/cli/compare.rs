//! `compare`: two results side by side.

use std::path::PathBuf;

use clap::Args;

use super::exit::{ArgumentError, Exit};
use super::explain::{Format, json_line};
use super::stdout::print;
use crate::report::compare::{compare, difference_in_words};
use crate::report::stored::Stored;

/// Share by which a timer must move to be told.
const THRESHOLD: f64 = 0.02;

/// Arguments of `compare`.
#[derive(Debug, Args)]
pub struct CompareArgs {
    /// Result folder of `analyze`, or of one of its slow windows: of two spans of a job, of two runs (--rerun), of two jobs
    #[arg(value_name = "A")]
    a: PathBuf,
    /// The result to hold against it
    #[arg(value_name = "B")]
    b: PathBuf,
    /// Share by which the median of a timer must move to be told
    #[arg(long, value_name = "SHARE", default_value_t = THRESHOLD)]
    threshold: f64,
    /// Form of the answer
    #[arg(long, value_enum, default_value_t = Format::Text)]
    format: Format,
    /// Exit with 1 when B is worse: a rank or a node became slow, or the status became fault
    #[arg(long)]
    exit_code: bool,
}

/// Runs `compare`.
///
/// # Errors
/// A folder that holds no result.
pub fn run(args: &CompareArgs) -> anyhow::Result<Exit> {
    if !(args.threshold.is_finite() && args.threshold >= 0.0) {
        return Err(ArgumentError::new(
            "--threshold",
            format!("{} is not a finite number from 0", args.threshold),
        )
        .into());
    }
    let (a, b) = (Stored::open(&args.a)?, Stored::open(&args.b)?);
    let difference = compare(&a, &b, args.threshold);
    let answer = match args.format {
        Format::Text => difference_in_words(&difference),
        Format::Json => json_line("the comparison as JSON", &difference)?,
    };
    print(&answer)?;
    Ok(if args.exit_code && difference.worse {
        Exit::AnomaliesFound
    } else {
        Exit::Success
    })
}
