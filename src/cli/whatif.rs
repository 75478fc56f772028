//! `whatif`: what a job's steps would take if something were mended, from a trace of its operations.

use std::path::PathBuf;

use clap::{Args, ValueEnum};

use super::exit::Exit;
use super::stdout::print;
use crate::whatif::graph::{Model, Shape, build};
use crate::whatif::slowdown::Player;
use crate::whatif::trace::{Meta, OpRows, OpTable, Values};

/// Arguments of `whatif`.
#[derive(Debug, Args)]
pub struct WhatIfArgs {
    /// Op trace (Parquet): a row an operation with dp_rank, stage, rank, step, optype, start_ts, duration, seq_id, mc, gmc
    #[arg(value_name = "TRACE")]
    trace: PathBuf,
    /// File with the sizes of the parallel groups, `dp_size: 4` a line [default: as the trace shows them]
    #[arg(long, value_name = "FILE")]
    meta: Option<PathBuf>,
    /// Which edges the graph has
    #[arg(long, value_enum, default_value = "measured")]
    model: ModelName,
    /// Form of the answer
    #[arg(long, value_enum, default_value = "text")]
    format: Format,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum ModelName {
    /// Those that replay real traces best; ideal values by type and stage
    Measured,
    /// Those of "Understanding Stragglers in Large Model Training Using What-if Analysis", for its numbers
    Published,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Format {
    /// For people
    Text,
    /// All figures in one line
    Json,
}

/// Runs `whatif`.
///
/// # Errors
/// A trace or description that can't be read, operations that make no schedule, output that can't be written.
pub fn run(args: &WhatIfArgs) -> anyhow::Result<Exit> {
    let meta = args.meta.as_deref().map(Meta::read).transpose()?.unwrap_or_default();
    let table = OpTable::new(OpRows::read(&args.trace)?)?;
    let shape = shape_of(&table, meta);
    let model = match args.model {
        ModelName::Measured => Model::Measured,
        ModelName::Published => Model::Published,
    };
    let program = build(&table.ops, shape, model)?;
    let values = Values::new(table, &program);
    let ideals = values.ideals(model == Model::Measured);
    let player = Player {
        program: &program,
        values: &values,
        ideals: &ideals,
    };
    let slowdown = player.slowdown();
    match args.format {
        Format::Json | Format::Text => print(&format!("{}\n", serde_json::to_string(&slowdown)?))?,
    }
    Ok(Exit::Success)
}

/// The sizes that a file tells, and for the rest what the trace shows.
fn shape_of(table: &OpTable, meta: Meta) -> Shape {
    let stages = table.stages.max(meta.pp);
    let chunks = table.ops.iter().map(|op| i32::from(op.global_chunk) + 1).max();
    let seen = chunks.map_or(0, |chunks| usize::try_from(chunks).unwrap_or_default());
    let seen = seen.div_ceil(stages).max(1);
    Shape {
        stages,
        chunks: if meta.vpp > 0 { meta.vpp } else { seen },
        replicated: meta.dp.max(table.lanes()) * meta.dsp.max(1) > 1,
    }
}
