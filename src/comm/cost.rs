//! What slow communication costs, as a share of the step.

use super::thresholds::{GROWTH_ERRORS, LEAST_REST, LEAST_SIDE};
use crate::job::{Job, StepMeasure};
use crate::stats::{mad, median};

/// The steps of a job, as far as costs need them.
#[derive(Debug)]
pub(super) struct Steps {
    /// Usual length, seconds; NaN where it is not known.
    pub usual: f64,
    /// Length of each, seconds; none where no timer holds the whole step.
    seconds: Vec<f64>,
}

impl Steps {
    /// By the whole-step timer; where there is none `otherwise` is the usual length.
    pub fn of(job: &Job, otherwise: f64) -> Self {
        match job.step_seconds() {
            (Some(StepMeasure::IntervalTime), seconds) => Self {
                usual: median(seconds.iter().copied()),
                seconds,
            },
            _ => Self {
                usual: otherwise,
                seconds: Vec::new(),
            },
        }
    }

    /// Seconds that a fault adds to each of its slow steps, in the mean over all steps, over what is left of the step
    /// without them; `None` where the step's length is not known. A fault that begins or ends inside the window can't
    /// cost more than the steps grew by.
    pub fn cost(&self, extra: f64, slow: &[bool]) -> Option<f64> {
        let share = slow.iter().filter(|&&slow| slow).count() as f64 / slow.len().max(1) as f64;
        let extra = share * extra.min(self.growth(slow)).max(0.0);
        let rest = (self.usual - extra).max(LEAST_REST.get() * self.usual);
        Some(extra / rest).filter(|cost| cost.is_finite())
    }

    /// By how much the slow steps are longer than the others at most, seconds; infinite where too few tell.
    fn growth(&self, slow: &[bool]) -> f64 {
        if self.seconds.len() != slow.len() {
            return f64::INFINITY;
        }
        let of = |wanted: bool| -> Vec<f64> {
            let steps = self.seconds.iter().zip(slow);
            let steps = steps.filter(|(seconds, slow)| **slow == wanted && seconds.is_finite());
            steps.map(|(seconds, _)| *seconds).collect()
        };
        let (during, besides) = (of(true), of(false));
        if during.len().min(besides.len()) < LEAST_SIDE.get() {
            return f64::INFINITY;
        }
        let error = |steps: &[f64]| mad(steps) / (steps.len() as f64).sqrt();
        let grown = median(during.iter().copied()) - median(besides.iter().copied());
        grown + GROWTH_ERRORS.get() * error(&during).hypot(error(&besides))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn steps(seconds: impl Fn(usize) -> f64) -> Steps {
        let seconds: Vec<f64> = (0..40).map(seconds).collect();
        Steps {
            usual: median(seconds.iter().copied()),
            seconds,
        }
    }

    #[test]
    fn a_fault_costs_no_more_than_the_steps_grew_by() {
        let late: Vec<bool> = (0..40).map(|step| step >= 20).collect();
        let cost = |grown: f64| {
            let steps = steps(|step| if step >= 20 { 10.0 + grown } else { 10.0 });
            steps.cost(2.0, &late).expect("a cost")
        };
        assert!((cost(2.0) - 0.1).abs() < 0.01, "{}", cost(2.0));
        assert!((cost(0.4) - 0.02).abs() < 0.005, "{}", cost(0.4));
        assert_eq!(cost(-1.0), 0.0);
    }

    #[test]
    fn without_other_steps_the_seconds_count_as_they_are() {
        let always = steps(|_| 12.0).cost(2.0, &[true; 40]);
        assert!((always.expect("a cost") - 0.2).abs() < 1e-9);
        let unknown = Steps {
            usual: f64::NAN,
            seconds: Vec::new(),
        };
        assert_eq!(unknown.cost(2.0, &[true; 4]), None);
        // The rest of a step is never nothing.
        assert!(steps(|_| 2.0).cost(2.0, &[true; 40]).expect("a cost") <= 20.0);
    }
}
