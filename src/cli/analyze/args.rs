//! What is typed after `analyze`, and what it asks for once every default and check is applied.

use std::path::PathBuf;

use clap::{Args, ValueEnum};

use crate::algos::Algorithm;
use crate::cli::clickhouse::ClickHouseArgs;
use crate::cli::exit::ArgumentError;
use crate::cli::logs::LogArgs;
use crate::cli::reading::ReadingArgs;
use crate::cli::screen::ScreenArgs;
use crate::cli::thresholds::{ClassicThresholds, PeerThresholds};
use crate::cli::topology::TopologyArgs;
use crate::cli::values::{algorithms, iterations, moment};
use crate::contract::defaults::{SLOWDOWN_THRESHOLD, WARMUP_ITERATIONS};
use crate::job::{IterationRange, Reduction, Selection};
use crate::report::ResultFolder;
use crate::rules::RulesSettings;
use crate::rules::peer::PeerSettings;
use crate::source::timestamp;

/// Arguments of `analyze`, as typed.
#[derive(Debug, Args)]
pub struct AnalyzeArgs {
    /// Logs of a training job (what the rank printed that prints the timers), or files, folders or glob patterns with rows
    /// of megatron_metrics (Parquet, CSV, NDJSON, Arrow IPC); - reads a log or NDJSON from standard input. Without any, the
    /// table of a ClickHouse server is read
    #[arg(value_name = "INPUT")]
    pub(super) input: Vec<PathBuf>,
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
    pub(super) rules: RulesName,
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
    pub(super) format: Format,
    #[command(flatten)]
    pub(super) screen: ScreenArgs,
    /// Write the verdict as metrics too, for the textfile collector of Prometheus's node exporter (a file that ends with
    /// .prom); the file is replaced in one step
    #[arg(long, value_name = "FILE")]
    pub(super) prometheus: Option<PathBuf>,
    /// Write trace.json too: the slowest and a typical iteration, for Perfetto or chrome://tracing
    #[arg(long, conflicts_with = "no_files")]
    pub(super) trace_view: bool,
    /// Exit with 1 when the status is fault
    #[arg(long)]
    pub(in crate::cli) exit_code: bool,
    /// Threads [default: one a processor]
    #[arg(long, value_name = "N")]
    pub(super) threads: Option<usize>,
    #[command(flatten, next_help_heading = "ClickHouse")]
    pub(super) clickhouse: ClickHouseArgs,
    #[command(flatten)]
    reduction: ReductionArgs,
    #[command(flatten, next_help_heading = "Topology (where the job's rows do not give it)")]
    topology: TopologyArgs,
    #[command(flatten, next_help_heading = "Logs")]
    pub(super) logs: LogArgs,
    #[command(flatten, next_help_heading = "Files")]
    pub(super) reading: ReadingArgs,
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
pub(super) enum RulesName {
    /// Compare a rank with its peers, name who is slow lastingly and by an amount that matters
    Peer,
    /// Cluster over all ranks, elect those with the most votes
    Classic,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(super) enum Format {
    /// The verdict in sentences, then the lines for scripts
    Text,
    /// One line of JSON
    Json,
}

/// The word for the slow windows.
const AUTO: &str = "auto";
/// More threads than any machine has processors for them; the operating system may refuse or choke on more.
const MOST_THREADS: usize = 1024;

/// The arguments with every default and check applied.
pub(super) struct Request {
    pub(super) selection: Selection,
    /// Whether each slow window is analysed on its own.
    pub(super) auto: bool,
    pub(super) slowdown_threshold: f64,
    pub(super) reduction: Reduction,
    pub(super) algorithms: Vec<&'static dyn Algorithm>,
    pub(super) settings: RulesSettings,
    pub(super) folder: Option<ResultFolder>,
}

impl AnalyzeArgs {
    /// The arguments with every default and check applied.
    pub(super) fn request(&self) -> anyhow::Result<Request> {
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
            algorithms: algorithms(&self.algorithm)?,
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
    pub(in crate::cli) fn given_for_a_sweep(&self) -> Option<&'static str> {
        let given = [
            ("a file", !self.input.is_empty()),
            ("--job-id", self.job_id.is_some() || self.job_id_json.is_some()),
            ("--start", self.start.is_some()),
            ("--end", self.end.is_some()),
            ("--out", self.out.is_some()),
            ("--no-files", self.no_files),
            ("--prometheus", self.prometheus.is_some()),
            ("--format", self.format != Format::Text),
        ];
        let own = given.into_iter().find(|(_, given)| *given).map(|(flag, _)| flag);
        own.or_else(|| self.clickhouse.given())
    }

    /// Checks all values, for an analysis of such input.
    ///
    /// # Errors
    /// The first that makes no sense.
    pub(in crate::cli) fn check(&mut self, input: &[PathBuf]) -> anyhow::Result<()> {
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

/// `prediction_results/prediction_<UTC time>`.
fn default_folder() -> PathBuf {
    let name = chrono::Utc::now().format("prediction_%Y%m%dT%H%M%SZ").to_string();
    PathBuf::from("prediction_results").join(name)
}
