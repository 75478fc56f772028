//! Order statistics and means that ignore missing values (NaN); all of them NaN where there is no value.

/// A normal distribution's standard deviation over its median absolute deviation.
pub const MAD_TO_SD: f64 = 1.4826;
/// A normal distribution's interquartile range over its standard deviation.
pub const IQR_TO_SD: f64 = 1.349;
/// The distance of a normal distribution's 10 % and 90 % quantiles, in standard deviations.
const DECILES_TO_SD: f64 = 2.563;
/// Slowest values of a row that [`trimmed`] leaves out at least.
const TRIM_AT_LEAST: usize = 3;

fn finite(values: impl IntoIterator<Item = f64>) -> Vec<f64> {
    values.into_iter().filter(|value| value.is_finite()).collect()
}

/// The finite values, ascending.
pub fn sorted(values: impl IntoIterator<Item = f64>) -> Vec<f64> {
    let mut values = finite(values);
    values.sort_unstable_by(f64::total_cmp);
    values
}

/// The median; the middle of the two middle values of an even number.
pub fn median(values: impl IntoIterator<Item = f64>) -> f64 {
    let mut values = finite(values);
    let count = values.len();
    if count == 0 {
        return f64::NAN;
    }
    let (below, &mut upper, _) = values.select_nth_unstable_by(count / 2, f64::total_cmp);
    if count % 2 == 1 {
        return upper;
    }
    below.iter().copied().fold(f64::NEG_INFINITY, f64::max).midpoint(upper)
}

/// The lower median: of an even number the lower of the two middle values.
///
/// Faults only slow down, so that among few peers the lower value is the reference.
pub fn low_median(values: impl IntoIterator<Item = f64>) -> f64 {
    let mut values = finite(values);
    let count = values.len();
    if count == 0 {
        return f64::NAN;
    }
    *values.select_nth_unstable_by((count - 1) / 2, f64::total_cmp).1
}

/// The order statistic below which `share` (below 1) of the values lie; of two always the lower one.
pub fn lower(values: impl IntoIterator<Item = f64>, share: f64) -> f64 {
    let mut values = finite(values);
    let count = values.len();
    if count == 0 {
        return f64::NAN;
    }
    let at = (share.clamp(0.0, 1.0) * (count - 1) as f64) as usize;
    *values.select_nth_unstable_by(at, f64::total_cmp).1
}

/// Median absolute deviation from the median, as a standard deviation.
pub fn mad(values: &[f64]) -> f64 {
    let centre = median(values.iter().copied());
    MAD_TO_SD * median(values.iter().map(|value| (value - centre).abs()))
}

/// Standard deviation from the 10 % and 90 % quantiles: unlike the MAD it sees spikes in every fifth step.
pub fn width(values: &[f64]) -> f64 {
    let sorted = sorted(values.iter().copied());
    if sorted.is_empty() {
        return f64::NAN;
    }
    (quantile(&sorted, 0.9) - quantile(&sorted, 0.1)) / DECILES_TO_SD
}

/// Linear interpolation between order statistics, as `numpy.percentile`; NaN of an empty slice. A share beyond 0 to 1 is the nearer end.
pub fn quantile(sorted: &[f64], share: f64) -> f64 {
    let Some(last) = sorted.len().checked_sub(1) else {
        return f64::NAN;
    };
    let position = share.clamp(0.0, 1.0) * last as f64;
    let below = position as usize;
    let (low, high) = (sorted[below], sorted[(below + 1).min(last)]);
    // Of equal neighbours, infinite ones among them, the difference would not be a number.
    if low == high {
        low
    } else {
        low + (position - below as f64) * (high - low)
    }
}

/// The mean, added in the given order.
pub fn mean(values: impl IntoIterator<Item = f64>) -> f64 {
    let (mut sum, mut count) = (0.0, 0u32);
    for value in values {
        if value.is_finite() {
            sum += value;
            count += 1;
        }
    }
    if count == 0 { f64::NAN } else { sum / f64::from(count) }
}

/// The mean, added in ascending order, so that the order of rows can't change the last digit.
pub fn mean_in_any_order(values: impl IntoIterator<Item = f64>) -> f64 {
    mean(sorted(values))
}

/// The mean without the slowest `share` of the values (3 at least, unless it is 0), of which 2 always stay.
///
/// A spell of a few slow steps and rare slow calls do not move it; a lasting fault does.
pub fn trimmed(values: &[f64], share: f64) -> f64 {
    let sorted = sorted(values.iter().copied());
    let kept = kept(sorted.len(), share);
    mean(sorted.into_iter().take(kept))
}

/// How many of `count` values [`trimmed`] keeps.
pub fn kept(count: usize, share: f64) -> usize {
    if share == 0.0 {
        return count;
    }
    let cut = TRIM_AT_LEAST.max((share * count as f64).ceil() as usize);
    count - cut.min(count.saturating_sub(2))
}

#[cfg(test)]
mod tests {
    use super::*;

    const N: f64 = f64::NAN;

    #[test]
    fn medians_ignore_what_is_missing() {
        assert_eq!(median([3.0, N, 1.0, 2.0]), 2.0);
        assert_eq!(median([4.0, 1.0, 3.0, 2.0]), 2.5);
        assert_eq!(low_median([4.0, 1.0, 3.0, 2.0, N]), 2.0);
        assert_eq!(low_median([5.0, 7.0]), 5.0);
        assert!(median([N]).is_nan() && low_median([]).is_nan() && mad(&[N]).is_nan() && width(&[]).is_nan());
    }

    #[test]
    fn spreads_are_standard_deviations() {
        let values: Vec<f64> = (0..101).map(f64::from).collect();
        assert!((mad(&values) - MAD_TO_SD * 25.0).abs() < 1e-12);
        assert!((width(&values) - 80.0 / DECILES_TO_SD).abs() < 1e-12);
        assert_eq!(width(&[7.0]), 0.0);
        let spiky: Vec<f64> = (0..100).map(|at| if at % 5 == 0 { 1.0 } else { 0.0 }).collect();
        assert_eq!(mad(&spiky), 0.0);
        assert!(width(&spiky) > 0.3);
    }

    #[test]
    fn the_trimmed_mean_outlasts_a_spell_but_keeps_two_values() {
        let spell: Vec<f64> = (0..20).map(|at| if at < 3 { 9.0 } else { 1.0 }).collect();
        assert_eq!(trimmed(&spell, 0.15), 1.0);
        assert_eq!(trimmed(&[1.0, 2.0, 9.0], 0.15), 1.5);
        assert_eq!(trimmed(&[4.0], 0.15), 4.0);
        assert!(trimmed(&[N, N], 0.15).is_nan());
    }
}
