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

#[test]
fn types_of_other_writers_are_read() {
    let workdir = Workdir::new();
    let folder = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/forms");
    let mut files = 0;
    for entry in std::fs::read_dir(folder).expect("the folder").flatten() {
        let path = entry.path().display().to_string();
        if path.ends_with(".py") {
            continue;
        }
        let ran = workdir
            .run(&["analyze", &path, "--no-files", "--format", "json"])
            .succeeded();
        let summary = ran.json();
        assert_eq!(summary["anomaly_ranks"], serde_json::json!([5]), "{path}");
        assert_eq!(summary["anomaly_nodes"], serde_json::json!(["node-0"]), "{path}");
        assert_eq!(summary["data_quality"]["rows_read"], 320, "{path}");
        files += 1;
    }
    assert_eq!(files, 23);
}

/// The rows of a job with one slow rank as JSON, and the names of their columns.
fn json_rows() -> (Vec<serde_json::Map<String, serde_json::Value>>, Vec<String>) {
    let rows: Vec<serde_json::Map<_, _>> = slow_rank_5("j")
        .lines()
        .map(|line| serde_json::from_str(line).expect("a row"))
        .collect();
    let names = rows[0].keys().cloned().collect();
    (rows, names)
}

#[test]
fn documents_of_json_are_read() {
    let workdir = Workdir::new();
    let (rows, names) = json_rows();
    let lists: Vec<Vec<&serde_json::Value>> = rows
        .iter()
        .map(|row| names.iter().map(|name| &row[name]).collect())
        .collect();
    let meta: Vec<_> = names
        .iter()
        .map(|name| serde_json::json!({"name": name, "type": "String"}))
        .collect();
    let pretty = |value: &serde_json::Value| serde_json::to_string_pretty(value).expect("JSON");
    let count = rows.len();
    let in_lines = |heads: &[serde_json::Value]| {
        let lists = lists.iter().map(|list| serde_json::json!(list).to_string());
        let heads = heads.iter().map(serde_json::Value::to_string);
        heads.chain(lists).collect::<Vec<_>>().join("\n") + "\n"
    };
    let types: Vec<&str> = names
        .iter()
        .map(|name| {
            if name == "metric_values" {
                "Array(Float64)"
            } else {
                "LowCardinality(String)"
            }
        })
        .collect();
    let texts = [
        ("array.json", serde_json::json!(rows).to_string()),
        ("array-pretty.json", pretty(&serde_json::json!(rows))),
        (
            "objects.json",
            rows.iter().map(|row| pretty(&serde_json::json!(row)) + "\n").collect(),
        ),
        (
            "clickhouse.json",
            pretty(&serde_json::json!({"meta": meta, "data": rows, "rows": count, "statistics": {"elapsed": 0.1}})),
        ),
        (
            "clickhouse-compact.json",
            // A map of serde sorts its keys; ClickHouse writes the names first.
            format!(
                "{{\n\t\"meta\":\n{},\n\"data\":\n{},\n\t\"rows\": {count}\n}}\n",
                pretty(&serde_json::json!(meta)),
                pretty(&serde_json::json!(lists))
            ),
        ),
        (
            "pandas-split.json",
            serde_json::json!({"columns": names, "index": [0], "data": lists}).to_string(),
        ),
        ("compact.json", in_lines(&[serde_json::json!(names)])),
        (
            "compact.ndjson",
            in_lines(&[serde_json::json!(names), serde_json::json!(types)]),
        ),
    ];
    for (name, text) in texts {
        names_rank_5(&workdir, &workdir.file(name, &text));
        names_rank_5(&workdir, &workdir.file("packed", gz(text.as_bytes())));
        // Standard input has no name.
        let input = std::fs::File::open(workdir.path(name)).expect("the file");
        let mut command = workdir.command(&["analyze", "-", "--no-files", "--format", "json"]);
        let summary = ran(command.stdin(input)).succeeded().json();
        assert_eq!(summary["anomaly_ranks"], serde_json::json!([5]), "{name}");
    }
}

