//! `sweep`: every job with rows in a span of time, for a nightly run.

use std::ffi::OsString;
use std::path::PathBuf;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use clap::Args;

use super::analyze::AnalyzeArgs;
use super::clickhouse::ClickHouseArgs;
use super::exit::{ArgumentError, Exit};
use super::source::{JobsBetween, Source};
use super::stdout::{print, tell};
use super::values::moment;
use crate::contract::printable::on_one_line;
use crate::interrupt;
use crate::source::{Micros, SourceError, timestamp};
use crate::sweep::folder::SweepFolder;
use crate::sweep::{Budget, JobResult, LEDGER_VERSION, Ledger, News, Plan, named, prune, run as run_plan};

/// Arguments of `sweep`.
#[derive(Debug, Args)]
pub struct SweepArgs {
    /// Files, folders or glob patterns with rows of megatron_metrics. Without any, the table of a ClickHouse server is
    /// read
    #[arg(value_name = "INPUT")]
    input: Vec<PathBuf>,
    /// Span of time up to now: a number with s, m, h or d
    #[arg(long, value_name = "TIME", conflicts_with_all = ["start", "end"])]
    since: Option<String>,
    /// Leave out rows before this time: RFC 3339, "YYYY-MM-DD HH:MM:SS" (UTC) or epoch seconds
    #[arg(long, value_name = "TIME", allow_hyphen_values = true)]
    start: Option<String>,
    /// Leave out rows after this time
    #[arg(long, value_name = "TIME", allow_hyphen_values = true)]
    end: Option<String>,
    /// Folder of the results: one for each job, sweep.json, sweep.csv, index.html
    #[arg(long, value_name = "DIR", default_value = "sweep_results")]
    out: PathBuf,
    /// Keep the results of jobs that have not changed since the sweep before
    #[arg(long)]
    resume: bool,
    /// Jobs side by side
    #[arg(long, value_name = "N", default_value_t = 2)]
    jobs_in_parallel: usize,
    /// Time for each job: a number with s, m, h or d
    #[arg(long, value_name = "TIME", default_value = "10m")]
    job_time_limit: String,
    /// Time for all of them [default: none]
    #[arg(long, value_name = "TIME")]
    time_limit: Option<String>,
    /// Hardware metrics of the machines, as `analyze --machines` reads them; of each job those with its id, in its time
    #[arg(long, value_name = "FILE")]
    machines: Vec<PathBuf>,
    /// Print a line for every job, not only for news: a fault that is new, other than in the sweep before, or gone, and
    /// what could not be analysed
    #[arg(long, alias = "verbose")]
    all: bool,
    /// Of the results of jobs that this sweep does not list keep the newest so many, and remove the others [default: keep
    /// all]
    #[arg(long, value_name = "N")]
    keep: Option<usize>,
    /// Exit with 1 when somebody stands out
    #[arg(long)]
    exit_code: bool,
    #[command(flatten, next_help_heading = "ClickHouse")]
    clickhouse: ClickHouseArgs,
    /// Further flags of `analyze`, behind --
    #[arg(last = true, value_name = "FLAGS")]
    flags: Vec<String>,
}

/// Most jobs side by side; each is a process of its own.
const MOST_IN_PARALLEL: usize = 256;

