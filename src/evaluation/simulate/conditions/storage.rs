//! Shared storage that gets slow: loading takes longer for all, and on one node longer still.

use serde::{Deserialize, Serialize};

use super::super::culprits::Fault;
use super::super::effects::Effects;
use super::super::error::ScenarioError;
use super::super::plan::PlannedStep;
use super::super::scenario::Scenario;
use super::super::validate::{below, between};
use super::{Acting, Condition, Guilt};
use crate::contract::rank_order::Layout;
use crate::stats::random::Random;

/// Loading that takes longer on all ranks from some iteration on.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct Storage {
    /// First iteration.
    pub from: u32,
    /// Seconds added to each microbatch's loading on all ranks that load.
    pub seconds: f64,
    /// Coefficient of variation of the added seconds, drawn anew for each rank and step.
    #[serde(default)]
    pub spread: f64,
    /// A node that has it worse.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub node: Option<usize>,
    /// Seconds added there beside those of all.
    #[serde(default)]
    pub node_seconds: f64,
}

impl Condition for Storage {
    fn validate(&self, scenario: &Scenario) -> Result<(), ScenarioError> {
        scenario.within("condition", self.from)?;
        between("condition", self.seconds, 0.0, 3600.0)?;
        between("condition", self.node_seconds, 0.0, 3600.0)?;
        between("condition", self.spread, 0.0, 3.0)?;
        match self.node {
            Some(node) => below("condition", "node", node, scenario.nodes()),
            None => Ok(()),
        }
    }

    fn prepare(&self, _scenario: &Scenario) -> Box<dyn Acting> {
        Box::new(self.clone())
    }

    fn guilt(&self, scenario: &Scenario) -> Guilt {
        let node = self.node.filter(|_| self.node_seconds > 0.0);
        let ranks = node.map_or(0..0, |node| scenario.ranks_of_node(node));
        // An order that can't be read is refused before anybody asks.
        let layout = Layout::new(&scenario.order, scenario.sizes()).ok();
        let loads = |rank: &usize| {
            layout.as_ref().is_some_and(|layout| {
                let at = layout.coordinates(*rank);
                at.tp == 0 && (at.pp == 0 || at.pp + 1 == scenario.pp)
            })
        };
        Guilt::of(Fault::Loading, ranks.filter(loads), None)
    }
}

impl Acting for Storage {
    fn act(&self, scenario: &Scenario, at: PlannedStep, effects: &mut Effects) {
        if at.iteration < self.from {
            return;
        }
        let mut draw = Random::stream(scenario.seed, "storage", &[at.run as u64, u64::from(at.iteration)]);
        for (rank, loader) in effects.loader.iter_mut().enumerate() {
            let worse = self.node == Some(scenario.node(rank));
            let seconds = self.seconds + if worse { self.node_seconds } else { 0.0 };
            *loader += seconds * draw.load(self.spread);
        }
    }
}