#[test]
fn json_that_names_no_columns_says_what_to_do() {
    let workdir = Workdir::new();
    let (rows, names) = json_rows();
    let list = |row: &serde_json::Map<_, _>| {
        let cells: Vec<&serde_json::Value> = names.iter().map(|name| &row[name]).collect();
        serde_json::json!(cells)
    };
    let lines: String = rows.iter().map(|row| list(row).to_string() + "\n").collect();
    let columns: serde_json::Map<_, _> = names
        .iter()
        .map(|name| {
            (
                name.clone(),
                serde_json::json!(rows.iter().map(|row| &row[name]).collect::<Vec<_>>()),
            )
        })
        .collect();
    let by_row = |name: &String| {
        let cells = rows
            .iter()
            .enumerate()
            .map(|(place, row)| (place.to_string(), row[name].clone()));
        serde_json::Value::Object(cells.collect())
    };
    let objects: serde_json::Map<_, _> = names.iter().map(|name| (name.clone(), by_row(name))).collect();
    for (name, text, says) in [
        ("a.json", lines, "JSONCompactEachRow"),
        ("b.json", serde_json::json!(columns).to_string(), "JSONColumns"),
        ("c.json", serde_json::json!(objects).to_string(), "orient=\"records\""),
    ] {
        let ran = workdir.run(&["analyze", &workdir.file(name, text), "--no-files"]);
        assert_eq!(ran.code, Some(4), "{ran:?}");
        assert!(ran.stderr.contains(says) && ran.stderr.contains("write it"), "{ran:?}");
    }
    let text = csv(',', str::to_owned, "");
    let without_header = text.split_once('\n').expect("a header").1;
    let ran = workdir.run(&["analyze", &workdir.file("d.csv", without_header), "--no-files"]);
    assert_eq!(ran.code, Some(4), "{ran:?}");
    assert!(ran.stderr.contains("does not name the columns"), "{ran:?}");
}

#[test]
fn a_document_that_was_cut_is_no_input() {
    let workdir = Workdir::new();
    let (rows, _) = json_rows();
    let whole = serde_json::json!({"meta": [], "data": rows, "rows": rows.len()}).to_string();
    let array = serde_json::json!(rows).to_string();
    let short = serde_json::json!({"meta": [], "data": rows[1..], "rows": rows.len()}).to_string();
    let failed = serde_json::json!({"data": rows, "exception": "Code: 241. DB::Exception: memory"}).to_string();
    for text in [
        &whole[..whole.len() - 3],
        &whole[..whole.len() / 2],
        &array[..array.len() - 1],
        &short,
        &failed,
    ] {
        let ran = workdir.run(&["analyze", &workdir.file("a.json", text), "--no-files"]);
        assert_eq!(ran.code, Some(4), "{ran:?}");
        assert!(
            ran.stderr.contains("a.json") && ran.stderr.contains("line 1"),
            "{ran:?}"
        );
    }
}

