//! `docs/post-mortem.md`: its commands run in order, and print what it shows.

mod common;

use std::path::Path;

use common::Workdir;

/// Parts of a text between fences, with the language of those that are code.
fn parts(text: &str) -> Vec<(Option<String>, String)> {
    let mut parts: Vec<(Option<String>, String)> = vec![(None, String::new())];
    let mut inside = false;
    for line in text.lines() {
        if let Some(language) = line.strip_prefix("```") {
            inside = !inside;
            parts.push((inside.then(|| language.to_owned()), String::new()));
        } else if let Some((_, body)) = parts.last_mut() {
            *body += line;
            *body += "\n";
        }
    }
    parts
}

#[test]
fn the_post_mortem_prints_what_it_shows() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("docs/post-mortem.md");
    let text = std::fs::read_to_string(&path).expect("the page");
    let workdir = Workdir::new();
    let mut printed = String::new();
    let mut parts = parts(&text);
    for (language, body) in &mut parts {
        match language.as_deref() {
            Some("sh") => {
                printed.clear();
                for line in body.lines() {
                    let words: Vec<&str> = line.split_whitespace().collect();
                    let (program, args) = words.split_first().expect("a command");
                    assert_eq!(*program, "mt-detector", "{line}");
                    printed = workdir.run(args).succeeded().stdout;
                }
            }
            Some(_) => printed.clone_into(body),
            None => {}
        }
    }
    let made: String = parts
        .iter()
        .map(|(language, body)| match language {
            Some(language) => format!("```{language}\n{body}```\n"),
            None => body.clone(),
        })
        .collect();
    if std::env::var_os("UPDATE_GOLDEN").is_some() {
        std::fs::write(&path, &made).expect("the page is written");
    }
    assert!(
        made == text || std::env::var_os("UPDATE_GOLDEN").is_some(),
        "docs/post-mortem.md is not what the program prints; UPDATE_GOLDEN=1 writes it anew\n{made}"
    );
    for picture in ["heat", "grid", "steps"] {
        let file = path.with_file_name(format!("images/{picture}.png"));
        let bytes = std::fs::metadata(&file)
            .unwrap_or_else(|error| panic!("{}: {error}", file.display()))
            .len();
        assert!(bytes < 200_000, "{picture} has {bytes} bytes");
    }
}
