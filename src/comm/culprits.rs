//! Whose fault slow transfers are: a rank's sending or receiving, a link, or the network of a node.
//!
//! Each suspect foretells which flows must be slow: all that a rank sends, all that it receives, both; the same over all
//! ranks of a node, between nodes only; both directions of a link. Suspects whose forecast holds are taken greedily, the
//! one that explains most first. Two whose forecasts can't be told apart are ends of one finding, of which the
//! data-parallel collective may tell the right one: a slow network card also holds up the reduction of gradients.

use std::collections::{BTreeMap, BTreeSet};

use super::collectives::Collectives;
use super::flows::Flow;
use super::thresholds::{MOST_LINKS, SHARE_OF_LINKS, SHARE_OF_NODE};
use crate::contract::metrics::UNKNOWN_NODE;
use crate::job::Job;

/// What is slow.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Role {
    /// Everything that is sent.
    Sending,
    /// Everything that is received.
    Receiving,
    /// Both.
    Both,
}

/// Whose it is.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum Who {
    /// The network of a node.
    Node(String),
    /// A rank (position).
    Rank(usize),
    /// The link of a position, in one direction or both.
    Link(usize),
}

/// One explanation.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct End {
    /// Whose fault it is.
    pub who: Who,
    /// What of it is slow.
    pub part: Role,
    /// The ranks (positions) of it that slow flows meet, ascending.
    pub ranks: Vec<usize>,
}

/// Slow flows with what explains them.
#[derive(Debug, Clone, PartialEq)]
pub struct Culprit {
    /// The explanations that can't be told apart; mostly one.
    pub ends: Vec<End>,
    /// Positions of the slow flows, ascending.
    pub flows: Vec<usize>,
    /// By how much the collective of the end that it told exceeds the others', if it did.
    pub collective: Option<f64>,
}

struct SlowEnd {
    who: Who,
    part: Role,
    flows: Vec<usize>,
}

/// Explains every slow flow; weaker explanations come later.
#[must_use]
pub fn explain(job: &Job, flows: &[Flow], collectives: &Collectives) -> Vec<Culprit> {
    let suspects = suspects(job, flows);
    let mut open: BTreeSet<usize> = (0..flows.len()).filter(|&flow| flows[flow].slow.is_some()).collect();
    let mut culprits = Vec::new();
    while !open.is_empty() {
        let explained = |suspect: &SlowEnd| -> Vec<usize> {
            let flows = suspect.flows.iter().copied();
            flows.filter(|flow| open.contains(flow)).collect()
        };
        let mut by_set = BTreeMap::<Vec<usize>, Vec<&SlowEnd>>::new();
        for suspect in &suspects {
            by_set.entry(explained(suspect)).or_default().push(suspect);
        }
        let Some(most) = by_set.keys().map(Vec::len).max().filter(|&most| most > 0) else {
            break;
        };
        by_set.retain(|set, _| set.len() == most);
        // A rank or node explains more than the link that it shares with another one.
        let is_link = |suspects: &[&SlowEnd]| suspects.iter().all(|suspect| matches!(suspect.who, Who::Link(_)));
        let (links, people): (Vec<_>, Vec<_>) = by_set.into_iter().partition(|(_, suspects)| is_link(suspects));
        for (set, suspects) in people.into_iter().chain(links) {
            // What another one has explained meanwhile is looked at anew.
            if !set.iter().all(|flow| open.contains(flow)) {
                continue;
            }
            for flow in &set {
                open.remove(flow);
            }
            culprits.push(Culprit {
                ends: ends(job, &suspects, &set, flows),
                flows: set,
                collective: None,
            });
        }
    }
    drop_unlike_links(&mut culprits, flows.len() / 2);
    for culprit in &mut culprits {
        culprit.told_by(collectives, flows);
    }
    culprits
}

