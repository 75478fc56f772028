//! What a job costs that is read from ClickHouse: jobs made inside of the test server (`tests/clickhouse/server.py`), read
//! as rows and as tables that the server makes. Run with `cargo bench --bench clickhouse` (Linux); `-- 10240 100000`
//! chooses numbers of ranks. The server works on the same processors, so that wall times hold both.

#[path = "../tests/common/mod.rs"]
mod common;
mod measured;
#[path = "../tests/clickhouse/server.rs"]
#[allow(dead_code, reason = "the tests use the rest")]
mod server;

use std::error::Error;
use std::process::Command;

use serde_json::Value;
use server::Database;

const RANKS: [u32; 2] = [1_024, 10_240];
const ITERATIONS: u32 = 200;
/// Jobs with more ranks are not read row by row: their rows need more memory than many a machine has.
const MOST_BY_ROWS: u32 = 20_000;
/// Tensor-parallel size and pipeline stages.
const TP: u32 = 4;
const PP: u32 = 8;
/// Timers with their usual seconds; the first three after the step slow down with the rank.
const TIMERS: [(&str, f64); 12] = [
    ("interval-time", 10.0),
    ("forward-compute", 3.0),
    ("backward-compute", 6.0),
    ("self-attention-linear-qkv", 0.8),
    ("batch-generator", 0.01),
    ("forward-send", 0.05),
    ("forward-recv", 0.4),
    ("backward-send", 0.05),
    ("backward-recv", 0.4),
    ("all-grads-sync", 0.5),
    ("optimizer", 0.2),
    ("params-all-gather", 0.1),
];

fn main() -> Result<(), Box<dyn Error>> {
    let sizes: Vec<u32> = std::env::args().skip(1).filter_map(|arg| arg.parse().ok()).collect();
    let sizes = if sizes.is_empty() { RANKS.to_vec() } else { sizes };
    let Some(database) = server::database("bench") else {
        return Err("there is no server to measure with".into());
    };
    database.sql(&schema()?);
    println!("{ITERATIONS} iterations, 10 of them warm-up; one rank computes 15 % slower");
    println!(
        "| ranks | rows | read as | iterations a column | MB over the wire | wall s | client processor s | client MB | named |"
    );
    println!("|---|---|---|---|---|---|---|---|---|");
    for ranks in sizes {
        let job = format!("ranks-{ranks}");
        fill(&database, &job, ranks);
        let rows = database.sql(&format!("SELECT count() FROM megatron_metrics WHERE job = '{job}'"));
        let tables = ["--reduce", "server"];
        let by_rows = ["--reduce", "local"];
        for (name, flags) in [("tables", tables), ("rows", by_rows)] {
            if name == "rows" && ranks > MOST_BY_ROWS {
                continue;
            }
            let before = sent(&database)?;
            let mut command = Command::new(env!("CARGO_BIN_EXE_mt-detector"));
            command.args(["analyze", "--no-files", "--format", "json", "--job-id", &job]);
            command.args(["--clickhouse-url", &database.server.url, "--database", database.name]);
            let run = measured::run(command.args(flags))?;
            let summary: Value = serde_json::from_str(&run.stdout)?;
            println!(
                "| {ranks} | {} | {name} | {} | {:.0} | {:.1} | {:.1} | {:.0} | {} |",
                rows.trim(),
                summary["window"]["iterations_per_column"],
                (sent(&database)? - before) / 1e6,
                run.seconds,
                run.processor,
                run.megabytes,
                summary["anomaly_ranks"]
            );
        }
    }
    Ok(())
}

fn schema() -> Result<String, Box<dyn Error>> {
    let output = Command::new(env!("CARGO_BIN_EXE_mt-detector")).arg("schema").output()?;
    Ok(String::from_utf8(output.stdout)?
        .trim()
        .trim_end_matches(';')
        .to_owned())
}

/// Bytes that the server has sent for this database so far.
fn sent(database: &Database) -> Result<f64, Box<dyn Error>> {
    let answer = database.server.post(&format!("/sent?database={}", database.name), "");
    Ok(answer.trim().parse()?)
}

/// Writes a job of healthy ranks but one, some iterations at a time.
fn fill(database: &Database, job: &str, ranks: u32) {
    let replicas = ranks / (TP * PP);
    let slow = ranks / 3;
    for (group, position) in [
        ("tp", format!("number % {TP}")),
        ("dp", format!("intDiv(number, {TP}) % {replicas}")),
        ("pp", format!("intDiv(number, {})", TP * replicas)),
    ] {
        database.sql(&format!(
            "INSERT INTO megatron_metrics SELECT toDateTime('2026-01-01 08:00:00', 'UTC'), '{job}',              'megatron_parallel_group_rank', '{group}', number, 0, 'node-' || toString(intDiv(number, 8)), '', 'r0',              [{position}], '{{}}' FROM numbers({ranks})"
        ));
    }
    let names: Vec<String> = TIMERS.iter().map(|(name, _)| format!("'{name}'")).collect();
    let seconds: Vec<String> = TIMERS.iter().map(|(_, seconds)| seconds.to_string()).collect();
    let timers = TIMERS.len() as u32;
    let uniform = |salt: u32| format!("(cityHash64(number, {salt}, i) % 1000003) / 1000003");
    let at_once = (5_000_000 / (ranks * timers)).clamp(1, ITERATIONS);
    for first in (0..ITERATIONS).step_by(at_once as usize) {
        let count = at_once.min(ITERATIONS - first);
        // Three uniform numbers make nearly a normal one, of 2 %. The slow rank's tensor-parallel group waits for it.
        database.sql(&format!(
            "INSERT INTO megatron_metrics SELECT toDateTime('2026-01-01 08:00:00', 'UTC') + 10 * i, '{job}',              'megatron_timers', [{}][k + 1], r, i, 'node-' || toString(intDiv(r, 8)), '', 'r0',              [[{}][k + 1] * (1 + 0.04 * ({} + {} + {} - 1.5))              * if((k IN (1, 2) AND intDiv(r, {TP}) = {}) OR (k = 3 AND r = {slow}), 1.15, 1)], '{{}}'              FROM (SELECT number, {first} + intDiv(number, {}) AS i, intDiv(number, {ranks}) % {timers} AS k,              number % {ranks} AS r FROM numbers({}))",
            names.join(", "),
            seconds.join(", "),
            uniform(1),
            uniform(2),
            uniform(3),
            slow / TP,
            ranks * timers,
            u64::from(ranks * timers) * u64::from(count),
        ));
    }
}
