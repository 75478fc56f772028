//! `/metrics` in Prometheus' text format.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use super::health::Health;
use super::known::State;
use super::watched::Watched;
use crate::source::Micros;

/// One family of samples: name, type, help, and labels with value.
type Family = (&'static str, &'static str, &'static str, Vec<(String, f64)>);

/// All figures; a label is a job's id, whatever it holds.
#[must_use]
pub fn metrics(jobs: &BTreeMap<String, Watched>, health: &Health, analyses: u64, now: Micros) -> String {
    let job = |name: &str| format!("{{job=\"{}\"}}", escaped(name));
    let each = |value: &dyn Fn(&Watched) -> Option<f64>| {
        let samples = jobs
            .values()
            .filter_map(|watched| Some((job(&watched.job), value(watched)?)));
        samples.collect::<Vec<_>>()
    };
    let states = jobs.values().flat_map(|watched| {
        State::ALL.map(|state| {
            let labels = format!("{{job=\"{}\",state=\"{}\"}}", escaped(&watched.job), state.name());
            (labels, f64::from(u8::from(watched.state == state)))
        })
    });
    let one = |value: f64| vec![(String::new(), value)];
    let age = health.last_success.map(|last| (now - last) as f64 / 1e6);
    let families: [Family; 13] = [
        (
            "mt_detector_jobs",
            "gauge",
            "Jobs that are watched.",
            one(jobs.len() as f64),
        ),
        (
            "mt_detector_job_state",
            "gauge",
            "1 for the state that a job is in.",
            states.collect(),
        ),
        (
            "mt_detector_slow_ranks",
            "gauge",
            "Ranks that the verdict on the present slow window names.",
            each(&|job| Some(job.detection.as_ref().map_or(0, |detection| detection.ranks.len()) as f64)),
        ),
        (
            "mt_detector_cost_ratio",
            "gauge",
            "Growth of the step that the weightiest finding costs.",
            each(&|job| job.detection.as_ref()?.cost),
        ),
        (
            "mt_detector_last_iteration",
            "gauge",
            "Last iteration that was looked at.",
            each(&|job| Some(job.last.as_ref()?.iteration as f64)),
        ),
        (
            "mt_detector_last_iteration_seconds",
            "gauge",
            "Its duration.",
            each(&|job| Some(job.last.as_ref()?.seconds)),
        ),
        (
            "mt_detector_baseline_seconds",
            "gauge",
            "The usual duration.",
            each(&Watched::baseline),
        ),
        (
            "mt_detector_iterations_total",
            "counter",
            "Iterations that were looked at.",
            each(&|job| Some(job.count as f64)),
        ),
        (
            "mt_detector_analyses_total",
            "counter",
            "Analyses that ended.",
            one(analyses as f64),
        ),
        (
            "mt_detector_polls_total",
            "counter",
            "Polls that succeeded.",
            one(health.polls as f64),
        ),
        (
            "mt_detector_poll_failures_total",
            "counter",
            "Polls that failed.",
            one(health.failures as f64),
        ),
        (
            "mt_detector_poll_seconds",
            "gauge",
            "Duration of the last poll.",
            one(health.last_seconds),
        ),
        (
            "mt_detector_poll_age_seconds",
            "gauge",
            "Time since the last poll that succeeded.",
            age.map_or(Vec::new(), one),
        ),
    ];
    let mut text = String::new();
    for (name, kind, help, samples) in families {
        // Writing to a string can't fail.
        let _ = writeln!(text, "# HELP {name} {help}\n# TYPE {name} {kind}");
        for (labels, value) in samples {
            let _ = writeln!(text, "{name}{labels} {value}");
        }
    }
    text
}

/// A label's value, as the format escapes it; what steers a terminal is no part of it.
fn escaped(text: &str) -> String {
    let shown = crate::contract::printable::on_one_line(text);
    shown.replace('\\', "\\\\").replace('"', "\\\"")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_line_has_the_format() {
        let mut watched = Watched::new("a\"b\\c\nd", 0);
        watched.state = State::Hanging;
        let jobs = BTreeMap::from([(watched.job.clone(), watched)]);
        let text = metrics(&jobs, &Health::default(), 3, 10);
        for line in text.lines() {
            let sample = line.split_once(' ').is_some();
            assert!(
                line.starts_with('#') || (line.starts_with("mt_detector_") && sample),
                "{line}"
            );
        }
        assert!(
            text.contains("mt_detector_job_state{job=\"a\\\"b\\\\c\\\\nd\",state=\"hanging\"} 1"),
            "{text}"
        );
        assert!(text.contains("mt_detector_analyses_total 3\n"), "{text}");
    }
}
