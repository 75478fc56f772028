//! `analyze`: one job in, a verdict out.

use std::path::PathBuf;

use anyhow::Context;
use clap::{Args, ValueEnum};

use super::clickhouse::ClickHouseArgs;
use super::exit::{ArgumentError, Exit};
use super::logs::LogArgs;
use super::progress::Progress;
use super::screen::ScreenArgs;
use super::source::Source;
use super::stdout::{print, tell};
use super::thresholds::{ClassicThresholds, PeerThresholds};
use super::topology::TopologyArgs;
use crate::algos::{Algorithm, registry};
use crate::contract::defaults::{SLOWDOWN_THRESHOLD, WARMUP_ITERATIONS};
use crate::job::{IterationRange, Job, JobError, Reduction, Selection, SlowWindow, StepTimes, slow_windows};
use crate::report::{Asked, Report, ResultFolder, WriteError, json_line, prometheus};
use crate::rules::peer::PeerSettings;
use crate::rules::{self, RulesSettings};
use crate::source::{Micros, timestamp};
use crate::verdict::Status;

/// Arguments of `analyze`, as typed.
#[derive(Debug, Args)]
pub struct AnalyzeArgs {
    /// Logs of a training job (what the rank printed that prints the timers), or files, folders or glob patterns with rows
    /// of megatron_metrics (Parquet, CSV, NDJSON, Arrow IPC); - reads a log or NDJSON from standard input. Without any, the
    /// table of a ClickHouse server is read
    #[arg(value_name = "INPUT")]
    input: Vec<PathBuf>,
    /// Job id; may be left out when the input holds one job
    #[arg(long, value_name = "ID")]
    job_id: Option<String>,
    /// The same as a JSON string, for ids that no argument can hold
    #[arg(long, value_name = "JSON", hide = true, conflicts_with = "job_id")]
    job_id_json: Option<String>,
    /// Iterations to analyse, both ends included: A-B, A-, -B or A; auto takes each window in which the steps were
    /// slow, and all iterations where there is none [default: all]
    #[arg(long, value_name = "RANGE", allow_hyphen_values = true)]
    iterations: Option<String>,
    /// Share beyond the normal step time from which a step is slow, for the slow windows
    #[arg(long, value_name = "SHARE", default_value_t = SLOWDOWN_THRESHOLD)]
    slowdown_threshold: f64,
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
    #[arg(long, value_name = "N", default_value_t = WARMUP_ITERATIONS)]
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
    #[command(flatten)]
    screen: ScreenArgs,
    /// Write the verdict as metrics too, for the textfile collector of Prometheus's node exporter (a file that ends with
    /// .prom); the file is replaced in one step
    #[arg(long, value_name = "FILE")]
    prometheus: Option<PathBuf>,
    /// Hardware metrics of the job's machines (files or folders as `machines detect` reads them; may be given several
    /// times): tells which slow ranks they confirm. The status stays that of the timers
    #[arg(long, value_name = "FILE")]
    machines: Vec<PathBuf>,
    /// Write trace.json too: the slowest and a typical iteration, for Perfetto or chrome://tracing
    #[arg(long, conflicts_with = "no_files")]
    trace_view: bool,
    /// Exit with 1 when the status is fault
    #[arg(long)]
    pub(super) exit_code: bool,
    /// Threads [default: one a processor]
    #[arg(long, value_name = "N")]
    threads: Option<usize>,
    #[command(flatten, next_help_heading = "ClickHouse")]
    clickhouse: ClickHouseArgs,
    #[command(flatten)]
    reduction: ReductionArgs,
    #[command(flatten, next_help_heading = "Topology (where the job's rows do not give it)")]
    topology: TopologyArgs,
    #[command(flatten, next_help_heading = "Logs")]
    logs: LogArgs,
    #[command(flatten, next_help_heading = "Thresholds of the peer rules")]
    peer: PeerThresholds,
    #[command(flatten, next_help_heading = "Thresholds of the classic rules")]
    classic: ClassicThresholds,
}

