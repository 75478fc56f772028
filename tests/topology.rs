//! Where ranks stand: from rows, from flags, inferred from the timers of simulated jobs.

mod common;

use std::path::{Path, PathBuf};

use common::{Workdir, fixture, shared_data};
use mt_detector::contract::rank_order::Layout;
use mt_detector::evaluation::simulate::faults::RankFactor;
use mt_detector::evaluation::simulate::{DEFAULT_ORDER, Scenario, write_job};
use mt_detector::job::{Job, Place, Selection, TopologyOrigin, load};
use mt_detector::source::discover;

const MAPPING: &str = "tp-cp-ep-pp-dp";

fn scenario(tp: usize, pp: usize, dp: usize, order: &str) -> Scenario {
    let turned = if order == DEFAULT_ORDER { "" } else { "-turned" };
    Scenario {
        job: format!("tp{tp}-pp{pp}-dp{dp}{turned}"),
        tp,
        pp,
        dp,
        order: order.into(),
        iterations: 22,
        microbatches: 4,
        trace: false,
        topology: false,
        seed: (1000 * tp + 100 * pp + dp) as u64,
        ..Scenario::default()
    }
}

fn loaded(path: &Path, selection: &Selection) -> Job {
    let found = discover(&[path.to_owned()]).expect("the file");
    load(&found.files, selection, &|_| {}).expect("a job")
}

fn simulated(folder: &Path, scenario: &Scenario) -> PathBuf {
    write_job(scenario, folder, true).expect("a possible scenario").parquet
}

fn selection() -> Selection {
    Selection {
        warmup: 10,
        ..Selection::default()
    }
}

fn true_places(scenario: &Scenario) -> Vec<Place> {
    let layout = Layout::new(&scenario.order, scenario.sizes()).expect("its order");
    let place = |rank| {
        let at = layout.coordinates(rank);
        Place {
            stage: at.pp as u32,
            pipeline: at.dp as u32,
            member: (at.tp + scenario.tp * at.cp) as u32,
        }
    };
    (0..scenario.ranks()).map(place).collect()
}

fn grid() -> Vec<Scenario> {
    let mut jobs = Vec::new();
    for order in [DEFAULT_ORDER, MAPPING] {
        for pp in [1, 2, 4, 8] {
            for tp in [1, 2, 4, 8] {
                for dp in [2, 4, 8] {
                    // Without stages both orders are the same.
                    if tp * pp * dp <= 128 && (pp > 1 || order == DEFAULT_ORDER) {
                        jobs.push(scenario(tp, pp, dp, order));
                    }
                }
            }
        }
    }
    jobs
}

#[test]
fn the_timers_of_simulated_jobs_tell_the_places() {
    let workdir = Workdir::new();
    let (mut jobs, mut right, mut wrong) = (0, 0, Vec::new());
    for (number, mut scenario) in grid().into_iter().enumerate() {
        if number % 2 == 1 {
            let rank = (number * 7) % scenario.ranks();
            let factor = [1.08, 1.3, 2.0][number % 3];
            scenario.slow_ranks = vec![RankFactor { rank, factor }];
        }
        let file = simulated(&workdir.path(""), &scenario);
        let job = loaded(&file, &selection());
        std::fs::remove_file(&file).expect("the file");
        let topology = &job.topology;
        assert_eq!(
            topology.pipeline_stages(),
            scenario.pp as u32,
            "{}: {topology:?}",
            scenario.job
        );
        assert_eq!(topology.stated_pipeline_stages(), 1);
        assert!(
            matches!(topology.origin, TopologyOrigin::Inferred { sure, .. } if (0.0..1.0).contains(&sure)),
            "{:?}",
            topology.origin
        );
        jobs += 1;
        if topology.places == true_places(&scenario) {
            right += 1;
        } else {
            wrong.push(format!("{}: {:?} {:?}", scenario.job, topology.sizes, topology.origin));
        }
    }
    println!("{right} of {jobs} topologies are right\n{}", wrong.join("\n"));
    assert!(right * 100 >= jobs * 95, "{right} of {jobs}:\n{}", wrong.join("\n"));
}

