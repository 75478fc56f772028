//! Collectives by their groups: who comes last waits least, so that the shortest duration of a group's members is the
//! collective itself.
//!
//! That holds where the group is the right one and whole: the member that came last must be among those that are looked
//! at. [`Communicator`] gives the groups; those that lack members are left out. Where Megatron-LM puts a barrier before
//! each timer (`barrier_with_L1_time`, its default) no duration holds waiting: there the members of every group agree,
//! and finer groups can be told apart.

use std::collections::BTreeSet;

use super::thresholds::{AGREE, AGREE_SHARE, LEAST_PRESENT, TELLING_FACTOR};
use crate::contract::timers::{BACKWARD_GATHER_MODEL_PARAMS, COLLECTIVES, OTHER_COLLECTIVES, PARAMS_ALL_GATHER};
use crate::job::{Communicator, Group, Job, TimerTable, Topology};
use crate::stats::median;

/// Each group's collective in each iteration.
#[derive(Debug, Default)]
pub struct Collectives {
    /// The timer; none where the job has none, or no group of several ranks.
    pub timer: Option<&'static str>,
    /// Whether no duration holds waiting.
    pub begin_together: bool,
    /// The kind of the groups.
    pub communicator: Option<Communicator>,
    /// Pipeline stage of each group; `None` where it spans several.
    pub stages: Vec<Option<u32>>,
    /// Ranks (positions) of each group, ascending.
    pub members: Vec<Vec<usize>>,
    /// Groups x iterations, seconds; NaN without a value.
    pub seconds: Vec<Vec<f64>>,
    /// Group of each rank.
    group_of: Vec<Option<usize>>,
}

impl Collectives {
    /// What tells the ends of a link apart: the lanes of each stage by the first data-parallel collective that the job
    /// has. The ends are known to be suspect already, and ranks that are context-parallel peers come at one time, so that
    /// lanes count here also where they may be such. `O(ranks x iterations)`.
    #[must_use]
    pub fn of(job: &Job) -> Self {
        let lanes = job.topology.groups(Communicator::DataParallel, true);
        let of_timer = |name: &'static str| Self::of_timer(job, name, Communicator::DataParallel, &lanes);
        COLLECTIVES.into_iter().find_map(of_timer).unwrap_or_default()
    }

    /// Every collective by groups whose members surely wait for each other, so that a slow one can be told by itself.
    #[must_use]
    pub fn all(job: &Job) -> Vec<Self> {
        let ran = |name: &str| job.timer(name).is_some_and(has_run);
        let distributed = ran(PARAMS_ALL_GATHER) || ran(BACKWARD_GATHER_MODEL_PARAMS);
        let mut found: Vec<Self> = Vec::new();
        for name in COLLECTIVES.into_iter().chain(OTHER_COLLECTIVES) {
            let Some(communicator) = Communicator::of_timer(name, distributed) else {
                continue;
            };
            let whole = |communicator, fine| -> Vec<Group> {
                let groups = job.topology.groups(communicator, fine);
                groups.into_iter().filter(|group| group.complete).collect()
            };
            let groups = whole(communicator, false);
            let surely = Self::of_timer(job, name, communicator, &groups);
            if communicator != Communicator::DataParallel {
                found.extend(surely);
                continue;
            }
            // Without waiting finer groups can be told: those that reduce the experts' gradients, else the lanes.
            let experts = job.topology.sizes.get("ep").is_some_and(|&experts| experts > 1);
            let kind = if experts {
                Communicator::ExpertDataParallel
            } else {
                communicator
            };
            let fine = Self::of_timer(job, name, kind, &whole(kind, true));
            let told = fine.filter(|fine| fine.begin_together).or(surely);
            // The first timer is a reduction: barriers are before all of them or before none.
            let barriers = found.first().is_some_and(|first| first.begin_together);
            let gathers = name == PARAMS_ALL_GATHER || name == BACKWARD_GATHER_MODEL_PARAMS;
            let of_parts = || Self::of_instances(job, name, &groups);
            let parted = told
                .as_ref()
                .filter(|told| gathers && barriers && !told.begin_together)
                .and_then(|_| of_parts());
            found.extend(parted.or(told));
        }
        found
    }

    /// The gathering inside each of several distributed-optimizer instances: the fewest parts of the groups whose members
    /// agree, where a barrier takes the waiting out and the members of the whole do not.
    fn of_instances(job: &Job, name: &'static str, groups: &[Group]) -> Option<Self> {
        let least = groups.iter().map(|group| group.members.len()).min()?;
        let counts = (1..usize::BITS)
            .map(|power| 1 << power)
            .take_while(|count| 2 * count <= least);
        counts
            .filter_map(|count| {
                let parts: Vec<Group> = groups
                    .iter()
                    .flat_map(|group| Topology::instances(group, count))
                    .collect();
                Self::of_timer(job, name, Communicator::DataParallel, &parts)
            })
            .find(|parts| parts.begin_together)
    }

