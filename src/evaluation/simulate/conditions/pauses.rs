//! Pauses of single ranks in single steps, as garbage collection makes them.

use serde::{Deserialize, Serialize};

use super::super::effects::Effects;
use super::super::error::ScenarioError;
use super::super::plan::PlannedStep;
use super::super::scenario::Scenario;
use super::super::validate::between;
use super::{Acting, Condition};
use crate::stats::random::Random;

/// Ranks that now and then stand still for a moment inside a forward pass.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Pauses {
    /// Share of a rank's steps that hold a pause.
    pub share: f64,
    /// Mean length; a pause takes half to one and a half times as long.
    pub seconds: f64,
}

impl Condition for Pauses {
    fn validate(&self, _scenario: &Scenario) -> Result<(), ScenarioError> {
        between("condition", self.share, 0.0, 1.0)?;
        between("condition", self.seconds, 0.0, 3600.0)
    }

    fn prepare(&self, _scenario: &Scenario) -> Box<dyn Acting> {
        Box::new(self.clone())
    }
}

impl Acting for Pauses {
    fn act(&self, scenario: &Scenario, at: PlannedStep, effects: &mut Effects) {
        let mut draw = Random::stream(scenario.seed, "pauses", &[at.run as u64, u64::from(at.iteration)]);
        for pause in &mut effects.pause {
            if draw.uniform() < self.share {
                *pause += self.seconds * (0.5 + draw.uniform());
            }
        }
    }
}
