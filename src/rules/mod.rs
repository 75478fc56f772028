//! The rules that turn a job's tables into a verdict. Each set of rules chooses what is clustered and what it takes
//! to be named; the algorithms, the votes and the report are the same for all.

pub mod classic;

use schemars::JsonSchema;
use serde::Serialize;

use crate::algos::Scores;
use crate::features::TimerVerdict;
use crate::vote::RankBallot;

/// What costs the job most.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Cause {
    /// Nobody stands out.
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

/// How an algorithm labelled one timer.
#[derive(Debug, Clone)]
pub struct TimerLabels {
    /// Position of the timer in [`Verdict::timers`].
    pub timer: usize,
    /// The parameters that won the grid; `None` when no candidate had two clusters.
    pub parameters: Option<String>,
    /// Clusters before folding to two.
    pub clusters: usize,
    /// Scores of the winner.
    pub scores: Option<Scores>,
    /// Whether each rank is slow.
    pub slow: Vec<bool>,
}

/// What one algorithm says.
#[derive(Debug, Clone)]
pub struct AlgorithmVerdict {
    /// Name of the algorithm.
    pub name: &'static str,
    /// Its labels, one entry a clustered timer.
    pub timers: Vec<TimerLabels>,
    /// Its vote on each rank, after every rule.
    pub ranks: Vec<RankBallot>,
}

/// What the rules say of a job; ranks are positions in the job's list of ranks.
#[derive(Debug, Clone)]
pub struct Verdict {
    /// Every timer with its fate.
    pub timers: Vec<TimerVerdict>,
    /// What each algorithm says.
    pub algorithms: Vec<AlgorithmVerdict>,
    /// Algorithms that call each rank slow.
    pub votes: Vec<u32>,
    /// The anomaly ranks, ascending.
    pub anomalies: Vec<usize>,
    /// Compute time of each rank over the fastest rank's in the slowest steps, where it was measured.
    pub slow_step_ratio: Vec<Option<f64>>,
    /// What costs the job most.
    pub cause: Cause,
}
