//! `watch` on files that grow while it runs.

mod common;

use std::fmt::Write as _;
use std::fs::OpenOptions;
use std::io::{BufRead, BufReader, Read, Write as _};
use std::process::{Child, ChildStderr, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::time::Duration;

use common::{Workdir, row};

/// The longest that anything here may take.
const LIMIT: Duration = Duration::from_secs(120);

/// Iterations as Megatron prints them with a line a rank; in slow ones rank 5 of 8 computes half as long again, and all wait.
fn log(iterations: std::ops::Range<u32>, slow: bool) -> String {
    let mut text = String::new();
    for iteration in iterations {
        let longest = if slow { 3000.0 } else { 2000.0 };
        writeln!(
            text,
            " [2026-03-01 08:{:02}:{:02}] iteration {iteration:8}/    5000 | consumed samples: {:12} | elapsed time per iteration \
             (ms): {longest:.1} | learning rate: 1.5E-04 | lm loss: 2.5E+00 |\ntimes across ranks (ms):\n  forward-compute:",
            iteration / 60 % 60,
            iteration % 60,
            iteration * 32
        )
        .expect("a string");
        for rank in 0..8 {
            let wobble = f64::from((rank * 7 + iteration * 13) % 11) * 0.4;
            let share = if slow && rank == 5 { 1.5 } else { 1.0 };
            writeln!(text, "     rank {rank:2}: {:.2}", 1900.0 * share + wobble).expect("a string");
        }
    }
    text
}

/// The same as rows of a recorder.
fn rows(iterations: std::ops::Range<u32>, slow: bool) -> String {
    let mut text = String::new();
    for iteration in iterations {
        for rank in 0..8 {
            let wobble = f64::from((rank * 7 + iteration * 13) % 11) * 0.0004;
            let compute = if slow && rank == 5 { 2.85 } else { 1.9 } + wobble;
            let step = if slow { 3.0 } else { 2.0 };
            for (timer, seconds) in [("forward-compute", compute), ("interval-time", step)] {
                writeln!(text, "{}", row("recorded", timer, rank, iteration, seconds)).expect("a string");
            }
        }
    }
    text
}

/// A running `watch` and the lines that it tells.
struct Watching {
    child: Child,
    told: Receiver<String>,
}

impl Watching {
    fn start(workdir: &Workdir, args: &[&str]) -> Self {
        let pace = ["watch", "--check-interval", "200ms", "--exit-code"];
        let mut child = workdir
            .command(&[&pace[..], args].concat())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .expect("it starts");
        let told = lines(child.stderr.take().expect("it is piped"));
        Self { child, told }
    }

    /// Waits for a line with these words.
    fn until(&self, words: &str) {
        loop {
            let line = self
                .told
                .recv_timeout(LIMIT)
                .unwrap_or_else(|error| panic!("no `{words}`: {error}"));
            if line.contains(words) {
                return;
            }
        }
    }

    /// The exit code and what was printed.
    fn ended(mut self) -> (Option<i32>, String) {
        let mut text = String::new();
        let mut printed = self.child.stdout.take().expect("it is piped");
        printed.read_to_string(&mut text).expect("text");
        (self.child.wait().expect("it ends").code(), text)
    }
}

fn lines(stderr: ChildStderr) -> Receiver<String> {
    let (to, told) = channel();
    std::thread::spawn(move || {
        for line in BufReader::new(stderr).lines().map_while(Result::ok) {
            // Nobody listens any more where a test is over.
            drop(to.send(line));
        }
    });
    told
}

#[test]
fn a_log_that_grows_is_followed_to_the_verdict() {
    let workdir = Workdir::new();
    workdir.file("train.log", log(1..30, false));
    let watching = Watching::start(&workdir, &["train.log", "--ranks-per-node", "4"]);
    watching.until("iteration 28: 2.000 s");
    let mut growing = OpenOptions::new()
        .append(true)
        .open(workdir.path("train.log"))
        .expect("the log");
    let further = log(30..38, true);
    // A write may end anywhere.
    let (begin, end) = further.split_at(further.len() / 3);
    for part in [begin, end] {
        growing.write_all(part.as_bytes()).expect("written");
        std::thread::sleep(Duration::from_millis(500));
    }
    watching.until("are slow; analysing");
    let (code, text) = watching.ended();
    assert_eq!(code, Some(1), "{text}");
    assert!(text.contains("anomaly_ranks: [5]") && text.contains("node-1"), "{text}");
}

#[test]
fn a_recorders_folder_is_followed_to_the_verdict() {
    let workdir = Workdir::new();
    std::fs::create_dir(workdir.path("rows")).expect("a folder");
    workdir.file("rows/part-0.ndjson", rows(1..30, false));
    let watching = Watching::start(&workdir, &["rows"]);
    watching.until("iteration 28: 2.000 s");
    workdir.file("rows/part-1.ndjson", rows(30..38, true));
    let (code, text) = watching.ended();
    assert_eq!(code, Some(1), "{text}");
    assert!(
        text.contains("anomaly_ranks: [5]") && text.contains("gpu-000"),
        "{text}"
    );
}

#[test]
fn a_log_that_no_longer_grows_is_over() {
    let workdir = Workdir::new();
    workdir.file("train.log", log(1..30, false));
    let pace = ["train.log", "--hang-threshold", "1s", "--finish-threshold", "2s"];
    let watching = Watching::start(&workdir, &pace);
    watching.until("hanging");
    let (code, text) = watching.ended();
    assert_eq!(code, Some(0), "{text}");
    assert!(
        text.contains("status: finished") && text.contains("no slow window"),
        "{text}"
    );
}

#[test]
fn what_can_not_be_watched_is_refused() {
    let workdir = Workdir::new();
    workdir.file("train.log", log(1..30, false));
    let refused: [(&[&str], &str); 3] = [
        (&["-"], "standard input"),
        (&["nothing.log"], "nothing.log"),
        (
            &["train.log", "--clickhouse-url", "http://127.0.0.1:1"],
            "files are read",
        ),
    ];
    for (args, words) in refused {
        let ran = workdir.run(&[&["watch"], args].concat());
        assert_ne!(ran.code, Some(0), "{args:?}");
        assert!(ran.stderr.contains(words), "{args:?}: {}", ran.stderr);
    }
    let both = format!(
        "{}{}",
        row("a", "interval-time", 0, 1, 2.0) + "\n",
        row("b", "interval-time", 0, 1, 2.0) + "\n"
    );
    workdir.file("two.ndjson", both);
    let ran = workdir.run(&["watch", "two.ndjson"]);
    assert!(
        ran.stderr.contains("--job-id") && ran.stderr.contains("a, b"),
        "{}",
        ran.stderr
    );
}
