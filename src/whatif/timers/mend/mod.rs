//! What is mended, and what the work of each step is then.
//!
//! A mended worker computes like its peers: its passes are divided by its own factor, which is its time over that of the
//! same stage in other pipelines, and over the load of its own pipeline in that step (long sequences hit all stages of a
//! pipeline alike). The factor is the median of eleven neighbouring slow steps, so that noise stays as it was.

mod balance;
mod change;
mod computing;
mod network;

use super::work::Work;
use crate::whatif::middle;

/// Who or what is mended; ranks and stages by their numbers.
#[derive(Debug, Clone, PartialEq)]
pub enum Target {
    /// Ranks compute as fast as their peers.
    Computing(Vec<u32>),
    /// Ranks load data as fast as their peers.
    Loading(Vec<u32>),
    /// What ranks send and receive, and collectives in which they take part, are as fast as elsewhere.
    Network(Vec<u32>),
    /// Transfers between two ranks, both ways, are as fast as elsewhere.
    Links(Vec<(u32, u32)>),
    /// The stages have no more work than the others; of an empty list all work is spread evenly over the stages.
    Stages(Vec<u32>),
    /// Every worker has the same load in all steps.
    Data,
}

impl Target {
    /// Whether it is a property of the job and not a fault.
    #[must_use]
    pub fn is_imbalance(&self) -> bool {
        matches!(self, Self::Stages(_) | Self::Data)
    }
}

/// Something to mend.
#[derive(Debug, Clone, PartialEq)]
pub struct Fault {
    /// Who or what.
    pub target: Target,
    /// First iteration in which it shows; `None` is the first of the window.
    pub first_iteration: Option<i64>,
    /// Last iteration in which it shows; `None` is the last of the window.
    pub last_iteration: Option<i64>,
    /// Its time over the peers' time where it is slow, for faults that have no peers to compare with.
    pub factor: Option<f64>,
}

impl Fault {
    /// A fault that shows in the whole window.
    #[must_use]
    pub fn lasting(target: Target) -> Self {
        Self {
            target,
            first_iteration: None,
            last_iteration: None,
            factor: None,
        }
    }
}

/// What mending one fault changes in a step; places are those in a [`super::work::Change`].
#[derive(Debug, Clone, Default)]
pub struct Delta {
    compute: Vec<(usize, f64)>,
    balance: Vec<(usize, f64)>,
    /// Of each microbatch and lane; empty where microbatches are left alone.
    load: Vec<f64>,
    loading: Vec<(usize, f64)>,
    transfer: Vec<(usize, f64)>,
    reduction: Vec<(usize, f64)>,
    gathering: Vec<(usize, f64)>,
    update: Vec<(usize, f64)>,
}

/// Works out what mending does, beside all faults that are known.
#[derive(Debug)]
pub struct Mender<'a> {
    work: &'a Work<'a>,
    /// Workers that compute or load slowly by some fault: no reference for anybody.
    marked: Vec<bool>,
    /// Level of each stage in each step, seconds of computing.
    levels: Vec<Vec<f64>>,
    /// Load of each lane in each step, 1 being usual.
    loads: Vec<Vec<f64>>,
}

impl<'a> Mender<'a> {
    /// Prepares for the faults of a job.
    #[must_use]
    pub fn new(work: &'a Work<'a>, faults: &[Fault]) -> Self {
        let mut marked = vec![false; work.workers.ranks.len()];
        for fault in faults {
            if let Target::Computing(ranks) | Target::Loading(ranks) = &fault.target {
                mark(work, ranks, &mut marked);
            }
        }
        let mut mender = Self {
            work,
            marked,
            levels: Vec::new(),
            loads: Vec::new(),
        };
        mender.levels = (0..work.steps()).map(|step| mender.stage_levels(step)).collect();
        mender.loads = (0..work.steps()).map(|step| mender.lane_loads(step)).collect();
        mender
    }

    /// Seconds that a worker computes in a step, loading left out.
    fn computing(&self, step: usize, worker: usize) -> f64 {
        let sums = &self.work.sums;
        (sums.forward[step][worker] + sums.backward[step][worker] - sums.loading[step][worker]).max(0.0)
    }

    fn stage_levels(&self, step: usize) -> Vec<f64> {
        let workers = self.work.workers;
        (0..workers.stages)
            .map(|stage| {
                let all = || (0..workers.lanes).map(move |lane| workers.at(stage, lane));
                let sound = all().filter(|&worker| !self.marked[worker]);
                middle(sound.map(|worker| self.computing(step, worker))).unwrap_or(f64::NAN)
            })
            .collect()
    }

    fn lane_loads(&self, step: usize) -> Vec<f64> {
        let workers = self.work.workers;
        (0..workers.lanes)
            .map(|lane| {
                if workers.stages == 1 {
                    return 1.0;
                }
                let sound = (0..workers.stages).filter(|&stage| !self.marked[workers.at(stage, lane)]);
                let ratios = sound
                    .map(|stage| self.computing(step, workers.at(stage, lane)) / self.levels[step][stage])
                    .filter(|ratio| ratio.is_finite());
                middle(ratios).unwrap_or(1.0)
            })
            .collect()
    }

    /// What mending a fault changes, step by step.
    #[must_use]
    pub fn deltas(&self, fault: &Fault) -> Vec<Delta> {
        let work = self.work;
        let iterations = &work.job.iterations;
        let shows: Vec<bool> = work
            .picked
            .iter()
            .map(|&step| {
                let iteration = iterations[step];
                fault.first_iteration.is_none_or(|first| first <= iteration)
                    && fault.last_iteration.is_none_or(|last| iteration <= last)
            })
            .collect();
        let mut deltas = vec![Delta::default(); work.steps()];
        match &fault.target {
            Target::Computing(ranks) => self.mend_computing(ranks, fault.factor, &shows, &mut deltas),
            Target::Loading(ranks) => self.mend_loading(ranks, fault.factor, &shows, &mut deltas),
            Target::Network(ranks) => {
                let places = places(work, ranks);
                let touches =
                    |worker: usize, _: usize| work.workers.ranks[worker].iter().any(|rank| places.contains(rank));
                self.mend_transfers(&|from, to| touches(from, to) || touches(to, from), &shows, &mut deltas);
                self.mend_collectives(&places, &shows, &mut deltas);
            }
            Target::Links(pairs) => {
                let holds = |worker: usize, rank: u32| {
                    let place = work.job.ranks.binary_search(&rank);
                    place.is_ok_and(|place| work.workers.ranks[worker].contains(&place))
                };
                let meets = |from: usize, to: usize| {
                    let between = |&(one, other): &(u32, u32)| {
                        holds(from, one) && holds(to, other) || holds(from, other) && holds(to, one)
                    };
                    pairs.iter().any(between)
                };
                self.mend_transfers(&meets, &shows, &mut deltas);
            }
            Target::Stages(stages) => self.level_stages(stages, &shows, &mut deltas),
            Target::Data => self.level_data(&mut deltas),
        }
        deltas
    }
}

/// Places of ranks in the job, sorted.
fn places(work: &Work<'_>, ranks: &[u32]) -> Vec<usize> {
    let mut places: Vec<usize> = ranks
        .iter()
        .filter_map(|rank| work.job.ranks.binary_search(rank).ok())
        .collect();
    places.sort_unstable();
    places
}

fn mark(work: &Work<'_>, ranks: &[u32], marks: &mut [bool]) {
    let places = places(work, ranks);
    for (mark, ranks) in marks.iter_mut().zip(&work.workers.ranks) {
        *mark |= ranks.iter().any(|rank| places.binary_search(rank).is_ok());
    }
}
