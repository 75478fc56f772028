//! Logs of training programs: one of our own for each form, cells to the printed digit, and what a form can't tell.

mod common;

use std::fmt::Write as _;

use common::{Workdir, shared_data};
use polars::prelude::*;

/// The cells of an imported file: (metric, timer, rank, iteration) -> values.
type Cells = Vec<(String, String, i64, i64, Vec<f64>)>;

fn import(workdir: &Workdir, log: &str) -> Cells {
    workdir
        .run(&["import", log, "--out", "job.parquet", "--force"])
        .succeeded();
    let file = std::fs::File::open(workdir.path("job.parquet")).expect("the file");
    let frame = ParquetReader::new(file).finish().expect("a Parquet file");
    let text = |name: &str| frame.column(name).expect("a column").str().expect("text").clone();
    let number = |name: &str| frame.column(name).expect("a column").i64().expect("numbers").clone();
    let (metric, timer, rank, iteration) = (
        text("metric_name"),
        text("subname"),
        number("rank"),
        number("iteration"),
    );
    let values = frame
        .column("metric_values")
        .expect("a column")
        .list()
        .expect("lists")
        .clone();
    (0..frame.height())
        .map(|row| {
            let list = values.get_as_series(row).expect("a list");
            let list = list
                .f64()
                .expect("numbers")
                .iter()
                .map(|value| value.unwrap_or(f64::NAN))
                .collect();
            let word = |column: &StringChunked| column.get(row).unwrap_or_default().to_owned();
            (
                word(&metric),
                word(&timer),
                rank.get(row).expect("a rank"),
                iteration.get(row).expect("one"),
                list,
            )
        })
        .collect()
}

/// The values of a rank's timer in an iteration.
fn cell(cells: &Cells, timer: &str, rank: i64, iteration: i64) -> Vec<f64> {
    let metric = if rank < 0 {
        "megatron_timers_summary"
    } else {
        "megatron_timers"
    };
    let is_it = |row: &&(String, String, i64, i64, Vec<f64>)| {
        row.0 == metric && row.1 == timer && row.2 == rank && row.3 == iteration
    };
    cells.iter().find(is_it).map(|row| row.4.clone()).unwrap_or_default()
}

fn world_line(world: u32, pp: u32) -> String {
    let dp = world / pp;
    format!(
        "using world size: {world}, data-parallel size: {dp}, context-parallel size: 1, hierarchical context-parallel sizes: \
         None, tensor-model-parallel size: 1, pipeline-model-parallel size: {pp}\n"
    )
}

fn iteration_line(iteration: u32, ms: f64) -> String {
    let (minute, second) = (iteration / 60 % 60, iteration % 60);
    format!(
        " [2026-03-01 08:{minute:02}:{second:02}] iteration {iteration:8}/    5000 | consumed samples: {:12} | elapsed time per \
         iteration (ms): {ms:.1} | learning rate: 1.5E-04 | lm loss: 2.5E+00 | number of nan iterations:   0 |\n",
        iteration * 32
    )
}

fn block(timers: &[&str], ranks: u32, ms: impl Fn(&str, u32) -> f64) -> String {
    let mut text = "times across ranks (ms):\n".to_owned();
    for timer in timers {
        let _ = writeln!(text, "  {timer}:");
        for rank in 0..ranks {
            let _ = writeln!(text, "     rank {rank:2}: {:.2}", ms(timer, rank));
        }
    }
    text
}

const TIMERS: [&str; 2] = ["forward-compute", "backward-compute"];

/// A log with a line a rank: rank 5 of 8 is slow in all of its iterations.
fn all_ranks(iterations: impl Iterator<Item = u32>) -> String {
    let mut log = world_line(8, 1);
    for iteration in iterations {
        log += &iteration_line(iteration, 1900.0);
        log += &block(&TIMERS, 8, |timer, rank| {
            let base = if timer == "forward-compute" { 500.0 } else { 1000.0 };
            let wobble = f64::from((rank * 7 + iteration * 13) % 11) * 0.4;
            base * if rank == 5 { 1.4 } else { 1.0 } + wobble
        });
    }
    log
}

