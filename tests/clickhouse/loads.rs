//! `load` takes every format that `analyze` reads, and tells by the rows what is there already, not by the file.

use std::fs::File;

use polars::prelude::*;

use crate::common::{Ran, Workdir, fixture, ran, row};
use crate::server::{Database, database};

/// Rows whose cells text formats must quote or escape, with arrays, attributes and fractions of seconds.
const ODD: &str = r#"
{"timestamp":"2026-01-01 08:00:00.000001","job":"it's, \"odd\"","metric_name":"megatron_timers","subname":"a,b","rank":0,"iteration":1,"node":"n\"0\"","cluster":"c,1","metric_values":[0.1,0.30000000000000004,1e-300],"attributes":"{\"a\":[1,{\"b\":\"x, \\\"y\\\"\\n\"}],\"n\":null}","rerun_uuid":""}
{"timestamp":"2026-01-01 08:00:01.5","job":"it's, \"odd\"","metric_name":"megatron_timers_trace","subname":"two\nlines","rank":2147483647,"iteration":9007199254740993,"node":"","cluster":"","metric_values":[-0.0,2],"attributes":"not JSON, \"quoted\"\nand more","rerun_uuid":"r,1"}
{"timestamp":"2026-01-01 08:00:02","job":"it's, \"odd\"","metric_name":"other","subname":"","rank":-1,"iteration":-1,"node":"\\N?","cluster":"ü","metric_values":[],"attributes":"{}","rerun_uuid":"\""}
"#;

impl Database {
    /// A number that tells every cell of every row.
    fn whole(&self) -> String {
        self.sql("SELECT count(), sum(cityHash64(*)) FROM megatron_metrics")
    }

    fn load(&self, workdir: &Workdir, files: &[&str]) -> Ran {
        let args: Vec<&str> = ["load"].iter().chain(files).copied().collect();
        workdir.run_on(self, &args)
    }
}

/// The table's rows in every format, as ClickHouse and Polars write them.
fn in_every_format(database: &Database, workdir: &Workdir, job: &str) -> [&'static str; 5] {
    workdir
        .run_on(database, &["export", "--job-id", job, "--out", "j.parquet"])
        .succeeded();
    let parquet = File::open(workdir.path("j.parquet")).expect("the export");
    let mut frame = ParquetReader::new(parquet).finish().expect("a frame");
    let create = |name: &str| File::create(workdir.path(name)).expect("a file");
    IpcWriter::new(create("j.arrow"))
        .finish(&mut frame)
        .expect("an Arrow file");
    let job = job.replace('\'', "''");
    let select = format!("SELECT * FROM megatron_metrics WHERE job = '{job}' ORDER BY rank");
    let ndjson = database.sql(&format!("{select} FORMAT JSONEachRow"));
    workdir.file("j.csv", database.sql(&format!("{select} FORMAT CSVWithNames")));
    workdir.file("j.ndjson", &ndjson);
    // The attributes as what they stand for.
    let nested = ndjson.lines().map(|line| {
        let mut row: serde_json::Value = serde_json::from_str(line).expect("JSON");
        if let Some(nested) = row["attributes"]
            .as_str()
            .and_then(|text| serde_json::from_str(text).ok())
        {
            row["attributes"] = nested;
        }
        format!("{row}\n")
    });
    workdir.file("nested.jsonl", nested.collect::<String>());
    ["j.parquet", "j.csv", "j.ndjson", "nested.jsonl", "j.arrow"]
}

