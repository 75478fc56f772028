//! Communication: which transfers are slow, who is behind them, and who waits for whom.
//!
//! Data flows `links` (who sends to whom) -> `transfers` (how long each takes without waiting) -> `flows` (which are slow
//! beside those of their kind, lastingly) -> `culprits` (a rank's sending or receiving, a link, a node's network; the
//! `collectives` of data-parallel groups tell ends apart) -> `findings`. `waits` splits each rank's time. All of it is
//! `O(calls)` and some sorts, in parallel over links.

pub mod classic;
pub mod collectives;
pub mod culprits;
mod findings;
pub mod flows;
pub mod links;
pub mod transfers;
pub mod waits;

use std::collections::BTreeSet;

use self::collectives::Collectives;
use self::findings::Writer;
use self::flows::Flow;
use self::transfers::Basis;
use self::waits::Waits;
use crate::features::STEP_TIMER;
use crate::job::Job;
use crate::rules::Finding;
use crate::rules::peer::PeerSettings;
use crate::rules::peer::robust::median;

/// The fused timers that only interleaved schedules have.
const INTERLEAVED: [&str; 3] = [
    "forward-send-forward-recv",
    "backward-send-backward-recv",
    "forward-backward-send-forward-backward-recv",
];

/// What is known of a job's communication.
#[derive(Debug, Clone, Default)]
pub struct Communication {
    /// What was looked at, and what could not be told, in one sentence.
    pub told: String,
    /// Both directions of every link; none where communication was not looked at.
    pub flows: Vec<Flow>,
    /// The time of every rank; none where communication was not looked at.
    pub waits: Vec<Waits>,
    /// What was found.
    pub findings: Vec<Finding>,
}

impl Communication {
    /// Nodes whose network is slow, sorted.
    #[must_use]
    pub fn nodes(&self) -> Vec<String> {
        let named = self.findings.iter().filter(|finding| finding.names_nodes);
        let nodes: BTreeSet<&String> = named.flat_map(|finding| &finding.nodes).collect();
        nodes.into_iter().cloned().collect()
    }

    fn untold(told: impl Into<String>) -> Self {
        Self {
            told: told.into(),
            ..Self::default()
        }
    }
}

/// Looks for slow transfers; ranks (positions) that `compute_slowly` explain their own links.
#[must_use]
pub fn look(job: &Job, settings: &PeerSettings, compute_slowly: &BTreeSet<usize>) -> Communication {
    if job.topology.pipeline_stages() < 2 {
        return Communication::untold("skipped: the job has one pipeline stage, as far as is known, and no transfers between stages");
    }
    if is_interleaved(job) {
        return Communication::untold("skipped: an interleaved schedule");
    }
    let links = links::links(job, false);
    let (basis, measured) = transfers::measure(job, &links);
    let flows = flows::judge(&links, &measured, settings);
    let collectives = Collectives::of(job);
    let waits = waits::waits(job, &links, &measured);
    let writer = Writer {
        job,
        links: &links,
        measured: &measured,
        flows: &flows,
        collectives: &collectives,
        step_seconds: step_seconds(job, &waits),
    };
    let culprits = culprits::explain(job, &flows, &collectives);
    let findings: Vec<Finding> = culprits
        .iter()
        .filter(|culprit| !culprit.is_explained_by(compute_slowly))
        .map(|culprit| writer.culprit(culprit))
        .collect();
    Communication {
        told: told(basis, &flows),
        flows,
        waits,
        findings,
    }
}

fn is_interleaved(job: &Job) -> bool {
    let ran = |name: &&str| {
        job.calls.iter().any(|table| table.name == **name)
            || job.timer(name).is_some_and(|timer| timer.seconds.iter().any(|&seconds| seconds > 0.0))
    };
    INTERLEAVED.iter().any(|name| ran(name))
}

fn told(basis: Basis, flows: &[Flow]) -> String {
    let measured = flows.iter().filter(|flow| flow.seconds.is_finite()).count();
    let compared = flows.iter().filter(|flow| flow.is_compared()).count();
    let slow = flows.iter().filter(|flow| flow.slow.is_some()).count();
    if measured == 0 {
        return "no transfer could be measured: no iteration has calls of both ends of a link".to_owned();
    }
    let from = match basis {
        Basis::Calls => "from single calls",
        Basis::Sums => {
            "from the sums of an iteration (no megatron_timers_trace rows): where a rank makes several plain calls in it, \
             waiting is not told from transfer, and only transfers that take many times the usual stand out"
        }
    };
    format!("{compared} of {measured} transfers compared, {slow} slow, {from}")
}

/// The usual step: the longest of any rank, the median over the iterations; without a timer of it the longest sum of
/// what its ranks do.
fn step_seconds(job: &Job, waits: &[Waits]) -> f64 {
    if let Some(step) = job.timer(STEP_TIMER) {
        let longest = step.seconds.columns().into_iter().map(|column| column.iter().copied().fold(f64::NAN, f64::max));
        return median(longest);
    }
    let sums = waits.iter().map(|waits| waits.compute + waits.transfer + waits.waiting);
    sums.fold(f64::NAN, f64::max)
}
