//! `machines detect`: a verdict on files.

use std::path::PathBuf;

use clap::Args;

use super::{Format, methods};
use crate::cli::clickhouse::ClickHouseArgs;
use crate::cli::exit::{ArgumentError, Exit};
use crate::cli::progress::Progress;
use crate::cli::source::notice;
use crate::cli::stdout::print;
use crate::cli::values::moment;
use crate::machines::detect::{Settings, detect};
use crate::machines::files::write_folder;
use crate::machines::input::{of_server, read};
use crate::machines::method::Method;
use crate::machines::model::store::Models;
use crate::machines::names::Names;
use crate::machines::samples::{Minutes, Task};
use crate::machines::text::text;
use crate::machines::verdict::Status;
use crate::report::WriteError;
use crate::source::clickhouse::{MachineSamplesAsked, machine_samples};

/// Arguments of `machines detect`, as typed.
#[derive(Debug, Args)]
pub struct DetectArgs {
    /// Files or folders: .parquet, .csv, .ndjson (long or wide), Prometheus query_range .json. Without any, the table
    /// machine_metrics of a ClickHouse server is read
    #[arg(value_name = "FILE")]
    files: Vec<PathBuf>,
    /// The job, where the files hold several
    #[arg(long, value_name = "ID")]
    job_id: Option<String>,
    /// Judge the last so many minutes; 0 judges everything
    #[arg(long, value_name = "N", default_value_t = 15.0)]
    minutes: f64,
    /// Judge all from this time on instead: RFC 3339, "YYYY-MM-DD HH:MM:SS" (UTC) or epoch seconds
    #[arg(long, visible_alias = "from", value_name = "TIME", allow_hyphen_values = true)]
    start: Option<String>,
    /// Leave out samples after this time
    #[arg(long, visible_alias = "to", value_name = "TIME", allow_hyphen_values = true)]
    end: Option<String>,
    /// How long a machine must differ, in seconds
    #[arg(long, value_name = "SECONDS", default_value_t = 240.0)]
    continuity: f32,
    /// How machines are compared
    #[arg(long, value_parser = methods(), default_value_t = Method::LstmVae)]
    method: Method,
    /// Probability that chance names a machine of a healthy task, at most
    #[arg(long, value_name = "P", default_value_t = crate::machines::detect::FALSE_ALARMS)]
    false_alarms: f64,
    /// Smallest score that names a machine [default: from --false-alarms, or the method's own]
    #[arg(long, value_name = "SCORE")]
    threshold: Option<f64>,
    /// Models and metric order from `machines train` [default: those that ship with the program]
    #[arg(long, value_name = "FILE")]
    models: Option<PathBuf>,
    /// More names of metrics, units and limits, as TOML
    #[arg(long, value_name = "FILE")]
    names: Option<PathBuf>,
    /// Form of the result on standard output
    #[arg(long, value_enum, default_value_t = Format::Text)]
    format: Format,
    /// Folder for the results [default: machine_results/JOB]
    #[arg(long, value_name = "DIR", conflicts_with = "no_files")]
    out: Option<PathBuf>,
    /// Replace an existing folder of results
    #[arg(long, conflicts_with = "no_files")]
    replace: bool,
    /// Write no files
    #[arg(long)]
    no_files: bool,
    /// Exit with 1 when a machine is named
    #[arg(long)]
    exit_code: bool,
    #[command(flatten, next_help_heading = "ClickHouse")]
    clickhouse: ClickHouseArgs,
}

/// Runs `machines detect`.
///
/// # Errors
/// Bad arguments, files that can't be read, results that can't be written.
pub fn run(args: &DetectArgs) -> anyhow::Result<Exit> {
    let settings = args.settings()?;
    let progress = Progress::counting("reading machine metrics", "metrics");
    let names = Names::load(args.names.as_deref())?;
    let models = args.models.as_deref().map_or_else(Models::shipped, Models::load)?;
    let task = args.read(&names)?;
    progress.now("comparing machines");
    let detection = detect(&task, &models, &names, settings)?;
    drop(progress);
    let verdict = &detection.verdict;
    if !args.no_files {
        let default = || {
            let job = if verdict.job.is_empty() { "job" } else { &verdict.job };
            PathBuf::from("machine_results").join(job.replace(['/', '\\'], "_"))
        };
        let folder = args.out.clone().unwrap_or_else(default);
        write_folder(&folder, &detection, args.replace)?;
    }
    match args.format {
        Format::Text => print(&text(verdict))?,
        Format::Json => {
            let line = serde_json::to_string(verdict).map_err(|reason| WriteError::Format {
                what: "the verdict",
                reason: reason.to_string(),
            })?;
            print(&(line + "\n"))?;
        }
    }
    Ok(if args.exit_code && verdict.status == Status::Fault {
        Exit::AnomaliesFound
    } else {
        Exit::Success
    })
}

impl DetectArgs {
    /// Reads files, or a server's table: there the window is cut on the server.
    fn read(&self, names: &Names) -> anyhow::Result<Task> {
        let (start, end) = (moment("--start", &self.start)?, moment("--end", &self.end)?);
        let minutes = Minutes {
            last: (self.minutes > 0.0 && start.is_none()).then_some(self.minutes),
            from_ms: start.map(|micros| micros.div_euclid(1000)),
            to_ms: end.map(|micros| micros.div_euclid(1000)),
        };
        let job = self.job_id.as_deref();
        if !self.files.is_empty() {
            if let Some(flag) = self.clickhouse.given() {
                return Err(ArgumentError::new(flag, "files are read; it belongs to a server").into());
            }
            return Ok(read(&self.files, job, minutes, names)?);
        }
        let nothing =
            "name files or folders, or a server with --clickhouse-url, CLICKHOUSE_URL or a configuration file";
        let settings = self.clickhouse.machine_settings()?;
        let settings = settings.ok_or_else(|| ArgumentError::new("FILE", nothing))?;
        let asked = MachineSamplesAsked {
            job: self.job_id.clone(),
            from: start,
            to: end,
            last_seconds: minutes.last.map(|minutes| minutes * 60.0),
        };
        let series = machine_samples(settings, notice(), &asked)?;
        Ok(of_server(&series, job, minutes, names)?)
    }

    fn settings(&self) -> Result<Settings, ArgumentError> {
        if !(0.0..=1e6).contains(&self.minutes) {
            return Err(ArgumentError::new(
                "--minutes",
                format!("{} is no number of minutes", self.minutes),
            ));
        }
        if !(10.0..=86_400.0).contains(&self.continuity) {
            let reason = format!("{} is not between 10 and 86400 seconds", self.continuity);
            return Err(ArgumentError::new("--continuity", reason));
        }
        if self
            .threshold
            .is_some_and(|threshold| !(threshold > 0.0 && threshold.is_finite()))
        {
            return Err(ArgumentError::new("--threshold", "a score above 0 is needed"));
        }
        if !(self.false_alarms > 0.0 && self.false_alarms <= 0.5) {
            let reason = format!("{} is no probability between 0 and 0.5", self.false_alarms);
            return Err(ArgumentError::new("--false-alarms", reason));
        }
        Ok(Settings {
            method: self.method,
            continuity_s: self.continuity,
            false_alarms: self.false_alarms,
            threshold: self.threshold,
        })
    }
}
