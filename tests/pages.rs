//! `report.html`: what it holds, how large it is, and how it looks in a browser.

mod common;

use std::collections::BTreeMap;
use std::path::Path;
use std::process::Command;

use common::{BROWSER, Workdir, skip_without, slow_rank_5};
use mt_detector::service::health::Health;
use mt_detector::service::known::{Detection, Hang, SeenStep, State};
use mt_detector::service::page::page as status_page;
use mt_detector::service::watched::Watched;

/// Bytes at a thousand and at ten thousand ranks.
const MOST_BYTES: [(u32, u64); 2] = [(1_024, 2_000_000), (10_240, 6_000_000)];

fn page(workdir: &Workdir, folder: &str) -> String {
    std::fs::read_to_string(workdir.path(folder).join("report.html")).expect("the page")
}

/// A job with names that want to be markup.
fn hostile() -> String {
    let name = r#"<img src=x onerror=alert(1)>"#;
    slow_rank_5("</script><script>alert(1)</script>")
        .replace("forward-compute", "</td><script>alert(2)</script>")
        .replace("gpu-000", name)
        .lines()
        .chain(
            slow_rank_5("</script><script>alert(1)</script>")
                .replace("gpu-000", name)
                .lines(),
        )
        .map(|line| format!("{line}\n"))
        .collect()
}

#[test]
fn a_page_holds_the_verdict_and_loads_nothing() {
    let workdir = Workdir::new();
    let file = workdir.file("a.ndjson", slow_rank_5("j"));
    workdir.run(&["analyze", &file, "--out", "r"]).succeeded();
    let page = page(&workdir, "r");
    for part in [
        "<!DOCTYPE html>",
        "Rank 5 on gpu-000",
        "id=\"findings\"",
        "data-plot=\"heat\"",
        "data-plot=\"votes\"",
        "id=\"quality\"",
        "prefers-color-scheme: dark",
        "name=\"viewport\"",
    ] {
        assert!(page.contains(part), "{part} is not in the page");
    }
    assert!(page.contains("default-src 'none'"), "nothing may be loaded");
    let ours = page.split("<script>").next().expect("what comes before the library");
    assert!(
        !ours.contains("http://") && !ours.contains("https://"),
        "no address outside of the library"
    );
}

#[test]
fn hostile_names_stay_text() {
    let workdir = Workdir::new();
    let file = workdir.file("a.ndjson", hostile());
    workdir.run(&["analyze", &file, "--out", "r"]).succeeded();
    let page = page(&workdir, "r");
    assert!(
        !page.contains("<script>alert") && !page.contains("<img src=x"),
        "a name became markup"
    );
    assert!(
        page.contains("&lt;script&gt;alert(1)") && page.contains("&lt;img src=x"),
        "the names are shown"
    );
    assert_eq!(page.matches("<script").count(), 3, "data, library, plots");
}

#[test]
fn the_same_input_gives_the_same_page() {
    let workdir = Workdir::new();
    let file = workdir.file("a.ndjson", slow_rank_5("j"));
    workdir
        .run(&["analyze", &file, "--out", "a", "--threads", "1"])
        .succeeded();
    workdir
        .run(&["analyze", &file, "--out", "b", "--threads", "3"])
        .succeeded();
    assert_eq!(page(&workdir, "a"), page(&workdir, "b"));
}

