//! `whatif` as a user runs it: published figures, dirty traces, single questions, jobs.

mod common;

use std::fs::File;
use std::path::{Path, PathBuf};

use common::{Workdir, committed, fixture, validates};
use mt_detector::whatif::slowdown::Slowdown;
use polars::prelude::*;
use serde_json::Value;

/// A row of an op trace.
#[derive(Debug, Clone)]
struct Row {
    dp: i32,
    stage: i32,
    step: i64,
    kind: &'static str,
    start: f64,
    seconds: f64,
    number: i32,
    chunk: i32,
    global_chunk: i32,
}

/// Two stages and two replicas with one microbatch, times worked out by hand: replica 1's stage 0 takes `slow` times as
/// long in its forward pass of 1 s; backward passes take 2 s, transfers 0.1 s, everything else nothing but the optimizer's
/// 0.5 s.
fn by_hand(slow: f64) -> Vec<Row> {
    let mut rows = Vec::new();
    for step in [7, 9] {
        let forward = [1.0, slow];
        let end_of = |dp: usize| forward[dp] + 0.1 + 1.0 + 2.0 + 0.1 + 2.0;
        let last = end_of(0).max(end_of(1));
        for dp in [0, 1] {
            let mut push = |stage, kind, start, seconds, pass: bool| {
                rows.push(Row {
                    dp: dp as i32,
                    stage,
                    step,
                    kind,
                    start,
                    seconds,
                    number: 0,
                    chunk: if pass { 0 } else { -1 },
                    global_chunk: if pass { stage } else { -1 },
                });
            };
            let mine = forward[dp];
            push(0, "forward-compute", 0.0, mine, true);
            push(0, "forward-send", mine, 0.1, false);
            push(1, "forward-recv", 0.0, mine + 0.1, false);
            push(1, "forward-compute", mine + 0.1, 1.0, true);
            push(1, "backward-compute", mine + 1.1, 2.0, true);
            push(1, "backward-send", mine + 3.1, 0.1, false);
            push(0, "backward-recv", mine + 0.1, 3.1, false);
            push(0, "backward-compute", mine + 3.2, 2.0, true);
            for stage in [0, 1] {
                let done = if stage == 0 { mine + 5.2 } else { mine + 3.1 };
                push(
                    stage,
                    "optimizer-clip-main-grad",
                    done,
                    f64::max(last - done, 0.0),
                    false,
                );
                push(stage, "optimizer", last, 0.5, false);
            }
        }
    }
    rows
}

fn write(path: &Path, rows: &[Row]) {
    let ints =
        |name: &str, of: &dyn Fn(&Row) -> i32| Column::new(name.into(), rows.iter().map(of).collect::<Vec<i32>>());
    let floats =
        |name: &str, of: &dyn Fn(&Row) -> f64| Column::new(name.into(), rows.iter().map(of).collect::<Vec<f64>>());
    let mut frame = DataFrame::new(
        rows.len(),
        vec![
            ints("dp_rank", &|row| row.dp),
            ints("stage", &|row| row.stage),
            ints("rank", &|row| 2 * row.dp + row.stage),
            Column::new("step".into(), rows.iter().map(|row| row.step).collect::<Vec<i64>>()),
            Column::new("optype".into(), rows.iter().map(|row| row.kind).collect::<Vec<&str>>()),
            floats("start_ts", &|row| row.start),
            floats("duration", &|row| row.seconds),
            ints("seq_id", &|row| row.number),
            ints("mc", &|row| row.chunk),
            ints("gmc", &|row| row.global_chunk),
        ],
    )
    .expect("a frame");
    ParquetWriter::new(File::create(path).expect("a file"))
        .finish(&mut frame)
        .expect("written");
}

fn published(workdir: &Workdir, rows: &[Row]) -> Value {
    write(&workdir.path("trace.parquet"), rows);
    let ran = workdir
        .run(&["whatif", "trace.parquet", "--model", "published", "--format", "json"])
        .succeeded();
    assert_eq!(ran.stdout.lines().count(), 1);
    ran.json()
}

