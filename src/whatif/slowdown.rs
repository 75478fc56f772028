//! How much longer steps take than they should, and through whom: the figures of "Understanding Stragglers in Large
//! Model Training Using What-if Analysis" (OSDI 2025).
//!
//! Each figure is a ratio of means over steps. Everything ideal but one type, replica or stage gives the slowdown through
//! it; a worker's is the smaller of its replica's and its stage's, which takes DP + PP replays instead of DP x PP.

use std::collections::BTreeMap;

use rayon::prelude::*;
use schemars::JsonSchema;
use serde::Serialize;

use super::replay::{Lanes, Program};
use super::scenario::{Kept, Scenario};
use super::trace::{TraceQuality, Values};

/// Share of workers that are taken as the slowest.
const SLOWEST_SHARE: f64 = 0.03;
/// Lost time below this share of the ideal step is rounding.
const NOTHING_LOST: f64 = 1e-9;

/// The figures of a trace.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct Slowdown {
    /// Measured durations over ideal ones, both without launch delays.
    pub slowdown: f64,
    /// Measured steps over steps without launch delays.
    pub launch_slowdown: f64,
    /// Share of the time that is lost: 1 - 1 / slowdown.
    pub waste: f64,
    /// Slowdown through each type of operation; transfers of one direction are one.
    pub by_optype: BTreeMap<String, f64>,
    /// Slowdown through each replica.
    pub by_dp: BTreeMap<u32, f64>,
    /// Slowdown through each stage.
    pub by_stage: BTreeMap<usize, f64>,
    /// Slowdown through each worker, by the rank that was recorded.
    pub by_worker: BTreeMap<i64, f64>,
    /// Share of the lost time that goes away with the slowest 3 % of the workers; null where nothing is lost.
    pub m_w: Option<f64>,
    /// Share of the lost time that goes away with the last stage; null where nothing is lost.
    pub m_s: Option<f64>,
    /// The slowest workers by their ranks.
    pub slowest_workers: Vec<i64>,
    /// Share of the lost time that the slowest 3 % of the workers alone make.
    pub m_w_added: Option<f64>,
    /// Share of the lost time that the last stage alone makes.
    pub m_s_added: Option<f64>,
    /// Mean measured step, seconds.
    pub step_seconds: f64,
    /// Mean step without launch delays, seconds.
    pub replayed_seconds: f64,
    /// Ideal step, seconds.
    pub ideal_seconds: f64,
    /// Mean difference of the replayed steps, delays included, from the measured ones, of the measured.
    pub replay_error: f64,
    /// Slowdown through each worker, a row a stage with a number a replica.
    pub heat_map: Vec<Vec<f64>>,
    /// Number of steps.
    pub steps: usize,
    /// Number of replicas.
    pub replicas: usize,
    /// What was read, used, and left out or made up.
    pub trace_quality: TraceQuality,
}

/// Plays a program in scenarios.
#[derive(Debug, Clone, Copy)]
pub struct Player<'a> {
    /// Who waits for whom.
    pub program: &'a Program,
    /// What was measured.
    pub values: &'a Values,
    /// What each operation should take.
    pub ideals: &'a [f64],
}

