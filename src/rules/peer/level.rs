//! The fast level of a stage: the rows that tell what its work takes.
//!
//! Ranks may stand on several levels (older cards among newer ones, shared cards, half a job on a bad switch). The fast
//! level is the lowest group of at least a quarter of the rows above which a gap opens that neither noise nor the spread
//! inside the group explains; without such a gap all rows are one level. `O(n log n)`.

use super::common::BETTER_STEPS;
use super::noise::Noise;
use super::settings::{Ablation, PeerSettings};
use super::slowness::{Propose, Rows};
use crate::contract::constant::constants;
use crate::stats::{lower, mad, median};

constants! {
    /// Least share of the rows that make a level; fewer are rows that are fast by luck.
    LEAST_SHARE: f64 = 0.25;
    /// Standard deviations inside the level that its upper edge must be apart from the next row.
    APART: f64 = 4.0;
    /// A level of fewer rows tells its spread badly and needs a wider gap.
    FEW_IN_LEVEL: usize = 4;
    /// Among fewer rows a level needs a wider gap.
    FEW_ROWS: usize = 6;
    /// How much wider the gap is where few rows tell it.
    FEW: f64 = 1.5;
}

/// How many of the `sorted` values (ascending, one a row) may be the fast level, by where a gap opens; `error` is the
/// standard error of a value.
fn levels_end_at(sorted: &[f64], error: f64, settings: &PeerSettings) -> Vec<usize> {
    let count = sorted.len();
    let least = ((LEAST_SHARE.get() * count as f64).ceil() as usize).max(if count >= FEW_ROWS.get() { 2 } else { 1 });
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
    let few = |is_few: bool| if is_few { FEW.get() } else { 1.0 };
    let apart = APART.get() * spread * few(level.len() < FEW_IN_LEVEL.get());
    apart.max(settings.effect_floor) * few(count < FEW_ROWS.get())
}

/// The rows of each stage's fast level.
///
/// Where a gap may part levels the algorithms are asked; the lowest end that the gap allows and one of them proposes is it.
pub(super) fn fast_levels(
    rows: &Rows<'_>,
    medians: &[f64],
    noise: &Noise,
    propose: &Propose<'_>,
    settings: &PeerSettings,
) -> Vec<Vec<usize>> {
    let error = noise.error(rows.factors.columns());
    let mut orders: Vec<Vec<usize>> = rows
        .stages
        .iter()
        .map(|members| {
            let mut order: Vec<usize> = members
                .iter()
                .copied()
                .filter(|&row| medians[row].is_finite())
                .collect();
            order.sort_by(|&a, &b| medians[a].total_cmp(&medians[b]).then(a.cmp(&b)));
            order
        })
        .collect();
    let sorted = |order: &[usize]| -> Vec<f64> { order.iter().map(|&row| medians[row]).collect() };
    let ends: Vec<Vec<usize>> = orders
        .iter()
        .map(|order| levels_end_at(&sorted(order), error, settings))
        .collect();
    if settings.uses(Ablation::Levels) && ends.iter().any(|ends| !ends.is_empty()) {
        let mut about = vec![f64::NAN; medians.len()];
        for order in &orders {
            let fast = lower(order.iter().map(|&row| medians[row]), BETTER_STEPS.get());
            order.iter().for_each(|&row| about[row] = medians[row] - fast);
        }
        let proposals = propose(&about);
        for (order, ends) in orders.iter_mut().zip(&ends) {
            let proposed = |end: &&usize| {
                let ends_here = |fast: &Vec<bool>| order.iter().take_while(|&&row| fast[row]).count() == **end;
                proposals.iter().any(ends_here)
            };
            if let Some(&end) = ends.iter().find(proposed) {
                order.truncate(end);
            }
        }
    }
    orders.iter_mut().for_each(|order| order.sort_unstable());
    orders
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