#[test]
fn a_line_a_rank_gives_the_full_verdict() {
    let workdir = Workdir::new();
    let log = workdir.file("train.log", all_ranks(1..40));
    let summary = workdir
        .run(&["analyze", &log, "--no-files", "--format", "json"])
        .succeeded()
        .json();
    assert_eq!(summary["anomaly_ranks"], serde_json::json!([5]), "{summary}");
    assert_eq!(
        (summary["status"].as_str(), summary["job"].as_str()),
        (Some("fault"), Some("train"))
    );
    // What is imported gives the same.
    workdir.run(&["import", &log, "--out", "job.parquet"]).succeeded();
    let again = workdir
        .run(&["analyze", "job.parquet", "--no-files", "--format", "json"])
        .succeeded()
        .json();
    assert_eq!(again["findings"], summary["findings"]);
    assert_eq!(again["step_times"], summary["step_times"]);
}

#[test]
fn nodes_come_from_a_list() {
    let workdir = Workdir::new();
    let log = workdir.file("train.log", all_ranks(1..40));
    let hosts = workdir.file("hosts", "gpu-a slots=4\ngpu-b slots=4\n");
    for (flags, node) in [
        (vec!["--nodes", hosts.as_str()], "gpu-b"),
        (vec!["--nodes", "gpu-[01-02]"], "gpu-02"),
        (vec!["--ranks-per-node", "2"], "node-2"),
    ] {
        let args = [vec!["analyze", &log, "--no-files", "--format", "json"], flags].concat();
        let summary = workdir.run(&args).succeeded().json();
        assert_eq!(summary["anomaly_nodes"], serde_json::json!([node]));
    }
    let refused = workdir.run(&["analyze", &log, "--nodes", "gpu-[2-1]", "--no-files"]);
    assert_eq!(refused.code, Some(2), "{refused:?}");
}

#[test]
fn prefixes_colours_and_other_ranks_between_change_nothing() {
    let workdir = Workdir::new();
    let plain = all_ranks(1..20);
    let plain_cells = import(&workdir, &workdir.file("a.log", &plain));
    let wrap = |line: &str, width: usize| {
        let letters: Vec<char> = line.chars().collect();
        letters
            .chunks(width)
            .map(|piece| piece.iter().collect::<String>())
            .collect::<Vec<_>>()
            .join("\n")
    };
    type Damage = Box<dyn Fn(&str) -> String>;
    let damages: [(&str, Damage); 9] = [
        (
            "torchrun",
            Box::new(|line| format!("[default7]:{line}\n[default3]:WARNING: something")),
        ),
        ("srun", Box::new(|line| format!(" 3: {line}"))),
        ("pdsh", Box::new(|line| format!("gpu-007: {line}"))),
        ("mpirun", Box::new(|line| format!("[1,15]<stdout>:{line}"))),
        ("quote", Box::new(|line| format!("> {line}"))),
        ("colours", Box::new(|line| format!("\x1b[32m{line}\x1b[0m\x1b[K\r"))),
        ("wrap 80", Box::new(move |line| wrap(line, 80))),
        ("wrap 100", Box::new(move |line| wrap(line, 100))),
        (
            "logger",
            Box::new(|line| line.replace("times across", "INFO:megatron.core.timers:times across")),
        ),
    ];
    for (name, damage) in &damages {
        let damaged: Vec<String> = plain.lines().map(damage).collect();
        let cells = import(&workdir, &workdir.file("a.log", damaged.join("\n") + "\n"));
        assert_eq!(cells, plain_cells, "{name}");
    }
}

#[test]
fn a_log_cut_anywhere_gives_true_cells_or_none() {
    let workdir = Workdir::new();
    let whole = all_ranks(1..3);
    let truth = import(&workdir, &workdir.file("a.log", &whole));
    for cut in (200..whole.len()).step_by(61) {
        let log = workdir.file("a.log", &whole.as_bytes()[..cut]);
        let ran = workdir.run(&["import", &log, "--out", "cut.parquet", "--force"]);
        if ran.code == Some(3) {
            continue;
        }
        for row in import(&workdir, &log) {
            assert!(row.1 == "log-interval" || truth.contains(&row), "cut at {cut}: {row:?}");
        }
    }
}

