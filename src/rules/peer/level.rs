//! The level of a stage: what its healthy rows take.
//!
//! The lower median of the rows' means, because faults only slow down. Where whole nodes stand above a gap that noise
//! does not open, they may be the majority (half a job on one bad switch or power feed), and the level is that of the
//! rows below the gap. `O(n log n)`.

use super::rows::grouped;
use super::settings::{Ablation, PeerSettings};
use crate::stats::{low_median, mad, median};

/// Fewer peers than this need a gap twice as wide.
const MANY: usize = 6;

/// The level of peers with the given means, and who lies above the gap if they are taken for a slow majority.
///
/// `standard_error` is that of a row's mean. NaN for no value at all.
pub(super) fn level_of(means: &[f64], nodes: &[u32], standard_error: f64, settings: &PeerSettings) -> (f64, Vec<bool>) {
    let mut above = vec![false; means.len()];
    let usual = low_median(means.iter().copied());
    let mut order: Vec<usize> = (0..means.len()).filter(|&row| means[row].is_finite()).collect();
    let count = order.len();
    if count < 3 || !settings.uses(Ablation::Majority) {
        return (usual, above);
    }
    order.sort_unstable_by(|&a, &b| means[a].total_cmp(&means[b]));
    let sorted: Vec<f64> = order.iter().map(|&row| means[row]).collect();
    let mut split = 1;
    for at in 2..count {
        if sorted[at] - sorted[at - 1] > sorted[split] - sorted[split - 1] {
            split = at;
        }
    }
    let gap = sorted[split] - sorted[split - 1];
    let (low, high) = sorted.split_at(split);
    let spread = mad(low).max(mad(high)).max(settings.least_spread);
    let mut needed = settings.effect_floor.max(3.0 * spread);
    if standard_error.is_finite() {
        needed = needed.max(4.0 * standard_error);
    }
    if count < MANY {
        needed *= 2.0;
    }
    let plausible = 4 * split >= count && 2 * split <= count && (split > 1 || count < MANY);
    if !plausible || gap < needed {
        return slow_nodes(means, nodes, &order, settings).unwrap_or((usual, above));
    }
    let mut low_nodes: Vec<u32> = order[..split].iter().map(|&row| nodes[row]).collect();
    low_nodes.sort_unstable();
    if order[split..]
        .iter()
        .any(|&row| low_nodes.binary_search(&nodes[row]).is_ok())
    {
        return slow_nodes(means, nodes, &order, settings).unwrap_or((usual, above));
    }
    for &row in &order[split..] {
        above[row] = true;
    }
    (median(low.iter().copied()), above)
}

/// The same where single rows close the gap: by the medians of nodes with [`MANY`] rows at least, which single rows do
/// not move. `order` holds the rows with a mean, ascending.
fn slow_nodes(means: &[f64], nodes: &[u32], order: &[usize], settings: &PeerSettings) -> Option<(f64, Vec<bool>)> {
    let on_node = grouped(order.iter().map(|&row| (nodes[row], 0)));
    let rows = |group: &Vec<usize>| -> Vec<usize> { group.iter().map(|&at| order[at]).collect() };
    let mut levels: Vec<(f64, Vec<usize>)> = on_node
        .iter()
        .map(rows)
        .map(|rows| (median(rows.iter().map(|&row| means[row])), rows))
        .collect();
    if levels.len() < 3 || levels.iter().any(|(_, rows)| rows.len() < MANY) {
        return None;
    }
    levels.sort_by(|a, b| a.0.total_cmp(&b.0).then_with(|| a.1.cmp(&b.1)));
    let gap = |at: &usize| levels[*at].0 - levels[at - 1].0;
    let split = (1..levels.len()).rev().max_by(|a, b| gap(a).total_cmp(&gap(b)))?;
    let (low, high) = levels.split_at(split);
    let of = |nodes: &[(f64, Vec<usize>)]| -> Vec<f64> {
        nodes.iter().flat_map(|(_, rows)| rows).map(|&row| means[row]).collect()
    };
    let (low_means, high_means) = (of(low), of(high));
    let plausible = 4 * low_means.len() >= order.len() && 2 * low_means.len() <= order.len();
    let spread = mad(&low_means).max(mad(&high_means)).max(settings.least_spread);
    if !plausible || gap(&split) < settings.effect_floor.max(3.0 * spread) {
        return None;
    }
    let mut above = vec![false; means.len()];
    high.iter()
        .flat_map(|(_, rows)| rows)
        .for_each(|&row| above[row] = true);
    Some((median(low_means), above))
}

