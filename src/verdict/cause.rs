//! What a job loses time by.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// What costs the job most.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Cause {
    /// Nobody stands out.
    #[default]
    None,
    /// Ranks that compute slowly.
    Compute,
    /// Ranks or links that communicate slowly.
    Network,
    /// Ranks that wait for their data loader.
    DataLoading,
    /// A pipeline stage with more work than the others.
    StageImbalance,
    /// Pipelines or ranks that get more data than the others.
    DataImbalance,
}

impl Cause {
    /// The word in the report.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::None => "none",
            Self::Compute => "compute",
            Self::Network => "network",
            Self::DataLoading => "data-loading",
            Self::StageImbalance => "stage-imbalance",
            Self::DataImbalance => "data-imbalance",
        }
    }
}
