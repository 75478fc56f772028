use super::*;

/// Rows (timer, rank, iteration, seconds) of two nodes, written a second after each other.
fn rows(cells: &[(&str, i64, i64, f64)]) -> Rows {
    let mut rows = Rows {
        node: Some(TextColumn::default()),
        ..Rows::default()
    };
    for (second, &(timer, rank, iteration, seconds)) in cells.iter().enumerate() {
        rows.timestamp.push(Some(second as i64));
        rows.job.push(Some("j"));
        rows.metric_name.push(Some("megatron_timers"));
        rows.subname.push(Some(timer));
        rows.rank.push(Some(rank));
        rows.iteration.push(Some(iteration));
        rows.value.push(Some(seconds));
        if let Some(nodes) = &mut rows.node {
            nodes.push(Some(if rank < 2 { "n0" } else { "n1" }));
        }
    }
    rows
}

const CELLS: [(&str, i64, i64, f64); 6] = [
    ("a", 0, 1, 1.0),
    ("b", 0, 1, 2.0),
    ("a", 3, 1, 3.0),
    ("b", 3, 1, 4.0),
    ("a", 0, 2, 5.0),
    ("b", 3, 2, 6.0),
];

/// What a digest holds of timer rows.
#[derive(Debug, PartialEq)]
struct Told {
    pieces: Vec<(u32, usize)>,
    rank: Vec<u32>,
    step: Vec<u32>,
    seconds: Vec<f64>,
    rows_of_steps: Vec<u64>,
}

fn told(digest: &Digest) -> Told {
    let rows = &digest.rows;
    Told {
        pieces: rows.pieces.clone(),
        rank: rows.rank.clone(),
        step: rows.step.clone(),
        seconds: rows.seconds.clone(),
        rows_of_steps: digest.tallies.iter().map(|tally| tally.rows).collect(),
    }
}

#[test]
fn rows_of_a_timer_are_brought_together() {
    let rows = rows(&CELLS);
    let batch = Batch::new(&rows, Some("j"), Bounds::default());
    assert!(batch.extent_if_all_are_taken().is_some());
    let digest = batch.digest();
    let expected = Told {
        pieces: vec![(0, 3), (1, 3)],
        rank: vec![0, 3, 0, 0, 3, 3],
        step: vec![0, 0, 1, 0, 0, 1],
        seconds: vec![1.0, 3.0, 5.0, 2.0, 4.0, 6.0],
        rows_of_steps: vec![4, 2],
    };
    assert_eq!(told(&digest), expected);
    assert_eq!((digest.rows.time.get(1), digest.seen.ranks()), (2, vec![0, 3]));
    assert_eq!(
        digest.extents,
        [Some(RunExtent {
            first_time: 0,
            last_time: 5,
            first_iteration: 1,
            last_iteration: 2
        })]
    );
}

#[test]
fn a_batch_as_a_whole_is_kept_as_row_by_row() {
    let rows = rows(&CELLS);
    let whole = Batch::new(&rows, None, Bounds::default()).digest();
    let batch = Batch::new(&rows, None, Bounds::default());
    let mut single = Digest {
        extents: vec![None],
        timer_words: rows.subname.words.clone(),
        node_words: vec!["n0".to_owned(), "n1".to_owned()],
        ..Digest::default()
    };
    let taken = Taken::Some(batch.sort_out(&mut single));
    batch.keep(&taken, &mut single);
    assert_eq!(told(&whole), told(&single));
    assert_eq!(
        (whole.extents, whole.seen.ranks()),
        (single.extents, single.seen.ranks())
    );
}

#[test]
fn one_odd_row_and_the_batch_is_sorted_out() {
    for odd in [
        ("a", -1, 2, 1.0),
        ("a", 0, -2, 1.0),
        ("a", 0, 9, 1.0),
        ("a", 0, 2, f64::NAN),
        ("a", 0, 2, -1.0),
    ] {
        let mut cells = CELLS.to_vec();
        cells.insert(2, odd);
        let rows = rows(&cells);
        let bounds = Bounds {
            last: Some(5),
            ..Bounds::default()
        };
        let batch = Batch::new(&rows, Some("j"), bounds);
        assert!(batch.extent_if_all_are_taken().is_none(), "{odd:?}");
        let digest = batch.digest();
        assert_eq!(digest.rows.len(), CELLS.len(), "{odd:?}");
        let quality = digest.quality;
        let left_out = quality.unreadable_rows + quality.outside_iterations + quality.not_finite + quality.negative;
        assert_eq!(left_out, 1, "{odd:?}");
    }
}
