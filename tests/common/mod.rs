//! What the tests of the binary share: a folder of their own, a way to run the program, small hand-made jobs.
#![allow(dead_code, reason = "each test file uses its part")]

use std::fmt::Write as _;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// A temporary folder in which the program runs.
pub struct Workdir {
    folder: tempfile::TempDir,
}

/// How a run ended.
#[derive(Debug)]
pub struct Ran {
    pub code: Option<i32>,
    pub stdout: String,
    pub stderr: String,
}

impl Workdir {
    pub fn new() -> Self {
        Self {
            folder: tempfile::tempdir().expect("a temporary folder"),
        }
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// Writes a file and gives its path as an argument.
    pub fn file(&self, name: &str, content: impl AsRef<[u8]>) -> String {
        std::fs::write(self.path(name), content).expect("a file in the folder");
        name.to_owned()
    }

    /// A command of the program in this folder.
    pub fn command(&self, args: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_mt-detector"));
        command.args(args).current_dir(self.folder.path()).stdin(Stdio::null());
        command
    }

    pub fn run(&self, args: &[&str]) -> Ran {
        ran(&mut self.command(args))
    }

    /// Everything in the folder, files with their content, by relative path.
    pub fn content(&self, name: &str) -> Vec<(String, Vec<u8>)> {
        let root = self.path(name);
        let mut found = Vec::new();
        let mut open = vec![root.clone()];
        while let Some(folder) = open.pop() {
            for entry in std::fs::read_dir(&folder).expect("a folder").flatten() {
                let path = entry.path();
                if path.is_dir() {
                    open.push(path);
                } else {
                    let name = path.strip_prefix(&root).expect("inside").display().to_string();
                    found.push((name, std::fs::read(&path).expect("a readable file")));
                }
            }
        }
        found.sort();
        found
    }

    /// Names of what lies directly in the folder, hidden ones too.
    pub fn names(&self) -> Vec<String> {
        let mut names: Vec<String> = std::fs::read_dir(self.folder.path())
            .expect("the folder")
            .flatten()
            .map(|entry| entry.file_name().to_string_lossy().into_owned())
            .collect();
        names.sort();
        names
    }
}

pub fn ran(command: &mut Command) -> Ran {
    let output = command.output().expect("the program starts");
    Ran {
        code: output.status.code(),
        stdout: String::from_utf8(output.stdout).expect("text on standard output"),
        stderr: String::from_utf8(output.stderr).expect("text on standard error"),
    }
}

impl Ran {
    /// The JSON of `--format json`.
    pub fn json(&self) -> serde_json::Value {
        serde_json::from_str(&self.stdout).unwrap_or_else(|error| panic!("{error}: {self:?}"))
    }

    pub fn succeeded(self) -> Self {
        assert_eq!(self.code, Some(0), "{self:?}");
        self
    }
}

/// What tests may need from outside of the checkout, by the names that `MT_DETECTOR_REQUIRE` takes.
const OUTSIDE: [&str; 4] = [CLICKHOUSE, SHARED_DATA, RECORDER, BROWSER];
/// ClickHouse's engine, which needs Python and its package.
pub const CLICKHOUSE: &str = "clickhouse";
/// Chromium and Python, which look at pages.
pub const BROWSER: &str = "browser";
/// Labelled jobs in `../shared/data`.
pub const SHARED_DATA: &str = "shared-data";
/// Releases of megatron-core, which need Python.
pub const RECORDER: &str = "recorder";
/// A list of those that must be there, separated by commas: tests that need them then fail instead of being skipped.
const REQUIRE: &str = "MT_DETECTOR_REQUIRE";

/// Says that a test is skipped for want of `what`.
///
/// # Panics
/// When `what` is required: a test that can't run must not pass there.
pub fn skip_without(what: &str, reason: &str) {
    let required = std::env::var(REQUIRE).unwrap_or_default();
    assert!(
        !requires(&required, what),
        "{REQUIRE} names {what}, which is not there: {reason}"
    );
    // Not captured, unlike what the macros print.
    let _ = writeln!(std::io::stderr(), "skipped, no {what}: {reason}");
}

/// Whether `what` is in the list; a list with an unknown name would require nothing by mistake and panics.
fn requires(list: &str, what: &str) -> bool {
    let names: Vec<&str> = list.split(',').map(str::trim).filter(|name| !name.is_empty()).collect();
    let unknown: Vec<_> = names.iter().filter(|name| !OUTSIDE.contains(name)).collect();
    assert!(unknown.is_empty(), "{REQUIRE} knows {OUTSIDE:?}, not {unknown:?}");
    names.contains(&what)
}

/// A folder of `../shared/data`, where it is.
pub fn shared_data(folder: &str) -> Option<PathBuf> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../shared/data")
        .join(folder);
    if path.is_dir() {
        return Some(path);
    }
    skip_without(SHARED_DATA, &format!("{} is no folder", path.display()));
    None
}

/// The checkout's folder of fixtures.
pub fn fixture(name: &str) -> String {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("fixtures")
        .join(name)
        .display()
        .to_string()
}

/// One row as NDJSON.
pub fn row(job: &str, timer: &str, rank: u32, iteration: u32, seconds: f64) -> String {
    let time = 1_767_254_400 + 10 * iteration;
    format!(
        r#"{{"timestamp":{time},"job":"{job}","metric_name":"megatron_timers","subname":"{timer}","rank":{rank},"iteration":{iteration},"node":"gpu-{:03}","cluster":"c","metric_values":[{seconds}],"attributes":"{{}}","rerun_uuid":"r0"}}"#,
        rank / 8
    )
}

/// A job with one timer, rank by rank of the seconds that `seconds(rank, iteration)` gives.
pub fn job(name: &str, timer: &str, ranks: u32, iterations: u32, seconds: impl Fn(u32, u32) -> f64) -> String {
    let mut text = String::new();
    for iteration in 1..=iterations {
        for rank in 0..ranks {
            writeln!(text, "{}", row(name, timer, rank, iteration, seconds(rank, iteration))).expect("a string");
        }
    }
    text
}

/// 16 ranks of which rank 5 takes 1.5 times as long, with a little deterministic unevenness.
pub fn slow_rank_5(name: &str) -> String {
    job(name, "forward-compute", 16, 20, |rank, iteration| {
        let uneven = 1.0 + 0.001 * f64::from((rank * 7 + iteration * 3) % 11);
        if rank == 5 { 1.5 * uneven } else { uneven }
    })
}

/// Compares with a committed file (path from the root of the project); UPDATE_GOLDEN=1 writes it instead.
pub fn committed(file: &str, text: &str) {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(file);
    if std::env::var_os("UPDATE_GOLDEN").is_some() {
        std::fs::write(&path, text).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    }
    let there = std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    assert_eq!(text, there, "{file} differs; UPDATE_GOLDEN=1 writes it anew");
}

/// Compares with a file under tests/golden.
pub fn golden(name: &str, text: &str) {
    committed(&format!("tests/golden/{name}"), text);
}

fn schema_file(name: &str) -> serde_json::Value {
    let path = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("schema")
        .join(format!("{name}.schema.json"));
    let text = std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    serde_json::from_str(&text).expect("a schema")
}

/// Holds what was printed to its schema.
#[track_caller]
pub fn validates(name: &str, value: &serde_json::Value) {
    let validator = jsonschema::validator_for(&schema_file(name)).expect("a schema");
    let errors: Vec<String> = validator
        .iter_errors(value)
        .map(|error| format!("{}: {error}", error.instance_path()))
        .take(5)
        .collect();
    assert!(errors.is_empty(), "{name}: {errors:#?}");
}
