//! The peer rules: which ranks are slower than their peers, lastingly, by an amount that matters, and why.
//!
//! In: a job's tables. Out: findings, votes and what the transfers show. May use: `comm`, `features`, `algos`, `vote`, `stats`, `job`.
//!
//! Peers are the ranks of one pipeline stage: they do the same work on other data. Data flows
//! `tensor_groups` (ranks that wait for each other; their work) -> `own_factor` (a row's time over what its step, `common`,
//! and its pipeline, `load`, ask of anybody) -> `slowness` (who is slow when: `level`s, `noise`, `stretches`, each held
//! against peers and itself by `contrast`, in `judge_row`; also over `nodes`) -> `candidates` (who passes; which ranks
//! of a group) -> `replica` and `experts` (who only looks slow) -> `votes` (the six algorithms on the evidence) -> the detectors
//! (`slow_ranks`, `slow_loaders`, `structure`, `transients`, `stalls`), which make findings. `windows` judges slow windows anew.
//!
//! Everything is `O(ranks x iterations)` and a few sorts a row; only the algorithms, asked when there are candidates, cost
//! more. Sums over rows run in an order of their own, so that neither threads nor the order of ranks can show, and all
//! times are divided by one power of two, so that their unit can't.

mod candidates;
mod common;
mod compared;
mod contrast;
mod cost;
mod detector;
mod experts;
mod judge_row;
mod level;
mod load;
mod loader;
mod nodes;
mod noise;
mod own_factor;
mod reference;
mod replica;
mod rows;
mod rows_by_step;
#[cfg(test)]
pub(super) mod samples;
mod settings;
mod slow_loaders;
mod slow_ranks;
mod slowness;
mod smoothing;
mod spread;
mod stalls;
mod stretches;
mod structure;
mod tensor_groups;
mod transients;
mod votes;
mod waiting_groups;
mod weight;
mod windows;

pub use settings::{Ablation, PeerSettings};

use std::borrow::Cow;
use std::collections::BTreeSet;
use std::ops::Range;

use self::candidates::Evidence;
use self::cost::StepModel;
use self::detector::{Detector, Seen};
use self::replica::HeavyReplicas;
use self::rows::RowPlaces;
use self::slow_loaders::SlowLoaders;
use self::slow_ranks::SlowRanks;
use self::stalls::Stalls;
use self::structure::{HeavyStages, UnevenLoads};
use self::tensor_groups::{RankTimes, TensorGroups};
use self::transients::Transients;
use self::votes::Votes;
use self::waiting_groups::acquit_groups_that_wait;
pub(super) use self::weight::{by_weight, cause};
use super::{Verdict, unjudged, unplaced};
use crate::algos::Algorithm;
use crate::comm::{self, Communication, SlowComputing};
use crate::contract::constant::Movable;
use crate::contract::defaults::SLOW_STEPS_IN_A_ROW;
use crate::contract::timers::{BATCH_GENERATOR, COMPUTING, INTERVAL_TIME};
use crate::features::{self, RankFeatures, TimerFate, TimerVerdict};
use crate::job::{Job, slow_windows};
use crate::verdict::comparison::Comparison;
use crate::verdict::{Cause, Finding, FindingKind, Status};

/// Every detector of computing, loading and structure; transfers have their own floor.
const DETECTORS: [&dyn Detector; 7] = [
    &SlowRanks,
    &SlowLoaders,
    &HeavyReplicas,
    &HeavyStages,
    &UnevenLoads,
    &Transients,
    &Stalls,
];

/// The numbers of these rules, each with its reason.
pub(super) fn constants() -> impl Iterator<Item = &'static dyn Movable> {
    let of_modules = [
        candidates::CONSTANTS,
        common::CONSTANTS,
        contrast::CONSTANTS,
        cost::CONSTANTS,
        judge_row::CONSTANTS,
        level::CONSTANTS,
        load::CONSTANTS,
        loader::CONSTANTS,
        nodes::CONSTANTS,
        noise::CONSTANTS,
        replica::CONSTANTS,
        settings::CONSTANTS,
        slow_ranks::CONSTANTS,
        slowness::CONSTANTS,
        smoothing::CONSTANTS,
        spread::CONSTANTS,
        stalls::CONSTANTS,
        structure::CONSTANTS,
        tensor_groups::CONSTANTS,
        transients::CONSTANTS,
        votes::CONSTANTS,
        waiting_groups::CONSTANTS,
        windows::CONSTANTS,
    ];
    of_modules.into_iter().flatten().copied()
}

