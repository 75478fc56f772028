//! Wall time and peak memory of `analyze` by the number of ranks, beside what Polars takes for nothing but reading the
//! columns that an analysis needs, and for reading four of them and a group-by. Run with `cargo bench --bench scale` (Linux: peak memory is read from /proc); `-- 256 1024` chooses sizes.

mod measured;

use std::error::Error;
use std::path::Path;
use std::process::{Command, Stdio};

use measured::Measured;
use mt_detector::evaluation::simulate::{Scenario, faults::RankFactor, write_job};
use polars::prelude::*;

const RANKS: [usize; 4] = [256, 1_024, 4_096, 10_240];
const ITERATIONS: u32 = 40;
const WARMUP: u32 = 10;
const RUNS: usize = 3;
/// Jobs with single calls have at most as many ranks: their files are large.
const MOST_TRACED: usize = 1_024;
/// The arguments with which the program calls itself for what Polars does alone.
const BARE: &str = "bare-read";
const GROUPED: &str = "bare-read-and-group-by";
/// The columns that an analysis needs.
const NEEDED: [&str; 9] = [
    "timestamp",
    "job",
    "metric_name",
    "subname",
    "rank",
    "iteration",
    "node",
    "rerun_uuid",
    "metric_values",
];

fn main() -> Result<(), Box<dyn Error>> {
    let args: Vec<String> = std::env::args().skip(1).filter(|arg| !arg.starts_with("--")).collect();
    match args.iter().map(String::as_str).collect::<Vec<_>>().as_slice() {
        [BARE, file] => return bare_read(Path::new(file)),
        [GROUPED, file] => return bare_read_and_group_by(Path::new(file)),
        _ => {}
    }
    let sizes: Vec<usize> = args.iter().filter_map(|arg| arg.parse().ok()).collect();
    let sizes = if sizes.is_empty() { RANKS.to_vec() } else { sizes };

    println!("{ITERATIONS} iterations, {WARMUP} of them warm-up, all six algorithms, median of {RUNS} runs");
    println!(
        "| ranks | stages | rows | timers clustered | classic s | classic MB | peer s | peer MB | bare read s | bare read MB \
         | classic / bare | peer / bare | read and group-by s |"
    );
    println!("|---|---|---|---|---|---|---|---|---|---|---|---|---|");
    for (pp, trace) in [(1, false), (8, false), (8, true)] {
        for &ranks in sizes.iter().filter(|&&ranks| !trace || ranks <= MOST_TRACED) {
            let folder = tempfile::tempdir()?;
            let file = write_input(folder.path(), ranks, pp, trace)?;
            let clustered = timers_clustered(&file)?;
            let rows = ParquetReader::new(std::fs::File::open(&file)?).num_rows()?;
            let analyze = |rules: &str| {
                let mut command = Command::new(env!("CARGO_BIN_EXE_mt-detector"));
                measure(command.args(["analyze", "--no-files", "--rules", rules]).arg(&file))
            };
            let (classic, peer) = (analyze("classic")?, analyze("peer")?);
            let alone = |mode: &str| measure(Command::new(std::env::current_exe()?).arg(mode).arg(&file));
            let (bare, grouped) = (alone(BARE)?, alone(GROUPED)?.seconds);
            let [classic_times, peer_times] = [&classic, &peer].map(|run| run.seconds / bare.seconds);
            let [classic, peer, bare] =
                [classic, peer, bare].map(|run| format!("{:.2} | {:.0}", run.seconds, run.megabytes));
            let stages = if trace {
                format!("{pp}, with calls")
            } else {
                pp.to_string()
            };
            println!(
                "| {ranks} | {stages} | {rows} | {clustered} | {classic} | {peer} | {bare} \
                 | {classic_times:.1} | {peer_times:.1} | {grouped:.2} |"
            );
        }
    }
    Ok(())
}

/// A job with one slow rank: without pipeline stages some twelve timers are clustered, with them three. With single calls
/// its steps have 16 microbatches, so that 1,024 ranks make 1.4 million calls of transfers and as many of computing.
fn write_input(folder: &Path, ranks: usize, pp: usize, trace: bool) -> Result<std::path::PathBuf, Box<dyn Error>> {
    let scenario = Scenario {
        job: format!("scale-{ranks}-{pp}"),
        tp: 1,
        pp,
        dp: ranks / pp,
        iterations: ITERATIONS,
        trace,
        microbatches: if trace { 16 } else { Scenario::default().microbatches },
        optimizer_timers: pp == 1,
        rank_spread: 0.01,
        slow_ranks: vec![RankFactor {
            rank: ranks / 3,
            factor: 1.5,
        }],
        ..Scenario::default()
    };
    Ok(write_job(&scenario, folder, false)?.parquet)
}

fn timers_clustered(file: &Path) -> Result<usize, Box<dyn Error>> {
    let output = Command::new(env!("CARGO_BIN_EXE_mt-detector"))
        .args(["analyze", "--no-files", "--format", "json", "--rules", "classic"])
        .arg(file)
        .stderr(Stdio::inherit())
        .output()?;
    let summary: serde_json::Value = serde_json::from_slice(&output.stdout)?;
    let timers = summary["timers"].as_array().ok_or("no timers in the summary")?;
    Ok(timers.iter().filter(|timer| timer["fate"] == "clustered").count())
}

/// The run with the median wall time.
fn measure(command: &mut Command) -> Result<Measured, Box<dyn Error>> {
    let mut runs = (0..RUNS)
        .map(|_| measured::run(command))
        .collect::<Result<Vec<_>, _>>()?;
    runs.sort_by(|a, b| a.seconds.total_cmp(&b.seconds));
    Ok(runs.swap_remove(RUNS / 2))
}

/// What reading the columns that an analysis needs costs, and nothing else.
fn bare_read(file: &Path) -> Result<(), Box<dyn Error>> {
    let frame = ParquetReader::new(std::fs::File::open(file)?)
        .with_columns(Some(NEEDED.map(str::to_owned).to_vec()))
        .finish()?;
    println!("{} rows", frame.height());
    Ok(())
}

/// What reading the window costs without any analysis: the same columns, first values, mean by timer and rank.
fn bare_read_and_group_by(file: &Path) -> Result<(), Box<dyn Error>> {
    let columns = ["subname", "rank", "iteration", "metric_values"]
        .map(str::to_owned)
        .to_vec();
    let mut frame = ParquetReader::new(std::fs::File::open(file)?)
        .with_columns(Some(columns))
        .finish()?;
    let first = frame.column("metric_values")?.list()?.lst_get_first()?;
    frame.drop_in_place("metric_values")?;
    frame.with_column(first)?;
    let groups = frame.group_by(["subname", "rank"])?;
    let means = groups.select(["seconds"]).groups()?;
    println!("{} groups", means.height());
    Ok(())
}

/// The first element of each list of a column.
trait FirstOfList {
    fn lst_get_first(&self) -> PolarsResult<Column>;
}

impl FirstOfList for ListChunked {
    fn lst_get_first(&self) -> PolarsResult<Column> {
        let first = self
            .amortized_iter()
            .map(|list| list.and_then(|list| list.as_ref().f64().ok().and_then(|values| values.get(0))));
        Ok(first
            .collect::<Float64Chunked>()
            .with_name("seconds".into())
            .into_column())
    }
}