/// Each format gives the rows, twice changes nothing, and all the other formats after it neither.
fn every_format_gives(database: &Database, job: &str) {
    let workdir = Workdir::new();
    let files = in_every_format(database, &workdir, job);
    let (there, rows) = (database.whole(), database.sql("SELECT count() FROM megatron_metrics"));
    let rows = rows.trim();
    for file in files {
        database.sql("TRUNCATE TABLE megatron_metrics");
        let first = database.load(&workdir, &[file]).succeeded();
        assert!(
            first.stderr.contains(&format!(
                ": {rows} rows written, 0 were there already, 0 left out because"
            )),
            "{file}: {first:?}"
        );
        assert_eq!(database.whole(), there, "{file}");
        for again in files {
            let again = database.load(&workdir, &[again]).succeeded();
            assert!(
                again
                    .stderr
                    .contains(&format!(": 0 rows written, {rows} were there already, 0 left out")),
                "{file}: {again:?}"
            );
        }
    }
}

#[test]
fn loading_a_job_from_any_format_gives_the_same_rows() {
    let Some(database) = database("formats") else { return };
    let file = fixture("restart-dirty.parquet");
    database.load(&Workdir::new(), &["--create", file.as_str()]).succeeded();
    every_format_gives(&database, "restart-dirty");
}

#[test]
fn loading_keeps_cells_that_text_must_quote() {
    let Some(database) = database("odd") else { return };
    let database = database.with_table();
    database.sql(&format!("INSERT INTO megatron_metrics FORMAT JSONEachRow{ODD}"));
    every_format_gives(&database, "it's, \"odd\"");
}

#[test]
fn loading_from_standard_input() {
    let Some(database) = database("piped") else { return };
    let database = database.with_table();
    let workdir = Workdir::new();
    workdir.file("rows", row("j", "t", 0, 1, 0.5) + "\n" + &row("j", "t", 1, 1, 0.25));
    for counts in [": 2 rows written, 0 were", ": 0 rows written, 2 were"] {
        let mut command = workdir.command(&["load", "-", "--clickhouse-url", &database.server.url]);
        command.env("CLICKHOUSE_DATABASE", database.name);
        command.stdin(File::open(workdir.path("rows")).expect("the rows"));
        let loaded = ran(&mut command).succeeded();
        assert!(loaded.stderr.contains(counts), "{loaded:?}");
    }
    let values = database.sql("SELECT rank, metric_values, cluster, attributes FROM megatron_metrics ORDER BY rank");
    assert_eq!(values, "0\t[0.5]\tc\t{}\n1\t[0.25]\tc\t{}\n");
}

#[test]
fn loading_a_folder_of_several_formats() {
    let Some(database) = database("mixed") else { return };
    let database = database.with_table();
    database.sql(&crate::insert_slow_rank("exported", 30));
    let workdir = Workdir::new();
    in_every_format(&database, &workdir, "exported");
    std::fs::create_dir_all(workdir.path("all/deeper")).expect("a folder");
    // Each file is another job.
    for (from, to, job) in [("j.csv", "all/a.csv", "a"), ("nested.jsonl", "all/deeper/b.jsonl", "b")] {
        let text = std::fs::read_to_string(workdir.path(from)).expect("text");
        workdir.file(to, text.replace("exported", job));
    }
    std::fs::rename(workdir.path("j.arrow"), workdir.path("all/c.arrow")).expect("a file");
    workdir.file("all/notes.txt", "for people");
    std::fs::copy(fixture("slow-rank.parquet"), workdir.path("all/d.parquet")).expect("a fixture");
    database.sql("TRUNCATE TABLE megatron_metrics");
    let loaded = database.load(&workdir, &["all"]).succeeded();
    assert!(
        loaded.stderr.contains("passed over for its ending: all/notes.txt"),
        "{loaded:?}"
    );
    let jobs = database.sql("SELECT job, count() FROM megatron_metrics GROUP BY job ORDER BY job");
    assert_eq!(jobs, "a\t480\nb\t480\nexported\t480\nslow-rank\t6768\n");
    let again = database.load(&workdir, &["all/*", "all/a.csv"]).succeeded();
    assert!(
        again.stderr.contains(": 0 rows written, 8208 were there already"),
        "{again:?}"
    );
    for job in ["a", "b", "exported"] {
        let verdict = workdir
            .run_on(&database, &["analyze", "--no-files", "--job-id", job])
            .succeeded();
        assert!(verdict.stdout.contains("anomaly_ranks: [5]"), "{verdict:?}");
    }
}

