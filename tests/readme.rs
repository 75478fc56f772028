//! What the README shows is what the program does.

mod common;

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use common::Workdir;

/// The code blocks of the README, with their language.
fn blocks(text: &str) -> Vec<(String, String)> {
    let mut blocks = Vec::new();
    let mut parts = text.split("```");
    parts.next();
    while let (Some(block), Some(_)) = (parts.next(), parts.next()) {
        let (language, body) = block.split_once('\n').expect("a line with the language");
        blocks.push((language.to_owned(), body.to_owned()));
    }
    blocks
}

#[test]
fn the_example_output_is_real() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let readme = std::fs::read_to_string(root.join("README.md")).expect("the README");
    let blocks = blocks(&readme);
    let command = &blocks[0].1;
    let args = command
        .trim()
        .strip_prefix("cargo run --release -- ")
        .expect("the first block runs the program");
    let args: Vec<&str> = args.split_whitespace().collect();
    let workdir = Workdir::new();
    let outcome = common::ran(workdir.command(&args).current_dir(root)).succeeded();
    assert_eq!(blocks[1].1, outcome.stdout, "the second block is its output");
    assert_eq!(
        blocks[2].1.trim(),
        "cargo test --release",
        "the third block runs the tests"
    );
}

/// The commands of the program, each with its flags, as its help lists them.
fn flags_by_command() -> BTreeMap<String, BTreeSet<String>> {
    let workdir = Workdir::new();
    let help = |args: &[&str]| workdir.run(args).succeeded().stdout;
    let overview = help(&["--help"]);
    let commands = overview.split("Commands:\n").nth(1).expect("a list of commands");
    let names = commands.lines().take_while(|line| !line.is_empty());
    let names = names.map(|line| line.split_whitespace().next().expect("a name"));
    let flags = |command: &str| {
        let help = help(&[command, "--help"]);
        // An option is a line such as `  -q, --quiet` or `      --job-id <ID>`; prose stands further to the right.
        let options = help.lines().filter(|line| {
            let indent = line.len() - line.trim_start().len();
            indent <= 6 && line.trim_start().starts_with('-')
        });
        options.flat_map(flags_in).collect()
    };
    names
        .filter(|name| *name != "help")
        .map(|name| (name.to_owned(), flags(name)))
        .collect()
}

/// The words of a text that begin with two hyphens, up to the end of the flag's name.
fn flags_in(text: &str) -> Vec<String> {
    let names = text.split(|letter: char| !letter.is_ascii_lowercase() && letter != '-');
    names
        .filter(|word| word.starts_with("--") && word.len() > 3)
        .map(str::to_owned)
        .collect()
}

#[test]
fn every_command_line_of_the_readme_exists() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let readme = std::fs::read_to_string(root.join("README.md")).expect("the README");
    let known = flags_by_command();
    let blocks = blocks(&readme);
    let scripts = blocks.iter().filter(|(language, _)| language == "sh");
    let lines = scripts.flat_map(|(_, body)| body.lines());
    let mut checked = 0;
    for line in lines {
        // What stands behind a hash is a comment.
        let line = line.split(" #").next().unwrap_or_default();
        let Some((_, args)) = line.split_once("mt-detector ") else {
            continue;
        };
        let command = args.split_whitespace().next().unwrap_or_default();
        let flags = known
            .get(command)
            .unwrap_or_else(|| panic!("no command `{command}`: {line}"));
        for flag in flags_in(args) {
            assert!(flags.contains(&flag), "`{command}` has no {flag}: {line}");
        }
        checked += 1;
    }
    assert!(checked >= 9, "only {checked} lines were understood");
}

#[test]
fn every_flag_of_the_readme_exists() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let readme = std::fs::read_to_string(root.join("README.md")).expect("the README");
    let known: BTreeSet<String> = flags_by_command().into_values().flatten().collect();
    let of_cargo = ["--release", "--bench"];
    for flag in flags_in(&readme) {
        assert!(
            known.contains(&flag) || of_cargo.contains(&flag.as_str()),
            "{flag} is in the README and no command has it"
        );
    }
}
