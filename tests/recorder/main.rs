//! The recorder against real releases of megatron-core: eight processes, a simulated clock, and the verdict on what they wrote.
//!
//! Where Python or the releases are missing and can't be fetched, each test says so and passes, unless
//! `MT_DETECTOR_REQUIRE` names `recorder`: then it fails.

#[path = "../common/mod.rs"]
mod common;

mod posting;
mod releases;
#[path = "../clickhouse/server.rs"]
#[allow(dead_code, reason = "the tests of ClickHouse use the rest")]
mod server;
mod training;
mod verdicts;

use std::process::Command;

/// What the recorder writes, loses and tells on its own: `test_recorder.py`, test by test.
#[test]
fn the_recorders_own_tests_pass() {
    let Some(releases) = releases::releases() else {
        return;
    };
    let newest = releases.last().expect("a release");
    let output = Command::new("python3")
        .arg(training::here().join("test_recorder.py"))
        .env("MEGATRON_CORE", &newest.folder)
        .env("PYTHONPATH", training::recorder())
        .env("PYTHONDONTWRITEBYTECODE", "1")
        .output()
        .expect("python3 starts");
    let words = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{words}");
    assert!(words.contains("\nOK"), "{words}");
}
