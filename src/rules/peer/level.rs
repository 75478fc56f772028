//! The fast level of a stage: the rows that tell what its work takes.
//!
//! Ranks may stand on several levels (older cards among newer ones, shared cards, half a job on a bad switch). The fast
//! level is the lowest group of at least a quarter of the rows above which a gap opens that neither noise nor the spread
//! inside the group explains; without such a gap all rows are one level. `O(n log n)`.

use super::settings::PeerSettings;
use crate::stats::{mad, median};

/// Least share of the rows that make a level; fewer are rows that are fast by luck.
const LEAST_SHARE: f64 = 0.25;
/// Standard deviations inside the level that its upper edge must be apart from the next row.
const APART: f64 = 4.0;
/// Few rows tell their spread badly: a level of fewer than so many needs a gap half as wide again, and so does a level
/// among fewer than so many rows.
const FEW_IN_LEVEL: usize = 4;
const FEW_ROWS: usize = 6;
const FEW: f64 = 1.5;

/// How many of the `sorted` values (ascending, one a row) may be the fast level, by where a gap opens; `error` is the
/// standard error of a value.
pub(super) fn levels_end_at(sorted: &[f64], error: f64, settings: &PeerSettings) -> Vec<usize> {
    let count = sorted.len();
    let least = ((LEAST_SHARE * count as f64).ceil() as usize).max(if count >= FEW_ROWS { 2 } else { 1 });
    // A gap below the effect floor is none, which spares the rest for nearly all rows.
    (least..count)
        .filter(|&end| {
            let gap = sorted[end] - sorted[end - 1];
            gap > settings.effect_floor && gap > needed(&sorted[..end], count, error, settings)
        })
        .collect()
}

/// The gap that must open above a level among `count` rows.
fn needed(level: &[f64], count: usize, error: f64, settings: &PeerSettings) -> f64 {
    let middle = median(level.iter().copied());
    let distances: Vec<f64> = level.iter().map(|value| value - middle).collect();
    let spread = mad(&distances).max(settings.usual_spread).hypot(error);
    let few = |is_few: bool| if is_few { FEW } else { 1.0 };
    let apart = APART * spread * few(level.len() < FEW_IN_LEVEL);
    apart.max(settings.effect_floor) * few(count < FEW_ROWS)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fast(values: &[f64]) -> Option<usize> {
        levels_end_at(values, 0.001, &PeerSettings::default()).first().copied()
    }

    #[test]
    fn a_gap_parts_levels() {
        assert_eq!(fast(&[0.0, 0.01, 0.005, 0.012, 0.3, 0.31, 0.29, 0.32]), Some(4));
        assert_eq!(
            fast(&[0.0, 0.004, 0.3, 0.31, 0.7, 0.71, 0.72, 0.73]),
            Some(2),
            "the lowest of several"
        );
        assert_eq!(fast(&[0.0, 0.01, 0.02, 0.03, 0.04, 0.05, 0.06]), None, "no gap");
        assert_eq!(
            fast(&[0.0, 0.3, 0.3, 0.31, 0.31, 0.32, 0.3, 0.3]),
            None,
            "one of eight is no level"
        );
    }

    #[test]
    fn the_smallest_stages_have_levels() {
        assert_eq!(fast(&[0.0, 0.3]), Some(1));
        assert_eq!(fast(&[0.0]), None);
        assert_eq!(fast(&[]), None);
    }
}
