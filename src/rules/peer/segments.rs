//! The excess of each row over its peers, in the part of the window that shows it best, and the threshold it must pass.
//!
//! A row is judged by the whole window, by the part after its change point (a fault that began) and by the part before
//! it (a fault that ended). The threshold is the effect floor or, where that is higher, the noise floor: what the
//! lasting spread of healthy peers and the standard error of the mean leave by chance, over all rows and segments,
//! with probability [`PeerSettings::false_alarm_rate`]. `O(rows x iterations)` and three sorts a row.

use super::own::OwnFactors;
use super::settings::{Ablation, PeerSettings};
use crate::stats::{MAD_TO_SD, kept, low_median, mean, median, trimmed};
use crate::stats::{exceeded_with, student};

/// Fewest iterations in which a change point is looked for.
const LEAST_ITERATIONS: usize = 12;
/// Fewest iterations on either side of it, and fewest columns where they stand for several.
const LEAST_PART: usize = 6;
const LEAST_COLUMNS: usize = 2;
/// From this many rows on, those that are their stage's level do not count for the spread: they are 0 by construction.
const MANY: usize = 12;
/// Fewer rows than this take the lower median of their distances for the spread.
const FEW: usize = 6;
/// How many tests the noise floor allows for: a change point was searched, so that its parts cost more.
const TESTS_WHOLE: f64 = 2.0;
const TESTS_PART: f64 = 10.0;
/// Share of its threshold from which a row does not tell the spread.
const HIDING: f64 = 0.75;
/// A row without peers must change by this many thresholds.
const ALONE: f64 = 2.0;

/// The split of a row that has none.
const NO_CHANGE: (usize, f64) = (0, 0.0);

/// One row's score.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Score {
    /// Log of the row's time over its peers' in the segment; NaN without data.
    pub excess: f64,
    /// What the excess must pass.
    pub threshold: f64,
    /// First iteration of the segment, by place.
    pub from: usize,
    /// The iteration after its last.
    pub to: usize,
    /// What the row's own factor is where it is not slow: 0, or without peers its better part's mean.
    pub base: f64,
}

impl Score {
    /// Whether the row is slow beyond the floors.
    pub fn passes(&self) -> bool {
        self.excess > self.threshold
    }

    /// Excess in units of the threshold.
    pub fn margin(&self) -> f64 {
        self.excess / self.threshold
    }
}

/// Scores every row.
pub(super) fn score(own: &OwnFactors, settings: &PeerSettings) -> Vec<Score> {
    let iterations = own.factors.columns();
    let changes = own.factors.map(|_, cells| {
        if settings.uses(Ablation::ChangePoint) {
            change_point(cells, LEAST_PART.div_ceil(settings.column()).max(LEAST_COLUMNS))
        } else {
            NO_CHANGE
        }
    });
    let at = |row: usize| changes[row].0;
    let whole = Segment::measure(own, settings, TESTS_WHOLE, |_| (0, iterations));
    let before = Segment::measure(own, settings, TESTS_PART, |row| (0, at(row)));
    let after = Segment::measure(own, settings, TESTS_PART, |row| (at(row), iterations));
    let judge = |row: usize| {
        let (at, jump) = changes[row];
        let alone = own.is_alone(row);
        let (began, ended) = (at > 0 && jump > 0.0, at > 0 && jump < 0.0);
        let covers = at as f64 >= settings.persistence.lasting_share * iterations as f64;
        let (early, late) = (before.excess[row], after.excess[row]);
        let margin = whole.excess[row] / whole.threshold[row];
        let up = began && (alone || early < 0.5 * late && late / after.threshold[row] > margin);
        let down = ended && covers && (alone || late < 0.5 * early && early / before.threshold[row] > margin);
        let cells = own.factors.row(row);
        let (excess, threshold) = match (up, down) {
            (true, _) if alone => (late - early, after.threshold[row]),
            (true, _) => (late, after.threshold[row]),
            (_, true) if alone => (early - late, before.threshold[row]),
            (_, true) => (early, before.threshold[row]),
            _ if alone => (0.0, whole.threshold[row]),
            _ => (whole.excess[row], whole.threshold[row]),
        };
        let better_part = if up { &cells[..at] } else { &cells[at..] };
        Score {
            excess,
            threshold: if alone { ALONE * threshold } else { threshold },
            from: if up { at } else { 0 },
            to: if down { at } else { iterations },
            base: if alone { mean(better_part.iter().copied()) } else { 0.0 },
        }
    };
    (0..own.factors.rows()).map(judge).collect()
}

