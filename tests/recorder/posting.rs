//! Rows that the recorder posts to ClickHouse, read back by `analyze`.

use serde_json::json;

use crate::common::{Workdir, ran};
use crate::releases::{Release, releases};
use crate::server::{Database, database};
use crate::training::Training;

/// Trains with a rank slowed, posting into `table`, and analyses the table.
fn posted_and_judged(release: &Release, database: &Database, table: &str) {
    let workdir = Workdir::new();
    workdir.file("password", "pa'ss wörd\n");
    let told = Training::new(release)
        .asking(json!({"slow": {"5": 1.3}}))
        .with("MT_RECORDER_DIR", "")
        .with("MT_RECORDER_CLICKHOUSE_URL", database.server.url.as_str())
        .with("MT_RECORDER_CLICKHOUSE_USER", "writer")
        .with("MT_RECORDER_CLICKHOUSE_PASSWORD_FILE", "password")
        .with("MT_RECORDER_CLICKHOUSE_DATABASE", database.name)
        .with("MT_RECORDER_CLICKHOUSE_TABLE", table)
        .run(&workdir);
    assert!(!told.contains("lost"), "{told}");
    let mut command = workdir.command(&["analyze", "--table", table, "--no-files", "--format", "json"]);
    command.env("XDG_CONFIG_HOME", workdir.path("no-config"));
    command.env("CLICKHOUSE_URL", &database.server.url);
    command.env("CLICKHOUSE_DATABASE", database.name);
    let summary = ran(&mut command).succeeded().json();
    assert_eq!(summary["anomaly_ranks"], json!([5]), "{told}");
    assert_eq!(summary["anomaly_nodes"], json!(["gpu-001"]));
    // Times are UTC, whatever the server's zone.
    let first = database.sql(&format!("SELECT min(toUnixTimestamp(timestamp)) FROM {table}"));
    assert_eq!(first.trim(), "1767254400");
    let rows = database.sql(&format!(
        "SELECT count() FROM {table} WHERE rank = 7 AND subname = 'interval-time'"
    ));
    assert_eq!(rows.trim(), "39");
}

#[test]
fn posted_rows_name_the_slowed_rank() {
    let (Some(releases), Some(database)) = (releases(), database("recorder")) else {
        return;
    };
    let schema = Workdir::new().run(&["schema"]).succeeded().stdout;
    database.sql(schema.trim().trim_end_matches(';'));
    posted_and_judged(releases.last().expect("a release"), &database, "megatron_metrics");
}

/// The table of older collectors: times of a second in the server's zone, fewer columns.
#[test]
fn a_table_with_fewer_columns_will_do() {
    let (Some(releases), Some(database)) = (releases(), database("recorder_older")) else {
        return;
    };
    database.sql(
        "CREATE TABLE older (timestamp DateTime('Asia/Shanghai'), job String, metric_name String, subname String, \
         rank Int32, iteration Int32, node String, rerun_uuid String, metric_values Array(Float64)) \
         ENGINE = MergeTree ORDER BY (job, timestamp)",
    );
    posted_and_judged(releases.last().expect("a release"), &database, "older");
}
