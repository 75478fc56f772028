//! `docs/reference.md` is made from the program: every command, flag, output field and exit code.

mod common;

use std::fmt::Write as _;
use std::path::Path;

use common::{Workdir, committed};
use serde_json::Value;

/// The commands in the order of the help, with subcommands.
fn commands(workdir: &Workdir, above: &[&str]) -> Vec<Vec<String>> {
    let help = workdir.run(&[above, &["--help"]].concat()).succeeded().stdout;
    let Some(list) = help.split("Commands:\n").nth(1) else {
        return Vec::new();
    };
    let names = list
        .lines()
        .take_while(|line| !line.is_empty())
        .filter(|line| line.starts_with("  ") && !line.starts_with("   "));
    let names: Vec<&str> = names
        .filter_map(|line| line.split_whitespace().next())
        .filter(|name| *name != "help")
        .collect();
    names
        .into_iter()
        .map(|name| {
            above
                .iter()
                .map(|part| (*part).to_owned())
                .chain([name.to_owned()])
                .collect()
        })
        .collect()
}

/// The fields of a schema: name, type, description, those of what it refers to below.
fn fields(out: &mut String, schema: &Value) {
    let mut table = |name: &str, object: &Value| {
        let Some(properties) = object["properties"].as_object() else {
            return;
        };
        writeln!(out, "\n**{name}**\n\n| field | type | what |\n|---|---|---|").expect("a string");
        for (field, property) in properties {
            let about = property["description"]
                .as_str()
                .unwrap_or_default()
                .replace('\n', " ")
                .replace('|', "\\|");
            writeln!(out, "| `{field}` | {} | {about} |", kind(property)).expect("a string");
        }
    };
    table(schema["title"].as_str().unwrap_or("the list"), schema);
    for (name, definition) in schema["$defs"].as_object().into_iter().flatten() {
        table(name, definition);
    }
}

fn kind(property: &Value) -> String {
    if let Some(name) = property["$ref"].as_str() {
        return name.rsplit('/').next().unwrap_or_default().to_owned();
    }
    let list = |of: &Value| format!("list of {}", kind(of));
    match &property["type"] {
        Value::String(name) if name == "array" => list(&property["items"]),
        Value::String(name) => name.clone(),
        Value::Array(names) => names.iter().filter_map(Value::as_str).collect::<Vec<_>>().join(" or "),
        _ => match property["anyOf"].as_array().or(property["oneOf"].as_array()) {
            Some(choices) => choices.iter().map(kind).collect::<Vec<_>>().join(" or "),
            None => "any".to_owned(),
        },
    }
}

fn reference() -> String {
    let workdir = Workdir::new();
    let mut out = String::from(
        "# Reference\n\nMade from the program by `UPDATE_GOLDEN=1 cargo test --release --test reference`; a test holds it to that.\n\n## Exit codes\n\n```\n",
    );
    let help = workdir.run(&["--help"]).succeeded().stdout;
    out += help.split("Exit codes:\n").nth(1).expect("exit codes").trim_end();
    out += "\n```\n\n## Commands and flags\n";
    let mut open: Vec<Vec<String>> = commands(&workdir, &[]);
    open.reverse();
    while let Some(command) = open.pop() {
        let parts: Vec<&str> = command.iter().map(String::as_str).collect();
        let help = workdir.run(&[&parts[..], &["--help"]].concat()).succeeded().stdout;
        write!(out, "\n### {}\n\n```\n{}\n```\n", parts.join(" "), help.trim_end()).expect("a string");
        let mut below = commands(&workdir, &parts);
        below.reverse();
        open.extend(below);
    }
    out += "\n## Fields of what is printed as JSON\n";
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("schema");
    let mut files: Vec<_> = std::fs::read_dir(folder)
        .expect("schemas")
        .flatten()
        .map(|entry| entry.path())
        .collect();
    files.sort();
    for file in files {
        let name = file
            .file_name()
            .and_then(|name| name.to_str())
            .expect("a name")
            .to_owned();
        write!(
            out,
            "\n### {}\n\n[schema/{name}](../schema/{name})\n",
            name.trim_end_matches(".schema.json")
        )
        .expect("a string");
        let schema: Value = serde_json::from_str(&std::fs::read_to_string(&file).expect("a schema")).expect("JSON");
        fields(&mut out, &schema);
    }
    out
}

#[test]
fn the_reference_is_that_of_the_program() {
    committed("docs/reference.md", &reference());
}
