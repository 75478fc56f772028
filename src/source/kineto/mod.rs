//! Traces of PyTorch's profiler (Kineto, Chrome's format), a file a rank, as rows: what a rank's device computed, communicated and
//! waited in each `ProfilerStep`.
//!
//! In: bytes of traces. Out: batches of [`Rows`]. May use: the readers' common parts in `source`, `contract`.
//!
//! `document` goes through a file event by event, `steps` makes the times of a step of its kernels.

mod document;
mod steps;

use std::path::Path;

use memchr::memmem;

use super::columns::Columns;
use super::discover::SourceFile;
use super::error::SourceError;
use super::rows::{Rows, TextColumn};
use crate::contract::metrics::{GROUPS, TIMERS};
use crate::contract::timers::{FORWARD_COMPUTE, INTERVAL_TIME};
use document::{Trace, read};

/// Time in communication kernels, with the waiting for others.
const COMMUNICATION: &str = "gpu-communication";
/// Time in which no kernel ran.
const IDLE: &str = "gpu-idle";

/// Whether a text is a trace of the profiler, by its first keys.
pub(super) fn is_trace(head: &[u8]) -> bool {
    let text = head.strip_prefix(b"\xef\xbb\xbf").unwrap_or(head).trim_ascii_start();
    let has = |key: &[u8]| memmem::find(head, key).is_some();
    text.starts_with(b"{")
        && (has(b"\"deviceProperties\"") || has(b"\"distributedInfo\"") || has(b"\"ProfilerStep#"))
        && (has(b"\"traceEvents\"") || has(b"\"schemaVersion\""))
}

/// Reads one rank's trace.
///
/// # Errors
/// A file that can't be read, is no such trace, names no rank or holds no step.
pub(super) fn open(
    file: &SourceFile,
    columns: Columns,
) -> Result<std::iter::Once<Result<Rows, SourceError>>, SourceError> {
    let path = file.path.as_path();
    let trace = read(file)?;
    let wrong = |advice: &str| SourceError::WrongFormat {
        path: path.to_owned(),
        expected: "usable trace",
        advice: advice.to_owned(),
    };
    let rank = trace.rank.or_else(|| rank_of_name(path));
    let rank = rank.ok_or_else(|| wrong("it does not say whose it is: name it rank-N.json, where N is the rank"))?;
    if trace.steps.is_empty() {
        return Err(wrong(
            "it has no ProfilerStep; call the profiler's step() at the end of each iteration",
        ));
    }
    Ok(std::iter::once(Ok(rows(path, rank, &trace, columns))))
}

/// The rows of a trace.
fn rows(path: &Path, rank: i64, trace: &Trace, columns: Columns) -> Rows {
    let mut rows = Rows {
        node: Some(TextColumn::default()),
        cluster: columns.all().then(TextColumn::default),
        attributes: columns.all().then(TextColumn::default),
        ..Rows::default()
    };
    let (job, node) = (job_of(path), node_of(path));
    let mut push = |metric: &str, name: &str, iteration: Option<i64>, time: i64, value: f64| {
        rows.timestamp.push(Some(time));
        rows.job.push(Some(&job));
        rows.metric_name.push(Some(metric));
        rows.subname.push(Some(name));
        rows.rank.push(Some(rank));
        rows.iteration.push(iteration);
        rows.value.push(Some(value));
        rows.calls.push(columns.all().then_some(value));
        for column in [&mut rows.cluster, &mut rows.attributes].into_iter().flatten() {
            column.push(None);
        }
        if let Some(nodes) = &mut rows.node {
            nodes.push(node.as_deref());
        }
    };
    let times = trace.times();
    let begin = times.first().map_or(0, |step| step.end);
    for (group, position) in &trace.positions {
        push(
            GROUPS,
            group,
            times.first().map(|step| step.number),
            begin,
            *position as f64,
        );
    }
    for step in &times {
        for (name, seconds) in [
            (INTERVAL_TIME, step.seconds),
            (FORWARD_COMPUTE, step.computing),
            (COMMUNICATION, step.communicating),
            (IDLE, step.idle),
        ] {
            push(TIMERS, name, Some(step.number), step.end, seconds);
        }
    }
    rows
}

/// The job that traces are of where nothing names it: their folder.
fn job_of(path: &Path) -> String {
    let whole = path.canonicalize().unwrap_or_else(|_| path.to_owned());
    let folder = whole.parent().and_then(Path::file_name);
    folder.map_or_else(|| "trace".to_owned(), |name| name.to_string_lossy().into_owned())
}

/// The machine that `tensorboard_trace_handler` names a file after: `gpu-7_1234.1700000000.pt.trace.json`.
fn node_of(path: &Path) -> Option<String> {
    let name = path.file_name()?.to_str()?;
    let worker = name.split_once(".pt.trace.json")?.0;
    let worker = worker
        .rsplit_once('.')
        .filter(|(_, time)| is_number(time))
        .map_or(worker, |(worker, _)| worker);
    let (host, process) = worker.rsplit_once('_')?;
    (is_number(process) && !host.is_empty()).then(|| host.to_owned())
}

fn is_number(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit())
}

/// The rank in a name: `rank-3.json.gz`, `rank3_trace.json`, `trace_rank[3].json`.
fn rank_of_name(path: &Path) -> Option<i64> {
    let name = path.file_name()?.to_str()?.to_ascii_lowercase();
    let at = name.rfind("rank")?;
    let rest = name[at + 4..].trim_start_matches(['-', '_', '[', '.', ' ', '=']);
    let digits = rest.bytes().take_while(u8::is_ascii_digit).count();
    rest[..digits].parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_tell_rank_and_machine() {
        for (name, rank) in [
            ("rank-3.json.gz", Some(3)),
            ("Rank12_trace.json", Some(12)),
            ("trace_rank[7]_step_3.json", Some(7)),
            ("trace.json", None),
        ] {
            assert_eq!(rank_of_name(Path::new(name)), rank, "{name}");
        }
        let node = |name: &str| node_of(Path::new(name));
        assert_eq!(node("gpu-7_1234.1700000000.pt.trace.json.gz").as_deref(), Some("gpu-7"));
        assert_eq!((node("rank-3.json"), node("worker0.pt.trace.json")), (None, None));
    }

    #[test]
    fn a_trace_is_told_from_other_json() {
        assert!(is_trace(b"{\n \"schemaVersion\": 1,\n \"deviceProperties\": [],"));
        assert!(is_trace(b"{\"traceEvents\":[{\"name\":\"ProfilerStep#3\""));
        assert!(!is_trace(b"{\"traceEvents\":[{\"name\":\"x\"}]}"));
        assert!(!is_trace(b"{\"timestamp\":1}"));
    }
}
