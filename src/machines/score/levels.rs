//! Levels over minutes, against peers and against the machine's own other minutes.
//!
//! Every window of every machine has a value (its mean, or that of its reconstruction). What a machine's value lies
//! above or below the median of all machines is its deviation; a running median over half a minute takes out spikes.
//! For every stretch of the continuity (four minutes) a machine's level is the mean of its deviations. It counts when
//!
//! * it lasts: at nearly all times of the stretch the deviation has the same sign and at least a third of the size. A
//!   burst of two or three minutes leaves the rest of the stretch without any;
//! * it is large beside what the other machines' levels are: their spread between machines (built-in differences),
//!   their spread from stretch to stretch (levels that wander), and what the metric's range makes worth a look;
//! * it is new: the level lies as far from the machine's own median outside of the stretch. A machine that differs in
//!   the whole window must do so more strongly, for it may be built so.
//!
//! The ratio of level and scale is Student distributed on a healthy machine when levels are normal; its degrees of
//! freedom follow from the two spreads and their sample sizes (Satterthwaite 1946). The score is the normal variable of
//! the same tail, so that it means the same with 4 machines and with 4,000. The gates above only take scores away: the
//! tail is an upper bound of the false-alarm rate.
//!
//! Cost: stretches x windows a stretch x machines; nothing is quadratic in the machines above [`EXACT_PEERS`].

use rayon::prelude::*;

use super::tails::{normal_score, student_tail};
use super::{MachineScore, MetricScores, median, quantile};

/// Up to so many machines each one's scale is that of the others alone; above, one machine no longer moves the scale.
pub const EXACT_PEERS: usize = 64;
/// Deviations are smoothed over this time.
const SMOOTHED_S: f32 = 30.0;
/// Time between the starts of stretches.
const STEP_S: f32 = 8.0;
/// A lasting deviation has at least this share of its mean size...
const LASTING_SIZE: f32 = 0.35;
/// ...in at least this share of the stretch.
const LASTING_SHARE: f32 = 0.93;
/// The weaker times of a stretch: its lowest fifth...
const WEAK_SHARE: f64 = 0.2;
/// ...and how much of the mean they must bear out: noise of half the mean leaves three fifths of it at that place.
const WEAK_FACTOR: f32 = 1.6;
/// Windows that must be there in a stretch.
const PRESENT_SHARE: f32 = 0.75;
/// Time beside the stretch that is left out of the machine's own reference: faults come and go gradually.
const BESIDE_S: f32 = 30.0;
/// Shortest own reference.
const REFERENCE_S: f32 = 60.0;
/// A new deviation may fall short of the level by this factor: the reference is noisy too.
const NEW_FACTOR: f64 = 1.5;
/// What differs in the whole window must be larger by this factor.
const OLD_FACTOR: f64 = 2.5;
/// Share of the metric's range that is worth a look even if the machines are equal to the last digit.
const WORTH_A_LOOK: f64 = 0.003;
/// Outliers among the peers count as so many scales at most.
const CLIP: f64 = 3.0;
const NORMAL_MAD: f64 = 1.4826;
/// Variance of a median beside that of one value, times the number of values.
const MEDIAN_VARIANCE: f64 = std::f64::consts::FRAC_PI_2;
const MOST_FREEDOM: f64 = 200.0;
/// Two faulty machines among so many or more are judged with both left out of the scale.
const PAIR_FROM: usize = 6;
/// Share of a pair's score that counts: the pair was chosen out of all of them.
const PAIR_FACTOR: f64 = 0.8;

/// Deviations from the median of the machines, smoothed; machine by machine.
#[derive(Debug, Clone)]
pub struct Deviations {
    /// A row a machine, a value a window; NaN where the machine has no samples.
    pub smooth: Vec<Vec<f32>>,
    /// Median of the machines by window.
    pub median: Vec<f32>,
    /// Smallest level that is worth a look.
    pub floor: f64,
}