#[test]
fn columns_have_other_names() {
    let workdir = Workdir::new();
    let text = csv(',', str::to_owned, "");
    let (header, cells) = text.split_once('\n').expect("a header");
    let with_header = |header: &str| format!("{header}\n{cells}");
    names_rank_5(
        &workdir,
        &workdir.file("a.csv", with_header(&header.to_ascii_uppercase())),
    );
    let usual = header.replace("iteration", "step").replace("node", "Hostname");
    let file = workdir.file("b.csv", with_header(&usual));
    names_rank_5(&workdir, &file);
    let ran = workdir.run(&["analyze", &file, "--no-files", "-v"]).succeeded();
    assert!(
        ran.stdout.contains("column `Hostname` is read as `node`"),
        "{}",
        ran.stdout
    );
    let odd = header.replace("rank", "worker").replace("metric_values", "secs");
    let file = workdir.file("c.csv", with_header(&odd));
    let ran = workdir.run(&["analyze", &file, "--no-files"]);
    assert_eq!(ran.code, Some(4), "{ran:?}");
    assert!(
        ran.stderr.contains("`rank` is missing") && ran.stderr.contains("--column"),
        "{ran:?}"
    );
    let named = ["--column", "rank=worker", "--column", "metric_values=secs"];
    let args = [&["analyze", &file, "--no-files", "--format", "json"], &named[..]].concat();
    assert_eq!(
        workdir.run(&args).succeeded().json()["anomaly_ranks"],
        serde_json::json!([5])
    );
    let ndjson: String = slow_rank_5("j")
        .replace("\"rank\"", "\"worker\"")
        .replace("\"metric_values\"", "\"secs\"");
    let file = workdir.file("d.ndjson", ndjson);
    let args = [&["analyze", &file, "--no-files", "--format", "json"], &named[..]].concat();
    assert_eq!(
        workdir.run(&args).succeeded().json()["anomaly_ranks"],
        serde_json::json!([5])
    );
    for (flag, code) in [("worker=rank", 2), ("rank", 2), ("rank=gone", 4)] {
        let ran = workdir.run(&["analyze", &file, "--no-files", "--column", flag]);
        assert_eq!(ran.code, Some(code), "{ran:?}");
    }
}

#[test]
fn what_can_t_be_read_is_shown_by_an_example() {
    let workdir = Workdir::new();
    let text = csv(',', str::to_owned, "");
    let mut lines: Vec<&str> = text.lines().collect();
    let damaged = [
        lines[1].replacen(lines[1].split(',').next().expect("a time"), "yesterday", 1),
        lines[2].replace("megatron_timers,forward-compute,", "megatron_timers,forward-compute,r"),
    ];
    (lines[1], lines[2]) = (&damaged[0], &damaged[1]);
    let csv = workdir.file("a.csv", lines.join("\n") + "\n");
    let ran = workdir.run(&["analyze", &csv, "--no-files", "-v"]).succeeded();
    for says in [
        "column `timestamp` is not a time, such as `yesterday`",
        "column `rank` is not a whole number, such as `r",
    ] {
        assert!(ran.stdout.contains(says), "{says}: {}", ran.stdout);
    }
    let mut rows = slow_rank_5("j");
    rows = rows.replacen("\"iteration\":", "\"iteration\":\"first\",\"was\":", 1);
    let ndjson = workdir.file("a.ndjson", rows);
    let ran = workdir.run(&["analyze", &ndjson, "--no-files", "-v"]).succeeded();
    let says = "column `iteration` is not a whole number, such as `first`";
    assert!(ran.stdout.contains(says), "{}", ran.stdout);
}

#[test]
fn a_broken_file_of_a_folder_is_an_error_or_left_out() {
    let workdir = Workdir::new();
    std::fs::create_dir(workdir.path("rows")).expect("a folder");
    workdir.file("rows/a.ndjson", slow_rank_5("j"));
    workdir.file("rows/b.parquet", "PAR1 and nothing");
    workdir.file(
        "rows/c.csv",
        "timestamp,job,metric_name,subname,rank,iteration,metric_values\n1,j,m,t,0,1,odd\n",
    );
    let ran = workdir.run(&["analyze", "rows", "--no-files"]);
    assert_eq!(ran.code, Some(4), "{ran:?}");
    assert!(ran.stderr.contains("b.parquet"), "{ran:?}");
    let ran = workdir
        .run(&["analyze", "rows", "--no-files", "--skip-broken", "-v"])
        .succeeded();
    for says in ["b.parquet", "c.csv", "left out"] {
        assert!(ran.stdout.contains(says), "{says}: {}", ran.stdout);
    }
    let summary = workdir
        .run(&["analyze", "rows", "--no-files", "--skip-broken", "--format", "json"])
        .succeeded()
        .json();
    assert_eq!(summary["anomaly_ranks"], serde_json::json!([5]));
    // Nothing but broken files is no input.
    let ran = workdir.run(&["analyze", "rows/b.parquet", "--no-files", "--skip-broken"]);
    assert_eq!(ran.code, Some(4), "{ran:?}");
}

