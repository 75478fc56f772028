//! What a row shows in some steps, against its peers in the same steps or against itself in others, and how far that must
//! be to be no noise.
//!
//! The peers' own spread over the same steps holds everything that healthy rows differ by there: chips, wandering levels,
//! the noise of the mean. Few peers tell it badly, so what is usual (the lasting spread of chips, the noise of means of
//! that length) stands in as so many more of them, and the threshold is a quantile of Student's distribution.

use std::ops::Range;

use super::noise::Noise;
use super::rows_by_step::RowsByStep;
use super::settings::{Ablation, PeerSettings};
use super::spread::{FEW, apart, centre, mean_of, push_distances, running_sums, spread};
use crate::contract::constant::constants;
use crate::stats::{exceeded_with, mean, median, sorted, student};

constants! {
    /// Rows of a stage that tell its centre and spread at most: more would add next to nothing.
    MOST_ROWS: usize = 256;
    /// Degrees of freedom of the noise that stands in for peers,
    FREEDOM_OF_NOISE: f64 = 12.0;
    /// and of the lasting spread of chips, which is well known.
    FREEDOM_OF_CHIPS: f64 = 16.0;
    /// How many tests a row means: the whole window;
    TESTS_WHOLE: f64 = 2.0;
    /// a stretch that was searched;
    TESTS_STRETCH: f64 = 10.0;
    /// a stretch and the steps to compare it with.
    TESTS_CHANGE: f64 = 40.0;
    /// Times the threshold that one of two rows must pass: they have nobody to tell what rows differ by.
    TWO_ROWS: f64 = 1.5;
}

/// The excess of a row and what it must pass (log).
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Excess {
    pub excess: f64,
    pub threshold: f64,
}

impl Excess {
    /// Nothing to compare with.
    pub const NONE: Self = Self {
        excess: f64::NAN,
        threshold: f64::INFINITY,
    };

    /// Whether it is beyond noise and floor.
    pub fn passes(&self) -> bool {
        self.excess > self.threshold
    }

    /// Excess in units of the threshold.
    pub fn margin(&self) -> f64 {
        self.excess / self.threshold
    }
}

/// The rows of one stage that tell what is usual.
struct Usual {
    /// Sums and counts of the cleaned cells up to each step.
    sums: Vec<Vec<(f64, u32)>>,
    rows: Vec<usize>,
    /// Rows of the level, told or not.
    level: usize,
}

/// Everything that rows are compared with.
pub(super) struct Contrasts<'a> {
    factors: &'a RowsByStep,
    noise: &'a Noise,
    settings: &'a PeerSettings,
    stages: Vec<Usual>,
    stage_of: &'a [usize],
    in_level: Vec<bool>,
    /// What peers show in the whole window, which every row is held against.
    whole: PeersIn,
    /// How far above their row's middle single steps of the fast rows lie, ascending.
    single_steps: Vec<f64>,
}

/// What peers show in some steps.
struct PeersIn {
    /// The centre of each stage.
    centres: Vec<f64>,
    /// Each peer's distance from its centre.
    distances: Vec<(usize, f64)>,
    /// What is usual beside it, and the degrees of freedom of that.
    usual: f64,
    freedom: f64,
    /// Tests that a row means.
    tests: f64,
    /// The threshold of a row with very many peers, where it is the same for all rows.
    common: Option<f64>,
}