fn near(one: &Value, other: f64) {
    let one = one.as_f64().expect("a number");
    assert!(
        (one - other).abs() <= 1e-9 * other.abs().max(1.0),
        "{one} instead of {other}"
    );
}

#[test]
fn figures_of_a_trace_that_was_worked_out_by_hand() {
    let figures = published(&Workdir::new(), &by_hand(2.0));
    // Measured: 2 + 0.1 + 1 + 2 + 0.1 + 2 + 0.5; ideal: one mean over stages and replicas, 1.25 s forward.
    let (measured, ideal) = (7.7, 1.25 + 0.1 + 1.25 + 2.0 + 0.1 + 2.0 + 0.5);
    near(&figures["slowdown"], measured / ideal);
    near(&figures["launch_slowdown"], 1.0);
    near(&figures["waste"], 1.0 - ideal / measured);
    near(&figures["by_optype"]["forward-compute"], measured / ideal);
    near(&figures["by_optype"]["forward-pp-comm"], 1.0);
    near(&figures["by_dp"]["1"], measured / ideal);
    // The other replica is ideal: the slower of the two makes the step.
    near(&figures["by_dp"]["0"], 1.0);
    // Stage 0 keeps its 2 s, stage 1 has the ideal 1.25 s.
    near(&figures["by_stage"]["0"], (measured + 0.25) / ideal);
    // Stage 1 keeps its 1 s.
    near(&figures["by_stage"]["1"], (ideal - 0.25) / ideal);
    near(&figures["by_worker"]["2"], measured / ideal);
    assert_eq!(figures["slowest_workers"], serde_json::json!([2]));
    // Without the slow worker replica 0 or 1 makes the step: 1.25 + 1 s forward.
    near(&figures["m_w"], (measured - 7.0 + 0.05) / (measured - ideal));
    near(&figures["replay_error"], 0.0);
}

#[test]
fn answers_about_a_trace_keep_to_their_schemas() {
    let workdir = Workdir::new();
    validates("whatif", &published(&workdir, &by_hand(2.0)));
    let asked = ["whatif", "trace.parquet", "--mend", "rank:2", "--format", "json"];
    validates("whatif-trace", &workdir.run(&asked).succeeded().json());
}

#[test]
fn the_order_of_rows_does_not_matter() {
    let workdir = Workdir::new();
    let rows = by_hand(1.5);
    let sound = published(&workdir, &rows);
    let mut shuffled = rows.clone();
    shuffled.reverse();
    shuffled.swap(3, 20);
    assert_eq!(published(&workdir, &shuffled), sound);
}

