//! Wall time and peak memory of `machines detect` by the number of machines (15 minutes, a sample a second, 7 metrics), and
//! seconds an epoch of training on a million windows. Run with `cargo bench --bench machines` (Linux: peak memory is read
//! from /proc); `-- 1000` chooses sizes, `-- train` the training alone. 10,000 machines take 0.5 GB of disk in the temporary folder.

mod measured;

use std::error::Error;
use std::process::Command;
use std::time::Instant;

use mt_detector::machines::model::network::WINDOW;
use mt_detector::machines::model::train::{Training, train};
use mt_detector::machines::simulate::{Plan, simulate};
use mt_detector::machines::write::write_task;

const MACHINES: [usize; 3] = [100, 1_000, 10_000];
const RUNS: usize = 3;
const WINDOWS: usize = 1_000_000;
const EPOCHS: usize = 3;

fn main() -> Result<(), Box<dyn Error>> {
    let args: Vec<String> = std::env::args().skip(1).filter(|arg| !arg.starts_with("--")).collect();
    let sizes: Vec<usize> = args.iter().filter_map(|arg| arg.parse().ok()).collect();
    let only_training = args.iter().any(|arg| arg == "train");
    if !only_training {
        let sizes = if sizes.is_empty() {
            MACHINES.to_vec()
        } else {
            sizes.clone()
        };
        detecting(&sizes)?;
    }
    if only_training || sizes.is_empty() {
        training();
    }
    Ok(())
}

fn detecting(sizes: &[usize]) -> Result<(), Box<dyn Error>> {
    println!("15 minutes, a sample a second, 7 metrics, Parquet; median of {RUNS} runs");
    println!("| machines | samples | MB of file | method | s | processor s | MB |\n|---|---|---|---|---|---|---|");
    for &machines in sizes {
        let folder = tempfile::tempdir()?;
        let (task, label) = simulate(&Plan {
            seed: 7,
            machines: Some(machines),
            seconds: Some(900),
            fault: Some("healthy".to_owned()),
            metrics: Some(7),
        });
        write_task(folder.path(), &task, &label)?;
        let samples = task.quality.samples;
        let path = folder.path().join(format!("{}.parquet", task.job));
        drop(task);
        let size = std::fs::metadata(&path)?.len() as f64 / 1e6;
        for method in ["lstm-vae", "raw"] {
            let mut runs = Vec::new();
            for _ in 0..RUNS {
                let mut command = Command::new(env!("CARGO_BIN_EXE_mt-detector"));
                command.args([
                    "machines",
                    "detect",
                    "--no-files",
                    "--format",
                    "json",
                    "--method",
                    method,
                ]);
                runs.push(measured::run(command.arg(&path))?);
            }
            runs.sort_by(|a, b| a.seconds.total_cmp(&b.seconds));
            let run = &runs[RUNS / 2];
            println!(
                "| {machines} | {samples} | {size:.0} | {method} | {:.2} | {:.2} | {:.0} |",
                run.seconds, run.processor, run.megabytes
            );
        }
    }
    Ok(())
}

/// Windows of a wave with a little noise: what they hold changes nothing about the time.
fn training() {
    let windows: Vec<[f32; WINDOW]> = (0..WINDOWS)
        .map(|place| std::array::from_fn(|step| 0.5 + 0.3 * ((place * 7 + step) as f32 * 0.37).sin()))
        .collect();
    let settings = Training {
        epochs: EPOCHS,
        patience: EPOCHS,
        ..Training::default()
    };
    let started = Instant::now();
    let trained = train(&windows, settings, &|_, _| ());
    let each = started.elapsed().as_secs_f64() / trained.epochs.max(1) as f64;
    println!("training on {WINDOWS} windows of a metric: {each:.1} s an epoch");
}
