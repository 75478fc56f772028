//! From slow transfers to findings that people read.

use std::collections::{BTreeMap, BTreeSet};

use super::collectives::Collectives;
use super::cost::Steps;
use super::culprits::{Culprit, End, Role, Who};
use super::flows::{Flow, SlowFlow};
use super::links::{Direction, Link};
use super::thresholds::{END_SHARE, SHARE_SINCE};
use super::transfers::{Measured, Series};
use crate::job::Job;
use crate::stats::median;
use crate::verdict::{Cause, Finding, FindingKind, LinkEvidence, words};

/// What findings of one job share.
pub(super) struct NetworkFindings<'a> {
    pub job: &'a Job,
    pub links: &'a [Link],
    pub measured: &'a [Measured],
    pub flows: &'a [Flow],
    pub collectives: &'a Collectives,
    pub steps: &'a Steps,
}

impl NetworkFindings<'_> {
    /// What is behind some slow flows.
    pub fn culprit(&self, culprit: &Culprit) -> Finding {
        let told = culprit.ends.len() == 1 && !matches!(culprit.ends[0].who, Who::Link(_));
        let kind = if told {
            FindingKind::SlowNetwork
        } else {
            FindingKind::SlowLink
        };
        let ranks: BTreeSet<usize> = culprit.ends.iter().flat_map(|end| end.ranks.iter().copied()).collect();
        let mut finding = about(self.job, kind, &ranks, &culprit.slow_steps(self.flows));
        finding.names_nodes = true;
        let slow = |&flow: &usize| self.flows[flow].slow.as_ref();
        let factors = culprit.flows.iter().filter_map(slow).map(|slow| slow.factor);
        finding.factor = Some(median(factors)).filter(|factor| factor.is_finite());
        finding.cost = self.cost(culprit, &ranks);
        finding.links = culprit.flows.iter().filter_map(|&flow| self.evidence(flow)).collect();
        finding.decided_by = Some(self.rule(culprit));
        finding.says = self.says(&finding, culprit);
        finding
    }

    fn evidence(&self, flow: usize) -> Option<LinkEvidence> {
        let flow = &self.flows[flow];
        let slow = flow.slow.as_ref()?;
        let (up, down) = Series::plain(flow.direction).timers();
        let (send, recv) = match flow.direction {
            Direction::Forward => (up, down),
            Direction::Backward => (down, up),
        };
        Some(LinkEvidence {
            sender: self.job.ranks[flow.sender],
            receiver: self.job.ranks[flow.receiver],
            send_timer: send.to_owned(),
            recv_timer: recv.to_owned(),
            seconds: flow.usual * slow.factor,
            usual_seconds: flow.usual,
            factor: slow.factor,
            slow_iterations: self.job.iterations_in(slow.steps.slow_places()),
        })
    }

    /// Seconds that the slow flows of one rank add to a step where they are slow, with what the collectives of its
    /// groups take longer, over the step without them: every call of a slow flow takes longer by what its transfers do,
    /// and a pipeline waits for each of its calls. An upper bound where computing on another rank takes as long
    /// meanwhile; without single calls those of the steady state do not count.
    fn cost(&self, culprit: &Culprit, ranks: &BTreeSet<usize>) -> Option<f64> {
        let mut of_rank = BTreeMap::<usize, f64>::new();
        let mut links = BTreeMap::<usize, [f64; 2]>::new();
        for &flow in &culprit.flows {
            let extra = self.flows[flow].slow.as_ref().map_or(0.0, |slow: &SlowFlow| slow.extra);
            links.entry(flow / 2).or_default()[flow % 2] = extra;
        }
        for (place, [forward, backward]) in links {
            let pairs = self.measured[place].pairs;
            let extra = forward * pairs[0] + backward * pairs[1] + forward.max(backward) * pairs[2];
            for rank in [self.links[place].up, self.links[place].down] {
                *of_rank.entry(rank).or_default() += extra;
            }
        }
        let most = of_rank.into_values().fold(0.0, f64::max);
        let slow = culprit.slow_steps(self.flows);
        let most = most + Collectives::extra_seconds(self.job, ranks, &slow);
        self.steps.cost(most, &slow)
    }

    fn rule(&self, culprit: &Culprit) -> String {
        let count = words::number(culprit.flows.len(), "slow transfer");
        if let (Some(factor), Some(timer)) = (culprit.collective, self.collectives.timer) {
            return format!("{count} with two ends; the {timer} of this one's group takes {factor:.1} x the others'");
        }
        match culprit.ends.as_slice() {
            [
                End {
                    who: Who::Node(_),
                    part,
                    ..
                },
            ] => {
                let does = part.of("send", "receive", "send and receive");
                format!("node's network: {count}, nearly all that several ranks of the node {does} over it")
            }
            [
                End {
                    who: Who::Rank(_),
                    part,
                    ..
                },
            ] => {
                let does = part.of("sends", "receives", "sends and receives");
                format!(
                    "{}: {count}, all that the rank {does}, and not all of the other ends'",
                    part.name()
                )
            }
            [End { who: Who::Link(_), .. }] => format!("link: {count}, while other transfers of both ends are usual"),
            ends if ends.iter().any(|end| matches!(end.who, Who::Link(_))) => {
                format!("link or the end that has no other: {count}, while other transfers of the other end are usual")
            }
            _ => format!("both ends: {count}, which is all that either end has; no collective tells which"),
        }
    }

    fn says(&self, finding: &Finding, culprit: &Culprit) -> String {
        let factor = finding.factor.unwrap_or(f64::NAN);
        format!(
            "{}: {factor:.1} x the usual transfer{}",
            self.subject(culprit),
            when(finding)
        )
    }

    fn subject(&self, culprit: &Culprit) -> String {
        let slow = culprit.slow_steps(self.flows);
        let on = |ranks: &[usize]| {
            let ranks = ranks.iter().copied().collect();
            who(&about(self.job, FindingKind::SlowLink, &ranks, &slow))
        };
        match culprit.ends.as_slice() {
            [
                End {
                    who: Who::Node(node),
                    part,
                    ..
                },
            ] => {
                format!(
                    "the network of node {node} {} slowly",
                    part.of("sends", "receives", "sends and receives")
                )
            }
            [
                End {
                    who: Who::Rank(rank),
                    part,
                    ..
                },
            ] => {
                format!(
                    "{} {} slowly",
                    on(&[*rank]),
                    part.of("sends", "receives", "sends and receives")
                )
            }
            [
                End {
                    who: Who::Link(_),
                    ranks,
                    ..
                },
            ] => format!("the link between {} is slow", on(ranks)),
            ends => {
                let ranks: Vec<usize> = ends.iter().flat_map(|end| end.ranks.iter().copied()).collect();
                let who = on(&ranks);
                format!("one of {who} communicates slowly, or the link between them: the timers can't tell which")
            }
        }
    }
}

