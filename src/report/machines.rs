//! What hardware metrics say of the job's machines, beside what the timers say, on one time axis.
//!
//! A rank that is slow by its timers on a machine that also looks different meanwhile is confirmed, and the metric is named. A
//! machine that looks different while no rank on it is slow is told, not blamed: the status is that of the timers.

use schemars::JsonSchema;
use serde::Serialize;

use super::report::Report;
use super::screen::clock;
use super::summary::Summary;
use crate::machines::span::{Different, Span};
use crate::machines::verdict::{Curve, Kind, Missing, Status};
use crate::source::timestamp;
use crate::verdict::{Finding, words};

/// Metrics are seen by windows, timers by iterations: so far apart in microseconds they are still at the same time.
const SLACK: i64 = 120_000_000;

/// What hardware metrics say of the job's machines.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct MachineMetrics {
    /// What the comparison of machines comes to; the job's own status does not depend on it.
    pub status: Status,
    /// Why nothing can be told.
    pub reason: Option<String>,
    /// Start of the metrics that were judged, UTC.
    pub start: String,
    /// Their end, UTC.
    pub end: String,
    /// Machines that were compared.
    pub machines: usize,
    /// Machines of the metrics that are no nodes of the job and were left out.
    pub machines_of_others: usize,
    /// Metrics that were judged.
    pub metrics: Vec<String>,
    /// How machines were compared.
    pub method: String,
    /// Machines that differ: those that the timers confirm first, then the strongest.
    pub different: Vec<DifferentMachine>,
    /// Machines that send no samples at the end.
    pub missing: Vec<Missing>,
    /// What the reader should know.
    pub notes: Vec<String>,
}

/// A machine that differs from the others in a metric.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct DifferentMachine {
    /// The job's node.
    pub node: String,
    /// Whether the timers name a rank on it, or its network, at the same time.
    pub confirmed: bool,
    /// The ranks on it that the timers name.
    pub ranks: Vec<u32>,
    /// Since when they do, UTC; null where that is not known.
    pub slow_since: Option<String>,
    /// Both in one sentence.
    pub says: String,
    /// What is different.
    pub kind: Kind,
    /// The metric.
    pub metric: String,
    /// Its unit; empty when unknown.
    pub unit: String,
    /// Whether its values lie `higher` or `lower` than the others', or `constant`.
    pub direction: String,
    /// Since when, UTC.
    pub since: String,
    /// Until when, UTC.
    pub until: String,
    /// Whether it lasts to the end of the metrics.
    pub lasts_to_end: bool,
    /// Size-free score.
    pub score: f64,
    /// Smallest score that names a machine.
    pub threshold: f64,
    /// The machine's mean meanwhile.
    pub value: f64,
    /// Mean of the machines' median meanwhile.
    pub others: f64,
    /// By how much healthy machines differ.
    pub usual_difference: f64,
    /// The machine beside the others.
    #[serde(skip)]
    #[schemars(skip)]
    pub curve: Curve,
    /// When the curve begins.
    #[serde(skip)]
    #[schemars(skip)]
    pub curve_start: String,
}

/// Whether a machine of the metrics is a node of the job: the same name, or the same but for a domain or a port behind it.
#[must_use]
pub fn is_node(machine: &str, node: &str) -> bool {
    fn short(name: &str) -> &str {
        let host = match name.rsplit_once(':') {
            Some((host, port)) if port.bytes().all(|byte| byte.is_ascii_digit()) && !host.contains(':') => host,
            _ => name,
        };
        // The parts of an address are no domains.
        if host.parse::<std::net::IpAddr>().is_ok() {
            host
        } else {
            host.split('.').next().unwrap_or(host)
        }
    }
    machine == node || (!short(machine).is_empty() && short(machine).eq_ignore_ascii_case(short(node)))
}

impl Report {
    /// The same with what hardware metrics say beside it. `of_others` machines were no nodes of the job.
    #[must_use]
    pub fn with_machines(mut self, span: Span, of_others: usize) -> Self {
        let mut different: Vec<DifferentMachine> = span.different.iter().map(|one| self.beside(one)).collect();
        different.sort_by_key(|machine| !machine.confirmed);
        self.summary.machines = Some(MachineMetrics {
            status: span.status,
            reason: span.reason,
            start: span.start,
            end: span.end,
            machines: span.machines,
            machines_of_others: of_others,
            metrics: span.metrics,
            method: span.method.name().to_owned(),
            different,
            missing: span.missing,
            notes: span.warnings,
        });
        self
    }

    /// The same with the reason why hardware metrics say nothing of the job.
    #[must_use]
    pub fn without_machines(mut self, reason: &str) -> Self {
        self.summary.machines = Some(MachineMetrics {
            status: Status::CannotTell,
            reason: Some(reason.to_owned()),
            start: self.summary.window.first_time.clone().unwrap_or_default(),
            end: self.summary.window.last_time.clone().unwrap_or_default(),
            machines: 0,
            machines_of_others: 0,
            metrics: Vec::new(),
            method: String::new(),
            different: Vec::new(),
            missing: Vec::new(),
            notes: Vec::new(),
        });
        self
    }

