//! Communication: which transfers are slow, who is behind them, and who waits for whom.
//!
//! Data flows `links` (who sends to whom) -> `transfers` (how long each takes without waiting) -> `flows` (which are slow
//! beside those of their kind, lastingly) -> `culprits` (a rank's sending or receiving, a link, a node's network; the
//! `collectives` of data-parallel groups tell ends apart) -> `findings`. `waits` splits each rank's time. All of it is
//! `O(calls)` and some sorts, in parallel over links.
//!
//! In: a job, and which ranks compute slowly. Out: flows, waits, findings about transfers and collectives. May use: `job`,
//! `stats`, `verdict`, `contract`.

mod arrivals;
pub mod classic;
pub mod collectives;
mod cost;
pub mod culprits;
mod findings;
pub mod flows;
#[cfg(test)]
mod group_tests;
mod groups;
mod interleaved;
pub mod links;
#[cfg(test)]
mod samples;
mod slow_groups;
#[cfg(test)]
mod tests;
pub mod thresholds;
pub mod transfers;
pub mod waits;
pub mod ways;

use std::collections::BTreeSet;

use self::collectives::Collectives;
use self::cost::Steps;
use self::findings::NetworkFindings;
use self::flows::{Flow, Judged};
use self::transfers::Basis;
use self::waits::Waits;
use self::ways::StageNetwork;
use crate::contract::constant::Movable;
use crate::contract::timers::INTERLEAVED_TRANSFERS;
use crate::job::Job;
use crate::verdict::Finding;
use crate::verdict::Persistence;

/// The numbers by which transfers and collectives are judged.
pub(crate) fn constants() -> impl Iterator<Item = &'static dyn Movable> {
    [thresholds::CONSTANTS, classic::CONSTANTS]
        .into_iter()
        .flatten()
        .copied()
}

/// Jobs without links.
const NO_LINKS: &str = "skipped: one pipeline stage, as far as is known, so no transfers between stages";

/// What is known of a job's communication.
#[derive(Debug, Clone, Default)]
pub struct Communication {
    /// What was looked at, and what could not be told, in one sentence.
    pub summary: String,
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
}

/// Ranks (positions) whose computing is known to be slow: they explain transfers that look slow.
#[derive(Debug, Clone, Default)]
pub struct SlowComputing {
    /// Those that are slow themselves.
    pub ranks: BTreeSet<usize>,
    /// These, and those of groups of which at least one is slow.
    pub suspects: BTreeSet<usize>,
}

impl SlowComputing {
    /// Ranks that are slow themselves.
    #[must_use]
    pub fn of_ranks(ranks: impl IntoIterator<Item = usize>) -> Self {
        let ranks: BTreeSet<usize> = ranks.into_iter().collect();
        Self {
            suspects: ranks.clone(),
            ranks,
        }
    }
}

/// Looks for slow transfers beside what is known of slow computing.
#[must_use]
pub fn look(job: &Job, persistence: &Persistence, computing: &SlowComputing) -> Communication {
    if job.topology.pipeline_stages() < 2 {
        return one_stage(job, persistence, computing);
    }
    if is_interleaved(job) {
        return interleaved(job, persistence, computing);
    }
    let links = links::links(job, false);
    let (basis, measured) = transfers::measure(job, &links);
    let collectives = Collectives::of(job);
    let stages: Vec<StageNetwork> = (0..job.topology.pipeline_stages())
        .map(|stage| StageNetwork {
            slow_collectives: collectives.is_slow_stage(stage),
            on_one_node: is_on_one_node(job, stage),
        })
        .collect();
    let Judged { flows, long_ways } = flows::judge(&links, &measured, &stages, persistence);
    let waits = waits::waits(job, &links, &measured);
    let steps = Steps::of(job, longest(&waits));
    let writer = NetworkFindings {
        job,
        links: &links,
        measured: &measured,
        flows: &flows,
        collectives: &collectives,
        steps: &steps,
    };
    let culprits = culprits::explain(job, &flows, &collectives);
    let mut findings: Vec<Finding> = culprits
        .iter()
        .filter(|culprit| !culprit.is_explained_by(&computing.ranks))
        .map(|culprit| writer.culprit(culprit))
        .collect();
    let met: BTreeSet<usize> = culprits
        .iter()
        .flat_map(|culprit| &culprit.flows)
        .flat_map(|&flow| [flows[flow].sender, flows[flow].receiver])
        .collect();
    let groups = groups::judge(job, &met, computing, &steps, persistence);
    findings.extend(groups.findings);
    let ways = long_ways.iter().map(|(stage, factor)| {
        format!(
            "all transfers between stages {stage} and {} take {factor:.1} x the others': a longer way, no fault",
            stage + 1
        )
    });
    let told: Vec<String> = [told(basis, &flows)]
        .into_iter()
        .chain(ways)
        .chain(groups.told)
        .collect();
    Communication {
        summary: told.join("; "),
        flows,
        waits,
        findings,
    }
}