#[test]
fn rows_and_flags_tell_the_same_places_as_the_truth() {
    let workdir = Workdir::new();
    for order in [DEFAULT_ORDER, MAPPING, "tp-pp-dp"] {
        for (tp, pp, dp, cp) in [(2, 4, 2, 1), (1, 2, 4, 2), (4, 1, 2, 1)] {
            let mut scenario = Scenario {
                topology: true,
                cp,
                order: if cp > 1 && order == "tp-pp-dp" {
                    "tp-cp-pp-dp"
                } else {
                    order
                }
                .into(),
                ..scenario(tp, pp, dp, order)
            };
            let job = loaded(&simulated(&workdir.path(""), &scenario), &selection());
            assert_eq!(job.topology.origin, TopologyOrigin::Rows);
            assert_eq!(job.topology.places, true_places(&scenario), "{order}");
            assert_eq!(job.topology.stated_pipeline_stages(), pp as u32);

            scenario.topology = false;
            let mut selection = selection();
            selection.topology.tp = Some(tp as u32);
            selection.topology.pp = Some(pp as u32);
            selection.topology.cp = Some(cp as u32);
            selection.topology.order = Some(scenario.order.clone());
            let job = loaded(&simulated(&workdir.path(""), &scenario), &selection);
            assert_eq!(job.topology.origin, TopologyOrigin::Flags);
            assert_eq!(job.topology.places, true_places(&scenario), "{order}");
        }
    }
}

#[test]
fn the_summary_says_where_the_topology_comes_from() {
    let workdir = Workdir::new();
    let groups = |job: &str, more: &[&str]| {
        let ran = workdir
            .run(&[&["analyze", job, "--no-files", "-v"], more].concat())
            .succeeded();
        let line = ran.stdout.lines().find(|line| line.starts_with("parallel_groups: "));
        line.expect("the line").to_owned()
    };
    let without = Scenario {
        job: "without".into(),
        ..scenario(2, 4, 2, DEFAULT_ORDER)
    };
    simulated(&workdir.path(""), &without);
    let with = Scenario {
        job: "with".into(),
        topology: true,
        ..without.clone()
    };
    simulated(&workdir.path(""), &with);
    assert_eq!(
        groups("with.parquet", &[]),
        "parallel_groups: dp 2, pp 4, tp 2 (from rows)"
    );
    let flags = ["--pp", "4", "--tp", "2"];
    assert_eq!(
        groups("without.parquet", &flags),
        "parallel_groups: dp 2, pp 4, tp 2 (from flags)"
    );
    assert_eq!(
        groups("with.parquet", &flags),
        "parallel_groups: dp 2, pp 4, tp 2 (from rows)"
    );
    let inferred = groups("without.parquet", &[]);
    assert!(
        inferred.starts_with("parallel_groups: dp 2, pp 4, tp 2 (inferred, 93 % sure, from: point-to-point timers of"),
        "{inferred}"
    );
    let lone = common::job("lone", "optimizer", 8, 12, |_, _| 1.0);
    workdir.file("lone.ndjson", lone);
    assert!(groups("lone.ndjson", &[]).starts_with("parallel_groups: unknown ("));
}

#[test]
fn flags_that_do_not_fit_are_bad_arguments() {
    let workdir = Workdir::new();
    let with = Scenario {
        job: "with".into(),
        topology: true,
        ..scenario(2, 4, 2, DEFAULT_ORDER)
    };
    simulated(&workdir.path(""), &with);
    let without = Scenario {
        job: "without".into(),
        topology: false,
        ..with
    };
    simulated(&workdir.path(""), &without);
    for (job, flags, says) in [
        (
            "with",
            &["--pp", "2"][..],
            "pp 2 was asked for, but the job's megatron_parallel_group_rank rows say pp 4",
        ),
        (
            "with",
            &["--order", "tp-pp-dp"],
            "the order tp-pp-dp puts rank 2 at dp 0 but the job's megatron_parallel_group_rank rows say dp 1",
        ),
        (
            "without",
            &["--pp", "3"],
            "pp 3 = 3 does not fit the job's 16 ranks (0 to the last that wrote rows)",
        ),
        (
            "without",
            &["--pp", "4", "--ep", "3"],
            "ep 3 x pp 4 = 12 does not fit the job's 16 ranks",
        ),
        ("without", &["--dp", "4"], "dp 4 leaves 4 ranks to each replica"),
        (
            "without",
            &["--order", "tp-pp-dp"],
            "an order and ep place no rank by themselves",
        ),
        (
            "without",
            &["--pp", "4", "--order", "tp-xx-pp"],
            "unknown axis `xx` in `tp-xx-pp`",
        ),
        (
            "without",
            &["--pp", "4", "--order", "tp-dp"],
            "axis `pp` missing in `tp-dp`",
        ),
        ("without", &["--pp", "0"], "invalid value '0' for '--pp <N>'"),
    ] {
        let file = format!("{job}.parquet");
        let ran = workdir.run(&[&["analyze", &file, "--no-files", "-v"], flags].concat());
        assert_eq!(ran.code, Some(2), "{flags:?}: {ran:?}");
        assert!(ran.stderr.contains(says), "{flags:?}: {}", ran.stderr);
    }
}

