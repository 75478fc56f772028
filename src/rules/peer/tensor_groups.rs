//! Tensor groups: the ranks of one stage and pipeline. They wait for each other inside forward and backward, so that only the
//! unit's time can be told from those timers; its work is forward without the loader, plus backward.
//!
//! The loader's time is not the GPU's: one tensor-parallel rank loads and the rest wait for its broadcast inside
//! forward, so the longest loader time of the members is taken out. `O(ranks x iterations)` and a sort a cell.

use super::rows::{RowPlaces, grouped};
use super::rows_by_step::RowsByStep;
use crate::contract::constant::constants;
use crate::contract::timers::{ATTENTION_QKV, BACKWARD_COMPUTE, BATCH_GENERATOR, COMPUTING, FORWARD_COMPUTE};
use crate::job::Job;
use crate::job::Place;
use crate::stats::median;

constants! {
    /// Least share of forward that may be left without the loader's time; below it the two do not belong together.
    LEAST_FORWARD: f64 = 0.05;
}

/// The tables of the job that the rules use: ranks x iterations, NaN where a timer did not run.
///
/// All are multiplied by one power of two, which changes no digit and makes the verdict independent of the unit.
#[derive(Debug)]
pub(super) struct RankTimes {
    /// Seconds that 1.0 in the tables stands for.
    pub unit_seconds: f64,
    pub forward: Option<RowsByStep>,
    pub backward: Option<RowsByStep>,
    pub qkv: Option<RowsByStep>,
    pub loader: Option<RowsByStep>,
}

impl RankTimes {
    /// Takes the tables of a job.
    pub fn of(job: &Job) -> Self {
        let largest = COMPUTING
            .iter()
            .chain([&BATCH_GENERATOR])
            .filter_map(|name| job.timer(name))
            .flat_map(|timer| timer.seconds.iter().copied())
            .filter(|seconds| seconds.is_finite())
            .fold(0.0, f64::max);
        let unit = power_of_two_near(largest);
        let table = |name: &str| {
            let seconds = &job.timer(name)?.seconds;
            let table = RowsByStep::fill(seconds.nrows(), seconds.ncols(), |row, cells| {
                for (cell, &seconds) in cells.iter_mut().zip(seconds.row(row)) {
                    let scaled = seconds / unit;
                    // A duration of 0 says that the timer did not run.
                    if scaled > 0.0 && scaled.is_finite() {
                        *cell = scaled;
                    }
                }
            });
            table.has_values().then_some(table)
        };
        Self {
            unit_seconds: unit,
            forward: table(FORWARD_COMPUTE),
            backward: table(BACKWARD_COMPUTE),
            qkv: table(ATTENTION_QKV),
            loader: table(BATCH_GENERATOR),
        }
    }

    /// Whether there is any timer to judge by.
    pub fn any(&self) -> bool {
        self.forward.is_some() || self.backward.is_some() || self.qkv.is_some() || self.loader.is_some()
    }
}

/// A power of two at most a factor of two below; 1 for 0 and what is not finite or normal.
fn power_of_two_near(value: f64) -> f64 {
    if value.is_normal() {
        // Without the fraction the exponent alone is left.
        f64::from_bits(value.to_bits() & (0x7ff << 52))
    } else {
        1.0
    }
}

/// The units of a job with their times.
#[derive(Debug)]
pub(super) struct TensorGroups {
    /// Seconds that 1.0 in the tables stands for.
    pub unit_seconds: f64,
    /// Ranks (positions in the job) of each unit, by their place in the unit.
    pub members: Vec<Vec<usize>>,
    /// Unit of each rank.
    pub unit_of: Vec<usize>,
    /// Stage of each unit.
    pub stages: Vec<u32>,
    /// Pipeline of each unit.
    pub pipelines: Vec<u32>,
    /// Where the units stand; a unit's node is that of its first member.
    pub places: RowPlaces,
    /// Forward without the loader's time.
    pub forward: Option<RowsByStep>,
    /// Backward.
    pub backward: Option<RowsByStep>,
    /// The longest loader time of the members.
    pub loader: Option<RowsByStep>,
    /// What a unit computes in a step.
    pub work: RowsByStep,
}

