//! `explain`: why a rank, a node or a link was or was not named.

use std::path::PathBuf;

use clap::{Args, ValueEnum};

use super::exit::{ArgumentError, Exit};
use super::stdout::print;
use crate::contract::printable::json_printable;
use crate::report::WriteError;
use crate::report::explain::{Asked, explain, text};
use crate::report::stored::Stored;

/// Arguments of `explain`.
#[derive(Debug, Args)]
pub struct ExplainArgs {
    /// Result folder of `analyze`, or the folder of one of its slow windows
    #[arg(value_name = "RESULT_DIR")]
    folder: PathBuf,
    /// Explain this rank
    #[arg(long, value_name = "RANK", required_unless_present_any = ["node", "link"], conflicts_with_all = ["node", "link"])]
    rank: Option<u32>,
    /// Explain all ranks of this node
    #[arg(long, value_name = "NAME", conflicts_with = "link")]
    node: Option<String>,
    /// Explain the link between two ranks, both directions
    #[arg(long, value_name = "RANK-RANK")]
    link: Option<String>,
    /// Form of the answer
    #[arg(long, value_enum, default_value_t = Format::Text)]
    format: Format,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(super) enum Format {
    /// Sentences
    Text,
    /// One line of JSON
    Json,
}

/// Runs `explain`.
///
/// # Errors
/// A folder that holds no result, or not what was asked for.
pub fn run(args: &ExplainArgs) -> anyhow::Result<Exit> {
    let asked = args.asked()?;
    let stored = Stored::open(&args.folder)?;
    let explanation = explain(&stored, &asked)?;
    let answer = match args.format {
        Format::Text => text(&explanation),
        Format::Json => json_line("the explanation as JSON", &explanation)?,
    };
    print(&answer)?;
    Ok(Exit::Success)
}

/// A value as one line of JSON; `what` names it in an error.
pub(super) fn json_line<T: serde::Serialize>(what: &'static str, value: &T) -> Result<String, WriteError> {
    let failed = |reason: serde_json::Error| WriteError::Format {
        what,
        reason: reason.to_string(),
    };
    Ok(json_printable(&serde_json::to_string(value).map_err(failed)?) + "\n")
}

impl ExplainArgs {
    fn asked(&self) -> Result<Asked, ArgumentError> {
        match (self.rank, &self.node, &self.link) {
            (Some(rank), _, _) => Ok(Asked::Rank(rank)),
            (None, Some(node), _) => Ok(Asked::Node(node.clone())),
            (None, None, Some(link)) => {
                let ends = link
                    .split_once('-')
                    .and_then(|(from, to)| Some((from.trim().parse().ok()?, to.trim().parse().ok()?)));
                let (from, to) = ends
                    .ok_or_else(|| ArgumentError::new("--link", format!("`{link}` is no pair of ranks like 3-11")))?;
                Ok(Asked::Link(from, to))
            }
            (None, None, None) => Err(ArgumentError::new("--rank", "a rank, a node or a link is needed")),
        }
    }
}
