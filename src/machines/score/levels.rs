//! Levels over minutes, against peers and against the machine's own other minutes.
//!
//! Every window of every machine has a value (its mean, or that of its reconstruction); [`super::deviations`] makes
//! deviations from the machines' median of them. Stretches of the continuity (four minutes) and longer are judged:
//!
//! * It must be borne out by its *rest*: the smallest mean that is left of it when a burst is taken out of it anywhere. A
//!   burst leaves noise there, a fault its level. The rest is held against what healthy levels of so much less time lie apart
//!   by: chance that follows a burst needs no more than to be that large, on the share of machines that have one.
//! * It must be different: large beside what the other machines' levels of the same length lie apart by ([`super::peers`]).
//! * It must be new: as far, or nearly, from the machine's own level outside of the stretch. A machine that differs in the
//!   whole window must do so `OLD_FACTOR` times as strongly: it may be built so.
//! * It must last: at nearly all times of the stretch the deviation has the same sign and at least a third of the size.
//!
//! Level over scale is Student distributed on a healthy machine when levels are normal. Its tail is multiplied by the number
//! of stretches that do not overlap, for both signs; the score is the normal variable of the result. So the tail of a score
//! is about the probability that a healthy machine reaches it in one metric of one window, whatever the noise's memory: the
//! scale is that of means of the same length. Tests hold that under noise of several kinds.

use rayon::prelude::*;

use super::deviations::Deviations;
use super::peers::{Peers, Shown, Spread};
use super::stretches::{Row, Stretches};
use super::tails::{normal_score, student_tail};
use super::{MachineScore, MetricScores, median};

/// Up to so many machines each one's scale is that of the others alone; above, an evenly spaced sample of so many is the
/// scale of all: no machine moves it any more, and nothing is quadratic.
pub const EXACT_PEERS: usize = 64;
/// What differs in the whole window must be larger by this factor.
const OLD_FACTOR: f64 = 2.5;
/// Machines are built to differ by about this share of a metric's level: a few of them may be alike to the last digit by chance.
const BUILT_SHARE: f64 = 0.01;
/// A new deviation may fall short of the level by this factor: the reference is noisy too.
const NEW_FACTOR: f64 = 1.5;
/// Share of the machines that have a burst in a window that is long enough to carry a stretch: beside those, chance must make the
/// rest. One machine in ten has a burst of 20 to 150 s; with all of them taken for long the false alarms were measured.
const BURST_CHANCE: f64 = 0.1;
/// Where levels wander slowly, chance has more of them: the power of the memory that its tail is multiplied by. Chosen on
/// the suite's tuning seeds and the public readings; the tests of this file hold that it is enough for simulated noise.
const MEMORY_POWER: f64 = 8.0;
/// Of chance's levels of any size so many also last, are new and are borne out by their rest, at most; chosen likewise.
const GATED: f64 = 0.2;
/// Two faulty machines among so many or more are judged with both left out of the scale.
const PAIR_FROM: usize = 6;
/// Share of a pair's score that counts: the pair was chosen out of all of them.
const PAIR_FACTOR: f64 = 0.8;

/// A stretch of a machine, judged.
#[derive(Debug, Clone, Copy, Default)]
struct Judged {
    score: f64,
    mean: f32,
    usual: f64,
}

/// How far a machine is off in a stretch.
#[derive(Debug, Clone, Copy)]
struct Off {
    /// In all of it.
    whole: f64,
    /// In what a burst would leave of it.
    rest: f64,
}

impl Off {
    fn times(self, factor: f64) -> Self {
        Self {
            whole: self.whole * factor,
            rest: self.rest * factor,
        }
    }
}

/// What both are held against.
#[derive(Debug, Clone, Copy)]
struct Held {
    whole: Spread,
    rest: Spread,
}

impl Held {
    fn plus(self, constant: f64) -> Self {
        Self {
            whole: self.whole.plus(constant),
            rest: self.rest.plus(constant),
        }
    }
}