#[derive(Debug, Args)]
#[group(skip)]
struct ReductionArgs {
    /// What a server sends: tables that it makes, in which columns stand for several iterations where they would have
    /// more than --table-cells (server), or every row (local) [default: auto, tables, and rows for the classic
    /// rules where columns would stand for several iterations]
    #[arg(long, value_enum, default_value_t = Reduce::Auto, hide_default_value = true)]
    reduce: Reduce,
    /// Cells that the tables of a server have at most, all timers together; 20 columns are always left
    #[arg(long, value_name = "N", default_value_t = Reduction::CELLS)]
    table_cells: usize,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Reduce {
    /// Tables, and rows where the rules need them
    Auto,
    /// Tables
    Server,
    /// Rows
    Local,
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
    /// The verdict in sentences, then the lines for scripts
    Text,
    /// One line of JSON
    Json,
}

/// The word for the slow windows.
const AUTO: &str = "auto";
/// Timers that the classic rules take: Megatron has some dozens, and each costs seconds where ranks are many.
const MOST_CLASSIC_TIMERS: usize = 5_000;
/// More threads than any machine has processors for them; the operating system may refuse or choke on more.
const MOST_THREADS: usize = 1024;

/// The arguments with every default and check applied.
struct Request {
    selection: Selection,
    /// Whether each slow window is analysed on its own.
    auto: bool,
    slowdown_threshold: f64,
    reduction: Reduction,
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
    let source = Source::open(&args.input, &args.clickhouse)?.with_logs(&args.logs)?;
    let job = source.load(&request.selection, request.reduction, &|rows| progress.rows(rows))?;
    let timers = job.timers.len();
    if args.rules == RulesName::Classic && timers > MOST_CLASSIC_TIMERS {
        let reason = format!(
            "the job has {timers} timers, and the classic rules, which cluster each of them six times, take \
             {MOST_CLASSIC_TIMERS} at most; --rules peer takes any number"
        );
        return Err(ArgumentError::new("--rules", reason).into());
    }
    progress.now("analysing");
    let step_times = slow_windows(&job, request.slowdown_threshold);
    let asked = Asked {
        source: source.names(),
        files_passed_over: source.passed_over(),
        settings: &request.settings,
        iterations: request.asked_iterations(&step_times),
        warmup: request.selection.warmup,
        step_times: &step_times,
    };
    let mut report = request.analyse(&source, &job, &asked)?;
    if args.trace_view {
        report = report.with_trace_view(&job);
    }
    if !args.machines.is_empty() {
        progress.now("comparing machines");
        report = super::machines::beside(report, &args.machines)?;
    }
    let summary = &report.summary;
    // A verdict that can't be kept is told all the same: it may have taken an hour.
    let kept = request.folder.as_ref().map(|folder| {
        progress.now("writing");
        folder.write(&report)
    });
    drop(progress);
    match args.format {
        Format::Text => print(&args.screen.printed(summary)?)?,
        Format::Json => print(&(json_line(summary)? + "\n"))?,
    }
    if let Some(file) = &args.prometheus {
        let metrics = prometheus(summary, chrono::Utc::now().timestamp());
        crate::building::replace_file(file, metrics.as_bytes()).map_err(WriteError::io(file))?;
    }
    if let Some(folder) = kept.transpose()?
        && !args.screen.is_quiet()
    {
        tell(format_args!("results in {}", folder.display()));
    }
    Ok(if args.exit_code && summary.status == Status::Fault {
        Exit::AnomaliesFound
    } else {
        Exit::Success
    })
}

impl Request {
    /// Judges the job, or each slow window of it where that was asked for.
    fn analyse(&self, source: &Source, job: &Job, asked: &Asked<'_>) -> Result<Report, JobError> {
        let judge = |job: &Job| {
            let verdict = rules::judge(job, &self.settings, &self.algorithms);
            Report::new(job, verdict, asked.clone())
        };
        let windows = if self.auto {
            asked.step_times.windows.as_slice()
        } else {
            &[]
        };
        match windows {
            [] => Ok(judge(job)),
            [window] => Ok(judge(&self.part(source, job, window)?)),
            windows => {
                let windows = windows
                    .iter()
                    .map(|window| Ok(judge(&self.part(source, job, window)?)))
                    .collect::<Result<_, JobError>>()?;
                Ok(Report::of_windows(job, windows, asked.clone()))
            }
        }
    }

    /// The job's part in a window. Columns that stand for several iterations can't be cut in between: they are made anew.
    fn part(&self, source: &Source, job: &Job, window: &SlowWindow) -> Result<Job, JobError> {
        if job.iterations_per_column() == 1 {
            return Ok(job.window(window.range()));
        }
        let selection = Selection {
            iterations: window.range(),
            ..self.selection.clone()
        };
        source.load(&selection, self.reduction, &|_| ())
    }

