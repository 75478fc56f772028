//! min, max, range and mean of a rank's durations in a timer.

use ndarray::ArrayView1;
use rayon::prelude::*;

use crate::job::{DurationSums, Job, TimerTable};

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

/// Aggregates every timer of a job over the window, rank by rank, in the order of [`Job::timers`].
///
/// A duration of 0 says that the timer did not run, so only durations above 0 count. The mean adds in the order
/// of iterations, which makes it the same on every run. A job whose columns stand for several iterations brings its sums
/// along; a part of it has those of its columns.
#[must_use]
pub fn aggregate(job: &Job) -> Vec<RankFeatures> {
    let sums = job.reduced.as_ref().map_or(&[][..], |reduced| &reduced.sums);
    let of_timer = |(place, timer): (usize, &TimerTable)| RankFeatures {
        timer: timer.name.clone(),
        ranks: match sums.get(place) {
            Some(ranks) => ranks.iter().map(|sums| sums.map(feature_of_sums)).collect(),
            None => timer.seconds.rows().into_iter().map(feature_of).collect(),
        },
    };
    job.timers.par_iter().enumerate().map(of_timer).collect()
}

fn feature_of_sums(sums: DurationSums) -> Feature {
    feature(sums.least, sums.most, sums.total, sums.count)
}

fn feature_of(durations: ArrayView1<'_, f64>) -> Option<Feature> {
    let (mut min, mut max, mut sum, mut count) = (f64::INFINITY, 0.0f64, 0.0, 0u64);
    for &seconds in durations {
        // Also false for the NaN of a missing row.
        if seconds > 0.0 {
            min = min.min(seconds);
            max = max.max(seconds);
            sum += seconds;
            count += 1;
        }
    }
    (count > 0).then(|| feature(min, max, sum, count))
}

fn feature(min: f64, max: f64, sum: f64, count: u64) -> Feature {
    // The sum of durations near the largest float overflows where their mean does not.
    let mean = if sum.is_finite() { sum / count as f64 } else { max };
    [min, max, max - min, mean]
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