/// Everybody whose forecast holds.
fn suspects(job: &Job, flows: &[Flow]) -> Vec<SlowEnd> {
    let mut suspects = Vec::new();
    let is_slow = |flow: &usize| flows[*flow].slow.is_some();
    let slow_flows = || flows.iter().filter(|flow| flow.slow.is_some());
    let ranks: BTreeSet<usize> = slow_flows().flat_map(|flow| [flow.sender, flow.receiver]).collect();
    let of_ranks = group(flows, |flow| [flow.sender, flow.receiver]);
    for &rank in &ranks {
        let all = &of_ranks[&rank];
        let between: Vec<usize> = all.iter().copied().filter(|&flow| !flows[flow].inside_node).collect();
        for (part, those) in parts(all, &between, |flow| flows[flow].sender == rank) {
            if !those.is_empty() && those.iter().all(is_slow) {
                let who = Who::Rank(rank);
                suspects.push(SlowEnd {
                    who,
                    part,
                    flows: those,
                });
            }
        }
    }
    let of_nodes = group(flows, |flow| [&job.nodes[flow.sender], &job.nodes[flow.receiver]]);
    let nodes: BTreeSet<&String> = ranks.iter().map(|&rank| &job.nodes[rank]).collect();
    for node in nodes.into_iter().filter(|node| *node != UNKNOWN_NODE) {
        let all: Vec<usize> = of_nodes[&node]
            .iter()
            .copied()
            .filter(|&flow| !flows[flow].inside_node)
            .collect();
        for (part, those) in parts(&all, &all, |flow| job.nodes[flows[flow].sender] == *node) {
            let slow: Vec<usize> = those.iter().copied().filter(is_slow).collect();
            let here = slow.iter().map(|&flow| rank_on(job, &flows[flow], node));
            let several = here.collect::<BTreeSet<_>>().len() > 1;
            if several && slow.len() as f64 >= SHARE_OF_NODE.get() * those.len() as f64 {
                let who = Who::Node(node.clone());
                suspects.push(SlowEnd { who, part, flows: slow });
            }
        }
    }
    for link in 0..flows.len() / 2 {
        let slow: Vec<usize> = [2 * link, 2 * link + 1].into_iter().filter(is_slow).collect();
        if !slow.is_empty() {
            let part = Role::Both;
            suspects.push(SlowEnd {
                who: Who::Link(link),
                part,
                flows: slow,
            });
        }
    }
    suspects
}

/// Flows by what they touch, compared ones only.
fn group<K: Ord>(flows: &[Flow], touches: impl Fn(&Flow) -> [K; 2]) -> BTreeMap<K, Vec<usize>> {
    let mut of = BTreeMap::<K, Vec<usize>>::new();
    for (place, flow) in flows.iter().enumerate().filter(|(_, flow)| flow.is_compared()) {
        for key in touches(flow) {
            let list = of.entry(key).or_default();
            if list.last() != Some(&place) {
                list.push(place);
            }
        }
    }
    of
}

/// What a rank or node sends, receives and both: all of it, and what leaves the node.
fn parts(all: &[usize], between: &[usize], sends: impl Fn(usize) -> bool) -> Vec<(Role, Vec<usize>)> {
    let mut found = Vec::new();
    for flows in [all, between] {
        let (sent, received): (Vec<usize>, Vec<usize>) = flows.iter().copied().partition(|&flow| sends(flow));
        if !sent.is_empty() && !received.is_empty() {
            found.push((Role::Both, flows.to_vec()));
        }
        found.push((Role::Sending, sent));
        found.push((Role::Receiving, received));
    }
    found
}

fn rank_on(job: &Job, flow: &Flow, node: &String) -> usize {
    if job.nodes[flow.sender] == *node {
        flow.sender
    } else {
        flow.receiver
    }
}

