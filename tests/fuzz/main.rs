//! Damaged input by the thousand: an error, the verdict of the whole file, or rows that are told as lost; never a crash, a hang,
//! or memory without bounds.
//!
//! Each reader gets files that a seeded mutator damages where it hurts: page headers, footers, levels, dictionaries, descriptions
//! of record batches, lines, or anywhere. `MT_DETECTOR_FUZZ=N` damages N files for each; without it there are some thousands, for a
//! test that takes a minute. `MT_DETECTOR_FUZZ_FIRST=N` begins with another seed. A file that brings the process down is left in
//! the folder that the test names at its start. Files of the past that did harm stand in `corpus`.

#[path = "../common/mod.rs"]
mod common;

mod corpus;
mod files;
mod program;
mod random;
mod text;
mod verdict;

use std::fs;
use std::path::PathBuf;
use std::sync::Mutex;
use std::time::{Duration, Instant};

use random::{Place, Random, damage};
use verdict::{Answer, answer};

/// Files for each reader where nothing else is asked for.
const SOME: u64 = 2_500;
/// A file that takes longer than this twice hangs: the first time the machine may have been busy.
const LONGEST: Duration = Duration::from_secs(10);
/// Memory beyond that of the whole file, megabytes.
const MOST_MEMORY: u64 = 1_024;
/// Files after which memory is looked at.
const LOOK: u64 = 500;

fn variable(name: &str) -> Option<u64> {
    std::env::var(name).ok()?.parse().ok()
}

/// How many are damaged.
pub fn count() -> u64 {
    variable("MT_DETECTOR_FUZZ").unwrap_or(SOME)
}

fn seeds() -> std::ops::Range<u64> {
    let first = variable("MT_DETECTOR_FUZZ_FIRST").unwrap_or(0);
    first..first + count()
}

/// Most memory that this process had since it was last asked, where the system tells.
fn peak_megabytes() -> Option<u64> {
    let status = fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find(|line| line.starts_with("VmHWM:"))?;
    let peak = line.split_whitespace().nth(1)?.parse::<u64>().ok()? >> 10;
    fs::write("/proc/self/clear_refs", "5").ok()?;
    Some(peak)
}

/// What a damaged file may be.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Held {
    /// A damage where the file says how it is read changes no verdict in silence; one of a value may.
    WhereItTells,
    /// No damage changes the verdict in silence.
    Everywhere,
}

/// A way in which files are damaged; whether all of it lies where the file says how it is read.
pub type Damage<'a> = &'a dyn Fn(&mut Vec<u8>, &mut Random) -> bool;

/// Damages a file again and again.
pub fn fuzz(name: &str, whole: &[u8], damage: Damage<'_>, held: Held) {
    // Memory is the whole process's: one reader at a time.
    static ALONE: Mutex<()> = Mutex::new(());
    let _alone = ALONE.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
    let folder = std::env::temp_dir().join(format!("mt-detector-fuzz-{}", std::process::id()));
    fs::create_dir_all(&folder).expect("a folder");
    let path: PathBuf = folder.join(name);
    fs::write(&path, whole).expect("a file");
    let clean = answer(&path);
    assert!(clean.names_rank_5(), "{name}: {clean:?}");
    let before = peak_megabytes();
    let (mut refused, mut same, mut told, mut values) = (0_u64, 0_u64, 0_u64, 0_u64);
    let mut wrong = Vec::new();
    for seed in seeds() {
        let mut bytes = whole.to_vec();
        let tells = damage(&mut bytes, &mut Random(seed));
        fs::write(&path, &bytes).expect("a file");
        let timed = || {
            let began = Instant::now();
            (answer(&path), began.elapsed())
        };
        let (mut found, mut took) = timed();
        if took > LONGEST {
            (found, took) = timed();
        }
        assert!(took < LONGEST, "{name}, seed {seed}: it hangs");
        match found {
            Answer::Refused(_) => refused += 1,
            _ if found.verdict() == clean.verdict() => same += 1,
            _ if found.quality() != clean.quality() || found.lost_its_nodes(&clean) => told += 1,
            _ if held == Held::WhereItTells && !tells => values += 1,
            _ => {
                fs::copy(&path, folder.join(format!("{seed}-{name}"))).expect("a copy");
                wrong.push(format!("seed {seed}: {:?} {:?}", found.verdict(), clean.verdict()));
            }
        }
        if seed % LOOK == 0
            && let (Some(before), Some(now)) = (before, peak_megabytes())
        {
            assert!(now < before + MOST_MEMORY, "{name}, about seed {seed}: {now} MB");
        }
    }
    println!(
        "{name}: {} damaged files: {refused} refused, {same} with the same verdict, {told} with another one and other counts \
         of rows or without nodes, {values} with other values",
        count()
    );
    assert!(
        wrong.is_empty(),
        "{name}: {} verdicts changed in silence, see {}: {:#?}",
        wrong.len(),
        folder.display(),
        &wrong[..wrong.len().min(20)]
    );
    let _ = fs::remove_file(&path);
    let _ = fs::remove_dir(&folder);
}

/// Damages bytes in some places.
fn in_places(places: &[Place]) -> impl Fn(&mut Vec<u8>, &mut Random) -> bool {
    move |bytes, random| damage(bytes, places, random)
}

#[test]
fn damaged_parquet() {
    for (name, (whole, places)) in files::parquets() {
        fuzz(name, &whole, &in_places(&places), Held::WhereItTells);
    }
}

#[test]
fn damaged_parquet_with_checksums() {
    let (whole, places) = files::checked_parquet();
    fuzz("checked.parquet", &whole, &in_places(&places), Held::Everywhere);
}

#[test]
fn damaged_arrow() {
    for (name, (whole, places)) in files::arrows() {
        fuzz(name, &whole, &in_places(&places), Held::WhereItTells);
    }
}

#[test]
fn damaged_ndjson() {
    fuzz("rows.ndjson", &text::ndjson(), &text::damage, Held::WhereItTells);
}

#[test]
fn damaged_csv() {
    fuzz("rows.csv", &text::csv(','), &text::damage, Held::WhereItTells);
}

#[test]
fn damaged_tsv() {
    fuzz("rows.tsv", &text::csv('\t'), &text::damage, Held::WhereItTells);
}
