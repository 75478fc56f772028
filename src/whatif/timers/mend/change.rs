//! A step with faults mended.

use super::super::collectives::Collective;
use super::super::work::{Change, Work};
use super::Delta;

impl Change {
    /// A step with faults mended.
    #[must_use]
    pub fn of<'d>(work: &Work<'_>, step: usize, deltas: impl Iterator<Item = &'d Delta> + Clone) -> Self {
        let mut change = Self::none(work, step);
        for delta in deltas.clone() {
            // Who is accused twice is mended once.
            for &(worker, factor) in &delta.compute {
                change.compute[worker] = change.compute[worker].min(factor);
            }
            for &(worker, seconds) in &delta.loading {
                change.loading[worker] = change.loading[worker].max(seconds);
            }
            for &(place, factor) in &delta.transfer {
                change.transfer[place] = change.transfer[place].min(factor);
            }
        }
        for &(worker, factor) in deltas.clone().flat_map(|delta| &delta.balance) {
            change.compute[worker] *= factor;
        }
        if let Some(delta) = deltas.clone().find(|delta| !delta.load.is_empty()) {
            change.load.clone_from(&delta.load);
        }
        let at = work.picked[step];
        let reduction = &work.behind.reduction;
        let mended: Vec<(usize, f64)> = deltas.clone().flat_map(|delta| &delta.reduction).copied().collect();
        if !mended.is_empty() {
            let groups = with(reduction, at, &mended);
            for (stage, seconds) in change.reduction.iter_mut().enumerate() {
                let groups = &groups[stage * reduction.members..(stage + 1) * reduction.members];
                *seconds = groups.iter().copied().fold(0.0, f64::max);
            }
        }
        let mended: Vec<(usize, f64)> = deltas.clone().flat_map(|delta| &delta.gathering).copied().collect();
        if !mended.is_empty() {
            let gathering = &work.behind.gathering;
            let longest = |groups: Vec<f64>| groups.into_iter().fold(0.0, f64::max);
            change.behind += longest(with(gathering, at, &[])) - longest(with(gathering, at, &mended));
        }
        let mut updates = deltas.flat_map(|delta| &delta.update).peekable();
        if updates.peek().is_some() {
            let mut seconds: Vec<f64> = work.behind.update.iter().map(|steps| steps[at]).collect();
            let before = seconds.iter().copied().fold(0.0, f64::max);
            for &(rank, factor) in updates {
                seconds[rank] = work.behind.update[rank][at] * factor;
            }
            change.behind += before - seconds.into_iter().fold(0.0, f64::max);
        }
        change
    }
}

/// A collective's groups in a step, some of them mended.
fn with(collective: &Collective, step: usize, mended: &[(usize, f64)]) -> Vec<f64> {
    let mut groups: Vec<f64> = collective.seconds.iter().map(|group| group[step]).collect();
    for &(group, seconds) in mended {
        groups[group] = groups[group].min(seconds);
    }
    groups
}
