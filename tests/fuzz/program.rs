//! Odd values of flags and damaged configuration files: an exit code of the program's own, in time, and no password in its words.

use std::fs;
use std::process::Stdio;
use std::time::{Duration, Instant};

use crate::common::{Workdir, slow_rank_5};
use crate::count;
use crate::random::{Place, Random, damage};

/// Of so many damaged files one run of the program: each takes some milliseconds.
const SHARE: u64 = 25;
const LONGEST: Duration = Duration::from_secs(10);
const VALUES: [&str; 34] = [
    "",
    " ",
    "0",
    "-0",
    "1",
    "-1",
    "2",
    "64",
    "1e308",
    "1e-308",
    "nan",
    "inf",
    "-inf",
    "NaN",
    "18446744073709551616",
    "9223372036854775807",
    "4294967296",
    "999999999999999999999999999999",
    "0x10",
    "1,2",
    "1-",
    "-5",
    "5-2",
    "1-2-3",
    "auto",
    "\u{661}\u{662}",
    "\u{1b}[31m",
    "a\nb",
    "../..",
    "300000-01-01",
    "2026-02-30T25:61:61Z",
    "1970-01-01",
    "{}",
    "%s%n",
];
/// Flags that take a value and write nowhere but into `--out`.
const FLAGS: [(&str, &[&str]); 3] = [
    (
        "analyze",
        &[
            "--job-id",
            "--job-id-json",
            "--start",
            "--end",
            "--iterations",
            "--rerun",
            "--warmup",
            "--tp",
            "--pp",
            "--cp",
            "--ep",
            "--rank-order",
            "--rules",
            "--algorithm",
            "--threads",
            "--effect-floor",
            "--slowdown-threshold",
            "--format",
            "--out",
            "--reduce",
            "--table-cells",
        ],
    ),
    ("jobs", &["--format", "--start", "--end"]),
    (
        "whatif",
        &[
            "--mend",
            "--microbatches",
            "--virtual-stages",
            "--warmup",
            "--job-id",
            "--format",
            "--tp",
            "--pp",
            "--model",
            "--step",
        ],
    ),
];

/// Runs the program and gives its exit code and words.
fn run(workdir: &Workdir, args: &[&str], seed: u64) -> (i32, String) {
    let began = Instant::now();
    let output = workdir
        .command(args)
        .stdout(Stdio::piped())
        .env("XDG_CONFIG_HOME", workdir.path("no-config"))
        .output()
        .expect("it starts");
    assert!(
        began.elapsed() < LONGEST,
        "seed {seed}: {args:?} takes {:?}",
        began.elapsed()
    );
    let words = String::from_utf8_lossy(&output.stderr).into_owned();
    let code = output.status.code();
    let own = code.filter(|code| (0..=5).contains(code));
    (
        own.unwrap_or_else(|| panic!("seed {seed}: {args:?} ends with {:?}: {words}", output.status)),
        words,
    )
}

#[test]
fn odd_values_of_flags() {
    let workdir = Workdir::new();
    workdir.file("a.ndjson", slow_rank_5("job"));
    let mut codes = [0_u64; 6];
    for seed in 0..count().div_ceil(SHARE) {
        let mut random = Random(seed);
        let (command, flags) = random.pick(&FLAGS);
        let mut args = vec![*command, "a.ndjson"];
        for _ in 0..1 + random.below(2) {
            let flag = *random.pick(flags);
            // Two values of one flag are told by the parser.
            if !args.contains(&flag) {
                args.extend([flag, *random.pick(&VALUES)]);
            }
        }
        if *command == "analyze" && !args.contains(&"--out") {
            args.push("--no-files");
        }
        let (code, _) = run(&workdir, &args, seed);
        codes[code as usize] += 1;
    }
    println!("flags, by exit code: {codes:?}");
    assert!(codes[0] > 0 && codes[2] > 0, "{codes:?}");
}

#[test]
fn damaged_configurations() {
    const WHOLE: &str = "[clickhouse]\nurl = \"http://127.0.0.1:9\"\nuser = \"reader\"\npassword = \"hunter2-hunter2\"\n\
                         database = \"d\"\ntable = \"t\"\nretries = 0\nconnect-timeout = 1.0\nquery-timeout = 5.0\n";
    let workdir = Workdir::new();
    let mut codes = [0_u64; 6];
    for seed in 0..count().div_ceil(SHARE) {
        let mut bytes = WHOLE.as_bytes().to_vec();
        damage(&mut bytes, &[Place::of(0..WHOLE.len())], &mut Random(seed));
        fs::write(workdir.path("c.toml"), &bytes).expect("a file");
        let (code, words) = run(&workdir, &["jobs", "--config", "c.toml"], seed);
        // Nobody answers there.
        assert_ne!(code, 0, "seed {seed}: {words}");
        let whole = bytes.windows(15).any(|part| part == b"hunter2-hunter2");
        assert!(
            !whole || !words.contains("hunter2-hunter2"),
            "seed {seed} tells the password: {words}"
        );
        codes[code as usize] += 1;
    }
    println!("configurations, by exit code: {codes:?}");
    assert!(codes[4] > 0 && codes[2] > 0, "{codes:?}");
}
