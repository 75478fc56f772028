//! `watch`: one job in the terminal until there is a verdict or the job is over.

use std::collections::BTreeMap;
use std::path::PathBuf;

use clap::Args;

use super::clickhouse::ClickHouseArgs;
use super::exit::Exit;
use super::serve::PaceArgs;
use super::source::open_table;
use super::stdout::{print, tell};
use crate::contract::printable::on_one_line;
use crate::interrupt;
use crate::service::known::State;
use crate::service::state::{FAREWELL, StateFolder};
use crate::service::watched::Watched;
use crate::service::watcher::{Discovery, Watcher};
use crate::verdict::Status;

/// Arguments of `watch`.
#[derive(Debug, Args)]
pub struct WatchArgs {
    /// Job id
    #[arg(long, value_name = "ID")]
    job_id: String,
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
}

/// Runs `watch`.
///
/// # Errors
/// Bad arguments, a table that can't be read at the start, a folder that can't be written; later failures are told and tried again.
pub fn run(args: &WatchArgs) -> anyhow::Result<Exit> {
    let settings = args.pace.settings()?;
    let interval = args.pace.interval()?;
    let state = StateFolder::open(&args.out)?;
    let analyst = args.pace.analyst(args.out.clone(), &args.clickhouse)?;
    let table = open_table(&args.clickhouse)?;
    interrupt::farewell(FAREWELL);
    let watcher = Watcher::new(settings, Discovery::default(), BTreeMap::new());
    let now = || chrono::Utc::now().timestamp_micros();
    watcher.register(&args.job_id, now());
    let mut shown = String::new();
    loop {
        match watcher.poll(&table, now()) {
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
        let Some(job) = watcher.job(&args.job_id, Watched::clone) else {
            return Ok(Exit::Success);
        };
        let line = live_line(&job);
        if line != shown {
            tell(format_args!("{line}"));
            shown = line;
        }
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
