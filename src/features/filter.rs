//! Which timers are clustered, and why the others are not.

use std::collections::BTreeSet;

use schemars::JsonSchema;
use serde::Serialize;

use super::aggregate::{Feature, RankFeatures};
use crate::contract::timers::INTERVAL_TIME;

/// What decides which timers are clustered.
#[derive(Debug, Clone, PartialEq)]
pub struct TimerRules {
    /// Timers that count as computing: with two or more pipeline stages only these are clustered.
    pub compute_timers: BTreeSet<String>,
    /// Smallest (max - min) / mean of the rank means that is worth clustering.
    pub min_spread: f64,
    /// Pipeline stages of the job.
    pub pipeline_stages: u32,
}

/// What became of a timer.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
#[serde(tag = "fate", rename_all = "kebab-case")]
pub enum TimerFate {
    /// It is clustered.
    Clustered {
        /// (max - min) / mean of the rank means.
        spread: f64,
    },
    /// Ranks are compared with their peers in it.
    Compared {
        /// Ranks that ran it.
        ranks: usize,
    },
    /// It tells nothing of a rank's own computing.
    NotCompared,
    /// It is the step time.
    StepTime,
    /// It is no compute timer, and the job has pipeline stages that wait for each other in such timers.
    NotCompute,
    /// Some rank never ran it.
    Coverage {
        /// Ranks that ran it.
        ranks: usize,
    },
    /// Its rank means lie too close together.
    Spread {
        /// (max - min) / mean of the rank means.
        spread: f64,
    },
}

impl TimerFate {
    /// Which filter took the timer, for people.
    #[must_use]
    pub fn reason(&self, ranks: usize) -> String {
        match self {
            Self::Clustered { spread } => format!("clustered (spread {spread:.4})"),
            Self::Compared { ranks: covered } => format!("compared (it ran on {covered} of {ranks} ranks)"),
            Self::NotCompared => "left out: it tells nothing of a rank's own computing".to_owned(),
            Self::StepTime => "left out: the step time is equal on all ranks".to_owned(),
            Self::NotCompute => "left out: not a compute timer, and the job has pipeline stages".to_owned(),
            Self::Coverage { ranks: covered } => format!("left out by coverage: it ran on {covered} of {ranks} ranks"),
            Self::Spread { spread } => format!("left out by spread: the ranks differ by {spread:.4} of the mean only"),
        }
    }
}

/// A timer with its fate.
#[derive(Debug, Clone)]
pub struct TimerVerdict {
    /// The timer's features.
    pub features: RankFeatures,
    /// Whether it is clustered.
    pub fate: TimerFate,
}

impl TimerVerdict {
    /// The features of every rank when the timer is clustered.
    #[must_use]
    pub fn clustered_rows(&self) -> Option<Vec<Feature>> {
        match self.fate {
            TimerFate::Clustered { .. } => self.features.ranks.iter().copied().collect(),
            _ => None,
        }
    }

    /// Whether the timer is of a kind that is clustered, whatever its coverage and spread.
    #[must_use]
    pub fn is_candidate(&self) -> bool {
        !matches!(self.fate, TimerFate::StepTime | TimerFate::NotCompute)
    }
}

/// Decides each timer's fate.
#[must_use]
pub fn select(timers: Vec<RankFeatures>, rules: &TimerRules) -> Vec<TimerVerdict> {
    let verdict = |features: RankFeatures| TimerVerdict {
        fate: fate_of(&features, rules),
        features,
    };
    timers.into_iter().map(verdict).collect()
}

fn fate_of(features: &RankFeatures, rules: &TimerRules) -> TimerFate {
    if features.timer == INTERVAL_TIME {
        return TimerFate::StepTime;
    }
    if rules.pipeline_stages >= 2 && !rules.compute_timers.contains(&features.timer) {
        return TimerFate::NotCompute;
    }
    let covered = features.covered();
    if covered < features.ranks.len() {
        return TimerFate::Coverage { ranks: covered };
    }
    let spread = relative_spread(features.ranks.iter().flatten().map(|[.., mean]| *mean));
    if spread < rules.min_spread {
        TimerFate::Spread { spread }
    } else {
        TimerFate::Clustered { spread }
    }
}

/// (max - min) / mean; 0 for no value.
fn relative_spread(means: impl Iterator<Item = f64>) -> f64 {
    let mut means: Vec<f64> = means.collect();
    // In order, so that the order of ranks can't change the last digit.
    means.sort_unstable_by(f64::total_cmp);
    let (Some(&least), Some(&most)) = (means.first(), means.last()) else {
        return 0.0;
    };
    let sum: f64 = means.iter().sum();
    if sum == 0.0 {
        return 0.0;
    }
    let mean = if sum.is_finite() {
        sum / means.len() as f64
    } else {
        most
    };
    (most - least) / mean
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::contract::timers::COMPUTING;

    fn features(timer: &str, means: &[Option<f64>]) -> RankFeatures {
        let ranks = means
            .iter()
            .map(|mean| mean.map(|mean| [mean, mean, 0.0, mean]))
            .collect();
        RankFeatures {
            timer: timer.to_owned(),
            ranks,
        }
    }

    fn fate(timer: &str, means: &[Option<f64>], pipeline_stages: u32) -> TimerFate {
        let rules = TimerRules {
            compute_timers: COMPUTING.map(str::to_owned).into(),
            min_spread: 0.03,
            pipeline_stages,
        };
        select(vec![features(timer, means)], &rules).remove(0).fate
    }

    #[test]
    fn each_filter_takes_its_own() {
        let wide = [Some(1.0), Some(1.5)];
        assert_eq!(fate("interval-time", &wide, 1), TimerFate::StepTime);
        assert_eq!(fate("forward-send", &wide, 2), TimerFate::NotCompute);
        assert_eq!(fate("forward-send", &wide, 1), TimerFate::Clustered { spread: 0.4 });
        assert_eq!(fate("forward-compute", &wide, 2), TimerFate::Clustered { spread: 0.4 });
        assert_eq!(
            fate("forward-compute", &[Some(1.0), None], 1),
            TimerFate::Coverage { ranks: 1 }
        );
        assert!(matches!(
            fate("forward-compute", &[Some(1.0), Some(1.02)], 1),
            TimerFate::Spread { .. }
        ));
    }

    #[test]
    fn the_limit_itself_is_clustered() {
        let at_limit = [Some(0.985), Some(1.015)];
        let spread = relative_spread(at_limit.iter().flatten().copied());
        let rules = TimerRules {
            compute_timers: BTreeSet::new(),
            min_spread: spread,
            pipeline_stages: 1,
        };
        let verdict = select(vec![features("forward-compute", &at_limit)], &rules).remove(0);
        assert!(matches!(verdict.fate, TimerFate::Clustered { .. }));
    }
}