/// The excess of rows in segments of their own, over the low median of the normal rows.
///
/// A trimmed mean lies below the mean by what the noise gives, so the segment's own usual is taken out.
pub(super) fn centred(own: &OwnFactors, trim: f64, segment: impl Fn(usize) -> (usize, usize) + Sync) -> Vec<f64> {
    let mut excess = own.factors.map(|row, cells| {
        let (from, to) = segment(row);
        trimmed(&cells[from..to], trim)
    });
    let usual = low_median(
        (0..excess.len())
            .filter(|&row| own.is_normal(row))
            .map(|row| excess[row]),
    );
    excess.iter_mut().for_each(|excess| *excess -= usual);
    excess
}

struct Segment {
    excess: Vec<f64>,
    threshold: Vec<f64>,
}

impl Segment {
    fn measure(
        own: &OwnFactors,
        settings: &PeerSettings,
        tests: f64,
        segment: impl Fn(usize) -> (usize, usize) + Sync,
    ) -> Self {
        let excess = centred(own, settings.trim, &segment);
        let peers: Vec<f64> = own.peers.iter().map(|&peers| peers.max(1) as f64).collect();
        let steps = own.factors.map(|row, cells| {
            let (from, to) = segment(row);
            let told = cells[from..to].iter().filter(|cell| cell.is_finite()).count();
            kept(told, settings.trim).max(1)
        });
        let count = excess.iter().filter(|excess| excess.is_finite()).count().max(2) as f64;
        let quantile = exceeded_with(settings.false_alarm_rate / (tests * count));
        let of_error = student(quantile, own.degrees_of_freedom);
        // Few rows tell their spread badly.
        let of_spread = quantile * (1.0 + 1.5 / count);
        let thresholds = |spread: f64| -> Vec<f64> {
            let noise = |row: usize| (of_spread * spread).hypot(of_error * own.standard_error(steps[row]));
            if !settings.uses(Ablation::NoiseFloor) {
                return vec![settings.effect_floor; excess.len()];
            }
            let of_row = |row: usize| settings.effect_floor.max(noise(row) * (1.0 + 1.0 / peers[row]).sqrt());
            (0..excess.len()).map(of_row).collect()
        };
        let mut telling: Vec<usize> = (0..excess.len())
            .filter(|&row| own.is_normal(row) && !own.is_alone(row) && excess[row].is_finite())
            .collect();
        if telling.len() >= MANY {
            telling.retain(|&row| !own.is_level[row]);
        }
        let usual = |telling: &[usize]| thresholds(spread(&excess, &peers, telling, count, settings));
        let mut threshold = usual(&telling);
        loop {
            // Many slow rows widen the spread and hide in it: those close to the threshold do not tell what is usual.
            let before = telling.len();
            telling.retain(|&row| excess[row] <= HIDING * threshold[row]);
            if telling.len() == before {
                break;
            }
            threshold = usual(&telling);
        }
        Self { excess, threshold }
    }
}

/// The lasting spread of peers: that of the `telling` rows and, as far as rows are few, the usual one.
fn spread(excess: &[f64], peers: &[f64], telling: &[usize], count: f64, settings: &PeerSettings) -> f64 {
    // A row's distance from the reference holds the reference's error too.
    let distances: Vec<f64> = telling
        .iter()
        .map(|&row| excess[row].abs() / (1.0 + 1.0 / peers[row]).sqrt())
        .collect();
    let few = distances.len() < FEW;
    let seen = MAD_TO_SD * if few { low_median(distances) } else { median(distances) };
    let seen = if seen.is_finite() { seen } else { 0.0 };
    let trust = settings.usual_spread_peers;
    let usual = settings.usual_spread * settings.usual_spread;
    let spread = (count * seen * seen + trust * usual) / (count + trust);
    spread.sqrt().max(settings.least_spread)
}

