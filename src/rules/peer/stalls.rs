//! The detector of stalls: single steps that took far longer than their neighbours. It names nobody, but tells in whose
//! timers the time sits.

use super::detector::{Detector, Seen, who};
use crate::contract::constant::constants;
use crate::contract::timers::{BACKWARD_COMPUTE, BATCH_GENERATOR, FORWARD_COMPUTE};
use crate::job::{LongStep, long_steps};
use crate::stats::median;
use crate::verdict::{Cause, Finding, FindingKind};

constants! {
    /// Share of the lost time that a rank's timer must hold for the time to sit there.
    SITS_THERE: f64 = 0.5;
    /// Share of the ranks up to which a stall is theirs and not everybody's.
    SOME: f64 = 0.5;
}

/// Finds stalls.
pub(super) struct Stalls;

impl Detector for Stalls {
    fn find(&self, seen: &Seen<'_>) -> Vec<Finding> {
        long_steps(seen.job).iter().map(|step| stall(seen, step)).collect()
    }
}

fn stall(seen: &Seen<'_>, step: &LongStep) -> Finding {
    let mut finding = seen.finding(FindingKind::Stall, Cause::None);
    let iteration = step.iteration;
    let lost = step.seconds - step.usual_seconds;
    finding.factor = Some(step.seconds / step.usual_seconds);
    finding.slow_iterations = Some(1);
    (finding.first_iteration, finding.last_iteration) = (Some(iteration), Some(iteration));
    let place = seen.job.iterations.binary_search(&iteration).ok();
    // The loader's time is a part of forward: it is asked first.
    let holders = [
        (BATCH_GENERATOR, "the data loading"),
        (FORWARD_COMPUTE, "the forward pass"),
        (BACKWARD_COMPUTE, "the backward pass"),
    ];
    let told = place.and_then(|place| {
        holders
            .iter()
            .find_map(|&(timer, part)| Some((ranks_with(seen, timer, place, lost)?, part, place)))
    });
    finding.says = match told {
        Some((ranks, part, place)) => {
            let mut slow = vec![false; seen.job.iterations.len()];
            slow[place] = true;
            seen.accuse(&mut finding, &ranks, &slow);
            format!(
                "iteration {iteration} took {lost:.1} s longer than usual, in {part} of {}",
                who(&finding)
            )
        }
        None => format!("iteration {iteration} took {lost:.1} s longer than usual on all ranks"),
    };
    finding
}

/// The ranks (positions) whose timer holds the lost time, if they are some and not all.
fn ranks_with(seen: &Seen<'_>, timer: &str, step: usize, lost: f64) -> Option<Vec<usize>> {
    let timer = seen.job.timer(timer)?;
    let holds = |rank: &usize| {
        let cells = timer.seconds.row(*rank);
        let usual = median(cells.iter().copied().filter(|&seconds| seconds > 0.0));
        cells[step] - usual > SITS_THERE.get() * lost
    };
    let ranks: Vec<usize> = (0..seen.job.ranks.len()).filter(holds).collect();
    let some = !ranks.is_empty() && ranks.len() as f64 <= SOME.get() * seen.job.ranks.len() as f64;
    some.then_some(ranks)
}

#[cfg(test)]
mod tests {
    use super::super::samples::{job, verdict, with_steps};
    use crate::verdict::Cause;

    #[test]
    fn a_stall_is_told_and_names_nobody() {
        let job = with_steps(job(1, 8, 20, |_, _| 1.0), |step| if step == 7 { 65.0 } else { 5.0 });
        let verdict = verdict(&job);
        assert_eq!((verdict.anomalies, verdict.cause), (vec![], Cause::None));
        assert_eq!(
            verdict.findings[0].says,
            "iteration 7 took 60.0 s longer than usual on all ranks"
        );
    }

    #[test]
    fn a_stall_of_some_ranks_is_told_as_theirs() {
        let own = |rank, step| if step == 7 && rank < 2 { 41.0 } else { 1.0 };
        let job = with_steps(job(1, 8, 20, own), |step| if step == 7 { 65.0 } else { 5.0 });
        let says = &verdict(&job)
            .findings
            .iter()
            .find(|finding| finding.says.contains("longer"))
            .expect("a stall")
            .says
            .clone();
        assert!(
            says.ends_with("in the forward pass of ranks 0 and 1 on node n0"),
            "{says}"
        );
    }
}