#[test]
fn dirty_traces_are_used_as_far_as_they_go_and_told() {
    let workdir = Workdir::new();
    let sound = published(&workdir, &by_hand(2.0));
    type Dirt = (fn(&mut Vec<Row>), &'static str);
    let dirt: [Dirt; 5] = [
        (
            |rows| {
                rows.remove(11);
            },
            "steps_left_out",
        ),
        (|rows| rows[11].seconds = f64::NAN, "bad_rows"),
        (|rows| rows[11].seconds = -1.0, "bad_rows"),
        (
            |rows| rows.retain(|row| (row.step, row.dp, row.stage) != (9, 1, 1)),
            "missing_workers",
        ),
        (|rows| rows.push(rows[5].clone()), "repeated_rows"),
    ];
    for (spoil, told) in dirt {
        let mut rows = by_hand(2.0);
        spoil(&mut rows);
        let figures = published(&workdir, &rows);
        let count = &figures["trace_quality"][told];
        let counted = count
            .as_u64()
            .unwrap_or_else(|| count.as_array().map_or(0, Vec::len) as u64);
        assert!(counted > 0, "{told}: {figures}");
        // One of the two steps is whole, and they are alike.
        near(&figures["slowdown"], sound["slowdown"].as_f64().expect("a number"));
    }
}

#[test]
fn fused_names_are_taken_apart() {
    let workdir = Workdir::new();
    let mut rows = by_hand(2.0);
    let sound = published(&workdir, &rows);
    // A receiver that names its call as fused schedules do; the other half belongs to no pass.
    for row in &mut rows {
        if row.kind == "backward-recv" {
            row.kind = "forward-send-backward-recv";
        }
    }
    rows.retain(|row| row.kind != "forward-send");
    let figures = published(&workdir, &rows);
    assert_eq!(figures["trace_quality"]["fused_rows"], 4);
    let difference = figures["slowdown"].as_f64().expect("a number") - sound["slowdown"].as_f64().expect("a number");
    assert!(difference.abs() < 0.05, "{figures}");
}

#[test]
fn a_trace_without_slowness_has_figures_too() {
    let figures = published(&Workdir::new(), &by_hand(1.0));
    near(&figures["slowdown"], 1.0);
    assert!(figures["by_dp"]["0"].is_number() && figures["m_w"].is_null());
}

#[test]
fn questions_about_a_trace() {
    let workdir = Workdir::new();
    write(&workdir.path("trace.parquet"), &by_hand(2.0));
    let ask = |what: &str| {
        let args = ["whatif", "trace.parquet", "--mend", what, "--format", "json"];
        workdir.run(&args).succeeded().json()
    };
    let rank = ask("rank:2");
    near(&rank["step_seconds"], 7.7);
    near(&rank["mended_seconds"], 6.7);
    near(&rank["seconds"], 2.0);
    near(&ask("link:2-3")["growth"], 0.0);
    near(&ask("data")["growth"], 0.0);
    assert!(ask("stages")["growth"].as_f64().expect("a number") > 0.0);
    let refused = workdir.run(&["whatif", "trace.parquet", "--mend", "rank:77"]);
    assert_eq!(refused.code, Some(2), "{refused:?}");
    assert!(refused.stderr.contains("no rank 77"), "{refused:?}");
    assert_eq!(workdir.run(&["whatif", "trace.parquet", "--mend", "gpu"]).code, Some(2));
}

#[test]
fn heat_map_and_timeline_are_written() {
    let workdir = Workdir::new();
    write(&workdir.path("trace.parquet"), &by_hand(2.0));
    let args = [
        "whatif",
        "trace.parquet",
        "--heat-map",
        "heat.csv",
        "--timeline",
        "step.json",
        "--step",
        "9",
    ];
    let ran = workdir.run(&args).succeeded();
    assert!(
        ran.stdout.contains("slowdown: ") && ran.stdout.contains("by_optype: "),
        "{ran:?}"
    );
    let map = std::fs::read_to_string(workdir.path("heat.csv")).expect("the map");
    assert!(map.starts_with("stage,replica 0,replica 1\n0,"), "{map}");
    let timeline = std::fs::read_to_string(workdir.path("step.json")).expect("the timeline");
    let timeline: Value = serde_json::from_str(&timeline).expect("JSON");
    let events = timeline["traceEvents"].as_array().expect("events");
    // Three replicas (one of them ideal) of two stages with six operations each, and their names.
    assert_eq!(events.iter().filter(|event| event["ph"] == "X").count(), 3 * 12);
    let last = |pid: usize| {
        let of = |event: &&Value| event["pid"] == pid && event["ph"] == "X";
        let ends = events
            .iter()
            .filter(of)
            .map(|event| event["ts"].as_f64().unwrap_or(0.0) + event["dur"].as_f64().unwrap_or(0.0));
        ends.fold(0.0, f64::max)
    };
    assert!((last(1) - 7.7e6).abs() < 1.0, "{}", last(1));
    let absent = workdir.run(&["whatif", "trace.parquet", "--timeline", "t.json", "--step", "8"]);
    assert!(absent.stderr.contains("step 8 is not in the trace"), "{absent:?}");
}

#[test]
fn a_job_is_replayed_from_its_timers() {
    let workdir = Workdir::new();
    let job = fixture("slow-rank.parquet");
    let figures = workdir
        .run(&["whatif", &job, "--mend", "rank:5", "--format", "json"])
        .succeeded()
        .json();
    assert_eq!(figures["basis"], "sums");
    assert!(figures["replay_error"].as_f64().expect("a number") < 0.01, "{figures}");
    let growth = figures["growth"].as_f64().expect("a number");
    assert!((0.2..0.3).contains(&growth), "{growth}");
    let text = workdir.run(&["whatif", &job]).succeeded().stdout;
    assert!(text.contains("replayed from sums"), "{text}");
    let refused = workdir.run(&["whatif", &job, "--mend", "rank:500"]);
    assert_eq!(refused.code, Some(2), "{refused:?}");
}

#[test]
fn what_is_no_trace_is_refused() {
    let workdir = Workdir::new();
    workdir.file("trace.parquet", "nothing");
    assert_eq!(workdir.run(&["whatif", "trace.parquet"]).code, Some(4));
    write(&workdir.path("empty.parquet"), &[]);
    assert_eq!(workdir.run(&["whatif", "empty.parquet"]).code, Some(3));
    write(&workdir.path("t.parquet"), &by_hand(1.0));
    workdir.file("meta.yaml", "dp_size: two\n");
    let refused = workdir.run(&["whatif", "t.parquet", "--meta", "meta.yaml"]);
    assert!(
        refused.code == Some(4) && refused.stderr.contains("line 1"),
        "{refused:?}"
    );
}

#[test]
fn the_json_keeps_its_schema() {
    let schema = serde_json::to_string_pretty(&schemars::schema_for!(Slowdown)).expect("a schema") + "\n";
    committed("schema/whatif.schema.json", &schema);
}

/// The public traces with their published figures, where they are.
fn shared() -> Option<PathBuf> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../shared/data/whatif");
    folder.is_dir().then_some(folder)
}

