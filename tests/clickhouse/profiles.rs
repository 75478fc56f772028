//! Profiles under which a server answers with less than it was asked for and says nothing: right, or refused by name.

use crate::common::{Ran, Workdir, slow_rank_5};
use crate::server::{Database, database};

/// Settings of a profile, with the one that an error names.
const PROFILES: [(&str, &str); 31] = [
    (
        "max_rows_to_read = 100, read_overflow_mode = 'break'",
        "read_overflow_mode",
    ),
    (
        "max_bytes_to_read = 1000, read_overflow_mode = 'break'",
        "read_overflow_mode",
    ),
    (
        "max_rows_to_group_by = 1, group_by_overflow_mode = 'break'",
        "group_by_overflow_mode",
    ),
    (
        "max_rows_to_group_by = 1, group_by_overflow_mode = 'any'",
        "group_by_overflow_mode",
    ),
    (
        "max_rows_to_sort = 1, sort_overflow_mode = 'break'",
        "sort_overflow_mode",
    ),
    (
        "max_result_rows = 1, result_overflow_mode = 'break'",
        "result_overflow_mode",
    ),
    (
        "max_result_bytes = 1, result_overflow_mode = 'break'",
        "result_overflow_mode",
    ),
    (
        "max_execution_time = 0.001, timeout_overflow_mode = 'break'",
        "timeout_overflow_mode",
    ),
    ("max_rows_in_set = 1, set_overflow_mode = 'break'", "set_overflow_mode"),
    (
        "max_rows_in_distinct = 1, distinct_overflow_mode = 'break'",
        "distinct_overflow_mode",
    ),
    (
        "max_rows_to_transfer = 1, transfer_overflow_mode = 'break'",
        "transfer_overflow_mode",
    ),
    ("limit = 1", "limit"),
    ("limit = 7", "limit"),
    ("offset = 1", "offset"),
    (
        "aggregate_functions_null_for_empty = 1",
        "aggregate_functions_null_for_empty",
    ),
    (
        "empty_result_for_aggregation_by_empty_set = 1",
        "empty_result_for_aggregation_by_empty_set",
    ),
    ("transform_null_in = 1", "transform_null_in"),
    ("prefer_column_name_to_alias = 1", "prefer_column_name_to_alias"),
    ("group_by_use_nulls = 1", "group_by_use_nulls"),
    ("use_query_cache = 1", "use_query_cache"),
    ("wait_for_async_insert = 0", "wait_for_async_insert"),
    ("skip_unavailable_shards = 1", "skip_unavailable_shards"),
    (
        "max_rows_in_join = 1, join_overflow_mode = 'break'",
        "join_overflow_mode",
    ),
    (
        "max_bytes_to_sort = 1, sort_overflow_mode = 'break'",
        "sort_overflow_mode",
    ),
    ("max_bytes_in_set = 1, set_overflow_mode = 'break'", "set_overflow_mode"),
    (
        "max_bytes_in_distinct = 1, distinct_overflow_mode = 'break'",
        "distinct_overflow_mode",
    ),
    (
        "max_bytes_to_transfer = 1, transfer_overflow_mode = 'break'",
        "transfer_overflow_mode",
    ),
    (
        "max_rows_to_read_leaf = 1, read_overflow_mode_leaf = 'break'",
        "read_overflow_mode_leaf",
    ),
    (
        "max_execution_time_leaf = 0.001, timeout_overflow_mode_leaf = 'break'",
        "timeout_overflow_mode_leaf",
    ),
    ("additional_result_filter = '1 = 0'", "additional_result_filter"),
    (
        "additional_table_filters = {'profiles.megatron_metrics': 'rank != 5'}",
        "additional_table_filters",
    ),
];

/// Commands that read, and what of them has to be the same.
const COMMANDS: [&[&str]; 5] = [
    &["analyze", "--no-files", "--format", "json", "--job-id", "job"],
    &[
        "analyze",
        "--no-files",
        "--format",
        "json",
        "--job-id",
        "job",
        "--reduce",
        "local",
    ],
    &[
        "analyze",
        "--no-files",
        "--format",
        "json",
        "--job-id",
        "job",
        "--table-cells",
        "40",
    ],
    &["jobs"],
    &["export", "--job-id", "job", "--out", "job.parquet", "--force"],
];

fn encoded(text: &str) -> String {
    text.bytes().map(|byte| format!("%{byte:02X}")).collect()
}

fn run(workdir: &Workdir, database: &Database, args: &[&str], reader: bool) -> Ran {
    let user = ["--user", "reader", "--password-file", "password", "--retries", "1"];
    let more = if reader { &user[..] } else { &user[4..] };
    let args: Vec<&str> = args.iter().chain(more).copied().collect();
    workdir.run_on(database, &args)
}