#[test]
fn classic_rules_go_by_what_is_stated_only() {
    let workdir = Workdir::new();
    let slow = Scenario {
        job: "slow".into(),
        slow_ranks: vec![RankFactor { rank: 5, factor: 1.5 }],
        ..scenario(1, 4, 4, DEFAULT_ORDER)
    };
    simulated(&workdir.path(""), &slow);
    let json = |flags: &[&str]| {
        let args = [
            "analyze",
            "slow.parquet",
            "--no-files",
            "--format",
            "json",
            "--rules",
            "classic",
        ];
        workdir.run(&[&args, flags].concat()).succeeded().json()
    };
    let not_compute = |json: &serde_json::Value| {
        let timers = json["timers"].as_array().expect("timers");
        timers.iter().filter(|timer| timer["fate"] == "not-compute").count()
    };
    assert_eq!(
        not_compute(&json(&[])),
        0,
        "inferred stages are none to the classic rules"
    );
    assert!(not_compute(&json(&["--pp", "4"])) > 0);
}

/// Jobs beside the checkout with their rows of groups taken away; skipped where they are not there.
#[test]
fn shared_jobs_without_their_rows_are_placed_rightly() {
    let Some(data) = shared_data("sim") else { return };
    let workdir = Workdir::new();
    for (name, pp, dp, order) in [
        ("no-topology-01", 8, 4, DEFAULT_ORDER),
        ("no-topology-02", 2, 8, DEFAULT_ORDER),
        ("order-01", 2, 8, MAPPING),
        ("order-02", 8, 4, MAPPING),
    ] {
        let stripped = workdir.path(&format!("{name}.parquet"));
        without_groups(&data.join(format!("{name}.parquet")), &stripped);
        let job = loaded(&stripped, &selection());
        let topology = &job.topology;
        assert!(
            matches!(topology.origin, TopologyOrigin::Inferred { .. }),
            "{name}: {topology:?}"
        );
        assert_eq!(
            topology.places,
            true_places(&scenario(1, pp, dp, order)),
            "{name}: {topology:?}"
        );
    }
}

#[test]
fn fixtures_keep_their_stages_without_their_rows() {
    let workdir = Workdir::new();
    for name in ["healthy", "slow-rank", "slow-rank-pp1", "restart-dirty", "heavy-stage"] {
        let with = Path::new(&fixture(&format!("{name}.parquet"))).to_owned();
        let stripped = workdir.path(&format!("{name}.parquet"));
        without_groups(&with, &stripped);
        let (with, without) = (loaded(&with, &selection()), loaded(&stripped, &selection()));
        assert_eq!(
            without.topology.places, with.topology.places,
            "{name}: {:?}",
            without.topology
        );
    }
}

fn without_groups(from: &Path, to: &Path) {
    use polars::prelude::*;
    let frame = ParquetReader::new(std::fs::File::open(from).expect("the file"))
        .finish()
        .expect("a frame");
    let metric = frame
        .column("metric_name")
        .expect("the column")
        .cast(&DataType::String)
        .expect("text");
    let others: BooleanChunked = metric
        .str()
        .expect("text")
        .iter()
        .map(|name| Some(name != Some("megatron_parallel_group_rank")))
        .collect();
    let mut others = frame.filter(&others).expect("a mask of its height");
    ParquetWriter::new(std::fs::File::create(to).expect("the file"))
        .finish(&mut others)
        .expect("a file");
}
