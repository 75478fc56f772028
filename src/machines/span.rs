//! A time longer than one call looks at: calls one after the other, and what they name put together.

use super::detect::{Settings, detect};
use super::error::MachinesError;
use super::method::Method;
use super::model::store::Models;
use super::names::Names;
use super::samples::Task;
use super::verdict::{Finding, Missing, Status};
use crate::source::timestamp;

/// What a call looks at (Minder, section 4: the last 15 minutes).
const CALL_MS: i32 = 900_000;
/// Time between calls: half of it, so that a difference of up to so many minutes lies whole in one of them.
const EVERY_MS: i32 = 450_000;

/// A machine that differs, with the window in which it shows most.
#[derive(Debug, Clone, PartialEq)]
pub struct Different {
    /// What is told of it.
    pub finding: Finding,
    /// Start of the finding's curve, UTC.
    pub curve_start: String,
    /// Whether the metric that decided names it; otherwise only a later one does.
    pub decided: bool,
}

/// What machines show over a time.
#[derive(Debug, Clone, PartialEq)]
pub struct Span {
    /// The worst of the calls: a fault in one is a fault; healthy where any call could tell and none names.
    pub status: Status,
    /// Why nothing can be told.
    pub reason: Option<String>,
    /// Start, UTC.
    pub start: String,
    /// End, UTC.
    pub end: String,
    /// Machines that were compared.
    pub machines: usize,
    /// Metrics that were judged, sorted.
    pub metrics: Vec<String>,
    /// How machines were compared.
    pub method: Method,
    /// Calls.
    pub calls: usize,
    /// Machines that differ, the strongest first.
    pub different: Vec<Different>,
    /// Machines that send nothing at the end.
    pub missing: Vec<Missing>,
    /// What the reader should know, each once.
    pub warnings: Vec<String>,
}

/// Judges all of a task, call by call.
///
/// # Errors
/// A file of models without a network for a metric.
pub fn judge(task: &Task, models: &Models, names: &Names, settings: Settings) -> Result<Span, MachinesError> {
    let clock = |ms: i32| timestamp::format((task.start_ms + i64::from(ms)) * 1000);
    let mut span = Span {
        status: Status::CannotTell,
        reason: None,
        start: clock(0),
        end: clock(task.length_ms),
        machines: task.nodes.len(),
        metrics: Vec::new(),
        method: settings.method,
        calls: 0,
        different: Vec::new(),
        missing: Vec::new(),
        warnings: Vec::new(),
    };
    for (from, end) in calls(task.length_ms) {
        let detection = detect(&task.part(from, end), models, names, settings)?;
        let verdict = detection.verdict;
        span.calls += 1;
        match verdict.status {
            Status::Fault => span.status = Status::Fault,
            Status::Healthy if span.status == Status::CannotTell => span.status = Status::Healthy,
            _ => {}
        }
        if let Some(reason) = verdict.reason {
            span.reason.get_or_insert(reason);
        }
        let (decided, others) = (verdict.findings.into_iter(), detection.others.into_iter());
        for (finding, decided) in decided.map(|f| (f, true)).chain(others.map(|f| (f, false))) {
            let different = Different {
                finding,
                curve_start: verdict.start.clone(),
                decided,
            };
            // The same machine by the same metric once: neighbouring calls share minutes.
            match span
                .different
                .iter_mut()
                .find(|known| is_same(&known.finding, &different.finding))
            {
                Some(known) => join(known, different),
                None => span.different.push(different),
            }
        }
        span.missing = verdict.missing_nodes;
        for warning in verdict.warnings {
            if !span.warnings.contains(&warning) {
                span.warnings.push(warning);
            }
        }
        for metric in verdict.metrics {
            if !span.metrics.contains(&metric) {
                span.metrics.push(metric);
            }
        }
    }
    if span.status != Status::CannotTell {
        span.reason = None;
    }
    span.metrics.sort();
    let strongest = |a: &Different, b: &Different| {
        let by_score = b.finding.score.total_cmp(&a.finding.score);
        b.decided
            .cmp(&a.decided)
            .then(by_score)
            .then_with(|| a.finding.node.cmp(&b.finding.node))
    };
    span.different.sort_by(strongest);
    Ok(span)
}

