//! The constants of the peer rules. None of them is fitted to a job; each says why it has its value.

use std::collections::BTreeSet;

use schemars::JsonSchema;
use serde::Serialize;

use crate::verdict::Persistence;

/// A part of the peer rules that can be left out, to see what it buys.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Ablation {
    /// Comparing ranks with those of their own stage: without it all ranks are peers.
    Peers,
    /// Taking a pipeline's load out of its ranks' times.
    PipelineLoad,
    /// Change points: without it a fault that began or ended is judged by the whole window.
    ChangePoint,
    /// Persistence: leaving out the slowest steps of a mean, and naming only what lasts.
    Persistence,
    /// Telling that more than half is slow.
    Majority,
    /// The noise floor: without it the effect floor alone is to be passed.
    NoiseFloor,
    /// The agreement of forward, backward and qkv.
    Agreement,
    /// The vote of the algorithms.
    Vote,
}

/// Thresholds of the peer rules. Excesses are natural logarithms: 0.025 is 2.5 % slower.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct PeerSettings {
    /// Least excess that is a fault. Chips of one kind differ lastingly by 0.5-1 %; below 2.5 % nobody swaps a node.
    pub effect_floor: f64,
    /// Chance that the noise alone passes the noise floor somewhere in a healthy job (Bonferroni over rows and
    /// segments), were it normal. Calls that now and then take twice as long make heavier tails: of 1,000 simulated
    /// healthy jobs at most one names somebody.
    pub false_alarm_rate: f64,
    /// What lasts.
    #[serde(flatten)]
    pub persistence: Persistence,
    /// Least lasting spread of peers: guards against a spread that is small by luck.
    pub least_spread: f64,
    /// Usual lasting spread of peers (silicon, cooling, place in the rack).
    pub usual_spread: f64,
    /// How many peers' worth of trust the usual spread gets: few peers cannot tell their own.
    pub usual_spread_peers: f64,
    /// Share of the whole excess that each timer of a slow rank must show: a slow chip is slow in all it does.
    pub agreement: f64,
    /// Share of a segment's slowest iterations that the score leaves out (3 at least): it outlasts a spell of three
    /// steps and one per cent of slow calls.
    pub trim: f64,
    /// Correlation, of neighbours in a pipeline or of forward and backward, from which load varies.
    pub load_correlation: f64,
    /// Standard deviation of the load from which it is an imbalance.
    pub load_floor: f64,
    /// Excess of a stage over the others from which it is an imbalance; embedding and loss make the first and last
    /// one 1-5 % heavier in any job.
    pub stage_floor: f64,
    /// Share of the computing that loaders may take on all ranks alike.
    pub loader_floor: f64,
    /// Least excess of a rank over its own usual that is a transient.
    pub transient_floor: f64,
    /// Parts that are left out; none but for the benchmark.
    pub without: BTreeSet<Ablation>,
}

impl Ablation {
    /// Every part, in the order in which the rules use them.
    pub const ALL: [Self; 8] = [
        Self::Peers,
        Self::PipelineLoad,
        Self::ChangePoint,
        Self::Persistence,
        Self::Majority,
        Self::NoiseFloor,
        Self::Agreement,
        Self::Vote,
    ];

    /// The word in settings and reports.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Peers => "peers",
            Self::PipelineLoad => "pipeline-load",
            Self::ChangePoint => "change-point",
            Self::Persistence => "persistence",
            Self::Majority => "majority",
            Self::NoiseFloor => "noise-floor",
            Self::Agreement => "agreement",
            Self::Vote => "vote",
        }
    }
}

impl PeerSettings {
    /// Whether a part is used.
    #[must_use]
    pub fn uses(&self, part: Ablation) -> bool {
        !self.without.contains(&part)
    }

    /// The settings for tables whose columns stand for so many iterations each.
    #[must_use]
    pub fn for_columns_of(mut self, iterations: usize) -> Self {
        self.persistence = self.persistence.for_columns_of(iterations);
        self
    }

    /// Iterations that a column of the tables stands for.
    #[must_use]
    pub fn column(&self) -> usize {
        self.persistence.column
    }

    /// The settings without some parts.
    #[must_use]
    pub fn without(mut self, parts: impl IntoIterator<Item = Ablation>) -> Self {
        self.without.extend(parts);
        if !self.uses(Ablation::Persistence) {
            self.trim = 0.0;
        }
        if !self.uses(Ablation::Agreement) {
            self.agreement = f64::NEG_INFINITY;
        }
        self
    }
}

impl Default for PeerSettings {
    fn default() -> Self {
        Self {
            effect_floor: 0.025,
            false_alarm_rate: 3e-5,
            persistence: Persistence::default(),
            least_spread: 0.005,
            usual_spread: 0.007,
            usual_spread_peers: 4.0,
            agreement: 0.35,
            trim: 0.15,
            load_correlation: 1.0 / 3.0,
            load_floor: 0.02,
            stage_floor: 0.08,
            loader_floor: 0.1,
            transient_floor: 0.25,
            without: BTreeSet::new(),
        }
    }
}
