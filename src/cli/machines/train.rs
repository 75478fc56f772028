//! `machines train` and `machines order`: models and the order of the metrics.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use clap::Args;

use super::seeds;
use crate::cli::exit::{ArgumentError, Exit};
use crate::cli::progress::Progress;
use crate::cli::stdout::{print, tell};
use crate::machines::MachinesError;
use crate::machines::detect::{Settings, detect};
use crate::machines::evaluate::{Case, cases_of};
use crate::machines::input::read;
use crate::machines::method::Method;
use crate::machines::model::store::Models;
use crate::machines::model::train::Training;
use crate::machines::names::Names;
use crate::machines::order::{order, rows_of};
use crate::machines::samples::Minutes;
use crate::machines::samples::Task;
use crate::machines::simulate::{Label, Plan, simulate};
use crate::machines::train::{self, train};

/// Arguments of `machines train`, as typed.
#[derive(Debug, Args)]
pub struct TrainArgs {
    /// Folder of labelled tasks; those without a fault train the denoisers, all of them the order
    #[arg(value_name = "FOLDER", required_unless_present = "simulated")]
    folder: Option<PathBuf>,
    /// Train on simulated tasks of these seeds instead: A-B or A
    #[arg(long, value_name = "RANGE", conflicts_with = "folder")]
    simulated: Option<String>,
    /// File for the models
    #[arg(long, value_name = "FILE")]
    out: PathBuf,
    /// Seed of everything drawn
    #[arg(long, value_name = "N", default_value_t = 1)]
    seed: u64,
    /// Most passes over the windows; training stops early when the error no longer falls
    #[arg(long, value_name = "N", default_value_t = 60)]
    epochs: usize,
    /// Most windows a metric
    #[arg(long, value_name = "N", default_value_t = 100_000)]
    windows: usize,
}

/// Arguments of `machines order`, as typed.
#[derive(Debug, Args)]
pub struct OrderArgs {
    /// Folder of labelled tasks
    #[arg(value_name = "FOLDER", required_unless_present = "simulated")]
    folder: Option<PathBuf>,
    /// Learn on simulated tasks of these seeds instead: A-B or A
    #[arg(long, value_name = "RANGE", conflicts_with = "folder")]
    simulated: Option<String>,
}

/// Runs `machines train`.
///
/// # Errors
/// Bad arguments, tasks that can't be read, no healthy one, a file that can't be written.
pub fn run(args: &TrainArgs) -> anyhow::Result<Exit> {
    if args.epochs == 0 || args.windows < 100 {
        return Err(ArgumentError::new("--epochs", "at least 1 epoch and 100 windows are needed").into());
    }
    let names = Names::built_in();
    let tasks = labelled(args.folder.as_deref(), args.simulated.as_deref(), &names)?;
    let order = learn_order(&tasks, &names)?;
    let healthy = tasks.into_iter().filter(|(_, label)| label.onset_s.is_none());
    let healthy: Vec<Task> = healthy.map(|(task, _)| task).collect();
    if healthy.is_empty() {
        return Err(MachinesError::NoSamples("no task without a fault to train on".to_owned()).into());
    }
    let settings = train::Settings {
        training: Training {
            seed: args.seed,
            epochs: args.epochs,
            ..Training::default()
        },
        windows: args.windows,
    };
    let made = format!("{} healthy tasks, seed {}", healthy.len(), args.seed);
    let progress = Progress::counting("training", "epochs");
    let models = train(&healthy, &names, settings, order, made, &|_, epoch, _| {
        progress.rows(epoch as u64)
    });
    drop(progress);
    for (metric, stored) in &models.networks {
        tell(format_args!(
            "{metric}: mean squared error {:.1e} after {} epochs",
            stored.error, stored.epochs
        ));
    }
    models.save(&args.out)?;
    Ok(Exit::Success)
}

/// Runs `machines order`.
///
/// # Errors
/// Bad arguments, tasks that can't be read.
pub fn run_order(args: &OrderArgs) -> anyhow::Result<Exit> {
    let names = Names::built_in();
    let tasks = labelled(args.folder.as_deref(), args.simulated.as_deref(), &names)?;
    let order = learn_order(&tasks, &names)?;
    print(&(order.join("\n") + "\n"))?;
    Ok(Exit::Success)
}

fn labelled(folder: Option<&Path>, simulated: Option<&str>, names: &Names) -> anyhow::Result<Vec<(Task, Label)>> {
    if let Some(range) = simulated {
        let plan = |seed| Plan {
            seed,
            ..Plan::default()
        };
        return Ok(seeds(range)?.map(|seed| simulate(&plan(seed))).collect());
    }
    let Some(folder) = folder else { return Ok(Vec::new()) };
    let mut tasks = Vec::new();
    for case in cases_of(folder)? {
        if let Case::File(path, name, label) = case {
            tasks.push((read(&[path], Some(&name), Minutes::default(), names)?, label));
        }
    }
    Ok(tasks)
}

/// The order of the metrics by a tree on the scores of raw levels, which need no models.
fn learn_order(tasks: &[(Task, Label)], names: &Names) -> anyhow::Result<Vec<String>> {
    let mut known: BTreeMap<&str, ()> = BTreeMap::new();
    for (task, _) in tasks {
        known.extend(task.metrics.iter().map(|metric| (metric.name.as_str(), ())));
    }
    let metrics: Vec<String> = known.keys().map(|name| (*name).to_owned()).collect();
    let settings = Settings {
        method: Method::Raw,
        ..Settings::default()
    };
    let models = Models::shipped()?;
    let mut rows = Vec::new();
    for (task, label) in tasks {
        let detection = detect(task, &models, names, settings)?;
        rows.extend(rows_of(&detection, label, &metrics, settings.continuity_s));
    }
    Ok(order(&rows, metrics.len())
        .into_iter()
        .map(|place| metrics[place].clone())
        .collect())
}
