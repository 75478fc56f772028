//! What must always hold of a verdict, whatever the job.

mod common;

use std::collections::BTreeSet;

use common::{Workdir, fixture};
use mt_detector::algos::registry;
use mt_detector::job::{Collector, Job, Selection};
use mt_detector::rules::classic::ClassicSettings;
use mt_detector::rules::peer::PeerSettings;
use mt_detector::rules::{RulesSettings, judge};
use mt_detector::source::{Rows, Scan, TextColumn};
use proptest::prelude::*;

/// Cases of a property: `PROPTEST_CASES` or the usual number.
fn cases(usual: u32) -> u32 {
    let asked = std::env::var("PROPTEST_CASES").ok();
    asked.and_then(|cases| cases.parse().ok()).unwrap_or(usual)
}

/// One timer row.
#[derive(Debug, Clone)]
struct Cell {
    timer: &'static str,
    rank: u32,
    iteration: u32,
    seconds: f64,
}

/// A small job of a few iterations.
fn cells() -> impl Strategy<Value = Vec<Cell>> {
    cells_over(2..6)
}

/// A job with a few timers, ranks that differ, one of them slow or none.
fn cells_over(iterations: std::ops::Range<u32>) -> impl Strategy<Value = Vec<Cell>> {
    let shape = (3u32..14, iterations, any::<bool>(), 1.05f64..3.0, 0.0f64..0.2);
    (shape, prop::collection::vec(0.0f64..1.0, 14 * 6 * 3)).prop_map(
        |((ranks, iterations, slow, factor, spread), draws)| {
            let mut draws = draws.into_iter().cycle();
            let mut cells = Vec::new();
            for (timer, level) in [("forward-compute", 1.0), ("backward-compute", 2.0), ("optimizer", 0.3)] {
                for rank in 0..ranks {
                    for iteration in 0..iterations {
                        let uneven = 1.0 + spread * draws.next().unwrap_or_default();
                        let own = if slow && rank == ranks / 2 { factor } else { 1.0 };
                        cells.push(Cell {
                            timer,
                            rank,
                            iteration,
                            seconds: level * uneven * own,
                        });
                    }
                }
            }
            cells
        },
    )
}

/// A pipeline and stage of a rank's own place.
#[derive(Debug, Clone, Copy)]
struct Place {
    rank: u32,
    stage: u32,
    pipeline: u32,
}

/// Two stages of half of the ranks each, one more on the first where the number is odd.
fn two_stages(cells: &[Cell]) -> Vec<Place> {
    let ranks = cells.iter().map(|cell| cell.rank).max().unwrap_or(0) + 1;
    let place = |rank| Place {
        rank,
        stage: rank % 2,
        pipeline: rank / 2,
    };
    (0..ranks).map(place).collect()
}

/// One row of single calls.
#[derive(Debug, Clone)]
struct Calls {
    timer: &'static str,
    rank: u32,
    iteration: u32,
    /// Start, end, start, end, ...
    times: Vec<f64>,
}

fn tabulated(cells: &[Cell], places: &[Place]) -> Job {
    tabulated_with_calls(cells, &[], places)
}