/// Start and end of each call; the last one ends with the task.
fn calls(length_ms: i32) -> Vec<(i32, i32)> {
    let mut calls = vec![(length_ms.saturating_sub(CALL_MS).max(0), length_ms)];
    while let Some(&(from, end)) = calls.last()
        && from > 0
    {
        calls.push(((from - EVERY_MS).max(0), end - EVERY_MS.min(from)));
    }
    calls.reverse();
    calls
}

fn is_same(a: &Finding, b: &Finding) -> bool {
    a.node == b.node && a.metric == b.metric && a.kind == b.kind && a.direction == b.direction && b.since <= a.until
}

/// A later call's finding joins an earlier one's: it began then, and lasts as long as the later one says.
fn join(known: &mut Different, later: Different) {
    let decided = known.decided || later.decided;
    let since = known.finding.since.clone().min(later.finding.since.clone());
    let (until, lasts) = if later.finding.until >= known.finding.until {
        (later.finding.until.clone(), later.finding.lasts_to_end)
    } else {
        (known.finding.until.clone(), false)
    };
    if later.finding.score > known.finding.score {
        *known = later;
    }
    known.decided = decided;
    known.finding.seconds = match (timestamp::parse(&since), timestamp::parse(&until)) {
        (Some(since), Some(until)) => (until - since) as f64 / 1e6,
        _ => known.finding.seconds,
    };
    known.finding.since = since;
    known.finding.until = until;
    known.finding.lasts_to_end = lasts;
}

#[cfg(test)]
mod tests {
    use super::super::simulate::{Plan, simulate};
    use super::*;

    #[test]
    fn calls_cover_all_and_end_with_the_task() {
        assert_eq!(calls(600_000), [(0, 600_000)]);
        assert_eq!(calls(CALL_MS), [(0, CALL_MS)]);
        let of_an_hour = calls(3_600_000);
        assert_eq!(of_an_hour.first().map(|call| call.0), Some(0));
        assert_eq!(of_an_hour.last(), Some(&(2_700_000, 3_600_000)));
        assert!(of_an_hour.iter().all(|(from, end)| end - from == CALL_MS));
        assert!(of_an_hour.windows(2).all(|pair| pair[1].0 <= pair[0].0 + EVERY_MS));
        // A length that is no whole number of steps: the first call begins with the task.
        let odd = calls(1_000_001);
        assert_eq!(odd.first().map(|call| call.0), Some(0));
        assert!(odd.iter().all(|(from, end)| from < end && end - from >= CALL_MS));
    }

    #[test]
    fn a_difference_of_half_an_hour_is_told_once_from_its_start_on() {
        let plan = Plan {
            seed: 3,
            machines: Some(6),
            seconds: Some(3_600),
            fault: Some("healthy".to_owned()),
            metrics: Some(4),
        };
        let (mut task, _) = simulate(&plan);
        let power = task.metrics.iter_mut().find(|metric| metric.name == "gpu_power_draw");
        let series = &mut power.expect("power is simulated").series[2];
        for (&time, value) in series.times_ms.iter().zip(&mut series.values) {
            if (1_200_000..3_000_000).contains(&time) {
                *value *= 0.6;
            }
        }
        let settings = Settings {
            method: Method::Raw,
            ..Settings::default()
        };
        let span = judge(&task, &Models::shipped().expect("models"), &Names::built_in(), settings).expect("judged");
        assert_eq!(span.status, Status::Fault);
        let of_power: Vec<_> = span
            .different
            .iter()
            .filter(|one| one.finding.metric == "gpu_power_draw")
            .collect();
        let [only] = of_power[..] else {
            panic!(
                "{:?}",
                of_power.iter().map(|one| &one.finding.since).collect::<Vec<_>>()
            );
        };
        assert_eq!(only.finding.node, "node-0002");
        assert!(
            (only.finding.seconds - 1_800.0).abs() < 60.0,
            "{}",
            only.finding.seconds
        );
        assert!(!only.finding.lasts_to_end);
    }
}
