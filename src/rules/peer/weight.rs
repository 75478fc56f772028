//! What findings weigh against each other: their order, and the cause that costs most.

use crate::verdict::{Cause, Finding, FindingKind};

/// What a finding weighs: its part in what all cost, else its cost by itself.
fn weight(finding: &Finding) -> f64 {
    finding.cost_part_seconds.or(finding.cost).unwrap_or(0.0)
}

/// Named ranks and nodes first, then by kind, cost and rank.
pub(in crate::rules) fn by_weight(a: &Finding, b: &Finding) -> std::cmp::Ordering {
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
