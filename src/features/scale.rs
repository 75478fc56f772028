//! Robust scaling of feature columns.

use super::aggregate::Feature;
use crate::stats::{IQR_TO_SD, MAD_TO_SD, quantile};

/// Scales each column to (x - median) / spread.
///
/// The spread is 1.4826 MAD; where that is 0 (more than half of the ranks agree) IQR / 1.349; where that is 0 the
/// standard deviation; where that is 0 (all ranks agree) 1. `n x 4` in, `n x 4` out, finite for finite input.
#[must_use]
pub fn robust_scale(rows: &[Feature]) -> Vec<Feature> {
    let mut scaled = vec![[0.0; 4]; rows.len()];
    for column in 0..4 {
        let values: Vec<f64> = rows.iter().map(|row| row[column]).collect();
        for (row, value) in scaled.iter_mut().zip(scale_column(&values)) {
            row[column] = value;
        }
    }
    scaled
}

fn scale_column(values: &[f64]) -> Vec<f64> {
    if values.is_empty() {
        return Vec::new();
    }
    // Differences and squares of the largest floats would overflow.
    let largest = values.iter().fold(0.0f64, |largest, value| largest.max(value.abs()));
    let unit = if largest > 1e150 { largest } else { 1.0 };
    let values: Vec<f64> = values.iter().map(|value| value / unit).collect();
    let mut sorted = values.clone();
    sorted.sort_unstable_by(f64::total_cmp);
    let median = quantile(&sorted, 0.5);
    let mut deviations: Vec<f64> = sorted.iter().map(|value| (value - median).abs()).collect();
    deviations.sort_unstable_by(f64::total_cmp);
    let mad = quantile(&deviations, 0.5) * MAD_TO_SD;
    let spread = [
        mad,
        (quantile(&sorted, 0.75) - quantile(&sorted, 0.25)) / IQR_TO_SD,
        // Over the sorted values, so that the order of ranks can't change the last digit.
        standard_deviation(&sorted),
    ]
    .into_iter()
    .find(|&spread| spread > 0.0)
    .unwrap_or(1.0);
    values.iter().map(|value| finite((value - median) / spread)).collect()
}

/// A spread may be so small that the quotient overflows; the largest float still is far off.
fn finite(value: f64) -> f64 {
    value.clamp(-f64::MAX, f64::MAX)
}

fn standard_deviation(values: &[f64]) -> f64 {
    let count = values.len() as f64;
    let mean = values.iter().sum::<f64>() / count;
    (values.iter().map(|value| (value - mean).powi(2)).sum::<f64>() / count).sqrt()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn first_column(values: &[f64]) -> Vec<f64> {
        let rows: Vec<Feature> = values.iter().map(|&value| [value, 0.0, 0.0, 0.0]).collect();
        robust_scale(&rows).iter().map(|row| row[0]).collect()
    }

    #[test]
    fn the_spread_is_the_mad() {
        let scaled = first_column(&[1.0, 2.0, 3.0, 4.0, 100.0]);
        assert_eq!(scaled[2], 0.0);
        assert!((scaled[3] - 1.0 / MAD_TO_SD).abs() < 1e-12);
        assert!((scaled[4] - 97.0 / MAD_TO_SD).abs() < 1e-9);
    }

    #[test]
    fn where_most_agree_the_next_spread_serves() {
        // MAD 0, IQR 0.75: the quartile interpolates into the tail.
        let by_iqr = first_column(&[1.0, 1.0, 1.0, 1.0, 2.0, 4.0]);
        assert!((by_iqr[5] - 3.0 / (0.75 / IQR_TO_SD)).abs() < 1e-12, "{by_iqr:?}");
        // MAD and IQR 0.
        let by_sd = first_column(&[1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 2.0]);
        assert!((by_sd[7] - 1.0 / (7.0f64 / 64.0).sqrt()).abs() < 1e-12, "{by_sd:?}");
        assert_eq!(first_column(&[5.0, 5.0, 5.0]), [0.0, 0.0, 0.0]);
        assert_eq!(first_column(&[5.0]), [0.0]);
        assert!(first_column(&[]).is_empty());
    }

    #[test]
    fn extreme_values_stay_finite() {
        for values in [
            [f64::MAX, -f64::MAX, 0.0, 1.0],
            [5e-324, 1.0, 1e300, 2.0],
            [0.0, 0.0, 5e-324, 1e308],
        ] {
            assert!(
                first_column(&values).iter().all(|value| value.is_finite()),
                "{values:?}"
            );
        }
    }
}
