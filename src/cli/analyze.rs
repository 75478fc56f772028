//! `analyze`: one job in, a verdict out.

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;

use anyhow::Context;
use clap::{Args, ValueEnum};

use super::clickhouse::ClickHouseArgs;
use super::exit::{ArgumentError, Exit};
use super::progress::Progress;
use super::source::Source;
use super::stdout::{print, tell};
use super::topology::TopologyArgs;
use crate::algos::{Algorithm, registry};
use crate::comm::classic as comm;
use crate::job::{IterationRange, Selection};
use crate::report::{Asked, ResultFolder, Summary, json_line, text};
use crate::rules::classic::ClassicSettings;
use crate::rules::peer::PeerSettings;
use crate::rules::{self, RulesSettings};
use crate::source::{Micros, timestamp};

/// Arguments of `analyze`, as typed.
#[derive(Debug, Args)]
pub struct AnalyzeArgs {
    /// Files, folders or glob patterns with rows of megatron_metrics (Parquet, CSV, NDJSON, Arrow IPC); - reads
    /// NDJSON from standard input. Without any, the table of a ClickHouse server is read
    #[arg(value_name = "INPUT")]
    input: Vec<PathBuf>,
    /// Job id; may be left out when the input holds one job
    #[arg(long, value_name = "ID")]
    job_id: Option<String>,
    /// Iterations to analyse, both ends included: A-B, A-, -B or A [default: all]
    #[arg(long, value_name = "RANGE", allow_hyphen_values = true)]
    iterations: Option<String>,
    /// Leave out rows before this time: RFC 3339, "YYYY-MM-DD HH:MM:SS" (UTC) or epoch seconds
    #[arg(long, value_name = "TIME", allow_hyphen_values = true)]
    start: Option<String>,
    /// Leave out rows after this time
    #[arg(long, value_name = "TIME", allow_hyphen_values = true)]
    end: Option<String>,
    /// Keep the rows of this run (rerun_uuid) only [default: an iteration counts from the run that came last]
    #[arg(long, value_name = "UUID")]
    rerun: Option<String>,
    /// Iterations to drop at the beginning of every run
    #[arg(long, value_name = "N", default_value_t = 10)]
    warmup: u32,
    /// Algorithms: all, or names separated by commas (kmeans, dbscan, gmm, hierarchical, mean_shift, fuzzy)
    #[arg(long, value_name = "NAMES", default_value = "all", value_delimiter = ',')]
    algorithm: Vec<String>,
    /// Rules of the verdict
    #[arg(long, value_enum, default_value_t = RulesName::Peer)]
    rules: RulesName,
    /// Folder for the results [default: prediction_results/prediction_{UTC time}]
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,
    /// Replace an earlier result folder at --out
    #[arg(long, requires = "out")]
    force: bool,
    /// Write no files, only standard output
    #[arg(long, conflicts_with_all = ["out", "force"])]
    no_files: bool,
    /// Form of the summary on standard output
    #[arg(long, value_enum, default_value_t = Format::Text)]
    format: Format,
    /// Exit with 1 when somebody stands out
    #[arg(long)]
    exit_code: bool,
    /// Threads [default: one a processor]
    #[arg(long, value_name = "N")]
    threads: Option<usize>,
    #[command(flatten, next_help_heading = "ClickHouse")]
    clickhouse: ClickHouseArgs,
    #[command(flatten, next_help_heading = "Topology (where the job's rows do not give it)")]
    topology: TopologyArgs,
    #[command(flatten, next_help_heading = "Thresholds of the peer rules")]
    peer: PeerThresholds,
    #[command(flatten, next_help_heading = "Thresholds of the classic rules")]
    classic: ClassicThresholds,
}

#[derive(Debug, Args)]
struct PeerThresholds {
    /// Least lasting excess over the peers that is a fault, as a share [default: 0.025]
    #[arg(long, value_name = "SHARE")]
    effect_floor: Option<f64>,
    /// Chance that noise alone passes the noise floor in a healthy job [default: 0.000001]
    #[arg(long, value_name = "SHARE")]
    false_alarm_rate: Option<f64>,
    /// Share of the iterations that a fault which ended must cover [default: 0.333]
    #[arg(long, value_name = "SHARE")]
    lasting_share: Option<f64>,
}

