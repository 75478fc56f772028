//! `serve` and `watch` against the engine: jobs that are written while they are watched.

use std::fmt::Write as _;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::process::{Child, ChildStderr, Stdio};
use std::sync::mpsc;
use std::time::{Duration, Instant, SystemTime};

use serde_json::Value;

use crate::common::Workdir;
use crate::server::{Database, database};

/// Longer than anything here takes on a busy machine.
const LIMIT: Duration = Duration::from_secs(90);

/// A service that ends with the test.
struct Serving {
    child: Child,
    address: String,
    lines: mpsc::Receiver<String>,
}

impl Drop for Serving {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

struct Answer {
    status: u16,
    head: String,
    body: String,
}

impl Answer {
    fn json(&self) -> Value {
        serde_json::from_str(&self.body).unwrap_or_else(|error| panic!("{error}: {}", self.body))
    }
}

/// Lines of a pipe as they come.
fn lines(pipe: ChildStderr) -> mpsc::Receiver<String> {
    let (to, lines) = mpsc::channel();
    std::thread::spawn(move || {
        for line in BufReader::new(pipe).lines().map_while(Result::ok) {
            if to.send(line).is_err() {
                return;
            }
        }
    });
    lines
}

impl Serving {
    fn start(workdir: &Workdir, database: &Database, more: &[&str]) -> Self {
        let usual = [
            "serve",
            "--listen",
            "127.0.0.1:0",
            "--check-interval",
            "300ms",
            "--hang-threshold",
            "4s",
        ];
        let mut child = workdir
            .bare_command(&[&usual, more].concat())
            .env("CLICKHOUSE_URL", &database.server.url)
            .env("CLICKHOUSE_DATABASE", database.name)
            .stderr(Stdio::piped())
            .spawn()
            .expect("it starts");
        let lines = lines(child.stderr.take().expect("it is piped"));
        let first = lines.recv_timeout(LIMIT).expect("it listens");
        let address = first
            .strip_prefix("listening at http://")
            .unwrap_or_else(|| panic!("{first}"));
        Self {
            address: address.to_owned(),
            child,
            lines,
        }
    }

    fn ask(&self, method: &str, path: &str, header: &str) -> Answer {
        let mut stream = TcpStream::connect(&self.address).expect("it listens");
        write!(
            stream,
            "{method} {path} HTTP/1.1\r\nHost: x\r\nConnection: close\r\n{header}\r\n"
        )
        .expect("a request");
        let mut text = String::new();
        stream.read_to_string(&mut text).expect("an answer");
        let (head, body) = text.split_once("\r\n\r\n").expect("a head");
        Answer {
            status: head
                .split(' ')
                .nth(1)
                .and_then(|code| code.parse().ok())
                .expect("a status"),
            head: head.to_owned(),
            body: body.to_owned(),
        }
    }

    fn get(&self, path: &str) -> Answer {
        self.ask("GET", path, "")
    }

