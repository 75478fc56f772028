//! Slow windows judged a second time on their own: what made a few slow steps of a long run drowns in the whole of it.
//!
//! A window is a small job with the same peers. What is found in it counts where it explains the window, and where the
//! whole run has not told it already.

use super::look_at;
use super::settings::PeerSettings;
use crate::algos::Algorithm;
use crate::contract::constant::constants;
use crate::contract::defaults::SLOW_STEPS_IN_A_ROW;
use crate::job::{Job, SlowWindow, slow_windows};
use crate::verdict::{Cause, Finding, Lasting, words};

constants! {
    /// Share of what a window's steps grew by that a finding must cost there to have made it.
    MADE_IT: f64 = 1.0 / 3.0;
    /// Share of a window's iterations that it must show in: bursts of several ranks that meet make no window of one.
    SHOWS_IN: f64 = 0.5;
}

/// What the slow windows of a job tell beyond `whole`, the findings over all of it.
pub(super) fn look(
    job: &Job,
    settings: &PeerSettings,
    algorithms: &[&'static dyn Algorithm],
    whole: &[Finding],
) -> Vec<Finding> {
    // A column that stands for several iterations does not keep to the ends of a window.
    if job.iterations_per_column() > 1 {
        return Vec::new();
    }
    let mut found: Vec<Finding> = Vec::new();
    for window in slow_windows(job, settings.slowdown_threshold).windows {
        let inside = job.window(window.range());
        if inside.iteration_count() < SLOW_STEPS_IN_A_ROW || inside.iteration_count() == job.iteration_count() {
            continue;
        }
        let inside = look_at(&inside, settings, algorithms);
        for finding in inside.findings.into_iter().chain(inside.communication.findings) {
            let is_new = !whole.iter().chain(&found).any(|known| tells(known, &finding));
            if (finding.named || finding.names_nodes) && is_new && made(&finding, &window) {
                found.push(of_window(job, finding, &window));
            }
        }
    }
    found
}

/// Whether a finding explains a good part of the window, in enough of its steps.
fn made(finding: &Finding, window: &SlowWindow) -> bool {
    let slow = finding.slow_iterations.unwrap_or(0);
    slow >= SLOW_STEPS_IN_A_ROW
        && slow as f64 >= SHOWS_IN.get() * finding.iterations as f64
        && finding.cost.unwrap_or(0.0) >= MADE_IT.get() * (1.0 - 1.0 / window.factor)
}

/// Whether `known` accuses ranks of `finding` of the same, or of computing, in steps of it.
pub(super) fn tells(known: &Finding, finding: &Finding) -> bool {
    let same_cause = known.cause == finding.cause || known.cause == Cause::Compute;
    let accuses = known.named || known.names_nodes;
    let meets = finding.ranks.iter().any(|rank| known.ranks.binary_search(rank).is_ok());
    let in_time = known.first_iteration <= finding.last_iteration && finding.first_iteration <= known.last_iteration;
    same_cause && accuses && meets && in_time
}

/// The finding as one of the whole run.
fn of_window(job: &Job, mut finding: Finding, window: &SlowWindow) -> Finding {
    let begins = job.iterations.first() == Some(&window.first);
    let ends = job.iterations.last() == Some(&window.last);
    finding.says = finding.says.replace(
        &words::in_how_many(finding.slow_iterations.unwrap_or(0), finding.iterations),
        &format!(
            "in {} of the {} of the slow window {}-{}",
            finding.slow_iterations.unwrap_or(0),
            words::number(finding.iterations, "iteration"),
            window.first,
            window.last
        ),
    );
    finding.iterations = job.iteration_count();
    finding.lasting = finding.lasting.map(|_| Lasting::SlowWindow);
    finding.ended = Some(!ends);
    finding.onset = finding.onset.or(finding.first_iteration).filter(|_| !begins);
    finding.until = finding.until.or(finding.last_iteration).filter(|_| !ends);
    finding
}

#[cfg(test)]
mod tests {
    use super::super::samples::{job, verdict, with_steps};
    use crate::verdict::{Cause, Lasting};

    #[test]
    fn who_made_a_slow_window_is_named_though_the_whole_run_does_not_show_it() {
        // A stage of three ranks whose noise hides six slow steps among two hundred.
        let slow = |step: usize| (100..106).contains(&step);
        let own = |rank: u32, step: usize| if rank == 1 && slow(step) { 1.5 } else { 1.0 };
        let job = with_steps(job(1, 8, 200, own), |step| if slow(step) { 4.5 } else { 3.0 });
        let verdict = verdict(&job);
        assert_eq!((verdict.anomalies, verdict.cause), (vec![1], Cause::Compute));
        let finding = &verdict.findings[0];
        assert_eq!(finding.lasting, Some(Lasting::SlowWindow));
        assert_eq!(
            (finding.first_iteration, finding.last_iteration),
            (Some(100), Some(105))
        );
        assert_eq!(verdict.findings.iter().filter(|finding| finding.named).count(), 1);
    }

    #[test]
    fn a_window_in_which_everybody_is_slow_names_nobody() {
        let slow = |step: usize| (100..110).contains(&step);
        let own = |_: u32, step: usize| if slow(step) { 1.5 } else { 1.0 };
        let job = with_steps(job(1, 8, 200, own), |step| if slow(step) { 4.5 } else { 3.0 });
        assert!(verdict(&job).anomalies.is_empty());
    }
}
