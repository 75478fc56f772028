//! From the paths on the command line to the files behind them.

use std::collections::BTreeSet;
use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};

use super::error::SourceError;
use walkdir::{DirEntry, WalkDir};

/// How a file holds its rows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Format {
    /// Apache Parquet.
    Parquet,
    /// Comma- or tab-separated text with a header line.
    Csv {
        /// The byte between two fields.
        delimiter: u8,
    },
    /// One JSON object a line.
    Ndjson,
    /// Arrow IPC, file or stream.
    Arrow,
}

/// One file to read; [`SourceFile::STDIN`] stands for standard input.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SourceFile {
    /// Where it is.
    pub path: PathBuf,
    /// What it holds.
    pub format: Format,
}

impl SourceFile {
    /// The path that stands for NDJSON on standard input.
    pub const STDIN: &'static str = "-";

    /// Whether the rows come from standard input.
    #[must_use]
    pub fn is_stdin(&self) -> bool {
        self.path == Path::new(Self::STDIN)
    }
}

/// The endings that a folder or pattern is searched for.
pub const ENDINGS: &str = "parquet, pq, csv, tsv, ndjson, jsonl, arrow, arrows, ipc, feather";

/// What [`discover`] found.
#[derive(Debug, Default)]
pub struct Discovered {
    /// The files to read, sorted by path, each once.
    pub files: Vec<SourceFile>,
    /// Files in the named folders that are passed over because of their ending, and links to folders.
    pub passed_over: Vec<PathBuf>,
}

/// Resolves files, folders (searched to any depth) and glob patterns.
///
/// A file that is named outright is read whatever its ending, by its first bytes if need be; in a folder or
/// pattern only files with a known ending count, the others are listed in [`Discovered::passed_over`].
///
/// # Errors
/// A name that matches nothing, a folder without a readable file, an empty file, a file of no known format.
pub fn discover(names: &[PathBuf]) -> Result<Discovered, SourceError> {
    let mut found = Discovered::default();
    for name in names {
        if name == Path::new(SourceFile::STDIN) {
            found.files.push(SourceFile {
                path: name.clone(),
                format: Format::Ndjson,
            });
            continue;
        }
        match (std::fs::metadata(name), name.to_str()) {
            (Ok(metadata), _) if metadata.is_dir() => add_folder(name, &mut found)?,
            (Ok(_), _) => add_named(name, &mut found)?,
            (Err(_), Some(pattern)) if pattern.contains(['*', '?', '[']) => add_pattern(pattern, &mut found)?,
            (Err(error), _) if error.kind() == std::io::ErrorKind::NotFound => {
                return Err(SourceError::NotFound(name.display().to_string()));
            }
            (Err(error), _) => return Err(SourceError::io(name)(error)),
        }
    }
    found.files.sort_by(|a, b| a.path.cmp(&b.path));
    // The same file may be named twice in different words; the first of them stays.
    let mut known = BTreeSet::new();
    found
        .files
        .retain(|file| known.insert(file.path.canonicalize().unwrap_or_else(|_| file.path.clone())));
    found.passed_over.sort();
    found.passed_over.dedup();
    Ok(found)
}

fn add_named(path: &Path, found: &mut Discovered) -> Result<(), SourceError> {
    let format = match by_ending(path) {
        Some(format) => format,
        None => by_first_bytes(path)?,
    };
    found.files.push(SourceFile {
        path: path.to_owned(),
        format,
    });
    Ok(())
}

fn add_folder(folder: &Path, found: &mut Discovered) -> Result<(), SourceError> {
    let before = found.files.len();
    let hidden = |entry: &DirEntry| entry.depth() > 0 && entry.file_name().as_encoded_bytes().starts_with(b".");
    for entry in WalkDir::new(folder).into_iter().filter_entry(|entry| !hidden(entry)) {
        let entry = entry.map_err(|error| {
            let path = error.path().unwrap_or(folder).to_owned();
            SourceError::io(path)(error.into())
        })?;
        if entry.file_type().is_dir() {
            continue;
        }
        let path = entry.into_path();
        if path.is_dir() {
            // A link to a folder is not followed: it may lead back here.
            found.passed_over.push(path);
        } else {
            add_if_known(path, found);
        }
    }
    if found.files.len() == before {
        return Err(SourceError::NoFiles(folder.display().to_string(), ENDINGS));
    }
    Ok(())
}

