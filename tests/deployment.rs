//! What installs the service names flags and values that there are.

mod common;

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use common::Workdir;

fn packaging(path: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("packaging").join(path)
}

fn text(path: &str) -> String {
    std::fs::read_to_string(packaging(path)).unwrap_or_else(|error| panic!("{path}: {error}"))
}

/// Flags in a text: `--name`.
fn flags(text: &str) -> BTreeSet<String> {
    let letters = |letter: char| letter.is_ascii_lowercase() || letter == '-';
    let ends = text.match_indices("--").filter(|(at, _)| !text[..*at].ends_with('-'));
    ends.map(|(at, _)| {
        text[at + 2..]
            .split(|letter| !letters(letter))
            .next()
            .unwrap_or_default()
    })
    .filter(|name| !name.is_empty())
    .map(|name| format!("--{}", name.trim_end_matches('-')))
    .collect()
}

/// Paths of a YAML of nested maps: `service.port`.
fn values(yaml: &str) -> BTreeSet<String> {
    let mut above: Vec<(usize, String)> = Vec::new();
    let mut paths = BTreeSet::new();
    for line in yaml.lines().filter(|line| !line.trim_start().starts_with('#')) {
        let indent = line.len() - line.trim_start().len();
        let Some((name, _)) = line.trim_start().split_once(':') else {
            continue;
        };
        above.retain(|(depth, _)| *depth < indent);
        above.push((indent, name.to_owned()));
        let names: Vec<&str> = above.iter().map(|(_, name)| name.as_str()).collect();
        paths.insert(names.join("."));
    }
    paths
}

#[test]
fn the_service_is_started_with_flags_that_it_has() {
    let help = Workdir::new().run(&["serve", "--help"]).succeeded().stdout;
    let known = flags(&help);
    let unit = text("systemd/mt-detector-serve.service");
    let started: Vec<&str> = unit.lines().filter(|line| line.starts_with("ExecStart=")).collect();
    let chart = text("helm/mt-detector/templates/statefulset.yaml");
    for (what, used) in [("unit", flags(&started.join("\n"))), ("chart", flags(&chart))] {
        assert!(used.len() > 1, "{what}: {used:?}");
        let unknown: Vec<&String> = used.difference(&known).collect();
        assert!(unknown.is_empty(), "{what}: {unknown:?}");
    }
}

#[test]
fn the_chart_uses_values_that_it_has_and_has_none_beside() {
    let known = values(&text("helm/mt-detector/values.yaml"));
    let mut used = BTreeSet::new();
    for entry in std::fs::read_dir(packaging("helm/mt-detector/templates")).expect("templates") {
        let path = entry.expect("a template").path();
        let template = std::fs::read_to_string(&path).expect("text");
        assert_eq!(
            template.matches("{{").count(),
            template.matches("}}").count(),
            "{}",
            path.display()
        );
        let opened =
            ["if ", "with ", "range ", "define "].map(|word| template.matches(&format!("{{{{- {word}")).count());
        assert_eq!(
            opened.iter().sum::<usize>(),
            template.matches("{{- end").count(),
            "{}",
            path.display()
        );
        assert!(!template.contains('\t'), "{}", path.display());
        for part in template.split(".Values.").skip(1) {
            let end = part.find(|letter: char| !letter.is_ascii_alphanumeric() && letter != '.');
            used.insert(part[..end.unwrap_or(part.len())].to_owned());
        }
    }
    let missing: Vec<&String> = used.difference(&known).collect();
    assert!(missing.is_empty(), "{missing:?}");
    let has_parts = |path: &str| known.iter().any(|other| other.starts_with(&format!("{path}.")));
    let covered = |path: &str| {
        used.iter()
            .any(|used| path == used || path.starts_with(&format!("{used}.")))
    };
    let idle: Vec<&String> = known.iter().filter(|path| !has_parts(path) && !covered(path)).collect();
    assert!(idle.is_empty(), "{idle:?}");
}
