//! The thresholds of the peer rules that somebody may want to set, and the parts that can be left out for the benchmark.
//! What a detector alone needs stands with its reason at the head of that detector.

use std::collections::BTreeSet;

use schemars::JsonSchema;
use serde::Serialize;

use crate::contract::constant::constants;
use crate::contract::defaults::SLOWDOWN_THRESHOLD;
use crate::verdict::Persistence;

constants! {
    /// Chips of one kind differ lastingly by 0.5-1 %; below 2.5 % (log) nobody swaps a node.
    EFFECT_FLOOR: f64 = 0.025;
    /// Of 1,000 healthy jobs less than one names somebody, with many ranks and stretches looked at in each.
    FALSE_ALARM_RATE: f64 = 1e-4;
    /// Silicon, cooling and the place in the rack make chips of one kind differ by so much (log).
    USUAL_SPREAD: f64 = 0.007;
    /// Few peers cannot tell their own spread: what is usual counts as much as so many of them.
    USUAL_SPREAD_PEERS: f64 = 8.0;
    /// Sequence lengths that differ by less than 2 % cost less than a fault that would be told.
    LOAD_FLOOR: f64 = 0.02;
    /// Embedding and loss make the first and last stage 1-5 % heavier in any job.
    STAGE_FLOOR: f64 = 0.08;
    /// Loading that takes less than a tenth of the computing on all ranks hides behind it in most jobs.
    LOADER_FLOOR: f64 = 0.1;
    /// What passes is told from a quarter on (log), the size that makes a step slow.
    TRANSIENT_FLOOR: f64 = 0.25;
}

/// A part of the peer rules that can be left out, to see what it buys.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Ablation {
    /// Comparing ranks with those of their own stage: without it all ranks are peers.
    Peers,
    /// Taking a pipeline's load out of its ranks' times.
    PipelineLoad,
    /// A slope of load for each stage: without it all stages feel a load alike.
    Slopes,
    /// Stretches of constant level: without them a fault that began or ended is judged by the whole window.
    Stretches,
    /// Naming only what lasts.
    Persistence,
    /// Levels: without them all ranks of a stage are one.
    Levels,
    /// The noise floor: without it the effect floor alone is to be passed.
    NoiseFloor,
    /// The evidence of a whole node.
    Nodes,
    /// The vote of the algorithms on candidates.
    Vote,
}

/// Thresholds of the peer rules. Excesses are natural logarithms: 0.025 is 2.5 % slower.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct PeerSettings {
    /// Least excess that is a fault. Chips of one kind differ lastingly by 0.5-1 %; below 2.5 % nobody swaps a node.
    pub effect_floor: f64,
    /// Chance that noise alone passes the noise floor somewhere in a healthy job: of 1,000 healthy jobs less than one
    /// names somebody.
    pub false_alarm_rate: f64,
    /// Share beyond the steps before from which a step is slow; five in a row make a slow window.
    pub slowdown_threshold: f64,
    /// What lasts.
    #[serde(flatten)]
    pub persistence: Persistence,
    /// Usual lasting spread of peers (silicon, cooling, place in the rack).
    pub usual_spread: f64,
    /// How many peers' worth of trust what is usual gets: few peers cannot tell their own spread.
    pub usual_spread_peers: f64,
    /// Standard deviation of the load from which it is an imbalance.
    pub load_floor: f64,
    /// Excess of a stage over the others from which it is an imbalance; embedding and loss make the first and last
    /// one 1-5 % heavier in any job.
    pub stage_floor: f64,
    /// Share of the computing that loaders may take on all ranks alike.
    pub loader_floor: f64,
    /// Least excess of a rank that is told as a transient.
    pub transient_floor: f64,
    /// Parts that are left out; none but for the benchmark.
    pub without: BTreeSet<Ablation>,
}

impl Ablation {
    /// Every part, in the order in which the rules use them.
    pub const ALL: [Self; 9] = [
        Self::Peers,
        Self::PipelineLoad,
        Self::Slopes,
        Self::Stretches,
        Self::Persistence,
        Self::Levels,
        Self::NoiseFloor,
        Self::Nodes,
        Self::Vote,
    ];

    /// The word in settings and reports.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Peers => "peers",
            Self::PipelineLoad => "pipeline-load",
            Self::Slopes => "slopes",
            Self::Stretches => "stretches",
            Self::Persistence => "persistence",
            Self::Levels => "levels",
            Self::NoiseFloor => "noise-floor",
            Self::Nodes => "nodes",
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

    /// Columns that hold the fewest slow iterations of a fault.
    #[must_use]
    pub fn least_slow_columns(&self) -> usize {
        self.persistence.least_slow_columns()
    }

    /// The settings without some parts.
    #[must_use]
    pub fn without(mut self, parts: impl IntoIterator<Item = Ablation>) -> Self {
        self.without.extend(parts);
        self
    }
}

impl Default for PeerSettings {
    fn default() -> Self {
        Self {
            effect_floor: EFFECT_FLOOR.get(),
            false_alarm_rate: FALSE_ALARM_RATE.get(),
            slowdown_threshold: SLOWDOWN_THRESHOLD,
            persistence: Persistence::default(),
            usual_spread: USUAL_SPREAD.get(),
            usual_spread_peers: USUAL_SPREAD_PEERS.get(),
            load_floor: LOAD_FLOOR.get(),
            stage_floor: STAGE_FLOOR.get(),
            loader_floor: LOADER_FLOOR.get(),
            transient_floor: TRANSIENT_FLOOR.get(),
            without: BTreeSet::new(),
        }
    }
}
