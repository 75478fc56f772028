//! A rank that writes checkpoints or logs every so many steps, while the others wait.

use serde::{Deserialize, Serialize};

use super::super::effects::Effects;
use super::super::error::ScenarioError;
use super::super::plan::PlannedStep;
use super::super::scenario::Scenario;
use super::super::validate::{below, between, out_of_range};
use super::{Acting, Condition};

/// Work of one rank that comes back, which is the job's design and no fault.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Checkpoints {
    /// The rank that writes.
    #[serde(default)]
    pub rank: usize,
    /// Iterations from one writing to the next; iterations that are a multiple of it write.
    pub every: u32,
    /// What it takes.
    pub seconds: f64,
}

impl Condition for Checkpoints {
    fn validate(&self, scenario: &Scenario) -> Result<(), ScenarioError> {
        below("condition", "rank", self.rank, scenario.ranks())?;
        if self.every == 0 {
            return Err(out_of_range(
                "condition",
                self.every,
                "every 1 iteration or more".to_owned(),
            ));
        }
        between("condition", self.seconds, 0.0, 3600.0)
    }

    fn prepare(&self, _scenario: &Scenario) -> Box<dyn Acting> {
        Box::new(self.clone())
    }
}

impl Acting for Checkpoints {
    fn act(&self, _scenario: &Scenario, at: PlannedStep, effects: &mut Effects) {
        if at.iteration.is_multiple_of(self.every) {
            effects.pause[self.rank] += self.seconds;
        }
    }
}
