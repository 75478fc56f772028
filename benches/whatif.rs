//! Wall time and peak memory of `whatif` on op traces, and of `analyze` with what it costs, by size. Run with `cargo bench
//! --bench whatif -- TRACE...` (Linux: peak memory is read from /proc); a trace is measured as it is and copied to more
//! replicas. Without a trace only simulated jobs are measured.

mod measured;

use std::error::Error;
use std::path::Path;
use std::process::Command;
use std::time::Instant;

use mt_detector::evaluation::simulate::{Scenario, faults::RankFactor, write_job};
use mt_detector::job::{Selection, load};
use mt_detector::rules::{RulesSettings, judge};
use mt_detector::source::discover;
use mt_detector::whatif::timers::{Asked, Fault, Target, what_if};
use polars::prelude::*;

/// Copies of a trace's replicas.
const COPIES: [i32; 3] = [1, 8, 64];
const JOBS: [(usize, bool); 3] = [(256, true), (1_024, true), (10_240, false)];

fn main() -> Result<(), Box<dyn Error>> {
    let program = env!("CARGO_BIN_EXE_mt-detector");
    let folder = tempfile::tempdir()?;
    println!("| input | rows | s | MB |\n|---|---|---|---|");
    for trace in std::env::args().skip(1).filter(|arg| !arg.starts_with("--")) {
        for copies in COPIES {
            let path = folder.path().join("trace.parquet");
            let rows = copy(Path::new(&trace), copies, &path)?;
            let run = measured::run(
                Command::new(program)
                    .args(["whatif", "--model", "published", "--format", "json"])
                    .arg(&path),
            )?;
            println!(
                "| {trace} x {copies} | {rows} | {:.2} | {:.0} |",
                run.seconds, run.megabytes
            );
        }
    }
    for (ranks, trace) in JOBS {
        let scenario = Scenario {
            pp: 8,
            tp: 2,
            dp: ranks / 16,
            trace,
            slow_ranks: vec![RankFactor { rank: 5, factor: 1.5 }],
            ..Scenario::default()
        };
        let job = folder.path().join(format!("job-{ranks}"));
        write_job(&scenario, &job, false)?;
        let path = job.join(format!("{}.parquet", scenario.job));
        let rows = ParquetReader::new(std::fs::File::open(&path)?).num_rows()?;
        let run = measured::run(
            Command::new(program)
                .args(["analyze", "--no-files", "--format", "json"])
                .arg(&path),
        )?;
        let (analysing, replaying) = parts(&path)?;
        let calls = if trace { "with calls" } else { "sums" };
        println!(
            "| analyze, {ranks} ranks, {calls} (all rules {analysing:.2} s, of which the replay {replaying:.2} s) | {rows} | \
             {:.2} | {:.0} |",
            run.seconds, run.megabytes
        );
    }
    Ok(())
}

/// Seconds that the rules take on a job, and what the replay of it alone does.
fn parts(path: &Path) -> Result<(f64, f64), Box<dyn Error>> {
    let found = discover(&[path.to_owned()])?;
    let job = load(&found.files, &Selection::default(), &|_| ())?;
    let began = Instant::now();
    drop(judge(&job, &RulesSettings::default(), &[]));
    let analysing = began.elapsed().as_secs_f64();
    let fault = Fault::lasting(Target::Computing(vec![5]));
    let began = Instant::now();
    drop(what_if(&job, &[fault], Asked::default()));
    Ok((analysing, began.elapsed().as_secs_f64()))
}

/// Writes a trace with more replicas and gives its number of rows.
fn copy(trace: &Path, copies: i32, path: &Path) -> Result<usize, Box<dyn Error>> {
    let frame = ParquetReader::new(std::fs::File::open(trace)?).finish()?;
    let replicas = frame
        .column("dp_rank")?
        .as_materialized_series()
        .cast(&DataType::Int32)?;
    let count = replicas.max::<i32>()?.unwrap_or_default() + 1;
    let mut all: Option<DataFrame> = None;
    for number in 0..copies {
        let mut part = frame.clone();
        let moved = replicas.i32()?.apply_values(|replica| replica + number * count);
        part.with_column(moved.into_series().with_name("dp_rank".into()).into_column())?;
        match &mut all {
            Some(all) => {
                all.vstack_mut(&part)?;
            }
            None => all = Some(part),
        }
    }
    let mut all = all.ok_or("no copies")?;
    let rows = all.height();
    ParquetWriter::new(std::fs::File::create(path)?).finish(&mut all)?;
    Ok(rows)
}