/// The split that parts a row best (most variance between the parts, each of at least `least_part` columns) and the jump
/// there; (0, 0) in a short window.
fn change_point(cells: &[f64], least_part: usize) -> (usize, f64) {
    let count = cells.len();
    if count < LEAST_ITERATIONS {
        return NO_CHANGE;
    }
    let usual = mean(cells.iter().copied());
    let usual = if usual.is_finite() { usual } else { 0.0 };
    let value = |at: usize| if cells[at].is_finite() { cells[at] } else { usual };
    let total: f64 = (0..count).map(value).sum();
    let least = least_part.max(count / 12);
    let (mut sum, mut best) = (0.0, (0, 0.0, f64::NEG_INFINITY));
    for at in 1..=count - least {
        sum += value(at - 1);
        if at < least {
            continue;
        }
        let (before, after) = (at as f64, (count - at) as f64);
        let jump = (total - sum) / after - sum / before;
        let parted = jump.abs() * (before * after / count as f64).sqrt();
        if parted > best.2 {
            best = (at, jump, parted);
        }
    }
    (best.0, best.1)
}

#[cfg(test)]
mod tests {
    use super::super::rows::RowPlaces;
    use super::super::table::Table;
    use super::*;

    fn uneven(row: usize, t: usize) -> f64 {
        1.0 + 0.01 * ((row * 31 + t * 17 + row * t * 7) % 13) as f64 / 13.0
    }

    /// 16 peers of which row 3 is `slow(t)` times as slow.
    fn scores(slow: impl Fn(usize) -> f64 + Sync) -> Vec<Score> {
        let seconds = Table::fill(16, 40, |row, cells| {
            for (t, cell) in cells.iter_mut().enumerate() {
                *cell = uneven(row, t) * if row == 3 { slow(t) } else { 1.0 };
            }
        });
        let places = RowPlaces::new(&[0; 16], &(0..16).collect::<Vec<_>>(), vec![0; 16]);
        let settings = PeerSettings::default();
        score(&OwnFactors::of(&seconds, &places, &settings), &settings)
    }

    fn passing(scores: &[Score]) -> Vec<usize> {
        (0..scores.len()).filter(|&row| scores[row].passes()).collect()
    }

    #[test]
    fn a_lasting_fault_is_seen_whole() {
        let scores = scores(|_| 1.1);
        assert_eq!(passing(&scores), [3]);
        assert!((scores[3].excess - 1.1f64.ln()).abs() < 0.01, "{:?}", scores[3]);
        assert_eq!((scores[3].from, scores[3].to), (0, 40));
        assert!(scores[3].threshold >= 0.025);
    }

    #[test]
    fn beginning_and_end_are_found() {
        let began = scores(|t| if t >= 25 { 1.2 } else { 1.0 });
        assert_eq!(passing(&began), [3]);
        assert_eq!((began[3].from, began[3].to), (25, 40));
        let ended = scores(|t| if t < 20 { 1.2 } else { 1.0 });
        assert_eq!(passing(&ended), [3]);
        assert_eq!((ended[3].from, ended[3].to), (0, 20));
    }

    #[test]
    fn nothing_passes_in_health_or_in_a_short_spell() {
        assert!(passing(&scores(|_| 1.0)).is_empty());
        assert!(passing(&scores(|t| if t == 9 || t == 10 { 3.0 } else { 1.0 })).is_empty());
    }

    #[test]
    fn a_third_that_is_slow_does_not_hide_in_its_own_spread() {
        let seconds = Table::fill(24, 40, |row, cells| {
            for (t, cell) in cells.iter_mut().enumerate() {
                // Peers that differ by 0.7 % (sd) lastingly; rows 16-23 take 8 % longer.
                let lasting = 1.0 + 0.007 * 1.7 * ((row * 7 % 16) as f64 / 7.5 - 1.0);
                *cell = lasting * uneven(row, t) * if row >= 16 { 1.08 } else { 1.0 };
            }
        });
        let places = RowPlaces::new(&[0; 24], &(0..24).collect::<Vec<_>>(), vec![0; 24]);
        let settings = PeerSettings::default();
        let scores = score(&OwnFactors::of(&seconds, &places, &settings), &settings);
        assert_eq!(passing(&scores), (16..24).collect::<Vec<_>>());
    }
}
