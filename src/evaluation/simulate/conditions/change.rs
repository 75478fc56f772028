//! A rank that changes at a time of its own.

use serde::{Deserialize, Serialize};

use super::super::culprits::Fault;
use super::super::effects::Effects;
use super::super::error::ScenarioError;
use super::super::plan::PlannedStep;
use super::super::scenario::Scenario;
use super::super::validate::{below, between};
use super::{Acting, Condition, Guilt, within};

/// A rank that computes slowly from some iteration on, whatever the onset of the other faults.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Change {
    /// The rank.
    pub rank: usize,
    /// Multiplier of its compute time.
    pub factor: f64,
    /// First iteration.
    pub from: u32,
    /// Last iteration; to the end without.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub until: Option<u32>,
}

impl Condition for Change {
    fn validate(&self, scenario: &Scenario) -> Result<(), ScenarioError> {
        below("condition", "rank", self.rank, scenario.ranks())?;
        between("condition", self.factor, 1.0, 1000.0)?;
        scenario.within("condition", self.from)
    }

    fn prepare(&self, _scenario: &Scenario) -> Box<dyn Acting> {
        Box::new(self.clone())
    }

    fn guilt(&self, _scenario: &Scenario) -> Guilt {
        Guilt::of(Fault::Compute, [self.rank], Some(self.factor))
    }
}

impl Acting for Change {
    fn act(&self, _scenario: &Scenario, at: PlannedStep, effects: &mut Effects) {
        if within(self.from, self.until, at) {
            effects.compute[self.rank] *= self.factor;
        }
    }
}
