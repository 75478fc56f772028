//! The test server: started once for all tests of this binary, in which each has a database of its own.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::OnceLock;

use crate::common::{CLICKHOUSE, skip_without};

/// The packages that the server needs, exactly.
const REQUIREMENTS: &str = include_str!("requirements.txt");

/// A running server. It ends when this process does: its standard input closes then.
pub struct Server {
    pub url: String,
}

/// A database of its own on a server.
pub struct Database {
    pub server: &'static Server,
    pub name: &'static str,
}

/// The server, or nothing and a message where it can't run; a panic where it is required.
pub fn server() -> Option<&'static Server> {
    static SERVER: OnceLock<Result<Server, String>> = OnceLock::new();
    or_skip(SERVER.get_or_init(|| start(&[])))
}

/// A server that speaks https with the certificate in this folder.
pub fn tls_server() -> Option<&'static Server> {
    static SERVER: OnceLock<Result<Server, String>> = OnceLock::new();
    let file = |name: &str| here().join(name).display().to_string();
    or_skip(SERVER.get_or_init(|| start(&[&file("certificate.pem"), &file("key.pem")])))
}

fn or_skip(server: &'static Result<Server, String>) -> Option<&'static Server> {
    server.as_ref().map_err(|reason| skip_without(CLICKHOUSE, reason)).ok()
}

/// An empty database of that name.
pub fn database(name: &'static str) -> Option<Database> {
    let server = server()?;
    server.post("/", &format!("CREATE DATABASE {name}"));
    Some(Database { server, name })
}

fn here() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/clickhouse")
}

fn start(arguments: &[&str]) -> Result<Server, String> {
    let mut child = Command::new("python3")
        .arg(here().join("server.py"))
        .args(arguments)
        .env("PYTHONPATH", packages()?)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .map_err(|error| format!("python3: {error}"))?;
    let mut line = String::new();
    let stdout = child.stdout.take().expect("it is piped");
    BufReader::new(stdout).read_line(&mut line).expect("a readable pipe");
    let Some(url) = line.trim().strip_prefix("listening on ") else {
        return Err("the server does not start".to_owned());
    };
    // Its standard input stays open as long as this process lives.
    std::mem::forget(child);
    Ok(Server { url: url.to_owned() })
}

/// The folder with the server's packages, installed once for all checkouts.
fn packages() -> Result<PathBuf, String> {
    let name = REQUIREMENTS
        .split_whitespace()
        .collect::<Vec<_>>()
        .join("-")
        .replace("==", "-");
    let temporary = PathBuf::from(env!("CARGO_TARGET_TMPDIR"));
    let cache = std::env::var_os("HOME").map(|home| PathBuf::from(home).join(".cache/mt-detector-tests"));
    let cache = cache
        .filter(|cache| std::fs::create_dir_all(cache).is_ok())
        .unwrap_or(temporary);
    let folder = cache.join(name);
    if folder.is_dir() {
        return Ok(folder);
    }
    // Installed beside and renamed, so that it is there whole.
    let building = tempfile::Builder::new()
        .prefix(".installing-")
        .tempdir_in(&cache)
        .map_err(|error| error.to_string())?;
    let install = |python: &Path| {
        let mut pip = Command::new(python);
        pip.args([
            "-m",
            "pip",
            "install",
            "--quiet",
            "--no-deps",
            "--disable-pip-version-check",
            "--target",
        ]);
        succeeded(
            pip.arg(building.path().join("packages"))
                .arg("-r")
                .arg(here().join("requirements.txt")),
        )
    };
    install(Path::new("python3")).or_else(|_| {
        // A Python without pip may still be able to make an environment with one.
        let environment = building.path().join("environment");
        succeeded(Command::new("python3").args(["-m", "venv"]).arg(&environment))?;
        install(&environment.join("bin/python3"))
    })?;
    match std::fs::rename(building.path().join("packages"), &folder) {
        Err(_) if !folder.is_dir() => Err("the packages can't be kept".to_owned()),
        // Whoever was quicker has the same.
        _ => Ok(folder),
    }
}

fn succeeded(command: &mut Command) -> Result<(), String> {
    let output = command.output().map_err(|error| format!("python3: {error}"))?;
    if output.status.success() {
        return Ok(());
    }
    let words = String::from_utf8_lossy(&output.stderr);
    Err(words.lines().next_back().unwrap_or("pip fails").to_owned())
}

impl Server {
    /// Posts a body and gives the answer's body; panics unless the status is 200.
    pub fn post(&self, path: &str, body: &str) -> String {
        let address = self.url.strip_prefix("http://").expect("http");
        let mut stream = TcpStream::connect(address).expect("the server listens");
        write!(
            stream,
            "POST {path} HTTP/1.1\r\nHost: {address}\r\nConnection: close\r\nContent-Length: {}\r\n\r\n{body}",
            body.len()
        )
        .expect("a request");
        let mut answer = String::new();
        stream.read_to_string(&mut answer).expect("an answer");
        let (head, content) = answer.split_once("\r\n\r\n").expect("a head");
        assert!(head.starts_with("HTTP/1.1 200"), "{body}: {answer}");
        if !head.contains("chunked") {
            return content.to_owned();
        }
        let mut whole = String::new();
        let mut rest = content;
        while let Some((size, after)) = rest.split_once("\r\n") {
            let size = usize::from_str_radix(size, 16).expect("a size");
            whole += &after[..size];
            rest = &after[size + 2..];
        }
        whole
    }
}

impl Database {
    /// Runs a statement and gives its answer.
    pub fn sql(&self, sql: &str) -> String {
        self.server.post(&format!("/?database={}", self.name), sql)
    }

    /// Sets the faults of requests to this database; an empty text ends them.
    pub fn faults(&self, faults: &str) {
        self.server
            .post(&format!("/faults?database={}&{faults}", self.name), "");
    }

    /// The statements that came for this database, with a count of those that match.
    pub fn count(&self, part: &str) -> usize {
        let log = self.server.post(&format!("/log?database={}", self.name), "");
        log.lines().filter(|line| line.contains(part)).count()
    }
}