fn json(path: &Path) -> Value {
    let text = std::fs::read_to_string(path).expect("a published file");
    serde_json::from_str(&text).expect("JSON")
}

#[test]
fn published_figures_are_met() {
    let Some(folder) = shared() else { return };
    let mut compared = 0;
    for trace in ["AR", "SE", "ST"] {
        let of = |what: &str, ending: &str| folder.join(format!("{what}-{trace}.{ending}"));
        let path = of("trace", "parquet").display().to_string();
        let meta = of("meta", "yaml").display().to_string();
        let args = [
            "whatif",
            &path,
            "--meta",
            &meta,
            "--model",
            "published",
            "--format",
            "json",
        ];
        let told = Workdir::new().run(&args).succeeded().json();
        let result = json(&of("result", "json"));
        let mut check = |told: &Value, published: &Value| {
            let (told, published) = (told.as_f64().expect("a number"), published.as_f64().expect("a number"));
            assert!(
                (told - published).abs() <= 2e-6 * published.abs(),
                "{trace}: {told} {published}"
            );
            compared += 1;
        };
        check(&told["slowdown"], &result["blocking_slowdown"]);
        check(&told["launch_slowdown"], &result["launch_slowdown"]);
        check(&told["m_w"], &json(&of("mw", "json"))["Mw"]);
        check(&told["m_s"], &json(&of("ms", "json"))["Ms"]);
        for (mine, theirs) in [("by_optype", "optype"), ("by_dp", "dp_rank"), ("by_stage", "stage")] {
            let published = result[format!("blocking_decompose_by_{theirs}")]
                .as_object()
                .expect("figures");
            assert_eq!(told[mine].as_object().map(serde_json::Map::len), Some(published.len()));
            for (key, published) in published {
                check(&told[mine][key], published);
            }
        }
        let args = ["whatif", &path, "--meta", &meta, "--format", "json"];
        let better = Workdir::new().run(&args).succeeded().json();
        let most = if trace == "AR" { 0.003 } else { 0.001 };
        assert!(better["replay_error"].as_f64().expect("a number") <= most);
    }
    assert_eq!(compared, 93);
}

#[test]
fn cleaning_the_public_job_of_its_slow_worker_halves_its_steps() {
    let Some(folder) = shared() else { return };
    let path = folder.join("trace-AR.parquet").display().to_string();
    let answer = Workdir::new()
        .run(&["whatif", &path, "--mend", "rank:0", "--format", "json"])
        .succeeded()
        .json();
    let mended = answer["mended_seconds"].as_f64().expect("a number");
    // Another program, which takes what is usual elsewhere by its own rule, comes to 22.65 s.
    assert!((mended / 22.65 - 1.0).abs() < 0.02, "{mended}");
}
