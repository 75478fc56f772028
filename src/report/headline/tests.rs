use super::*;
use crate::verdict::Shape;

fn known<'a>(job: &'a Job, findings: &'a [Finding]) -> Known<'a> {
    Known {
        job,
        findings,
        what_if: None,
    }
}

fn slow(ranks: &[u32], node: &str, factor: f64, seconds: f64) -> Finding {
    Finding {
        named: true,
        ranks: ranks.to_vec(),
        nodes: vec![node.to_owned()],
        factor: Some(factor),
        cost_seconds: Some(seconds),
        cost_part_seconds: Some(seconds),
        lasting: Some(Lasting::Throughout),
        ..Finding::new(FindingKind::SlowRank, Cause::Compute, 40)
    }
}

#[test]
fn a_node_of_several_units_is_one_headline() {
    // Two stages of eight ranks, four ranks a node.
    let job = Job::sample(2, 8, 4, 40);
    let findings = [slow(&[0, 1], "n0", 1.3, 4.0), slow(&[2, 3], "n0", 1.4, 6.0)];
    let headlines = headlines(&known(&job, &findings));
    assert_eq!(headlines.len(), 1);
    let headline = &headlines[0];
    assert_eq!(
        (headline.ranks.as_slice(), headline.whole_nodes, headline.peers),
        (&[0, 1, 2, 3][..], true, 4)
    );
    assert_eq!(
        headline.says,
        "all 4 ranks of n0 compute 30-40 % slower than 4 ranks with the same work"
    );
    assert_eq!(
        (headline.least_factor, headline.largest_factor, headline.cost_seconds),
        (Some(1.3), Some(1.4), Some(10.0))
    );
    assert_eq!(headline.worst[0].rank, 2);
    assert!(headline.next[0].contains("n0"), "{:?}", headline.next);
}

#[test]
fn a_rank_is_told_with_its_place_and_gpu() {
    let job = Job::sample(2, 8, 8, 40);
    let findings = [slow(&[5], "n0", 1.494, 4.0)];
    let headline = &headlines(&known(&job, &findings))[0];
    assert_eq!(
        headline.says,
        "rank 5 on n0 (stage 0, replica 5) computes 49 % slower than 7 ranks with the same work"
    );
    assert!(headline.next[0].contains("GPU 5 on n0"), "{:?}", headline.next);
    assert!(!headline.whole_nodes);
}

#[test]
fn a_group_and_a_rank_beside_its_own_better_steps() {
    let job = Job::sample(1, 16, 8, 40);
    let group = Finding {
        kind: FindingKind::OneOfGroup,
        ..slow(&[8, 9, 10], "n1", 1.2, 1.0)
    };
    let own = Finding {
        to_itself: true,
        ..slow(&[3], "n0", 1.05, 1.0)
    };
    let level = Finding {
        shape: Shape::Level,
        nodes: vec!["n0".into(), "n1".into()],
        ..slow(&[0, 1, 2, 8, 9], "n0", 1.1, 1.0)
    };
    let told: Vec<String> = headlines(&known(&job, &[group, own, level]))
        .into_iter()
        .map(|headline| headline.says)
        .collect();
    assert!(
        told[0].starts_with("at least one of ranks 8-10 on n1 computes 20 % slower"),
        "{told:?}"
    );
    assert!(
        told[1].ends_with("computes 5.0 % slower than in its own better iterations"),
        "{told:?}"
    );
    assert!(
        told[2].starts_with("5 ranks on 2 nodes (5 of the job's 16 ranks) compute 10 % slower"),
        "{told:?}"
    );
}

#[test]
fn the_costs_of_several_are_no_more_than_all_cost() {
    let job = Job::sample(1, 16, 8, 40);
    let what_if = WhatIf {
        step_seconds: Some(10.0),
        seconds: Some(50.0),
        ..crate::whatif::timers::what_if(&job, &[], crate::whatif::timers::Asked::default())
    };
    let findings: Vec<Finding> = (0..5).map(|rank| slow(&[rank], "n0", 1.3, 40.0)).collect();
    let headline = &headlines(&Known {
        what_if: Some(&what_if),
        ..known(&job, &findings)
    })[0];
    assert_eq!(headline.cost_seconds, Some(50.0));
    assert_eq!(headline.growth, Some(50.0 / 350.0));
}

#[test]
fn seconds_have_the_digits_that_tell() {
    let told = [0.0, 0.000_004, 0.012_34, 1.234_5, 12.34, 1234.5].map(seconds);
    assert_eq!(told, ["0 s", "4.0 us", "12.3 ms", "1.23 s", "12.3 s", "1234 s"]);
}