struct Levels<'a> {
    plan: Stretches,
    rows: Vec<Row<'a>>,
    /// Machines that are peers, and what they show.
    shown: Vec<(usize, Shown)>,
    windows: usize,
    floor: f64,
    built: f64,
    tests: f64,
}

/// Scores every machine of a metric. `continuity_s` is how long a difference must last.
#[must_use]
pub fn judge(deviations: &Deviations, slide_s: f32, continuity_s: f32) -> MetricScores {
    let machines = deviations.smooth.len();
    let count = deviations.median.len();
    let mut scores = MetricScores {
        machines: vec![MachineScore::default(); machines],
        median: deviations.median.clone(),
        by_stretch: Vec::new(),
    };
    let plan = Stretches::new(count, slide_s, continuity_s);
    if machines < 3 || plan.all.is_empty() {
        return scores;
    }
    let levels = Levels::new(deviations, plan);
    let common = (machines > EXACT_PEERS).then(|| levels.peers(&[], false));
    let mut judged: Vec<Vec<Judged>> = (0..machines)
        .into_par_iter()
        .map(|machine| match &common {
            Some(peers) => levels.judge(machine, peers),
            None => levels.judge(machine, &levels.peers(&[machine], false)),
        })
        .collect();
    if (PAIR_FROM..=EXACT_PEERS).contains(&machines) {
        judge_pair(&levels, &mut judged);
    }
    for (best, by_stretch) in scores.machines.iter_mut().zip(&judged) {
        // The first of equal scores: the shortest, earliest stretch.
        for (judged, stretch) in by_stretch.iter().zip(&levels.plan.all) {
            if judged.score > best.score {
                *best = MachineScore {
                    score: judged.score,
                    first: stretch.start,
                    end: stretch.end,
                    deviation: f64::from(judged.mean),
                    usual: judged.usual,
                };
            }
        }
    }
    let shortest = levels.plan.all.iter().take_while(|stretch| stretch.length == 0);
    scores.by_stretch = shortest
        .enumerate()
        .map(|(place, stretch)| {
            (
                stretch.start,
                judged.iter().map(|row| row[place].score as f32).collect(),
            )
        })
        .collect();
    scores
}

/// Size of the metric's usual level.
fn usual_level(medians: &[f32]) -> f64 {
    let mut present: Vec<f32> = medians.iter().copied().filter(|value| !value.is_nan()).collect();
    let level = f64::from(median(&mut present)).abs();
    if level.is_nan() { 0.0 } else { level }
}

/// How many chances a healthy machine has in a window: both signs, and stretches that do not overlap.
fn tests_of(plan: &Stretches, windows: usize) -> f64 {
    let continuities = windows as f64 / plan.lengths.first().copied().unwrap_or(windows).max(1) as f64;
    2.0 * continuities * GATED
}

impl<'a> Levels<'a> {
    fn new(deviations: &'a Deviations, plan: Stretches) -> Self {
        let rows: Vec<Row<'a>> = deviations
            .smooth
            .par_iter()
            .map(|row| Row::new(row, plan.block))
            .collect();
        let every = rows.len().div_ceil(EXACT_PEERS).max(1);
        let present: Vec<usize> = (0..rows.len())
            .filter(|&machine| rows[machine].values.iter().any(|value| !value.is_nan()))
            .collect();
        let shown = present
            .into_par_iter()
            .step_by(every)
            .map(|machine| (machine, Shown::new(&rows[machine], &plan)))
            .collect();
        let tests = tests_of(&plan, deviations.median.len());
        Self {
            plan,
            rows,
            shown,
            windows: deviations.median.len(),
            floor: deviations.floor,
            built: BUILT_SHARE * usual_level(&deviations.median),
            tests,
        }
    }

    /// What machines are held against when some are left out.
    fn peers(&self, without: &[usize], centred: bool) -> Peers {
        let others = self.shown.iter().filter(|(machine, _)| !without.contains(machine));
        let others: Vec<&Shown> = others.map(|(_, shown)| shown).collect();
        Peers::new(&others, &self.plan, self.windows, self.floor, centred)
    }

