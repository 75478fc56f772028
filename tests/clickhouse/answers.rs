//! Damaged answers: an exit code of the program's own, in time, whatever a server or a proxy sends.
//!
//! `MT_DETECTOR_ANSWERS=N` damages N answers; without it there are some dozens.

use std::time::{Duration, Instant};

use crate::common::Workdir;
use crate::server::database;

const SOME: u64 = 60;
/// Questions of an analysis: any of their answers may be the damaged one.
const QUESTIONS: u64 = 12;
const LONGEST: Duration = Duration::from_secs(10);

#[test]
fn no_answer_brings_the_program_down() {
    let Some(database) = database("answers") else { return };
    let database = database.with_slow_rank();
    let count = std::env::var("MT_DETECTOR_ANSWERS")
        .ok()
        .and_then(|text| text.parse().ok());
    let commands: [&[&str]; 4] = [
        &["analyze", "--no-files", "--format", "json", "--retries", "0"],
        &[
            "analyze",
            "--no-files",
            "--format",
            "json",
            "--retries",
            "0",
            "--reduce",
            "local",
        ],
        &["jobs", "--retries", "0"],
        &["export", "--out", "job.parquet", "--force", "--retries", "0"],
    ];
    let mut codes = [0_u64; 6];
    let workdir = Workdir::new();
    for seed in 0..count.unwrap_or(SOME) {
        let args = commands[(seed % 7 % 4) as usize];
        let wire = if seed % 3 == 0 { "&wire=1" } else { "" };
        database.faults(&format!("spare={}&damage=1&seed={seed}{wire}", seed / 7 % QUESTIONS));
        let began = Instant::now();
        let outcome = workdir.run_on(&database, args);
        assert!(began.elapsed() < LONGEST, "seed {seed}: {:?}", began.elapsed());
        let code = outcome.code.filter(|code| (0..=5).contains(code));
        let code = code.unwrap_or_else(|| panic!("seed {seed}, {args:?}: {outcome:?}"));
        assert!(
            code == 0 || outcome.stdout.is_empty(),
            "seed {seed}, {args:?}: {outcome:?}"
        );
        codes[code as usize] += 1;
    }
    database.faults("");
    println!("answers, by exit code: {codes:?}");
    assert!(codes[4] > 0, "{codes:?}");
}
