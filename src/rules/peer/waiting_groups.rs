//! Groups whose members wait inside their passes for a peer with slow transfers are not slow.

use crate::contract::constant::constants;
use crate::verdict::{Cause, Finding, FindingKind};

constants! {
    /// Share of a group's cost that the slow transfers of a member must cost to explain it.
    EXPLAINED_BY_TRANSFERS: f64 = 1.0 / 3.0;
}

/// Takes back what groups are accused of whose members wait inside their passes for a peer with slow transfers.
pub(super) fn acquit_groups_that_wait(findings: &mut [Finding], network: &[Finding]) {
    for group in findings
        .iter_mut()
        .filter(|finding| finding.kind == FindingKind::OneOfGroup && finding.cause == Cause::Compute)
    {
        let explains = |slow: &&Finding| {
            let meets = slow.names_nodes && slow.ranks.iter().any(|rank| group.ranks.contains(rank));
            meets && slow.cost.unwrap_or(0.0) >= EXPLAINED_BY_TRANSFERS.get() * group.cost.unwrap_or(0.0)
        };
        if network.iter().any(|slow| explains(&slow)) {
            group.kind = FindingKind::Suspect;
            group.named = false;
            group.says += "; they wait in their passes for the one of them whose transfers are slow";
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

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
}
