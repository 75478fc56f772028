//! Exports and loads that are killed and interrupted at any moment: the whole file or the whole earlier one, and no row twice.
//!
//! `MT_DETECTOR_SIGNALS=N` for N of each signal and command.

use std::fs::File;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use polars::prelude::*;

use crate::common::{Workdir, slow_rank_5};
use crate::server::{Database, database};

const SOME: u32 = 12;

fn rounds() -> u32 {
    let asked = std::env::var("MT_DETECTOR_SIGNALS").ok();
    asked.and_then(|text| text.parse().ok()).unwrap_or(SOME)
}

impl Database {
    /// Starts the program, ends it at a moment of its run, and tells whether it was ended in time.
    fn ended(&self, workdir: &Workdir, args: &[&str], round: u32, whole: Duration) -> bool {
        let mut child = workdir
            .bare_command(args)
            .env("CLICKHOUSE_URL", &self.server.url)
            .env("CLICKHOUSE_DATABASE", self.name)
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .expect("it starts");
        // The golden ratio's multiples are spread evenly.
        std::thread::sleep(whole.mul_f64((f64::from(round) * 0.618_033_988_75).fract() * 1.2));
        let name = if round.is_multiple_of(2) { "-KILL" } else { "-TERM" };
        let id = child.id().to_string();
        let _ = Command::new("kill").args([name, &id]).stderr(Stdio::null()).status();
        !child.wait().expect("it ends").success()
    }
}

/// How long a run takes that nobody ends.
fn measured(database: &Database, workdir: &Workdir, args: &[&str]) -> Duration {
    let began = Instant::now();
    workdir.run_on(database, args).succeeded();
    began.elapsed()
}

#[test]
fn an_export_is_whole_whatever_ends_it() {
    let Some(database) = database("exports_ended") else {
        return;
    };
    let database = database.with_slow_rank();
    let workdir = Workdir::new();
    let rows = |name: &str| {
        let file = File::open(workdir.path(name)).expect("a file");
        ParquetReader::new(file).finish().expect("a whole file").height()
    };
    let (again, first) = (
        ["export", "--out", "a.parquet", "--force"],
        ["export", "--out", "b.parquet"],
    );
    let whole = measured(&database, &workdir, &again);
    let expected = rows("a.parquet");
    let mut ended = 0;
    for round in 0..2 * rounds() {
        ended += u32::from(database.ended(&workdir, &again, round, whole));
        assert_eq!(rows("a.parquet"), expected, "round {round}");
        database.ended(&workdir, &first, round, whole);
        if workdir.path("b.parquet").exists() {
            assert_eq!(rows("b.parquet"), expected, "round {round}");
            std::fs::remove_file(workdir.path("b.parquet")).expect("removed");
        }
    }
    println!("exports: {ended} of {} ended before they were done", 2 * rounds());
    assert!(ended > 0);
}

#[test]
fn a_load_writes_no_row_twice_whatever_ends_it() {
    let Some(database) = database("loads_ended") else {
        return;
    };
    let database = database.with_table();
    let workdir = Workdir::new();
    workdir.file("a.ndjson", slow_rank_5("job"));
    let args = ["load", "a.ndjson"];
    let whole = measured(&database, &workdir, &args);
    let (mut ended, mut partly) = (0, 0);
    for round in 0..2 * rounds() {
        database.sql("TRUNCATE TABLE megatron_metrics");
        ended += u32::from(database.ended(&workdir, &args, round, whole));
        let count = || database.sql("SELECT count(), uniqExact(rank, iteration) FROM megatron_metrics");
        let written = count();
        let (rows, different) = written.trim().split_once('\t').expect("two counts");
        assert_eq!(rows, different, "round {round}");
        partly += u32::from(rows != "0" && rows != "320");
        workdir.run_on(&database, &args).succeeded();
        assert_eq!(count().trim(), "320\t320", "round {round}, {rows} rows were there");
    }
    println!(
        "loads: {ended} of {} ended before they were done, {partly} with a part of the rows",
        2 * rounds()
    );
    assert!(ended > 0);
}
