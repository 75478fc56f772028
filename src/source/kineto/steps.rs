//! Kernels of a device -> how long it computed, communicated and waited in each step.

use std::collections::BTreeMap;

use crate::source::Micros;

/// A span of time, microseconds.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Interval {
    pub begin: f64,
    pub end: f64,
}

/// A step as it was marked.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Step {
    pub span: Interval,
}

/// The times of a step, seconds.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct StepTimes {
    pub number: i64,
    /// When it ended.
    pub end: Micros,
    pub seconds: f64,
    /// In which a kernel that computes ran.
    pub computing: f64,
    /// In which a kernel that communicates ran.
    pub communicating: f64,
    /// In which none ran.
    pub idle: f64,
}

/// The times of the steps that the host marked. Kernels count where they ran: within the step as the device saw it, and parts of
/// one that reaches over its ends count in each step. Streams that run at once count once.
pub(super) fn times_of(
    steps: &BTreeMap<i64, Step>,
    device_steps: &BTreeMap<i64, Step>,
    computing: &[Interval],
    communicating: &[Interval],
    base: f64,
) -> Vec<StepTimes> {
    let (computing, communicating) = (joined(computing), joined(communicating));
    let busy = joined(&[computing.as_slice(), communicating.as_slice()].concat());
    let times = steps.iter().map(|(&number, step)| {
        let span = device_steps.get(&number).unwrap_or(step).span;
        let seconds = |spans: &[Interval]| covered(spans, span) / 1e6;
        let whole = (span.end - span.begin) / 1e6;
        StepTimes {
            number,
            end: (base + step.span.end).round() as Micros,
            seconds: (step.span.end - step.span.begin) / 1e6,
            computing: seconds(&computing),
            communicating: seconds(&communicating),
            idle: (whole - seconds(&busy)).max(0.0),
        }
    });
    times.collect()
}

/// Spans in their order, those that touch made one.
fn joined(spans: &[Interval]) -> Vec<Interval> {
    let mut sorted = spans.to_vec();
    sorted.sort_by(|a, b| a.begin.total_cmp(&b.begin).then(a.end.total_cmp(&b.end)));
    let mut joined: Vec<Interval> = Vec::new();
    for span in sorted {
        match joined.last_mut() {
            Some(last) if span.begin <= last.end => last.end = last.end.max(span.end),
            _ => joined.push(span),
        }
    }
    joined
}

/// How much of a span joined spans cover.
fn covered(joined: &[Interval], span: Interval) -> f64 {
    let first = joined.partition_point(|other| other.end <= span.begin);
    let inside = joined[first..].iter().take_while(|other| other.begin < span.end);
    inside
        .map(|other| other.end.min(span.end) - other.begin.max(span.begin))
        .sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn span(begin: f64, end: f64) -> Interval {
        Interval { begin, end }
    }

    #[test]
    fn streams_that_run_at_once_count_once() {
        let steps = BTreeMap::from([(7, Step { span: span(0.0, 1e6) }), (8, Step { span: span(1e6, 3e6) })]);
        let computing = [span(0.1e6, 0.5e6), span(0.3e6, 0.6e6), span(0.9e6, 1.2e6)];
        let communicating = [span(0.4e6, 0.8e6), span(2e6, 2.5e6)];
        let times = times_of(&steps, &steps, &computing, &communicating, 1e9);
        let rounded = |seconds: f64| (seconds * 1e6).round() / 1e6;
        let [first, second] = times[..] else {
            panic!("{times:?}");
        };
        assert_eq!((first.number, first.end, first.seconds), (7, 1_001_000_000, 1.0));
        assert_eq!(
            (
                rounded(first.computing),
                rounded(first.communicating),
                rounded(first.idle)
            ),
            (0.6, 0.4, 0.2)
        );
        assert_eq!(
            (
                rounded(second.computing),
                rounded(second.communicating),
                rounded(second.idle)
            ),
            (0.2, 0.5, 1.3)
        );
    }

    #[test]
    fn steps_of_the_device_hold_its_kernels() {
        let host = BTreeMap::from([(1, Step { span: span(0.0, 10.0) })]);
        let device = BTreeMap::from([(1, Step { span: span(5.0, 15.0) })]);
        let times = times_of(&host, &device, &[span(9.0, 14.0)], &[], 0.0);
        assert_eq!((times[0].computing, times[0].idle), (5e-6, 5e-6));
    }
}
