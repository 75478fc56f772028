//! `replay`: a recorded job once more under a new id, for trying what watches jobs.

use clap::Args;

use super::clickhouse::ClickHouseArgs;
use super::exit::{ArgumentError, Exit};
use super::progress::Progress;
use super::source::open_table;
use super::stdout::{print, tell};
use super::values::moment;
use crate::interrupt;
use crate::source::clickhouse::Replay;

/// Arguments of `replay`.
#[derive(Debug, Args)]
pub struct ReplayArgs {
    /// The recorded job
    #[arg(long, value_name = "ID")]
    job_id: String,
    /// Recorded seconds a second: 1 is as recorded, inf all at once
    #[arg(long, value_name = "FACTOR", default_value_t = 1.0)]
    speed: f64,
    /// Id of the copy [default: sim- and a new UUID]
    #[arg(long, value_name = "ID")]
    as_job: Option<String>,
    /// Begin at this recorded time: RFC 3339, "YYYY-MM-DD HH:MM:SS" (UTC) or epoch seconds
    #[arg(long, value_name = "TIME", allow_hyphen_values = true)]
    start: Option<String>,
    /// End at this recorded time
    #[arg(long, value_name = "TIME", allow_hyphen_values = true)]
    end: Option<String>,
    #[command(flatten, next_help_heading = "ClickHouse")]
    clickhouse: ClickHouseArgs,
}

/// Runs `replay`.
///
/// # Errors
/// Bad arguments, a server that fails, holds no such rows or lets the user not write.
pub fn run(args: &ReplayArgs) -> anyhow::Result<Exit> {
    if args.speed.is_nan() || args.speed <= 0.0 {
        return Err(ArgumentError::new("--speed", format!("{} is not above 0", args.speed)).into());
    }
    let copy = match &args.as_job {
        Some(id) if *id == args.job_id => {
            return Err(ArgumentError::new("--as-job", "the copy needs an id of its own").into());
        }
        Some(id) => id.clone(),
        None => format!("sim-{}", uuid::Uuid::new_v4()),
    };
    let replay = Replay {
        job: &args.job_id,
        as_job: &copy,
        speed: args.speed,
        start: moment("--start", &args.start)?,
        end: moment("--end", &args.end)?,
    };
    let table = open_table(&args.clickhouse)?;
    interrupt::farewell("interrupted; the rows that were copied stay");
    // Whoever watches wants to know the id from the first row on.
    print(&format!("{copy}\n"))?;
    let progress = Progress::start("replaying");
    let replayed = table.replay(&replay, &|rows| progress.rows(rows))?;
    drop(progress);
    let untimed = match replayed.untimed {
        0 => String::new(),
        rows => format!(", {rows} without a time left out"),
    };
    tell(format_args!(
        "{}: {} rows of job `{}` copied{untimed}",
        table.name(),
        replayed.rows,
        args.job_id
    ));
    Ok(Exit::Success)
}
