use ndarray::Array2;

use super::super::{DataQuality, Run, TimerTable, Topology};
use super::*;
use crate::contract::defaults::SLOWDOWN_THRESHOLD;

/// A job of one rank with these steps; an iteration is written when it begins.
fn job(steps: &[f64]) -> Job {
    let mut now = 1_767_254_400.0;
    let iteration_times = steps
        .iter()
        .map(|seconds| {
            let begin = now;
            now += seconds;
            (begin as i64) * 1_000_000
        })
        .collect();
    Job {
        id: "j".to_owned(),
        ranks: vec![0],
        nodes: vec!["n".to_owned()],
        iterations: (100..100 + steps.len() as i64).collect(),
        iteration_times,
        timers: vec![TimerTable {
            name: "interval-time".to_owned(),
            seconds: Array2::from_shape_vec((1, steps.len()), steps.to_vec()).expect("a row"),
        }],
        topology: Topology::unknown(&[0]),
        runs: Vec::new(),
        calls: Vec::new(),
        quality: DataQuality::default(),
        reduced: None,
    }
}

fn run(uuid: &str, iterations: (i64, i64), times: (&str, &str)) -> Run {
    Run {
        uuid: uuid.to_owned(),
        first_iteration: iterations.0,
        last_iteration: iterations.1,
        first_time: times.0.to_owned(),
        last_time: times.1.to_owned(),
    }
}

/// `(length, seconds)` after one another, with a little deterministic unevenness.
fn steps(parts: &[(usize, f64)]) -> Vec<f64> {
    let flat = parts.iter().flat_map(|&(length, seconds)| vec![seconds; length]);
    flat.enumerate()
        .map(|(step, seconds)| seconds * (1.0 + 0.01 * ((step * 7) % 5) as f64))
        .collect()
}

fn windows(steps: &[f64]) -> Vec<(i64, i64)> {
    let found = slow_windows(&job(steps), SLOWDOWN_THRESHOLD);
    found.windows.iter().map(|window| (window.first, window.last)).collect()
}

#[test]
fn a_window_in_the_middle_has_its_figures() {
    let times = slow_windows(&job(&steps(&[(20, 2.0), (10, 3.0), (20, 2.0)])), SLOWDOWN_THRESHOLD);
    let [window] = times.windows.as_slice() else {
        panic!("one window: {times:?}");
    };
    assert_eq!((window.first, window.last, window.iterations), (120, 129, 10));
    assert!((window.factor - 1.5).abs() < 0.03, "{window:?}");
    assert!((window.baseline_seconds - 2.04).abs() < 0.03);
    assert_eq!(times.measure, Some(StepMeasure::IntervalTime));
    assert_eq!((times.stalls.len(), times.drift), (0, None));
    assert!(window.range().contains(125));
}

#[test]
fn windows_at_either_end_and_several() {
    assert_eq!(windows(&steps(&[(20, 2.0), (10, 3.0)])), [(120, 129)]);
    assert_eq!(windows(&steps(&[(12, 3.0), (20, 2.0)])), [(100, 111)]);
    let several = steps(&[(8, 3.0), (10, 2.0), (6, 4.0), (10, 2.0), (5, 3.0)]);
    assert_eq!(windows(&several), [(100, 107), (118, 123), (134, 138)]);
    assert_eq!(windows(&steps(&[(40, 2.0)])), []);
}

#[test]
fn four_slow_steps_are_no_window_and_five_are() {
    assert_eq!(windows(&steps(&[(10, 2.0), (4, 3.0), (10, 2.0)])), []);
    assert_eq!(windows(&steps(&[(10, 2.0), (5, 3.0), (10, 2.0)])), [(110, 114)]);
    // More than 25 % is slow, and 24 % is not.
    let exact = |factor: f64| [vec![1.0; 10], vec![factor; 10], vec![1.0; 10]].concat();
    assert_eq!(windows(&exact(1.24)), []);
    assert_eq!(windows(&exact(1.26)), [(110, 119)]);
}

#[test]
fn a_fast_step_inside_does_not_cut_a_window() {
    let mut uneven = steps(&[(10, 2.0), (14, 3.0), (10, 2.0)]);
    uneven[17] = 2.0;
    assert_eq!(windows(&uneven), [(110, 123)]);
    // Before five in a row the count starts anew.
    let mut uneven = steps(&[(10, 2.0), (14, 3.0), (10, 2.0)]);
    uneven[13] = 2.0;
    assert_eq!(windows(&uneven), [(114, 123)]);
}

#[test]
fn an_odd_first_step_does_not_set_the_baseline() {
    for first in [1.0, 6.0] {
        let mut odd = steps(&[(20, 2.0), (10, 3.0), (20, 2.0)]);
        odd[0] = first;
        assert_eq!(windows(&odd), [(120, 129)], "{first}");
    }
}

