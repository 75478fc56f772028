//! The flags that say of logs what they don't: which rank runs on which node.

use std::ffi::{OsStr, OsString};
use std::path::PathBuf;
use std::sync::Arc;

use clap::{Args, value_parser};

use super::exit::ArgumentError;
use crate::source::logs::nodes::NodeMap;
use crate::source::{Discovered, Format};

/// What is said of logs, as typed.
#[derive(Debug, Args)]
pub(super) struct LogArgs {
    /// The nodes in the order of the ranks, for logs: a file with a host a line or a hostfile, or Slurm's list itself
    /// (gpu-[001-004,007])
    #[arg(long, value_name = "FILE")]
    nodes: Option<PathBuf>,
    /// Ranks that run on a node, for logs
    #[arg(long, value_name = "N", value_parser = value_parser!(u32).range(1..))]
    ranks_per_node: Option<u32>,
}

impl LogArgs {
    /// Gives the logs among the files their nodes.
    ///
    /// # Errors
    /// A list that can't be read or makes no sense, or flags where no log is read.
    pub(super) fn apply(&self, found: &mut Discovered) -> Result<(), ArgumentError> {
        let Some(map) = self.map()? else { return Ok(()) };
        let mut logs = found
            .files
            .iter_mut()
            .filter(|file| file.format == Format::Log)
            .peekable();
        if logs.peek().is_none() {
            let flag = if self.nodes.is_some() {
                "--nodes"
            } else {
                "--ranks-per-node"
            };
            return Err(ArgumentError::new(
                flag,
                "no log is read; rows name their nodes themselves",
            ));
        }
        let map = Arc::new(map);
        logs.for_each(|log| log.options.nodes = Some(Arc::clone(&map)));
        Ok(())
    }

    /// These flags for another process of this program.
    pub(super) fn handed_on(&self) -> Vec<OsString> {
        let flag = |name: &str, value: &OsStr| {
            let mut flag = OsString::from(name);
            flag.push(value);
            flag
        };
        let nodes = self.nodes.iter().map(|list| flag("--nodes=", list.as_os_str()));
        let size = self.ranks_per_node.iter();
        nodes
            .chain(size.map(|size| format!("--ranks-per-node={size}").into()))
            .collect()
    }

    /// The first of these flags that was given.
    pub(super) fn given(&self) -> Option<&'static str> {
        let nodes = self.nodes.as_ref().map(|_| "--nodes");
        nodes.or(self.ranks_per_node.map(|_| "--ranks-per-node"))
    }

    fn map(&self) -> Result<Option<NodeMap>, ArgumentError> {
        let Some(list) = &self.nodes else {
            return Ok(self.ranks_per_node.map(NodeMap::of_size));
        };
        let wrong = |reason: String| ArgumentError::new("--nodes", reason);
        let text = match std::fs::read_to_string(list) {
            Ok(text) => text,
            // No file, but what Slurm's SLURM_JOB_NODELIST holds.
            Err(_) if list.to_string_lossy().contains(['[', ',']) => list.to_string_lossy().into_owned(),
            Err(error) => return Err(wrong(format!("{}: {error}", list.display()))),
        };
        NodeMap::parse(&text, self.ranks_per_node)
            .map(Some)
            .map_err(|error| wrong(format!("{}: {error}", list.display())))
    }
}
