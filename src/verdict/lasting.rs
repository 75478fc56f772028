//! Whether a row's slowness lasts: in a third of the window, or still at its end, or coming back again and again.

use std::ops::Range;

use schemars::JsonSchema;
use serde::Serialize;

use crate::contract::constant::constants;
use crate::contract::defaults::SLOW_STEPS_IN_A_ROW;

constants! {
    /// A fault that ended in less is over and cost little.
    LASTING_SHARE: f64 = 1.0 / 3.0;
    /// A fault that comes and goes shows in three of four quarters besides, which a single spell does not.
    FLAKY_SHARE: f64 = 0.2;
    /// Share of the excess from which a step is slow.
    SLOW_FROM: f64 = 0.5;
    /// Parts of the window in most of which what recurs must show.
    PARTS: usize = 4;
    /// Parts in which what recurs must show.
    SHOWS_IN: usize = 3;
    /// Spells of full length from which they recur, whatever share of the window they cover.
    SPELLS: usize = 3;
    /// Share of a slow window that its maker is slow in.
    SHARE_OF_WINDOW: f64 = 0.5;
}

/// What lasts, and so is a fault.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct Persistence {
    /// Share of the window that a fault which ended must cover.
    pub lasting_share: f64,
    /// Share of the window that a fault which comes and goes must cover, if it shows in three of four quarters.
    pub flaky_share: f64,
    /// Slow iterations that make a fault: five in a row open a slow window.
    pub least_slow_iterations: usize,
    /// Iterations that a column of the tables stands for: a property of the job, not a threshold.
    #[serde(skip)]
    #[schemars(skip)]
    pub column: usize,
}

impl Persistence {
    /// [`Persistence::least_slow_iterations`] in columns.
    #[must_use]
    pub fn least_slow_columns(&self) -> usize {
        self.least_slow_iterations.div_ceil(self.column)
    }

    /// The same for tables whose columns stand for so many iterations each.
    #[must_use]
    pub fn for_columns_of(mut self, iterations: usize) -> Self {
        self.column = iterations.max(1);
        self
    }
}

impl Default for Persistence {
    fn default() -> Self {
        Self {
            lasting_share: LASTING_SHARE.get(),
            flaky_share: FLAKY_SHARE.get(),
            least_slow_iterations: SLOW_STEPS_IN_A_ROW,
            column: 1,
        }
    }
}

/// What makes slow steps a fault.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Lasting {
    /// In the whole window.
    Throughout,
    /// In a third of the window at least.
    Long,
    /// Up to its end, long enough in a row and not over for as long.
    ToTheEnd,
    /// In a window in which the job's steps were slow.
    SlowWindow,
    /// It comes back in most of the window.
    Recurring,
}

/// What slow steps make, if they make a fault; `windows` are those in which the job's steps were slow.
#[must_use]
pub fn lasting(slow: &[bool], windows: &[Range<usize>], persistence: &Persistence) -> Option<Lasting> {
    let steps = slow.len();
    let count = |part: &[bool]| part.iter().filter(|&&slow| slow).count();
    let least = persistence.least_slow_columns();
    // A short window can't show as many.
    if count(slow) < least.min((steps / 3).max(3)) {
        return None;
    }
    if count(slow) == steps {
        return Some(Lasting::Throughout);
    }
    if count(slow) as f64 >= persistence.lasting_share * steps as f64 {
        return Some(Lasting::Long);
    }
    let runs = runs(slow);
    // A few good steps do not end it.
    if runs.iter().any(|run| run.len() >= least && steps - run.end < least) {
        return Some(Lasting::ToTheEnd);
    }
    let shows = |part: &usize| count(&slow[part * steps / PARTS.get()..(part + 1) * steps / PARTS.get()]) > 0;
    let often = count(slow) as f64 >= persistence.flaky_share * steps as f64
        || runs.iter().filter(|run| run.len() >= least).count() >= SPELLS.get();
    if (0..PARTS.get()).filter(shows).count() >= SHOWS_IN.get() && often {
        return Some(Lasting::Recurring);
    }
    let made = |window: &Range<usize>| {
        let inside = count(&slow[window.clone()]);
        inside >= least && inside as f64 >= SHARE_OF_WINDOW.get() * window.len() as f64
    };
    windows.iter().any(made).then_some(Lasting::SlowWindow)
}

/// The runs of slow steps, in order.
#[must_use]
pub fn runs(slow: &[bool]) -> Vec<Range<usize>> {
    let mut runs: Vec<Range<usize>> = Vec::new();
    for (step, _) in slow.iter().enumerate().filter(|&(_, &slow)| slow) {
        match runs.last_mut() {
            Some(run) if run.end == step => run.end += 1,
            _ => runs.push(step..step + 1),
        }
    }
    runs
}

/// The slow steps of a row.
#[derive(Debug, Clone, PartialEq)]
pub struct SlowSteps {
    /// Whether each step is slow.
    pub slow: Vec<bool>,
    /// Whether they make a lasting fault.
    pub lasting: bool,
    /// Whether any lies in the last quarter of the window.
    pub recent: bool,
}

