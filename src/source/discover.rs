//! From the paths on the command line to the files behind them.

use std::collections::BTreeSet;
use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::compressed::{self, BytesRead};
use super::error::SourceError;
use super::json::may_be_json;
use super::kineto::is_trace;
use super::logs::nodes::NodeMap;
use super::logs::{Sniffed, holds_a_log, sniff};
use super::names::ColumnNames;
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
    /// What a training program printed.
    Log,
    /// A rank's trace of PyTorch's profiler.
    Trace,
}

/// One file to read; [`SourceFile::STDIN`] stands for standard input.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SourceFile {
    /// Where it is.
    pub path: PathBuf,
    /// What it holds.
    pub format: Format,
    /// What the user says of it.
    pub options: ReadOptions,
}

/// What the user says of the files.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub struct ReadOptions {
    /// Which rank runs on which node, for logs, which don't say.
    pub nodes: Option<Arc<NodeMap>>,
    /// What the columns are called.
    pub names: Arc<ColumnNames>,
    /// Whether a file that can't be read is left out, and told, instead of an error.
    pub skip_broken: bool,
    /// Counts what is read of files that are read from begin to end.
    pub bytes: BytesRead,
}

impl SourceFile {
    /// The path that stands for standard input.
    pub const STDIN: &'static str = "-";

    /// A file whose format is known.
    #[must_use]
    pub fn new(path: PathBuf, format: Format) -> Self {
        Self {
            path,
            format,
            options: ReadOptions::default(),
        }
    }

    /// Whether the rows come from standard input.
    #[must_use]
    pub fn is_stdin(&self) -> bool {
        self.path == Path::new(Self::STDIN)
    }
}

/// How files of a format are known.
struct Known {
    format: Format,
    /// Endings of their names, in lower case.
    endings: &'static [&'static str],
    /// What their content begins with; nothing where text can't be told from other text.
    first_bytes: &'static [&'static [u8]],
}

/// Every format: a row here, its [`Format`] and an arm in [`scan()`](super::scan()) make a new one.
const FORMATS: [Known; 7] = [
    Known {
        format: Format::Parquet,
        endings: &["parquet", "pq"],
        first_bytes: &[b"PAR1"],
    },
    Known {
        format: Format::Csv { delimiter: b',' },
        endings: &["csv"],
        first_bytes: &[],
    },
    Known {
        format: Format::Csv { delimiter: b'\t' },
        endings: &["tsv"],
        first_bytes: &[],
    },
    Known {
        format: Format::Ndjson,
        endings: &["ndjson", "jsonl"],
        first_bytes: &[],
    },
    Known {
        format: Format::Arrow,
        endings: &["arrow", "arrows", "ipc", "feather"],
        first_bytes: &[b"ARROW1", &[0xff; 4]],
    },
    Known {
        format: Format::Log,
        endings: &["log", "out", "err"],
        first_bytes: &[],
    },
    Known {
        format: Format::Trace,
        endings: &["json"],
        first_bytes: &[],
    },
];

/// The endings that a folder or pattern is searched for, for messages.
fn known_endings() -> String {
    let endings: Vec<&str> = FORMATS.iter().flat_map(|known| known.endings).copied().collect();
    endings.join(", ")
}

/// Bytes of a summary or ledger in which its version stands.
const HEAD: u64 = 4096;
/// Bytes in which a CSV's header ends.
const LONGEST_HEADER: u64 = 1 << 16;

/// What [`discover`] found.
#[derive(Debug, Default)]
pub struct Discovered {
    /// The files to read, sorted by path, each once.
    pub files: Vec<SourceFile>,
    /// What is passed over in the named folders: files of another ending, CSVs of other tables, what is no plain file,
    /// folders that this program wrote, links to folders.
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
            let head = compressed::peek_stdin().map_err(SourceError::io(name))?;
            found.files.push(SourceFile::new(name.clone(), of_stdin(&head)));
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
        Some(Format::Log) => by_content(path, true)?,
        Some(Format::Trace) => by_content(path, false)?,
        Some(format) => format,
        None => by_content(path, false)?,
    };
    found.files.push(SourceFile::new(path.to_owned(), format));
    Ok(())
}

