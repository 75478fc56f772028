//! A rank's gates: peers, effect and noise, duration, vote.

use super::{CoursePoint, GateExplanation, LabelExplanation, RankExplanation};
use crate::report::stored::StoredSummary;
use crate::stats::median;
use crate::verdict::comparison::{Comparison, Gate, RankComparison};
use crate::verdict::{Lasting, words};

/// The algorithms, for ranks of which none says slow.
const ALGORITHMS: [&str; 6] = ["kmeans", "dbscan", "gmm", "hierarchical", "mean_shift", "fuzzy"];

/// A rank with all that it passed or did not.
pub(super) fn explained(summary: &StoredSummary, comparison: &Comparison, rank: &RankComparison) -> RankExplanation {
    let named = summary.anomaly_ranks.binary_search(&rank.rank).is_ok();
    let mut gates = vec![peers(rank), amount("the whole window", rank.window, rank)];
    gates.extend(
        rank.own_work
            .map(|gate| amount("its own matrix work in the whole window", gate, rank)),
    );
    gates.push(duration(comparison, rank));
    if let Some(fault) = &rank.fault {
        gates.push(amount("its slow iterations", fault.gate, rank));
    }
    if rank.waits_with.len() > 1 {
        gates.push(apart(rank));
    }
    gates.push(vote(comparison, rank));
    let labels = if comparison.voters == 0 {
        Vec::new()
    } else {
        let label = |algorithm: &str| LabelExplanation {
            algorithm: algorithm.to_owned(),
            slow: rank.voted_by.iter().any(|voted| voted == algorithm),
        };
        ALGORITHMS.map(label).into()
    };
    RankExplanation {
        rank: rank.rank,
        node: rank.node.clone(),
        stage: rank.stage,
        replica: rank.replica,
        named,
        needed: (!named).then(|| needed(comparison, rank, &gates)),
        gates,
        labels,
        course: course(comparison, rank),
    }
}

fn gate(name: &str, passed: Option<bool>, measured: Option<f64>, needed: Option<f64>, says: String) -> GateExplanation {
    GateExplanation {
        gate: name.to_owned(),
        passed,
        measured,
        needed,
        says,
    }
}

fn peers(rank: &RankComparison) -> GateExplanation {
    let others = rank.peers.saturating_sub(1);
    let what = if rank.waits_with.len() > 1 { "group" } else { "rank" };
    let says = if others == 0 {
        "no other does the same work: only its own better iterations can tell".to_owned()
    } else {
        format!(
            "{} of stage {} with the same work",
            words::number(others, &format!("other {what}")),
            rank.stage
        )
    };
    gate("peers", Some(others > 0), Some(others as f64), Some(1.0), says)
}

fn amount(name: &str, measured: Gate, rank: &RankComparison) -> GateExplanation {
    let whose = if rank.waits_with.len() > 1 && name == "the whole window" {
        " (its group's)"
    } else {
        ""
    };
    let says = match (measured.factor, measured.needed) {
        (Some(factor), Some(needed)) => {
            format!(
                "{factor:.3} x the peers' time{whose}; more than {needed:.3} x is needed to pass the noise and the least effect"
            )
        }
        (Some(factor), None) => {
            format!("{factor:.3} x the peers' time{whose}; too little is known of the noise to say what is needed")
        }
        _ => "not known".to_owned(),
    };
    let passed = measured.factor.map(|_| measured.passes());
    gate(name, passed, measured.factor, measured.needed, says)
}

fn duration(comparison: &Comparison, rank: &RankComparison) -> GateExplanation {
    let least = comparison.least_slow_iterations as f64;
    let spans = |spells: &[(i64, i64)]| {
        let named: Vec<String> = spells
            .iter()
            .take(4)
            .map(|(first, last)| format!("{first}-{last}"))
            .collect();
        let more = if spells.len() > 4 {
            format!(" and {} more", spells.len() - 4)
        } else {
            String::new()
        };
        format!("{}{more}", named.join(", "))
    };
    match &rank.fault {
        Some(fault) => {
            let how = match fault.lasting {
                Lasting::Throughout => "in the whole window",
                Lasting::Long => "in a third of the window at least",
                Lasting::ToTheEnd => "to the end of the window",
                Lasting::SlowWindow => "where the job's steps were slow",
                Lasting::Recurring => "again and again",
            };
            let longest = fault.spells.iter().map(|(first, last)| last - first + 1).max();
            let than = if fault.to_itself {
                "; compared with its own better iterations"
            } else {
                ""
            };
            let says = format!("slow {how}: iterations {}{than}", spans(&fault.spells));
            gate(
                "duration",
                Some(true),
                longest.map(|longest| longest as f64),
                Some(least),
                says,
            )
        }
        None if rank.passing.is_empty() => gate(
            "duration",
            Some(false),
            Some(0.0),
            Some(least),
            "no stretch of iterations is slow".to_owned(),
        ),
        None => {
            let longest = rank.passing.iter().map(|(first, last)| last - first + 1).max();
            let says = format!(
                "slow in iterations {}, which is too short or too rare: it passed",
                spans(&rank.passing)
            );
            gate(
                "duration",
                Some(false),
                longest.map(|longest| longest as f64),
                Some(least),
                says,
            )
        }
    }
}