#[test]
fn least_and_greatest_name_nobody() {
    let workdir = Workdir::new();
    let mut log = world_line(8, 1);
    for line in 1..=30 {
        let slow = (11..=18).contains(&line);
        log += &iteration_line(line * 5, if slow { 2600.5 } else { 1750.1 });
        log += "(min, max) time across ranks (ms):\n";
        let most = if slow { 1244.98 } else { 495.4 };
        let _ = writeln!(
            log,
            "    forward-compute ................................: (491.61, {most:.2})"
        );
        log += "    optimizer ......................................: (142.37, 142.95)\n";
    }
    let log = workdir.file("job.log", log);
    let summary = workdir
        .run(&["analyze", &log, "--no-files", "--format", "json"])
        .succeeded()
        .json();
    assert_eq!(
        (
            summary["status"].as_str(),
            summary["anomaly_ranks"].as_array().map(Vec::len)
        ),
        (Some("cannot-tell"), Some(0))
    );
    let window = &summary["step_times"]["windows"][0];
    assert_eq!(
        (window["first"].as_i64(), window["last"].as_i64()),
        (Some(51), Some(90))
    );
    let says = summary["findings"][0]["says"].as_str().unwrap_or_default();
    assert!(
        says.contains("forward-compute 1.245 s instead of 0.495 s on the slowest rank"),
        "{says}"
    );
    let cells = import(&workdir, &log);
    assert_eq!(cell(&cells, "forward-compute", -1, 60), [0.49161, 1.24498]);
    assert_eq!(cell(&cells, "interval-time", -1, 60), [2.6005, 2.6005]);
}

#[test]
fn the_greatest_alone_has_no_least() {
    let workdir = Workdir::new();
    for header in ["(min, max) time across ranks (ms):", "max time across ranks (ms):"] {
        let row = "    forward-compute ................................: 1,495.61";
        let log = workdir.file("job.log", format!("{}{header}\n{row}\n", iteration_line(10, 1754.2)));
        let values = cell(&import(&workdir, &log), "forward-compute", -1, 10);
        assert!(values[0].is_nan() && values[1] == 1.49561, "{header}: {values:?}");
    }
}

#[test]
fn one_rank_s_own_times_are_the_printer_s() {
    let workdir = Workdir::new();
    let line = " iteration       10/    1000 | consumed samples:           40 | elapsed time per iteration (ms): 19932.4 | x |\n";
    let times = "time (ms) | forward-compute: 247.63 | forward-recv: 10007.14 | backward-send: 0.00\n";
    let cells = import(&workdir, &workdir.file("a.log", world_line(8, 4) + line + times));
    assert_eq!(cell(&cells, "forward-recv", 7, 10), [10.00714]);
    assert_eq!(cell(&cells, "backward-send", 7, 10), [0.0]);
    // Whose they are is not told where the number of ranks is not.
    let cells = import(&workdir, &workdir.file("a.log", line.to_owned() + times));
    assert_eq!(cell(&cells, "forward-recv", -1, 10), [10.00714]);
    // Rank 0 printed in 2020.
    let times = "time (ms) | forward: 276.11 | backward: 672.99 | batch generator: 5.22\n";
    let cells = import(&workdir, &workdir.file("a.log", world_line(8, 1) + line + times));
    assert_eq!(cell(&cells, "batch generator", 0, 10), [0.00522]);
    // A wrapped line is one.
    let times = "time (ms) | forward-compute: 247.63 | forward-recv: 100\n07.14 | backward-send: 0.01\n";
    let cells = import(&workdir, &workdir.file("a.log", world_line(8, 4) + line + times));
    assert_eq!(
        (
            cell(&cells, "forward-recv", 7, 10),
            cell(&cells, "backward-send", 7, 10)
        ),
        (vec![10.00714], vec![0.00001])
    );
}

#[test]
fn old_and_forked_iteration_lines_are_read() {
    let workdir = Workdir::new();
    for (line, seconds) in [
        (
            "[default7]: iteration       10/ 115311 | consumed samples: 4 | consumed tokens: 9 | elapsed time per iteration (s): 105.16 | l: 5 |",
            105.16,
        ),
        (
            " iteration       10/  320000 | elapsed time per iteration (ms): 963.3 | learning rate 3.937E-06 | lm loss 8.995377E+00 |",
            0.9633,
        ),
        (
            "[2026-01-02 03:04:05,123][INFO][train] iteration=      10/    1000 | consumed_samples=40 | elapsed_time_per_iteration_ms=963.3 | loss=3 |",
            0.9633,
        ),
    ] {
        let cells = import(&workdir, &workdir.file("a.log", format!("{line}\n")));
        assert_eq!(cell(&cells, "interval-time", -1, 10), [seconds, seconds], "{line}");
    }
}

