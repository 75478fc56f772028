//! The steps with each fault mended, and with combinations of them.

use super::super::mend::{Delta, Fault, Mender, Target};
use super::super::work::Work;
use super::answer::{FaultCost, WhatIf};
use super::ideal::Ideal;
use super::lengths;

/// Findings up to which their shares are the mean over all orders of mending.
pub(super) const MOST_ORDERS: usize = 6;
pub(super) struct Scenarios<'a> {
    work: &'a Work<'a>,
    faults: &'a [Fault],
    deltas: Vec<Vec<Delta>>,
    stages: Vec<Delta>,
    data: Vec<Delta>,
    /// Steps of the window that a replayed one stands for.
    scale: f64,
}

impl<'a> Scenarios<'a> {
    pub(super) fn new(work: &'a Work<'a>, faults: &'a [Fault], scale: f64) -> Self {
        let mender = Mender::new(work, faults);
        Self {
            work,
            faults,
            deltas: faults.iter().map(|fault| mender.deltas(fault)).collect(),
            stages: mender.deltas(&Fault::lasting(Target::Stages(Vec::new()))),
            data: mender.deltas(&Fault::lasting(Target::Data)),
            scale,
        }
    }

    /// Seconds of all replayed steps with some faults mended, and more besides.
    fn total(&self, mends: impl Fn(usize) -> bool, besides: &[&Vec<Delta>]) -> f64 {
        let steps: Vec<Vec<&Delta>> = (0..self.work.steps())
            .map(|step| {
                let faults = self.deltas.iter().enumerate().filter(|(fault, _)| mends(*fault));
                let faults = faults.map(|(_, deltas)| &deltas[step]);
                faults.chain(besides.iter().map(|deltas| &deltas[step])).collect()
            })
            .collect();
        lengths(self.work, &steps).iter().sum()
    }

    pub(super) fn fill(&self, replayed: &[f64], answer: &mut WhatIf) {
        let measured: f64 = replayed.iter().sum();
        let hours = |seconds: f64| seconds * self.work.job.ranks.len() as f64 / 3600.0;
        let growth = |one: f64, other: f64| if other > 0.0 { one / other - 1.0 } else { 0.0 };
        let is_fault = |fault: usize| !self.faults[fault].target.is_imbalance();
        let mended = self.total(is_fault, &[]);
        let even_stages = self.total(is_fault, &[&self.stages]);
        let even_data = self.total(is_fault, &[&self.stages, &self.data]);
        let ideal = Ideal::new(self.work, &self.faults_of_steps(is_fault)).length() * replayed.len() as f64;
        let seconds = (measured - mended) * self.scale;
        answer.faults_share = Some(growth(measured, mended));
        answer.seconds = Some(seconds);
        answer.gpu_hours = Some(hours(seconds));
        answer.mended_step_seconds = Some(mended / replayed.len().max(1) as f64);
        answer.stages_share = Some(growth(mended, even_stages));
        answer.data_share = Some(growth(even_stages, even_data));
        answer.unexplained_share = Some(growth(even_data, ideal));
        let (alone, parts) = self.parts(measured);
        let saved_alone: f64 = (0..alone.len())
            .filter(|&fault| is_fault(fault))
            .map(|fault| measured - alone[fault])
            .sum();
        answer.only_together_seconds = Some((seconds - saved_alone * self.scale).max(0.0));
        answer.faults = alone
            .into_iter()
            .zip(parts)
            .map(|(alone, part)| FaultCost {
                growth: growth(measured, alone),
                seconds: (measured - alone) * self.scale,
                gpu_hours: hours((measured - alone) * self.scale),
                part_seconds: part * self.scale,
            })
            .collect();
    }

    fn faults_of_steps(&self, mends: impl Fn(usize) -> bool) -> Vec<Vec<&Delta>> {
        (0..self.work.steps())
            .map(|step| {
                let faults = self.deltas.iter().enumerate().filter(|(fault, _)| mends(*fault));
                let faults = faults.map(|(_, deltas)| &deltas[step]);
                faults.chain([&self.stages[step], &self.data[step]]).collect()
            })
            .collect()
    }

    /// Seconds with each fault alone mended, and the part of each in what mending all saves.
    fn parts(&self, measured: f64) -> (Vec<f64>, Vec<f64>) {
        let count = self.faults.len();
        if count > MOST_ORDERS {
            let alone: Vec<f64> = (0..count)
                .map(|fault| self.total(|other| other == fault, &[]))
                .collect();
            let all = self.total(|_| true, &[]);
            let part = |fault: usize| {
                let last = self.total(|other| other != fault, &[]) - all;
                f64::midpoint(measured - alone[fault], last)
            };
            let parts = (0..count).map(part).collect();
            return (alone, parts);
        }
        let totals: Vec<f64> = (0..1_usize << count)
            .map(|set| {
                if set == 0 {
                    measured
                } else {
                    self.total(|fault| set >> fault & 1 == 1, &[])
                }
            })
            .collect();
        let factorial = |number: usize| (1..=number).map(|factor| factor as f64).product::<f64>();
        let part = |fault: usize| {
            (0..totals.len())
                .filter(|set| set >> fault & 1 == 0)
                .map(|set| {
                    let before = set.count_ones() as usize;
                    let orders = factorial(before) * factorial(count - before - 1) / factorial(count);
                    orders * (totals[set] - totals[set | 1 << fault])
                })
                .sum()
        };
        (
            (0..count).map(|fault| totals[1 << fault]).collect(),
            (0..count).map(part).collect(),
        )
    }
}