impl TensorGroups {
    /// Groups ranks by stage and pipeline; `nodes` are codes. `None` without a timer of computing or loading.
    pub fn new(times: &RankTimes, places: &[Place], nodes: &[u32]) -> Option<Self> {
        let keys: Vec<(u32, u32)> = places.iter().map(|place| (place.stage, place.pipeline)).collect();
        let mut distinct = keys.clone();
        distinct.sort_unstable();
        distinct.dedup();
        let unit_of: Vec<usize> = keys
            .iter()
            .map(|key| distinct.partition_point(|known| known < key))
            .collect();
        let members = grouped(
            unit_of
                .iter()
                .zip(places)
                .map(|(&unit, place)| (unit as u32, place.member)),
        );
        let of_unit = |table: &Option<RowsByStep>, of: fn(Vec<f64>) -> f64| {
            table.as_ref().map(|table| over_members(table, &members, of))
        };
        let longest = |values: Vec<f64>| values.into_iter().fold(f64::NAN, f64::max);
        let (stages, pipelines): (Vec<u32>, Vec<u32>) = distinct.into_iter().unzip();
        let first_node = |ranks: &Vec<usize>| ranks.first().map_or(0, |&rank| nodes[rank]);
        let row_places = RowPlaces::new(&stages, &pipelines, members.iter().map(first_node).collect());
        let loader = of_unit(&times.loader, longest);
        let forward = of_unit(&times.forward, median).map(|forward| match &loader {
            Some(loader) => without_loader(&forward, loader),
            None => forward,
        });
        let backward = of_unit(&times.backward, median);
        let qkv = of_unit(&times.qkv, median);
        let work = match (&forward, &backward, &qkv) {
            (Some(forward), Some(backward), _) => sum_of_passes(forward, backward, &row_places),
            (Some(one), None, _) | (None, Some(one), _) | (None, None, Some(one)) => one.clone(),
            // Without computing there is nothing to compare but the loaders.
            (None, None, None) => {
                let loader = loader.as_ref()?;
                RowsByStep::fill(loader.rows(), loader.columns(), |_, _| ())
            }
        };
        Some(Self {
            unit_seconds: times.unit_seconds,
            members,
            unit_of,
            stages,
            pipelines,
            places: row_places,
            forward,
            backward,
            loader,
            work,
        })
    }

    /// Number of units.
    pub fn len(&self) -> usize {
        self.members.len()
    }

    /// Whether every unit is one rank, whose every timer is its own.
    pub fn are_single_ranks(&self) -> bool {
        self.members.iter().all(|members| members.len() == 1)
    }
}

fn over_members(table: &RowsByStep, members: &[Vec<usize>], of: fn(Vec<f64>) -> f64) -> RowsByStep {
    RowsByStep::fill(members.len(), table.columns(), |unit, cells| {
        match members[unit].as_slice() {
            [one] => cells.copy_from_slice(table.row(*one)),
            several => {
                for (column, cell) in cells.iter_mut().enumerate() {
                    *cell = of(several.iter().map(|&rank| table.row(rank)[column]).collect());
                }
            }
        }
    })
}

/// Forward less the loader's time; a row of the loader that is missing counts as that unit's median.
fn without_loader(forward: &RowsByStep, loader: &RowsByStep) -> RowsByStep {
    RowsByStep::fill(forward.rows(), forward.columns(), |unit, cells| {
        let usual = median(loader.row(unit).iter().copied());
        let usual = if usual.is_finite() { usual } else { 0.0 };
        for ((cell, &forward), &loader) in cells.iter_mut().zip(forward.row(unit)).zip(loader.row(unit)) {
            let rest = forward - if loader.is_finite() { loader } else { usual };
            *cell = if rest > LEAST_FORWARD.get() * forward {
                rest
            } else {
                forward
            };
        }
    })
}