    fn judge(&self, machine: usize, peers: &Peers) -> Vec<Judged> {
        let row = &self.rows[machine];
        let stretches = self.plan.all.iter().enumerate();
        stretches
            .map(|(place, _)| self.judge_stretch(row, place, peers).unwrap_or_default())
            .collect()
    }

    /// The normal variable of the probability that a healthy machine is off by more in any of its stretches, whether by
    /// chance alone or by chance beside a burst.
    fn score(&self, off: Off, held: &Held, memory: f64) -> f64 {
        let chances = self.tests * memory.powf(MEMORY_POWER);
        let tail = |off: f64, spread: Spread| student_tail(off / spread.square.sqrt(), spread.freedom);
        let alone = chances * tail(off.whole, held.whole);
        let beside_a_burst = BURST_CHANCE * chances * tail(off.rest, held.rest);
        normal_score(alone.max(beside_a_burst).min(0.5)).max(0.0)
    }

    fn judge_stretch(&self, row: &Row<'_>, place: usize, peers: &Peers) -> Option<Judged> {
        let stretch = self.plan.all[place];
        let centre = peers.centres[place];
        let mean = row.mean(stretch.start, stretch.end)? - centre;
        let apart = peers.apart(place, stretch.length);
        let usual = apart.square.sqrt();
        if f64::from(mean.abs()) < usual || !row.lasts(stretch, centre, mean) {
            return None;
        }
        let sign = mean.signum();
        let size = f64::from(mean.abs());
        let rest = f64::from(row.weakest_rest(stretch, self.plan.burst, sign) - centre * sign);
        let held = Held {
            whole: apart,
            rest: peers.rest(place, stretch.length),
        };
        let off = Off { whole: size, rest };
        let built = self.score(off.times(1.0 / OLD_FACTOR), &held.plus(self.built * self.built), 1.0);
        let reference = row.reference(stretch, mean, &self.plan).filter(|own| {
            let away = mean + centre - own;
            away * sign > 0.0 && row.lasts(stretch, *own, away)
        });
        let new = reference.map_or(0.0, |own| {
            let before = f64::from((own - centre) * sign);
            let away = |now: f64| now.min(NEW_FACTOR * (now - before));
            let off = Off {
                whole: away(size),
                rest: away(rest),
            };
            self.score(off, &held, peers.memory)
        });
        Some(Judged {
            score: built.max(new),
            mean,
            usual,
        })
    }
}