#[test]
fn no_profile_cuts_an_answer_in_silence() {
    let Some(database) = database("profiles") else { return };
    let database = database.with_slow_rank();
    let workdir = Workdir::new();
    workdir.file("password", "s3cret\n");
    let result = |outcome: &Ran| {
        let file = std::fs::read(workdir.path("job.parquet")).unwrap_or_default();
        // Of an export only that it has all rows is the same: the engine's threads order equal keys as they come.
        (outcome.stdout.clone(), file.len())
    };
    let right: Vec<_> = COMMANDS
        .iter()
        .map(|args| result(&run(&workdir, &database, args, false).succeeded()))
        .collect();
    for (profile, setting) in PROFILES {
        database.faults(&format!("profile={}", encoded(profile)));
        let mut line = format!("{profile:<64}");
        for (args, right) in COMMANDS.iter().zip(&right) {
            for reader in [false, true] {
                let outcome = run(&workdir, &database, args, reader);
                match outcome.code {
                    Some(0) => {
                        assert_eq!(outcome.stdout, right.0, "{profile}, reader {reader}: {args:?}");
                        line += " right  ";
                    }
                    Some(4) => {
                        assert!(outcome.stdout.is_empty(), "{profile}: {outcome:?}");
                        // The setting is named, or the server itself refuses, for its limit holds now, or the list's own count
                        // disagrees with its lines.
                        let named = [setting, "code ", "cut short"]
                            .iter()
                            .any(|word| outcome.stderr.contains(word));
                        assert!(named, "{profile}, reader {reader}: {args:?}: {outcome:?}");
                        assert!(!reader || !outcome.stderr.contains("code 164"), "{outcome:?}");
                        line += " refused";
                    }
                    _ => panic!("{profile}, reader {reader}: {args:?}: {outcome:?}"),
                }
            }
        }
        println!("{line}");
    }
    database.faults("");
}

#[cfg(unix)]
#[test]
fn an_export_replaces_plain_files_only() {
    use std::os::unix::fs::PermissionsExt;
    let Some(database) = database("exports") else { return };
    let database = database.with_slow_rank();
    let workdir = Workdir::new();
    let export = |out: &str| workdir.run_on(&database, &["export", "--out", out, "--force"]);
    workdir.file("target", "keep");
    std::os::unix::fs::symlink(workdir.path("target"), workdir.path("link.parquet")).expect("a link");
    std::fs::create_dir(workdir.path("folder.parquet")).expect("a folder");
    let pipe = std::process::Command::new("mkfifo")
        .arg(workdir.path("pipe.parquet"))
        .status();
    assert!(pipe.is_ok_and(|status| status.success()));
    let before = workdir.names();
    for out in ["link.parquet", "folder.parquet", "pipe.parquet"] {
        let outcome = export(out);
        assert_eq!(outcome.code, Some(5), "{outcome:?}");
        assert!(outcome.stderr.contains("no plain file"), "{outcome:?}");
        assert_eq!(workdir.names(), before);
    }
    assert_eq!(std::fs::read_to_string(workdir.path("target")).expect("a file"), "keep");
    export("job.parquet").succeeded();
    export("job.parquet").succeeded();
    let mode = |name: &str| {
        std::fs::metadata(workdir.path(name))
            .expect("a file")
            .permissions()
            .mode()
            & 0o777
    };
    // As any new file: what the umask leaves.
    assert_eq!(mode("job.parquet"), mode("target"));
}

#[test]
fn loads_at_once_write_each_row_once() {
    let Some(database) = database("loads_at_once") else {
        return;
    };
    let database = database.with_table();
    let workdir = Workdir::new();
    workdir.file("a.ndjson", slow_rank_5("job"));
    std::thread::scope(|scope| {
        for _ in 0..3 {
            scope.spawn(|| workdir.run_on(&database, &["load", "a.ndjson"]).succeeded());
        }
    });
    assert_eq!(database.sql("SELECT count() FROM megatron_metrics").trim(), "320");
}

#[test]
fn no_profile_makes_a_load_write_rows_twice() {
    let Some(database) = database("profiles_load") else {
        return;
    };
    let database = database.with_table();
    let workdir = Workdir::new();
    workdir.file("a.ndjson", slow_rank_5("job"));
    workdir.run_on(&database, &["load", "a.ndjson"]).succeeded();
    let count = || database.sql("SELECT count() FROM megatron_metrics").trim().to_owned();
    let rows = count();
    for (profile, _) in PROFILES {
        database.faults(&format!("profile={}", encoded(profile)));
        let outcome = workdir.run_on(&database, &["load", "a.ndjson", "--retries", "1"]);
        database.faults("");
        assert!(matches!(outcome.code, Some(0 | 4)), "{profile}: {outcome:?}");
        assert_eq!(count(), rows, "{profile}: {outcome:?}");
    }
}