fn add_folder(folder: &Path, found: &mut Discovered) -> Result<(), SourceError> {
    let before = found.files.len();
    let hidden = |entry: &DirEntry| entry.depth() > 0 && entry.file_name().as_encoded_bytes().starts_with(b".");
    let mut entries = WalkDir::new(folder).into_iter();
    while let Some(entry) = entries.next() {
        let entry = entry.map_err(|error| {
            let path = error.path().unwrap_or(folder).to_owned();
            SourceError::io(path)(error.into())
        })?;
        let is_folder = entry.file_type().is_dir();
        if hidden(&entry) {
            if is_folder {
                entries.skip_current_dir();
            }
            continue;
        }
        if is_folder {
            if entry.depth() > 0 && is_result(entry.path()) {
                entries.skip_current_dir();
                found.passed_over.push(entry.into_path());
            }
            continue;
        }
        // A link to a folder is not followed: it may lead back here. A pipe may never end, nor begin.
        match std::fs::metadata(entry.path()) {
            Ok(metadata) if !metadata.is_file() => found.passed_over.push(entry.into_path()),
            _ => add_if_known(entry.into_path(), found),
        }
    }
    if found.files.len() == before {
        return Err(SourceError::NoFiles(folder.display().to_string(), known_endings()));
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
        match std::fs::metadata(&path) {
            Ok(metadata) if metadata.is_dir() => add_folder(&path, found)?,
            Ok(metadata) if !metadata.is_file() => found.passed_over.push(path),
            _ => add_if_known(path, found),
        }
    }
    match (matched, found.files.len() > before) {
        (false, _) => Err(SourceError::NotFound(pattern.to_owned())),
        (true, false) => Err(SourceError::NoFiles(pattern.to_owned(), known_endings())),
        (true, true) => Ok(()),
    }
}

fn add_if_known(path: PathBuf, found: &mut Discovered) {
    match by_ending(&path) {
        Some(Format::Csv { delimiter }) if is_another_table(&path, delimiter) => found.passed_over.push(path),
        Some(Format::Log) if !is_a_log(&path) => found.passed_over.push(path),
        Some(Format::Trace) if !is_a_trace(&path) => found.passed_over.push(path),
        Some(format) => found.files.push(SourceFile::new(path, format)),
        None => found.passed_over.push(path),
    }
}

/// A folder that this program wrote: a result, or all of those of a sweep.
fn is_result(folder: &Path) -> bool {
    let begins = |name: &str, key: &str| {
        let mut head = Vec::new();
        let read = File::open(folder.join(name)).and_then(|file| file.take(HEAD).read_to_end(&mut head));
        let key = key.as_bytes();
        read.is_ok() && head.windows(key.len()).any(|part| part == key)
    };
    begins("summary.json", "\"schema_version\"") || begins("sweep.json", "\"ledger_version\"")
}

/// A CSV whose header names neither metrics nor their values is a table of something else: nobody named it. One that lacks
/// another column is meant, and refused.
fn is_another_table(path: &Path, delimiter: u8) -> bool {
    let Ok(file) = compressed::open(&SourceFile::new(path.to_owned(), Format::Csv { delimiter })) else {
        return false;
    };
    let mut reader = csv::ReaderBuilder::new()
        .delimiter(delimiter)
        .from_reader(file.take(LONGEST_HEADER));
    let Ok(header) = reader.byte_headers() else {
        return false;
    };
    let names = |column: &str| {
        let is = |name: &[u8]| name.trim_ascii().eq_ignore_ascii_case(column.as_bytes());
        header.iter().any(is)
    };
    !header.is_empty() && !names("metric_name") && !names("metric_values")
}

