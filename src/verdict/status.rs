//! What a verdict comes to, for monitors.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{Finding, FindingKind};

/// What a verdict comes to. Of several the one that comes last here counts.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Status {
    /// It was looked at, and nothing is wrong.
    #[default]
    Healthy,
    /// Time is lost to stages or data; nobody is to blame.
    Imbalance,
    /// Nothing could be judged, or not enough to say that nothing is wrong.
    CannotTell,
    /// Somebody, a network or the storage is to blame.
    Fault,
}

impl Status {
    /// The word in reports.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Healthy => "healthy",
            Self::Imbalance => "imbalance",
            Self::CannotTell => "cannot-tell",
            Self::Fault => "fault",
        }
    }

    /// What findings come to where `unjudged` tells what could not be judged, if anything.
    #[must_use]
    pub fn of(findings: &[Finding], unjudged: Option<&str>) -> Self {
        if findings.iter().any(|finding| finding.kind.is_fault()) {
            Self::Fault
        } else if unjudged.is_some() {
            Self::CannotTell
        } else if findings.iter().any(|finding| finding.kind == FindingKind::Imbalance) {
            Self::Imbalance
        } else {
            Self::Healthy
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::verdict::Cause;

    #[test]
    fn a_fault_counts_whatever_could_not_be_judged() {
        let of = |kinds: &[FindingKind], unjudged| {
            let findings: Vec<Finding> = kinds.iter().map(|&kind| Finding::new(kind, Cause::None, 9)).collect();
            Status::of(&findings, unjudged)
        };
        assert_eq!(of(&[], None), Status::Healthy);
        assert_eq!(of(&[FindingKind::Transient, FindingKind::Stall], None), Status::Healthy);
        assert_eq!(of(&[FindingKind::Imbalance], None), Status::Imbalance);
        assert_eq!(of(&[FindingKind::Imbalance], Some("too short")), Status::CannotTell);
        assert_eq!(
            of(&[FindingKind::SlowLink, FindingKind::Imbalance], Some("x")),
            Status::Fault
        );
    }
}