#[derive(Debug, Args)]
struct ClassicThresholds {
    /// Smallest (max - min) / mean of the rank means at which a timer is clustered [default: 0.03]
    #[arg(long, value_name = "SHARE")]
    min_spread: Option<f64>,
    /// A further timer that counts as computing (repeatable)
    #[arg(long, value_name = "TIMER")]
    compute_timer: Vec<String>,
    /// Weight of a timer in the vote (repeatable) [default: 3 for self-attention-linear-qkv, else 1]
    #[arg(long, value_name = "TIMER=WEIGHT")]
    timer_weight: Vec<String>,
    /// With pipeline stages: times the fastest rank's compute time that a slow rank takes at least [default: 1.3]
    #[arg(long, value_name = "FACTOR")]
    gate_factor: Option<f64>,
    /// With pipeline stages: how many of the slowest iterations that is measured on [default: 10]
    #[arg(long, value_name = "N")]
    gate_iterations: Option<usize>,
    /// Communication: times the fastest pipeline's first call that a suspect call takes; of two stages, a slow iteration
    /// over a fast one [default: 1.3]
    #[arg(long, value_name = "FACTOR")]
    comm_threshold: Option<f64>,
    /// Communication: times the baseline that a suspect's last calls take [default: 2]
    #[arg(long, value_name = "FACTOR")]
    comm_baseline_factor: Option<f64>,
    /// Communication: times the call before it that a suspect call takes [default: 2]
    #[arg(long, value_name = "FACTOR")]
    comm_jump_factor: Option<f64>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum RulesName {
    /// Compare a rank with its peers, name who is slow lastingly and by an amount that matters
    Peer,
    /// Cluster over all ranks, elect those with the most votes
    Classic,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Format {
    /// key: value lines and a block for each finding
    Text,
    /// One line of JSON
    Json,
}

/// More threads than any machine has processors for them; the operating system may refuse or choke on more.
const MOST_THREADS: usize = 1024;

/// The arguments with every default and check applied.
struct Request {
    selection: Selection,
    algorithms: Vec<&'static dyn Algorithm>,
    settings: RulesSettings,
    folder: Option<ResultFolder>,
}

/// Runs `analyze`.
///
/// # Errors
/// Bad arguments, a source that fails or holds no such rows, results that can't be written.
pub fn run(args: &AnalyzeArgs) -> anyhow::Result<Exit> {
    let request = args.request()?;
    if let Some(threads) = args.threads {
        rayon::ThreadPoolBuilder::new()
            .num_threads(threads)
            .build_global()
            .with_context(|| format!("failed to start {threads} threads"))?;
    }
    let progress = Progress::start("reading");
    let source = Source::open(&args.input, &args.clickhouse)?;
    let job = source.load(&request.selection, &|rows| progress.rows(rows))?;
    progress.now("analysing");
    let verdict = rules::judge(&job, &request.settings, &request.algorithms);
    let summary = Summary::new(
        &job,
        &verdict,
        Asked {
            source: source.names(),
            files_passed_over: source.passed_over(),
            settings: &request.settings,
            iterations: request.selection.iterations.to_string(),
            warmup: request.selection.warmup,
        },
    );
    if let Some(folder) = &request.folder {
        progress.now("writing");
        folder.write(&summary, &job, &verdict)?;
    }
    drop(progress);
    match args.format {
        Format::Text => print(&text(&summary)?)?,
        Format::Json => print(&(json_line(&summary)? + "\n"))?,
    }
    if let Some(folder) = &request.folder {
        tell(format_args!("results in {}", folder.path().display()));
    }
    let found_somebody = !summary.anomaly_ranks.is_empty() || !summary.anomaly_nodes.is_empty();
    Ok(if args.exit_code && found_somebody {
        Exit::AnomaliesFound
    } else {
        Exit::Success
    })
}

impl AnalyzeArgs {
    fn request(&self) -> anyhow::Result<Request> {
        let iterations = iterations(&self.iterations)?;
        let (start, end) = (moment("--start", &self.start)?, moment("--end", &self.end)?);
        if let (Some(first), Some(last)) = (start, end)
            && first > last
        {
            let reason = format!(
                "{} is after --end {}",
                timestamp::format(first),
                timestamp::format(last)
            );
            return Err(ArgumentError::new("--start", reason).into());
        }
        if self
            .threads
            .is_some_and(|threads| !(1..=MOST_THREADS).contains(&threads))
        {
            return Err(ArgumentError::new("--threads", format!("between 1 and {MOST_THREADS} are possible")).into());
        }
        Ok(Request {
            selection: Selection {
                job: self.job_id.clone(),
                start,
                end,
                iterations,
                rerun: self.rerun.clone(),
                warmup: self.warmup,
                topology: self.topology.flags()?,
            },
            algorithms: chosen_algorithms(&self.algorithm)?,
            settings: self.settings()?,
            folder: self.folder()?,
        })
    }

    /// The thresholds of the chosen rules; those of other rules would have no effect and are refused.
    fn settings(&self) -> Result<RulesSettings, ArgumentError> {
        let (given, belongs) = match self.rules {
            RulesName::Peer => (self.classic.given(), "it belongs to --rules classic"),
            RulesName::Classic => (self.peer.given(), "it belongs to --rules peer"),
        };
        if let Some(flag) = given {
            return Err(ArgumentError::new(flag, belongs));
        }
        Ok(match self.rules {
            RulesName::Peer => RulesSettings::Peer(self.peer.settings()?),
            RulesName::Classic => RulesSettings::Classic(self.classic.settings()?),
        })
    }

    fn folder(&self) -> anyhow::Result<Option<ResultFolder>> {
        if self.no_files {
            return Ok(None);
        }
        let path = match &self.out {
            Some(path) => path.clone(),
            None => default_folder(),
        };
        Ok(Some(ResultFolder::at(path, self.force)?))
    }
}

impl PeerThresholds {
    /// The first flag that was given.
    fn given(&self) -> Option<&'static str> {
        first_given(&[
            ("--effect-floor", self.effect_floor.is_some()),
            ("--false-alarm-rate", self.false_alarm_rate.is_some()),
            ("--lasting-share", self.lasting_share.is_some()),
        ])
    }

    fn settings(&self) -> Result<PeerSettings, ArgumentError> {
        let usual = PeerSettings::default();
        let effect_floor = self.effect_floor.unwrap_or(usual.effect_floor);
        let false_alarm_rate = self.false_alarm_rate.unwrap_or(usual.false_alarm_rate);
        let lasting_share = self.lasting_share.unwrap_or(usual.lasting_share);
        if !(false_alarm_rate > 0.0 && false_alarm_rate <= 1.0) {
            let reason = format!("{false_alarm_rate} is not above 0 and at most 1");
            return Err(ArgumentError::new("--false-alarm-rate", reason));
        }
        if !(0.0..=1.0).contains(&lasting_share) {
            let reason = format!("{lasting_share} is not between 0 and 1");
            return Err(ArgumentError::new("--lasting-share", reason));
        }
        Ok(PeerSettings {
            effect_floor: at_least("--effect-floor", effect_floor, 0.0)?,
            false_alarm_rate,
            lasting_share,
            ..usual
        })
    }
}

impl ClassicThresholds {
    /// The first flag that was given.
    fn given(&self) -> Option<&'static str> {
        first_given(&[
            ("--min-spread", self.min_spread.is_some()),
            ("--compute-timer", !self.compute_timer.is_empty()),
            ("--timer-weight", !self.timer_weight.is_empty()),
            ("--gate-factor", self.gate_factor.is_some()),
            ("--gate-iterations", self.gate_iterations.is_some()),
            ("--comm-threshold", self.comm_threshold.is_some()),
            ("--comm-baseline-factor", self.comm_baseline_factor.is_some()),
            ("--comm-jump-factor", self.comm_jump_factor.is_some()),
        ])
    }

