//! The steps of a job in the order in which they ran.

use super::scenario::Scenario;

/// Seconds between the end of a lost run and its restart.
pub const RESTART_SECONDS: f64 = 600.0;

/// One executed step.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PlannedStep {
    /// Number of the run (0, then 1 after a restart).
    pub run: usize,
    /// The iteration.
    pub iteration: u32,
    /// Steps since the run began.
    pub position: u32,
    /// The step ran again later: it does not count.
    pub lost: bool,
}

/// All steps that leave rows; after a restart the rest follows as run 1, with the iterations that are repeated.
pub fn plan(scenario: &Scenario) -> Vec<PlannedStep> {
    let (first, last) = (scenario.first_iteration, scenario.last_iteration());
    let lost = scenario.rerun.map(|rerun| rerun.from);
    let from = lost.or(scenario.restart()).unwrap_or(last + 1);
    let run = |run: usize, begin: u32, end: u32| {
        let every = scenario.every.max(1) as usize;
        (begin..end).step_by(every).map(move |iteration| PlannedStep {
            run,
            iteration,
            position: iteration - begin,
            lost: run == 0 && lost.is_some_and(|lost| iteration >= lost),
        })
    };
    let end = if lost.is_some() { last + 1 } else { from };
    run(0, first, end).chain(run(1, from, last + 1)).collect()
}