#[test]
fn pages_stay_small_and_look_well_in_a_browser() {
    let workdir = Workdir::new();
    let mut pages = Vec::new();
    for (ranks, most) in MOST_BYTES {
        let job = format!("j{ranks}");
        let replicas = (ranks / 8).to_string();
        let simulated = [
            "simulate",
            "--out",
            ".",
            "--job",
            &job,
            "--tp",
            "1",
            "--pp",
            "8",
            "--dp",
            &replicas,
            "--iterations",
            "16",
            "--no-trace",
            "--slow-rank",
            "5:1.5",
        ];
        workdir.run(&simulated).succeeded();
        workdir
            .run(&["analyze", &format!("{job}.parquet"), "--out", &job])
            .succeeded();
        let file = workdir.path(&job).join("report.html");
        let bytes = std::fs::metadata(&file).expect("the page").len();
        assert!(bytes <= most, "{ranks} ranks make {bytes} bytes");
        pages.push(file);
    }
    let traced = [
        "simulate",
        "--out",
        ".",
        "--job",
        "link",
        "--tp",
        "1",
        "--pp",
        "4",
        "--dp",
        "4",
        "--slow-link",
        "0-4:10",
    ];
    workdir.run(&traced).succeeded();
    workdir.run(&["analyze", "link.parquet", "--out", "link"]).succeeded();
    pages.push(workdir.path("link").join("report.html"));
    let file = workdir.file("hostile.ndjson", hostile());
    workdir.run(&["analyze", &file, "--out", "hostile"]).succeeded();
    pages.push(workdir.path("hostile").join("report.html"));
    workdir
        .run(&["sweep", "hostile.ndjson", "link.parquet", "--out", "sweep"])
        .succeeded();
    pages.push(workdir.path("sweep").join("index.html"));
    let machines = [
        "machines",
        "simulate",
        "--out",
        "m",
        "--seeds",
        "0",
        "--machines",
        "8",
        "--fault",
        "pcie-downgrade",
    ];
    workdir.run(&machines).succeeded();
    let files = workdir.content("m");
    let (task, _) = files
        .iter()
        .find(|(name, _)| name.ends_with(".parquet"))
        .expect("a task");
    workdir
        .run(&["machines", "detect", &format!("m/{task}"), "--out", "machines"])
        .succeeded();
    pages.push(workdir.path("machines").join("report.html"));
    workdir.file("status.html", status_page(&watched_jobs(), &failing()));
    pages.push(workdir.path("status.html"));
    let check = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/browser/check.py");
    let mut command = Command::new("python3");
    command.arg(check).args(&pages);
    if let Some(shots) = std::env::var_os("MT_DETECTOR_SHOTS") {
        command.arg("--shots").arg(shots);
    }
    let output = match command.output() {
        Ok(output) => output,
        Err(error) => return skip_without(BROWSER, &format!("python3: {error}")),
    };
    let errors = String::from_utf8_lossy(&output.stderr);
    if errors.contains("no Chromium is there") {
        return skip_without(BROWSER, errors.trim());
    }
    assert!(
        output.status.success(),
        "{}\n{errors}",
        String::from_utf8_lossy(&output.stdout)
    );
}

/// A job in each state, and one whose name wants to be markup and is long.
fn watched_jobs() -> BTreeMap<String, Watched> {
    let mut jobs = BTreeMap::new();
    let names = [
        "llm-7b",
        "llm-13b",
        "llm-70b",
        "moe",
        "<script>alert(1)</script>",
        "a-job-with-a-name-that-is-longer-than-a-phone-is-wide-and-holds-no-place-to-break-it-at-all",
    ];
    for (name, state) in names.into_iter().zip(State::ALL) {
        let mut job = Watched::new(name, 0);
        job.state = state;
        job.normal.extend([2.0; 5]);
        job.recent
            .extend((0..120).map(|step| (step, if step > 100 { 3.0 } else { 2.0 })));
        job.last = Some(SeenStep {
            run: "r0".to_owned(),
            iteration: 119,
            seconds: 3.0,
            time: 1_767_254_400_000_000,
        });
        job.hang = (state == State::Hanging).then(|| Hang {
            since: 1_767_254_400_000_000,
            noticed: 1_767_254_460_000_000,
            last_iteration: Some(119),
            behind: Vec::new(),
            ranks_behind: 3,
        });
        job.detection = (state == State::Detected).then(|| Detection {
            first_iteration: 101,
            last_iteration: 119,
            asked: 0,
            ended: 1,
            status: Some("fault".to_owned()),
            cause: "compute".to_owned(),
            ranks: vec![5],
            nodes: vec!["gpu-000".to_owned()],
            findings: vec!["rank 5 on gpu-000 takes 1.5 times as long as its peers since iteration 101".to_owned()],
            cost: Some(0.5),
            folder: Some("results/a/1".to_owned()),
            error: None,
        });
        jobs.insert(name.to_owned(), job);
    }
    jobs
}

fn failing() -> Health {
    Health {
        last_success: Some(1_767_254_460_000_000),
        error: Some("http://clickhouse:8123 can't be reached: connection refused".to_owned()),
        ..Health::default()
    }
}