fn tabulated_with_calls(cells: &[Cell], calls: &[Calls], places: &[Place]) -> Job {
    let selection = Selection::default();
    let mut collector = Collector::new(&selection);
    let mut rows = Rows {
        node: Some(TextColumn::default()),
        ..Rows::default()
    };
    for cell in cells {
        rows.timestamp.push(Some(i64::from(cell.iteration)));
        rows.job.push(Some("j"));
        rows.metric_name.push(Some("megatron_timers"));
        rows.subname.push(Some(cell.timer));
        rows.rank.push(Some(cell.rank.into()));
        rows.iteration.push(Some(cell.iteration.into()));
        rows.value.push(Some(cell.seconds));
        rows.calls.push([]);
        if let Some(nodes) = &mut rows.node {
            nodes.push(Some(&format!("n{}", cell.rank)));
        }
    }
    for row in calls {
        rows.timestamp.push(Some(i64::from(row.iteration)));
        rows.job.push(Some("j"));
        rows.metric_name.push(Some("megatron_timers_trace"));
        rows.subname.push(Some(row.timer));
        rows.rank.push(Some(row.rank.into()));
        rows.iteration.push(Some(row.iteration.into()));
        rows.value.push(row.times.first().copied());
        rows.calls.push(row.times.iter().copied());
        if let Some(nodes) = &mut rows.node {
            nodes.push(Some(&format!("n{}", row.rank)));
        }
    }
    for place in places {
        for (axis, position) in [("pp", place.stage), ("dp", place.pipeline)] {
            rows.timestamp.push(Some(0));
            rows.job.push(Some("j"));
            rows.metric_name.push(Some("megatron_parallel_group_rank"));
            rows.subname.push(Some(axis));
            rows.rank.push(Some(place.rank.into()));
            rows.iteration.push(Some(0));
            rows.value.push(Some(position.into()));
            if let Some(nodes) = &mut rows.node {
                nodes.push(Some(&format!("n{}", place.rank)));
            }
        }
    }
    let digest = collector.digest(rows);
    collector.absorb(digest).expect("one job");
    Job::assemble(collector, &selection).expect("rows")
}

/// The anomaly ranks under the classic rules.
fn anomalies(cells: &[Cell]) -> BTreeSet<u32> {
    named(cells, &[], &RulesSettings::Classic(ClassicSettings::default()))
}

/// The anomaly ranks under the peer rules.
fn peer_anomalies(cells: &[Cell], places: &[Place]) -> BTreeSet<u32> {
    named(cells, places, &RulesSettings::Peer(PeerSettings::default()))
}

fn named(cells: &[Cell], places: &[Place], settings: &RulesSettings) -> BTreeSet<u32> {
    let job = tabulated(cells, places);
    let verdict = judge(&job, settings, registry());
    verdict.anomalies.iter().map(|&rank| job.ranks[rank]).collect()
}

