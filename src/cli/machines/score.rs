//! `machines score`: verdicts held against the truth, methods side by side.

use std::fmt::Write as _;
use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, Ordering};

use clap::Args;

use super::{Format, methods, seeds};
use crate::cli::exit::Exit;
use crate::cli::progress::Progress;
use crate::cli::stdout::print;
use crate::machines::detect::Settings;
use crate::machines::evaluate::{Drawn, Score, cases_of, score, suite};
use crate::machines::method::Method;
use crate::machines::model::store::Models;
use crate::machines::names::Names;
use crate::report::WriteError;

/// Arguments of `machines score`, as typed.
#[derive(Debug, Args)]
pub struct ScoreArgs {
    /// Folder with labels.json and {task}.parquet beside it, as `machines simulate` writes them
    #[arg(value_name = "FOLDER", required_unless_present = "suite")]
    folder: Option<PathBuf>,
    /// Simulate the tasks instead, without files
    #[arg(long, conflicts_with = "folder")]
    suite: bool,
    /// Seeds of the suite, both ends included: A-B or A.
    #[arg(long, value_name = "RANGE", default_value = "1000-1299", conflicts_with = "folder")]
    seeds: String,
    /// Draw healthy tasks only
    #[arg(long, conflicts_with = "folder")]
    healthy: bool,
    /// Machines of each drawn task [default: drawn between 4 and 256]
    #[arg(long, value_name = "N", conflicts_with = "folder")]
    machines: Option<usize>,
    /// Methods, by commas
    #[arg(long, value_parser = methods(), value_delimiter = ',', default_value = "lstm-vae")]
    method: Vec<Method>,
    /// Smallest score that names a machine [default: the method's own]
    #[arg(long, value_name = "SCORE")]
    threshold: Option<f64>,
    /// Probability that chance names a machine of a healthy task, at most
    #[arg(long, value_name = "P", default_value_t = crate::machines::detect::FALSE_ALARMS)]
    false_alarms: f64,
    /// Faults whose label `z_long` is smaller are not asked for
    #[arg(long, value_name = "Z", default_value_t = 0.0)]
    min_z: f64,
    /// Measure the delay from onset to alert (many calls a task)
    #[arg(long)]
    delay: bool,
    /// List the tasks with a wrong answer
    #[arg(long)]
    show: bool,
    /// Models and metric order from `machines train`
    #[arg(long, value_name = "FILE")]
    models: Option<PathBuf>,
    /// Form of the result
    #[arg(long, value_enum, default_value_t = Format::Text)]
    format: Format,
}

/// Runs `machines score`.
///
/// # Errors
/// Bad arguments, a folder or labels that can't be read.
pub fn run(args: &ScoreArgs) -> anyhow::Result<Exit> {
    let names = Names::built_in();
    let models = args.models.as_deref().map_or_else(Models::shipped, Models::load)?;
    let cases = match &args.folder {
        Some(folder) => cases_of(folder)?,
        None => suite(
            seeds(&args.seeds)?,
            Drawn {
                healthy: args.healthy,
                machines: args.machines,
            },
        ),
    };
    let progress = Progress::counting("scoring", "tasks");
    let done = AtomicU64::new(0);
    let told = || progress.rows(done.fetch_add(1, Ordering::Relaxed) + 1);
    let scores: Vec<Score> = args
        .method
        .iter()
        .map(|&method| {
            let settings = Settings {
                method,
                threshold: args.threshold,
                false_alarms: args.false_alarms.clamp(1e-12, 0.5),
                ..Settings::default()
            };
            score(&cases, &models, &names, settings, args.min_z, args.delay, &told)
        })
        .collect();
    drop(progress);
    match args.format {
        Format::Text => print(&text(&scores, args.show))?,
        Format::Json => {
            let line = serde_json::to_string(&scores).map_err(|reason| WriteError::Format {
                what: "the score",
                reason: reason.to_string(),
            })?;
            print(&(line + "\n"))?;
        }
    }
    Ok(Exit::Success)
}

fn text(scores: &[Score], show: bool) -> String {
    let mut out = String::new();
    // Writing into a string can't fail.
    for score in scores {
        if scores.len() == 1 {
            let _ = writeln!(out, "{:22} tasks found missed false alarms", "fault");
            for (fault, tally) in &score.faults {
                let _ = writeln!(
                    out,
                    "{fault:22} {:5} {:5} {:6} {:12}",
                    tally.tasks, tally.found, tally.missed, tally.false_alarms
                );
            }
        }
        for outcome in score.outcomes.iter().filter(|_| show) {
            let hit = outcome.named.iter().any(|node| outcome.truth.contains(node));
            let wrong = outcome.named.iter().any(|node| !outcome.truth.contains(node));
            if wrong || (outcome.wanted && !hit) || outcome.failed.is_some() {
                let _ = writeln!(
                    out,
                    "  {} ({}, {} machines): true {:?} named {:?} by {} (score {:.2}, {:.2} is needed) {}",
                    outcome.name,
                    outcome.fault,
                    outcome.machines,
                    outcome.truth,
                    outcome.named,
                    outcome.metric.as_deref().unwrap_or("-"),
                    outcome.score,
                    outcome.needed,
                    outcome.failed.as_deref().unwrap_or_default()
                );
            }
        }
        let _ = write!(
            out,
            "{:13} precision {:.3} recall {:.3} F1 {:.3}  tasks {} failed {}; healthy: {} false alarms in {:.1} machine-days",
            score.method,
            score.precision,
            score.recall,
            score.f1,
            score.total.tasks,
            score.total.failed,
            score.healthy_false_alarms,
            score.healthy_machine_days
        );
        if let (Some(median), Some(p95)) = (score.delay_median_s, score.delay_p95_s) {
            let _ = write!(out, "; onset to alert: median {median:.0} s, 95 % within {p95:.0} s");
        }
        out.push('\n');
    }
    out
}
