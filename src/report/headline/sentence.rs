//! A headline's sentence: who, and what is wrong.

use super::Headline;
use crate::job::Job;
use crate::verdict::{Cause, Finding, FindingKind, Shape, words};

/// Factor from which a time is told as a multiple.
const TIMES: f64 = 2.0;

/// Who and what, without since when.
pub(super) fn says(job: &Job, headline: &Headline, findings: &[&Finding]) -> String {
    match (headline.kind, headline.cause) {
        // It says itself why nobody is named.
        (FindingKind::Suspect, _) if findings.len() == 1 => findings[0].says.clone(),
        (FindingKind::SlowRank | FindingKind::OneOfGroup | FindingKind::Suspect, Cause::Compute) => {
            slow(job, headline, findings)
        }
        (FindingKind::SlowRank | FindingKind::OneOfGroup, Cause::DataLoading) if !headline.timers.is_empty() => {
            loads(job, headline)
        }
        (FindingKind::Imbalance, Cause::StageImbalance) if headline.stages.len() == 1 && headline.peers > 0 => {
            heavy_stage(job, headline)
        }
        _ => match findings {
            [only] => only.says.clone(),
            [first, ..] => format!("{} findings of one sort, the worst: {}", findings.len(), first.says),
            [] => String::new(),
        },
    }
}

/// `rank 5 on gpu-000 (stage 0, replica 5) computes 49 % slower than 7 ranks with the same work`.
fn slow(job: &Job, headline: &Headline, findings: &[&Finding]) -> String {
    let several = headline.ranks.len() != 1 && headline.kind != FindingKind::OneOfGroup || findings.len() > 1;
    let choose = |one: &'static str, many: &'static str| if several { many } else { one };
    let whom = subject(job, headline, findings);
    let than = match findings {
        [only] if only.to_itself => format!("in {} own better iterations", choose("its", "their")),
        _ if headline.peers == 0 => "the other ranks".to_owned(),
        _ => format!("{} with the same work", words::number(headline.peers, "rank")),
    };
    let says = match (headline.least_factor, headline.largest_factor) {
        (Some(least), Some(most)) if least >= TIMES => {
            let times = range(&format!("{least:.1}"), &format!("{most:.1}"));
            format!("{whom} {} {times} times as long as {than}", choose("takes", "take"))
        }
        _ => format!(
            "{whom} {} {}slower than {than}",
            choose("computes", "compute"),
            how_much(headline)
        ),
    };
    if headline.kind == FindingKind::Suspect {
        return says + "; too little to name anybody";
    }
    says
}

/// `stage 3 takes 24 % longer than the other stages on all its ranks: it has more work`.
fn heavy_stage(job: &Job, headline: &Headline) -> String {
    let replicas = job
        .topology
        .places
        .iter()
        .map(|place| place.pipeline)
        .max()
        .map_or(0, |last| last + 1);
    let why = if replicas > 1 {
        "it has more work, nobody is to blame"
    } else {
        "it has more work, or its ranks are slow from the start; with one replica the timers can't tell"
    };
    let (stage, how_much) = (headline.stages[0], how_much(headline));
    format!("stage {stage} takes {how_much}longer than the other stages on all its ranks: {why}")
}

/// `its data loader takes 0.81 s a step longer than the other ranks'`.
fn loads(job: &Job, headline: &Headline) -> String {
    let timer = &headline.timers[0];
    let extra = seconds(timer.mean_seconds - timer.reference_seconds);
    let whom = subject(job, headline, &[]);
    format!(
        "the data loader of {whom} takes {extra} a step longer than the other ranks' ({} against {})",
        seconds(timer.mean_seconds),
        seconds(timer.reference_seconds)
    )
}

/// `rank 5 on gpu-000 (stage 0, replica 5)`, `all 8 ranks of gpu-002`, `16 ranks on 2 nodes`.
pub(super) fn subject(job: &Job, headline: &Headline, findings: &[&Finding]) -> String {
    let ranks = &headline.ranks;
    if headline.kind == FindingKind::OneOfGroup {
        let whom = match findings.len() {
            0 | 1 => words::ranks(ranks),
            groups => format!(
                "{} in each of {groups} groups ({})",
                ranks.len() / groups,
                words::ranks(ranks)
            ),
        };
        return format!("at least one of {whom}{}", on_nodes(headline));
    }
    let level = findings.iter().any(|finding| finding.shape == Shape::Level);
    match (ranks.as_slice(), headline.nodes.as_slice()) {
        ([rank], _) => format!("rank {rank}{}{}", on_nodes(headline), place(job, *rank)),
        (ranks, [node]) if headline.whole_nodes && ranks.len() > 1 => {
            format!("all {} ranks of {node}{}", ranks.len(), level_words(level, job, ranks))
        }
        (ranks, nodes) if headline.whole_nodes => {
            format!(
                "all {} ranks of {}{}",
                ranks.len(),
                words::nodes(nodes),
                level_words(level, job, ranks)
            )
        }
        (ranks, nodes) if ranks.len() > 4 && !nodes.is_empty() => {
            let on = words::number(nodes.len(), "node");
            format!("{} ranks on {on}{}", ranks.len(), level_words(level, job, ranks))
        }
        (ranks, _) => format!("{}{}", words::ranks(ranks), on_nodes(headline)),
    }
}

fn level_words(level: bool, job: &Job, ranks: &[u32]) -> String {
    if level {
        format!(" ({} of the job's {} ranks)", ranks.len(), job.ranks.len())
    } else {
        String::new()
    }
}

fn on_nodes(headline: &Headline) -> String {
    match headline.nodes.as_slice() {
        [] => String::new(),
        [node] => format!(" on {node}"),
        nodes => format!(" on {}", words::nodes(nodes)),
    }
}

/// ` (stage 0, replica 5)`; nothing where stages are not known.
fn place(job: &Job, rank: u32) -> String {
    let position = job
        .ranks
        .binary_search(&rank)
        .ok()
        .filter(|&position| job.topology.stage(position).is_some());
    let place = position.and_then(|position| job.topology.places.get(position));
    place.map_or(String::new(), |place| {
        format!(" (stage {}, replica {})", place.stage, place.pipeline)
    })
}

/// `49 % `, `30-50 % `, `1.8-2.4 times `; nothing where it is not known.
fn how_much(headline: &Headline) -> String {
    let (Some(least), Some(most)) = (headline.least_factor, headline.largest_factor) else {
        return String::new();
    };
    let percent = |factor: f64| format!("{:.0}", 100.0 * (factor - 1.0));
    let exact = |factor: f64| format!("{:.1}", 100.0 * (factor - 1.0));
    if most < 1.1 {
        return range(&exact(least), &exact(most)) + " % ";
    }
    range(&percent(least), &percent(most)) + " % "
}

fn range(least: &str, most: &str) -> String {
    if least == most {
        most.to_owned()
    } else {
        format!("{least}-{most}")
    }
}

/// Seconds with as many digits as tell them apart.
pub(in crate::report) fn seconds(seconds: f64) -> String {
    match seconds.abs() {
        0.0 => "0 s".to_owned(),
        tiny if tiny < 0.000_95 => format!("{:.1} us", 1e6 * seconds),
        small if small < 0.095 => format!("{:.1} ms", 1e3 * seconds),
        middle if middle < 10.0 => format!("{seconds:.2} s"),
        long if long < 100.0 => format!("{seconds:.1} s"),
        _ => format!("{seconds:.0} s"),
    }
}