impl<'a> Contrasts<'a> {
    /// `levels` holds the rows of each stage's fast level; `clean(row)` a row without its single spikes.
    pub fn new(
        factors: &'a RowsByStep,
        noise: &'a Noise,
        levels: &[Vec<usize>],
        stage_of: &'a [usize],
        settings: &'a PeerSettings,
        clean: impl Fn(usize) -> Vec<f64>,
    ) -> Self {
        let mut in_level = vec![false; factors.rows()];
        levels.iter().flatten().for_each(|&row| in_level[row] = true);
        let stages: Vec<Usual> = levels
            .iter()
            .map(|level| {
                let every = level.len().div_ceil(MOST_ROWS.get()).max(1);
                let rows: Vec<usize> = level.iter().copied().step_by(every).collect();
                let sums = rows.iter().map(|&row| running_sums(&clean(row))).collect();
                Usual {
                    sums,
                    rows,
                    level: level.len(),
                }
            })
            .collect();
        let whole = PeersIn {
            centres: Vec::new(),
            distances: Vec::new(),
            usual: 0.0,
            freedom: 1.0,
            tests: 1.0,
            common: None,
        };
        let single_steps = sorted(stages.iter().flat_map(|stage: &Usual| &stage.rows).flat_map(|&row| {
            let cells = factors.row(row);
            let middle = median(cells.iter().copied());
            cells.iter().map(move |cell| cell - middle)
        }));
        let mut contrasts = Self {
            factors,
            noise,
            settings,
            stages,
            stage_of,
            in_level,
            whole,
            single_steps,
        };
        let mut whole = contrasts.peers_in(std::slice::from_ref(&(0..factors.columns())), TESTS_WHOLE.get());
        if whole.distances.len() >= FEW.get() {
            whole.common =
                Some(contrasts.threshold(usize::MAX, &whole.distances, whole.usual, whole.freedom, whole.tests));
        }
        contrasts.whole = whole;
        contrasts
    }

    /// Other rows of the stage's fast level.
    pub fn peers(&self, row: usize) -> usize {
        self.stages[self.stage_of[row]].level - usize::from(self.in_level[row])
    }

    /// The row in some steps against its peers in the same.
    pub fn to_peers(&self, row: usize, steps: &[Range<usize>]) -> Excess {
        let own = self.mean(row, steps);
        if matches!(steps, [all] if all.len() == self.factors.columns()) {
            return self.whole(row, own);
        }
        let centre = centre(&self.stages[self.stage_of[row]].means(steps).1);
        // Most are below the floor, which spares the rest.
        let above_floor = own - centre > self.settings.effect_floor;
        if !above_floor || self.peers(row) == 0 {
            return Excess {
                excess: own - centre,
                threshold: f64::INFINITY,
            };
        }
        let peers = self.peers_in(steps, self.searched(steps) * TESTS_STRETCH.get());
        self.held_against(row, own, &peers)
    }

    /// A row whose mean over the whole window is `own` against its peers.
    pub fn whole(&self, row: usize, own: f64) -> Excess {
        self.held_against(row, own, &self.whole)
    }

    fn held_against(&self, row: usize, own: f64, peers: &PeersIn) -> Excess {
        let count = self.peers(row);
        if count == 0 {
            return Excess::NONE;
        }
        let base = peers
            .common
            .unwrap_or_else(|| self.threshold(row, &peers.distances, peers.usual, peers.freedom, peers.tests));
        let mut threshold = base * apart(count);
        if self.factors.rows() == 2 {
            threshold *= TWO_ROWS.get();
        }
        let excess = own - peers.centres[self.stage_of[row]];
        Excess {
            excess,
            threshold: threshold.max(self.settings.effect_floor),
        }
    }

    fn peers_in(&self, steps: &[Range<usize>], tests: f64) -> PeersIn {
        let (mut centres, mut distances) = (Vec::with_capacity(self.stages.len()), Vec::new());
        for stage in &self.stages {
            let (rows, means) = stage.means(steps);
            let centre = centre(&means);
            centres.push(centre);
            if stage.level > 1 {
                let apart = apart(stage.level - 1);
                push_distances(&mut distances, &rows, &means, centre, apart);
            }
        }
        let usual = self.error(steps).hypot(self.settings.usual_spread);
        let sure = (self.settings.usual_spread / usual).powi(2);
        PeersIn {
            centres,
            distances,
            usual,
            freedom: FREEDOM_OF_NOISE.get() + FREEDOM_OF_CHIPS.get() * sure,
            tests,
            common: None,
        }
    }

