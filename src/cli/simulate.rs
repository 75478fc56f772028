//! `mt-detector simulate`: write a labelled job.

use std::path::PathBuf;

use clap::Args;

use super::exit::ArgumentError;
use super::simulated_log::SimulatedLogArgs;
use super::stdout::print;
use crate::evaluation::simulate::conditions::AnyCondition;
use crate::evaluation::simulate::faults::{
    LinkFactor, NodeFactor, RankFactor, RankSeconds, Rerun, StageFactor, Stall, Transient,
};
use crate::evaluation::simulate::{DEFAULT_ORDER, Scenario, SimulateError, write_job};
use crate::source::timestamp;

/// Write a simulated job with a known truth: `<job>.parquet` and its entry in `labels.json`
#[derive(Debug, Clone, Args)]
pub struct SimulateArgs {
    /// Folder to write to (made if missing); other jobs in its labels.json are kept
    #[arg(long, value_name = "DIR")]
    pub out: PathBuf,
    /// Replace the job if its file exists
    #[arg(long)]
    pub force: bool,
    /// Job id, also the name of the file
    #[arg(long, value_name = "NAME", default_value = "simulated")]
    pub job: String,
    /// Kind of job in the label [default: derived from the faults]
    #[arg(long, value_name = "NAME")]
    pub kind: Option<String>,
    /// Name in the column cluster
    #[arg(long, value_name = "NAME", default_value = "sim")]
    pub cluster: String,
    /// Seed of all randomness: same flags, same bytes
    #[arg(long, value_name = "N", default_value_t = 0)]
    pub seed: u64,

    /// Parallelism and length
    #[command(flatten)]
    pub shape: ShapeArgs,
    /// Times and noise
    #[command(flatten)]
    pub level: LevelArgs,
    /// Which rows are written
    #[command(flatten)]
    pub output: OutputArgs,
    /// What is wrong
    #[command(flatten)]
    pub fault: FaultArgs,
    /// The log
    #[command(flatten)]
    pub log: SimulatedLogArgs,
}

/// Parallelism and length of the job.
#[derive(Debug, Clone, Args)]
#[command(next_help_heading = "Shape")]
pub struct ShapeArgs {
    /// Tensor-parallel size
    #[arg(long, value_name = "N", default_value_t = 2)]
    pub tp: usize,
    /// Pipeline-parallel size (stages)
    #[arg(long, value_name = "N", default_value_t = 4)]
    pub pp: usize,
    /// Data-parallel size (replicas)
    #[arg(long, value_name = "N", default_value_t = 4)]
    pub dp: usize,
    /// Context-parallel size
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub cp: usize,
    /// Expert-parallel size, across the context- and data-parallel ranks
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub ep: usize,
    /// Parts into which the distributed optimizer splits each data group (a divisor of cp x dp)
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub optimizer_instances: usize,
    /// Order of the axes in the rank number, fastest first
    #[arg(long, value_name = "AXES", default_value = DEFAULT_ORDER)]
    pub order: String,
    /// Ranks a node
    #[arg(long, value_name = "N", default_value_t = 8)]
    pub ranks_per_node: usize,
    /// Model chunks a rank: above 1 the schedule is interleaved (at least 3 stages, microbatches a multiple of them)
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub virtual_stages: usize,
    /// Interleaved: send activations and gradients in calls of their own, as with overlap (2 stages are enough then)
    #[arg(long)]
    pub overlap_p2p: bool,
    /// Microbatches a step and replica
    #[arg(long, value_name = "N", default_value_t = 8)]
    pub microbatches: usize,
    /// Number of iterations
    #[arg(long, value_name = "N", default_value_t = 40)]
    pub iterations: u32,
    /// Number of the first iteration
    #[arg(long, value_name = "ITER", default_value_t = 1)]
    pub first_iteration: u32,
    /// Write rows of every so many iterations only
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub every: u32,
    /// Start of the job: RFC 3339, `YYYY-MM-DD [HH:MM:SS]` (UTC) or seconds since 1970
    #[arg(long, value_name = "TIME", default_value = "2026-01-01 08:00:00", value_parser = parse_time)]
    pub start: i64,
}