/// The two machines with the largest levels hide each other: each stands in the other's scale and pulls the median.
fn judge_pair(levels: &Levels<'_>, judged: &mut [Vec<Judged>]) {
    let largest = |shown: &Shown| {
        let levels = shown.levels.iter().flatten();
        levels.map(|level| level.abs()).fold(0.0, f32::max)
    };
    let mut order: Vec<(f32, usize)> = levels
        .shown
        .iter()
        .map(|(machine, shown)| (largest(shown), *machine))
        .collect();
    order.sort_by(|a, b| b.0.total_cmp(&a.0).then(a.1.cmp(&b.1)));
    let [(_, first), (_, second), ..] = order[..] else {
        return;
    };
    let pair = [first, second];
    let peers = levels.peers(&pair, true);
    let rows = pair.map(|machine| levels.judge(machine, &peers));
    let best = |row: &[Judged]| row.iter().map(|judged| judged.score).fold(0.0, f64::max);
    let most = PAIR_FACTOR * best(&rows[0]).min(best(&rows[1]));
    for (machine, row) in pair.into_iter().zip(&rows) {
        for (slot, pair) in judged[machine].iter_mut().zip(row) {
            if pair.score.min(most) > slot.score {
                *slot = Judged {
                    score: pair.score.min(most),
                    ..*pair
                };
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use rand::{Rng, SeedableRng};
    use rand_xoshiro::Xoshiro256PlusPlus;

    use super::super::deviations::deviations;
    use super::super::tails::normal_tail;
    use super::*;

    const WINDOWS: usize = 225;
    const SLIDE_S: f32 = 4.0;

    fn normal(random: &mut Xoshiro256PlusPlus) -> f32 {
        (0..12).map(|_| random.gen_range(-0.5..0.5_f32)).sum()
    }

    /// Noise of one machine: its neighbours' likeness falls to 1/e in `memory_s`; a wave of random phase; what it is built with.
    fn noise(random: &mut Xoshiro256PlusPlus, memory_s: f32, wave: f32) -> Vec<f32> {
        let keep = (-SLIDE_S / memory_s).exp();
        let (built, phase) = (0.3 * normal(random), 6.3 * random.gen_range(0.0..1.0_f32));
        let mut slow = normal(random);
        (0..WINDOWS)
            .map(|window| {
                slow = keep * slow + (1.0 - keep * keep).sqrt() * normal(random);
                built + slow + wave * (window as f32 * 0.1 + phase).sin() + 0.2 * normal(random)
            })
            .collect()
    }

    fn scores(values: &[Vec<f32>]) -> Vec<f64> {
        let judged = judge(&deviations(values, SLIDE_S), SLIDE_S, 240.0);
        judged.machines.iter().map(|machine| machine.score).collect()
    }

    #[test]
    fn chance_reaches_a_score_no_more_often_than_its_tail_says_whatever_the_memory() {
        const TASKS: usize = 80;
        const MACHINES: usize = 12;
        for (memory_s, wave) in [(1.0, 0.0), (10.0, 0.0), (50.0, 0.0), (200.0, 0.0), (5.0, 2.0)] {
            let mut random = Xoshiro256PlusPlus::seed_from_u64(11);
            let mut all = Vec::new();
            for _ in 0..TASKS {
                let task: Vec<Vec<f32>> = (0..MACHINES).map(|_| noise(&mut random, memory_s, wave)).collect();
                all.extend(scores(&task));
            }
            for score in [1.0, 1.5, 2.0, 2.5] {
                let reached = all.iter().filter(|&&own| own > score).count();
                let most = normal_tail(score) * all.len() as f64;
                assert!(
                    reached as f64 <= most,
                    "memory {memory_s} wave {wave}: {reached} above {score}, {most:.1} may be"
                );
            }
        }
    }

    #[test]
    fn a_fault_is_found_and_a_burst_is_not_even_beside_it() {
        let mut random = Xoshiro256PlusPlus::seed_from_u64(5);
        let mut task: Vec<Vec<f32>> = (0..8).map(|_| noise(&mut random, 10.0, 0.0)).collect();
        task[3][140..].iter_mut().for_each(|value| *value -= 6.0);
        task[5][60..100].iter_mut().for_each(|value| *value -= 30.0);
        let scores = scores(&task);
        assert!(scores[3] > 4.0, "{scores:?}");
        assert!(
            (0..8)
                .filter(|&machine| machine != 3)
                .all(|machine| scores[machine] < 2.0),
            "{scores:?}"
        );
    }

    #[test]
    fn two_faulty_machines_do_not_hide_each_other() {
        let mut random = Xoshiro256PlusPlus::seed_from_u64(6);
        let mut task: Vec<Vec<f32>> = (0..7).map(|_| noise(&mut random, 10.0, 0.0)).collect();
        for faulty in [1, 4] {
            task[faulty][120..].iter_mut().for_each(|value| *value += 8.0);
        }
        let scores = scores(&task);
        // Three false alarms in a hundred tasks of so many machines and one metric.
        let threshold = normal_score(0.03 / task.len() as f64);
        assert!(scores[1] > threshold && scores[4] > threshold, "{scores:?}");
        assert!(
            (0..7)
                .filter(|machine| ![1, 4].contains(machine))
                .all(|machine| scores[machine] < threshold)
        );
    }

    #[test]
    fn equal_machines_have_no_score() {
        let row: Vec<f32> = (0..WINDOWS).map(|window| (window as f32 * 0.3).sin()).collect();
        assert!(scores(&vec![row; 5]).iter().all(|&score| score == 0.0));
    }
}