/// Takes the median of the machines off their values (a row a machine).
#[must_use]
pub fn deviations(values: &[Vec<f32>], slide_s: f32) -> Deviations {
    let count = values.first().map_or(0, Vec::len);
    let middle: Vec<f32> = (0..count)
        .into_par_iter()
        .map_init(Vec::new, |column: &mut Vec<f32>, window| {
            column.clear();
            column.extend(values.iter().map(|row| row[window]).filter(|value| !value.is_nan()));
            median(column)
        })
        .collect();
    let half = ((SMOOTHED_S / slide_s).round() as usize | 1) / 2;
    let smooth = values
        .par_iter()
        .map(|row| {
            let off: Vec<f32> = row.iter().zip(&middle).map(|(value, middle)| value - middle).collect();
            let mut near = Vec::with_capacity(2 * half + 1);
            (0..count)
                .map(|window| {
                    if off[window].is_nan() {
                        return f32::NAN;
                    }
                    near.clear();
                    // The series' ends count as often as windows are missing beyond them.
                    near.extend(
                        (window as isize - half as isize..=(window + half) as isize).filter_map(|place| {
                            let value = off[place.clamp(0, count as isize - 1) as usize];
                            (!value.is_nan()).then_some(value)
                        }),
                    );
                    median(&mut near)
                })
                .collect()
        })
        .collect();
    Deviations {
        smooth,
        floor: floor_of(values),
        median: middle,
    }
}

/// Share of the range of the values, without their extreme hundredths.
fn floor_of(values: &[Vec<f32>]) -> f64 {
    const SAMPLE: usize = 100_000;
    let total: usize = values.iter().map(Vec::len).sum();
    let every = total.div_ceil(SAMPLE).max(1) | 1;
    let all = values.iter().flatten().copied().step_by(every);
    let mut sample: Vec<f32> = all.filter(|value| !value.is_nan()).collect();
    let low = f64::from(quantile(&mut sample, 0.01));
    let high = f64::from(quantile(&mut sample, 0.99));
    if low.is_nan() {
        return 1e-12;
    }
    WORTH_A_LOOK * (high - low) + 1e-6 * low.abs().max(high.abs()) + 1e-12
}

/// What a stretch of a machine is judged by, before the peers' centre is known.
#[derive(Debug, Clone, Copy)]
struct Level {
    /// Mean deviation.
    mean: f32,
    /// Median of the machine's deviations outside of the stretch, where there are enough.
    reference: Option<f32>,
}

/// Levels by machine and stretch, and where the stretches lie.
struct Levels<'a> {
    rows: &'a [Vec<f32>],
    starts: Vec<usize>,
    long: usize,
    /// Stretches that far apart do not overlap.
    apart: usize,
    floor: f64,
    by_machine: Vec<Vec<Option<Level>>>,
}

/// What machines are held against: the peers' centre by stretch, the scale of a level and its degrees of freedom.
struct Peers {
    centres: Vec<f32>,
    scale: f64,
    freedom: f64,
}

/// Scores every machine of a metric. `continuity_s` is how long a difference must last.
#[must_use]
pub fn judge(deviations: &Deviations, slide_s: f32, continuity_s: f32) -> MetricScores {
    let machines = deviations.smooth.len();
    let count = deviations.median.len();
    let long = ((continuity_s / slide_s).round() as usize).max(1);
    let mut scores = MetricScores {
        machines: vec![MachineScore::default(); machines],
        median: deviations.median.clone(),
        by_stretch: Vec::new(),
    };
    if machines < 3 || count < long {
        return scores;
    }
    let levels = Levels::new(deviations, long, slide_s);
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
        // The first of equal scores: the earliest stretch.
        for (judged, &start) in by_stretch.iter().zip(&levels.starts) {
            if judged.score > best.score {
                *best = MachineScore {
                    score: judged.score,
                    first: start,
                    end: start + long,
                    deviation: f64::from(judged.mean),
                    usual: judged.usual,
                };
            }
        }
    }
    scores.by_stretch = levels
        .starts
        .iter()
        .enumerate()
        .map(|(place, &start)| (start, judged.iter().map(|row| row[place].score as f32).collect()))
        .collect();
    scores
}

