//! `watch`: one job in the terminal until there is a verdict or the job is over.

use std::collections::BTreeMap;
use std::path::PathBuf;

use clap::Args;
use glob::Pattern;

use super::clickhouse::ClickHouseArgs;
use super::exit::{ArgumentError, Exit};
use super::logs::LogArgs;
use super::serve::PaceArgs;
use super::source::Source;
use super::stdout::{print, tell};
use crate::contract::printable::on_one_line;
use crate::interrupt;
use crate::service::analysis::Analyst;
use crate::service::feed::Feed;
use crate::service::files::GrowingFiles;
use crate::service::known::State;
use crate::service::state::{FAREWELL, StateFolder};
use crate::service::watched::Watched;
use crate::service::watcher::{Discovery, Watcher};
use crate::source::{Format, SourceFile, discover};
use crate::sweep::named;
use crate::verdict::Status;

/// Arguments of `watch`.
#[derive(Debug, Args)]
pub struct WatchArgs {
    /// A training's log that still grows, or a folder to which its recorder writes; all that is there counts. Without any, the
    /// table of a ClickHouse server is read from now on
    #[arg(value_name = "INPUT")]
    input: Vec<PathBuf>,
    /// Job id; may be left out where files hold one job
    #[arg(long, value_name = "ID")]
    job_id: Option<String>,
    /// Folder for the results
    #[arg(long, value_name = "DIR", default_value = "watch_results")]
    out: PathBuf,
    /// Go on after a verdict, until the job is over
    #[arg(long)]
    follow: bool,
    /// Exit with 1 when the last verdict's status is fault
    #[arg(long)]
    exit_code: bool,
    #[command(flatten)]
    pace: PaceArgs,
    #[command(flatten, next_help_heading = "ClickHouse")]
    clickhouse: ClickHouseArgs,
    #[command(flatten, next_help_heading = "Logs")]
    logs: LogArgs,
}

impl WatchArgs {
    /// Where new iterations come from, and how slow ones are analysed.
    ///
    /// # Errors
    /// Neither files nor a job of a server, or both; files that are not there, a server that does not answer.
    fn opened(&self) -> anyhow::Result<(Box<dyn Feed>, Analyst)> {
        let mut analyst = self.pace.analyst(self.out.clone(), &self.clickhouse)?;
        let source = Source::open(&self.input, &self.clickhouse)?.with_logs(&self.logs)?;
        match source {
            Source::Table(_) if self.job_id.is_none() => {
                Err(ArgumentError::new("--job-id", "a table may hold many jobs: name the one to watch").into())
            }
            Source::Table(table) => Ok((table, analyst)),
            Source::Files(found) => {
                if found.files.iter().any(SourceFile::is_stdin) {
                    let reason = "standard input can't be read again for the analysis; name a file";
                    return Err(ArgumentError::new("INPUT", reason).into());
                }
                analyst.input = self.input.iter().map(|path| named(path)).collect();
                analyst.arguments = self.logs.handed_on();
                analyst.environment = Vec::new();
                let nodes = found.files.iter().find_map(|file| file.options.nodes.clone());
                let input = self.input.clone();
                // Files may come while it is watched.
                let find = move || {
                    let mut files = discover(&input)?.files;
                    let logs = files.iter_mut().filter(|file| file.format == Format::Log);
                    logs.for_each(|log| log.options.nodes.clone_from(&nodes));
                    Ok(files)
                };
                Ok((Box::new(GrowingFiles::new(Box::new(find))), analyst))
            }
        }
    }

    /// The job that is watched; `None` while files tell of none.
    fn job(&self, watcher: &Watcher) -> Result<Option<String>, ArgumentError> {
        if self.job_id.is_some() {
            return Ok(self.job_id.clone());
        }
        let mut jobs: Vec<String> = watcher.jobs(|jobs| jobs.keys().cloned().collect());
        if jobs.len() > 1 {
            let names: Vec<_> = jobs.iter().map(|job| on_one_line(job)).collect();
            return Err(ArgumentError::new(
                "--job-id",
                format!("there are {}: name one", names.join(", ")),
            ));
        }
        Ok(jobs.pop())
    }
}

/// Runs `watch`.
///
/// # Errors
/// Bad arguments, a table that can't be read at the start, a folder that can't be written; later failures are told and tried again.
pub fn run(args: &WatchArgs) -> anyhow::Result<Exit> {
    let settings = args.pace.settings()?;
    let interval = args.pace.interval()?;
    let state = StateFolder::open(&args.out)?;
    let (feed, analyst) = args.opened()?;
    interrupt::farewell(FAREWELL);
    let patterns = match args.job_id {
        Some(_) => Vec::new(),
        None => vec![Pattern::new("*")?],
    };
    let watcher = Watcher::new(settings, Discovery { patterns }, BTreeMap::new());
    let now = || chrono::Utc::now().timestamp_micros();
    if let Some(job) = &args.job_id {
        watcher.register(job, now());
    }
    let mut shown = String::new();
    loop {
        match watcher.poll(&*feed, now()) {
            Err(error) => tell(format_args!("the poll failed, the next one follows: {error}")),
            Ok(polled) => {
                for due in &polled.due {
                    tell(format_args!(
                        "{}: iterations {}-{} are slow; analysing",
                        on_one_line(&due.job),
                        due.iterations.0,
                        due.iterations.1
                    ));
                    watcher.detected(&due.job, analyst.analyse(due));
                }
            }
        }
        state.keep_changes(&watcher)?;
        let job = args.job(&watcher)?.and_then(|job| watcher.job(&job, Watched::clone));
        let line = job.as_ref().map_or_else(|| "no iteration yet".to_owned(), live_line);
        if line != shown {
            tell(format_args!("{line}"));
            shown = line;
        }
        let Some(job) = job else {
            std::thread::sleep(interval);
            continue;
        };
        let over = job.state == State::Finished;
        let verdict = job
            .detection
            .as_ref()
            .filter(|detection| detection.status.is_some() && !detection.is_empty());
        if over || (verdict.is_some() && !args.follow) {
            return finish(args, &job);
        }
        std::thread::sleep(interval);
    }
}

/// Prints the last verdict's summary; its status makes the exit code.
fn finish(args: &WatchArgs, job: &Watched) -> anyhow::Result<Exit> {
    let last = job.history.back();
    match last.and_then(|detection| detection.folder.as_ref()) {
        Some(folder) => {
            let folder = args.out.join(folder);
            print(&std::fs::read_to_string(folder.join("summary.txt")).unwrap_or_default())?;
            tell(format_args!("results in {}", folder.display()));
        }
        None => print(&format!(
            "job: {}\nstatus: {}\nno slow window\n",
            on_one_line(&job.job),
            job.state.name()
        ))?,
    }
    let fault = last.and_then(|detection| detection.status.as_deref()) == Some(Status::Fault.name());
    Ok(if args.exit_code && fault {
        Exit::AnomaliesFound
    } else {
        Exit::Success
    })
}

/// `active  iteration 129: 2.03 s (usual 2.01 s)`.
fn live_line(job: &Watched) -> String {
    let state = job.state.name();
    let Some(last) = &job.last else {
        return format!("{state}  no iteration yet");
    };
    let usual = job
        .baseline()
        .map_or(String::new(), |seconds| format!(" (usual {seconds:.3} s)"));
    format!("{state}  iteration {}: {:.3} s{usual}", last.iteration, last.seconds)
}