#[test]
fn loading_a_file_that_breaks_off_is_completed_by_a_whole_one() {
    let Some(database) = database("broken") else { return };
    let database = database.with_table();
    database.sql(&format!("INSERT INTO megatron_metrics FORMAT JSONEachRow{ODD}"));
    let workdir = Workdir::new();
    let job = "it's, \"odd\"";
    in_every_format(&database, &workdir, job);
    let there = database.whole();
    workdir.file("a-first.ndjson", row("first", "t", 0, 1, 0.5) + "\n");
    for name in ["j.csv", "j.ndjson"] {
        let whole = std::fs::read(workdir.path(name)).expect("the file");
        // In the last line: in its middle, inside of quotes, before its line break.
        let line_break = whole[..whole.len() - 1]
            .iter()
            .rposition(|&byte| byte == b'\n')
            .expect("lines");
        let cuts = match name {
            "j.csv" => (line_break + 2..whole.len()).step_by(7).chain([whole.len() - 1]),
            // A JSON object that is closed is whole.
            _ => (line_break + 2..whole.len() - 1).step_by(7).chain([whole.len() - 2]),
        };
        for cut in cuts {
            database.sql("TRUNCATE TABLE megatron_metrics");
            let cut_name = format!("cut-{name}");
            workdir.file(&cut_name, &whole[..cut]);
            let outcome = database.load(&workdir, &["a-first.ndjson", &cut_name]);
            assert_eq!(outcome.code, Some(4), "{cut}: {outcome:?}");
            assert!(
                outcome.stderr.contains(&format!("{cut_name} at line ")),
                "{cut}: {outcome:?}"
            );
            assert!(outcome.stderr.contains("loading again writes the rest"), "{outcome:?}");
            let rows = database.sql("SELECT count() FROM megatron_metrics WHERE job = 'first'");
            // Files are read in the order of their names.
            assert_eq!(rows.trim(), "1", "{cut}: {outcome:?}");
        }
        database.load(&workdir, &[name]).succeeded();
        database.sql("DELETE FROM megatron_metrics WHERE job = 'first'");
        assert_eq!(database.whole(), there, "{name}");
    }
}