    /// The asked iterations in words.
    fn asked_iterations(&self, step_times: &StepTimes) -> String {
        match (self.auto, step_times.windows.len()) {
            (false, _) => self.selection.iterations.to_string(),
            (true, 0) => "auto, no slow window, so all".to_owned(),
            (true, 1) => "auto, the slow window".to_owned(),
            (true, count) => format!("auto, {count} slow windows"),
        }
    }
}

impl AnalyzeArgs {
    fn request(&self) -> anyhow::Result<Request> {
        let auto = self.iterations.as_deref() == Some(AUTO);
        let iterations = if auto {
            IterationRange::default()
        } else {
            iterations(&self.iterations)?
        };
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
                job: self.job()?,
                start,
                end,
                iterations,
                rerun: self.rerun.clone(),
                warmup: self.warmup,
                topology: self.topology.flags()?,
            },
            auto,
            slowdown_threshold: self.slowdown_threshold()?,
            reduction: self.reduction()?,
            algorithms: chosen_algorithms(&self.algorithm)?,
            settings: self.settings()?,
            folder: self.folder()?,
        })
    }

    fn job(&self) -> Result<Option<String>, ArgumentError> {
        match &self.job_id_json {
            None => Ok(self.job_id.clone()),
            Some(json) => serde_json::from_str(json)
                .map(Some)
                .map_err(|error| ArgumentError::new("--job-id-json", error.to_string())),
        }
    }

    /// The first argument that a sweep gives itself.
    pub(super) fn given_for_a_sweep(&self) -> Option<&'static str> {
        let given = [
            ("a file", !self.input.is_empty()),
            ("--job-id", self.job_id.is_some() || self.job_id_json.is_some()),
            ("--start", self.start.is_some()),
            ("--end", self.end.is_some()),
            ("--out", self.out.is_some()),
            ("--no-files", self.no_files),
            ("--prometheus", self.prometheus.is_some()),
            ("--machines", !self.machines.is_empty()),
            ("--format", self.format != Format::Text),
        ];
        let own = given.into_iter().find(|(_, given)| *given).map(|(flag, _)| flag);
        own.or_else(|| self.clickhouse.given())
    }

    /// Checks all values, for an analysis of such input.
    ///
    /// # Errors
    /// The first that makes no sense.
    pub(super) fn check(&mut self, input: &[PathBuf]) -> anyhow::Result<()> {
        self.input = input.to_vec();
        self.request().map(drop)
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
            RulesName::Peer => RulesSettings::Peer(PeerSettings {
                slowdown_threshold: self.slowdown_threshold()?,
                ..self.peer.settings()?
            }),
            RulesName::Classic => RulesSettings::Classic(self.classic.settings()?),
        })
    }

    fn reduction(&self) -> Result<Reduction, ArgumentError> {
        let ReductionArgs {
            reduce,
            table_cells: cells,
        } = self.reduction;
        if reduce != Reduce::Auto && !self.input.is_empty() {
            return Err(ArgumentError::new("--reduce", "files are read; it belongs to a server"));
        }
        match (reduce, self.rules) {
            (Reduce::Local, _) => Ok(Reduction::Rows),
            (Reduce::Auto | Reduce::Server, RulesName::Peer) => Ok(Reduction::Tables { cells }),
            (Reduce::Auto, RulesName::Classic) => Ok(Reduction::WholeTables { cells }),
            (Reduce::Server, RulesName::Classic) => {
                let reason = "the classic rules need every iteration, which auto sees to";
                Err(ArgumentError::new("--reduce", reason))
            }
        }
    }

    fn slowdown_threshold(&self) -> Result<f64, ArgumentError> {
        let threshold = self.slowdown_threshold;
        if threshold.is_finite() && threshold > 0.0 {
            Ok(threshold)
        } else {
            let reason = format!("{threshold} is not a finite number above 0");
            Err(ArgumentError::new("--slowdown-threshold", reason))
        }
    }

    fn folder(&self) -> anyhow::Result<Option<ResultFolder>> {
        if self.no_files {
            return Ok(None);
        }
        Ok(Some(match &self.out {
            Some(path) => ResultFolder::at(path.clone(), self.force)?,
            None => ResultFolder::near(default_folder()),
        }))
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

pub(super) fn chosen_algorithms(names: &[String]) -> Result<Vec<&'static dyn Algorithm>, ArgumentError> {
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

/// `prediction_results/prediction_<UTC time>`.
fn default_folder() -> PathBuf {
    let name = chrono::Utc::now().format("prediction_%Y%m%dT%H%M%SZ").to_string();
    PathBuf::from("prediction_results").join(name)
}