/// Applies the peer rules; the algorithms vote on the candidates.
#[must_use]
pub fn judge(job: &Job, settings: &PeerSettings, algorithms: &[&'static dyn Algorithm]) -> Verdict {
    let settings = &settings.clone().for_columns_of(job.iterations_per_column());
    let Looked {
        mut findings,
        votes,
        mut communication,
        comparison,
    } = look_at(job, settings, algorithms);
    communication.summary += &sampled(job, &communication);
    findings.extend(communication.findings.iter().cloned());
    for finding in windows::look(job, settings, algorithms, &findings) {
        // What seemed to have passed is now told as what made the window.
        findings.retain(|known| known.kind != FindingKind::Transient || !windows::tells(&finding, known));
        if finding.cause == Cause::Network {
            communication.findings.push(finding.clone());
        }
        findings.push(finding);
    }
    findings.sort_by(by_weight);
    let timers = timers(job);
    let unjudged = unjudged::by_peers(job, &timers);
    Verdict {
        timers,
        status: Status::of(&findings, unjudged.as_deref()),
        unjudged,
        algorithms: votes.algorithms,
        votes: votes.votes,
        anomalies: anomalies(job, &findings),
        network_nodes: communication.nodes(),
        cause: cause(&findings),
        findings,
        communication,
        comparison,
        what_if: None,
    }
}

/// What a look at a job, or at a window of it, gives.
struct Looked {
    /// What computing, loading and structure show.
    findings: Vec<Finding>,
    /// The votes on the candidates.
    votes: Votes,
    /// What the communication shows beside it.
    communication: Communication,
    /// Every rank beside its peers.
    comparison: Comparison,
}

fn look_at(job: &Job, settings: &PeerSettings, algorithms: &[&'static dyn Algorithm]) -> Looked {
    let unplaced = unplaced::stages_are_unknown(job);
    let places = if unplaced {
        Cow::Owned(unplaced::everybody_alone(job.ranks.len()))
    } else if !settings.uses(Ablation::Peers) {
        Cow::Owned(unplaced::everybody_a_peer(job.ranks.len()))
    } else {
        Cow::Borrowed(&job.topology.places)
    };
    let nodes = node_codes(&job.nodes);
    let times = RankTimes::of(job);
    let (mut findings, votes, comparison) = match TensorGroups::new(&times, &places, &nodes) {
        Some(units) if times.any() => {
            let stages: Vec<u32> = places.iter().map(|place| place.stage).collect();
            let pipelines: Vec<u32> = places.iter().map(|place| place.pipeline).collect();
            let rank_places = RowPlaces::new(&stages, &pipelines, nodes);
            look(job, &units, &times, &rank_places, settings, algorithms)
        }
        _ => (
            Vec::new(),
            Votes::nobody(job.ranks.len(), algorithms),
            Comparison::default(),
        ),
    };
    if unplaced {
        findings = unplaced::without_names(findings);
    }
    if job.iteration_count() < SLOW_STEPS_IN_A_ROW {
        findings
            .iter_mut()
            .for_each(|finding| finding.accuse_nobody("too few iterations tell what lasts"));
    }
    let communication = comm::look(job, &settings.persistence, &slow_computing(job, &findings));
    acquit_groups_that_wait(&mut findings, &communication.findings);
    Looked {
        findings,
        votes,
        communication,
        comparison,
    }
}

fn look(
    job: &Job,
    units: &TensorGroups,
    times: &RankTimes,
    rank_places: &RowPlaces,
    settings: &PeerSettings,
    algorithms: &[&'static dyn Algorithm],
) -> (Vec<Finding>, Votes, Comparison) {
    let slow_windows = slow_columns(job, settings);
    let propose = |values: &[f64]| votes::levels(values, algorithms);
    let experts = experts::are_there(&job.topology);
    let evidence = Evidence::gather(units, times, rank_places, &slow_windows, &propose, settings, experts);
    let mut candidates = evidence.candidates(units, &rank_places.nodes);
    if let Some(by_qkv) = &evidence.ranks {
        experts::acquit_those_who_wait(&mut candidates, &job.topology, by_qkv);
    }
    let heavy_replicas = replica::heavy_replicas(&mut candidates, units, &evidence, &rank_places.nodes);
    if experts && evidence.ranks.is_none() {
        experts::tell_as_one_of(&mut candidates, &job.topology);
    }
    let votes = if candidates.is_empty() || !settings.uses(Ablation::Vote) {
        Votes::nobody(job.ranks.len(), algorithms)
    } else {
        Votes::cast(votes::saturated(&evidence, units, &candidates), algorithms)
    };
    let model = StepModel::new(job, units);
    let loading = loader::look(units, times, &model, &slow_windows, settings);
    let seen = Seen {
        job,
        units,
        evidence: &evidence,
        candidates: &candidates,
        heavy_replicas: &heavy_replicas,
        votes: &votes,
        loading: &loading,
        model: &model,
        settings,
    };
    let findings = DETECTORS.iter().flat_map(|detector| detector.find(&seen)).collect();
    let comparison = compared::compared(&seen);
    (findings, votes, comparison)
}

/// The windows in which the job's steps were slow, as columns of its tables.
fn slow_columns(job: &Job, settings: &PeerSettings) -> Vec<Range<usize>> {
    let column = |iteration: i64| job.iterations.partition_point(|&first| first <= iteration);
    let windows = slow_windows(job, settings.slowdown_threshold).windows;
    windows
        .iter()
        .map(|window| column(window.first).saturating_sub(1)..column(window.last))
        .collect()
}

/// What of the communication is known of a job whose iterations were put together.
fn sampled(job: &Job, communication: &Communication) -> String {
    let length = job.iterations_per_column();
    let transfers = !communication.flows.is_empty() || job.quality.trace_rows > 0;
    if length == 1 || !transfers {
        return String::new();
    }
    let unread = if job.quality.trace_rows > 0 && job.quality.trace_rows_used == 0 {
        ", and the single calls are too many to be read; a narrower window, or reading every row, reads them"
    } else {
        ""
    };
    format!("; transfers are told from one iteration in {length}{unread}")
}

/// Positions of the ranks that are known to compute slowly.
fn slow_computing(job: &Job, findings: &[Finding]) -> SlowComputing {
    let positions = |wanted: &dyn Fn(&Finding) -> bool| -> BTreeSet<usize> {
        let computes = |finding: &&Finding| finding.cause == Cause::Compute && wanted(finding);
        let ranks = findings.iter().filter(computes).flat_map(|finding| &finding.ranks);
        ranks.filter_map(|rank| job.ranks.binary_search(rank).ok()).collect()
    };
    SlowComputing {
        ranks: positions(&|finding| finding.kind == FindingKind::SlowRank),
        suspects: positions(&|finding| matches!(finding.kind, FindingKind::SlowRank | FindingKind::OneOfGroup)),
    }
}

/// Positions of the named ranks, ascending.
fn anomalies(job: &Job, findings: &[Finding]) -> Vec<usize> {
    let named = findings.iter().filter(|finding| finding.named);
    let mut ranks: Vec<usize> = named
        .flat_map(|finding| &finding.ranks)
        .filter_map(|rank| job.ranks.binary_search(rank).ok())
        .collect();
    ranks.sort_unstable();
    ranks.dedup();
    ranks
}

fn node_codes(nodes: &[String]) -> Vec<u32> {
    let mut names: Vec<&String> = nodes.iter().collect();
    names.sort_unstable();
    names.dedup();
    nodes
        .iter()
        .map(|node| names.partition_point(|known| *known < node) as u32)
        .collect()
}

/// What became of each timer.
fn timers(job: &Job) -> Vec<TimerVerdict> {
    let verdict = |features: RankFeatures| {
        let name = features.timer.as_str();
        let fate = if name == INTERVAL_TIME {
            TimerFate::StepTime
        } else if features.covered() > 0 && (COMPUTING.contains(&name) || name == BATCH_GENERATOR) {
            TimerFate::Compared {
                ranks: features.covered(),
            }
        } else {
            TimerFate::NotCompared
        };
        TimerVerdict { features, fate }
    };
    features::aggregate(job).into_iter().map(verdict).collect()
}

#[cfg(test)]
mod tests {
    use super::samples::job;
    use super::*;
    use crate::algos::registry;

    fn anomalies(job: &Job) -> Vec<usize> {
        super::judge(job, &PeerSettings::default(), registry()).anomalies
    }

    #[test]
    fn every_slow_rank_is_named_and_nobody_else() {
        let own = |rank, _| match rank {
            3 => 1.06,
            20 => 1.5,
            _ => 1.0,
        };
        let verdict = super::judge(&job(2, 16, 30, own), &PeerSettings::default(), registry());
        assert_eq!((verdict.anomalies, verdict.cause), (vec![3, 20], Cause::Compute));
        assert_eq!(verdict.findings[0].ranks, [20], "the costliest comes first");
    }

    #[test]
    fn a_heavy_stage_is_nobodys_fault() {
        let verdict = super::judge(
            &job(4, 8, 30, |rank, _| if rank >= 24 { 1.4 } else { 1.0 }),
            &PeerSettings::default(),
            registry(),
        );
        assert_eq!((verdict.anomalies, verdict.cause), (vec![], Cause::StageImbalance));
        assert_eq!(verdict.findings[0].stages, [3]);
    }

    #[test]
    fn the_smallest_jobs_get_a_verdict() {
        for (stages, pipelines, iterations) in [(1, 1, 1), (1, 1, 30), (4, 1, 30), (1, 2, 1), (1, 2, 3), (2, 2, 5)] {
            let named = anomalies(&job(stages, pipelines, iterations, |_, _| 1.0));
            assert!(named.is_empty(), "{stages} x {pipelines} x {iterations}: {named:?}");
        }
        let nan = job(2, 4, 20, |_, _| f64::NAN);
        assert!(anomalies(&nan).is_empty());
    }
}
