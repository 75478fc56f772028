//! `schema`: the statements that make the table.

use clap::Args;

use super::exit::Exit;
use super::stdout::print;
use crate::source::clickhouse::{DEFAULT_TABLE, MACHINE_TABLE, Placement, machine_statement, statements};

/// Arguments of `schema`.
#[derive(Debug, Args)]
pub struct SchemaArgs {
    /// Print the tables of a cluster: a replicated one on each shard and a distributed one before them
    #[arg(long, value_name = "NAME")]
    cluster: Option<String>,
    /// Database [default: the one that is current where the statements run]
    #[arg(long, value_name = "NAME")]
    database: Option<String>,
    /// Table
    #[arg(long, value_name = "NAME", default_value = DEFAULT_TABLE, default_value_if("machines", "true", MACHINE_TABLE))]
    table: String,
    /// Print the table of hardware metrics that `machines detect` reads, on one server
    #[arg(long, conflicts_with = "cluster")]
    machines: bool,
}

/// Runs `schema`.
///
/// # Errors
/// Standard output that can't be written.
pub fn run(args: &SchemaArgs) -> anyhow::Result<Exit> {
    if args.machines {
        print(&(machine_statement(args.database.as_deref(), &args.table) + ";\n"))?;
        return Ok(Exit::Success);
    }
    let place = match &args.cluster {
        None => Placement::Single,
        Some(cluster) => Placement::Cluster(cluster.clone()),
    };
    let mut text = statements(args.database.as_deref(), &args.table, &place).join(";\n\n");
    text += ";\n";
    print(&text)?;
    Ok(Exit::Success)
}