/// The explanations of one set of flows: nodes and ranks; a link where there are none, or where all that is slow is both
/// directions of one link of which one end has no other.
fn ends(job: &Job, suspects: &[&SlowEnd], set: &[usize], flows: &[Flow]) -> Vec<End> {
    let mut ends = BTreeMap::<&Who, &SlowEnd>::new();
    for suspect in suspects {
        let known = ends.entry(&suspect.who).or_insert(suspect);
        // What says most of a rank is what is foretold in full.
        if suspect.flows.len() > known.flows.len() {
            *known = suspect;
        }
    }
    let people = ends.keys().filter(|who| !matches!(who, Who::Link(_))).count();
    let one_link_both_ways = set.len() == 2 && set[0] / 2 == set[1] / 2;
    ends.retain(|who, _| !matches!(who, Who::Link(_)) || people == 0 || (one_link_both_ways && people == 1));
    let end = |(who, suspect): (&Who, &&SlowEnd)| {
        let touched = set.iter().flat_map(|&flow| [flows[flow].sender, flows[flow].receiver]);
        let ranks: BTreeSet<usize> = match who {
            Who::Rank(rank) => [*rank].into(),
            Who::Link(_) => touched.collect(),
            Who::Node(node) => set.iter().map(|&flow| rank_on(job, &flows[flow], node)).collect(),
        };
        End {
            who: who.clone(),
            part: suspect.part,
            ranks: ranks.into_iter().collect(),
        }
    };
    ends.iter().map(|(who, suspect)| end((*who, suspect))).collect()
}

/// Drops links that are slow without a rank or node behind them where they are many.
fn drop_unlike_links(culprits: &mut Vec<Culprit>, links: usize) {
    let is_link = |culprit: &Culprit| culprit.ends.iter().all(End::is_link);
    let count = culprits.iter().filter(|culprit| is_link(culprit)).count();
    if count > MOST_LINKS.get() && count as f64 > SHARE_OF_LINKS.get() * links as f64 {
        culprits.retain(|culprit| !is_link(culprit));
    }
}

impl End {
    fn is_link(&self) -> bool {
        matches!(self.who, Who::Link(_))
    }
}

impl Culprit {
    /// Keeps the end whose collective is slow where the others' are not.
    fn told_by(&mut self, collectives: &Collectives, flows: &[Flow]) {
        if self.ends.len() < 2 {
            return;
        }
        let steps = self.slow_steps(flows);
        let accused: BTreeSet<usize> = self
            .ends
            .iter()
            .filter(|end| !end.is_link())
            .flat_map(|end| end.ranks.iter().copied())
            .collect();
        // Of a link only the end that is not accused itself.
        let ranks = |end: &End| -> Vec<usize> {
            let ranks = end.ranks.iter().copied();
            ranks.filter(|rank| !end.is_link() || !accused.contains(rank)).collect()
        };
        let ends: Vec<Vec<usize>> = self.ends.iter().map(ranks).collect();
        let ends: Vec<&[usize]> = ends.iter().map(Vec::as_slice).collect();
        if let Some((end, factor)) = collectives.tell(&ends, &steps)
            && !self.ends[end].is_link()
        {
            self.collective = Some(factor);
            let told = self.ends.swap_remove(end);
            self.ends = vec![told];
        }
    }

    /// Whether most of its flows are slow in each iteration.
    #[must_use]
    pub fn slow_steps(&self, flows: &[Flow]) -> Vec<bool> {
        let steps: Vec<&[bool]> = self
            .flows
            .iter()
            .filter_map(|&flow| flows[flow].slow.as_ref().map(|slow| slow.steps.slow.as_slice()))
            .collect();
        let count = steps.first().map_or(0, |steps| steps.len());
        let slow = |step: usize| steps.iter().filter(|slow| slow[step]).count();
        (0..count).map(|step| 2 * slow(step) >= steps.len()).collect()
    }

    /// Whether slow cards explain it: all of its ends compute slowly. A link with one such end is not explained, for its
    /// transfers take longer by far more than cards compute slower.
    #[must_use]
    pub fn is_explained_by(&self, computes_slowly: &BTreeSet<usize>) -> bool {
        let slow = |rank: &usize| computes_slowly.contains(rank);
        self.ends.iter().all(|end| end.ranks.iter().all(slow))
    }
}

#[cfg(test)]
#[path = "culprits_tests.rs"]
mod tests;
