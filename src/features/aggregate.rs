//! min, max, range and mean of a rank's durations in a timer.

use ndarray::ArrayView1;

use crate::job::TimerTable;

/// `[min, max, range, mean]` of one rank's durations, seconds.
pub type Feature = [f64; 4];

/// One timer's features.
#[derive(Debug, Clone)]
pub struct RankFeatures {
    /// Name of the timer.
    pub timer: String,
    /// One entry a rank of the job; `None` where the timer never ran there (no duration above 0).
    pub ranks: Vec<Option<Feature>>,
}

impl RankFeatures {
    /// Ranks on which the timer ran.
    #[must_use]
    pub fn covered(&self) -> usize {
        self.ranks.iter().flatten().count()
    }
}

/// Aggregates a timer over the window, rank by rank.
///
/// A duration of 0 says that the timer did not run, so only durations above 0 count. The mean adds in the order
/// of iterations, which makes it the same on every run.
#[must_use]
pub fn aggregate(timer: &TimerTable) -> RankFeatures {
    let ranks = timer.seconds.rows().into_iter().map(feature_of).collect();
    RankFeatures {
        timer: timer.name.clone(),
        ranks,
    }
}

fn feature_of(durations: ArrayView1<'_, f64>) -> Option<Feature> {
    let (mut min, mut max, mut sum, mut count) = (f64::INFINITY, 0.0f64, 0.0, 0u32);
    for &seconds in durations {
        // Also false for the NaN of a missing row.
        if seconds > 0.0 {
            min = min.min(seconds);
            max = max.max(seconds);
            sum += seconds;
            count += 1;
        }
    }
    if count == 0 {
        return None;
    }
    // The sum of durations near the largest float overflows where their mean does not.
    let mean = if sum.is_finite() { sum / f64::from(count) } else { max };
    Some([min, max, max - min, mean])
}

#[cfg(test)]
mod tests {
    use ndarray::aview1;

    use super::*;

    #[test]
    fn missing_rows_and_zeros_do_not_count() {
        let durations = [f64::NAN, 2.0, 0.0, 1.0, 3.0, f64::NAN];
        assert_eq!(feature_of(aview1(&durations)), Some([1.0, 3.0, 2.0, 2.0]));
        assert_eq!(feature_of(aview1(&[0.0, f64::NAN])), None);
        assert_eq!(feature_of(aview1(&[])), None);
    }

    #[test]
    fn huge_durations_stay_finite() {
        let feature = feature_of(aview1(&[f64::MAX, f64::MAX])).expect("it ran");
        assert!(feature.iter().all(|value| value.is_finite()));
    }
}