    /// Waits until a job is in a state.
    fn wait_for(&self, job: &str, state: &str) -> Value {
        let begin = Instant::now();
        loop {
            let answer = self.get(&format!("/{job}")).json();
            if answer["status"] == state {
                return answer;
            }
            assert!(begin.elapsed() < LIMIT, "{job} is not {state}: {answer}");
            std::thread::sleep(Duration::from_millis(100));
        }
    }
}

fn now() -> u64 {
    SystemTime::now()
        .duration_since(SystemTime::UNIX_EPOCH)
        .expect("after 1970")
        .as_secs()
}

/// Writes iterations of a job of 16 ranks as of now; in slow ones rank 5 computes half as long again, and all wait.
fn write_steps(database: &Database, job: &str, iterations: std::ops::Range<u32>, slow: bool) {
    let mut rows = "INSERT INTO megatron_metrics FORMAT JSONEachRow\n".to_owned();
    let time = now();
    for iteration in iterations {
        for rank in 0..16 {
            let uneven = 1.0 + 0.001 * f64::from((rank * 7 + iteration * 3) % 11);
            let own = if slow && rank == 5 { 1.5 * uneven } else { uneven };
            let step = if slow { 1.6 } else { 1.1 } * uneven;
            for (timer, seconds) in [("interval-time", step), ("forward-compute", own)] {
                writeln!(
                    rows,
                    "{{\"timestamp\":{time},\"job\":{},\"metric_name\":\"megatron_timers\",\"subname\":\"{timer}\",\"rank\":{rank},\
                     \"iteration\":{iteration},\"node\":\"gpu-{:03}\",\"metric_values\":[{seconds}]}}",
                    serde_json::json!(job),
                    rank / 8
                )
                .expect("a string");
            }
        }
    }
    database.sql(&rows);
}

#[test]
fn three_jobs_at_once_through_a_crash_and_a_restart() {
    let Some(database) = database("serving") else { return };
    let database = database.with_table();
    let workdir = Workdir::new();
    let names = ["slow", "well", "stopped"];
    {
        let serving = Serving::start(&workdir, &database, &[]);
        for name in names {
            let answer = serving.get(&format!("/detect/{name}"));
            assert_eq!((answer.status, &answer.json()["status"]), (200, &"active".into()));
        }
        for name in names {
            write_steps(&database, name, 100..120, false);
        }
        let begin = Instant::now();
        while serving.get("/slow").json()["metrics"]["last_iteration"] != 118 {
            assert!(begin.elapsed() < LIMIT, "{}", serving.get("/slow").body);
            std::thread::sleep(Duration::from_millis(100));
        }
        // Killed without a word, as a machine that fails.
    }
    let serving = Serving::start(
        &workdir,
        &database,
        &[
            "--on-detect",
            "echo \"$MT_DETECTOR_RANKS on $MT_DETECTOR_NODES\" > told",
        ],
    );
    let listed = serving.get("/jobs").json();
    let listed: Vec<&str> = listed
        .as_array()
        .expect("a list")
        .iter()
        .filter_map(|job| job["job_id"].as_str())
        .collect();
    assert_eq!(listed, ["slow", "stopped", "well"]);
    for from in (120..132).step_by(3) {
        write_steps(&database, "slow", from..from + 3, true);
        write_steps(&database, "well", from..from + 3, false);
        std::thread::sleep(Duration::from_millis(500));
    }
    let slow = serving.wait_for("slow", "detected");
    let told = &slow["slowdown_check"]["straggler_prediction"];
    assert_eq!(
        (&told["straggler_rank"], &told["straggler_node"]),
        (&vec![5].into(), &vec!["gpu-000"].into()),
        "{slow}"
    );
    assert_eq!(
        (&told["status"], &told["cause"]),
        (&"fault".into(), &"compute".into()),
        "{slow}"
    );
    let stopped = serving.wait_for("stopped", "hanging");
    assert_eq!(stopped["hang_check"]["is_hanging"], true);
    assert!(
        stopped["hang_check"]["rca"]
            .as_str()
            .is_some_and(|words| words.contains("no new iteration after 119"))
    );
    write_steps(&database, "stopped", 120..124, false);
    serving.wait_for("stopped", "active");
    let well = serving.get("/well").json();
    assert_eq!(
        well["slowdown_check"]["straggler_prediction"]["straggler_rank"],
        serde_json::json!([]),
        "{well}"
    );
    assert_eq!(
        std::fs::read_to_string(workdir.path("told")).expect("it was told"),
        "5 on gpu-000\n"
    );
    let history = serving.get("/jobs/slow/history").json();
    assert_eq!(
        history["detections"][0]["straggler_rank"],
        serde_json::json!([5]),
        "{history}"
    );
    let report = serving.get("/jobs/slow/report");
    assert!(
        report.status == 200 && report.body.contains("gpu-000"),
        "{}",
        report.body
    );
    let figures = serving.get("/metrics").body;
    assert!(
        figures.contains("mt_detector_slow_ranks{job=\"slow\"} 1\n"),
        "{figures}"
    );
    assert!(
        figures.contains("mt_detector_job_state{job=\"slow\",state=\"detected\"} 1\n"),
        "{figures}"
    );
}

#[test]
fn every_path_answers_and_refuses_as_described() {
    let Some(database) = database("answering") else { return };
    let database = database.with_table();
    let workdir = Workdir::new();
    let token = workdir.file("token", "s3cret\n");
    let serving = Serving::start(&workdir, &database, &["--token-file", &token]);
    let with = |method: &str, path: &str| serving.ask(method, path, "Authorization: Bearer s3cret\r\n");
    assert_eq!(
        (serving.get("/healthz").status, serving.get("/jobs").status),
        (200, 401)
    );
    for wrong in [
        "Authorization: Bearer s3cre\r\n",
        "Authorization: s3cret\r\n",
        "Authorization: Bearer s3cret2\r\n",
    ] {
        assert_eq!(serving.ask("GET", "/jobs", wrong).status, 401, "{wrong}");
    }
    let begin = Instant::now();
    while serving.get("/readyz").status != 200 {
        assert!(begin.elapsed() < LIMIT);
        std::thread::sleep(Duration::from_millis(100));
    }
    let about = with("GET", "/").json();
    assert_eq!((&about["service"], &about["jobs"]), (&"mt-detector".into(), &0.into()));
    // Ids with any character.
    for id in ["a%2Fb%20c%25", "%3Cscript%3E", "jobs", "-x"] {
        assert_eq!(with("PUT", &format!("/jobs/{id}")).status, 200, "{id}");
        assert_eq!(with("GET", &format!("/jobs/{id}")).status, 200, "{id}");
    }
    assert_eq!(with("GET", "/a%2Fb%20c%25").json()["job_id"], "a/b c%");
    assert_eq!(with("GET", "/jobs/a%2Fb%20c%25/report").status, 404);
    assert_eq!(with("GET", "/jobs").json().as_array().map(Vec::len), Some(4));
    let page = with("GET", "/status");
    assert!(
        page.body.contains("&lt;script&gt;") && !page.body.contains("<script>"),
        "{}",
        page.body
    );
    assert!(
        page.head.to_lowercase().contains("content-security-policy"),
        "{}",
        page.head
    );
    assert_eq!(with("GET", "/undetect/-x").json()["status"], "unregistered");
    assert_eq!(with("DELETE", "/jobs/%3Cscript%3E").status, 200);
    assert_eq!(
        (with("GET", "/nobody").status, with("DELETE", "/jobs/nobody").status),
        (404, 404)
    );
    assert_eq!(with("POST", "/jobs/a").status, 405);
    assert_eq!(with("PUT", &format!("/jobs/{}", "x".repeat(2000))).status, 400);
    let described = with("GET", "/openapi.json").json();
    for path in described["paths"].as_object().expect("paths").keys() {
        let status = with("GET", &path.replace("{job}", "nobody-yet")).status;
        assert!([200, 404].contains(&status), "{path}: {status}");
    }
}

#[test]
fn a_service_refuses_what_would_be_open_or_held_twice() {
    let workdir = Workdir::new();
    let refused = workdir.run_with(
        &["serve", "--listen", "0.0.0.0:0"],
        &[("CLICKHOUSE_URL", "http://127.0.0.1:1")],
    );
    assert_eq!(refused.code, Some(2), "{}", refused.stderr);
    assert!(refused.stderr.contains("--token-file"), "{}", refused.stderr);
    let wrong = [
        (&["--finish-threshold", "10s"][..], "--finish-threshold"),
        (&["--slowdown-threshold", "0"], "--slowdown-threshold"),
        (&["--history-size", "0"], "--history-size"),
        (&["--webhook", "mailto:x"], "--webhook"),
        (&["--watch", "[a"], "--watch"),
        (&["--check-interval", "soon"], "--check-interval"),
    ];
    for (flags, named) in wrong {
        let refused = workdir.run_with(
            &[&["serve"], flags].concat(),
            &[("CLICKHOUSE_URL", "http://127.0.0.1:1")],
        );
        assert_eq!(refused.code, Some(2), "{flags:?}: {}", refused.stderr);
        assert!(refused.stderr.contains(named), "{flags:?}: {}", refused.stderr);
    }
    let Some(database) = database("held") else { return };
    let database = database.with_table();
    let _serving = Serving::start(&workdir, &database, &[]);
    let second = workdir.run_on(&database, &["serve", "--listen", "127.0.0.1:0"]);
    assert_eq!(second.code, Some(5), "{}", second.stderr);
    assert!(second.stderr.contains("another service"), "{}", second.stderr);
}

#[test]
fn a_server_that_is_down_is_told_and_waited_for() {
    let Some(database) = database("unreached") else { return };
    let database = database.with_table();
    let workdir = Workdir::new();
    let serving = Serving::start(&workdir, &database, &["--retries", "0"]);
    serving.get("/detect/j");
    database.faults("fail=1000000&status=503");
    let begin = Instant::now();
    while serving.get("/readyz").status != 503 {
        assert!(begin.elapsed() < LIMIT);
        std::thread::sleep(Duration::from_millis(100));
    }
    database.faults("");
    while serving.get("/readyz").status != 200 {
        assert!(begin.elapsed() < LIMIT);
        std::thread::sleep(Duration::from_millis(100));
    }
    assert_eq!(serving.get("/j").json()["status"], "active");
    assert!(serving.lines.try_iter().any(|line| line.contains("the poll failed")));
}

#[test]
fn a_webhook_is_told_of_each_change() {
    let Some(database) = database("telling") else { return };
    let database = database.with_table();
    let workdir = Workdir::new();
    let hook = TcpListener::bind("127.0.0.1:0").expect("a port");
    let address = format!("http://{}/hook", hook.local_addr().expect("an address"));
    let (to, told) = mpsc::channel();
    std::thread::spawn(move || {
        // The first attempt fails, as hooks do.
        for (count, stream) in hook.incoming().enumerate() {
            let mut stream = stream.expect("a connection");
            let mut bytes = vec![0; 65536];
            let length = stream.read(&mut bytes).expect("a request");
            let mut text = String::from_utf8_lossy(&bytes[..length]).into_owned();
            if text.ends_with("\r\n\r\n") {
                let more = stream.read(&mut bytes).expect("a body");
                text += &String::from_utf8_lossy(&bytes[..more]);
            }
            let status = if count == 0 { "500 No" } else { "204 Yes" };
            let _ = write!(
                stream,
                "HTTP/1.1 {status}\r\nContent-Length: 0\r\nConnection: close\r\n\r\n"
            );
            let body = text
                .split_once("\r\n\r\n")
                .map(|(_, body)| body.to_owned())
                .unwrap_or_default();
            if count > 0 && to.send(body).is_err() {
                return;
            }
        }
    });
    let serving = Serving::start(&workdir, &database, &["--webhook", &address, "--watch-all"]);
    write_steps(&database, "j", 100..110, false);
    let begin = Instant::now();
    while serving.get("/j").status != 200 {
        assert!(begin.elapsed() < LIMIT, "it registers by itself");
        std::thread::sleep(Duration::from_millis(100));
    }
    let hang: Value = serde_json::from_str(&told.recv_timeout(LIMIT).expect("told")).expect("JSON");
    assert_eq!(
        (&hang["job_id"], &hang["state"], &hang["previous_state"]),
        (&"j".into(), &"hanging".into(), &"active".into())
    );
    assert_eq!(hang.get("straggler_rank"), None);
}

#[test]
fn watch_ends_with_the_verdict() {
    let Some(database) = database("watching") else { return };
    let database = database.with_table();
    let workdir = Workdir::new();
    let mut child = workdir
        .bare_command(&["watch", "--job-id", "j", "--check-interval", "300ms", "--exit-code"])
        .env("CLICKHOUSE_URL", &database.server.url)
        .env("CLICKHOUSE_DATABASE", database.name)
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("it starts");
    let lines = lines(child.stderr.take().expect("it is piped"));
    assert!(lines.recv_timeout(LIMIT).expect("a line").contains("no iteration yet"));
    write_steps(&database, "j", 100..120, false);
    write_steps(&database, "j", 120..127, true);
    let status = child.wait().expect("it ends");
    let mut text = String::new();
    child
        .stdout
        .take()
        .expect("it is piped")
        .read_to_string(&mut text)
        .expect("text");
    assert_eq!(status.code(), Some(1), "{text}");
    assert!(text.contains("anomaly_ranks: [5]"), "{text}");
}

#[test]
fn a_replayed_job_is_detected_a_healthy_one_never() {
    let Some(database) = database("rehearsing") else { return };
    let database = database.with_table();
    let workdir = Workdir::new();
    let shape = [
        "simulate",
        "--out",
        "jobs",
        "--pp",
        "1",
        "--tp",
        "1",
        "--dp",
        "16",
        "--iterations",
        "60",
        "--no-trace",
    ];
    let faults: [(&str, &[&str]); 2] = [("late", &["--slow-rank", "5:1.6", "--onset", "35"]), ("well", &[])];
    for (job, fault) in faults {
        workdir.run(&[&shape[..], &["--job", job], fault].concat()).succeeded();
    }
    workdir.run_on(&database, &["load", "jobs"]).succeeded();
    let serving = Serving::start(&workdir, &database, &[]);
    for copy in ["sim-late", "sim-well"] {
        assert_eq!(serving.get(&format!("/detect/{copy}")).status, 200);
    }
    std::thread::scope(|scope| {
        let replays = [("late", "sim-late"), ("well", "sim-well")].map(|(job, copy)| {
            let (workdir, database) = (&workdir, &database);
            let replay = ["replay", "--job-id", job, "--as-job", copy, "--speed", "15"];
            scope.spawn(move || workdir.run_on(database, &replay).succeeded())
        });
        let late = serving.wait_for("sim-late", "detected");
        let told = &late["slowdown_check"]["straggler_prediction"];
        assert_eq!(told["straggler_rank"], serde_json::json!([5]), "{late}");
        for replay in replays {
            replay.join().expect("a replay");
        }
    });
    let well = serving.get("/jobs/sim-well/history").json();
    assert_eq!(well["detections"], serde_json::json!([]), "{well}");
    // A replay that is over writes no more: whoever watches can't know more than that.
    serving.wait_for("sim-well", "hanging");
}
