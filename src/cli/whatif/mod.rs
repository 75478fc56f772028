//! `whatif`: what a job's steps would take if something were mended.
//!
//! The input is an op trace, or a job in the columns of `megatron_metrics`; which one it is, its columns tell.

mod words;

use std::path::{Path, PathBuf};

use clap::{Args, ValueEnum};
use schemars::{JsonSchema, Schema, schema_for};
use serde::Serialize;

use self::words::{heat_map, in_words, job_in_words, rows};
use super::exit::{ArgumentError, Exit};
use super::stdout::print;
use super::topology::TopologyArgs;
use crate::building::write_file;
use crate::job::{Selection, load};
use crate::report::WriteError;
use crate::source::discover;
use crate::whatif::graph::{Model, Shape, build};
use crate::whatif::question::Question;
use crate::whatif::replay::Program;
use crate::whatif::scenario::Kept;
use crate::whatif::slowdown::Player;
use crate::whatif::timeline::timeline;
use crate::whatif::timers::{Asked, Fault, Target, WhatIf, what_if};
use crate::whatif::trace::{Meta, OpRows, OpTable, Values};

/// Arguments of `whatif`.
#[derive(Debug, Args)]
pub struct WhatIfArgs {
    /// Op trace (Parquet: a row an operation with dp_rank, stage, rank, step, optype, start_ts, duration, seq_id, mc, gmc),
    /// or files with rows of megatron_metrics
    #[arg(value_name = "INPUT", required = true)]
    input: Vec<PathBuf>,
    /// Ask one question: what would the steps take if this were mended? rank:5, link:4-8, stages or data
    #[arg(long, value_name = "WHAT")]
    mend: Option<Question>,
    /// Form of the answer
    #[arg(long, value_enum, default_value = "text")]
    format: Format,
    #[command(flatten, next_help_heading = "Op traces")]
    trace: TraceArgs,
    #[command(flatten, next_help_heading = "Jobs in the columns of megatron_metrics")]
    job: JobArgs,
}

#[derive(Debug, Args)]
struct TraceArgs {
    /// File with the sizes of the parallel groups, `dp_size: 4` a line [default: as the trace shows them]
    #[arg(long, value_name = "FILE")]
    meta: Option<PathBuf>,
    /// Which edges the graph has, and what is ideal
    #[arg(long, value_enum, default_value = "measured")]
    model: ModelName,
    /// Write the slowdown through each worker, a row a stage and a column a replica, as CSV
    #[arg(long, value_name = "FILE")]
    heat_map: Option<PathBuf>,
    /// Write a step as measured and as it should be, for Perfetto or chrome://tracing
    #[arg(long, value_name = "FILE")]
    timeline: Option<PathBuf>,
    /// The step of the timeline [default: the first]
    #[arg(long, value_name = "N", requires = "timeline", allow_hyphen_values = true)]
    step: Option<i64>,
}

#[derive(Debug, Args)]
struct JobArgs {
    /// Job id; may be left out when the input holds one job
    #[arg(long, value_name = "ID")]
    job_id: Option<String>,
    /// Iterations to drop at the beginning of every run
    #[arg(long, value_name = "N", default_value_t = 10)]
    warmup: u32,
    /// Microbatches a step and replica [default: as the calls show, else the number that replays the steps best]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=65536))]
    microbatches: Option<u32>,
    /// Model chunks a stage, of an interleaved schedule [default: likewise]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(2..=64))]
    virtual_stages: Option<u32>,
    #[command(flatten)]
    topology: TopologyArgs,
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
    /// A row a figure: name, key, value
    Csv,
}

/// The answer to one question about a trace.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
struct Answer {
    /// What is mended.
    mended: String,
    /// Mean replayed step without launch delays, seconds.
    step_seconds: f64,
    /// The same with it mended.
    mended_seconds: f64,
    /// Growth of the steps over the mended ones: 0.35 is 35 % longer.
    growth: f64,
    /// Seconds that it saves over all steps of the trace.
    seconds: f64,
    /// Steps.
    steps: usize,
    /// Mean difference of the replayed steps from the measured ones, of the measured.
    replay_error: f64,
}

/// The answer about a job.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
struct JobAnswer {
    /// What is mended; null where nothing was asked for.
    mended: Option<String>,
    /// Growth of the steps over the mended ones: 0.35 is 35 % longer.
    growth: Option<f64>,
    /// Seconds of the window that it saves.
    saved_seconds: Option<f64>,
    #[serde(flatten)]
    what_if: WhatIf,
}

