//! How fast logs are read, beside `grep -c`, `rg -c` where it is there: printed by our own printer, one of about 100 MB a form. Run with
//! `cargo bench --bench logs` (Linux: peak memory is read from /proc); a number of megabytes may follow `--`.

mod measured;

use std::error::Error;
use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::Path;
use std::process::Command;

use mt_detector::source::logs::print::{LogForm, LogPrinter, PrintedJob, PrintedSizes, PrintedTimer};

const TIMERS: [&str; 12] = [
    "forward-backward",
    "forward-compute",
    "backward-compute",
    "batch-generator",
    "forward-recv",
    "forward-send",
    "backward-recv",
    "backward-send",
    "all-grads-sync",
    "params-all-gather",
    "optimizer-inner-step",
    "optimizer",
];
const FORMS: [(&str, LogForm, usize); 3] = [
    ("all", LogForm::All, 512),
    ("minmax", LogForm::MinMax, 512),
    ("oneline", LogForm::OneLine, 512),
];
/// What other programs print between the lines of a log.
const CHATTER: &str =
    "WARNING:megatron.core.utils:[rank 17] some message of another program that says nothing of a step: 0.25 s\n";

fn main() -> Result<(), Box<dyn Error>> {
    let program = env!("CARGO_BIN_EXE_mt-detector");
    let folder = tempfile::tempdir()?;
    let asked = std::env::args().find_map(|argument| argument.parse().ok());
    let bytes = asked.unwrap_or(100_u64) * 1_000_000;
    println!("| log | MB | reader | s | MB/s | peak MB |\n|---|---|---|---|---|---|");
    for (name, form, ranks) in FORMS {
        for chatter in [0, 20] {
            let path = folder.path().join(format!("{name}-{chatter}.log"));
            print(&path, form, ranks, chatter, bytes)?;
            let size = std::fs::metadata(&path)?.len() as f64 / 1e6;
            let line = |reader: &str, run: &measured::Measured| {
                println!(
                    "| {name}, {chatter} other lines a step | {size:.0} | {reader} | {:.2} | {:.0} | {:.0} |",
                    run.seconds,
                    size / run.seconds,
                    run.megabytes
                );
            };
            for threads in ["1", "2"] {
                let mut command = Command::new(program);
                command
                    .args(["jobs", "--format", "json"])
                    .arg(&path)
                    .env("RAYON_NUM_THREADS", threads);
                line(&format!("jobs, {threads} threads"), &measured::run(&mut command)?);
                let mut command = Command::new(program);
                command.args(["analyze", "--no-files", "--threads", threads]).arg(&path);
                line(&format!("analyze, {threads} threads"), &measured::run(&mut command)?);
            }
            for counter in ["grep", "rg"] {
                let mut command = Command::new(counter);
                command.args(["-c", "iteration"]).arg(&path);
                if let Ok(run) = measured::run(&mut command) {
                    line(&format!("{counter} -c"), &run);
                }
            }
        }
    }
    Ok(())
}

/// Prints a log of about so many bytes.
fn print(path: &Path, form: LogForm, ranks: usize, chatter: usize, bytes: u64) -> Result<(), Box<dyn Error>> {
    let job = PrintedJob {
        world: ranks,
        sizes: Some(PrintedSizes {
            tp: 8,
            cp: 1,
            ep: 1,
            pp: 8,
            pipeline_before_data: false,
        }),
        iterations: 1_000_000,
        interval: 1,
    };
    let mut out = BufWriter::new(File::create(path)?);
    let mut iteration = 1;
    let mut text = Vec::new();
    let mut written = 0;
    while written < bytes {
        text.clear();
        let seconds =
            |rank: usize, timer: usize| 0.2 + 0.001 * ((rank * 7 + timer * 3 + iteration as usize * 13) % 17) as f64;
        let cells: Vec<Vec<(u32, f64)>> = (0..TIMERS.len())
            .map(|timer| (0..ranks).map(|rank| (rank as u32, seconds(rank, timer))).collect())
            .collect();
        let timers: Vec<PrintedTimer<'_>> = TIMERS
            .iter()
            .zip(&cells)
            .map(|(name, cells)| (*name, cells.as_slice()))
            .collect();
        if written == 0 {
            LogPrinter::begin(&mut text, form, job)?;
        }
        let mut printer = LogPrinter::resume(&mut text, form, job);
        printer.step(iteration, 1_772_352_000_000_000 + iteration * 2_500_000, 2.5, &timers)?;
        for _ in 0..chatter {
            text.extend_from_slice(CHATTER.as_bytes());
        }
        out.write_all(&text)?;
        written += text.len() as u64;
        iteration += 1;
    }
    out.flush()?;
    Ok(())
}