/// Forward plus backward; where one is missing, the other times what the sum usually is of it in that stage.
fn sum_of_passes(forward: &RowsByStep, backward: &RowsByStep, places: &RowPlaces) -> RowsByStep {
    let all = |table: &RowsByStep| median(table.cells());
    let (usual_forward, usual_backward) = (all(forward), all(backward));
    let usual = usual_forward + usual_backward;
    let shares: Vec<(f64, f64)> = places
        .stages
        .iter()
        .map(|rows| {
            let share = |part: &RowsByStep, whole: f64| {
                let cells = |&row: &usize| {
                    let sums = forward.row(row).iter().zip(backward.row(row)).map(|(f, b)| f + b);
                    sums.zip(part.row(row)).map(|(sum, part)| sum / part)
                };
                let seen = median(rows.iter().flat_map(cells));
                if seen.is_finite() { seen } else { whole }
            };
            (
                share(forward, usual / usual_forward),
                share(backward, usual / usual_backward),
            )
        })
        .collect();
    RowsByStep::fill(forward.rows(), forward.columns(), |row, cells| {
        let (of_forward, of_backward) = shares[places.stage_of[row]];
        for ((cell, &forward), &backward) in cells.iter_mut().zip(forward.row(row)).zip(backward.row(row)) {
            *cell = match (forward.is_finite(), backward.is_finite()) {
                (true, true) => forward + backward,
                (true, false) => forward * of_forward,
                _ => backward * of_backward,
            };
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn place(stage: u32, pipeline: u32, member: u32) -> Place {
        Place {
            stage,
            pipeline,
            member,
        }
    }

    fn table(rows: &[&[f64]]) -> Option<RowsByStep> {
        Some(RowsByStep::fill(rows.len(), rows[0].len(), |row, cells| {
            cells.copy_from_slice(rows[row]);
        }))
    }

    const N: f64 = f64::NAN;

    #[test]
    fn work_is_both_passes_without_the_loader() {
        let times = RankTimes {
            unit_seconds: 1.0,
            forward: table(&[&[2.0, 3.0, N], &[2.0, 3.0, N]]),
            backward: table(&[&[4.0, N, 4.0], &[4.0, N, 4.0]]),
            qkv: None,
            loader: table(&[&[0.5, 0.5, N], &[N, N, N]]),
        };
        let units = TensorGroups::new(&times, &[place(0, 0, 0), place(0, 0, 1)], &[7, 7]).expect("timers");
        assert_eq!((units.len(), units.members[0].as_slice()), (1, &[0, 1][..]));
        // Usual: 1.5 forward of 5.5.
        assert_eq!(units.work.row(0), [5.5, 2.5 * 5.5 / 1.5, 4.0 * 5.5 / 4.0]);
    }

    #[test]
    fn one_timer_is_enough_and_none_is_not() {
        let none = || RankTimes {
            unit_seconds: 1.0,
            forward: None,
            backward: None,
            qkv: None,
            loader: None,
        };
        let places = [place(0, 1, 0), place(0, 0, 0)];
        assert!(TensorGroups::new(&none(), &places, &[0, 0]).is_none());
        let times = RankTimes {
            qkv: table(&[&[1.0], &[2.0]]),
            ..none()
        };
        let units = TensorGroups::new(&times, &places, &[0, 0]).expect("a timer");
        assert_eq!((units.unit_of.as_slice(), units.work.row(0)), (&[1, 0][..], &[2.0][..]));
    }

    #[test]
    fn units_of_time_are_powers_of_two() {
        assert_eq!(power_of_two_near(5.9), 4.0);
        assert_eq!(power_of_two_near(0.25), 0.25);
        assert_eq!((power_of_two_near(0.0), power_of_two_near(f64::INFINITY)), (1.0, 1.0));
    }
}