/// A stretch of a machine, judged.
#[derive(Debug, Clone, Copy, Default)]
struct Judged {
    score: f64,
    mean: f32,
    usual: f64,
}

impl<'a> Levels<'a> {
    fn new(deviations: &'a Deviations, long: usize, slide_s: f32) -> Self {
        let step = ((STEP_S / slide_s).round() as usize).max(1);
        let count = deviations.median.len();
        let mut starts: Vec<usize> = (0..=count - long).step_by(step).collect();
        if starts.last().is_some_and(|&last| last + long < count) {
            starts.push(count - long);
        }
        let by_machine = deviations
            .smooth
            .par_iter()
            .map(|row| levels_of(row, &starts, long, slide_s))
            .collect();
        Self {
            rows: &deviations.smooth,
            starts,
            long,
            apart: long.div_ceil(step),
            floor: deviations.floor,
            by_machine,
        }
    }

    /// All machines but some.
    fn others<'b>(&'b self, without: &'b [usize]) -> impl Iterator<Item = &'b Vec<Option<Level>>> {
        let machines = self.by_machine.iter().enumerate();
        machines
            .filter(|(machine, _)| !without.contains(machine))
            .map(|(_, row)| row)
    }

    /// What machines are held against when some are left out.
    ///
    /// Levels are held against the median of all machines: a single machine moves it little, and towards itself, which is
    /// the safe side. Two faulty machines of six move it far; `centred`, levels are held against the peers' own median.
    fn peers(&self, without: &[usize], centred: bool) -> Peers {
        let mut column = Vec::new();
        let centres: Vec<f32> = (0..self.starts.len())
            .map(|place| {
                if !centred {
                    return 0.0;
                }
                column.clear();
                column.extend(
                    self.others(without)
                        .filter_map(|row| row[place])
                        .map(|level| level.mean),
                );
                let middle = median(&mut column);
                if middle.is_nan() { 0.0 } else { middle }
            })
            .collect();
        let (mut own, mut rest) = (Vec::new(), Vec::new());
        for row in self.others(without) {
            let apart = row.iter().zip(&centres).step_by(self.apart);
            let mut levels: Vec<f32> = apart
                .filter_map(|(level, centre)| Some(level.as_ref()?.mean - centre))
                .collect();
            if levels.is_empty() {
                continue;
            }
            let middle = median(&mut levels);
            own.push(f64::from(middle));
            rest.extend(levels.iter().map(|level| f64::from(level - middle)));
        }
        // Spreads about a median that was taken from the same few machines are too small, and the median itself is off.
        let few = own.len().max(2) as f64;
        let correction = if centred {
            few / (few - 1.0) * (1.0 + MEDIAN_VARIANCE / few)
        } else {
            1.0
        };
        let between = correction * self.clipped_square(&own);
        let free = rest.len() - own.len();
        let within = if free > 0 {
            correction * self.clipped_square(&rest)
        } else {
            0.0
        };
        let square = between + within + self.floor * self.floor;
        let bound = between * between / few + within * within / free.max(1) as f64;
        let freedom = if bound > 0.0 {
            square * square / bound
        } else {
            MOST_FREEDOM
        };
        Peers {
            centres,
            scale: square.sqrt(),
            freedom: freedom.min(MOST_FREEDOM),
        }
    }

    /// Mean square with outliers clipped.
    fn clipped_square(&self, values: &[f64]) -> f64 {
        if values.is_empty() {
            return 0.0;
        }
        let mut sizes: Vec<f32> = values.iter().map(|value| value.abs() as f32).collect();
        let most = CLIP * (NORMAL_MAD * f64::from(median(&mut sizes)) + self.floor);
        let sum: f64 = values.iter().map(|value| value.abs().min(most).powi(2)).sum();
        sum / values.len() as f64
    }

