//! `machines detect` on a table of hardware metrics: the same verdict as on the file, the window cut on the server.

use serde_json::Value;

use crate::common::Workdir;
use crate::server::database;

#[test]
fn a_table_of_machine_metrics_gives_the_verdict_of_the_file() {
    let Some(database) = database("machine_metrics") else {
        return;
    };
    let workdir = Workdir::new();
    let schema = workdir
        .bare_command(&["schema", "--machines"])
        .output()
        .expect("a schema");
    let schema = String::from_utf8(schema.stdout).expect("text");
    database.sql(schema.trim().trim_end_matches(';'));
    let mut file = String::from("timestamp,job,node,metric,value\n");
    let mut rows = Vec::new();
    for second in 0..1_500_usize {
        for machine in 0..5_usize {
            let noise = ((second * 31 + machine * 97) * 7919 % 101) as f64 / 50.0;
            let level = if machine == 2 && second >= 1_000 { 200.0 } else { 300.0 };
            let (time, value) = (1_775_034_000 + second, level + noise);
            for job in ["a", "b"] {
                let value = if job == "b" { noise } else { value };
                file += &format!("{time},{job},gpu-{machine},gpu_power_draw,{value}\n");
                rows.push(format!("({time},'{job}','gpu-{machine}','gpu_power_draw',{value})"));
            }
        }
    }
    workdir.file("m.csv", file);
    database.sql(&format!("INSERT INTO machine_metrics VALUES {}", rows.join(",")));

    let json = |args: &[&str]| -> Value {
        let output = workdir.bare_command(args).output().expect("a run");
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        let mut value: Value = serde_json::from_slice(&output.stdout).expect("JSON");
        // What the server leaves out is not counted here.
        value.as_object_mut().expect("an object").remove("quality");
        value
    };
    let common = ["--no-files", "--format", "json", "--job-id", "a"];
    let server = ["--clickhouse-url", &database.server.url, "--database", database.name];
    for window in [
        &["--minutes", "15"][..],
        &["--from", "2026-04-01T09:05:00Z", "--to", "2026-04-01T09:24:00Z"],
    ] {
        let of_file = json(&[&["machines", "detect", "m.csv"], &common[..], window].concat());
        let of_table = json(&[&["machines", "detect"], &common[..], &server, window].concat());
        assert_eq!(of_file["anomaly_nodes"], serde_json::json!(["gpu-2"]));
        assert_eq!(of_table, of_file, "{window:?}");
    }
    // Neither the other job nor minutes that nobody asked for come over the wire.
    let asked = workdir
        .bare_command(&[&["machines", "detect", "--no-files"], &server[..]].concat())
        .output();
    let asked = asked.expect("a run");
    assert!(String::from_utf8_lossy(&asked.stderr).contains("choose one with --job-id"));
}
