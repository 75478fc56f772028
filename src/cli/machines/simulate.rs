//! `machines simulate`: tasks with known faults, on disk.

use std::path::PathBuf;

use clap::Args;

use super::seeds;
use crate::cli::exit::{ArgumentError, Exit};
use crate::cli::stdout::print;
use crate::machines::simulate::{Plan, fault_types, simulate};
use crate::machines::write::write_task;

/// Arguments of `machines simulate`, as typed.
#[derive(Debug, Args)]
pub struct SimulateArgs {
    /// Folder for {task}.parquet and labels.json
    #[arg(long, value_name = "DIR")]
    out: PathBuf,
    /// Seeds, a task each: A-B or A
    #[arg(long, value_name = "RANGE", default_value = "0")]
    seeds: String,
    /// Machines of a task [default: drawn between 4 and 256]
    #[arg(long, value_name = "N")]
    machines: Option<usize>,
    /// Seconds of a task [default: drawn between 720 and 900]
    #[arg(long, value_name = "N")]
    seconds: Option<u32>,
    /// Type of fault; healthy: none; list: print the types [default: drawn with the published shares]
    #[arg(long, value_name = "TYPE")]
    fault: Option<String>,
    /// Write the first so many of the ten metrics
    #[arg(long, value_name = "N")]
    metrics: Option<usize>,
}

/// Runs `machines simulate`.
///
/// # Errors
/// Bad arguments, files that can't be written.
pub fn run(args: &SimulateArgs) -> anyhow::Result<Exit> {
    let types = fault_types();
    if let Some(fault) = &args.fault {
        if fault == "list" {
            print(&(types.join("\n") + "\nhealthy\n"))?;
            return Ok(Exit::Success);
        }
        if fault != "healthy" && !types.contains(&fault.as_str()) {
            let reason = format!("`{fault}` is unknown; there are healthy, {}", types.join(", "));
            return Err(ArgumentError::new("--fault", reason).into());
        }
    }
    if args.machines.is_some_and(|machines| !(1..=100_000).contains(&machines)) {
        return Err(ArgumentError::new("--machines", "between 1 and 100000 are possible").into());
    }
    if args.seconds.is_some_and(|seconds| !(60..=86_400).contains(&seconds)) {
        return Err(ArgumentError::new("--seconds", "between 60 and 86400 are possible").into());
    }
    for seed in seeds(&args.seeds)? {
        let plan = Plan {
            seed,
            machines: args.machines,
            seconds: args.seconds,
            fault: args.fault.clone(),
            metrics: args.metrics,
        };
        let (task, label) = simulate(&plan);
        write_task(&args.out, &task, &label)?;
    }
    Ok(Exit::Success)
}
