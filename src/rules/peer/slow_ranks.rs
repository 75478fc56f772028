//! The detector of ranks that compute slowly: candidates after the vote, put together where they are one thing.
//!
//! Ranks that became slow together are one finding where they make up a whole node, or a level of their own: a quarter of
//! the job at like excess, as cards of an older kind or cards that are shared are.

use super::candidates::Candidate;
use super::detector::{Detector, Seen, how_often, who};
use super::reference::Reference;
use super::votes::Votes;
use crate::contract::constant::constants;
use crate::verdict::{Cause, Finding, FindingKind, Lasting, Shape, runs, words};

constants! {
    /// Least share of the job's ranks that make a level.
    LEVEL_SHARE: f64 = 0.25;
    /// Fewest ranks that make a level.
    LEAST_OF_LEVEL: usize = 4;
    /// How far the excesses inside a level lie apart at most, over their middle.
    LIKE: f64 = 1.0;
    /// Share of the steps from the first slow one to the last that must be slow for it to have begun or ended there.
    DENSE: f64 = 0.8;
}
/// More findings of the same steps than this are told as one.
const MOST_FINDINGS: usize = 32;

/// Finds ranks that compute slowly.
pub(super) struct SlowRanks;

/// Suspects that are one finding.
struct Group<'a> {
    candidates: Vec<&'a Candidate>,
    /// Positions, ascending.
    ranks: Vec<usize>,
    what: What,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum What {
    /// One unit.
    Unit,
    /// All ranks of a node.
    Node,
    /// A level of the job.
    Level,
}

impl Detector for SlowRanks {
    fn find(&self, seen: &Seen<'_>) -> Vec<Finding> {
        let mut reference = Reference::new(seen.job, seen.units, seen.candidates);
        groups(seen)
            .iter()
            .map(|group| finding(seen, group, &mut reference))
            .collect()
    }
}

/// What a candidate is named for: the ranks that the vote confirms; without any it stays a mere candidate.
fn confirmed(candidate: &Candidate, votes: &Votes) -> Vec<usize> {
    candidate
        .ranks
        .iter()
        .copied()
        .filter(|&rank| votes.confirm(rank))
        .collect()
}

fn groups<'a>(seen: &Seen<'a>) -> Vec<Group<'a>> {
    let mut groups = Vec::new();
    // (kind of fault, slow parts) -> candidates of which every rank is told.
    let mut together: Vec<(Lasting, usize, usize, Vec<&Candidate>)> = Vec::new();
    for candidate in seen.candidates {
        let confirmed = confirmed(candidate, seen.votes);
        if candidate.one_of || confirmed.is_empty() {
            let ranks = if confirmed.is_empty() {
                candidate.ranks.clone()
            } else {
                confirmed
            };
            groups.push(Group {
                candidates: vec![candidate],
                ranks,
                what: What::Unit,
            });
            continue;
        }
        let (first, last) = ends(&candidate.fault.slow);
        let (kind, least) = (candidate.fault.lasting, seen.settings.least_slow_columns());
        let like = |group: &&mut (Lasting, usize, usize, Vec<&Candidate>)| {
            group.0 == kind
                && (kind == Lasting::Throughout || group.1.abs_diff(first) < least && group.2.abs_diff(last) < least)
        };
        match together.iter_mut().find(like) {
            Some(group) => group.3.push(candidate),
            None => together.push((kind, first, last, vec![candidate])),
        }
    }
    for (_, _, _, candidates) in together {
        groups.extend(parted(seen, candidates));
    }
    groups
}

fn ends(slow: &[bool]) -> (usize, usize) {
    let runs = runs(slow);
    (
        runs.first().map_or(0, |run| run.start),
        runs.last().map_or(0, |run| run.end),
    )
}

