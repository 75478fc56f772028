//! Arrows between folders go one way: a folder uses those below it, never one above.

use std::fs;
use std::path::{Path, PathBuf};

/// The folders (and single files) of `src`, from the ground up.
const FLOORS: [&str; 19] = [
    "interrupt",
    "building",
    "contract",
    "stats",
    "verdict",
    "source",
    "job",
    "whatif",
    "features",
    "algos",
    "vote",
    "comm",
    "rules",
    "machines",
    "report",
    "evaluation",
    "sweep",
    "service",
    "cli",
];
/// The rooms of `src/evaluation`, from the ground up.
const EVALUATION: [&str; 3] = ["simulate", "suite", "score"];

fn src() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("src")
}

fn rust_files(folder: &Path) -> Vec<PathBuf> {
    let mut files = Vec::new();
    for entry in fs::read_dir(folder).expect("a folder of sources") {
        let path = entry.expect("an entry").path();
        if path.is_dir() {
            files.extend(rust_files(&path));
        } else if path.extension().is_some_and(|ending| ending == "rs") {
            files.push(path);
        }
    }
    files.sort();
    files
}

/// Names that follow `prefix` in the code of a file, with their line; comments don't count.
fn names_after<'a>(text: &'a str, prefix: &'a str) -> impl Iterator<Item = (usize, &'a str)> {
    text.lines().enumerate().flat_map(move |(line, code)| {
        let code = if code.trim_start().starts_with("//") { "" } else { code };
        code.split(prefix).skip(1).map(move |rest| {
            let end = rest.find(|letter: char| !letter.is_alphanumeric() && letter != '_');
            (line + 1, &rest[..end.unwrap_or(rest.len())])
        })
    })
}

/// The uses in the files of `folder` that climb from a room to one above it.
fn climbing(folder: &Path, prefix: &str, floors: &[&str]) -> Vec<String> {
    let floor = |name: &str| floors.iter().position(|known| *known == name);
    let mut climbing = Vec::new();
    for file in rust_files(folder) {
        let inside = file.strip_prefix(folder).expect("a file of the folder");
        let room = inside.iter().next().and_then(|name| name.to_str()).unwrap_or_default();
        let Some(own) = floor(room.trim_end_matches(".rs")) else {
            let top = ["lib.rs", "main.rs", "mod.rs"];
            assert!(
                top.contains(&room),
                "src has a folder that the floors do not name: {room}"
            );
            continue;
        };
        let text = fs::read_to_string(&file).expect("a source");
        for (line, used) in names_after(&text, prefix) {
            if floor(used).is_some_and(|used| used > own) {
                climbing.push(format!("{}:{line} uses {prefix}{used}", inside.display()));
            }
        }
    }
    climbing
}

#[test]
fn no_folder_uses_one_above_it() {
    assert_eq!(climbing(&src(), "crate::", &FLOORS), [""; 0]);
    let evaluation = src().join("evaluation");
    assert_eq!(climbing(&evaluation, "crate::evaluation::", &EVALUATION), [""; 0]);
}

#[test]
fn every_room_says_what_comes_in_what_goes_out_and_what_it_may_use() {
    let rooms = fs::read_dir(src())
        .expect("the sources")
        .chain(fs::read_dir(src().join("evaluation")).expect("its rooms"));
    let heads: Vec<PathBuf> = rooms
        .map(|room| room.expect("a room").path().join("mod.rs"))
        .filter(|head| head.is_file())
        .collect();
    assert!(heads.len() > 15, "{heads:?}");
    for head in heads {
        let text = fs::read_to_string(&head).expect("a head");
        let doc: String = text.lines().take_while(|line| line.starts_with("//!")).collect();
        for word in ["In:", "Out:", "May use:"] {
            assert!(doc.contains(word), "{} lacks `{word}`", head.display());
        }
    }
}

#[test]
fn the_rules_list_all_of_their_numbers() {
    let text_of = |file: &PathBuf| fs::read_to_string(file).expect("a source");
    let judging = ["rules", "comm", "verdict"].map(|folder| rust_files(&src().join(folder)));
    let numbers = |text: &str| {
        let blocks = text
            .split("\nconstants! {\n")
            .skip(1)
            .filter_map(|rest| rest.split("\n}").next());
        blocks
            .flat_map(str::lines)
            .filter(|line| line.contains(" = ") && !line.trim_start().starts_with("//"))
            .count()
    };
    let written: usize = judging.iter().flatten().map(|file| numbers(&text_of(file))).sum();
    let listed = mt_detector::rules::constants();
    assert_eq!(
        listed.len(),
        written,
        "rules::constants() lists every `constants!` of the floors that judge"
    );
    let without_reason = listed.iter().filter(|constant| constant.reason().is_empty());
    assert_eq!(
        without_reason.map(|constant| constant.name()).collect::<Vec<_>>(),
        [""; 0]
    );
}

#[test]
fn only_the_command_line_knows_clap() {
    let knows = |file: &PathBuf| {
        let text = fs::read_to_string(file).expect("a source");
        !file.starts_with(src().join("cli")) && names_after(&text, "clap").next().is_some()
    };
    let knowing: Vec<PathBuf> = rust_files(&src()).into_iter().filter(knows).collect();
    assert!(knowing.is_empty(), "{knowing:?}");
}

#[test]
fn a_climbing_use_is_seen() {
    let text = "use crate::cli::exit;\n// crate::report is not used\nlet x = crate::rules::judge(crate::job::load());";
    let names: Vec<_> = names_after(text, "crate::").collect();
    assert_eq!(names, [(1, "cli"), (3, "rules"), (3, "job")]);
}