    fn settings(&self) -> Result<ClassicSettings, ArgumentError> {
        let usual = ClassicSettings::default();
        let mut compute_timers: BTreeSet<String> = usual.compute_timers;
        compute_timers.extend(self.compute_timer.iter().cloned());
        let mut timer_weights: BTreeMap<String, f64> = usual.timer_weights;
        for pair in &self.timer_weight {
            let malformed = || ArgumentError::new("--timer-weight", format!("`{pair}` is not TIMER=WEIGHT"));
            let (timer, weight) = pair.rsplit_once('=').ok_or_else(malformed)?;
            let weight = weight.parse().map_err(|_| malformed())?;
            timer_weights.insert(timer.to_owned(), at_least("--timer-weight", weight, 0.0)?);
        }
        if self.gate_iterations == Some(0) {
            return Err(ArgumentError::new("--gate-iterations", "at least 1 is needed"));
        }
        Ok(ClassicSettings {
            compute_timers,
            min_spread: at_least("--min-spread", self.min_spread.unwrap_or(usual.min_spread), 0.0)?,
            timer_weights,
            gate_factor: at_least("--gate-factor", self.gate_factor.unwrap_or(usual.gate_factor), 1.0)?,
            gate_iterations: self.gate_iterations.unwrap_or(usual.gate_iterations),
            communication: self.communication(usual.communication)?,
        })
    }
}

