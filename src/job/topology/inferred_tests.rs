use super::*;
use ndarray::Array2;

/// Timers of a healthy job on the grid: `unit` ranks share their times, others differ.
fn timers(world: u32, stages: u64, block: u64, unit: u64, iterations: usize) -> Vec<TimerTable> {
    let grid = Grid { stages, block };
    let shape = (world as usize, iterations);
    let table = |name: &str, seconds: &dyn Fn(u32, usize) -> f64| TimerTable {
        name: name.to_owned(),
        seconds: Array2::from_shape_fn(shape, |(rank, at)| seconds(rank as u32, at)),
    };
    let on = |here: bool| if here { 0.5 } else { f64::NAN };
    vec![
        table("backward-compute", &|rank, at| {
            let of_unit = (u64::from(rank) / unit * 37 + at as u64 * 11) % 17;
            1.0 + 0.002 * of_unit as f64 + 1e-6 * f64::from(rank)
        }),
        table("optimizer", &|_, _| 0.1),
        table("forward-recv", &|rank, _| on(ends_at(grid, rank).0)),
        // A zero is a timer that did not run.
        table("forward-send", &|rank, _| if ends_at(grid, rank).1 { 0.5 } else { 0.0 }),
    ]
}

fn ranks(world: u32) -> Vec<u32> {
    (0..world).collect()
}

fn sizes(topology: &Topology) -> [u32; 3] {
    ["tp", "dp", "pp"].map(|group| topology.sizes[group])
}

fn sure(topology: &Topology) -> f64 {
    match topology.origin {
        TopologyOrigin::Inferred { sure, .. } => sure,
        _ => panic!("not inferred: {:?}", topology.origin),
    }
}

#[test]
fn divisors_ascend() {
    assert_eq!(divisors(36), [1, 2, 3, 4, 6, 9, 12, 18, 36]);
    assert_eq!(divisors(1), [1]);
    assert_eq!(divisors(12), [1, 2, 3, 4, 6, 12]);
}

#[test]
fn both_orders_are_found() {
    let blocks = infer(&ranks(32), &timers(32, 4, 8, 2, 20)).expect("a grid");
    assert_eq!(sizes(&blocks), [2, 4, 4]);
    let place = blocks.places[13];
    assert_eq!((place.stage, place.pipeline, place.member), (1, 2, 1));
    let turns = infer(&ranks(32), &timers(32, 4, 2, 2, 20)).expect("a grid");
    assert_eq!(sizes(&turns), [2, 4, 4]);
    let place = turns.places[13];
    assert_eq!((place.stage, place.pipeline, place.member), (2, 1, 1));
    assert!((sure(&turns) - 21.0 / 22.0).abs() < 1e-9, "everything fits");
}

#[test]
fn few_iterations_and_misfits_make_less_sure() {
    let of = |iterations| sure(&infer(&ranks(32), &timers(32, 4, 8, 2, iterations)).expect("a grid"));
    assert!(of(1) < of(5) && of(5) < of(50));
    let mut odd = timers(32, 4, 8, 2, 50);
    odd[3].seconds.row_mut(2).fill(0.0);
    let topology = infer(&ranks(32), &odd).expect("a grid");
    assert_eq!(sizes(&topology), [2, 4, 4]);
    assert!(sure(&topology) < of(50));
}

#[test]
fn no_sending_is_one_stage() {
    let mut alone = timers(16, 1, 16, 4, 20);
    assert_eq!(sizes(&infer(&ranks(16), &alone).expect("a grid")), [4, 4, 1]);
    let optimizer = alone.remove(1);
    assert!(infer(&ranks(16), &alone).is_none(), "a choice of timers, perhaps");
    alone.push(optimizer);
    alone.remove(0);
    assert!(infer(&ranks(16), &alone).is_none(), "no computing timer");
    assert!(infer(&[], &alone).is_none());
    assert!(infer(&ranks(16), &[]).is_none());
}

#[test]
fn slow_groups_do_not_hide_the_others() {
    let mut slow = timers(32, 1, 32, 2, 20);
    for rank in [6, 7, 20, 21] {
        slow[0].seconds.row_mut(rank).mapv_inplace(|seconds| 1.5 * seconds);
    }
    assert_eq!(sizes(&infer(&ranks(32), &slow).expect("a grid")), [2, 16, 1]);
}

#[test]
fn one_rank_of_each_group_is_enough() {
    let every_fourth: Vec<u32> = (0..16).map(|group| 4 * group).collect();
    let topology = infer(&every_fourth, &timers(16, 4, 4, 1, 20)).expect("a grid");
    assert_eq!(sizes(&topology), [1, 4, 4]);
    let place = topology.places[5];
    assert_eq!((place.stage, place.pipeline, place.member), (1, 1, 0));
}

#[test]
fn interleaved_schedules_tell_nothing() {
    let mut all = timers(16, 4, 4, 1, 5);
    all[2].name = "forward-send-forward-recv".to_owned();
    assert!(infer(&ranks(16), &all).is_none());
}

#[test]
fn stages_that_fit_no_grid_are_not_taken() {
    let mut odd = timers(16, 4, 4, 1, 5);
    for rank in [1, 6, 10, 13] {
        odd[2].seconds.row_mut(rank).fill(f64::NAN);
        odd[3].seconds.row_mut(rank).fill(f64::NAN);
    }
    assert!(infer(&ranks(16), &odd).is_none());
}

#[test]
fn ranks_that_wrote_no_row_leave_the_others_in_place() {
    let whole = infer(&ranks(32), &timers(32, 4, 8, 2, 20)).expect("a grid");
    let there: Vec<u32> = ranks(32)
        .into_iter()
        .filter(|rank| ![0, 9, 10].contains(rank))
        .collect();
    let mut some = timers(32, 4, 8, 2, 20);
    let rows: Vec<usize> = there.iter().map(|&rank| rank as usize).collect();
    for timer in &mut some {
        timer.seconds = timer.seconds.select(ndarray::Axis(0), &rows);
    }
    let places: Vec<Place> = rows.iter().map(|&row| whole.places[row]).collect();
    assert_eq!(infer(&there, &some).expect("a grid").places, places);
}
