//! What is known of a watched job, as it is kept and shown: its state, steps, hangs and verdicts.

use serde::{Deserialize, Serialize};

use crate::source::Micros;

/// What a job is doing.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum State {
    /// Its steps take their usual time, as far as is known.
    Active,
    /// Its last step was slow.
    Slowdown,
    /// A slow window is being analysed.
    Predicting,
    /// A slow window was analysed, and the steps are still slow.
    Detected,
    /// No new iteration for a while.
    Hanging,
    /// No new iteration for a long time.
    Finished,
}

impl State {
    /// All of them.
    pub const ALL: [Self; 6] = [
        Self::Active,
        Self::Slowdown,
        Self::Predicting,
        Self::Detected,
        Self::Hanging,
        Self::Finished,
    ];

    /// The word for it.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Active => "active",
            Self::Slowdown => "slowdown",
            Self::Predicting => "predicting",
            Self::Detected => "detected",
            Self::Hanging => "hanging",
            Self::Finished => "finished",
        }
    }
}

/// An iteration of a run.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct SeenStep {
    /// The run.
    pub run: String,
    /// The iteration.
    pub iteration: i64,
    /// Seconds.
    pub seconds: f64,
    /// Time of its latest row.
    pub time: Micros,
}

/// What an analysis of a slow window gave.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Detection {
    /// First slow iteration.
    pub first_iteration: i64,
    /// Last one that was analysed.
    pub last_iteration: i64,
    /// When the analysis was asked for.
    pub asked: Micros,
    /// When it ended.
    pub ended: Micros,
    /// The verdict's status; `None` where the analysis failed.
    pub status: Option<String>,
    /// Cause of the verdict.
    pub cause: String,
    /// Slow ranks.
    pub ranks: Vec<u32>,
    /// Their nodes.
    pub nodes: Vec<String>,
    /// The findings' headlines.
    pub findings: Vec<String>,
    /// Growth of the step that the weightiest finding costs, where the verdict tells it.
    pub cost: Option<f64>,
    /// Its result folder, below the state's.
    pub folder: Option<String>,
    /// Why there is no verdict.
    pub error: Option<String>,
}

impl Detection {
    /// Whether it names anybody.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.ranks.is_empty() && self.nodes.is_empty()
    }
}

/// What is known of a job that hangs.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Hang {
    /// When the last iteration was seen.
    pub since: Micros,
    /// When it was found to hang.
    pub noticed: Micros,
    /// Last iteration of any rank.
    pub last_iteration: Option<i64>,
    /// Ranks whose rows of that iteration are missing, at most so many as a page shows.
    pub behind: Vec<RankBehind>,
    /// How many ranks are behind.
    pub ranks_behind: usize,
}

/// A rank whose last rows are of an earlier iteration than the others'.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct RankBehind {
    /// The rank.
    pub rank: i64,
    /// Its node.
    pub node: String,
    /// Its last iteration.
    pub iteration: i64,
    /// The last timer seen of it.
    pub last_timer: String,
}

/// An analysis that is due.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Due {
    /// Job id.
    pub job: String,
    /// Slow iterations, first and last.
    pub iterations: (i64, i64),
    /// Rows before it belong to others.
    pub registered: Micros,
    /// When it became due.
    pub asked: Micros,
}
