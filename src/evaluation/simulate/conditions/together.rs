//! Everybody slower together: longer sequences, a lower clock for the whole cluster.

use serde::{Deserialize, Serialize};

use super::super::effects::Effects;
use super::super::error::ScenarioError;
use super::super::plan::PlannedStep;
use super::super::scenario::Scenario;
use super::super::validate::between;
use super::{Acting, Condition, within};

/// A multiplier of all ranks' computing, of which nobody is to blame.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Together {
    /// Multiplier of the compute time.
    pub factor: f64,
    /// First iteration.
    pub from: u32,
    /// Last iteration; to the end without.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub until: Option<u32>,
}

impl Condition for Together {
    fn validate(&self, scenario: &Scenario) -> Result<(), ScenarioError> {
        between("condition", self.factor, 0.1, 1000.0)?;
        scenario.within("condition", self.from)
    }

    fn prepare(&self, _scenario: &Scenario) -> Box<dyn Acting> {
        Box::new(self.clone())
    }
}

impl Acting for Together {
    fn act(&self, _scenario: &Scenario, at: PlannedStep, effects: &mut Effects) {
        if within(self.from, self.until, at) {
            for compute in &mut effects.compute {
                *compute *= self.factor;
            }
        }
    }
}
