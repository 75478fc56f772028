//! What a row shows in some steps, against its peers in the same steps or against itself in others, and how far that must
//! be to be no noise.
//!
//! The peers' own spread over the same steps holds everything that healthy rows differ by there: chips, wandering levels,
//! the noise of the mean. Few peers tell it badly, so what is usual (the lasting spread of chips, the noise of means of
//! that length) stands in as so many more of them, and the threshold is a quantile of Student's distribution.

use std::ops::Range;

use super::common::FASTER_ROWS;
use super::noise::Noise;
use super::settings::{Ablation, PeerSettings};
use super::table::Table;
use crate::stats::{MAD_TO_SD, exceeded_with, low_median, lower, mean, median, sorted, student};

/// Rows of a stage that tell its centre and spread at most: more would add next to nothing.
const MOST_ROWS: usize = 256;
/// Fewer distances than this: the lower median, and the row that is judged does not tell the spread.
const FEW: usize = 6;
/// Distances from which the lower side alone may tell the spread, where many rows of the upper one changed.
const MANY: usize = 8;
/// The lower side tells it where it is narrower than so many times the whole.
const NARROWER: f64 = 0.5;
/// The quantiles of the lower side, and how far apart they are in a normal distribution.
const LOWER_SIDE: (f64, f64) = (0.1, FASTER_ROWS);
const LOWER_SIDE_TO_SD: f64 = 0.896;
/// Distances beyond so many deviations are left out of the spread, and what that takes from a normal one.
const FAR: f64 = 3.0;
const WITHOUT_FAR: f64 = 0.986;
/// Degrees of freedom of the noise that stands in for peers, and of the lasting spread of chips, which is well known.
const FREEDOM_OF_NOISE: f64 = 12.0;
const FREEDOM_OF_CHIPS: f64 = 16.0;
/// How many tests a row means: the whole window; a stretch that was searched; a stretch and the steps to compare it with.
const TESTS_WHOLE: f64 = 2.0;
const TESTS_STRETCH: f64 = 10.0;
const TESTS_CHANGE: f64 = 40.0;
/// Two rows alone have nobody to tell what rows differ by.
const TWO_ROWS: f64 = 1.5;
/// Variance of a middle quantile over that of a mean (a normal distribution's median).
const QUANTILE_ERROR: f64 = 1.57;
/// Least standard deviation.
const LEAST: f64 = 1e-9;

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
    factors: &'a Table,
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
        factors: &'a Table,
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
                let every = level.len().div_ceil(MOST_ROWS).max(1);
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
        let mut whole = contrasts.peers_in(std::slice::from_ref(&(0..factors.columns())), TESTS_WHOLE);
        if whole.distances.len() >= FEW {
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
        let peers = self.peers_in(steps, self.searched(steps) * TESTS_STRETCH);
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
            threshold *= TWO_ROWS;
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
            freedom: FREEDOM_OF_NOISE + FREEDOM_OF_CHIPS * sure,
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
        let tests = self.searched(steps) * TESTS_CHANGE;
        let threshold = self.threshold(row, &distances, usual, FREEDOM_OF_NOISE, tests) * apart;
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
        let tests = self.factors.rows() as f64 * places * TESTS_STRETCH;
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
        let few = distances.len() < FEW;
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

/// What is usual: below the middle, for those who changed are slower.
fn centre(means: &[f64]) -> f64 {
    lower(means.iter().copied(), FASTER_ROWS)
}

/// The deviation of a row's distance from the centre of its peers over its own: the centre errs too, as a quantile does.
fn apart(peers: usize) -> f64 {
    match peers {
        0 | 1 => std::f64::consts::SQRT_2,
        peers => (1.0 + QUANTILE_ERROR / peers as f64).sqrt(),
    }
}

/// Adds each row's signed distance from the centre but the centre's own, in units that a single row has.
fn push_distances(distances: &mut Vec<(usize, f64)>, rows: &[usize], means: &[f64], centre: f64, apart: f64) {
    let is_centre = means.iter().position(|&mean| mean == centre);
    for (at, (&row, mean)) in rows.iter().zip(means).enumerate() {
        if Some(at) != is_centre {
            distances.push((row, (mean - centre) / apart));
        }
    }
}

/// The standard deviation that distances tell, and how many tell it.
fn spread(distances: &[f64]) -> (f64, f64) {
    let count = distances.len();
    let sizes: Vec<f64> = distances.iter().map(|distance| distance.abs()).collect();
    if count < FEW {
        return if count == 0 {
            (0.0, 0.0)
        } else {
            (MAD_TO_SD * low_median(sizes), count as f64)
        };
    }
    let mut spread = MAD_TO_SD * median(sizes.iter().copied());
    if count >= MANY {
        let below = |share: f64| lower(distances.iter().copied(), share);
        let lower_side = (below(LOWER_SIDE.1) - below(LOWER_SIDE.0)) / LOWER_SIDE_TO_SD;
        if lower_side < NARROWER * spread {
            spread = lower_side;
        }
        let near = sizes
            .iter()
            .filter(|&&size| size <= FAR * spread)
            .map(|size| size * size);
        // In ascending order, so that the order of rows can't change the last digit.
        spread = mean(sorted(near)).sqrt() / WITHOUT_FAR;
    }
    (if spread.is_finite() { spread.max(LEAST) } else { LEAST }, count as f64)
}

fn running_sums(cells: &[f64]) -> Vec<(f64, u32)> {
    let mut sums = Vec::with_capacity(cells.len() + 1);
    let (mut sum, mut count) = (0.0, 0);
    sums.push((sum, count));
    for cell in cells {
        if cell.is_finite() {
            sum += cell;
            count += 1;
        }
        sums.push((sum, count));
    }
    sums
}

fn mean_of(sums: &[(f64, u32)], steps: &[Range<usize>]) -> f64 {
    let (sum, count) = steps.iter().fold((0.0, 0), |(sum, count), part| {
        let (from, to) = (sums[part.start], sums[part.end]);
        (sum + to.0 - from.0, count + to.1 - from.1)
    });
    if count == 0 { f64::NAN } else { sum / f64::from(count) }
}
