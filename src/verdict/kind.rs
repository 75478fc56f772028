//! The kinds of findings, and what each is: the one place to add a kind.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// What sort of thing was found.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum FindingKind {
    /// Ranks that are slow themselves.
    SlowRank,
    /// Ranks that wait for each other, at least one of which is slow; the timers can't tell which.
    OneOfGroup,
    /// Ranks or a node that send or receive slowly.
    SlowNetwork,
    /// A link that is slow, or one of its ends; the timers can't tell which.
    SlowLink,
    /// Ranks that all bear alike, so that nobody stands out.
    JobWide,
    /// Work that is shared out unevenly: a property of the job, nobody's fault.
    Imbalance,
    /// Ranks that pass the floors but not the vote of the algorithms.
    Suspect,
    /// Ranks that were slow for a few steps only.
    Transient,
    /// A step that took far longer than its neighbours on all ranks.
    Stall,
    /// Steps that were slow, where the input tells nothing of single ranks.
    SlowSteps,
    /// Ranks that another program's report names: its word, not compared here.
    Candidate,
}

impl FindingKind {
    /// The word in the report.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::SlowRank => "slow-rank",
            Self::OneOfGroup => "one-of-group",
            Self::SlowNetwork => "slow-network",
            Self::SlowLink => "slow-link",
            Self::JobWide => "job-wide",
            Self::Imbalance => "imbalance",
            Self::Suspect => "suspect",
            Self::Transient => "transient",
            Self::Stall => "stall",
            Self::SlowSteps => "slow-steps",
            Self::Candidate => "candidate",
        }
    }

    /// Whether somebody, or a network, is to blame: what a monitor must hear of.
    #[must_use]
    pub fn is_fault(self) -> bool {
        match self {
            Self::SlowRank | Self::OneOfGroup | Self::SlowNetwork | Self::SlowLink | Self::JobWide => true,
            Self::Imbalance | Self::Suspect | Self::Transient | Self::Stall | Self::SlowSteps | Self::Candidate => {
                false
            }
        }
    }
}