/// The format that a name promises; what the file is packed with is no part of it.
fn by_ending(path: &Path) -> Option<Format> {
    let name = path.file_name()?.to_str()?.to_ascii_lowercase();
    let (stem, ending) = name.rsplit_once('.')?;
    let ending = if compressed::ENDINGS.contains(&ending) {
        stem.rsplit_once('.')?.1
    } else {
        ending
    };
    let known = FORMATS.iter().find(|known| known.endings.contains(&ending))?;
    Some(known.format)
}

/// Bytes in which a log shows that it is one.
const LOG_HEAD: usize = 1 << 20;

/// The format of a file that was named outright, by its content. `log` says that its name promises one.
fn by_content(path: &Path, log: bool) -> Result<Format, SourceError> {
    let head = compressed::head(&SourceFile::new(path.to_owned(), Format::Log), LOG_HEAD)?;
    let bytes = &head.bytes;
    if bytes.is_empty() && head.packing.is_none() {
        return Err(SourceError::Empty(path.to_owned()));
    }
    let wrong = |expected, advice: String| SourceError::WrongFormat {
        path: path.to_owned(),
        expected,
        advice,
    };
    let begins = |known: &&Known| known.first_bytes.iter().any(|magic| bytes.starts_with(magic));
    if let Some(known) = FORMATS.iter().find(begins) {
        return Ok(known.format);
    }
    if is_trace(bytes) {
        return Ok(Format::Trace);
    }
    // A log may begin with the dictionary that a program prints first.
    if !log && may_be_json(bytes) {
        return Ok(Format::Ndjson);
    }
    let unread = [(&b"ORC"[..], "Apache ORC"), (b"Obj\x01", "Apache Avro")];
    if let Some((_, name)) = unread.iter().find(|(magic, _)| bytes.starts_with(magic)) {
        let advice = format!("{name} is not read; write it as Parquet, with Spark, DuckDB or pyarrow");
        return Err(wrong("readable", advice));
    }
    match sniff(bytes) {
        Sniffed::Html => Err(wrong(
            "log",
            "it is an HTML page; was a sign-in page saved in its place?".to_owned(),
        )),
        Sniffed::Binary => {
            let advice = format!(
                "it holds bytes that are no text; give it one of the endings {} if it is one",
                known_endings()
            );
            Err(wrong("recognisable", advice))
        }
        // What is longer than was looked at may still be one.
        Sniffed::Text if log || !head.all || holds_a_log(bytes) => Ok(Format::Log),
        Sniffed::Text => {
            let advice = format!("give it one of the endings {} if it is one", known_endings());
            Err(wrong("recognisable", advice))
        }
    }
}

/// Whether a file that nobody named is a trace of the profiler: other programs write JSON too.
fn is_a_trace(path: &Path) -> bool {
    let head = compressed::head(&SourceFile::new(path.to_owned(), Format::Trace), LOG_HEAD);
    head.is_ok_and(|head| is_trace(&head.bytes))
}

/// Whether a file that nobody named is a log of a training program.
fn is_a_log(path: &Path) -> bool {
    let head = compressed::head(&SourceFile::new(path.to_owned(), Format::Log), LOG_HEAD);
    head.is_ok_and(|head| sniff(&head.bytes) == Sniffed::Text && holds_a_log(&head.bytes))
}

/// The format of standard input by its first bytes.
fn of_stdin(head: &[u8]) -> Format {
    if may_be_json(head) || head.trim_ascii().is_empty() {
        return Format::Ndjson;
    }
    let header = head.split(|&byte| byte == b'\n').next().unwrap_or_default();
    let has = |column: &[u8]| memchr::memmem::find(header, column).is_some();
    if has(b"metric_name") && has(b"metric_values") {
        return Format::Csv { delimiter: b',' };
    }
    Format::Log
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
        std::fs::write(folder.path().join("a/c.csv"), "metric_name,rank\n").expect("a file");
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
