//! What is mended, and what the work of each step is then.
//!
//! A mended worker computes like its peers: its passes are divided by its own factor, which is its time over that of the
//! same stage in other pipelines, and over the load of its own pipeline in that step (long sequences hit all stages of a
//! pipeline alike). The factor is the median of eleven neighbouring slow steps, so that noise stays as it was.

use super::collectives::Collective;
use super::work::{Change, Work};
use crate::whatif::middle;

/// Steps on either side over which a factor is taken.
const NEIGHBOURS: usize = 5;
/// A fault that shows in half of its steps by this share of its strength is there all the time.
const LASTING: f64 = 0.6;
/// A step is slow from this share of the fault's strength.
const SLOW: f64 = 0.5;

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

/// What mending one fault changes in a step; places are those in a [`Change`].
#[derive(Debug, Clone, Default)]
pub struct Delta {
    compute: Vec<(usize, f64)>,
    balance: Vec<(usize, f64)>,
    loading: Vec<(usize, f64)>,
    transfer: Vec<(usize, f64)>,
    reduction: Vec<(usize, f64)>,
    gathering: Vec<(usize, f64)>,
    update: Vec<(usize, f64)>,
}

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

    fn mend_computing(&self, ranks: &[u32], factor: Option<f64>, shows: &[bool], deltas: &mut [Delta]) {
        let work = self.work;
        let mut slow = vec![false; self.marked.len()];
        mark(work, ranks, &mut slow);
        let places = places(work, ranks);
        for worker in (0..slow.len()).filter(|&worker| slow[worker]) {
            let ratios = self.own_ratios(worker, shows, factor);
            for (step, slower) in slow_steps(&ratios, shows, factor) {
                deltas[step].compute.push((worker, 1.0 / slower));
                let mended = work.workers.ranks[worker].iter().filter(|rank| places.contains(rank));
                deltas[step].update.extend(mended.map(|&rank| (rank, 1.0 / slower)));
            }
        }
    }

    /// A worker's time over that of its peers in each step.
    fn own_ratios(&self, worker: usize, shows: &[bool], factor: Option<f64>) -> Vec<f64> {
        let lanes = self.work.workers.lanes;
        let (stage, lane) = (worker / lanes, worker % lanes);
        let of = |step: usize, level: f64| self.computing(step, worker) / (level * self.loads[step][lane]);
        if self.levels.iter().all(|levels| levels[stage].is_finite()) {
            return (0..shows.len())
                .map(|step| of(step, self.levels[step][stage]))
                .collect();
        }
        // No sound peer: its own time outside of the fault, by that of the other stages where there are some.
        let elsewhere = |step: usize| {
            let others = self.levels[step].iter().copied().filter(|level| level.is_finite());
            middle(others).unwrap_or(1.0)
        };
        let before = (0..shows.len()).filter(|&step| !shows[step]);
        let usual = middle(before.map(|step| of(step, elsewhere(step))));
        match (usual, factor) {
            (Some(usual), _) => (0..shows.len()).map(|step| of(step, elsewhere(step)) / usual).collect(),
            (None, factor) => vec![factor.unwrap_or(1.0); shows.len()],
        }
    }

    fn mend_loading(&self, ranks: &[u32], factor: Option<f64>, shows: &[bool], deltas: &mut [Delta]) {
        let work = self.work;
        let workers = work.workers;
        let mut slow = vec![false; self.marked.len()];
        mark(work, ranks, &mut slow);
        let passes = work.schedule.loading_passes as f64;
        for worker in (0..slow.len()).filter(|&worker| slow[worker]) {
            let stage = worker / workers.lanes;
            for step in (0..shows.len()).filter(|&step| shows[step]) {
                let loading = &work.sums.loading[step];
                let sound = (0..workers.lanes)
                    .map(|lane| workers.at(stage, lane))
                    .filter(|&peer| !slow[peer]);
                let usual = middle(sound.map(|peer| loading[peer]))
                    .or_else(|| Some(loading[worker] / factor.filter(|factor| *factor > 1.0)?))
                    .unwrap_or(loading[worker]);
                let extra = (loading[worker] - usual).min(work.sums.forward[step][worker]);
                if extra > 0.0 {
                    deltas[step].loading.push((worker, extra / passes));
                }
            }
        }
    }

    /// `meets` tells from the workers of its two ends whether a transfer is mended.
    fn mend_transfers(&self, meets: &dyn Fn(usize, usize) -> bool, shows: &[bool], deltas: &mut [Delta]) {
        let work = self.work;
        let lanes = work.workers.lanes;
        let mut ends = vec![None; work.schedule.ways];
        for transfer in &work.schedule.transfers {
            ends[transfer.way] = Some((transfer.from.stage, transfer.to.stage));
        }
        let mended: Vec<bool> = (0..ends.len() * lanes)
            .map(|place| {
                let (way, lane) = (place / lanes, place % lanes);
                ends[way].is_some_and(|(from, to)| meets(work.workers.at(from, lane), work.workers.at(to, lane)))
            })
            .collect();
        let usual_of = |place: usize, step: usize| middle(work.way(place / lanes, place % lanes, step));
        let over = |places: &[usize], steps: &dyn Fn(usize) -> bool| {
            let steps = (0..shows.len()).filter(|&step| steps(step));
            middle(steps.flat_map(|step| places.iter().filter_map(move |&place| usual_of(place, step))))
        };
        let sound: Vec<usize> = (0..mended.len()).filter(|&place| !mended[place]).collect();
        let anywhere = over(&sound, &|step| shows[step]);
        for place in (0..mended.len()).filter(|&place| mended[place]) {
            let way = place / lanes;
            let peers: Vec<usize> = sound.iter().copied().filter(|peer| peer / lanes == way).collect();
            let usual = over(&peers, &|step| shows[step])
                .or(anywhere)
                .or_else(|| over(&[place], &|step| !shows[step]));
            let Some(usual) = usual else { continue };
            for step in (0..shows.len()).filter(|&step| shows[step]) {
                if let Some(own) = usual_of(place, step).filter(|own| *own > usual) {
                    deltas[step].transfer.push((place, usual / own));
                }
            }
        }
    }

    /// Collectives of groups with slow members take as long as those of the other groups.
    fn mend_collectives(&self, places: &[usize], shows: &[bool], deltas: &mut [Delta]) {
        let work = self.work;
        let members = work.behind.reduction.members;
        let slow: Vec<bool> = (0..work.workers.stages * members)
            .map(|group| {
                let lanes = 0..work.workers.lanes;
                let ranks = lanes
                    .filter_map(|lane| work.workers.ranks[work.workers.at(group / members, lane)].get(group % members));
                ranks.into_iter().any(|rank| places.contains(rank))
            })
            .collect();
        for (collective, gathers) in [(&work.behind.reduction, false), (&work.behind.gathering, true)] {
            let of = |group: usize, step: usize| collective.seconds[group][work.picked[step]];
            for step in (0..shows.len()).filter(|&step| shows[step]) {
                let sound = (0..slow.len())
                    .filter(|&group| !slow[group])
                    .map(|group| of(group, step));
                let usual = middle(sound.filter(|seconds| !seconds.is_nan()));
                for group in (0..slow.len()).filter(|&group| slow[group]) {
                    let outside = || {
                        let steps = (0..shows.len()).filter(|&step| !shows[step]);
                        middle(steps.map(|step| of(group, step)).filter(|seconds| !seconds.is_nan()))
                    };
                    if let Some(usual) = usual.or_else(outside).filter(|usual| *usual < of(group, step)) {
                        let list = if gathers {
                            &mut deltas[step].gathering
                        } else {
                            &mut deltas[step].reduction
                        };
                        list.push((group, usual));
                    }
                }
            }
        }
    }

    fn level_stages(&self, stages: &[u32], shows: &[bool], deltas: &mut [Delta]) {
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
    fn level_data(&self, deltas: &mut [Delta]) {
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

/// The steps in which a worker is slow, each with the factor by which it is around then.
fn slow_steps(ratios: &[f64], shows: &[bool], factor: Option<f64>) -> Vec<(usize, f64)> {
    let shown: Vec<usize> = (0..ratios.len())
        .filter(|&step| shows[step] && ratios[step].is_finite())
        .collect();
    let Some(usual) = middle(shown.iter().map(|&step| ratios[step])) else {
        return Vec::new();
    };
    let strength = factor.map_or(usual, |factor| factor.max(1.0)) - 1.0;
    let slow: Vec<usize> = if usual - 1.0 >= LASTING * strength {
        shown
    } else {
        let slow = |step: &usize| ratios[*step] - 1.0 >= SLOW * strength;
        shown.into_iter().filter(slow).collect()
    };
    (0..slow.len())
        .filter_map(|place| {
            let around = &slow[place.saturating_sub(NEIGHBOURS)..slow.len().min(place + NEIGHBOURS + 1)];
            let slower = middle(around.iter().map(|&step| ratios[step]))?;
            (slower > 1.0).then_some((slow[place], slower))
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_fault_that_comes_and_goes_is_mended_where_it_is() {
        let ratios: Vec<f64> = (0..40).map(|step| if step % 2 == 0 { 1.5 } else { 1.01 }).collect();
        let shows = vec![true; 40];
        let slow = slow_steps(&ratios, &shows, Some(1.5));
        assert!(slow.iter().all(|&(step, factor)| step % 2 == 0 && factor == 1.5));
        assert_eq!(slow.len(), 20);
    }

    #[test]
    fn an_unlucky_step_of_a_lasting_fault_keeps_its_bad_luck() {
        let mut ratios = vec![1.2; 30];
        ratios[7] = 2.0;
        let slow = slow_steps(&ratios, &[true; 30], None);
        assert_eq!(slow.len(), 30);
        assert!(slow.iter().all(|&(_, factor)| factor == 1.2));
        let fast = slow_steps(&[0.9; 30], &[true; 30], Some(1.2));
        assert!(fast.is_empty());
    }
}
