//! Cross-validation: from suspect timers of both ends to places.

use std::collections::{BTreeMap, BTreeSet};

use super::{Evidence, links_of};
use crate::comm::links::Link;
use crate::contract::timers::{BACKWARD_SEND_FORWARD_RECV, FORWARD_SEND_BACKWARD_RECV, PLAIN_TRANSFERS};

/// What the cross-validation makes of a worker.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum FaultPlace {
    /// It computes slowly too.
    Card,
    /// Every segment of it is suspect, and of the other ends too: its node's network.
    Network,
    /// Some segments are suspect at both ends: those links.
    Link,
    /// Only its own end is suspect.
    OneEnd,
}

/// A worker with suspect timers.
#[derive(Debug, Clone, PartialEq)]
pub struct Worker {
    /// Its rank (position).
    pub rank: usize,
    /// What it is.
    pub place: FaultPlace,
    /// Links (positions) that are suspect at both ends.
    pub links: Vec<usize>,
    /// Its suspect timers.
    pub evidence: Vec<Evidence>,
}

/// Which of a rank's links a timer is about: that to the next stage or that to the one before.
fn side(timer: &str) -> usize {
    let [forward_send, _, _, backward_recv] = PLAIN_TRANSFERS;
    usize::from(![forward_send, backward_recv, FORWARD_SEND_BACKWARD_RECV].contains(&timer))
}

/// The timer of the other end.
fn partner(timer: &str) -> &'static str {
    let [forward_send, forward_recv, backward_send, backward_recv] = PLAIN_TRANSFERS;
    match timer {
        t if t == forward_send => forward_recv,
        t if t == forward_recv => forward_send,
        t if t == backward_send => backward_recv,
        t if t == backward_recv => backward_send,
        t if t == FORWARD_SEND_BACKWARD_RECV => BACKWARD_SEND_FORWARD_RECV,
        _ => FORWARD_SEND_BACKWARD_RECV,
    }
}

pub(super) fn cross_validate(
    links: &[Link],
    suspects: BTreeMap<(usize, &'static str), Evidence>,
    compute_slow: &[usize],
) -> Vec<Worker> {
    let links_of = links_of(links);
    let mut of_rank = BTreeMap::<usize, Vec<Evidence>>::new();
    for ((rank, _), evidence) in &suspects {
        of_rank.entry(*rank).or_default().push(evidence.clone());
    }
    let both_ends = |rank: usize, evidence: &Evidence| {
        let link = links_of.get(&rank)?[side(evidence.timer)]?;
        let other = if links[link].up == rank {
            links[link].down
        } else {
            links[link].up
        };
        suspects.contains_key(&(other, partner(evidence.timer))).then_some(link)
    };
    let worker = |(rank, evidence): (usize, Vec<Evidence>)| {
        let shared: BTreeSet<usize> = evidence.iter().filter_map(|one| both_ends(rank, one)).collect();
        let segments = links_of.get(&rank).map_or(0, |sides| sides.iter().flatten().count());
        let place = if compute_slow.contains(&rank) {
            FaultPlace::Card
        } else if segments > 0 && shared.len() == segments {
            FaultPlace::Network
        } else if shared.is_empty() {
            FaultPlace::OneEnd
        } else {
            FaultPlace::Link
        };
        Worker {
            rank,
            place,
            links: shared.into_iter().collect(),
            evidence,
        }
    };
    of_rank.into_iter().map(worker).collect()
}
