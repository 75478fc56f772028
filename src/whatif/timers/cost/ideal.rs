//! A step in which nothing is slow.

use super::super::mend::Delta;
use super::super::schedule::Task;
use super::super::work::{Change, Work};
use super::mean;
use crate::whatif::middle;
use crate::whatif::replay::Durations;

/// A step in which every operation takes what is usual on its stage.
pub(super) struct Ideal<'a> {
    work: &'a Work<'a>,
    /// Forward and backward passes of each stage.
    passes: Vec<[f64; 2]>,
    transfers: Vec<f64>,
    reductions: Vec<f64>,
    rest: f64,
}

impl<'a> Ideal<'a> {
    pub(super) fn new(work: &'a Work<'a>, mended: &[Vec<&Delta>]) -> Self {
        let lanes = work.workers.lanes;
        let changes: Vec<Change> = mended
            .iter()
            .enumerate()
            .map(|(step, deltas)| Change::of(work, step, deltas.iter().copied()))
            .collect();
        let cells = || (0..changes.len()).flat_map(move |step| (0..lanes).map(move |lane| (step, lane)));
        let count = work.schedule.passes as f64;
        let loading = work.schedule.loading_passes as f64;
        let passes = (0..work.workers.stages)
            .map(|stage| {
                let of = |sums: &[Vec<f64>], loads: f64| {
                    mean(cells().map(|(step, lane)| {
                        let worker = work.workers.at(stage, lane);
                        let change = &changes[step];
                        sums[step][worker] * change.compute[worker] - loads * change.loading[worker]
                    })) / count
                };
                [of(&work.sums.forward, loading), of(&work.sums.backward, 0.0)]
            })
            .collect();
        let transfers = (0..work.schedule.ways)
            .map(|way| {
                let usual = cells().flat_map(|(step, lane)| {
                    let factor = changes[step].transfer[way * lanes + lane];
                    work.way(way, lane, step).map(move |seconds| seconds * factor)
                });
                middle(usual).unwrap_or_default()
            })
            .collect();
        let reductions = (0..work.workers.stages)
            .map(|stage| middle(changes.iter().map(|change| change.reduction[stage])).unwrap_or_default())
            .collect();
        let rest = mean((0..changes.len()).map(|step| work.behind.rest[work.picked[step]] - changes[step].behind));
        Self {
            work,
            passes,
            transfers,
            reductions,
            rest,
        }
    }

    pub(super) fn length(&self) -> f64 {
        self.work.schedule.program.step(1, self, &mut Vec::new()) + self.rest
    }
}

impl Durations for Ideal<'_> {
    fn add(&self, node: usize, times: &mut [f64]) {
        let seconds = match self.work.schedule.tasks[node] {
            Task::Pass { stage, backward, .. } => self.passes[stage][usize::from(backward)],
            Task::Transfer(number) => self.transfers[self.work.schedule.transfers[number].way],
            Task::Reduction(stage) => self.reductions[stage],
            Task::Nothing => 0.0,
        };
        for time in times {
            *time += seconds;
        }
    }
}