/// Runs `sweep`.
///
/// # Errors
/// Bad arguments, a source that fails, a folder that can't be written or has another sweep
/// at work in it. A job's own failure is none.
pub fn run(args: &SweepArgs) -> anyhow::Result<Exit> {
    let (start, end) = args.span()?;
    let budget = args.budget()?;
    let flags = args.checked_flags()?;
    let folder = SweepFolder::open(&args.out)?;
    interrupt::farewell("interrupted; finished jobs are kept, --resume goes on");
    let source = Source::open(&args.input, &args.clickhouse)?;
    let JobsBetween { jobs, unread } = source.jobs_between(start, end)?;
    for error in &unread {
        tell(format_args!("passed over: {}", in_full(error)));
    }
    // A night without jobs is no failure: machines may be in service.
    if jobs.is_empty() && args.all {
        tell(format_args!("no job has rows in that time"));
    }
    // What was known before tells what is news. A ledger that can't be read keeps nothing from being analysed anew.
    let before = match folder.earlier() {
        Ok(before) => before,
        Err(error) if args.resume => return Err(error.into()),
        Err(error) => {
            tell(format_args!("all is news: {error}"));
            Default::default()
        }
    };
    let earlier = if args.resume {
        before.clone()
    } else {
        Default::default()
    };
    let time = |micros: Option<Micros>| micros.map(timestamp::format);
    let made = chrono::Utc::now().format("%Y-%m-%dT%H:%M:%SZ").to_string();
    let ledger = |jobs: Vec<JobResult>| Ledger {
        ledger_version: LEDGER_VERSION,
        tool_version: env!("CARGO_PKG_VERSION").to_owned(),
        made: made.clone(),
        source: source.names(),
        start: time(start),
        end: time(end),
        flags: args.flags.clone(),
        unread: unread.iter().map(in_full).collect(),
        jobs,
    };
    // What is known of jobs whose turn is still to come is not lost when this sweep is ended.
    let so_far = Mutex::new(earlier.clone());
    let each = |result: &JobResult| {
        let mut so_far = so_far.lock().unwrap_or_else(PoisonError::into_inner);
        so_far.insert(result.job.clone(), result.clone());
        folder.keep(&ledger(so_far.values().cloned().collect()))
    };
    let handed_on = args.clickhouse.handed_on()?;
    let plan = Plan {
        jobs: &jobs,
        arguments: &machine_arguments(span_arguments(handed_on.flags, start, end), &args.machines),
        input: &args.input.iter().map(|path| named(path)).collect::<Vec<_>>(),
        environment: &handed_on.environment,
        flags: &args.flags,
        exits_with_one: flags.exit_code,
        folder: folder.path(),
        earlier: &earlier,
    };
    let mut results = run_plan(&plan, budget, &each)?;
    for result in &mut results {
        result.news = News::of(result, before.get(&result.job));
    }
    let ledger = ledger(results);
    folder.finish(&ledger)?;
    if let Some(keep) = args.keep {
        let listed = ledger.jobs.iter().filter_map(|result| result.folder.clone()).collect();
        prune(folder.path(), &listed, keep)?;
    }
    print(&args.lines(&ledger))?;
    Ok(
        if !ledger.unread.is_empty() || ledger.jobs.iter().any(|result| result.status.is_broken()) {
            Exit::SourceFailed
        } else if args.exit_code && ledger.jobs.iter().any(JobResult::is_fault) {
            Exit::AnomaliesFound
        } else {
            Exit::Success
        },
    )
}

impl SweepArgs {
    fn span(&self) -> Result<(Option<Micros>, Option<Micros>), ArgumentError> {
        match &self.since {
            Some(text) => {
                let since = duration("--since", text)?;
                let micros = i64::try_from(since.as_micros()).unwrap_or(i64::MAX);
                Ok((Some(chrono::Utc::now().timestamp_micros().saturating_sub(micros)), None))
            }
            None => Ok((moment("--start", &self.start)?, moment("--end", &self.end)?)),
        }
    }

    fn budget(&self) -> Result<Budget, ArgumentError> {
        if !(1..=MOST_IN_PARALLEL).contains(&self.jobs_in_parallel) {
            let reason = format!("between 1 and {MOST_IN_PARALLEL} are possible");
            return Err(ArgumentError::new("--jobs-in-parallel", reason));
        }
        let all = self.time_limit.as_ref().map(|text| duration("--time-limit", text));
        Ok(Budget {
            in_parallel: self.jobs_in_parallel,
            job: duration("--job-time-limit", &self.job_time_limit)?,
            all: all.transpose()?,
        })
    }