proptest! {
    #![proptest_config(ProptestConfig { cases: cases(48), failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn permuting_ranks_permutes_the_answer(cells in cells(), shift in 1u32..13) {
        let ranks = cells.iter().map(|cell| cell.rank).max().unwrap_or(0) + 1;
        // Reversed and turned, so that no order of theirs is kept.
        let moved = |rank: u32| (2 * ranks - 1 - rank + shift) % ranks;
        let permuted: Vec<Cell> = cells.iter().map(|cell| Cell { rank: moved(cell.rank), ..cell.clone() }).collect();
        let expected: BTreeSet<u32> = anomalies(&cells).into_iter().map(moved).collect();
        prop_assert_eq!(anomalies(&permuted), expected);
    }

    #[test]
    fn scaling_all_times_changes_nothing(cells in cells(), power in -20i32..20) {
        // A power of two changes no digit, so that even a tie stays one.
        let scaled: Vec<Cell> =
            cells.iter().map(|cell| Cell { seconds: cell.seconds * 2f64.powi(power), ..cell.clone() }).collect();
        prop_assert_eq!(anomalies(&scaled), anomalies(&cells));
    }

    #[test]
    fn the_order_of_rows_does_not_matter(cells in cells().prop_flat_map(|cells| (Just(cells.clone()), Just(cells).prop_shuffle()))) {
        let (ordered, shuffled) = cells;
        prop_assert_eq!(anomalies(&shuffled), anomalies(&ordered));
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: cases(48), failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn peers_permuting_ranks_permutes_the_answer(cells in cells_over(3..24), shift in 1u32..13) {
        let places = two_stages(&cells);
        let ranks = places.len() as u32;
        let moved = |rank: u32| (2 * ranks - 1 - rank + shift) % ranks;
        let permuted: Vec<Cell> = cells.iter().map(|cell| Cell { rank: moved(cell.rank), ..cell.clone() }).collect();
        let moved_places: Vec<Place> =
            places.iter().map(|place| Place { rank: moved(place.rank), ..*place }).collect();
        let expected: BTreeSet<u32> = peer_anomalies(&cells, &places).into_iter().map(moved).collect();
        prop_assert_eq!(peer_anomalies(&permuted, &moved_places), expected);
    }

    #[test]
    fn peers_scaling_all_times_changes_nothing(cells in cells_over(3..24), power in -60i32..24) {
        let places = two_stages(&cells);
        let scaled: Vec<Cell> =
            cells.iter().map(|cell| Cell { seconds: cell.seconds * 2f64.powi(power), ..cell.clone() }).collect();
        prop_assert_eq!(peer_anomalies(&scaled, &places), peer_anomalies(&cells, &places));
    }

    #[test]
    fn peers_the_order_of_rows_does_not_matter(
        cells in cells_over(3..24).prop_flat_map(|cells| (Just(cells.clone()), Just(cells).prop_shuffle()))
    ) {
        let (ordered, shuffled) = cells;
        let places = two_stages(&ordered);
        prop_assert_eq!(peer_anomalies(&shuffled, &places), peer_anomalies(&ordered, &places));
    }

    #[test]
    fn peers_find_one_who_is_twice_as_slow(cells in cells_over(8..24), by in 1.9f64..4.0, seed in any::<u32>()) {
        let ranks = two_stages(&cells).len() as u32;
        prop_assume!(ranks >= 6);
        let culprit = seed % ranks;
        let places: Vec<Place> = (0..ranks).map(|rank| Place { rank, stage: 0, pipeline: rank }).collect();
        let healthy = with_noise(&cells, 0.02, seed);
        let faulty: Vec<Cell> = healthy
            .into_iter()
            .map(|cell| Cell { seconds: if cell.rank == culprit { by * cell.seconds } else { cell.seconds }, ..cell })
            .collect();
        prop_assert_eq!(peer_anomalies(&faulty, &places), BTreeSet::from([culprit]));
    }

    #[test]
    fn noise_alone_never_makes_a_culprit(cells in cells_over(3..24), seed in any::<u32>()) {
        let places = two_stages(&cells);
        for noise in [0.0, 0.01, 0.05, 0.2, 0.5] {
            let noisy = with_noise(&cells, noise, seed);
            prop_assert_eq!(peer_anomalies(&noisy, &places), BTreeSet::new(), "noise {}", noise);
        }
    }

    #[test]
    fn any_table_gets_a_verdict(cells in prop::collection::vec(wild_cell(), 1..120), placed in any::<bool>()) {
        let places = if placed { two_stages(&cells) } else { Vec::new() };
        let named = peer_anomalies(&cells, &places);
        prop_assert!(named.iter().all(|rank| cells.iter().any(|cell| cell.rank == *rank)));
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: cases(64), failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn permuting_ranks_permutes_the_slow_links(traced in traced(), shift in 1u32..40) {
        let ranks = traced.places.len() as u32;
        let moved = |rank: u32| (2 * ranks - 1 - rank + shift) % ranks;
        let permuted = traced.moved(moved);
        let expected: BTreeSet<(u32, u32)> = traced.slow().into_iter().map(|(a, b)| (moved(a), moved(b))).collect();
        prop_assert_eq!(permuted.slow(), expected);
    }

    #[test]
    fn scaling_all_times_changes_no_link(traced in traced(), power in -40i32..24) {
        let scaled = traced.scaled(2f64.powi(power));
        prop_assert_eq!(scaled.slow(), traced.slow());
    }

    #[test]
    fn a_slow_link_is_found_and_no_other(traced in traced()) {
        prop_assert_eq!(traced.slow(), traced.truth.into_iter().collect());
    }

    #[test]
    fn any_calls_get_a_verdict(cells in prop::collection::vec(wild_cell(), 1..60), calls in prop::collection::vec(wild_calls(), 0..90)) {
        let places = two_stages(&cells);
        let job = tabulated_with_calls(&cells, &calls, &places);
        for settings in [RulesSettings::default(), RulesSettings::Classic(ClassicSettings::default())] {
            let verdict = judge(&job, &settings, &registry()[..1]);
            let known = |node: &String| job.nodes.contains(node);
            prop_assert!(verdict.nodes(&job).iter().all(known));
        }
        let quality = &job.quality;
        let parts = quality.trace_rows_used + quality.trace_rows_not_needed + quality.trace_rows_left_out;
        prop_assert_eq!(quality.trace_rows, parts);
    }
}

/// A healthy pipeline job with single calls, and the flow that is slow in it, if any.
#[derive(Debug, Clone)]
struct Traced {
    cells: Vec<Cell>,
    calls: Vec<Calls>,
    places: Vec<Place>,
    truth: Option<(u32, u32)>,
}

/// Three or four stages of a few pipelines; one transfer may take 3 to 30 times as long, others wait at random.
fn traced() -> impl Strategy<Value = Traced> {
    let shape = (3u32..5, 2u32..6, any::<bool>(), 3.5f64..30.0, any::<u32>());
    (shape, prop::collection::vec(0.0f64..1.0, 997)).prop_map(|((stages, pipelines, slow, factor, pick), draws)| {
        let mut draws = draws.into_iter().cycle();
        let rank = |stage: u32, pipeline: u32| stage * pipelines + pipeline;
        let picked = (pick % (stages - 1), (pick / 8) % pipelines);
        let truth = slow.then(|| (rank(picked.0, picked.1), rank(picked.0 + 1, picked.1)));
        let (mut cells, mut calls, mut places) = (Vec::new(), Vec::new(), Vec::new());
        for stage in 0..stages {
            for pipeline in 0..pipelines {
                let rank = rank(stage, pipeline);
                places.push(Place { rank, stage, pipeline });
                for iteration in 0..6 {
                    cells.push(Cell {
                        timer: "forward-compute",
                        rank,
                        iteration,
                        seconds: 1.0,
                    });
                }
            }
        }
        for (stage, pipeline) in (0..stages - 1).flat_map(|stage| (0..pipelines).map(move |pipeline| (stage, pipeline)))
        {
            let ends = (rank(stage, pipeline), rank(stage + 1, pipeline));
            for iteration in 0..6 {
                for (up, down, forward) in [
                    ("forward-send", "forward-recv", true),
                    ("backward-recv", "backward-send", false),
                ] {
                    let own = if forward && truth == Some(ends) { factor } else { 1.0 };
                    let transfer = 0.01 * own * (1.0 + 0.1 * draws.next().unwrap_or_default());
                    let wait = draws.next().unwrap_or_default();
                    let waits = if wait < 0.5 { (wait, 0.0) } else { (0.0, wait) };
                    for (timer, rank, wait) in [(up, ends.0, waits.0), (down, ends.1, waits.1)] {
                        calls.push(Calls {
                            timer,
                            rank,
                            iteration,
                            times: vec![5.0 - wait, 5.0 + transfer],
                        });
                    }
                }
            }
        }
        Traced {
            cells,
            calls,
            places,
            truth,
        }
    })
}

impl Traced {
    /// The slow flows, sender and receiver.
    fn slow(&self) -> BTreeSet<(u32, u32)> {
        let job = tabulated_with_calls(&self.cells, &self.calls, &self.places);
        let verdict = judge(&job, &RulesSettings::default(), &registry()[..1]);
        let flows = verdict.communication.flows.iter().filter(|flow| flow.slow.is_some());
        flows
            .map(|flow| (job.ranks[flow.sender], job.ranks[flow.receiver]))
            .collect()
    }

    fn moved(&self, moved: impl Fn(u32) -> u32) -> Self {
        let mut turned = self.clone();
        turned.cells.iter_mut().for_each(|cell| cell.rank = moved(cell.rank));
        turned.calls.iter_mut().for_each(|row| row.rank = moved(row.rank));
        turned
            .places
            .iter_mut()
            .for_each(|place| place.rank = moved(place.rank));
        turned
    }

    fn scaled(&self, by: f64) -> Self {
        let mut scaled = self.clone();
        scaled.cells.iter_mut().for_each(|cell| cell.seconds *= by);
        scaled
            .calls
            .iter_mut()
            .for_each(|row| row.times.iter_mut().for_each(|time| *time *= by));
        scaled
    }
}

/// Any calls of a few ranks, however absurd.
fn wild_calls() -> impl Strategy<Value = Calls> {
    let timers = prop::sample::select(vec![
        "forward-send",
        "forward-recv",
        "backward-send",
        "backward-recv",
        "forward-send-backward-recv",
        "backward-send-forward-recv",
        "forward-send-forward-recv",
        "forward-compute",
    ]);
    let time = prop_oneof![
        Just(0.0),
        Just(f64::NAN),
        Just(f64::INFINITY),
        Just(f64::MAX),
        Just(-f64::MAX),
        0.0f64..2.0,
    ];
    let times = prop::collection::vec(time, 0..7);
    (timers, 0u32..9, 0u32..16, times).prop_map(|(timer, rank, iteration, times)| Calls {
        timer,
        rank,
        iteration,
        times,
    })
}

/// The ranks and iterations of a job with even times and independent noise: `noise` is the standard deviation.
fn with_noise(cells: &[Cell], noise: f64, seed: u32) -> Vec<Cell> {
    use rand::{Rng, SeedableRng};
    let mut random = rand::rngs::SmallRng::seed_from_u64(seed.into());
    let mut draw = || (0..12).map(|_| random.r#gen::<f64>()).sum::<f64>() - 6.0;
    let noisy = |cell: &Cell| Cell {
        seconds: (noise * draw()).exp(),
        ..cell.clone()
    };
    cells.iter().map(noisy).collect()
}

/// Any cell of a few ranks, however absurd.
fn wild_cell() -> impl Strategy<Value = Cell> {
    let timers = prop::sample::select(vec![
        "forward-compute",
        "backward-compute",
        "self-attention-linear-qkv",
        "batch-generator",
        "forward-recv",
        "forward-send",
        "interval-time",
    ]);
    let seconds = prop_oneof![
        Just(0.0),
        Just(f64::MIN_POSITIVE / 8.0),
        Just(f64::MAX),
        Just(1.0),
        0.5f64..2.0,
        1e-300f64..1e300,
    ];
    (timers, 0u32..9, 0u32..16, seconds).prop_map(|(timer, rank, iteration, seconds)| Cell {
        timer,
        rank,
        iteration,
        seconds,
    })
}

#[test]
fn threads_and_row_order_leave_every_byte_alone() {
    let workdir = Workdir::new();
    for (name, rules) in [
        ("slow-rank", "peer"),
        ("restart-dirty", "peer"),
        ("slow-rank", "classic"),
    ] {
        let file = format!("{name}.parquet");
        std::fs::copy(fixture(&file), workdir.path(&file)).expect("the fixture");
        let analyze = |out: &str, threads: &str| {
            let args = ["analyze", &file, "--rules", rules, "--out", out, "--threads", threads];
            workdir.run(&args).succeeded();
        };
        analyze("one", "1");
        analyze("eight", "8");
        let expected = workdir.content("one");
        assert!(expected.len() > 6);
        assert!(workdir.content("eight") == expected, "{name}: 8 threads differ from 1");

        reverse_rows(&workdir.path(&file));
        analyze("shuffled", "2");
        assert!(
            workdir.content("shuffled") == expected,
            "{name}: the order of rows shows"
        );
        for folder in ["one", "eight", "shuffled"] {
            std::fs::remove_dir_all(workdir.path(folder)).expect("a result folder");
        }
    }
}

/// Rewrites a Parquet file with its rows turned round and dealt into three piles.
fn reverse_rows(path: &std::path::Path) {
    use polars::prelude::*;
    let frame = ParquetReader::new(std::fs::File::open(path).expect("the file"))
        .finish()
        .expect("a frame");
    let height = frame.height() as IdxSize;
    let order: Vec<IdxSize> = (0..3)
        .flat_map(|pile| (0..height).rev().filter(move |row| row % 3 == pile))
        .collect();
    let mut turned = frame
        .take(&IdxCa::from_vec("row".into(), order))
        .expect("rows of the frame");
    ParquetWriter::new(std::fs::File::create(path).expect("the file"))
        .finish(&mut turned)
        .expect("a file");
}
