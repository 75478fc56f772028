use std::collections::BTreeSet;

use super::super::collectives::Collectives;
use super::super::flows::{Flow, SlowFlow};
use super::super::links::{Direction, links};
use super::super::samples;
use super::{Culprit, Role, Who, explain};
use crate::job::Job;
use crate::verdict::{Persistence, SlowSteps};

const STEPS: usize = 10;

fn slow_in_all_steps() -> SlowFlow {
    SlowFlow {
        factor: 5.0,
        extra: 0.1,
        steps: SlowSteps::of(&[1.0; STEPS], 0.0, 1.0, &Persistence::default()),
    }
}

/// Four stages of four replicas, rank = 4 stage + replica, `per_node` a node: whoever is behind the flows that are slow.
fn explained(per_node: usize, is_slow: impl Fn(usize, usize) -> bool) -> Vec<Culprit> {
    let job: Job = samples::job([4, 4, per_node], STEPS, |_, _, _| 1.0);
    let mut flows = Vec::new();
    for (place, link) in links(&job, false).iter().enumerate() {
        for direction in Direction::BOTH {
            let (sender, receiver) = link.ends(direction);
            flows.push(Flow {
                link: place,
                direction,
                sender,
                receiver,
                inside_node: link.inside_node,
                seconds: 1.0,
                usual: 1.0,
                slow: is_slow(sender, receiver).then(slow_in_all_steps),
            });
        }
    }
    explain(&job, &flows, &Collectives::default())
}

fn who(culprits: &[Culprit]) -> Vec<Vec<(Who, Role)>> {
    let ends = |culprit: &Culprit| culprit.ends.iter().map(|end| (end.who.clone(), end.part)).collect();
    culprits.iter().map(ends).collect()
}

#[test]
fn ranks_are_told_by_all_that_they_send_or_receive() {
    assert!(explained(1, |_, _| false).is_empty());
    assert_eq!(
        who(&explained(1, |sender, _| sender == 5)),
        [[(Who::Rank(5), Role::Sending)]]
    );
    assert_eq!(
        who(&explained(1, |_, receiver| receiver == 6)),
        [[(Who::Rank(6), Role::Receiving)]]
    );
    assert_eq!(
        who(&explained(1, |sender, receiver| sender == 6 || receiver == 6)),
        [[(Who::Rank(6), Role::Both)]]
    );
}

#[test]
fn two_slow_senders_are_two_culprits() {
    let two = explained(1, |sender, _| sender == 5 || sender == 10);
    assert_eq!(
        who(&two),
        [[(Who::Rank(5), Role::Sending)], [(Who::Rank(10), Role::Sending)]]
    );
    // Neighbours: what each sends to the other is slow once.
    let near = explained(1, |sender, _| sender == 5 || sender == 9);
    let names: BTreeSet<Who> = near
        .iter()
        .flat_map(|culprit| &culprit.ends)
        .map(|end| end.who.clone())
        .collect();
    assert_eq!(names, [Who::Rank(5), Who::Rank(9)].into());
}

#[test]
fn a_node_is_told_by_several_of_its_ranks() {
    let node = explained(4, |sender, _| sender / 4 == 1);
    assert_eq!(who(&node), [[(Who::Node("n1".to_owned()), Role::Sending)]]);
}

#[test]
fn a_link_is_what_neither_end_explains() {
    let link = |sender: usize, receiver: usize| [(5, 9), (9, 5)].contains(&(sender, receiver));
    let one = explained(1, link);
    assert_eq!(one.len(), 1);
    assert!(matches!(one[0].ends[0].who, Who::Link(_)));
    assert_eq!((one[0].ends[0].ranks.as_slice(), one[0].flows.len()), (&[5, 9][..], 2));
    // An end of the pipeline has no other link: it may be that end or the link.
    let end = explained(1, |sender, receiver| [(1, 5), (5, 1)].contains(&(sender, receiver)));
    assert_eq!(end[0].ends.len(), 2);
}

#[test]
fn many_links_that_differ_in_kind_are_no_faults() {
    // One of the middle links of each replica: no rank explains any.
    let many = explained(1, |sender, receiver| {
        sender.min(receiver) / 4 == 1 && sender.max(receiver) - sender.min(receiver) == 4
    });
    assert!(many.is_empty(), "{many:?}");
}

#[test]
fn slow_cards_explain_what_all_ends_of_it_share() {
    let sends = explained(1, |sender, _| sender == 5).remove(0);
    assert!(sends.is_explained_by(&[5].into()));
    assert!(!sends.is_explained_by(&[9].into()));
    let link = explained(1, |sender, receiver| (sender, receiver) == (5, 9)).remove(0);
    assert!(!link.is_explained_by(&[5].into()));
}