    /// The flags behind `--` as `analyze` will read them. A bad one would fail every job; one that the sweep sets itself
    /// would contradict it, and what belongs to the connection stands before, where a password is kept out of sight.
    fn checked_flags(&self) -> anyhow::Result<AnalyzeArgs> {
        let mut flags = super::parsed_analyze(&self.flags)?;
        if let Some(own) = flags.given_for_a_sweep() {
            let reason = format!("{own} behind it belongs to the sweep: give it before, or leave it out");
            return Err(ArgumentError::new("--", reason).into());
        }
        flags.check(&self.input)?;
        Ok(flags)
    }

    /// A line for each job with news.
    fn lines(&self, ledger: &Ledger) -> String {
        let mut text = String::new();
        for result in ledger.jobs.iter().filter(|result| self.all || result.news.is_some()) {
            let job = on_one_line(&result.job);
            let line = if let Some(error) = result.error.as_ref().filter(|_| result.status.is_broken()) {
                format!("{}: {error}", result.status.word())
            } else if result.is_fault() {
                fault_in_words(result)
            } else {
                let words = result.error.as_deref().unwrap_or("nobody is to blame");
                let before = if result.news == Some(News::Recovered) {
                    ", after a fault in the sweep before"
                } else {
                    ""
                };
                format!("{}: {words}{before}", result.word())
            };
            text += &format!("{job}: {}\n", on_one_line(&line));
        }
        if !text.is_empty() {
            text += &format!("results in {}\n", self.out.join("index.html").display());
        }
        text
    }
}

/// `compute: ranks [5] on gpu-000, steps +35.0 %, 0.38 GPU-hours lost: rank 5 on gpu-000 computes ...`.
fn fault_in_words(result: &JobResult) -> String {
    let nodes = result.anomaly_nodes.join(", ");
    let cost = result
        .cost
        .as_ref()
        .filter(|cost| cost.seconds > 0.0)
        .map_or(String::new(), |cost| {
            format!(
                ", steps +{:.1} %, {:.2} GPU-hours lost",
                100.0 * cost.share,
                cost.gpu_hours
            )
        });
    let first = result.headlines.iter().find(|headline| headline.kind.is_fault());
    let says = first.map_or(String::new(), |headline| format!(": {}", headline.says));
    format!(
        "{}: ranks {:?} on {nodes}{cost}{says}",
        result.cause, result.anomaly_ranks
    )
}

/// What names the span to `analyze`, behind the flags of the connection.
fn span_arguments(mut arguments: Vec<OsString>, start: Option<Micros>, end: Option<Micros>) -> Vec<OsString> {
    for (flag, micros) in [("--start", start), ("--end", end)] {
        arguments.extend(micros.map(|micros| format!("{flag}={}", timestamp::format(micros)).into()));
    }
    arguments
}

/// The files of hardware metrics, for every job.
fn machine_arguments(mut arguments: Vec<OsString>, files: &[PathBuf]) -> Vec<OsString> {
    for file in files {
        arguments.extend(["--machines".into(), named(file)]);
    }
    arguments
}

/// An error with its causes.
fn in_full(error: &SourceError) -> String {
    let mut text = error.to_string();
    let mut cause = std::error::Error::source(error);
    while let Some(next) = cause {
        text += &format!(": {next}");
        cause = next.source();
    }
    text
}

/// A length of time: `90s`, `15m`, `24h`, `7d`, `1h 30m`.
pub(super) fn duration(flag: &'static str, text: &str) -> Result<Duration, ArgumentError> {
    let malformed =
        |why: String| ArgumentError::new(flag, format!("`{text}` is no time like 90s, 15m, 24h or 7d{why}"));
    let time = humantime::parse_duration(text.trim()).map_err(|error| malformed(format!(": {error}")))?;
    Some(time)
        .filter(|time| !time.is_zero())
        .ok_or_else(|| malformed(String::new()))
}