#[test]
fn deepspeed_lines_belong_to_the_step_that_follows() {
    let workdir = Workdir::new();
    let step = |number: u32, fwd: f64, prefix: &str, rank: &str| {
        format!(
            "{prefix}{rank}time (ms) | optimizer_allgather: 884.11 | optimizer_step: 23.44\n\
             {prefix}[Rank 0] step={number}, skipped=0, lr=[0.0003]\n\
             {prefix}{rank}time (ms) | fwd_microstep: 10.50 | bwd_microstep: 20.00\n\
             {prefix}{rank}time (ms) | fwd_microstep: 10.25 | bwd_microstep: 20.00\n\
             {prefix}{rank}time (ms) | fwd: {fwd:.2} | bwd: 40.10 | step: 1139.29\n"
        )
    };
    for (prefix, rank) in [
        (
            "[2026-01-12 09:09:53,311] [INFO] [logging.py:96:log_dist] ",
            "[Rank 0] ",
        ),
        (
            "[2026-01-12 09:09:53,311] [INFO] [logging.py:68:log_dist] ",
            "[Rank 0] rank=0 ",
        ),
        (" 51%|████      | 507/1000 [15:32<16:42,  2.03s/it]", "[Rank 0] "),
        ("", "[Rank 0] "),
    ] {
        let log = step(1, 6567.66, prefix, rank)
            + &iteration_line(1, 25849.1)
            + &step(2, 4022.73, prefix, rank)
            + &iteration_line(2, 20298.3);
        let cells = import(&workdir, &workdir.file("a.log", log));
        assert_eq!(cell(&cells, "fwd", 0, 2), [4.02273], "{prefix}");
        assert_eq!(cell(&cells, "fwd_microstep", 0, 1), [0.02075], "{prefix}");
        // Without iteration lines the step numbers itself.
        let log = step(7, 6567.66, prefix, rank) + &step(8, 4022.73, prefix, rank);
        let cells = import(&workdir, &workdir.file("a.log", log));
        assert_eq!(
            (cell(&cells, "fwd", 0, 7), cell(&cells, "fwd", 0, 8)),
            (vec![6.56766], vec![4.02273]),
            "{prefix}"
        );
    }
}

#[test]
fn blocks_without_iteration_lines_are_numbered_and_said_to_be() {
    let workdir = Workdir::new();
    let log = (1..=6).fold(String::new(), |log, n| {
        log + &format!("time (ms) | forward-compute: {n}00.25 | optimizer: 3.00\n")
    });
    let log = workdir.file("a.log", log);
    assert_eq!(cell(&import(&workdir, &log), "forward-compute", -1, 3), [0.30025]);
    let ran = workdir
        .run(&["analyze", &log, "--no-files", "--warmup", "0", "-v"])
        .succeeded();
    assert!(
        ran.stdout.contains("timer blocks have no iteration line") && ran.stdout.contains("status: cannot-tell"),
        "{}",
        ran.stdout
    );
}

#[test]
fn set_up_evaluation_and_checkpoints_are_no_part_of_a_step() {
    let workdir = Workdir::new();
    let set_up = block(&["model-and-optimizer-setup"], 8, |_, _| 2900.0);
    let evaluate = block(&["evaluate"], 8, |_, _| 3000.0);
    let log = set_up + &all_ranks(1..12) + &evaluate;
    let cells = import(&workdir, &workdir.file("a.log", log));
    let outside: Vec<&str> = cells
        .iter()
        .filter(|row| row.0 == "megatron_timers_outside")
        .map(|row| row.1.as_str())
        .collect();
    assert_eq!(outside.len(), 16);
    assert!(
        !cells
            .iter()
            .any(|row| row.0 == "megatron_timers" && (row.1 == "evaluate" || row.1.ends_with("-setup")))
    );
}

