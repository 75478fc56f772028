//! Jobs with several pipeline stages of which nobody said who is in which, as interleaved schedules without group rows
//! and flags: ranks of different stages do different work, so nobody is accused of doing more.
//!
//! Each rank is compared with itself alone: one that became slower is a candidate, for the ranks that wait for it
//! inside their passes become slower too.

use crate::contract::timers::is_transfer;
use crate::job::{Job, Place, TopologyOrigin};
use crate::verdict::{Finding, FindingKind};

/// Why nobody is named.
pub(crate) const WHY: &str = "the job has several pipeline stages, and nothing tells which rank is in which: no \
                              megatron_parallel_group_rank rows, and timers as those of interleaved schedules; \
                              given the parallel sizes (pp, tp, dp) ranks can be compared with their peers";

/// Whether the job has pipeline stages that are not known.
#[must_use]
pub(crate) fn stages_are_unknown(job: &Job) -> bool {
    let transfers = |name: &str| is_transfer(name);
    job.topology.origin == TopologyOrigin::Unknown
        && (job.calls.iter().any(|table| transfers(&table.name))
            || job
                .timers
                .iter()
                .any(|timer| transfers(&timer.name) && timer.seconds.iter().any(|&seconds| seconds > 0.0)))
}

/// A stage and a pipeline for each rank, so that nobody has peers.
pub(super) fn everybody_alone(ranks: usize) -> Vec<Place> {
    places(ranks, |place| place)
}

/// One stage and a pipeline for each rank, so that everybody is everybody's peer.
pub(super) fn everybody_a_peer(ranks: usize) -> Vec<Place> {
    places(ranks, |_| 0)
}

fn places(ranks: usize, stage: impl Fn(u32) -> u32) -> Vec<Place> {
    let place = |pipeline| Place {
        stage: stage(pipeline),
        pipeline,
        member: 0,
    };
    (0..).map(place).take(ranks).collect()
}

/// What is left of findings that were made without peers.
pub(super) fn without_names(findings: Vec<Finding>) -> Vec<Finding> {
    let accuse_nobody = |mut finding: Finding| {
        finding.accuse_nobody("its stage is unknown, so it may have waited for another rank");
        finding.stages.clear();
        finding
    };
    let tells = |finding: &Finding| finding.kind != FindingKind::Imbalance;
    findings.into_iter().filter(tells).map(accuse_nobody).collect()
}

#[cfg(test)]
mod tests {
    use super::super::peer::samples::{job, verdict};
    use super::*;
    use crate::job::TimerTable;
    use crate::verdict::Cause;

    fn interleaved(own: impl Fn(u32, usize) -> f64) -> Job {
        let mut job = job(4, 4, 40, own);
        job.topology.origin = TopologyOrigin::Unknown;
        job.topology.sizes.clear();
        for place in &mut job.topology.places {
            (place.pipeline, place.stage) = (place.stage * 4 + place.pipeline, 0);
        }
        let seconds = job.timers[0].seconds.clone();
        job.timers.push(TimerTable {
            name: "forward-send-forward-recv".to_owned(),
            seconds,
        });
        job
    }

    #[test]
    fn heavier_stages_accuse_nobody() {
        // One rank a stage is twice as heavy, one rank is slow from the beginning on: nothing tells them apart.
        let named = verdict(&interleaved(|rank, _| {
            if rank >= 12 {
                2.0
            } else if rank == 3 {
                1.5
            } else {
                1.0
            }
        }));
        assert_eq!((named.anomalies, named.cause), (vec![], Cause::None));
    }

    #[test]
    fn who_became_slower_is_a_suspect() {
        let named = verdict(&interleaved(
            |rank, step| if rank == 3 && step >= 20 { 1.5 } else { 1.0 },
        ));
        assert!(named.anomalies.is_empty());
        let candidates: Vec<&[u32]> = named.findings.iter().map(|finding| finding.ranks.as_slice()).collect();
        assert_eq!(candidates, [&[3][..]], "{:?}", named.findings);
        assert_eq!(named.findings[0].kind, FindingKind::Suspect);
    }

    #[test]
    fn computing_timers_alone_are_one_stage() {
        let mut job = interleaved(|rank, _| if rank == 3 { 1.5 } else { 1.0 });
        job.timers.pop();
        assert!(!stages_are_unknown(&job));
        assert_eq!(verdict(&job).anomalies, [3]);
    }
}