/// The schemas of the answers about a trace and about a job.
pub(super) fn schemas() -> [(&'static str, Schema); 2] {
    [
        ("whatif-trace", schema_for!(Answer)),
        ("whatif-job", schema_for!(JobAnswer)),
    ]
}

/// Runs `whatif`.
///
/// # Errors
/// An input that can't be read, operations that make no schedule, output that can't be written.
pub fn run(args: &WhatIfArgs) -> anyhow::Result<Exit> {
    match args.input.as_slice() {
        [path] if OpRows::is_op_trace(path) => of_trace(path, args),
        _ => of_job(args),
    }
}

fn of_trace(path: &Path, args: &WhatIfArgs) -> anyhow::Result<Exit> {
    let meta = args
        .trace
        .meta
        .as_deref()
        .map(Meta::read)
        .transpose()?
        .unwrap_or_default();
    let table = OpTable::new(OpRows::read(path)?)?;
    let shape = shape_of(&table, meta);
    let model = match args.trace.model {
        ModelName::Measured => Model::Measured,
        ModelName::Published => Model::Published,
    };
    let program = build(&table.ops, shape, model)?;
    let values = Values::new(table, &program, model);
    let ideals = values.ideals(model == Model::Measured);
    let player = Player {
        program: &program,
        values: &values,
        ideals: &ideals,
    };
    if let Some(file) = &args.trace.timeline {
        let text = timeline(&program, &values, &ideals, args.trace.step)?;
        write_file(file, text.as_bytes()).map_err(WriteError::io(file))?;
    }
    if let Some(question) = args.mend {
        let answer = answer(question, &program, &values)?;
        return tell(args.format, &answer, |answer| {
            format!(
                "mended: {}\nsteps: {:.3} s instead of {:.3} s (+{:.1} %), {:.1} s in {} steps\nreplay_error: {:.2} %\n",
                answer.mended,
                answer.step_seconds,
                answer.mended_seconds,
                100.0 * answer.growth,
                answer.seconds,
                answer.steps,
                100.0 * answer.replay_error
            )
        });
    }
    let slowdown = player.slowdown();
    if let Some(file) = &args.trace.heat_map {
        write_file(file, heat_map(&slowdown).as_bytes()).map_err(WriteError::io(file))?;
    }
    tell(args.format, &slowdown, in_words)
}

fn answer(question: Question, program: &Program, values: &Values) -> anyhow::Result<Answer> {
    let mended = values.mended(question)?;
    // Without launch delays: where a launch waited for something that the graph does not know, its delay would stay.
    let unused = vec![0.0; values.ops.len()];
    let player = |values| Player {
        program,
        values,
        ideals: &unused,
    };
    let mean = |values| player(values).means(&[Kept::All])[0][0];
    let (step_seconds, mended_seconds) = (mean(values), mean(&mended));
    let replay_error = player(values).replay_error().0;
    Ok(Answer {
        mended: question.to_string(),
        step_seconds,
        mended_seconds,
        growth: if mended_seconds > 0.0 {
            step_seconds / mended_seconds - 1.0
        } else {
            0.0
        },
        seconds: (step_seconds - mended_seconds) * values.steps.len() as f64,
        steps: values.steps.len(),
        replay_error,
    })
}

fn of_job(args: &WhatIfArgs) -> anyhow::Result<Exit> {
    let given = [
        ("--meta", args.trace.meta.is_some()),
        ("--model", args.trace.model == ModelName::Published),
        ("--heat-map", args.trace.heat_map.is_some()),
        ("--timeline", args.trace.timeline.is_some()),
    ];
    if let Some((flag, _)) = given.into_iter().find(|(_, given)| *given) {
        return Err(
            ArgumentError::new(flag, "the input is no op trace (a Parquet file with a column `optype`)").into(),
        );
    }
    let selection = Selection {
        job: args.job.job_id.clone(),
        warmup: args.job.warmup,
        topology: args.job.topology.flags()?,
        ..Selection::default()
    };
    let found = discover(&args.input)?;
    let job = load(&found.files, &selection, &|_| {})?;
    let known = |rank: u32| -> Result<u32, ArgumentError> {
        let refused = || ArgumentError::new("--mend", format!("the job has no rank {rank} in the window"));
        job.ranks.binary_search(&rank).map(|_| rank).map_err(|_| refused())
    };
    let targets = match args.mend {
        None => Vec::new(),
        Some(Question::Rank(rank)) => {
            let rank = known(rank)?;
            vec![
                Target::Computing(vec![rank]),
                Target::Loading(vec![rank]),
                Target::Network(vec![rank]),
            ]
        }
        Some(Question::Link(one, other)) => vec![Target::Links(vec![(known(one)?, known(other)?)])],
        Some(Question::Stages) => vec![Target::Stages(Vec::new())],
        Some(Question::Data) => vec![Target::Data],
    };
    let faults: Vec<Fault> = targets.into_iter().map(Fault::lasting).collect();
    let asked = Asked {
        microbatches: args.job.microbatches.map(|count| count as usize),
        chunks: args.job.virtual_stages.map(|count| count as usize),
    };
    let what_if = what_if(&job, &faults, asked);
    let alone = match what_if.faults.as_slice() {
        [] => None,
        [alone] => Some((alone.growth, alone.seconds)),
        _ => what_if.faults_share.zip(what_if.seconds),
    };
    let answer = JobAnswer {
        mended: args.mend.map(|question| question.to_string()),
        growth: alone.map(|(growth, _)| growth),
        saved_seconds: alone.map(|(_, seconds)| seconds),
        what_if,
    };
    tell(args.format, &answer, job_in_words)
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

fn tell<T: Serialize>(format: Format, answer: &T, in_words: impl Fn(&T) -> String) -> anyhow::Result<Exit> {
    let failed = |reason: serde_json::Error| WriteError::Format {
        what: "the figures",
        reason: reason.to_string(),
    };
    let text = match format {
        Format::Text => in_words(answer),
        Format::Json => serde_json::to_string(answer).map_err(failed)? + "\n",
        Format::Csv => rows(&serde_json::to_value(answer).map_err(failed)?),
    };
    print(&text)?;
    Ok(Exit::Success)
}
