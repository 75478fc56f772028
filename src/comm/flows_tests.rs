use super::super::links::{Direction, Link};
use super::super::transfers::{Measured, Series, Spent};
use super::super::ways::StageNetwork;
use super::{Comparison, Flow, judge, logs, usual_of};
use crate::stats::random::Random;
use crate::verdict::Persistence;

const STEPS: usize = 30;

/// Rows about 1 (log 0) that vary by `noise`, the first `slow` of them longer by `factor` in the steps that `when` tells.
fn rows(count: usize, noise: f64, slow: usize, factor: f64, when: impl Fn(usize) -> bool) -> Vec<Vec<f64>> {
    let mut random = Random::stream(7, "rows", &[]);
    let mut row = |place: usize| {
        let cell = |step: usize| {
            let longer = if place < slow && when(step) { factor.ln() } else { 0.0 };
            longer + noise * (random.uniform() - 0.5)
        };
        (0..STEPS).map(cell).collect()
    };
    (0..count).map(&mut row).collect()
}

fn slow(rows: &[Vec<f64>]) -> Vec<usize> {
    let rows: Vec<&[f64]> = rows.iter().map(Vec::as_slice).collect();
    let Some(comparison) = Comparison::new(&rows) else {
        return Vec::new();
    };
    let is_slow = |&row: &usize| comparison.slow(row, &Persistence::default()).is_some();
    (0..rows.len()).filter(is_slow).collect()
}

#[test]
fn twice_the_usual_is_slow_and_less_is_not() {
    assert_eq!(slow(&rows(8, 0.1, 2, 2.6, |_| true)), [0, 1]);
    assert!(slow(&rows(8, 0.1, 2, 1.8, |_| true)).is_empty());
    assert!(slow(&rows(8, 0.1, 0, 1.0, |_| true)).is_empty());
    // Three quarters may be slow, and a few can't tell.
    assert_eq!(slow(&rows(8, 0.05, 6, 5.0, |_| true)).len(), 6);
    assert!(slow(&rows(3, 0.05, 1, 5.0, |_| true)).is_empty());
}

#[test]
fn what_lasts_is_slow_and_what_passes_is_not() {
    assert_eq!(slow(&rows(8, 0.1, 1, 5.0, |step| step >= 20)), [0], "it is still there");
    assert_eq!(slow(&rows(8, 0.1, 1, 5.0, |step| step < 15)), [0]);
    assert!(slow(&rows(8, 0.1, 1, 5.0, |step| (10..13).contains(&step))).is_empty());
}

#[test]
fn what_slows_all_alike_is_nobodys() {
    let mut all = rows(8, 0.1, 0, 1.0, |_| false);
    all.iter_mut().flatten().for_each(|log| *log += 3.0);
    assert!(slow(&all).is_empty());
}

#[test]
fn missing_times_are_passed_over() {
    assert_eq!(logs(&[1.0, 0.0, -1.0, f64::NAN, f64::INFINITY])[0], 0.0);
    assert!(
        logs(&[0.0, -1.0, f64::NAN, f64::INFINITY])
            .iter()
            .all(|log| log.is_nan())
    );
    let mut holes = rows(8, 0.1, 1, 5.0, |_| true);
    for (place, row) in holes.iter_mut().enumerate() {
        row.iter_mut()
            .skip(place % 3)
            .step_by(3)
            .for_each(|log| *log = f64::NAN);
    }
    assert_eq!(slow(&holes), [0]);
    assert!(slow(&vec![vec![f64::NAN; STEPS]; 8]).is_empty());
}

#[test]
fn usual_levels_lie_below_the_first_gap() {
    assert_eq!(usual_of(&[0.0, 0.1, 0.2, 2.0, 2.1]), [0.0, 0.1, 0.2]);
    assert_eq!(
        usual_of(&[0.0, 2.0, 2.1, 2.2]).len(),
        4,
        "one of four is no usual level"
    );
    assert!(usual_of(&[]).is_empty());
}

