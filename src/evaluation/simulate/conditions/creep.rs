//! A fault that grows: dust, a failing fan, memory that is remapped.

use serde::{Deserialize, Serialize};

use super::super::culprits::Fault;
use super::super::effects::Effects;
use super::super::error::ScenarioError;
use super::super::plan::PlannedStep;
use super::super::scenario::Scenario;
use super::super::validate::{below, between, out_of_range};
use super::{Acting, Condition, Guilt};

/// A rank that gets slower evenly.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Creep {
    /// The rank.
    pub rank: usize,
    /// Multiplier of its compute time at the end of the growth and after it.
    pub factor: f64,
    /// The last iteration before the growth.
    pub from: u32,
    /// The iteration in which `factor` is reached.
    pub to: u32,
}

impl Condition for Creep {
    fn validate(&self, scenario: &Scenario) -> Result<(), ScenarioError> {
        below("condition", "rank", self.rank, scenario.ranks())?;
        between("condition", self.factor, 1.0, 1000.0)?;
        scenario.within("condition", self.from)?;
        if self.to <= self.from {
            return Err(out_of_range("condition", self.to, format!("later than {}", self.from)));
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

impl Acting for Creep {
    fn act(&self, _scenario: &Scenario, at: PlannedStep, effects: &mut Effects) {
        let gone = f64::from(at.iteration.saturating_sub(self.from)) / f64::from(self.to - self.from);
        effects.compute[self.rank] *= 1.0 + (self.factor - 1.0) * gone.min(1.0);
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::course;

    #[test]
    fn it_grows_evenly_and_stays() {
        let course = course("creep:rank=2,factor=1.5,from=11,to=51", 2);
        assert_eq!((course[0], course[10]), (1.0, 1.0));
        assert!((course[30] - 1.25).abs() < 1e-12, "{}", course[30]);
        assert!((course[79] - 1.5).abs() < 1e-12, "{}", course[79]);
    }
}
