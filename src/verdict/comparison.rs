//! Each rank beside its peers: what was measured of it, step by step, and what it would have taken to be named.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::Lasting;

/// Cells of the factors that are kept, all ranks together; beyond, neighbouring steps are put together.
const CELLS: usize = 300_000;
/// Columns that are kept at most, and that are kept of however many ranks.
const COLUMNS: std::ops::RangeInclusive<usize> = 20..=240;

/// All ranks of a job beside their peers.
#[derive(Debug, Default, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Comparison {
    /// Least excess that is a fault: 0.025 is 2.5 % slower.
    pub effect_floor: f64,
    /// Iterations in a row that make a fault.
    pub least_slow_iterations: usize,
    /// Algorithms that could tell slow ranks from fast ones.
    pub voters: u32,
    /// First iteration of each column of the factors.
    pub iterations: Vec<i64>,
    /// Steps that a column stands for, at most.
    pub steps_per_column: usize,
    /// Every rank, ascending.
    pub ranks: Vec<RankComparison>,
}

/// One rank beside its peers.
#[derive(Debug, Default, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct RankComparison {
    /// The rank.
    pub rank: u32,
    /// Its node.
    pub node: String,
    /// Its pipeline stage.
    pub stage: u32,
    /// Its replica: which pipeline.
    pub replica: u32,
    /// Ranks (with itself) that wait for each other in every pass, so that their passes tell them apart from other groups
    /// only.
    pub waits_with: Vec<u32>,
    /// Groups of such ranks, or single ranks, of the same stage: itself and its peers.
    pub peers: usize,
    /// The mean of the window against the peers; of its group where it waits with others.
    pub window: Gate,
    /// The same by its own matrix work alone (`self-attention-linear-qkv`); null where that was not needed or is not there.
    pub own_work: Option<Gate>,
    /// Its lasting slow steps, or its group's; null without.
    pub fault: Option<SlowSpell>,
    /// Iterations, first and last, that were slow and too short to be a fault.
    pub passing: Vec<(i64, i64)>,
    /// Whether it, or its group, went to the vote.
    pub suspect: bool,
    /// Whether only its group is known to hold a slow rank.
    pub one_of_group: bool,
    /// Algorithms that call it slow.
    pub voted_by: Vec<String>,
    /// Times its peers' time, thousandths, a value a column; null where it is not known.
    pub factors: Vec<Option<u32>>,
}

/// A measured factor and the one that had to be passed.
#[derive(Debug, Default, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Gate {
    /// Time over the peers' time; null without peers or data.
    pub factor: Option<f64>,
    /// The factor that noise and the least effect ask for; null without peers.
    pub needed: Option<f64>,
}

/// Steps that make a fault.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct SlowSpell {
    /// How it lasts.
    pub lasting: Lasting,
    /// In those steps against the peers, or against its own better steps.
    pub gate: Gate,
    /// Whether its own better steps are what it was compared with.
    pub to_itself: bool,
    /// Iterations, first and last, of each slow stretch.
    pub spells: Vec<(i64, i64)>,
}

impl Gate {
    /// From logarithms.
    #[must_use]
    pub fn of_logs(excess: f64, threshold: f64) -> Self {
        let known = |log: f64| Some(log.exp()).filter(|factor| factor.is_finite());
        Self {
            factor: known(excess),
            needed: known(threshold),
        }
    }

    /// Whether the factor passes; false where either is not known.
    #[must_use]
    pub fn passes(&self) -> bool {
        matches!((self.factor, self.needed), (Some(factor), Some(needed)) if factor > needed)
    }
}

/// How many steps are put together into a column where there are so many ranks and steps.
#[must_use]
pub fn steps_per_column(ranks: usize, steps: usize) -> usize {
    let columns = (CELLS / ranks.max(1)).clamp(*COLUMNS.start(), *COLUMNS.end());
    steps.div_ceil(columns).max(1)
}

/// Factors (logarithms, NaN where not known) of single steps put together, in thousandths.
#[must_use]
pub fn thousandths(logs: impl ExactSizeIterator<Item = f64>, together: usize) -> Vec<Option<u32>> {
    let factors: Vec<f64> = logs.map(f64::exp).collect();
    let column = |steps: &[f64]| {
        let known = || steps.iter().filter(|factor| factor.is_finite());
        let mean = known().sum::<f64>() / known().count() as f64;
        // A factor of a million is as good as any beyond.
        mean.is_finite().then(|| (1000.0 * mean.min(1e6)).round() as u32)
    };
    factors.chunks(together.max(1)).map(column).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_hold_the_mean_of_what_is_known() {
        let logs = [0.0, f64::NAN, 2f64.ln(), f64::NAN, f64::NAN];
        assert_eq!(
            thousandths(logs.into_iter(), 1),
            [Some(1000), None, Some(2000), None, None]
        );
        assert_eq!(thousandths(logs.into_iter(), 3), [Some(1500), None]);
        assert_eq!(thousandths(std::iter::once(f64::INFINITY), 1), [None]);
    }

    #[test]
    fn cells_are_bounded() {
        assert_eq!(steps_per_column(16, 200), 1);
        assert_eq!(steps_per_column(16, 2_000), 9);
        assert_eq!(steps_per_column(100_000, 20), 1);
        assert!(1_024 * 1_000usize.div_ceil(steps_per_column(1_024, 1_000)) <= CELLS);
        assert_eq!(steps_per_column(0, 0), 1);
    }

    #[test]
    fn a_gate_without_peers_does_not_pass() {
        assert_eq!(Gate::of_logs(f64::NAN, f64::INFINITY), Gate::default());
        assert!(!Gate::default().passes());
        assert!(Gate::of_logs(0.1, 0.05).passes() && !Gate::of_logs(0.01, 0.05).passes());
    }
}
