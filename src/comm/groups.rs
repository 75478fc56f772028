//! Findings of groups whose collective is slow: a network is to blame, but of no member of the group can be told.
//!
//! Every node has a member in most groups, so no node is named. A group with a rank that slow transfers meet is explained by
//! them, and one with a rank that computes slowly by it: its card is busy when the collective wants it.

use std::collections::{BTreeMap, BTreeSet};

use super::SlowComputing;
use super::collectives::Collectives;
use super::cost::Steps;
use super::findings::{about, when};
use super::slow_groups::{Against, SlowGroup, compared, slow_groups};
use super::thresholds::LEAST_COST;
use crate::job::Job;
use crate::verdict::{Cause, Finding, FindingKind, Persistence, words};

/// What the collectives show.
#[derive(Debug, Default)]
pub(super) struct Groups {
    pub findings: Vec<Finding>,
    /// What was looked at, and what is slow for a reason that is known, in words.
    pub told: Vec<String>,
}

/// A collective of a group that is slow.
struct Slow<'a> {
    collectives: &'a Collectives,
    group: SlowGroup,
}

impl Slow<'_> {
    fn timer(&self) -> &'static str {
        self.collectives.timer.unwrap_or_default()
    }

    /// Seconds in the mean over all steps.
    fn seconds(&self) -> f64 {
        self.group.slow.extra * self.group.slow.steps.share()
    }
}

/// Judges the collectives of a job; `met` are ranks (positions) that slow transfers meet.
pub(super) fn judge(
    job: &Job,
    met: &BTreeSet<usize>,
    computing: &SlowComputing,
    steps: &Steps,
    persistence: &Persistence,
) -> Groups {
    let all = Collectives::all(job);
    let mut told = Vec::new();
    let mut by_members = BTreeMap::<Vec<usize>, Vec<Slow<'_>>>::new();
    for collectives in &all {
        let groups = compared(collectives);
        if let (Some(timer), Some(kind), true) = (collectives.timer, collectives.communicator, groups > 0) {
            let together = if collectives.begin_together {
                ", whose members begin together"
            } else {
                ""
            };
            told.push(format!(
                "{timer} compared over {groups} {} groups{together}",
                kind.name()
            ));
        }
        for group in slow_groups(job, collectives, persistence) {
            let members = group.group.map_or_else(
                || (0..job.ranks.len()).collect(),
                |group| collectives.members[group].clone(),
            );
            by_members.entry(members).or_default().push(Slow { collectives, group });
        }
    }
    let mut findings = Vec::new();
    for (members, mut slow) in by_members {
        let matters = |slow: &Slow<'_>| slow.seconds() > LEAST_COST.get() * steps.usual || steps.usual.is_nan();
        slow.retain(matters);
        slow.sort_by(|a, b| b.seconds().total_cmp(&a.seconds()));
        let Some(worst) = slow.first() else { continue };
        let has = |ranks: &BTreeSet<usize>| members.iter().any(|rank| ranks.contains(rank));
        if has(&computing.suspects) {
            let ranks: BTreeSet<usize> = members.iter().copied().collect();
            let suspects: Vec<u32> = ranks
                .intersection(&computing.suspects)
                .map(|&rank| job.ranks[rank])
                .collect();
            told.push(format!(
                "{} of the group of {} takes {:.1} x the usual, as its computing is slow",
                worst.timer(),
                words::ranks(&suspects),
                worst.group.slow.factor
            ));
        } else if !has(met) {
            findings.push(finding(job, &members, &slow, steps));
        }
    }
    Groups { findings, told }
}

/// A finding of one group by all collectives of it that are slow, the costliest first.
fn finding(job: &Job, members: &[usize], slow: &[Slow<'_>], steps: &Steps) -> Finding {
    let worst = &slow[0].group;
    let everybody = members.len() == job.ranks.len();
    let kind = if everybody {
        FindingKind::JobWide
    } else {
        FindingKind::SlowNetwork
    };
    let ranks: BTreeSet<usize> = members.iter().copied().collect();
    let mut finding = about(job, kind, &ranks, &worst.slow.steps.slow);
    finding.cause = Cause::Network;
    if everybody {
        (finding.ranks, finding.nodes, finding.stages) = (Vec::new(), Vec::new(), Vec::new());
    }
    finding.factor = Some(worst.slow.factor);
    let extra: f64 = slow.iter().map(Slow::seconds).sum::<f64>() / worst.slow.steps.share().max(f64::MIN_POSITIVE);
    finding.cost = steps.cost(extra, &worst.slow.steps.slow);
    finding.decided_by = Some(decided_by(&slow[0]));
    finding.says = says(job, &finding, slow, everybody);
    finding
}

fn decided_by(slow: &Slow<'_>) -> String {
    let waits = if slow.collectives.begin_together {
        "the members begin together and take".to_owned()
    } else {
        "the member that waits least still takes".to_owned()
    };
    let than = match slow.group.against {
        Against::Stage => "the time of the stage's other groups",
        Against::Others => "what any other group takes, the work of the stages taken out",
        Against::Before => "its time before, while the computing tells no reason",
    };
    format!(
        "collective: in {} {waits} {:.1} x {than}",
        slow.timer(),
        slow.group.slow.factor
    )
}

fn says(job: &Job, finding: &Finding, slow: &[Slow<'_>], everybody: bool) -> String {
    let kind = slow[0].collectives.communicator.map_or("", |kind| kind.name());
    let timers: Vec<String> = slow
        .iter()
        .map(|slow| {
            let than = match slow.group.against {
                Against::Stage => "that of the stage's other groups",
                Against::Others => "that of the other groups",
                Against::Before => "as long as before",
            };
            format!("{} takes {:.1} x {than}", slow.timer(), slow.group.slow.factor)
        })
        .collect();
    let timers = timers.join(", ");
    let when = when(finding);
    if everybody {
        return format!("the network of the whole job is slow, or one member holds up all: {timers}{when}");
    }
    let stage = match finding.stages.as_slice() {
        [stage] if job.topology.pipeline_stages() > 1 => format!("the network of stage {stage} is slow"),
        _ => format!("the network of one {kind} group is slow"),
    };
    let ranks = words::ranks(&finding.ranks);
    format!("{stage}: their {timers}{when}. The timers can't tell which of {ranks} is to blame")
}