/// Whether it can be told apart from the ranks that it waits with.
fn apart(rank: &RankComparison) -> GateExplanation {
    let group = words::ranks(&rank.waits_with);
    let (passed, says) = match (rank.suspect, rank.one_of_group) {
        (true, true) => (
            Some(false),
            format!("{group} wait for each other in every pass: the timers can't tell which of them is slow"),
        ),
        (true, false) => (
            Some(true),
            format!("its own matrix work tells it apart from the others of {group}"),
        ),
        _ if rank.fault.is_some() => (
            Some(false),
            format!("its group ({group}) is slow, its own matrix work is not: it waits for another one"),
        ),
        _ => (None, format!("it waits with {group}; the group is not slow")),
    };
    gate("apart from its group", passed, None, None, says)
}

fn vote(comparison: &Comparison, rank: &RankComparison) -> GateExplanation {
    let (votes, voters) = (rank.voted_by.len(), comparison.voters);
    if !rank.suspect {
        return gate(
            "vote",
            None,
            Some(votes as f64),
            None,
            "not put to the vote: the gates before were not passed".to_owned(),
        );
    }
    if voters == 0 {
        return gate(
            "vote",
            Some(true),
            Some(0.0),
            None,
            "no algorithm could part slow ranks from fast ones; the gates before decide".to_owned(),
        );
    }
    let half = f64::from(voters) / 2.0;
    let says = format!("{votes} of {voters} algorithms call it slow; half are needed");
    gate(
        "vote",
        Some(votes as f64 >= half),
        Some(votes as f64),
        Some(half.ceil()),
        says,
    )
}

/// What would have been needed, by the first gate that was not passed.
fn needed(comparison: &Comparison, rank: &RankComparison, gates: &[GateExplanation]) -> String {
    let least = comparison.least_slow_iterations;
    let failed = |name: &str| gates.iter().any(|gate| gate.gate == name && gate.passed == Some(false));
    if rank.suspect && rank.one_of_group {
        return "a timer of its own matrix work (self-attention-linear-qkv) that shows it and not the others of its group".to_owned();
    }
    if rank.fault.is_some() && failed("apart from its group") {
        return "to be slow itself: it waits for a slow rank of its group".to_owned();
    }
    if rank.suspect {
        return "the votes of half of the algorithms that could tell".to_owned();
    }
    let floor = match rank.window.needed {
        Some(needed) => format!("more than {needed:.3} x its peers' time on the whole window's mean"),
        None => "peers with the same work to compare it with".to_owned(),
    };
    format!(
        "{floor}; or stretches above their own threshold that last: {least} iterations in a row to the end of the window, or a third of it, or again and again"
    )
}

fn course(comparison: &Comparison, rank: &RankComparison) -> Vec<CoursePoint> {
    let peers: Vec<&RankComparison> = comparison
        .ranks
        .iter()
        .filter(|other| other.stage == rank.stage && !rank.waits_with.contains(&other.rank))
        .collect();
    let known = |factor: f64| factor.is_finite().then_some(factor);
    let factor = |thousandths: u32| f64::from(thousandths) / 1000.0;
    comparison
        .iterations
        .iter()
        .enumerate()
        .map(|(column, &iteration)| {
            let at = |rank: &RankComparison| rank.factors.get(column).copied().flatten();
            let of_peers = || peers.iter().filter_map(|peer| at(peer));
            CoursePoint {
                iteration,
                factor: at(rank).map(factor),
                peers_middle: known(median(of_peers().map(factor))),
                peers_low: of_peers().min().map(factor),
                peers_high: of_peers().max().map(factor),
            }
        })
        .collect()
}