#[test]
fn a_block_divided_by_too_much_is_left_out_or_mended() {
    let workdir = Workdir::new();
    let argument = "  log_interval .................................... 10\n";
    let one = |ms: f64| block(&["forward-compute"], 2, move |_, _| ms);
    let first = world_line(2, 1)
        + argument
        + &iteration_line(1, 4613.0)
        + &one(143.78)
        + &iteration_line(10, 1640.0)
        + &one(647.36);
    let cells = import(&workdir, &workdir.file("a.log", first));
    assert_eq!(
        (
            cell(&cells, "forward-compute", 1, 1),
            cell(&cells, "forward-compute", 1, 10)
        ),
        (vec![], vec![0.64736])
    );
    let resumed = world_line(2, 1)
        + argument
        + "  successfully loaded checkpoint from /ckpt [ t 0 ] at iteration 4995\n"
        + &iteration_line(5000, 1640.0)
        + &one(320.5);
    let cells = import(&workdir, &workdir.file("a.log", resumed));
    assert_eq!(cell(&cells, "forward-compute", 1, 5000), [0.641]);
}

#[test]
fn a_restart_counts_from_its_run_and_another_job_is_another() {
    let workdir = Workdir::new();
    let slow = |rank: u32| {
        move |timer: &str, of: u32| {
            (if timer == "forward-compute" { 500.0 } else { 1000.0 }) * if of == rank { 1.5 } else { 1.0 }
                + f64::from(of)
        }
    };
    let run = |iterations: std::ops::Range<u32>, rank: u32| {
        iterations.fold(world_line(8, 1), |log, iteration| {
            log + &iteration_line(iteration, 1900.0) + &block(&TIMERS, 8, slow(rank))
        })
    };
    // The lost run had another slow rank.
    let log = workdir.file("a.log", run(100..140, 1) + "NCCL error\n" + &run(110..150, 3));
    let summary = workdir
        .run(&["analyze", &log, "--no-files", "--format", "json", "--warmup", "0"])
        .succeeded()
        .json();
    assert_eq!(summary["anomaly_ranks"], serde_json::json!([3]), "{summary}");
    assert_eq!(summary["runs"].as_array().map(Vec::len), Some(2));
    // Another size: another job, of which the last is analysed, and the others on demand.
    let other = (10..50).fold(world_line(4, 1), |log, iteration| {
        log + &iteration_line(iteration, 900.0) + &block(&TIMERS, 4, slow(9))
    });
    let log = workdir.file("a.log", run(100..140, 1) + &other);
    let summary = workdir
        .run(&["analyze", &log, "--no-files", "--format", "json"])
        .succeeded()
        .json();
    assert_eq!(
        (
            summary["anomaly_ranks"].as_array().map(Vec::len),
            summary["window"]["ranks"].as_u64()
        ),
        (Some(0), Some(4))
    );
    assert!(
        summary["notes"][0].as_str().is_some_and(|note| note.contains("2 jobs")),
        "{summary}"
    );
    let first = workdir
        .run(&["analyze", &log, "--job-id", "a", "--no-files", "--format", "json"])
        .succeeded()
        .json();
    assert_eq!(first["anomaly_ranks"], serde_json::json!([1]));
}

#[test]
fn reports_name_candidates_and_no_culprits() {
    let workdir = Workdir::new();
    let detector = |worst: u32| {
        format!(
            " 0: INFO:megatron.core.utils:[2026-03-03 10:00:20] | MnRtt/Rnk: 488.13ms/15 | MxRtt/Rnk: 591.19ms/{worst} | MnPwr/Rnk: \
             612296.00W/28 | MxTmp/Rnk: 65C/6 |\n 0: INFO:megatron.core.utils:^^^^ Bottom 4 Ranks with lowest  Etpt(TF): 343.94/{worst}, 396.10/3,\n"
        )
    };
    let nvrx = "INFO:x:GPU relative performance:\n Worst performing 2/8 ranks:\n  Rank=6 Node=n06 Score=0.61\n  Rank=1 Node=n01 Score=0.94\n";
    let flagscale = "=== Straggler Report at Step 20 ===\n⚠️  Detected Stragglers: [2]\n  optimizer:\n    Rank 2 (gpu-2): 19.98ms\n";
    let mut log = String::new();
    for iteration in 1..=30 {
        log += &iteration_line(iteration, 2000.0);
        if iteration % 10 == 0 {
            log += &detector(7);
        }
    }
    let log = workdir.file("a.log", log + nvrx + flagscale);
    let summary = workdir
        .run(&["analyze", &log, "--no-files", "--format", "json"])
        .succeeded()
        .json();
    assert_eq!(
        (
            summary["anomaly_ranks"].as_array().map(Vec::len),
            summary["status"].as_str()
        ),
        (Some(0), Some("cannot-tell"))
    );
    let candidates: Vec<u64> = summary["findings"]
        .as_array()
        .into_iter()
        .flatten()
        .filter(|finding| finding["kind"] == "candidate")
        .filter_map(|finding| finding["ranks"][0].as_u64())
        .collect();
    assert_eq!(candidates, [6, 7, 2]);
    let cells = import(&workdir, &log);
    let reported = |measure: &str, rank: i64| {
        cells
            .iter()
            .find(|row| row.0 == "straggler_report" && row.1 == measure && row.2 == rank)
            .map(|row| row.4[0])
    };
    assert_eq!(reported("StragglerDetector/MxRtt", 7), Some(0.59119));
    assert_eq!(reported("StragglerDetector/MnPwr", 28), Some(612.296));
    assert_eq!(reported("FlagScale/optimizer", 2), Some(0.01998));
    assert_eq!(reported("NVRx/relative", 1), Some(0.94));
}

