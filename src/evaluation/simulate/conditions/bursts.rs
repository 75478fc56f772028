//! Bursts: a few slow steps in a row, each time on another rank.

use serde::{Deserialize, Serialize};

use super::super::effects::Effects;
use super::super::error::ScenarioError;
use super::super::plan::PlannedStep;
use super::super::scenario::Scenario;
use super::super::validate::between;
use super::{Acting, Condition};
use crate::stats::random::Random;

/// Steps of the shortest and the longest burst.
const LENGTHS: [u32; 2] = [2, 4];
/// Multiplier of the weakest burst.
const LEAST: f64 = 1.3;

/// Random ranks that are slow for 2 to 4 steps.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Bursts {
    /// Share of the steps in which a burst begins.
    pub rate: f64,
    /// Multiplier of the strongest burst.
    pub most: f64,
}

impl Condition for Bursts {
    fn validate(&self, _scenario: &Scenario) -> Result<(), ScenarioError> {
        between("condition", self.rate, 0.0, 1.0)?;
        between("condition", self.most, LEAST, 1000.0)
    }

    fn prepare(&self, _scenario: &Scenario) -> Box<dyn Acting> {
        Box::new(self.clone())
    }
}

impl Acting for Bursts {
    fn act(&self, scenario: &Scenario, at: PlannedStep, effects: &mut Effects) {
        // Each step can begin a burst, drawn from a stream of its own: any step can be simulated alone.
        for before in 0..LENGTHS[1].min(at.iteration - scenario.first_iteration + 1) {
            let begin = at.iteration - before;
            let mut draw = Random::stream(scenario.seed, "bursts", &[at.run as u64, u64::from(begin)]);
            if draw.uniform() >= self.rate {
                continue;
            }
            let rank = draw.below(scenario.ranks());
            let length = LENGTHS[0] + draw.below((LENGTHS[1] - LENGTHS[0] + 1) as usize) as u32;
            let factor = LEAST + (self.most - LEAST) * draw.uniform();
            if before < length {
                effects.compute[rank] *= factor;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::course;

    #[test]
    fn bursts_last_two_to_four_steps_on_random_ranks() {
        let mut lengths = Vec::new();
        let mut ranks = 0;
        for rank in 0..16 {
            let slow: Vec<bool> = course("bursts:rate=0.2,most=2", rank)
                .iter()
                .map(|x| *x > 1.0)
                .collect();
            ranks += usize::from(slow.contains(&true));
            lengths.extend(slow.chunk_by(|a, b| a == b).filter(|run| run[0]).map(<[bool]>::len));
        }
        assert!(ranks > 4, "{ranks}");
        // The last may be cut off by the end of the job, and two may meet on one rank.
        let usual = lengths.iter().filter(|length| (2..=4).contains(*length)).count();
        assert!(lengths.len() >= 8 && usual + 3 >= lengths.len(), "{lengths:?}");
    }
}