/// How long things take, and how evenly.
#[derive(Debug, Clone, Args)]
#[command(next_help_heading = "Times and noise")]
pub struct LevelArgs {
    /// Forward time of a microbatch on a middle stage; backward takes twice as long
    #[arg(long, value_name = "SECONDS", default_value_t = 0.2)]
    pub stage_seconds: f64,
    /// Transfer of a microbatch between two stages
    #[arg(long, value_name = "SECONDS", default_value_t = 0.004)]
    pub transfer_seconds: f64,
    /// The same between stages on one node, which then does not use the network [default: as between nodes]
    #[arg(long, value_name = "SECONDS")]
    pub intra_node_seconds: Option<f64>,
    /// Relative standard deviation of a single transfer
    #[arg(long, value_name = "SD", default_value_t = 0.05)]
    pub transfer_noise: f64,
    /// Share of transfers that take 2 to 30 times as long, mostly little
    #[arg(long, value_name = "SHARE", default_value_t = 0.0)]
    pub transfer_outliers: f64,
    /// Relative standard deviation of the links' lasting differences
    #[arg(long, value_name = "SD", default_value_t = 0.02)]
    pub link_spread: f64,
    /// Relative standard deviation of a single call
    #[arg(long, value_name = "SD", default_value_t = 0.009)]
    pub noise: f64,
    /// Relative standard deviation of the ranks' lasting differences
    #[arg(long, value_name = "SD", default_value_t = 0.006)]
    pub rank_spread: f64,
    /// Share of calls that take 1.5 to 3 times as long
    #[arg(long, value_name = "SHARE", default_value_t = 0.0)]
    pub outliers: f64,
    /// Extra time of the first step of a run, relative; fades over 10 steps
    #[arg(long, value_name = "SHARE", default_value_t = 0.3)]
    pub startup: f64,
    /// Time a rank's wait for late tensor-parallel peers inside its compute timers
    #[arg(long)]
    pub entry_wait: bool,
}

/// Which rows are written.
#[derive(Debug, Clone, Args)]
#[command(next_help_heading = "Rows")]
pub struct OutputArgs {
    /// Write megatron_timers_trace rows (the default)
    #[arg(long, overrides_with = "no_trace")]
    pub trace: bool,
    /// Leave megatron_timers_trace rows out
    #[arg(long, overrides_with = "trace")]
    pub no_trace: bool,
    /// Leave megatron_parallel_group_rank rows out
    #[arg(long)]
    pub no_topology: bool,
    /// Leave self-attention-linear-qkv out: tensor-parallel peers then look alike
    #[arg(long)]
    pub no_qkv: bool,
    /// Write the optimizer's finer timers too
    #[arg(long)]
    pub optimizer_timers: bool,
    /// Share of rows lost; also a timer that is 0 on a third of the ranks, and NaN, negative and
    /// doubled rows (a quarter of the share each)
    #[arg(long, value_name = "SHARE", default_value_t = 0.0)]
    pub dirty: f64,
    /// Share of megatron_timers_trace rows lost or damaged: a call without end, ends before starts, calls that overlap
    #[arg(long, value_name = "SHARE", default_value_t = 0.0)]
    pub dirty_trace: f64,
}

/// What is wrong with the job.
#[derive(Debug, Clone, Args)]
#[command(next_help_heading = "Faults (those with an example may be repeated)")]
pub struct FaultArgs {
    /// Rank R computes FACTOR times as long, e.g. 13:1.35
    #[arg(long, value_name = "R:FACTOR")]
    pub slow_rank: Vec<RankFactor>,
    /// All ranks of node K compute FACTOR times as long, e.g. 1:1.35
    #[arg(long, value_name = "K:FACTOR")]
    pub slow_node: Vec<NodeFactor>,
    /// What rank R sends takes FACTOR times as long, e.g. 13:15
    #[arg(long, value_name = "R:FACTOR")]
    pub slow_send: Vec<RankFactor>,
    /// What rank R receives takes FACTOR times as long, e.g. 25:30
    #[arg(long, value_name = "R:FACTOR")]
    pub slow_recv: Vec<RankFactor>,
    /// The link between pipeline neighbours A and B takes FACTOR times as long, e.g. 0-8:10
    #[arg(long, value_name = "A-B:FACTOR")]
    pub slow_link: Vec<LinkFactor>,
    /// The same only for what A sends to B, e.g. 0-8:10
    #[arg(long, value_name = "A-B:FACTOR")]
    pub slow_link_one_way: Vec<LinkFactor>,
    /// The network of node K takes FACTOR times as long: what its ranks send and receive and their collectives, e.g. 3:8
    #[arg(long, value_name = "K:FACTOR")]
    pub slow_node_network: Vec<NodeFactor>,
    /// Rank R's data loader adds SECONDS to each microbatch, e.g. 2:0.1
    #[arg(long, value_name = "R:SECONDS")]
    pub slow_loader: Vec<RankSeconds>,
    /// Stage S has FACTOR times the work of the others, e.g. 3:1.6
    #[arg(long, value_name = "S:FACTOR")]
    pub heavy_stage: Vec<StageFactor>,
    /// Coefficient of variation of a replica's load, drawn anew each step (sequence lengths)
    #[arg(long, value_name = "CV", default_value_t = 0.0)]
    pub sequence_spread: f64,
    /// Coefficient of variation of a rank's expert load, drawn anew each step
    #[arg(long, value_name = "CV", default_value_t = 0.0)]
    pub expert_spread: f64,
    /// First iteration with the --slow-... faults
    #[arg(long, value_name = "ITER")]
    pub onset: Option<u32>,
    /// Last iteration with the --slow-... faults
    #[arg(long, value_name = "ITER")]
    pub until: Option<u32>,
    /// Share of steps in which the --slow-... faults act
    #[arg(long, value_name = "SHARE")]
    pub flaky: Option<f64>,
    /// Rank R is slow for COUNT steps from ITER on, e.g. 5:2@20+3
    #[arg(long, value_name = "R:FACTOR@ITER+COUNT")]
    pub transient: Vec<Transient>,
    /// Iteration ITER takes SECONDS longer on all ranks, e.g. 22:60
    #[arg(long, value_name = "ITER:SECONDS")]
    pub stall: Vec<Stall>,
    /// What else acts on the job, e.g. wander:sd=0.015,steps=20 (repeatable); list shows all
    #[arg(long, value_name = "NAME:KEY=VALUE,...")]
    pub condition: Vec<String>,
    /// Restart from a checkpoint: iterations from ITER on ran before, in a lost run in which rank
    /// R was FACTOR slow instead of the job's own faults
    #[arg(long, value_name = "ITER[:R:FACTOR]")]
    pub rerun: Option<Rerun>,
}