#[test]
fn numbers_lose_nothing_to_commas_and_nan_is_no_zero() {
    let workdir = Workdir::new();
    let rows = "times across ranks (ms):\n  forward-compute:\n     rank  0: 12,526.55\n     rank  1: nan\n     rank  2: 0.00\n";
    let cells = import(&workdir, &workdir.file("a.log", iteration_line(1, 20_000.0) + rows));
    assert_eq!(cell(&cells, "forward-compute", 0, 1), [12.52655]);
    assert_eq!(cell(&cells, "forward-compute", 1, 1), [0.0; 0]);
    assert_eq!(cell(&cells, "forward-compute", 2, 1), [0.0]);
}

#[test]
fn a_name_lost_to_other_output_takes_its_ranks_along() {
    let workdir = Workdir::new();
    let glued = "times across ranks (ms):\n  forward-compute:\n     rank  0: 1.00\n     rank  1: 2.00\n  params-all-gathe[Rank 1] x\nr:\n\
                 \x20    rank  0: 7.00\n     rank  1: 8.00\n     rank  2: 4[Rank 3] y\n.29\n  optimizer:\n     rank  0: 9.00\n";
    let cells = import(&workdir, &workdir.file("a.log", iteration_line(1, 20.0) + glued));
    let timers: Vec<(&str, i64, f64)> = cells
        .iter()
        .filter(|row| row.0 == "megatron_timers")
        .map(|row| (row.1.as_str(), row.2, row.4[0]))
        .collect();
    assert_eq!(
        timers,
        [
            ("forward-compute", 0, 0.001),
            ("forward-compute", 1, 0.002),
            ("optimizer", 0, 0.009)
        ]
    );
}

#[test]
fn packed_logs_and_standard_input_are_read() {
    use std::io::Write as _;
    let workdir = Workdir::new();
    let text = all_ranks(1..40);
    let mut gz = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    gz.write_all(text.as_bytes()).expect("packed");
    let gz = gz.finish().expect("packed");
    let zst = zstd::encode_all(text.as_bytes(), 1).expect("packed");
    for (name, bytes) in [("a.log.gz", gz.clone()), ("b", zst), ("c.log", gz.clone())] {
        let log = workdir.file(name, bytes);
        let summary = workdir
            .run(&["analyze", &log, "--no-files", "--format", "json"])
            .succeeded()
            .json();
        assert_eq!(summary["anomaly_ranks"], serde_json::json!([5]), "{name}");
    }
    for bytes in [text.into_bytes(), gz] {
        workdir.file("input", bytes);
        let input = std::fs::File::open(workdir.path("input")).expect("the file");
        let mut command = workdir.command(&["analyze", "-", "--no-files", "--format", "json"]);
        let summary = common::ran(command.stdin(input)).succeeded().json();
        assert_eq!(summary["anomaly_ranks"], serde_json::json!([5]));
    }
}

#[test]
fn several_logs_are_one_job() {
    let workdir = Workdir::new();
    let (a, b) = (
        workdir.file("a.log", all_ranks(1..25)),
        workdir.file("b.log", all_ranks(20..45)),
    );
    let summary = workdir
        .run(&["analyze", &a, &b, "--no-files", "--format", "json"])
        .succeeded()
        .json();
    assert_eq!(
        (summary["runs"].as_array().map(Vec::len), &summary["anomaly_ranks"]),
        (Some(2), &serde_json::json!([5]))
    );
}

