//! A card that throttles and cools down in turn.

use serde::{Deserialize, Serialize};

use super::super::culprits::Fault;
use super::super::effects::Effects;
use super::super::error::ScenarioError;
use super::super::plan::PlannedStep;
use super::super::scenario::Scenario;
use super::super::validate::{below, between, out_of_range};
use super::{Acting, Condition, Guilt};

/// A rank that is slow in the first part of each period.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Thermal {
    /// The rank.
    pub rank: usize,
    /// Multiplier of its compute time while it is hot.
    pub factor: f64,
    /// Iterations of a period.
    pub period: u32,
    /// Hot ones of them.
    pub hot: u32,
}

impl Condition for Thermal {
    fn validate(&self, scenario: &Scenario) -> Result<(), ScenarioError> {
        below("condition", "rank", self.rank, scenario.ranks())?;
        between("condition", self.factor, 1.0, 1000.0)?;
        if !(1..=self.period).contains(&self.hot) {
            let allowed = format!("1 to the {} iterations of a period", self.period);
            return Err(out_of_range("condition", self.hot, allowed));
        }
        Ok(())
    }

    fn prepare(&self, _scenario: &Scenario) -> Box<dyn Acting> {
        Box::new(self.clone())
    }

    fn guilt(&self, _scenario: &Scenario) -> Guilt {
        Guilt::of(Fault::Compute, [self.rank], Some(self.factor))
    }
}

impl Acting for Thermal {
    fn act(&self, scenario: &Scenario, at: PlannedStep, effects: &mut Effects) {
        if (at.iteration - scenario.first_iteration) % self.period < self.hot {
            effects.compute[self.rank] *= self.factor;
        }
    }
}