    fn judge(&self, machine: usize, peers: &Peers) -> Vec<Judged> {
        let each = self.by_machine[machine].iter().zip(&self.starts).zip(&peers.centres);
        each.map(|((level, &start), &centre)| {
            let Some(level) = level else { return Judged::default() };
            let stretch = &self.rows[machine][start..start + self.long];
            let mean = level.mean - centre;
            Judged {
                score: score(stretch, mean, centre, level.reference, peers),
                mean,
                usual: peers.scale,
            }
        })
        .collect()
    }
}

fn levels_of(row: &[f32], starts: &[usize], long: usize, slide_s: f32) -> Vec<Option<Level>> {
    let beside = (BESIDE_S / slide_s).round() as usize;
    let shortest = (REFERENCE_S / slide_s).ceil() as usize;
    let mut outside = Vec::with_capacity(row.len());
    starts
        .iter()
        .map(|&start| {
            let mean = present_mean(&row[start..start + long])?;
            outside.clear();
            outside.extend(
                row[..start.saturating_sub(beside)]
                    .iter()
                    .filter(|value| !value.is_nan()),
            );
            outside.extend(
                row[(start + long + beside).min(row.len())..]
                    .iter()
                    .filter(|value| !value.is_nan()),
            );
            let reference = (outside.len() >= shortest).then(|| median(&mut outside));
            Some(Level { mean, reference })
        })
        .collect()
}

fn present_mean(stretch: &[f32]) -> Option<f32> {
    let present = stretch.iter().filter(|value| !value.is_nan());
    let (count, sum) = present.fold((0_usize, 0.0_f64), |(count, sum), &value| {
        (count + 1, sum + f64::from(value))
    });
    (count > 0 && count as f32 >= PRESENT_SHARE * stretch.len() as f32).then(|| (sum / count as f64) as f32)
}

/// Whether nearly all values lie off `from` by a good part of `mean`.
fn lasts(stretch: &[f32], from: f32, mean: f32) -> bool {
    let (sign, least) = (mean.signum(), LASTING_SIZE * mean.abs());
    let (present, lasting) = stretch.iter().fold((0_usize, 0_usize), |(present, lasting), &value| {
        let enough = (value - from) * sign >= least;
        (present + usize::from(!value.is_nan()), lasting + usize::from(enough))
    });
    lasting as f32 >= LASTING_SHARE * present as f32
}

/// Size of a lasting deviation: its mean, but no more than its weaker times bear out. A strong burst of two minutes beside
/// a little wandering has a large mean.
fn steady(stretch: &[f32], from: f32, mean: f32) -> f32 {
    let toward = stretch.iter().filter(|value| !value.is_nan());
    let mut toward: Vec<f32> = toward.map(|value| (value - from) * mean.signum()).collect();
    mean.abs().min(WEAK_FACTOR * quantile(&mut toward, WEAK_SHARE))
}

fn score(stretch: &[f32], mean: f32, centre: f32, reference: Option<f32>, peers: &Peers) -> f64 {
    if f64::from(mean.abs()) < peers.scale || !lasts(stretch, centre, mean) {
        return 0.0;
    }
    let size = f64::from(steady(stretch, centre, mean)) / peers.scale;
    let judged = match reference {
        None => size / OLD_FACTOR,
        Some(reference) => {
            let away = (mean - reference) * mean.signum();
            let is_new = away > 0.0 && lasts(stretch, centre + reference, mean - reference);
            let new = if is_new {
                NEW_FACTOR * f64::from(steady(stretch, centre + reference, mean - reference)) / peers.scale
            } else {
                0.0
            };
            size.min(new).max(size / OLD_FACTOR)
        }
    };
    normal_score(student_tail(judged, peers.freedom)).max(0.0)
}

/// The two machines with the largest levels hide each other: each stands in the other's scale and pulls the median.
fn judge_pair(levels: &Levels<'_>, judged: &mut [Vec<Judged>]) {
    let largest = |machine: &usize| {
        let row = &levels.by_machine[*machine];
        row.iter().flatten().map(|level| level.mean.abs()).fold(0.0, f32::max)
    };
    let mut order: Vec<usize> = (0..levels.by_machine.len()).collect();
    order.sort_by(|a, b| largest(b).total_cmp(&largest(a)));
    let pair = [order[0], order[1]];
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