#[test]
fn what_is_no_log_is_said_to_be_none() {
    let workdir = Workdir::new();
    let noise: Vec<u8> = (0..24_000u32)
        .map(|n| (n.wrapping_mul(2_654_435_761) >> 11) as u8)
        .collect();
    for (name, content, code, says) in [
        (
            "a.log",
            b"<!DOCTYPE html>\n<html><body>rank 0: 12.5</body></html>".to_vec(),
            4,
            "HTML page",
        ),
        ("b.log", noise, 4, "no text"),
        (
            "c.log",
            b"hello\nargs.iteration=1:\n     rank  0: 3.90\n".to_vec(),
            3,
            "no iteration or timer line",
        ),
        ("d.log", vec![b'a'; 3 << 20], 3, "no iteration or timer line"),
        ("e.txt", b"hello".to_vec(), 4, "recognisable"),
        ("f.log", Vec::new(), 4, "empty"),
        (
            "g.log.gz",
            vec![0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 0, 3, 1, 2, 3],
            4,
            "g.log.gz",
        ),
    ] {
        let log = workdir.file(name, content);
        for args in [
            vec!["analyze", &log, "--no-files"],
            vec!["import", &log, "--out", "x.parquet"],
        ] {
            let ran = workdir.run(&args);
            assert_eq!(ran.code, Some(code), "{name}: {ran:?}");
            assert!(
                ran.stderr.contains(says) && ran.stderr.lines().count() == 1,
                "{name}: {ran:?}"
            );
        }
    }
}

#[test]
fn formats_are_listed() {
    let ran = Workdir::new().run(&["formats"]).succeeded();
    let docs = std::fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/docs/formats.md")).expect("docs");
    for row in &mt_detector::source::formats::FORMATS {
        assert!(
            ran.stdout.contains(row.name) && docs.contains(row.tells),
            "{}",
            row.name
        );
    }
}

/// Labelled logs beside the checkout: who is slow, and cells to the printed digit.
#[test]
fn labelled_logs_are_read_as_their_labels_say() {
    let Some(folder) = shared_data("logs") else { return };
    let labels = std::fs::read_to_string(folder.join("labels.json")).expect("labels");
    let labels: serde_json::Value = serde_json::from_str(&labels).expect("JSON");
    let workdir = Workdir::new();
    for (name, label) in labels.as_object().into_iter().flatten() {
        let log = folder.join(name);
        if !log.exists() {
            continue;
        }
        let log = log.display().to_string();
        let ran = workdir.run(&["analyze", &log, "--no-files", "--format", "json", "--warmup", "0"]);
        assert!(matches!(ran.code, Some(0 | 3 | 4)), "{name}: {ran:?}");
        let readable = label["formats"].as_array().is_some_and(|formats| !formats.is_empty());
        if readable
            && ran.code == Some(0)
            && (label["slow_ranks"].is_null() || label["slow_ranks"] == serde_json::json!([]))
        {
            assert_eq!(ran.json()["anomaly_ranks"], serde_json::json!([]), "{name}");
        }
        let spots = label["spots"].as_array().cloned().unwrap_or_default();
        let spots: Vec<_> = spots
            .iter()
            .filter(|spot| {
                spot["rank"].is_i64()
                    && spot["iteration"].is_i64()
                    && spot["printed_seconds"].is_null()
                    && spot["stat"] == "value"
            })
            .collect();
        if spots.is_empty() {
            continue;
        }
        let cells = import(&workdir, &log);
        for spot in spots {
            let (rank, iteration) = (
                spot["rank"].as_i64().expect("a rank"),
                spot["iteration"].as_i64().expect("one"),
            );
            let seconds = spot["seconds"].as_f64().expect("seconds");
            let same = |row: &&(String, String, i64, i64, Vec<f64>)| {
                spot["timer"] == row.1.as_str() && row.0 == "megatron_timers" && (row.2, row.3) == (rank, iteration)
            };
            let found = cells.iter().filter(same).any(|row| (row.4[0] - seconds).abs() < 1e-9);
            assert!(found, "{name}: {spot}");
        }
    }
}