#[test]
fn loading_counts_what_the_table_can_not_hold() {
    let Some(database) = database("unfit") else { return };
    let database = database.with_table();
    let workdir = Workdir::new();
    let header = "timestamp,job,metric_name,subname,rank,iteration,node,cluster,metric_values,attributes,rerun_uuid\n";
    let lines = [
        // Nulls that the table takes as empty.
        (
            "1767254400",
            "j",
            "m",
            "t",
            "0",
            "1",
            "NULL",
            "NULL",
            "NULL",
            "NULL",
            "NULL",
        ),
        (
            "1767254400",
            "j",
            "m",
            "t",
            "0.0",
            "2",
            "n",
            "c",
            "[0.5,null]",
            "NULL",
            "r",
        ),
        // What it does not take, null or unreadable.
        ("NULL", "j", "m", "t", "0", "1", "n", "c", "[1]", "NULL", "r"),
        ("yesterday", "j", "m", "t", "0", "1", "n", "c", "[1]", "NULL", "r"),
        ("1767254400", "NULL", "m", "t", "0", "1", "n", "c", "[1]", "NULL", "r"),
        ("1767254400", "j", "NULL", "t", "0", "1", "n", "c", "[1]", "NULL", "r"),
        ("1767254400", "j", "m", "NULL", "0", "1", "n", "c", "[1]", "NULL", "r"),
        ("1767254400", "j", "m", "t", "0.5", "1", "n", "c", "[1]", "NULL", "r"),
        (
            "1767254400",
            "j",
            "m",
            "t",
            "2147483648",
            "1",
            "n",
            "c",
            "[1]",
            "NULL",
            "r",
        ),
        ("1767254400", "j", "m", "t", "0", "NULL", "n", "c", "[1]", "NULL", "r"),
    ];
    let (mut csv, mut ndjson) = (header.to_owned(), String::new());
    for (time, job, metric, timer, rank, iteration, node, cluster, values, attributes, run) in lines {
        let text = |cell: &str| match cell {
            "NULL" => "null".to_owned(),
            text => format!("\"{text}\""),
        };
        let plain = |cell: &str| {
            if cell == "NULL" {
                "null".to_owned()
            } else {
                cell.to_owned()
            }
        };
        csv += &format!(
            "{time},{job},{metric},{timer},{rank},{iteration},{node},{cluster},\"{values}\",{attributes},{run}\n"
        )
        .replace("NULL", "\\N");
        ndjson += &format!(
            r#"{{"timestamp":{},"job":{},"metric_name":{},"subname":{},"rank":{},"iteration":{},"node":{},"cluster":{},"metric_values":{},"attributes":{},"rerun_uuid":{}}}"#,
            text(time),
            text(job),
            text(metric),
            text(timer),
            plain(rank),
            plain(iteration),
            text(node),
            text(cluster),
            plain(values),
            plain(attributes),
            text(run)
        );
        ndjson += "\n";
    }
    workdir.file("unfit.csv", csv);
    workdir.file("unfit.ndjson", ndjson);
    let mut held = Vec::new();
    for name in ["unfit.csv", "unfit.ndjson"] {
        database.sql("TRUNCATE TABLE megatron_metrics");
        let loaded = database.load(&workdir, &[name]).succeeded();
        assert!(
            loaded
                .stderr
                .contains(": 2 rows written, 0 were there already, 8 left out because"),
            "{loaded:?}"
        );
        held.push(database.sql("SELECT * FROM megatron_metrics ORDER BY iteration"));
    }
    assert_eq!(held[0], held[1]);
    let (first, second) = held[0].trim().split_once('\n').expect("two rows");
    assert!(first.ends_with("\t0\t1\t\t\t\t[]\t{}"), "{first}");
    assert!(second.ends_with("\t0\t2\tn\tc\tr\t[0.5,nan]\t{}"), "{second}");
}

#[test]
fn loading_attributes_into_columns_of_other_types() {
    let Some(database) = database("typed") else { return };
    let workdir = Workdir::new();
    let columns = "timestamp DateTime, job String, metric_name String, subname String, rank Int32, iteration Int32, \
                   metric_values Array(Float64)";
    let of = |attributes: &str| row("j", "t", 0, 1, 0.5).replace(r#""{}""#, attributes) + "\n";
    workdir.file(
        "j.ndjson",
        of(r#"{"a":{"b":[1,2]}}"#) + &of("null") + &of(r#""""#) + &of("[1]") + &of(r#""{no""#),
    );
    for (kind, told, counts, there) in [
        (
            "JSON",
            "",
            ": 3 rows written, 0 were there already, 2 left out",
            "[1,2]\n[]\n[]\n",
        ),
        (
            "Map(String, String)",
            "attributes are not written",
            ": 5 rows written",
            "",
        ),
    ] {
        database.sql("DROP TABLE IF EXISTS megatron_metrics");
        database.sql(&format!(
            "CREATE TABLE megatron_metrics ({columns}, attributes {kind}) ENGINE = MergeTree ORDER BY job"
        ));
        let loaded = database.load(&workdir, &["j.ndjson"]).succeeded();
        assert!(
            loaded.stderr.contains(told) && loaded.stderr.contains(counts),
            "{loaded:?}"
        );
        let again = database.load(&workdir, &["j.ndjson"]).succeeded();
        assert!(again.stderr.contains(": 0 rows written"), "{again:?}");
        if kind == "JSON" {
            let numbers = "SELECT attributes.a.b::Array(Int64) AS numbers FROM megatron_metrics ORDER BY numbers DESC";
            assert_eq!(database.sql(numbers), there);
        }
    }
}
