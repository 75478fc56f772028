//! What must always hold of a verdict, whatever the job.

mod common;

use std::collections::BTreeSet;

use common::{Workdir, fixture};
use mt_detector::algos::registry;
use mt_detector::job::{Collector, Job, Selection};
use mt_detector::rules::classic::{ClassicSettings, judge};
use mt_detector::source::{Rows, Scan, TextColumn};
use proptest::prelude::*;

/// One timer row.
#[derive(Debug, Clone)]
struct Cell {
    timer: &'static str,
    rank: u32,
    iteration: u32,
    seconds: f64,
}

/// A small job: a few timers, ranks that differ, one of them slow or none.
fn cells() -> impl Strategy<Value = Vec<Cell>> {
    let shape = (3u32..14, 2u32..6, any::<bool>(), 1.05f64..3.0, 0.0f64..0.2);
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

fn tabulated(cells: &[Cell]) -> Job {
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
        if let Some(nodes) = &mut rows.node {
            nodes.push(Some(&format!("n{}", cell.rank)));
        }
    }
    let digest = collector.digest(rows);
    collector.absorb(digest).expect("one job");
    Job::assemble(collector, &selection).expect("rows")
}

fn anomalies(cells: &[Cell]) -> BTreeSet<u32> {
    let job = tabulated(cells);
    let verdict = judge(&job, &ClassicSettings::default(), registry());
    verdict.anomalies.iter().map(|&rank| job.ranks[rank]).collect()
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 48, failure_persistence: None, ..ProptestConfig::default() })]

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

#[test]
fn threads_and_row_order_leave_every_byte_alone() {
    let workdir = Workdir::new();
    for name in ["slow-rank", "restart-dirty"] {
        let file = format!("{name}.parquet");
        std::fs::copy(fixture(&file), workdir.path(&file)).expect("the fixture");
        workdir
            .run(&["analyze", &file, "--out", "one", "--threads", "1"])
            .succeeded();
        workdir
            .run(&["analyze", &file, "--out", "eight", "--threads", "8"])
            .succeeded();
        let expected = workdir.content("one");
        assert!(expected.len() > 6);
        assert!(workdir.content("eight") == expected, "{name}: 8 threads differ from 1");

        reverse_rows(&workdir.path(&file));
        workdir.run(&["analyze", &file, "--out", "shuffled"]).succeeded();
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