/// `rank 5 on node a`; without the node where none is known.
pub(super) fn who(finding: &Finding) -> String {
    let ranks = words::ranks(&finding.ranks);
    match finding.nodes.as_slice() {
        [] => ranks,
        nodes => format!("{ranks} on {}", words::nodes(nodes)),
    }
}

/// A finding about some ranks (positions) that are slow in some iterations.
pub(super) fn about(job: &Job, kind: FindingKind, ranks: &BTreeSet<usize>, slow: &[bool]) -> Finding {
    let mut finding = Finding::new(kind, Cause::Network, job.iteration_count());
    finding.ranks = ranks.iter().map(|&rank| job.ranks[rank]).collect();
    let places: Vec<usize> = ranks.iter().copied().collect();
    finding.nodes = job.nodes_in(&places, slow);
    let stages: BTreeSet<u32> = ranks.iter().filter_map(|&rank| job.topology.stage(rank)).collect();
    finding.stages = stages.into_iter().collect();
    let count = slow.iter().filter(|&&slow| slow).count();
    finding.slow_iterations = Some(job.iterations_in((0..slow.len()).filter(|&step| slow[step])));
    let ends = slow
        .iter()
        .position(|&slow| slow)
        .zip(slow.iter().rposition(|&slow| slow));
    let Some((first, last)) = ends else {
        return finding;
    };
    let at = |step: usize| job.iterations[step];
    (finding.first_iteration, finding.last_iteration) = (Some(at(first)), Some(job.last_iteration_of(last)));
    let far = (END_SHARE.get() * slow.len() as f64) as usize;
    let late = first > far.min(2);
    let dense = count as f64 >= SHARE_SINCE.get() * (slow.len() - first) as f64;
    finding.onset = (late && dense).then(|| at(first));
    finding.until = (last + far.max(2) < slow.len()).then(|| job.last_iteration_of(last));
    finding.ended = Some(finding.until.is_some());
    finding
}

/// `, since iteration 7, in 20 of 26 iterations`.
pub(super) fn when(finding: &Finding) -> String {
    let since = match (finding.onset, finding.until) {
        (Some(onset), _) => format!(", since iteration {onset}"),
        (None, Some(until)) => format!(", until iteration {until}"),
        (None, None) => String::new(),
    };
    let often = words::in_how_many(finding.slow_iterations.unwrap_or(0), finding.iterations);
    format!("{since}, {often}")
}

impl Role {
    fn of(self, sending: &'static str, receiving: &'static str, both: &'static str) -> &'static str {
        match self {
            Self::Sending => sending,
            Self::Receiving => receiving,
            Self::Both => both,
        }
    }

    fn name(self) -> &'static str {
        self.of("sending", "receiving", "sending and receiving")
    }
}