/// Links of `stages - 1` stage pairs in `replicas`; the transfer of each direction by `seconds`.
fn judged(
    [stages, replicas]: [u32; 2],
    stages_known: &[StageNetwork],
    seconds: impl Fn(&Link, Direction, usize) -> f64,
) -> super::Judged {
    let mut links = Vec::new();
    for pipeline in 0..replicas {
        for stage in 0..stages - 1 {
            links.push(Link {
                up: (stage * replicas + pipeline) as usize,
                down: ((stage + 1) * replicas + pipeline) as usize,
                stage,
                pipeline,
                inside_node: false,
            });
        }
    }
    let measured: Vec<Measured> = links
        .iter()
        .map(|link| {
            let mut of = [(); 3].map(|()| vec![f64::NAN; STEPS]);
            for direction in Direction::BOTH {
                let vary = |step: usize| 1.0 + 0.02 * ((step + link.up) % 4) as f64;
                let cell = |step: usize| seconds(link, direction, step) * vary(step);
                of[Series::plain(direction) as usize] = (0..STEPS).map(cell).collect();
            }
            Measured {
                seconds: of,
                pairs: [1.0, 1.0, 0.0],
                exact: true,
                spent: [Spent::default(); 2],
            }
        })
        .collect();
    judge(&links, &measured, stages_known, &Persistence::default())
}

fn slow_ends(judged: &super::Judged) -> Vec<(usize, usize)> {
    let slow = judged.flows.iter().filter(|flow| flow.slow.is_some());
    slow.map(|flow: &Flow| (flow.sender, flow.receiver)).collect()
}

#[test]
fn a_link_is_held_against_the_same_link_of_other_replicas() {
    let way = |stage: u32| [1.0, 4.0, 1.3][stage as usize];
    let even = judged([4, 4], &[], |link, _, _| way(link.stage));
    assert!(slow_ends(&even).is_empty());
    assert_eq!(even.long_ways.len(), 1);
    assert_eq!(even.long_ways[0].0, 1);
    assert!((even.long_ways[0].1 - 4.0).abs() < 0.2);
    // On the long way too, and less than the long way takes on the short one.
    for stage in 0..3 {
        let one = judged([4, 4], &[], |link, direction, _| {
            let slow = link.stage == stage && link.pipeline == 2 && direction == Direction::Forward;
            way(link.stage) * if slow { 3.0 } else { 1.0 }
        });
        let sender = (stage * 4 + 2) as usize;
        assert_eq!(slow_ends(&one), [(sender, sender + 4)]);
        let flow = one.flows.iter().find(|flow| flow.slow.is_some()).expect("a slow flow");
        assert!((flow.usual / way(stage) - 1.0).abs() < 0.1, "{}", flow.usual);
    }
}

#[test]
fn what_is_no_way_is_told() {
    let of_pair = |link: &Link| if link.stage == 1 { 5.0 } else { 1.0 };
    // One direction only.
    let sends = judged([4, 4], &[], |link, direction, _| match direction {
        Direction::Forward => of_pair(link),
        Direction::Backward => 1.0,
    });
    assert_eq!(slow_ends(&sends).len(), 4);
    // From some step on.
    let late = judged(
        [4, 4],
        &[],
        |link, _, step| if step >= 15 { of_pair(link) } else { 1.0 },
    );
    assert_eq!(slow_ends(&late).len(), 8);
    // The collectives of a stage at one end are slow too.
    let slow = StageNetwork {
        slow_collectives: true,
        on_one_node: false,
    };
    let nothing = StageNetwork::default();
    let both = judged([4, 4], &[nothing, nothing, slow, nothing], |link, _, _| of_pair(link));
    assert_eq!(slow_ends(&both).len(), 8);
    // A node that holds a stage slows both of its ways.
    let node = StageNetwork {
        slow_collectives: false,
        on_one_node: true,
    };
    let around = |link: &Link| if link.stage == 1 || link.stage == 2 { 5.0 } else { 1.0 };
    let one_node = judged([5, 4], &[node; 5], |link, _, _| around(link));
    assert_eq!(slow_ends(&one_node).len(), 16);
    let several_nodes = judged([5, 4], &[nothing; 5], |link, _, _| around(link));
    assert!(slow_ends(&several_nodes).is_empty());
    // A single replica has no other.
    let alone = judged([8, 1], &[], |link, _, _| of_pair(link));
    assert_eq!(slow_ends(&alone).len(), 2);
}