/// Parts candidates that are slow in the same steps: a level, whole nodes, single units.
fn parted<'a>(seen: &Seen<'a>, candidates: Vec<&'a Candidate>) -> Vec<Group<'a>> {
    let ranks_of = |candidates: &[&Candidate]| -> Vec<usize> {
        let mut ranks: Vec<usize> = candidates
            .iter()
            .flat_map(|candidate| confirmed(candidate, seen.votes))
            .collect();
        ranks.sort_unstable();
        ranks
    };
    let all = ranks_of(&candidates);
    let mut excesses: Vec<f64> = candidates
        .iter()
        .map(|candidate| candidate.fault.excess.excess)
        .collect();
    excesses.sort_by(f64::total_cmp);
    let (least, middle, most) = (excesses[0], excesses[excesses.len() / 2], excesses[excesses.len() - 1]);
    let large =
        all.len() >= LEAST_OF_LEVEL.get() && all.len() as f64 >= LEVEL_SHARE.get() * seen.job.ranks.len() as f64;
    if candidates.len() > MOST_FINDINGS || large && most - least < LIKE.get() * middle {
        let what = if candidates.len() == 1 { What::Unit } else { What::Level };
        return vec![Group {
            candidates,
            ranks: all,
            what,
        }];
    }
    let mut named = vec![false; seen.job.ranks.len()];
    all.iter().for_each(|&rank| named[rank] = true);
    let mut whole = std::collections::BTreeMap::<&String, bool>::new();
    for (rank, node) in seen.job.nodes.iter().enumerate() {
        *whole.entry(node).or_insert(true) &= named[rank];
    }
    let node_of = |candidate: &Candidate| &seen.job.nodes[candidate.ranks[0]];
    let mut groups: Vec<Group<'a>> = Vec::new();
    let mut by_node = std::collections::BTreeMap::<&String, Vec<&'a Candidate>>::new();
    for candidate in candidates {
        let on_one_node = candidate
            .ranks
            .iter()
            .all(|&rank| &seen.job.nodes[rank] == node_of(candidate));
        if on_one_node && whole[node_of(candidate)] {
            by_node.entry(node_of(candidate)).or_default().push(candidate);
        } else {
            groups.push(Group {
                ranks: confirmed(candidate, seen.votes),
                candidates: vec![candidate],
                what: What::Unit,
            });
        }
    }
    groups.extend(by_node.into_values().map(|candidates| Group {
        ranks: ranks_of(&candidates),
        what: if candidates.len() > 1 { What::Node } else { What::Unit },
        candidates,
    }));
    groups
}

fn finding(seen: &Seen<'_>, group: &Group<'_>, reference: &mut Reference<'_>) -> Finding {
    // The one in the middle speaks for them all.
    let mut by_excess = group.candidates.clone();
    by_excess.sort_by(|a, b| {
        a.fault
            .excess
            .excess
            .total_cmp(&b.fault.excess.excess)
            .then(a.unit.cmp(&b.unit))
    });
    let speaks = by_excess[by_excess.len() / 2];
    let named = group.ranks.iter().all(|&rank| seen.votes.confirm(rank));
    let kind = match (named, speaks.one_of) {
        (false, _) => FindingKind::Suspect,
        (true, false) => FindingKind::SlowRank,
        (true, true) => FindingKind::OneOfGroup,
    };
    let fault = &speaks.fault;
    let mut finding = seen.finding(kind, Cause::Compute);
    finding.named = named;
    seen.accuse(&mut finding, &group.ranks, &fault.slow);
    finding.factor = Some(fault.excess.excess.exp());
    finding.to_itself = fault.to_itself;
    finding.shape = match group.what {
        What::Unit => Shape::Ranks,
        What::Node => Shape::Node,
        What::Level => Shape::Level,
    };
    let mended: Vec<(usize, f64)> = group
        .candidates
        .iter()
        .map(|candidate| (candidate.unit, candidate.fault.excess.excess.exp()))
        .collect();
    finding.cost = Some(seen.model.mending(&mended, &fault.slow));
    when(seen, &mut finding, speaks);
    finding.voters = seen.votes.voters as usize;
    let calls_all_slow = |ranks: &[crate::vote::RankBallot]| group.ranks.iter().all(|&rank| ranks[rank].slow);
    let voted = seen
        .votes
        .algorithms
        .iter()
        .filter(|algorithm| calls_all_slow(&algorithm.ranks));
    finding.voted_by = voted.map(|algorithm| algorithm.name.to_owned()).collect();
    let fewest = group
        .ranks
        .iter()
        .map(|&rank| seen.votes.votes[rank])
        .min()
        .unwrap_or(0);
    finding.confidence = Some(confidence(speaks, fewest, seen.votes.voters));
    finding.timers = reference.compare(speaks);
    finding.says = says(seen, group, speaks, &finding);
    finding
}

