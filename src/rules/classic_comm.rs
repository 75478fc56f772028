//! What the classic rules say of communication.

use crate::comm::Communication;
use crate::comm::classic::{ClassicThresholds, Evidence, FaultPlace, Worker, may_be_abnormal, workers};
use crate::job::Job;
use crate::verdict::{Cause, Finding, FindingKind, words};

/// With fewer stages every rank has one link, which tells nothing of its other end.
const LEAST_STAGES: u32 = 3;

/// Judges communication; `compute_slow` are the elected ranks (positions).
pub(super) fn communication(job: &Job, thresholds: &ClassicThresholds, compute_slow: &[usize]) -> Communication {
    let stages = job.topology.stated_pipeline_stages();
    let untold = |told: &str| Communication {
        summary: told.to_owned(),
        ..Communication::default()
    };
    if stages < 2 {
        return untold("skipped: one pipeline stage, as far as rows or flags state");
    }
    if stages < LEAST_STAGES {
        return two_stages(job, thresholds);
    }
    if job.calls.is_empty() {
        return untold("skipped: no megatron_timers_trace rows of transfers");
    }
    let workers = workers(job, thresholds, compute_slow);
    let count = |place: FaultPlace| workers.iter().filter(|worker| worker.place == place).count();
    // Waiting spreads over the whole job; when most ranks are suspect, that tells no place.
    let tells = 2 * count(FaultPlace::Network) <= job.ranks.len();
    Communication {
        summary: format!(
            "of {} ranks {} suspect on all links at both ends, {} on some links at both ends, {} at their own end only, {} compute slowly too",
            job.ranks.len(),
            count(FaultPlace::Network),
            count(FaultPlace::Link),
            count(FaultPlace::OneEnd),
            count(FaultPlace::Card)
        ),
        findings: workers
            .iter()
            .filter(|worker| tells && worker.place == FaultPlace::Network)
            .map(|worker| finding(job, worker))
            .collect(),
        ..Communication::default()
    }
}

fn two_stages(job: &Job, thresholds: &ClassicThresholds) -> Communication {
    let abnormal = may_be_abnormal(job, thresholds.threshold);
    let told = if abnormal.is_empty() {
        "two stages have too few signals; in slow iterations it takes no longer than in fast ones".to_owned()
    } else {
        let ranks: Vec<u32> = abnormal.iter().map(|&(rank, _)| job.ranks[rank]).collect();
        let most = abnormal.iter().map(|(_, ratio)| *ratio).fold(0.0, f64::max);
        let who = words::ranks(&ranks);
        format!(
            "may be abnormal on {who}: up to {most:.2} x in slow iterations; two stages have too few signals to say more"
        )
    };
    Communication {
        summary: told,
        ..Communication::default()
    }
}

fn finding(job: &Job, worker: &Worker) -> Finding {
    let (rank, node) = (job.ranks[worker.rank], &job.nodes[worker.rank]);
    let evidence = |one: &Evidence| {
        let times = words::number(one.iterations, "iteration");
        format!("{} {:.2} x by {} in {times}", one.timer, one.ratio, one.rule.name())
    };
    let evidence: Vec<String> = worker.evidence.iter().map(evidence).collect();
    Finding {
        says: format!(
            "the network of {} on {} is suspect: every link of it is, at both ends",
            words::ranks(&[rank]),
            words::nodes(std::slice::from_ref(node))
        ),
        names_nodes: true,
        ranks: vec![rank],
        nodes: vec![node.clone()],
        stages: job.topology.stage(worker.rank).into_iter().collect(),
        slow_iterations: worker.evidence.iter().map(|one| one.iterations).max(),
        decided_by: Some(format!("cross-validation: {}", evidence.join("; "))),
        ..Finding::new(FindingKind::SlowNetwork, Cause::Network, job.iterations.len())
    }
}