impl ClassicThresholds {
    fn communication(&self, usual: comm::ClassicThresholds) -> Result<comm::ClassicThresholds, ArgumentError> {
        let factor = |flag, given: Option<f64>, usual| at_least(flag, given.unwrap_or(usual), 1.0);
        Ok(comm::ClassicThresholds {
            threshold: factor("--comm-threshold", self.comm_threshold, usual.threshold)?,
            baseline_factor: factor(
                "--comm-baseline-factor",
                self.comm_baseline_factor,
                usual.baseline_factor,
            )?,
            jump_factor: factor("--comm-jump-factor", self.comm_jump_factor, usual.jump_factor)?,
        })
    }
}

fn first_given(flags: &[(&'static str, bool)]) -> Option<&'static str> {
    flags.iter().find(|(_, given)| *given).map(|&(flag, _)| flag)
}

fn at_least(flag: &'static str, value: f64, least: f64) -> Result<f64, ArgumentError> {
    if value.is_finite() && value >= least {
        Ok(value)
    } else {
        Err(ArgumentError::new(
            flag,
            format!("{value} is not a finite number of at least {least}"),
        ))
    }
}

pub(super) fn iterations(text: &Option<String>) -> Result<IterationRange, ArgumentError> {
    match text {
        None => Ok(IterationRange::default()),
        Some(text) => text
            .parse()
            .map_err(|error| ArgumentError::new("--iterations", format!("{error}"))),
    }
}

pub(super) fn moment(flag: &'static str, text: &Option<String>) -> Result<Option<Micros>, ArgumentError> {
    let Some(text) = text else {
        return Ok(None);
    };
    let malformed = || {
        ArgumentError::new(
            flag,
            format!("`{text}` is no time; write RFC 3339, YYYY-MM-DD HH:MM:SS (UTC) or epoch seconds"),
        )
    };
    timestamp::parse(text).map(Some).ok_or_else(malformed)
}

/// The word for every algorithm.
const ALL: &str = "all";

fn chosen_algorithms(names: &[String]) -> Result<Vec<&'static dyn Algorithm>, ArgumentError> {
    let known = registry();
    if let Some(unknown) = names
        .iter()
        .filter(|name| *name != ALL)
        .find(|name| !known.iter().any(|algorithm| algorithm.name() == name.as_str()))
    {
        let names: Vec<&str> = known.iter().map(|algorithm| algorithm.name()).collect();
        let reason = format!("`{unknown}` is unknown; there are all, {}", names.join(", "));
        return Err(ArgumentError::new("--algorithm", reason));
    }
    let asked = |algorithm: &&&'static dyn Algorithm| names.iter().any(|name| name == ALL || name == algorithm.name());
    Ok(known.iter().filter(asked).copied().collect())
}

/// `prediction_results/prediction_<UTC time>`, counted on when two runs share a second.
fn default_folder() -> PathBuf {
    let parent = PathBuf::from("prediction_results");
    let name = chrono::Utc::now().format("prediction_%Y%m%dT%H%M%SZ").to_string();
    let free = (2..).map(|count| parent.join(format!("{name}-{count}")));
    let mut candidates = std::iter::once(parent.join(&name)).chain(free);
    candidates
        .find(|path| !path.exists())
        .unwrap_or_else(|| parent.join(name))
}