/// A rank's trace: four steps of a second, in which it computes for so long.
fn trace(rank: usize, computing: f64) -> String {
    let mut events = Vec::new();
    for step in 0..12 {
        let begin = 1_000_000.0 * f64::from(step) + 17.5;
        let event = |cat: &str, name: &str, from: f64, length: f64| {
            serde_json::json!({"ph": "X", "cat": cat, "name": name, "pid": 1, "tid": 7, "ts": begin + from, "dur": length,
                "args": {"stream": 7, "External id": 3}})
        };
        let computing = computing * (1.0 + 0.002 * f64::from((step * 5 + rank as i32 * 3) % 7));
        events.push(event(
            "user_annotation",
            &format!("ProfilerStep#{}", step + 3),
            0.0,
            999_000.0,
        ));
        events.push(event("cpu_op", "aten::mm", 10.0, 500.0));
        events.push(event("kernel", "ampere_bf16_gemm", 1_000.0, computing / 2.0));
        events.push(event(
            "kernel",
            "ampere_bf16_gemm",
            1_000.0 + computing / 2.0,
            computing / 2.0,
        ));
        let rest = 980_000.0 - computing;
        events.push(event(
            "kernel",
            "ncclDevKernel_AllReduce_Sum_bf16_RING_LL",
            1_000.0 + computing,
            rest,
        ));
    }
    events.push(serde_json::json!({"ph": "i", "name": "Record Window End", "ts": 5}));
    format!(
        "{{\n  \"schemaVersion\": 1,\n  \"deviceProperties\": [],\n  \"distributedInfo\": {{\"backend\": \"nccl\", \"rank\": {rank}, \
         \"world_size\": 8}},\n  \"baseTimeNanoseconds\": 1772352000000000000,\n  \"traceEvents\": {},\n  \"traceName\": \"x\"\n}}",
        serde_json::json!(events)
    )
}

#[test]
fn traces_of_the_profiler_name_the_rank_that_computes_slowly() {
    let workdir = Workdir::new();
    std::fs::create_dir(workdir.path("traces")).expect("a folder");
    for rank in 0..8 {
        let text = trace(rank, if rank == 5 { 800_000.0 } else { 500_000.0 });
        workdir.file(
            &format!("traces/gpu-{}_{rank}.17.pt.trace.json.gz", rank / 4),
            gz(text.as_bytes()),
        );
    }
    workdir.file("traces/other.json", "{\"traceEvents\": []}");
    let args = ["analyze", "traces", "--warmup", "0", "--no-files", "--format", "json"];
    let summary = workdir.run(&args).succeeded().json();
    assert_eq!(summary["job"], "traces");
    assert_eq!(summary["anomaly_ranks"], serde_json::json!([5]), "{summary}");
    assert_eq!(summary["anomaly_nodes"], serde_json::json!(["gpu-1"]));
    workdir.run(&["import", "traces", "--out", "job.parquet"]).succeeded();
    // Without a step, or a rank, it is no input; with few steps what to do is told.
    let bare = workdir.file("bare.json", trace(0, 1.0).replace("ProfilerStep", "Other"));
    let ran = workdir.run(&["analyze", &bare, "--no-files"]);
    assert!(ran.code == Some(4) && ran.stderr.contains("ProfilerStep"), "{ran:?}");
    let cut = workdir.file("rank-0.json", &trace(0, 1.0)[..3_000]);
    let ran = workdir.run(&["analyze", &cut, "--no-files"]);
    assert!(ran.code == Some(4) && ran.stderr.contains("breaks off"), "{ran:?}");
    std::fs::create_dir(workdir.path("few")).expect("a folder");
    let few = workdir.file(
        "few/rank-0.json",
        trace(0, 1.0)
            .replace("ProfilerStep#14", "x")
            .replace("ProfilerStep#13", "x"),
    );
    let ran = workdir.run(&["analyze", &few, "--no-files"]);
    assert!(ran.code == Some(3) && ran.stderr.contains("--warmup 0"), "{ran:?}");
}
