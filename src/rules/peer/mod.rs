//! The peer rules: which ranks are slower than their peers, lastingly, by an amount that matters, and why.
//!
//! Peers are the ranks of one pipeline stage: they do the same work on other data. Data flows
//! `places` (who are peers) -> `units` (ranks that wait for each other; their work) -> `own` (a row's time over
//! what its step, stage (`level`) and pipeline (`load`) ask of anybody) -> `segments` (the part of the window
//! that shows it best; effect and noise floor) -> `suspects` (who passes in every timer, `lasting`ly; which ranks
//! of a unit) -> `replica` (data, not GPUs) -> `votes` (the six algorithms on the evidence) -> `findings`.
//! Beside it `loader`, `structure` and `passing` look for what else costs the job time.
//!
//! Everything is `O(ranks x iterations)` and a few sorts a row; only the algorithms, asked when there are suspects, cost
//! more. Sums over rows run in an order of their own, so that neither threads nor the order of ranks can show, and all
//! times are divided by one power of two, so that their unit can't.

mod common;
mod contrast;
mod cost;
mod detector;
mod experts;
mod level;
mod load;
mod loader;
mod nodes;
mod noise;
mod own;
mod reference;
mod replica;
mod rows;
#[cfg(test)]
pub(super) mod samples;
mod settings;
mod slow_loaders;
mod slow_ranks;
mod slowness;
mod stalls;
mod stretches;
mod structure;
mod suspects;
mod table;
mod transients;
mod units;
pub(crate) mod unplaced;
mod votes;

pub use settings::{Ablation, PeerSettings};

use std::borrow::Cow;
use std::collections::BTreeSet;
use std::ops::Range;

use self::cost::StepModel;
use self::detector::{DETECTORS, Seen};
use self::rows::RowPlaces;
use self::suspects::Evidence;
use self::units::{RankTimes, Units};
use self::votes::Votes;
use super::{Verdict, unjudged};
use crate::algos::Algorithm;
use crate::comm::{self, Communication, SlowComputing};
use crate::contract::defaults::SLOW_STEPS_IN_A_ROW;
use crate::contract::defaults::SLOWDOWN_THRESHOLD;
use crate::contract::timers::{BATCH_GENERATOR, COMPUTING, INTERVAL_TIME};
use crate::features::{self, RankFeatures, TimerFate, TimerVerdict};
use crate::job::{Job, slow_windows};
use crate::verdict::{Cause, Finding, FindingKind, Status};

/// Applies the peer rules; the algorithms vote on the suspects.
#[must_use]
pub fn judge(job: &Job, settings: &PeerSettings, algorithms: &[&'static dyn Algorithm]) -> Verdict {
    let settings = &settings.clone().for_columns_of(job.iterations_per_column());
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
    let (mut findings, votes) = match Units::new(&times, &places, &nodes) {
        Some(units) if times.any() => {
            let stages: Vec<u32> = places.iter().map(|place| place.stage).collect();
            let pipelines: Vec<u32> = places.iter().map(|place| place.pipeline).collect();
            let rank_places = RowPlaces::new(&stages, &pipelines, nodes);
            look(job, &units, &times, &rank_places, settings, algorithms)
        }
        _ => (Vec::new(), Votes::nobody(job.ranks.len(), algorithms)),
    };
    if unplaced {
        findings = unplaced::without_names(findings);
    }
    if job.iteration_count() < SLOW_STEPS_IN_A_ROW {
        findings
            .iter_mut()
            .for_each(|finding| finding.accuse_nobody("too few iterations tell what lasts"));
    }
    let mut communication = comm::look(job, &settings.persistence, &slow_computing(job, &findings));
    communication.told += &sampled(job, &communication);
    acquit_groups_that_wait(&mut findings, &communication.findings);
    findings.extend(communication.findings.iter().cloned());
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
        what_if: None,
    }
}

