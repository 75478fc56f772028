//! A collective that is slow for one group, without a member that can be told.

use serde::{Deserialize, Serialize};

use super::super::culprits::Fault;
use super::super::effects::Effects;
use super::super::error::ScenarioError;
use super::super::plan::PlannedStep;
use super::super::scenario::Scenario;
use super::super::validate::{below, between};
use super::{Acting, Condition, Guilt, within};

/// The collectives of the group that reduces gradients with a rank.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SlowGroup {
    /// A member of the group.
    pub rank: usize,
    /// Multiplier of the collectives' time.
    pub factor: f64,
    /// First iteration; from the start without.
    #[serde(default)]
    pub from: u32,
}

impl Condition for SlowGroup {
    fn validate(&self, scenario: &Scenario) -> Result<(), ScenarioError> {
        below("condition", "rank", self.rank, scenario.ranks())?;
        if scenario.dp * scenario.cp < 2 {
            return Err(ScenarioError::new(
                "condition",
                "slow-group: no group has more than one member",
                "with dp x cp 2 or more",
            ));
        }
        between("condition", self.factor, 1.0, 1000.0)
    }

    fn prepare(&self, _scenario: &Scenario) -> Box<dyn Acting> {
        Box::new(self.clone())
    }

    fn guilt(&self, _scenario: &Scenario) -> Guilt {
        Guilt::of(Fault::Network, [], Some(self.factor))
    }
}

impl Acting for SlowGroup {
    fn act(&self, _scenario: &Scenario, at: PlannedStep, effects: &mut Effects) {
        if within(self.from, None, at) {
            effects.groups.push((self.rank, self.factor));
        }
    }
}