    /// A machine that differs, beside what the timers say of it at the same time.
    fn beside(&self, different: &Different) -> DifferentMachine {
        let finding = &different.finding;
        let node = self.nodes.iter().find(|node| is_node(&finding.node, node));
        let node = node.map_or(finding.node.as_str(), String::as_str);
        let named = self.summary.findings.iter().filter(|timers| {
            timers.kind.is_fault() && timers.nodes.iter().any(|own| own == node) && meanwhile(timers, finding)
        });
        let named: Vec<&Finding> = named.collect();
        let mut ranks: Vec<u32> = named
            .iter()
            .flat_map(|timers| &timers.ranks)
            .copied()
            .filter(|rank| {
                self.ranks
                    .binary_search(rank)
                    .is_ok_and(|place| self.nodes[place] == node)
            })
            .collect();
        ranks.sort_unstable();
        ranks.dedup();
        let slow_since = named.iter().filter_map(|timers| timers.first_time.clone()).min();
        let mut machine = DifferentMachine {
            node: node.to_owned(),
            confirmed: !named.is_empty(),
            ranks,
            slow_since,
            says: String::new(),
            kind: finding.kind,
            metric: finding.metric.clone(),
            unit: finding.unit.clone(),
            direction: finding.direction.to_owned(),
            since: finding.since.clone(),
            until: finding.until.clone(),
            lasts_to_end: finding.lasts_to_end,
            score: finding.score,
            threshold: finding.threshold,
            value: finding.value,
            others: finding.peers,
            usual_difference: finding.usual_difference,
            curve: finding.curve.clone(),
            curve_start: different.curve_start.clone(),
        };
        machine.says = machine.sentence();
        machine
    }
}

/// Whether timers and metrics show something at the same time; what has no time can't be told apart.
fn meanwhile(timers: &Finding, metrics: &crate::machines::verdict::Finding) -> bool {
    let micros = |time: &str| timestamp::parse(time);
    let since = |time: &Option<String>| time.as_deref().and_then(micros);
    let (from, to) = (since(&timers.first_time), since(&timers.last_time));
    let (since, until) = (micros(&metrics.since), micros(&metrics.until));
    from.zip(until)
        .is_none_or(|(from, until)| from <= until.saturating_add(SLACK))
        && to
            .zip(since)
            .is_none_or(|(to, since)| since <= to.saturating_add(SLACK))
}

impl DifferentMachine {
    /// `rank 5 slow since 08:05:00; gpu-000's gpu_sm_clock fell at 08:04:10 (1200 MHz, the others 1750 MHz)`.
    fn sentence(&self) -> String {
        let unit = if self.unit.is_empty() {
            String::new()
        } else {
            format!(" {}", self.unit)
        };
        let verb = match (self.kind, self.direction.as_str()) {
            (Kind::Stuck, _) => "stood still from",
            (Kind::Different, "higher") => "rose at",
            (Kind::Different, _) => "fell at",
        };
        let mut shows = format!("{}'s {} {verb} {}", self.node, self.metric, clock(&self.since));
        if !self.lasts_to_end {
            shows += &format!(" until {}", clock(&self.until));
        }
        shows += &match self.kind {
            Kind::Stuck => format!(" (at {}{unit}, while the others' values changed)", rounded(self.value)),
            Kind::Different => format!(
                " ({}{unit}, the others {}{unit})",
                rounded(self.value),
                rounded(self.others)
            ),
        };
        if !self.confirmed {
            return format!("{shows}; no rank on it is slow meanwhile: told, not blamed");
        }
        let who = if self.ranks.is_empty() {
            "its network".to_owned()
        } else {
            words::ranks(&self.ranks)
        };
        let since = self.slow_since.as_ref().map(|time| format!(" since {}", clock(time)));
        format!("{who} slow{}; {shows}", since.unwrap_or_default())
    }
}

/// Four digits that count.
fn rounded(value: f64) -> String {
    if value.abs() >= 1_000.0 {
        format!("{value:.0}")
    } else if value.abs() >= 10.0 {
        format!("{value:.1}")
    } else {
        format!("{value:.3}")
    }
}

impl Summary {
    /// What hardware metrics say of some nodes that the timers name.
    pub(super) fn confirmed_on<'a>(&'a self, nodes: &'a [String]) -> impl Iterator<Item = &'a DifferentMachine> {
        let different = self.machines.iter().flat_map(|machines| &machines.different);
        different.filter(|machine| machine.confirmed && nodes.contains(&machine.node))
    }
}

impl MachineMetrics {
    /// Machines that differ without a slow rank.
    pub(super) fn unconfirmed(&self) -> impl Iterator<Item = &DifferentMachine> {
        self.different.iter().filter(|machine| !machine.confirmed)
    }

    /// What was compared, in words.
    pub(super) fn compared(&self) -> String {
        let time = format!("{} to {}", clock(&self.start), clock(&self.end));
        let what = format!(
            "{} of {}, {time}",
            words::number(self.metrics.len(), "metric"),
            words::number(self.machines, "machine")
        );
        match (self.status, &self.reason) {
            (Status::CannotTell, Some(reason)) => format!("cannot tell: {reason}"),
            (Status::CannotTell, None) => "cannot tell".to_owned(),
            _ if self.different.is_empty() => format!("{what}: no machine differs lastingly"),
            _ => {
                let confirmed = self.different.iter().filter(|machine| machine.confirmed).count();
                format!(
                    "{what}: {confirmed} of {} differences confirm a slow rank",
                    self.different.len()
                )
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::is_node;

    #[test]
    fn names_with_a_domain_or_a_port_are_the_same_machine() {
        for (machine, node) in [
            ("gpu-000", "gpu-000"),
            ("gpu-000:9100", "gpu-000"),
            ("gpu-000.cluster.local:9400", "gpu-000"),
            ("GPU-000", "gpu-000.rack1"),
            ("10.0.0.1:9100", "10.0.0.1"),
        ] {
            assert!(is_node(machine, node), "{machine} {node}");
        }
        for (machine, node) in [
            ("gpu-001", "gpu-000"),
            ("10.0.0.1", "10.0.0.2"),
            ("", "gpu-000"),
            (":9100", ""),
        ] {
            assert!(!is_node(machine, node), "{machine} {node}");
        }
    }
}