/// Nothing but collectives.
fn one_stage(job: &Job, persistence: &Persistence, computing: &SlowComputing) -> Communication {
    let steps = Steps::of(job, f64::NAN);
    let groups = groups::judge(job, &BTreeSet::new(), computing, &steps, persistence);
    let also = if groups.told.is_empty() {
        "too few data-parallel groups to compare their collectives".to_owned()
    } else {
        groups.told.join("; ")
    };
    Communication {
        summary: format!("{NO_LINKS}; {also}"),
        findings: groups.findings,
        ..Communication::default()
    }
}

/// Fused calls only bound transfers: pipelines are compared as a whole.
fn interleaved(job: &Job, persistence: &Persistence, computing: &SlowComputing) -> Communication {
    let collectives = Collectives::of(job);
    let steps = Steps::of(job, f64::NAN);
    let (compared, mut findings) = interleaved::findings(job, &collectives, computing, &steps, persistence);
    let told = if compared == 0 {
        "interleaved schedule without single calls of several pipelines: no transfer could be compared".to_owned()
    } else {
        format!(
            "interleaved schedule: fused calls do not tell single links, so the shortest calls of {compared} pipelines are \
             compared; the first and the last transfers of a step tell the link, the collectives of data-parallel groups the rank"
        )
    };
    let accused = findings.iter().flat_map(|finding| &finding.ranks);
    let met = accused.filter_map(|rank| job.ranks.binary_search(rank).ok()).collect();
    let groups = groups::judge(job, &met, computing, &steps, persistence);
    findings.extend(groups.findings);
    let told: Vec<String> = [told].into_iter().chain(groups.told).collect();
    Communication {
        summary: told.join("; "),
        findings,
        ..Communication::default()
    }
}

fn is_on_one_node(job: &Job, stage: u32) -> bool {
    let ranks = job.topology.places.iter().zip(&job.nodes);
    let mut nodes = ranks.filter(|(place, _)| place.stage == stage).map(|(_, node)| node);
    nodes.next().is_some_and(|first| nodes.all(|node| node == first))
}

fn is_interleaved(job: &Job) -> bool {
    let ran = |name: &str| {
        job.calls.iter().any(|table| table.name == name)
            || job
                .timer(name)
                .is_some_and(|timer| timer.seconds.iter().any(|&seconds| seconds > 0.0))
    };
    INTERLEAVED_TRANSFERS.into_iter().any(ran)
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
            "from the sums of an iteration (no megatron_timers_trace rows), which tell waiting from transfer only where \
             both ends make one plain call in it: between the last two stages, if other calls have timers of their own"
        }
    };
    format!("{compared} of {measured} transfers compared, {slow} slow, {from}")
}

/// The longest sum of what a rank does in a step, seconds: the step, where no timer tells its length.
fn longest(waits: &[Waits]) -> f64 {
    let sums = waits.iter().map(|waits| waits.compute + waits.transfer + waits.waiting);
    sums.fold(f64::NAN, f64::max)
}
