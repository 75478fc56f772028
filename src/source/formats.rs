//! The table of what can be read: each form, how it is known, and what it can tell. `docs/formats.md` holds the same rows.

/// A form of input.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FormatRow {
    /// What it is.
    pub name: &'static str,
    /// How it is known.
    pub known_by: &'static str,
    /// What it can tell, and what it can't.
    pub tells: &'static str,
}

const fn row(name: &'static str, known_by: &'static str, tells: &'static str) -> FormatRow {
    FormatRow { name, known_by, tells }
}

const ALL: &str = "everything: slow ranks, nodes, causes, costs";

/// Every form that is read.
pub const FORMATS: [FormatRow; 16] = [
    row("Parquet", "PAR1, .parquet, .pq", ALL),
    row(
        "Arrow IPC, file and stream",
        "ARROW1 or a stream's mark, .arrow, .arrows, .ipc, .feather",
        ALL,
    ),
    row("CSV, TSV", ".csv, .tsv; a comma, tab, ; or | between the columns", ALL),
    row("NDJSON (JSONEachRow)", "{, .ndjson, .jsonl", ALL),
    row(
        "JSONCompactEachRowWithNames, JSONCompactEachRowWithNamesAndTypes",
        "[ and a line of names",
        ALL,
    ),
    row(
        "JSON document: ClickHouse's JSON and JSONCompact, a list of objects, pandas' orient=\"split\"",
        "{ or [",
        ALL,
    ),
    row(
        "Megatron-LM log, `times across ranks (ms)` with a line a rank",
        "its lines; .log, .out, .err or any name",
        "slow ranks, causes, costs; nodes with --nodes or --ranks-per-node; means over --log-interval iterations",
    ),
    row(
        "Megatron-LM log, `(min, max) time across ranks (ms)`, `max time across ranks (ms)`",
        "its lines",
        "slow windows, which timer grew, the slowest rank against the fastest; not which rank",
    ),
    row(
        "Megatron-LM log, iteration lines alone",
        "its lines",
        "slow windows, stalls, restarts, drift; nothing of single ranks",
    ),
    row(
        "Megatron-LM log until August 2022, `time (ms) | ...`",
        "its lines",
        "one rank's own times (the last rank; rank 0 in 2020): whether it computes or waits in a slow window; not which rank is slow",
    ),
    row(
        "DeepSpeed log, `time (ms) | fwd: ...`",
        "its lines",
        "rank 0's own times; not which rank is slow",
    ),
    row(
        "StragglerDetector (`--log-straggler`)",
        "its lines",
        "candidates: the rank that heads its reports; no verdict of ours",
    ),
    row(
        "NVRx report",
        "its lines",
        "candidates: ranks with a score below 0.7; no verdict of ours",
    ),
    row(
        "FlagScale straggler report",
        "its lines",
        "candidates: the ranks that it detected; no verdict of ours",
    ),
    row(
        "trace of PyTorch's profiler (Kineto), a file a rank",
        "deviceProperties, distributedInfo or ProfilerStep; .json",
        "ranks that compute slowly; nodes where the files are named after them; no transfers, no costs of waiting",
    ),
    row(
        "gzip, Zstandard, xz, lzma, bzip2, LZ4 around a log, CSV, TSV or JSON",
        "their first bytes",
        "what is inside, read as it is unpacked",
    ),
];