fn when(seen: &Seen<'_>, finding: &mut Finding, candidate: &Candidate) {
    let slow = &candidate.fault.slow;
    seen.shows_in(finding, slow);
    finding.lasting = Some(candidate.fault.lasting);
    if matches!(candidate.fault.lasting, Lasting::Throughout) {
        finding.ended = Some(false);
        return;
    }
    let (first, last) = ends(slow);
    let count = slow.iter().filter(|&&slow| slow).count();
    if (count as f64) < DENSE.get() * (last - first) as f64 {
        return;
    }
    finding.onset = (first > 0).then(|| seen.job.iterations[first]);
    finding.until = finding.last_iteration.filter(|_| finding.ended == Some(true));
}

fn says(seen: &Seen<'_>, group: &Group<'_>, candidate: &Candidate, finding: &Finding) -> String {
    let fault = &candidate.fault;
    let several = finding.ranks.len() != 1 && finding.kind != FindingKind::OneOfGroup;
    let percent = format!("{:.1} %", 100.0 * fault.excess.excess.exp_m1());
    let (verb, own) = if several {
        ("compute", "their")
    } else {
        ("computes", "its")
    };
    let against = match (fault.to_itself, group.what) {
        (true, _) => format!("slower than in {own} better part of the window"),
        (false, What::Level) => "slower than the others".to_owned(),
        (false, _) => format!("slower than {own} peers"),
    };
    let subject = match (finding.kind, group.what) {
        (FindingKind::OneOfGroup, _) => format!("at least one of {}", who(finding)),
        (_, What::Node) => format!(
            "all ranks of {} ({})",
            words::nodes(&finding.nodes),
            words::ranks(&finding.ranks)
        ),
        (_, What::Level) => format!(
            "{} of {}: {}",
            finding.ranks.len(),
            words::number(seen.job.ranks.len(), "rank"),
            who(finding)
        ),
        _ => who(finding),
    };
    let mut says = format!(
        "{subject} {verb} {percent} {against}{}, {}{}",
        span(finding, &fault.slow),
        how_often(finding),
        without_rows(seen, candidate)
    );
    if group.what == What::Level {
        says += if fills_its_nodes(seen, &group.ranks) {
            "; they fill their nodes, so these may be machines of another kind, or share what is slow"
        } else {
            "; a level of their own: cards that are shared, or of another kind"
        };
    }
    if finding.kind == FindingKind::Suspect {
        says += if several {
            ", but most algorithms do not tell them apart"
        } else {
            ", but most algorithms do not tell it apart"
        };
    }
    says
}

/// Since when, until when, or how often.
fn span(finding: &Finding, slow: &[bool]) -> String {
    let spells = runs(slow).len();
    match (finding.lasting, finding.onset, finding.until) {
        (_, Some(onset), Some(until)) => format!(", from iteration {onset} to {until}, when it ended"),
        (_, Some(onset), None) => format!(", since iteration {onset}"),
        (_, None, Some(until)) => format!(", until iteration {until}, when it ended"),
        (Some(Lasting::Throughout) | None, None, None) => String::new(),
        (_, None, None) if spells > 1 => format!(", on and off ({spells} times)"),
        _ => String::new(),
    }
}

/// How many iterations have no rows of a candidate, if any.
fn without_rows(seen: &Seen<'_>, candidate: &Candidate) -> String {
    let work = seen.units.work.row(candidate.unit);
    let missing = seen
        .job
        .iterations_in((0..work.len()).filter(|&step| !work[step].is_finite()));
    if missing == 0 {
        String::new()
    } else {
        format!(" ({missing} of them without its rows)")
    }
}

/// Whether no rank of the same nodes is left out.
fn fills_its_nodes(seen: &Seen<'_>, ranks: &[usize]) -> bool {
    let nodes: std::collections::BTreeSet<&String> = ranks.iter().map(|&rank| &seen.job.nodes[rank]).collect();
    let on_them = seen.job.nodes.iter().filter(|node| nodes.contains(node));
    on_them.count() == ranks.len()
}

/// How sure a candidate is: by how far it passes the threshold and how many algorithms agree, half for one of a group.
fn confidence(candidate: &Candidate, votes: u32, voters: u32) -> f64 {
    let agreement = if voters == 0 {
        0.5
    } else {
        f64::from(votes) / f64::from(voters)
    };
    let sure = (1.0 - 0.5f64.powf(candidate.fault.excess.margin())) * (0.5 + 0.5 * agreement);
    let sure = if candidate.one_of { 0.5 * sure } else { sure };
    (1000.0 * sure).round() / 1000.0
}