impl SlowSteps {
    /// Looks at a row's own factors (log), less `base`, of which `excess` is usual when it is slow.
    pub fn of(factors: &[f64], base: f64, excess: f64, persistence: &Persistence) -> Self {
        let slow: Vec<bool> = factors
            .iter()
            .map(|factor| factor - base > SLOW_FROM.get() * excess)
            .collect();
        let steps = slow.len();
        let count = |part: &[bool]| part.iter().filter(|&&slow| slow).count();
        let share = |part: &[bool]| count(part) as f64 / part.len().max(1) as f64;
        let late = persistence.least_slow_columns().max(steps / 4);
        let late = share(&slow[steps.saturating_sub(late)..]);
        let whole = share(&slow);
        let comes_back =
            whole >= persistence.flaky_share && quarters(&slow).filter(|part| count(part) > 0).count() >= 3;
        // A short window can't show as many.
        let enough = persistence.least_slow_columns().min((steps / 3).max(3));
        let lasting = count(&slow) >= enough && (whole >= persistence.lasting_share || late >= 0.5 || comes_back);
        Self {
            slow,
            lasting,
            recent: late > 0.0,
        }
    }

    /// The slow steps, by place.
    pub fn slow_places(&self) -> impl Iterator<Item = usize> + Clone {
        (0..self.slow.len()).filter(|&step| self.slow[step])
    }

    /// How many steps are slow.
    pub fn count(&self) -> usize {
        self.slow.iter().filter(|&&slow| slow).count()
    }

    /// Share of the steps that are slow.
    pub fn share(&self) -> f64 {
        self.count() as f64 / self.slow.len().max(1) as f64
    }

    /// The first and the last slow step.
    pub fn ends(&self) -> Option<(usize, usize)> {
        let first = self.slow.iter().position(|&slow| slow)?;
        Some((first, self.slow.iter().rposition(|&slow| slow)?))
    }
}

/// Four parts of as equal length as possible, the longer ones first.
fn quarters(slow: &[bool]) -> impl Iterator<Item = &[bool]> {
    let (length, longer) = (slow.len() / 4, slow.len() % 4);
    (0..4).scan(0, move |from, part| {
        let to = *from + length + usize::from(part < longer);
        let quarter = &slow[*from..to];
        *from = to;
        Some(quarter)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn steps(slow: impl Fn(usize) -> bool) -> SlowSteps {
        let factors: Vec<f64> = (0..40).map(|t| if slow(t) { 0.1 } else { 0.0 }).collect();
        SlowSteps::of(&factors, 0.0, 0.1, &Persistence::default())
    }

    #[test]
    fn what_lasts() {
        assert!(steps(|_| true).lasting);
        assert!(steps(|t| t >= 34).lasting, "it is still there");
        assert!(steps(|t| t % 4 == 0).lasting, "it comes back");
        assert!(steps(|t| t < 14).lasting && !steps(|t| t < 14).recent);
    }

    #[test]
    fn what_passes() {
        assert!(!steps(|t| (10..15).contains(&t)).lasting);
        assert!(!steps(|t| t >= 37).lasting);
        assert!(!steps(|_| false).lasting);
        let short = SlowSteps::of(&[0.1], 0.0, 0.1, &Persistence::default());
        assert!(!short.lasting && short.count() == 1);
        assert!(!SlowSteps::of(&[], 0.0, 0.1, &Persistence::default()).lasting);
    }

    #[test]
    fn ends_are_the_first_and_last() {
        assert_eq!(steps(|t| t == 3 || t == 9).ends(), Some((3, 9)));
        assert_eq!(steps(|_| false).ends(), None);
    }

    fn judged(slow: impl Fn(usize) -> bool, windows: &[Range<usize>]) -> Option<Lasting> {
        let slow: Vec<bool> = (0..60).map(slow).collect();
        lasting(&slow, windows, &Persistence::default())
    }

    #[test]
    fn slow_steps_that_make_a_fault() {
        assert_eq!(judged(|t| (5..25).contains(&t), &[]), Some(Lasting::Long));
        assert_eq!(judged(|t| t >= 55, &[]), Some(Lasting::ToTheEnd));
        assert_eq!(
            judged(|t| t >= 50 && t != 57, &[]),
            Some(Lasting::ToTheEnd),
            "one good step"
        );
        assert_eq!(
            judged(|t| (20..26).contains(&t), std::slice::from_ref(&(20..27))),
            Some(Lasting::SlowWindow)
        );
        assert_eq!(
            judged(|t| t % 20 < 5, &[]),
            Some(Lasting::Recurring),
            "three spells of five"
        );
        assert_eq!(
            judged(|t| t % 4 == 0, &[]),
            Some(Lasting::Recurring),
            "a fourth of the steps"
        );
    }

    #[test]
    fn slow_steps_that_make_none() {
        assert_eq!(judged(|t| (20..26).contains(&t), &[]), None);
        assert_eq!(judged(|t| t >= 56, &[]), None, "four steps at the end");
        assert_eq!(judged(|t| (48..54).contains(&t), &[]), None, "over for six steps");
        assert_eq!(
            judged(|t| (20..26).contains(&t), std::slice::from_ref(&(30..40))),
            None,
            "another's window"
        );
        assert_eq!(judged(|t| t % 10 == 0, &[]), None, "a checkpoint in every tenth step");
        assert_eq!(judged(|_| false, &[]), None);
        assert_eq!(lasting(&[], &[], &Persistence::default()), None);
    }
}
