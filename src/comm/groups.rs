//! Data-parallel groups whose collective is slower than that of the other groups of their stage, lastingly.
//!
//! Groups of one stage reduce the same number of parameters; those of different stages do not. Every node has a member in
//! most groups, so the finding names no node.

use std::collections::{BTreeMap, BTreeSet};

use super::collectives::Collectives;
use super::findings::{about, cost_of, when};
use super::flows::{Comparison, SlowFlow, logs};
use crate::job::Job;
use crate::verdict::Persistence;
use crate::verdict::{Finding, FindingKind, words};

/// Groups of each stage, those of several ranks.
fn by_stage(collectives: &Collectives) -> Vec<Vec<usize>> {
    let mut stages = BTreeMap::<u32, Vec<usize>>::new();
    for (group, members) in collectives.members.iter().enumerate() {
        if members.len() > 1 {
            stages.entry(collectives.stages[group]).or_default().push(group);
        }
    }
    stages.into_values().collect()
}

/// How many groups have enough others to be compared with.
pub(super) fn compared(collectives: &Collectives) -> usize {
    let stages = by_stage(collectives);
    let enough = |groups: &&Vec<usize>| groups.len() >= super::flows::FEWEST;
    stages.iter().filter(enough).map(Vec::len).sum()
}

/// The slow groups; those with a rank that slow transfers meet are explained by them.
pub(super) fn findings(
    job: &Job,
    collectives: &Collectives,
    met: &BTreeSet<usize>,
    step_seconds: f64,
    persistence: &Persistence,
) -> Vec<Finding> {
    let Some(timer) = collectives.timer else {
        return Vec::new();
    };
    let mut findings = Vec::new();
    for groups in by_stage(collectives) {
        let logs: Vec<Vec<f64>> = groups.iter().map(|&group| logs(&collectives.seconds[group])).collect();
        let rows: Vec<&[f64]> = logs.iter().map(Vec::as_slice).collect();
        let Some(comparison) = Comparison::new(&rows) else {
            continue;
        };
        for (place, &group) in groups.iter().enumerate() {
            let members = &collectives.members[group];
            if members.iter().any(|rank| met.contains(rank)) {
                continue;
            }
            if let Some(slow) = comparison.slow(place, persistence) {
                findings.push(finding(job, timer, members, &slow, step_seconds));
            }
        }
    }
    findings
}

fn finding(job: &Job, timer: &str, members: &[usize], slow: &SlowFlow, step_seconds: f64) -> Finding {
    let ranks: BTreeSet<usize> = members.iter().copied().collect();
    let mut finding = about(job, FindingKind::SlowNetwork, &ranks, &slow.steps.slow);
    finding.factor = Some(slow.factor);
    finding.cost = cost_of(slow.extra * slow.steps.share(), step_seconds);
    finding.decided_by = Some(format!(
        "collective: the member that waits least in {timer} still takes {:.1} x the time of the stage's other groups",
        slow.factor
    ));
    finding.says = format!(
        "one of {} has a slow network, the timers do not tell which: their {timer} takes {:.1} x that of the other \
         data-parallel groups{}",
        words::ranks(&finding.ranks),
        slow.factor,
        when(&finding)
    );
    finding
}
