//! What keeps a job from being judged: a monitor must never read "healthy" where nothing could be compared.

use super::unplaced;
use crate::contract::defaults::SLOW_STEPS_IN_A_ROW;
use crate::contract::timers::COMPUTING;
use crate::features::{TimerFate, TimerVerdict};
use crate::job::Job;

/// Why nobody could be judged by computing, under any rules; `None` where somebody could.
pub(super) fn reason(job: &Job, timers: &[TimerVerdict]) -> Option<String> {
    if job.ranks.len() < 2 {
        return Some("the window holds one rank: there is nobody to compare it with".to_owned());
    }
    let compared =
        |timer: &&TimerVerdict| matches!(timer.fate, TimerFate::Clustered { .. } | TimerFate::Compared { .. });
    if timers.iter().any(|timer| compared(&timer)) {
        return None;
    }
    let fate = |timer: &TimerVerdict| format!("{}: {}", timer.features.timer, timer.fate.reason(job.ranks.len()));
    let fates: Vec<String> = timers.iter().map(fate).collect();
    Some(format!("no timer is left after the filters ({})", fates.join("; ")))
}

/// The same for the peer rules, which also tell what lasts and what is whose work.
pub(super) fn by_peers(job: &Job, timers: &[TimerVerdict]) -> Option<String> {
    if let Some(reason) = reason(job, timers) {
        return Some(reason);
    }
    if unplaced::stages_are_unknown(job) {
        return Some(unplaced::WHY.to_owned());
    }
    let computes = |timer: &TimerVerdict| {
        COMPUTING.contains(&timer.features.timer.as_str()) && matches!(timer.fate, TimerFate::Compared { .. })
    };
    if !timers.iter().any(computes) {
        return Some(format!(
            "no timer of computing has values ({}): only loading could be compared",
            COMPUTING.join(", ")
        ));
    }
    let iterations = job.iteration_count();
    (iterations < SLOW_STEPS_IN_A_ROW).then(|| {
        format!("{iterations} of the {SLOW_STEPS_IN_A_ROW} iterations that tell what lasts are left after the start-up")
    })
}

#[cfg(test)]
mod tests {
    use super::super::peer::samples::{job, verdict};
    use crate::verdict::Status;

    #[test]
    fn a_window_too_short_can_not_be_judged() {
        let short = verdict(&job(1, 8, 4, |_, _| 1.0));
        assert_eq!(short.status, Status::CannotTell);
        assert!(
            short
                .unjudged
                .as_ref()
                .is_some_and(|reason| reason.starts_with("4 of the 5 iterations"))
        );
        let enough = verdict(&job(1, 8, 12, |_, _| 1.0));
        assert_eq!((enough.status, enough.unjudged), (Status::Healthy, None));
    }

    #[test]
    fn loaders_alone_do_not_make_a_job_healthy() {
        let mut only = job(1, 8, 20, |_, _| 1.0);
        only.timers.truncate(1);
        "batch-generator".clone_into(&mut only.timers[0].name);
        let verdict = verdict(&only);
        assert_eq!(verdict.status, Status::CannotTell, "{:?}", verdict.findings);
    }
}