    /// The groups' collectives by one timer; nothing where it did not run or no group has several ranks.
    fn of_timer(job: &Job, name: &'static str, communicator: Communicator, groups: &[Group]) -> Option<Self> {
        let timer = job.timer(name).filter(|timer| has_run(timer))?;
        if groups.iter().all(|group| group.members.len() < 2) {
            return None;
        }
        let steps = job.iterations.len();
        let mut group_of = vec![None; job.ranks.len()];
        let mut agree = vec![true; steps];
        let mut seconds = Vec::with_capacity(groups.len());
        for (place, group) in groups.iter().enumerate() {
            group.members.iter().for_each(|&rank| group_of[rank] = Some(place));
            let mut row = vec![f64::NAN; steps];
            for (step, cell) in row.iter_mut().enumerate() {
                let (present, shortest, longest) = extremes(timer, &group.members, step);
                if present as f64 >= LEAST_PRESENT.get() * group.members.len() as f64 {
                    *cell = shortest;
                }
                agree[step] &= present < 2 || longest <= AGREE.get() * shortest;
            }
            seconds.push(row);
        }
        let agreeing = agree.iter().filter(|&&agree| agree).count();
        Some(Self {
            timer: Some(name),
            begin_together: agreeing as f64 >= AGREE_SHARE.get() * steps as f64,
            communicator: Some(communicator),
            stages: groups.iter().map(|group| group.stage).collect(),
            members: groups.iter().map(|group| group.members.clone()).collect(),
            seconds,
            group_of,
        })
    }

    /// Seconds that the collectives of the groups of some ranks take longer than those of the stage's other groups in
    /// the given iterations, all timers together; 0 where none stands out.
    pub(super) fn extra_seconds(job: &Job, ranks: &BTreeSet<usize>, steps: &[bool]) -> f64 {
        let kind = Communicator::DataParallel;
        let lanes = job.topology.groups(kind, true);
        let timers = COLLECTIVES
            .into_iter()
            .filter_map(|name| Self::of_timer(job, name, kind, &lanes));
        timers.map(|collectives| collectives.extra(ranks, steps)).sum()
    }

    fn extra(&self, ranks: &BTreeSet<usize>, steps: &[bool]) -> f64 {
        let level = |group: usize| {
            let row = self.seconds[group].iter().zip(steps);
            median(row.filter(|(_, slow)| **slow).map(|(seconds, _)| *seconds))
        };
        let met: BTreeSet<usize> = ranks.iter().filter_map(|&rank| self.group_of[rank]).collect();
        let longer = |&group: &usize| {
            let all = 0..self.members.len();
            let others = |same_stage: bool| {
                let fits = |other: &usize| !same_stage || self.stages[*other] == self.stages[group];
                median(all.clone().filter(|other| !met.contains(other)).filter(fits).map(level))
            };
            let of_stage = others(true);
            let usual = if of_stage.is_finite() { of_stage } else { others(false) };
            let taken = level(group);
            if taken > TELLING_FACTOR.get() * usual {
                taken - usual
            } else {
                0.0
            }
        };
        met.iter().map(longer).fold(0.0, f64::max)
    }

    /// Which of several ends (ranks) has the slow collective in the given iterations, and how many times the others' it
    /// takes; `None` where none stands out.
    pub(super) fn tell(&self, ends: &[&[usize]], steps: &[bool]) -> Option<(usize, f64)> {
        self.timer?;
        let level = |group: usize| {
            let row = self.seconds[group].iter().zip(steps);
            median(row.filter(|(_, slow)| **slow).map(|(seconds, _)| seconds.ln()))
        };
        let groups_of = |ranks: &[usize]| -> Vec<usize> {
            let mut groups: Vec<usize> = ranks.iter().filter_map(|&rank| self.group_of[rank]).collect();
            groups.sort_unstable();
            groups.dedup();
            groups
        };
        let groups: Vec<Vec<usize>> = ends.iter().map(|ranks| groups_of(ranks)).collect();
        let levels: Vec<f64> = groups
            .iter()
            .map(|groups| median(groups.iter().map(|&group| level(group))))
            .collect();
        let accused: Vec<usize> = groups.concat();
        let others = (0..self.members.len()).filter(|group| !accused.contains(group));
        let others = median(others.map(level));
        let least = levels.iter().copied().fold(f64::INFINITY, f64::min);
        let usual = if others.is_finite() { others } else { least };
        let excess: Vec<f64> = levels.iter().map(|level| level - usual).collect();
        let best = (0..ends.len()).max_by(|&a, &b| excess[a].total_cmp(&excess[b]))?;
        let clear = |end: usize| end == best || (excess[end] < excess[best] / 2.0 && groups[end] != groups[best]);
        let told = excess[best] > TELLING_FACTOR.get().ln() && (0..ends.len()).all(clear);
        told.then(|| (best, excess[best].exp()))
    }

    /// Whether most groups of a stage take longer than those of the other stages: a slow network at that stage.
    pub(super) fn is_slow_stage(&self, stage: u32) -> bool {
        let level = |group: usize| median(self.seconds[group].iter().copied());
        let of = |wanted: bool| {
            let groups = (0..self.members.len()).filter(|&group| (self.stages[group] == Some(stage)) == wanted);
            median(groups.map(level))
        };
        of(true) > TELLING_FACTOR.get() * of(false)
    }
}

fn has_run(timer: &TimerTable) -> bool {
    timer.seconds.iter().any(|&seconds| seconds > 0.0)
}

/// Members with a duration in the iteration, the shortest and the longest; 0 says that the timer did not run.
fn extremes(timer: &TimerTable, members: &[usize], step: usize) -> (usize, f64, f64) {
    let ran = members.iter().map(|&rank| timer.seconds[(rank, step)]);
    let ran = ran.filter(|&seconds| seconds > 0.0);
    ran.fold((0, f64::NAN, f64::NAN), |(count, shortest, longest), seconds| {
        (count + 1, seconds.min(shortest), seconds.max(longest))
    })
}