impl SimulateArgs {
    /// The scenario that the flags describe.
    ///
    /// # Errors
    /// An [`ArgumentError`] that names the flag with an impossible value.
    pub fn scenario(&self) -> anyhow::Result<Scenario> {
        let Self {
            shape,
            level,
            output,
            fault,
            ..
        } = self.clone();
        let read = |text: &String| text.parse().map_err(|reason| ArgumentError::new("--condition", reason));
        let conditions = fault.condition.iter().map(read).collect::<Result<_, _>>()?;
        let scenario = Scenario {
            every: shape.every,
            optimizer_instances: shape.optimizer_instances,
            job: self.job.clone(),
            kind: self.kind.clone(),
            cluster: self.cluster.clone(),
            seed: self.seed,
            tp: shape.tp,
            pp: shape.pp,
            dp: shape.dp,
            cp: shape.cp,
            ep: shape.ep,
            order: shape.order,
            ranks_per_node: shape.ranks_per_node,
            virtual_stages: shape.virtual_stages,
            overlap_p2p: shape.overlap_p2p,
            microbatches: shape.microbatches,
            iterations: shape.iterations,
            first_iteration: shape.first_iteration,
            start: shape.start,
            stage_seconds: level.stage_seconds,
            transfer_seconds: level.transfer_seconds,
            intra_node_seconds: level.intra_node_seconds,
            transfer_noise: level.transfer_noise,
            transfer_outliers: level.transfer_outliers,
            link_spread: level.link_spread,
            noise: level.noise,
            rank_spread: level.rank_spread,
            outliers: level.outliers,
            startup: level.startup,
            entry_wait: level.entry_wait,
            trace: !output.no_trace,
            topology: !output.no_topology,
            qkv: !output.no_qkv,
            optimizer_timers: output.optimizer_timers,
            dirty: output.dirty,
            dirty_trace: output.dirty_trace,
            slow_ranks: fault.slow_rank,
            slow_nodes: fault.slow_node,
            slow_send: fault.slow_send,
            slow_recv: fault.slow_recv,
            slow_links: fault.slow_link,
            slow_links_one_way: fault.slow_link_one_way,
            slow_node_networks: fault.slow_node_network,
            slow_loaders: fault.slow_loader,
            heavy_stages: fault.heavy_stage,
            sequence_spread: fault.sequence_spread,
            expert_spread: fault.expert_spread,
            onset: fault.onset,
            until: fault.until,
            flaky: fault.flaky,
            transients: fault.transient,
            stalls: fault.stall,
            rerun: fault.rerun,
            conditions,
        };
        scenario
            .validate()
            .map_err(|error| ArgumentError::of_scenario(&error))?;
        Ok(scenario)
    }
}