fn look(
    job: &Job,
    units: &Units,
    times: &RankTimes,
    rank_places: &RowPlaces,
    settings: &PeerSettings,
    algorithms: &[&'static dyn Algorithm],
) -> (Vec<Finding>, Votes) {
    let slow_windows = slow_columns(job);
    let propose = |values: &[f64]| votes::levels(values, algorithms);
    let experts = experts::are_there(&job.topology);
    let evidence = Evidence::gather(units, times, rank_places, &slow_windows, &propose, settings, experts);
    let mut suspects = evidence.suspects(units, &rank_places.nodes);
    if let Some(by_qkv) = &evidence.ranks {
        experts::acquit_those_who_wait(&mut suspects, &job.topology, by_qkv);
    }
    let heavy_replicas = replica::heavy_replicas(&mut suspects, units, &evidence, &rank_places.nodes);
    let votes = if suspects.is_empty() || !settings.uses(Ablation::Vote) {
        Votes::nobody(job.ranks.len(), algorithms)
    } else {
        Votes::cast(votes::saturated(&evidence, units, &suspects), algorithms)
    };
    let model = StepModel::new(job, units);
    let loading = loader::look(units, times, &model, &slow_windows, settings);
    let seen = Seen {
        job,
        units,
        evidence: &evidence,
        suspects: &suspects,
        heavy_replicas: &heavy_replicas,
        votes: &votes,
        loading: &loading,
        model: &model,
        settings,
    };
    let findings = DETECTORS.iter().flat_map(|detector| detector.find(&seen)).collect();
    (findings, votes)
}

/// The windows in which the job's steps were slow, as columns of its tables.
fn slow_columns(job: &Job) -> Vec<Range<usize>> {
    let column = |iteration: i64| job.iterations.partition_point(|&first| first <= iteration);
    let windows = slow_windows(job, SLOWDOWN_THRESHOLD).windows;
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

/// Share of a group's cost that the slow transfers of a member must cost to explain it.
const EXPLAINED_BY_TRANSFERS: f64 = 1.0 / 3.0;

/// Takes back what groups are accused of whose members wait inside their passes for a peer with slow transfers.
fn acquit_groups_that_wait(findings: &mut [Finding], network: &[Finding]) {
    for group in findings
        .iter_mut()
        .filter(|finding| finding.kind == FindingKind::OneOfGroup && finding.cause == Cause::Compute)
    {
        let explains = |slow: &&Finding| {
            let meets = slow.names_nodes && slow.ranks.iter().any(|rank| group.ranks.contains(rank));
            meets && slow.cost.unwrap_or(0.0) >= EXPLAINED_BY_TRANSFERS * group.cost.unwrap_or(0.0)
        };
        if network.iter().any(|slow| explains(&slow)) {
            group.kind = FindingKind::Suspect;
            group.named = false;
            group.says += "; they wait in their passes for the one of them whose transfers are slow";
        }
    }
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

/// What a finding weighs: its part in what all cost, else its cost by itself.
fn weight(finding: &Finding) -> f64 {
    finding.cost_part_seconds.or(finding.cost).unwrap_or(0.0)
}

/// Named ranks and nodes first, then by kind, cost and rank.
pub(super) fn by_weight(a: &Finding, b: &Finding) -> std::cmp::Ordering {
    let cost = weight;
    let names = |finding: &Finding| finding.named || finding.names_nodes;
    names(b)
        .cmp(&names(a))
        .then_with(|| {
            if names(a) {
                cost(b).total_cmp(&cost(a))
            } else {
                a.kind.cmp(&b.kind)
            }
        })
        .then_with(|| cost(b).total_cmp(&cost(a)))
        .then_with(|| a.ranks.cmp(&b.ranks))
        .then_with(|| a.first_iteration.cmp(&b.first_iteration))
}

/// The costliest fault; without one the costliest imbalance. An imbalance is a property of the job.
pub(in crate::rules) fn cause(findings: &[Finding]) -> Cause {
    let is_fault = |finding: &&Finding| finding.kind.is_fault();
    let is_imbalance = |finding: &&Finding| finding.kind == FindingKind::Imbalance;
    costliest(findings.iter().filter(is_fault))
        .or_else(|| costliest(findings.iter().filter(is_imbalance)))
        .map_or(Cause::None, |finding| finding.cause)
}

/// The first of those with the highest cost.
fn costliest<'a>(findings: impl Iterator<Item = &'a Finding>) -> Option<&'a Finding> {
    findings.fold(None, |best: Option<&Finding>, next| match best {
        Some(best) if weight(next) <= weight(best) => Some(best),
        _ => Some(next),
    })
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
    use std::time::Instant;

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
    fn a_group_that_waits_for_slow_transfers_does_not_compute_slowly() {
        let group = |cost| Finding {
            named: true,
            ranks: vec![4, 5],
            cost: Some(cost),
            ..Finding::new(FindingKind::OneOfGroup, Cause::Compute, 9)
        };
        let network = Finding {
            names_nodes: true,
            ranks: vec![5],
            cost: Some(0.03),
            ..Finding::new(FindingKind::SlowNetwork, Cause::Network, 9)
        };
        let mut findings = [group(0.04), group(0.5)];
        acquit_groups_that_wait(&mut findings, &[network]);
        assert_eq!(findings.each_ref().map(|finding| finding.named), [false, true]);
        assert_eq!(findings[0].kind, FindingKind::Suspect);
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

    #[test]
    #[ignore = "measures time, on a quiet machine"]
    fn a_large_healthy_job_takes_half_a_second_on_one_core() {
        let pool = rayon::ThreadPoolBuilder::new()
            .num_threads(1)
            .build()
            .expect("a thread");
        for stages in [1, 8] {
            let job = job(stages, 10_240 / stages, 30, |_, _| 1.0);
            let fastest = (0..5)
                .map(|_| {
                    let begin = Instant::now();
                    assert!(pool.install(|| anomalies(&job)).is_empty());
                    begin.elapsed().as_secs_f64()
                })
                .fold(f64::INFINITY, f64::min);
            println!("{stages} stages: {fastest:.3} s");
            assert!(fastest < 0.5, "{fastest:.3} s");
        }
    }
}
