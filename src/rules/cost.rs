//! What the findings cost: the job's steps replayed with each of them mended.

use super::{Verdict, peer};
use crate::job::Job;
use crate::verdict::{Cause, Finding, FindingKind};
use crate::whatif::timers::{Asked, Fault, Target, WhatIf, what_if};

/// Puts what each finding costs in place of the rules' first estimate, and ranks them and the cause by it. Where the
/// steps can't be replayed the estimates rank, and are not told.
pub(super) fn with_costs(job: &Job, mut verdict: Verdict) -> Verdict {
    let (places, faults): (Vec<usize>, Vec<Fault>) = verdict
        .findings
        .iter()
        .enumerate()
        .filter_map(|(place, finding)| Some((place, fault_of(finding)?)))
        .unzip();
    let answer = what_if(job, &faults, Asked::default());
    let told = answer.reason.is_none();
    if told {
        verdict.findings.iter_mut().for_each(|finding| finding.cost = None);
    }
    for (place, cost) in places.into_iter().zip(&answer.faults) {
        let finding = &mut verdict.findings[place];
        finding.cost = Some(cost.growth);
        finding.cost_seconds = Some(cost.seconds);
        finding.cost_gpu_hours = Some(cost.gpu_hours);
        finding.cost_part_seconds = Some(cost.part_seconds);
    }
    verdict.findings.sort_by(peer::by_weight);
    verdict.cause = cause(&verdict.findings, &answer);
    if !told {
        verdict.findings.iter_mut().for_each(|finding| finding.cost = None);
    }
    verdict.what_if = Some(answer);
    verdict
}

/// The costliest cause. Of uneven stages and uneven data the one that costs more to leave as it is: a heavy stage's own cost
/// is that of its work, of which the other stages would get a share.
fn cause(findings: &[Finding], answer: &WhatIf) -> Cause {
    let costliest = peer::cause(findings);
    let found = |cause| {
        findings
            .iter()
            .any(|finding| finding.kind == FindingKind::Imbalance && finding.cause == cause)
    };
    let imbalance = matches!(costliest, Cause::StageImbalance | Cause::DataImbalance);
    match (answer.stages_share, answer.data_share) {
        (Some(stages), Some(data)) if imbalance && found(Cause::StageImbalance) && found(Cause::DataImbalance) => {
            if data > stages {
                Cause::DataImbalance
            } else {
                Cause::StageImbalance
            }
        }
        _ => costliest,
    }
}

/// What to mend of a finding; `None` where there is nothing to: a pause, a suspicion, what has passed.
fn fault_of(finding: &Finding) -> Option<Fault> {
    let ranks = || finding.ranks.clone();
    let target = match (finding.kind, finding.cause) {
        (FindingKind::Imbalance, Cause::StageImbalance) => Target::Stages(finding.stages.clone()),
        (FindingKind::Imbalance, Cause::DataImbalance) => Target::Data,
        (kind, _) if !kind.is_fault() => return None,
        (_, Cause::Compute) => Target::Computing(ranks()),
        (_, Cause::DataLoading) => Target::Loading(ranks()),
        (FindingKind::SlowLink, Cause::Network) if !finding.links.is_empty() => {
            let ends = finding.links.iter().map(|link| (link.sender, link.receiver));
            Target::Links(ends.collect())
        }
        (_, Cause::Network) => Target::Network(ranks()),
        _ => return None,
    };
    Some(Fault {
        target,
        first_iteration: finding.onset,
        last_iteration: finding.until,
        factor: finding.factor,
    })
}
