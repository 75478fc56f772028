//! A restart after which the ranks of a node go on on another one.

use std::ops::Range;

use serde::{Deserialize, Serialize};

use super::super::culprits::Fault;
use super::super::effects::Effects;
use super::super::error::ScenarioError;
use super::super::plan::PlannedStep;
use super::super::scenario::Scenario;
use super::super::validate::{below, between};
use super::{Acting, Condition, Guilt};

/// A node that is replaced by a spare one; without a factor above 1 the spare is sound and nobody is to blame.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct NodeSwap {
    /// Number of the node that is left.
    pub node: usize,
    /// Multiplier of the compute time on the new node.
    #[serde(default = "sound")]
    pub factor: f64,
    /// First iteration after the restart; none is lost.
    pub from: u32,
    /// Name of the new node.
    #[serde(default = "spare")]
    pub to: String,
}

fn sound() -> f64 {
    1.0
}

fn spare() -> String {
    "gpu-spare".to_owned()
}

impl Condition for NodeSwap {
    fn validate(&self, scenario: &Scenario) -> Result<(), ScenarioError> {
        below("condition", "node", self.node, scenario.nodes())?;
        between("condition", self.factor, 1.0, 1000.0)?;
        let names = (0..scenario.nodes()).map(|node| scenario.node_name(node * scenario.ranks_per_node));
        if self.to.is_empty() || names.into_iter().any(|name| name == self.to) {
            let problem = format!("`{}` can't be the spare node's name", self.to);
            return Err(ScenarioError::new(
                "condition",
                problem,
                "a name that no node of the job has",
            ));
        }
        scenario.within("condition", self.from)
    }

    fn prepare(&self, _scenario: &Scenario) -> Box<dyn Acting> {
        Box::new(self.clone())
    }

    fn guilt(&self, scenario: &Scenario) -> Guilt {
        if self.factor > 1.0 {
            Guilt::of(Fault::Compute, scenario.ranks_of_node(self.node), Some(self.factor))
        } else {
            Guilt::default()
        }
    }

    fn restart(&self) -> Option<u32> {
        Some(self.from)
    }

    fn moved(&self, scenario: &Scenario) -> Option<(Range<usize>, &str)> {
        Some((scenario.ranks_of_node(self.node), &self.to))
    }
}

impl Acting for NodeSwap {
    fn act(&self, scenario: &Scenario, at: PlannedStep, effects: &mut Effects) {
        if at.run > 0 {
            for compute in &mut effects.compute[scenario.ranks_of_node(self.node)] {
                *compute *= self.factor;
            }
        }
    }
}