    /// The row's change from `rest` to `steps` against everybody's, all stages together: what rows differ by lastingly
    /// does not concern a change, and a whole stage may change.
    pub fn to_itself(&self, row: usize, steps: &[Range<usize>], rest: &[Range<usize>]) -> Excess {
        let own = self.mean(row, steps) - self.mean(row, rest);
        let (mut rows, mut changes) = (Vec::new(), Vec::new());
        for stage in &self.stages {
            for (&row, sums) in stage.rows.iter().zip(&stage.sums) {
                let change = mean_of(sums, steps) - mean_of(sums, rest);
                if change.is_finite() {
                    rows.push(row);
                    changes.push(change);
                }
            }
        }
        let centre = centre(&changes);
        let excess = own - if centre.is_finite() { centre } else { 0.0 };
        let above_floor = excess > self.settings.effect_floor;
        if !above_floor {
            return Excess {
                excess,
                threshold: f64::INFINITY,
            };
        }
        let apart = apart(changes.len().max(2) - 1);
        let mut distances = Vec::new();
        push_distances(&mut distances, &rows, &changes, centre, apart);
        let usual = self.error(steps).hypot(self.error(rest));
        let tests = self.searched(steps) * TESTS_CHANGE.get();
        let threshold = self.threshold(row, &distances, usual, FREEDOM_OF_NOISE.get(), tests) * apart;
        Excess {
            excess,
            threshold: threshold.max(self.settings.effect_floor),
        }
    }

    /// Whether `slow` of `steps` steps that lie by `excess` above what is usual are more than come by chance.
    ///
    /// Calls that now and then take twice as long lift single steps of anybody; how often is seen in the peers' steps. By
    /// Chernoff's bound for binomial counts, over all rows and places.
    pub fn is_no_chance(&self, slow: usize, steps: usize, excess: f64) -> bool {
        if !self.settings.uses(Ablation::NoiseFloor) {
            return true;
        }
        let told = self.single_steps.len();
        let above = told - self.single_steps.partition_point(|&step| step <= excess);
        let usual = (above as f64 + 1.0) / (told as f64 + 2.0);
        let seen = slow as f64 / steps as f64;
        if seen <= usual {
            return false;
        }
        let rest = if seen < 1.0 {
            (1.0 - seen) * ((1.0 - seen) / (1.0 - usual)).ln()
        } else {
            0.0
        };
        let divergence = seen * (seen / usual).ln() + rest;
        let places = (self.factors.columns() as f64 / steps as f64).max(1.0);
        let tests = self.factors.rows() as f64 * places * TESTS_STRETCH.get();
        steps as f64 * divergence > (tests / self.settings.false_alarm_rate).ln()
    }

    /// How many stretches of that length the window has.
    fn searched(&self, steps: &[Range<usize>]) -> f64 {
        let length = steps.iter().map(Range::len).sum::<usize>() as f64 / steps.len().max(1) as f64;
        (self.factors.columns() as f64 / length.max(1.0)).max(1.0)
    }

    fn threshold(&self, row: usize, distances: &[(usize, f64)], usual: f64, freedom: f64, tests: f64) -> f64 {
        if !self.settings.uses(Ablation::NoiseFloor) {
            return 0.0;
        }
        let few = distances.len() < FEW.get();
        let told: Vec<f64> = distances
            .iter()
            .filter(|&&(of, _)| !few || of != row)
            .map(|&(_, distance)| distance)
            .collect();
        let (seen, told) = spread(&told);
        let trust = self.settings.usual_spread_peers;
        let variance = (told * seen * seen + trust * usual * usual) / (told + trust);
        let chance = self.settings.false_alarm_rate / (tests * self.factors.rows() as f64);
        student(exceeded_with(chance), freedom + told) * variance.sqrt()
    }

    /// The standard error of the mean of a row over some steps.
    fn error(&self, steps: &[Range<usize>]) -> f64 {
        let count = steps.iter().map(Range::len).sum::<usize>().max(1) as f64;
        let of = |part: &Range<usize>| (part.len() as f64 / count * self.noise.error(part.len())).powi(2);
        steps.iter().map(of).sum::<f64>().sqrt()
    }

    /// The mean of a row's cells.
    pub fn mean(&self, row: usize, steps: &[Range<usize>]) -> f64 {
        let cells = self.factors.row(row);
        mean(steps.iter().flat_map(|part| &cells[part.clone()]).copied())
    }
}

impl Usual {
    /// The rows with a mean over the steps, and those means.
    fn means(&self, steps: &[Range<usize>]) -> (Vec<usize>, Vec<f64>) {
        let means = self.sums.iter().map(|sums| mean_of(sums, steps));
        self.rows
            .iter()
            .copied()
            .zip(means)
            .filter(|(_, mean)| mean.is_finite())
            .unzip()
    }
}
