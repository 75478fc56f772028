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

/// All steps; after a restart the repeated iterations follow as run 1.
pub fn plan(scenario: &Scenario) -> Vec<PlannedStep> {
    let (first, last) = (scenario.first_iteration, scenario.last_iteration());
    let from = scenario.rerun.map_or(last + 1, |rerun| rerun.from);
    let run = |run: usize, begin: u32| {
        (begin..=last).map(move |iteration| PlannedStep {
            run,
            iteration,
            position: iteration - begin,
            lost: run == 0 && iteration >= from,
        })
    };
    run(0, first).chain(run(1, from)).collect()
}