/// Simulates the job and prints one line a file written.
///
/// # Errors
/// [`ArgumentError`] for an impossible flag value,
/// [`crate::evaluation::simulate::WriteError`] when the job cannot be stored; both can be downcast to.
pub fn run(args: &SimulateArgs) -> anyhow::Result<()> {
    if args.fault.condition.iter().any(|text| text == "list") {
        let lines = AnyCondition::ALL.iter();
        let lines = lines.map(|about| format!("{:14}{}\n{:14}e.g. {}\n", about.name, about.about, "", about.example));
        return print(&lines.collect::<String>()).map_err(anyhow::Error::from);
    }
    let scenario = args.scenario()?;
    let written = write_job(&scenario, &args.out, args.force).map_err(|error| match error {
        SimulateError::Scenario(error) => anyhow::Error::from(ArgumentError::of_scenario(&error)),
        SimulateError::Write(error) => anyhow::Error::from(error),
        error @ SimulateError::Frame(_) => anyhow::Error::from(error),
    })?;
    let log = args.log.write(&written.parquet, args.force)?;
    let label = &written.label;
    let network = if label.network_ranks.is_empty() {
        String::new()
    } else {
        format!(", slow networks of ranks {:?}", label.network_ranks)
    };
    print(&format!(
        "{}: {} rows, {} ranks, {} iterations\n{}: {} is {}, cause {}, slow ranks {:?}{network}\n",
        written.parquet.display(),
        written.rows,
        scenario.ranks(),
        scenario.iterations,
        written.labels.display(),
        scenario.job,
        label.kind,
        label.cause,
        label.slow_ranks
    ))?;
    if let Some(line) = log {
        print(&line)?;
    }
    Ok(())
}

fn parse_time(text: &str) -> Result<i64, String> {
    const EXPECTED: &str = "no time; expected RFC 3339, YYYY-MM-DD [HH:MM:SS] (UTC) or seconds since 1970";
    let micros = timestamp::parse(text).ok_or(EXPECTED)?;
    Ok(micros.div_euclid(1_000_000))
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;

    #[derive(Parser)]
    struct Cli {
        #[command(flatten)]
        args: SimulateArgs,
    }

    fn parse(flags: &[&str]) -> Result<SimulateArgs, clap::Error> {
        let start = ["simulate", "--out", "x"];
        Cli::try_parse_from(start.iter().chain(flags)).map(|cli| cli.args)
    }

    #[test]
    fn no_flags_are_the_default_scenario() {
        let scenario = parse(&[]).unwrap().scenario().unwrap();
        assert_eq!(scenario, Scenario::default());
    }

    #[test]
    fn flags_repeat_and_override() {
        let flags = ["--slow-rank", "3:1.2", "--slow-rank", "9:1.5", "--no-trace", "--trace"];
        let scenario = parse(&flags).unwrap().scenario().unwrap();
        assert_eq!(scenario.slow_ranks.len(), 2);
        assert!(scenario.trace);
        assert!(!parse(&["--no-trace"]).unwrap().scenario().unwrap().trace);
    }

    #[test]
    fn bad_values_name_flag_value_and_form() {
        let Err(error) = parse(&["--slow-rank", "3=2"]) else {
            panic!("3=2 must be refused");
        };
        let text = error.to_string();
        assert!(text.contains("--slow-rank") && text.contains("R:FACTOR"), "{text}");
        let error = parse(&["--slow-rank", "99:2"]).unwrap().scenario().unwrap_err();
        let error = error.downcast_ref::<ArgumentError>().unwrap();
        assert_eq!(error.flag, "--slow-rank");
        assert!(error.reason.contains("ranks 0 to 31"), "{}", error.reason);
    }

    #[test]
    fn conditions_are_read_and_refused_by_name() {
        let flags = [
            "--condition",
            "wander:sd=0.01,steps=20",
            "--condition",
            "creep:rank=3,factor=1.4,from=9,to=30",
        ];
        let scenario = parse(&flags).unwrap().scenario().unwrap();
        assert_eq!(scenario.conditions.len(), 2);
        let refused = |text: &str| {
            let error = parse(&["--condition", text]).unwrap().scenario().unwrap_err();
            let error = error.downcast::<ArgumentError>().unwrap();
            assert_eq!(error.flag, "--condition");
            error.reason
        };
        assert!(refused("wnader:sd=1").contains("there are wander"));
        assert!(refused("creep:rank=99,factor=1.4,from=9,to=30").contains("ranks 0 to 31"));
    }

    #[test]
    fn start_in_all_forms() {
        for text in ["2026-01-01T08:00:00Z", "2026-01-01 08:00:00", "1767254400"] {
            assert_eq!(parse_time(text), Ok(1_767_254_400));
        }
        assert_eq!(parse_time("2026-01-01"), Ok(1_767_225_600));
        assert!(parse_time("soon").is_err());
    }
}