fn add_pattern(pattern: &str, found: &mut Discovered) -> Result<(), SourceError> {
    let paths = glob::glob(pattern).map_err(|error| SourceError::NotFound(format!("{pattern} ({error})")))?;
    let (before, mut matched) = (found.files.len(), false);
    for path in paths {
        let path =
            path.map_err(|error| SourceError::io(error.path().to_owned())(std::io::Error::other(error.to_string())))?;
        matched = true;
        if path.is_dir() {
            add_folder(&path, found)?;
        } else {
            add_if_known(path, found);
        }
    }
    match (matched, found.files.len() > before) {
        (false, _) => Err(SourceError::NotFound(pattern.to_owned())),
        (true, false) => Err(SourceError::NoFiles(pattern.to_owned(), ENDINGS)),
        (true, true) => Ok(()),
    }
}

fn add_if_known(path: PathBuf, found: &mut Discovered) {
    match by_ending(&path) {
        Some(format) => found.files.push(SourceFile { path, format }),
        None => found.passed_over.push(path),
    }
}

fn by_ending(path: &Path) -> Option<Format> {
    let ending = path.extension()?.to_str()?.to_ascii_lowercase();
    Some(match ending.as_str() {
        "parquet" | "pq" => Format::Parquet,
        "csv" => Format::Csv { delimiter: b',' },
        "tsv" => Format::Csv { delimiter: b'\t' },
        "ndjson" | "jsonl" => Format::Ndjson,
        "arrow" | "arrows" | "ipc" | "feather" => Format::Arrow,
        _ => return None,
    })
}

fn by_first_bytes(path: &Path) -> Result<Format, SourceError> {
    let mut head = Vec::new();
    File::open(path)
        .and_then(|file| file.take(16).read_to_end(&mut head))
        .map_err(SourceError::io(path))?;
    match head.as_slice() {
        [] => Err(SourceError::Empty(path.to_owned())),
        [b'P', b'A', b'R', b'1', ..] => Ok(Format::Parquet),
        [b'A', b'R', b'R', b'O', b'W', b'1', ..] | [0xff, 0xff, 0xff, 0xff, ..] => Ok(Format::Arrow),
        [b'{', ..] => Ok(Format::Ndjson),
        _ => Err(SourceError::WrongFormat {
            path: path.to_owned(),
            expected: "Parquet, NDJSON or Arrow",
            advice: format!("give it one of the endings {ENDINGS} if it is one"),
        }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn folder_with(names: &[&str]) -> tempfile::TempDir {
        let folder = tempfile::tempdir().expect("a temporary folder");
        for name in names {
            let path = folder.path().join(name);
            std::fs::create_dir_all(path.parent().expect("inside the folder")).expect("a folder");
            std::fs::write(path, "x").expect("a file");
        }
        folder
    }

    fn names(folder: &Path, found: &[SourceFile]) -> Vec<String> {
        let relative = |file: &SourceFile| {
            file.path
                .strip_prefix(folder)
                .unwrap_or(&file.path)
                .display()
                .to_string()
        };
        found.iter().map(relative).collect()
    }

    #[test]
    fn a_folder_gives_its_readable_files_and_tells_the_others() {
        let folder = folder_with(&["b.parquet", "a/c.csv", "labels.json", ".hidden.csv"]);
        let found = discover(&[folder.path().to_owned()]).expect("found");
        assert_eq!(names(folder.path(), &found.files), ["a/c.csv", "b.parquet"]);
        assert_eq!(found.passed_over, [folder.path().join("labels.json")]);
    }

    #[test]
    fn a_file_named_twice_is_read_once() {
        let folder = folder_with(&["b.parquet"]);
        let file = folder.path().join("b.parquet");
        let pattern = folder.path().join("*.parquet");
        let roundabout = folder.path().join(".").join("b.parquet");
        assert_eq!(discover(&[file, pattern, roundabout]).expect("found").files.len(), 1);
    }

    #[test]
    fn what_names_nothing_is_an_error() {
        let folder = folder_with(&["notes.txt"]);
        let inside = |name: &str| discover(&[folder.path().join(name)]);
        assert!(matches!(inside("no.parquet"), Err(SourceError::NotFound(_))));
        assert!(matches!(inside("*.parquet"), Err(SourceError::NotFound(_))));
        assert!(matches!(inside("*.txt"), Err(SourceError::NoFiles(..))));
        assert!(matches!(inside("."), Err(SourceError::NoFiles(..))));
        assert!(matches!(inside("notes.txt"), Err(SourceError::WrongFormat { .. })));
    }
}