/// The level of peers of whom it is known who lies above the gap.
pub(super) fn level_below(means: &[f64], above: Vec<bool>) -> (f64, Vec<bool>) {
    let below = || {
        means
            .iter()
            .zip(&above)
            .filter(|(_, above)| !**above)
            .map(|(mean, _)| *mean)
    };
    let some_above = above.contains(&true) && below().any(f64::is_finite);
    let level = if some_above {
        median(below())
    } else {
        low_median(means.iter().copied())
    };
    (level, above)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn level(means: &[f64], nodes: &[u32]) -> (f64, usize) {
        let (level, above) = level_of(means, nodes, 0.001, &PeerSettings::default());
        (level, above.iter().filter(|&&above| above).count())
    }

    #[test]
    fn it_is_the_lower_median() {
        assert_eq!(level(&[0.3, 0.1], &[0, 1]), (0.1, 0));
        assert_eq!(level(&[0.0, 0.01, 0.5, 0.02], &[0, 0, 1, 1]), (0.01, 0));
        assert!(level(&[f64::NAN], &[0]).0.is_nan());
    }

    #[test]
    fn whole_slow_nodes_may_be_the_majority() {
        let means = [0.0, 0.001, 0.2, 0.201, 0.199, 0.2, 0.202, 0.2];
        assert_eq!(level(&means, &[0, 0, 1, 1, 2, 2, 3, 3]), (0.0005, 6));
        // A node with rows on both sides: the gap is no node's doing.
        assert_eq!(level(&means, &[0, 1, 1, 1, 2, 2, 3, 3]).1, 0);
    }

    #[test]
    fn a_known_majority_leaves_the_rest_for_the_level() {
        let means = [0.0, 0.3, 0.1, 0.4, f64::NAN];
        assert_eq!(level_below(&means, vec![false, true, false, true, true]).0, 0.05);
        assert_eq!(level_below(&means, vec![false; 5]).0, 0.1);
        assert_eq!(level_below(&[0.2, f64::NAN], vec![true, false]).0, 0.2);
    }

    #[test]
    fn single_rows_between_do_not_hide_slow_nodes() {
        // Three of five nodes are 8 % slower; one row of a fast node and one of a slow node nearly meet.
        let nodes: Vec<u32> = (0..40).map(|row| row / 8).collect();
        let mean = |row: u32| {
            let slow = if matches!(row / 8, 1 | 4) { 0.0 } else { 0.08 };
            let lasting = 0.004 * f64::from(row * 5 % 8) / 7.0;
            slow + lasting
                + match row {
                    12 => 0.04,
                    29 => -0.035,
                    _ => 0.0,
                }
        };
        let means: Vec<f64> = (0..40).map(mean).collect();
        let (level, above) = level_of(&means, &nodes, 0.001, &PeerSettings::default());
        assert!(level < 0.005, "{level}");
        let expected: Vec<bool> = nodes.iter().map(|node| !matches!(node, 1 | 4)).collect();
        assert_eq!(above, expected);
        // One slow node of five is no majority.
        let one: Vec<f64> = (0..40)
            .map(|row| if row < 8 { 0.08 } else { 0.001 * f64::from(row % 3) })
            .collect();
        assert_eq!(level_of(&one, &nodes, 0.001, &PeerSettings::default()).1, [false; 40]);
    }
}
