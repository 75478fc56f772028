//! Files as people have them: packed, with other delimiters, with the types of ClickHouse, with times as DuckDB writes them.

mod common;

use std::io::Write as _;

use common::{Workdir, ran, slow_rank_5};
use mt_detector::source::timestamp;

/// The rows of a job with one slow rank as CSV, with a delimiter and the form of its times.
fn csv(delimiter: char, time: impl Fn(&str) -> String, below_header: &str) -> String {
    let header = [
        "timestamp",
        "job",
        "metric_name",
        "subname",
        "rank",
        "iteration",
        "metric_values",
        "node",
    ];
    let mut text = header.join(&delimiter.to_string()) + "\n" + below_header;
    for line in slow_rank_5("j").lines() {
        let row: serde_json::Value = serde_json::from_str(line).expect("a row");
        let cell = |name: &str| match &row[name] {
            serde_json::Value::String(word) => word.clone(),
            serde_json::Value::Array(_) => format!("\"{}\"", row[name]),
            serde_json::Value::Null => String::new(),
            other => other.to_string(),
        };
        let cells: Vec<String> = header
            .iter()
            .map(|name| {
                let written = cell(name);
                match *name {
                    "timestamp" => time(&timestamp::format(timestamp::parse(&written).expect("a time"))),
                    _ => written,
                }
            })
            .collect();
        text += &(cells.join(&delimiter.to_string()) + "\n");
    }
    text
}

fn names_rank_5(workdir: &Workdir, file: &str) {
    let summary = workdir
        .run(&["analyze", file, "--no-files", "--format", "json"])
        .succeeded()
        .json();
    assert_eq!(summary["anomaly_ranks"], serde_json::json!([5]), "{file}");
}

fn gz(text: &[u8]) -> Vec<u8> {
    let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    encoder.write_all(text).expect("packed");
    encoder.finish().expect("packed")
}

#[test]
fn packed_text_is_known_by_its_content() {
    let workdir = Workdir::new();
    let (csv, ndjson) = (csv(',', str::to_owned, ""), slow_rank_5("j"));
    let mut bz2 = bzip2::write::BzEncoder::new(Vec::new(), bzip2::Compression::fast());
    bz2.write_all(csv.as_bytes()).expect("packed");
    let mut lz4 = lz4_flex::frame::FrameEncoder::new(Vec::new());
    lz4.write_all(csv.as_bytes()).expect("packed");
    let mut xz = liblzma::write::XzEncoder::new(Vec::new(), 1);
    xz.write_all(csv.as_bytes()).expect("packed");
    for (name, bytes) in [
        ("a.csv.gz", gz(csv.as_bytes())),
        ("b.csv", gz(csv.as_bytes())),
        ("c.csv.zst", zstd::encode_all(csv.as_bytes(), 1).expect("packed")),
        ("d.csv.bz2", bz2.finish().expect("packed")),
        ("e.csv.lz4", lz4.finish().expect("packed")),
        ("f.csv.xz", xz.finish().expect("packed")),
        ("g.ndjson.gz", gz(ndjson.as_bytes())),
        ("h", gz(ndjson.as_bytes())),
    ] {
        names_rank_5(&workdir, &workdir.file(name, bytes));
    }
}

#[test]
fn other_delimiters_and_a_line_of_types_are_read() {
    let workdir = Workdir::new();
    for (name, delimiter) in [("a.csv", ';'), ("b.csv", '\t'), ("c.tsv", '\t'), ("d.csv", '|')] {
        names_rank_5(&workdir, &workdir.file(name, csv(delimiter, str::to_owned, "")));
    }
    let types = "DateTime,String,LowCardinality(String),String,Int32,Int32,Array(Float64),String\n";
    let file = workdir.file("e.csv", csv(',', str::to_owned, types));
    names_rank_5(&workdir, &file);
    let summary = workdir
        .run(&["analyze", &file, "--no-files", "--format", "json"])
        .succeeded()
        .json();
    assert_eq!(summary["data_quality"]["unreadable_rows"], 0);
}

#[test]
fn times_of_duckdb_and_pandas_are_read() {
    let workdir = Workdir::new();
    for (name, suffix) in [
        ("a.csv", "+00"),
        ("b.csv", " UTC"),
        ("c.csv", "Z"),
        ("d.csv", ".123+08"),
    ] {
        let time = |time: &str| time.trim_end_matches('Z').replace('T', " ") + suffix;
        names_rank_5(&workdir, &workdir.file(name, csv(';', time, "")));
    }
    let time = |time: &str| time.trim_end_matches('Z').replace('T', " ").replace('-', "/");
    names_rank_5(&workdir, &workdir.file("f.csv", csv(';', time, "")));
}

#[test]
fn csv_is_read_from_standard_input() {
    let workdir = Workdir::new();
    for bytes in [
        csv(',', str::to_owned, "").into_bytes(),
        gz(csv(';', str::to_owned, "").as_bytes()),
    ] {
        workdir.file("input", bytes);
        let input = std::fs::File::open(workdir.path("input")).expect("the file");
        let mut command = workdir.command(&["analyze", "-", "--no-files", "--format", "json"]);
        let summary = ran(command.stdin(input)).succeeded().json();
        assert_eq!(summary["anomaly_ranks"], serde_json::json!([5]));
    }
}

#[test]
fn one_bare_nan_does_not_lose_the_file() {
    let workdir = Workdir::new();
    for word in ["NaN", "Infinity", "-Infinity"] {
        let mut lines: Vec<String> = slow_rank_5("j").lines().map(str::to_owned).collect();
        let last = lines.last_mut().expect("a row");
        let mut row: serde_json::Value = serde_json::from_str(last).expect("a row");
        row["metric_values"] = serde_json::json!(["WORD"]);
        *last = row.to_string().replace("\"WORD\"", word);
        let file = workdir.file("a.ndjson", lines.join("\n") + "\n");
        names_rank_5(&workdir, &file);
        let summary = workdir
            .run(&["analyze", &file, "--no-files", "--format", "json"])
            .succeeded()
            .json();
        assert_eq!(summary["data_quality"]["missing_values"], 1, "{word}");
    }
}

#[test]
fn orc_and_avro_are_named_with_what_to_do() {
    let workdir = Workdir::new();
    for (name, bytes, says) in [
        ("a.orc", &b"ORC\x08\x03"[..], "Apache ORC"),
        ("b.avro", b"Obj\x01\x04", "Apache Avro"),
    ] {
        let file = workdir.file(name, bytes);
        let ran = workdir.run(&["analyze", &file, "--no-files"]);
        assert_eq!(ran.code, Some(4), "{ran:?}");
        assert!(
            ran.stderr.contains(says) && ran.stderr.contains("write it as Parquet"),
            "{ran:?}"
        );
    }
}
