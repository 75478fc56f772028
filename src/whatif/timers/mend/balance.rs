//! Stages with the same work, and the same load for all.

use rayon::prelude::*;

use super::super::schedule::Task;
use super::{Delta, Mender};
use crate::whatif::middle;

/// The loads of the microbatches of a lane in a step, 1 on average: as the forward passes tell, and as the backward passes do.
struct Loads {
    forward: Vec<f64>,
    backward: Vec<f64>,
}

impl Mender<'_> {
    pub(super) fn level_stages(&self, stages: &[u32], shows: &[bool], deltas: &mut [Delta]) {
        let lanes = self.work.workers.lanes;
        let heavy = |stage: usize| stages.contains(&(stage as u32));
        for step in (0..shows.len()).filter(|&step| shows[step]) {
            let levels = &self.levels[step];
            if stages.is_empty() {
                spread_evenly(levels, lanes, &mut deltas[step]);
                continue;
            }
            let mut others: Vec<f64> = (0..levels.len())
                .filter(|&stage| !heavy(stage))
                .map(|stage| levels[stage])
                .filter(|level| level.is_finite())
                .collect();
            others.sort_unstable_by(f64::total_cmp);
            // Of two stages the lighter one.
            let Some(&usual) = others.get(others.len().saturating_sub(1) / 2) else {
                continue;
            };
            for (stage, &level) in levels.iter().enumerate().filter(|(stage, _)| heavy(*stage)) {
                if level > usual {
                    let workers = stage * lanes..(stage + 1) * lanes;
                    deltas[step]
                        .balance
                        .extend(workers.map(|worker| (worker, usual / level)));
                }
            }
        }
    }

    /// Takes out what each worker's load varies by from step to step, beyond what all vary by.
    pub(super) fn level_data(&self, deltas: &mut [Delta]) {
        let workers = self.work.workers.ranks.len();
        let means: Vec<f64> = (0..deltas.len())
            .map(|step| {
                let sound = (0..workers).filter(|&worker| !self.marked[worker]);
                let (sum, count) = sound.fold((0.0, 0), |(sum, count), worker| {
                    (sum + self.computing(step, worker), count + 1)
                });
                if count > 0 { sum / f64::from(count) } else { f64::NAN }
            })
            .collect();
        for worker in (0..workers).filter(|&worker| !self.marked[worker]) {
            let level = |step: usize| self.computing(step, worker) / means[step];
            let levels = (0..deltas.len()).map(level).filter(|level| level.is_finite());
            let (sum, count) = levels.fold((0.0, 0), |(sum, count), level| (sum + level, count + 1));
            for (step, delta) in deltas.iter_mut().enumerate() {
                let factor = sum / f64::from(count) / level(step);
                if factor.is_finite() && factor > 0.0 {
                    delta.balance.push((worker, factor));
                }
            }
        }
        self.level_microbatches(deltas);
    }

    /// Gives all microbatches of a lane in a step the same load. What a microbatch is longer by shows on all stages, and in the
    /// backward pass as in the forward one; what only one of them shows is noise, which stays: a load counts for as much as both
    /// tell together.
    fn level_microbatches(&self, deltas: &mut [Delta]) {
        if !self.work.has_calls {
            return;
        }
        let (lanes, microbatches) = (self.work.workers.lanes, self.work.schedule.loading_passes);
        let loads: Vec<Vec<Loads>> = (0..deltas.len()).into_par_iter().map(|step| self.loads(step)).collect();
        let (mut both, mut either) = (0.0, 0.0);
        for loads in loads.iter().flatten() {
            for (forward, backward) in loads.forward.iter().zip(&loads.backward) {
                both += (forward - 1.0) * (backward - 1.0);
                either += f64::midpoint(forward - 1.0, backward - 1.0).powi(2);
            }
        }
        let sure = if either > 0.0 {
            (both / either).clamp(0.0, 1.0)
        } else {
            0.0
        };
        if sure == 0.0 {
            return;
        }
        for (delta, loads) in deltas.iter_mut().zip(loads) {
            delta.load = vec![1.0; microbatches * lanes];
            for (lane, loads) in loads.into_iter().enumerate() {
                for (microbatch, (forward, backward)) in loads.forward.iter().zip(&loads.backward).enumerate() {
                    let load = 1.0 + sure * (f64::midpoint(*forward, *backward) - 1.0);
                    if load.is_finite() && load > 0.0 {
                        delta.load[microbatch * lanes + lane] = 1.0 / load;
                    }
                }
            }
        }
    }

    /// The loads of the microbatches of each lane in a step: of the sound stages' passes the median.
    fn loads(&self, step: usize) -> Vec<Loads> {
        let work = self.work;
        let (lanes, microbatches, stages) = (work.workers.lanes, work.schedule.loading_passes, work.workers.stages);
        // Seconds of [direction][stage][microbatch][lane], all chunks together.
        let mut seconds = vec![0.0; 2 * stages * microbatches * lanes];
        for task in &work.schedule.tasks {
            let &Task::Pass {
                stage,
                backward,
                call,
                microbatch,
                ..
            } = task
            else {
                continue;
            };
            let from = ((usize::from(backward) * stages + stage) * microbatches + microbatch) * lanes;
            for (sum, seconds) in seconds[from..from + lanes]
                .iter_mut()
                .zip(work.pass(step, stage, backward, call).into_iter().flatten())
            {
                *sum += seconds;
            }
        }
        let of = |direction: usize, lane: usize| -> Vec<f64> {
            let at = |stage: usize, microbatch: usize| {
                seconds[((direction * stages + stage) * microbatches + microbatch) * lanes + lane]
            };
            let sound: Vec<(usize, f64)> = (0..stages)
                .filter(|&stage| !self.marked[work.workers.at(stage, lane)])
                .map(|stage| {
                    (
                        stage,
                        (0..microbatches).map(|microbatch| at(stage, microbatch)).sum::<f64>() / microbatches as f64,
                    )
                })
                .filter(|(_, mean)| *mean > 0.0)
                .collect();
            let mut loads: Vec<f64> = (0..microbatches)
                .map(|microbatch| {
                    middle(sound.iter().map(|&(stage, mean)| at(stage, microbatch) / mean)).unwrap_or(1.0)
                })
                .collect();
            let mean = loads.iter().sum::<f64>() / microbatches as f64;
            loads.iter_mut().for_each(|load| *load /= mean);
            loads
        };
        (0..lanes)
            .map(|lane| Loads {
                forward: of(0, lane),
                backward: of(1, lane),
            })
            .collect()
    }
}

/// All stages get the mean of their levels: the layers are spread anew, and nothing of the work goes.
fn spread_evenly(levels: &[f64], lanes: usize, delta: &mut Delta) {
    let known = levels.iter().filter(|level| level.is_finite());
    let (sum, count) = known.fold((0.0, 0), |(sum, count), level| (sum + level, count + 1));
    let usual = sum / f64::from(count);
    for (stage, &level) in levels.iter().enumerate().filter(|(_, level)| level.is_finite()) {
        let workers = stage * lanes..(stage + 1) * lanes;
        delta.balance.extend(workers.map(|worker| (worker, usual / level)));
    }
}
