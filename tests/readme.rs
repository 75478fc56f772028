//! What the README shows is what the program does.

mod common;

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

#[test]
fn every_flag_of_the_readme_exists() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let readme = std::fs::read_to_string(root.join("README.md")).expect("the README");
    let workdir = Workdir::new();
    let help: String = [
        "analyze", "jobs", "sweep", "schema", "load", "export", "replay", "simulate", "score",
    ]
    .iter()
    .map(|command| workdir.run(&[command, "--help"]).succeeded().stdout)
    .collect();
    let flags = readme.split(|letter: char| !letter.is_ascii_lowercase() && letter != '-');
    let cargo = ["--release", "--bench"];
    for flag in flags.filter(|word| word.starts_with("--") && word.len() > 3 && !cargo.contains(word)) {
        assert!(help.contains(flag), "{flag} is in the README and in no --help");
    }
}
