//! Levels that wander: noise of a rank that is like that of the step before.

use serde::{Deserialize, Serialize};

use super::super::effects::Effects;
use super::super::error::ScenarioError;
use super::super::plan::{PlannedStep, plan};
use super::super::scenario::Scenario;
use super::super::validate::between;
use super::{Acting, Condition};
use crate::stats::random::Random;

/// Ranks times steps that are held in memory, at four bytes each.
const MOST_LEVELS: usize = 1 << 28;

/// An Ornstein-Uhlenbeck process for each rank, on the logarithm of its compute time.
///
/// Uhlenbeck and Ornstein, On the theory of the Brownian motion (1930); sampled at whole steps it is an
/// autoregressive process of order 1, which begins in its stationary distribution.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Wander {
    /// Standard deviation of the logarithm of a rank's level.
    pub sd: f64,
    /// Steps after which the correlation has fallen to 1/e.
    pub steps: f64,
}

/// The levels of all ranks at all executed steps.
#[derive(Debug)]
struct Levels {
    /// Multipliers, `[step * ranks + rank]`.
    levels: Vec<f32>,
    /// The executed steps: run and iteration, ascending.
    steps: Vec<(usize, u32)>,
}

impl Condition for Wander {
    fn validate(&self, scenario: &Scenario) -> Result<(), ScenarioError> {
        between("condition", self.sd, 0.0, 0.3)?;
        between("condition", self.steps, 0.1, 1e6)?;
        let most = (MOST_LEVELS / scenario.ranks().max(1)) as u32;
        if scenario.iterations > most {
            let problem = format!(
                "wander keeps a level a rank and step: {} iterations are too many",
                scenario.iterations
            );
            return Err(ScenarioError::new(
                "condition",
                problem,
                format!("at most {most} with so many ranks"),
            ));
        }
        Ok(())
    }

    fn prepare(&self, scenario: &Scenario) -> Box<dyn Acting> {
        let steps: Vec<(usize, u32)> = plan(scenario).iter().map(|at| (at.run, at.iteration)).collect();
        let ranks = scenario.ranks();
        let kept = (-1.0 / self.steps).exp();
        let fresh = (1.0 - kept * kept).sqrt();
        let mut noise = Random::stream(scenario.seed, "wander", &[]);
        let mut state: Vec<f64> = (0..ranks).map(|_| noise.normal()).collect();
        let mut levels = Vec::with_capacity(ranks * steps.len());
        for _ in &steps {
            for x in &mut state {
                levels.push((self.sd * *x).exp() as f32);
                *x = kept * *x + fresh * noise.normal();
            }
        }
        Box::new(Levels { levels, steps })
    }
}

impl Acting for Levels {
    fn act(&self, scenario: &Scenario, at: PlannedStep, effects: &mut Effects) {
        let Ok(place) = self.steps.binary_search(&(at.run, at.iteration)) else {
            return;
        };
        let ranks = scenario.ranks();
        let levels = &self.levels[place * ranks..(place + 1) * ranks];
        for (compute, level) in effects.compute.iter_mut().zip(levels) {
            *compute *= f64::from(*level);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_sd_and_the_correlation_are_those_asked_for() {
        let scenario = Scenario {
            pp: 1,
            tp: 1,
            dp: 64,
            iterations: 400,
            ..Scenario::default()
        };
        let wander = Wander { sd: 0.02, steps: 20.0 };
        let acting = wander.prepare(&scenario);
        let world = super::super::super::World::new(&scenario).expect("a world");
        let logs: Vec<Vec<f64>> = (plan(&scenario).into_iter())
            .map(|at| {
                let mut effects = Effects::at(&scenario, &world, at);
                acting.act(&scenario, at, &mut effects);
                effects.compute.iter().map(|level| level.ln()).collect()
            })
            .collect();
        let mean = |lag: usize| {
            let products = logs
                .iter()
                .zip(&logs[lag..])
                .flat_map(|(a, b)| a.iter().zip(b).map(|(x, y)| x * y));
            products.sum::<f64>() / ((logs.len() - lag) * 64) as f64
        };
        let sd = mean(0).sqrt();
        assert!((sd - 0.02).abs() < 0.0015, "{sd}");
        let correlation = mean(20) / mean(0);
        assert!((correlation - (-1.0_f64).exp()).abs() < 0.08, "{correlation}");
    }
}