impl Player<'_> {
    /// Mean length of the steps in each scenario, seconds; of [`Kept::EachReplica`] a number a replica.
    #[must_use]
    pub fn means(&self, scenarios: &[Kept]) -> Vec<Vec<f64>> {
        let steps = self.values.steps.len();
        let of_steps: Vec<Vec<Vec<f64>>> = (0..steps)
            .into_par_iter()
            .map_init(Vec::new, |ends, step| {
                scenarios.iter().map(|kept| self.lengths(kept, step, ends)).collect()
            })
            .collect();
        let mut sums: Vec<Vec<f64>> = vec![Vec::new(); scenarios.len()];
        for step in of_steps {
            for (sums, lengths) in sums.iter_mut().zip(step) {
                sums.resize(lengths.len(), 0.0);
                for (sum, length) in sums.iter_mut().zip(lengths) {
                    *sum += length / steps as f64;
                }
            }
        }
        sums
    }

    fn lengths(&self, kept: &Kept, step: usize, ends: &mut Vec<f64>) -> Vec<f64> {
        let replicas = self.values.lanes();
        let lanes = kept.lanes(replicas);
        let durations = Scenario::new(self.values, self.ideals, kept, step);
        if !matches!(kept, Kept::EachReplica) {
            return vec![self.program.step(lanes, &durations, ends)];
        }
        self.program.play(lanes, Lanes::Pairs, &durations, ends);
        let mut over = vec![0.0; lanes];
        self.program.over(lanes, ends, &mut over);
        let (own, others) = over.split_at(replicas);
        own.iter()
            .zip(others)
            // Without other replicas there is nobody else to wait for.
            .map(|(own, other)| if replicas > 1 { own.max(*other) } else { *own })
            .collect()
    }

    /// Mean absolute difference of the replayed steps, delays included, from the measured ones; and the mean length of
    /// the replayed ones, seconds.
    #[must_use]
    pub fn replay_error(&self) -> (f64, f64) {
        let lanes = self.values.lanes();
        let of_steps: Vec<(f64, f64)> = (0..self.values.steps.len())
            .into_par_iter()
            .map_init(Vec::new, |ends, step| {
                let durations = self.values.as_measured(step, true);
                (self.program.step(lanes, &durations, ends), self.values.measured[step])
            })
            .collect();
        let count = of_steps.len().max(1) as f64;
        let error = of_steps
            .iter()
            .map(|(replayed, measured)| ratio((replayed - measured).abs(), *measured));
        (
            error.sum::<f64>() / count,
            of_steps.iter().map(|(replayed, _)| replayed / count).sum(),
        )
    }

    /// All figures.
    #[must_use]
    pub fn slowdown(&self) -> Slowdown {
        let values = self.values;
        let (replicas, stages) = (values.lanes(), values.stages);
        let names: Vec<&str> = {
            let mut names: Vec<&str> = values.ops.iter().map(|op| op.kind.reported()).collect();
            names.sort_unstable();
            names.dedup();
            names
        };
        let mut scenarios = vec![Kept::All, Kept::EachReplica];
        scenarios.extend((0..stages).map(|stage| Kept::ops(&values.ops, |op| op.stage == stage)));
        scenarios.extend(
            names
                .iter()
                .map(|name| Kept::ops(&values.ops, |op| op.kind.reported() == *name)),
        );
        let means = self.means(&scenarios);
        let ideal = self.lengths(&Kept::Nothing, 0, &mut Vec::new())[0];
        let measured = means[0][0];
        let by_replica: Vec<f64> = means[1].iter().map(|mean| ratio(*mean, ideal)).collect();
        let alone = |place: usize| ratio(means[place][0], ideal);
        let by_stage: Vec<f64> = (0..stages).map(|stage| alone(2 + stage)).collect();
        let heat_map: Vec<Vec<f64>> = by_stage
            .iter()
            .map(|stage| by_replica.iter().map(|replica| replica.min(*stage)).collect())
            .collect();
        let name = |worker: usize| match values.ranks[worker] {
            -1 => worker as i64,
            rank => i64::from(rank),
        };
        let mut order: Vec<usize> = (0..stages * replicas).collect();
        let of = |worker: usize| heat_map[worker / replicas][worker % replicas];
        order.sort_by(|&a, &b| of(b).total_cmp(&of(a)).then(name(a).cmp(&name(b))));
        let count = (SLOWEST_SHARE * (stages * replicas) as f64).ceil() as usize;
        let slowest = &order[..count];
        let marked = |kept: bool| {
            let mut marks = vec![!kept; stages * replicas];
            slowest.iter().for_each(|&worker| marks[worker] = kept);
            Kept::Workers(marks)
        };
        let last = |kept: bool| Kept::ops(&values.ops, |op| (op.stage + 1 == stages) == kept);
        let rest = self.means(&[marked(false), marked(true), last(false), last(true)]);
        let lost = measured - ideal;
        // Less than what rounding makes is nothing.
        let share = |seconds: f64| (lost.abs() > NOTHING_LOST * ideal).then_some(seconds / lost);
        let step_seconds = values.measured.iter().sum::<f64>() / values.measured.len().max(1) as f64;
        Slowdown {
            slowdown: ratio(measured, ideal),
            launch_slowdown: ratio(step_seconds, measured),
            waste: 1.0 - ratio(ideal, measured),
            by_optype: (names.iter().enumerate())
                .map(|(place, name)| ((*name).to_owned(), alone(2 + stages + place)))
                .collect(),
            by_dp: values
                .replicas
                .iter()
                .copied()
                .zip(by_replica.iter().copied())
                .collect(),
            by_stage: by_stage.iter().copied().enumerate().collect(),
            by_worker: (0..stages * replicas)
                .map(|worker| (name(worker), of(worker)))
                .collect(),
            m_w: share(measured - rest[0][0]),
            m_s: share(measured - rest[2][0]),
            slowest_workers: slowest.iter().map(|&worker| name(worker)).collect(),
            m_w_added: share(rest[1][0] - ideal),
            m_s_added: share(rest[3][0] - ideal),
            step_seconds,
            replayed_seconds: measured,
            ideal_seconds: ideal,
            replay_error: self.replay_error().0,
            heat_map: heat_map.clone(),
            steps: values.steps.len(),
            replicas,
            trace_quality: values.quality.clone(),
        }
    }
}

fn ratio(one: f64, other: f64) -> f64 {
    if other > 0.0 { one / other } else { 1.0 }
}