#[test]
fn a_long_step_is_a_stall_wherever_it_is() {
    for at in [0, 12, 23, 39] {
        let mut stalled = steps(&[(20, 2.0), (10, 3.0), (10, 2.0)]);
        stalled[at] += 75.0;
        let times = slow_windows(&job(&stalled), SLOWDOWN_THRESHOLD);
        let [stall] = times.stalls.as_slice() else {
            panic!("one stall at {at}: {times:?}");
        };
        assert_eq!(stall.iteration, 100 + at as i64);
        assert!((stall.seconds - 75.0).abs() < 1.0, "{stall:?}");
        assert_eq!((times.windows[0].first, times.windows[0].last), (120, 129), "{at}");
    }
    let longer_by = |seconds: f64, usual: f64| {
        let mut steps = steps(&[(30, usual)]);
        steps[12] += seconds;
        slow_windows(&job(&steps), SLOWDOWN_THRESHOLD).stalls.len()
    };
    assert_eq!((longer_by(30.0, 2.0), longer_by(9.0, 2.0)), (1, 0));
    assert_eq!(
        longer_by(30.0, 40.0),
        0,
        "a step of less than twice the usual is slow, no stall"
    )
}

#[test]
fn slow_steps_of_minutes_are_slow_and_no_stalls() {
    let times = slow_windows(
        &job(&steps(&[(20, 100.0), (10, 180.0), (20, 100.0)])),
        SLOWDOWN_THRESHOLD,
    );
    assert_eq!((times.windows.len(), times.stalls), (1, Vec::new()));
}

#[test]
fn a_gap_that_no_step_accounts_for_is_a_stall() {
    let mut late = job(&steps(&[(30, 2.0)]));
    late.iteration_times[15..]
        .iter_mut()
        .for_each(|time| *time += 90_000_000);
    let times = slow_windows(&late, SLOWDOWN_THRESHOLD);
    assert_eq!((times.stalls.len(), times.stalls[0].iteration), (1, 115));
    assert!((times.stalls[0].seconds - 90.0).abs() < 3.0);

    // The same gap where a new run begins is a restart.
    late.runs = vec![
        run("r0", (90, 120), ("2026-01-01 08:00:00", "2026-01-01 08:01:00")),
        run("r1", (115, 129), ("2026-01-01 08:02:30", "2026-01-01 08:03:30")),
    ];
    let times = slow_windows(&late, SLOWDOWN_THRESHOLD);
    assert_eq!(times.stalls, []);
    let expected = Restart {
        run: "r1".to_owned(),
        iteration: 115,
        repeated: 6,
        seconds: Some(90.0),
    };
    assert_eq!(times.restarts, [expected]);
}

#[test]
fn sampled_iterations_are_measured_by_their_numbers() {
    let mut sampled = job(&steps(&[(20, 2.0), (10, 3.0), (10, 2.0)]));
    let mut now = 1_767_254_400_000_000;
    for place in 0..40 {
        sampled.iterations[place] = 1000 * place as i64;
        sampled.iteration_times[place] = now;
        now += if (20..30).contains(&place) {
            3_000_000_000
        } else {
            2_000_000_000
        };
    }
    let times = slow_windows(&sampled, SLOWDOWN_THRESHOLD);
    assert_eq!((times.windows[0].first, times.windows[0].last), (20_000, 29_000));
    assert_eq!(times.stalls, []);
}

#[test]
fn creeping_is_drift_and_no_window() {
    let creeping: Vec<f64> = (0..100).map(|step| 2.0 * (1.0 + 0.005 * f64::from(step))).collect();
    let times = slow_windows(&job(&creeping), SLOWDOWN_THRESHOLD);
    assert_eq!(times.windows, []);
    let drift = times.drift.expect("a drift");
    assert!((drift.factor - 1.38).abs() < 0.02, "{drift:?}");
    assert_eq!(
        slow_windows(&job(&steps(&[(100, 2.0)])), SLOWDOWN_THRESHOLD).drift,
        None
    );
}

#[test]
fn few_steps_none_and_no_timer() {
    for count in 1..=4 {
        let times = slow_windows(&job(&steps(&[(count, 2.0)])), SLOWDOWN_THRESHOLD);
        assert_eq!((times.steps, times.windows.len(), times.drift), (count, 0, None));
        assert!(times.baseline_seconds.is_some());
    }
    let mut silent = job(&steps(&[(30, 2.0)]));
    silent.timers.clear();
    let times = slow_windows(&silent, SLOWDOWN_THRESHOLD);
    assert_eq!((times.measure, times.steps, times.baseline_seconds), (None, 0, None));
    let empty = job(&[]);
    assert_eq!(slow_windows(&empty, SLOWDOWN_THRESHOLD).steps, 0);
}

#[test]
fn steps_that_no_rank_tells_are_passed_over() {
    let mut gappy = steps(&[(20, 2.0), (10, 3.0), (20, 2.0)]);
    gappy[22] = f64::NAN;
    gappy[5] = 0.0;
    let times = slow_windows(&job(&gappy), SLOWDOWN_THRESHOLD);
    assert_eq!(times.steps, 48);
    assert_eq!(
        (
            times.windows[0].first,
            times.windows[0].last,
            times.windows[0].iterations
        ),
        (120, 129, 10)
    );
}
