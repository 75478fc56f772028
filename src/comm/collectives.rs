//! The collectives of data-parallel groups: who comes last waits least, so that the shortest duration of a group's members
//! is the collective itself.

use std::collections::{BTreeMap, BTreeSet};

use crate::contract::timers::COLLECTIVES;
use crate::job::Job;
use crate::stats::median;

/// Factor over the other groups from which a collective tells an end.
const TELLING_FACTOR: f64 = 1.5;

/// Each group's collective in each iteration.
#[derive(Debug, Default)]
pub struct Collectives {
    /// The timer; none where the job has none, or no group of several ranks.
    pub timer: Option<&'static str>,
    /// Pipeline stage of each group.
    pub stages: Vec<u32>,
    /// Ranks (positions) of each group, ascending.
    pub members: Vec<Vec<usize>>,
    /// Groups x iterations, seconds; NaN without a value.
    pub seconds: Vec<Vec<f64>>,
    group_of: Vec<usize>,
}

impl Collectives {
    /// Groups the ranks by stage and number in the stage. `O(ranks x iterations)`.
    #[must_use]
    pub fn of(job: &Job) -> Self {
        let of_timer = |name: &'static str| Self::of_timer(job, name);
        COLLECTIVES.into_iter().find_map(of_timer).unwrap_or_default()
    }

    /// The groups' collectives by one timer; nothing where it did not run or no group has several ranks.
    fn of_timer(job: &Job, name: &'static str) -> Option<Self> {
        let timer = job
            .timer(name)
            .filter(|timer| timer.seconds.iter().any(|&seconds| seconds > 0.0))?;
        let mut groups = BTreeMap::<(u32, u32), Vec<usize>>::new();
        for (rank, place) in job.topology.places.iter().enumerate() {
            groups.entry((place.stage, place.member)).or_default().push(rank);
        }
        if groups.values().all(|members| members.len() < 2) {
            return None;
        }
        let shortest = |members: &Vec<usize>, step: usize| {
            let seconds = members.iter().map(|&rank| timer.seconds[(rank, step)]);
            // 0 says that the timer did not run.
            let ran = seconds.filter(|&seconds| seconds > 0.0);
            ran.fold(f64::NAN, f64::min)
        };
        let row = |members: &Vec<usize>| (0..job.iterations.len()).map(|step| shortest(members, step)).collect();
        let mut group_of = vec![0; job.ranks.len()];
        for (group, members) in groups.values().enumerate() {
            members.iter().for_each(|&rank| group_of[rank] = group);
        }
        Some(Self {
            timer: Some(name),
            stages: groups.keys().map(|(stage, _)| *stage).collect(),
            seconds: groups.values().map(row).collect(),
            members: groups.into_values().collect(),
            group_of,
        })
    }

    /// Seconds that the collectives of the groups of some ranks take longer than those of the stage's other groups in
    /// the given iterations, all timers together; 0 where none stands out.
    pub(super) fn extra_seconds(job: &Job, ranks: &BTreeSet<usize>, steps: &[bool]) -> f64 {
        let timers = COLLECTIVES.into_iter().filter_map(|name| Self::of_timer(job, name));
        timers.map(|collectives| collectives.extra(ranks, steps)).sum()
    }

    fn extra(&self, ranks: &BTreeSet<usize>, steps: &[bool]) -> f64 {
        let level = |group: usize| {
            let row = self.seconds[group].iter().zip(steps);
            median(row.filter(|(_, slow)| **slow).map(|(seconds, _)| *seconds))
        };
        let met: BTreeSet<usize> = ranks.iter().map(|&rank| self.group_of[rank]).collect();
        let longer = |&group: &usize| {
            let all = 0..self.members.len();
            let others = |same_stage: bool| {
                let fits = |other: &usize| !same_stage || self.stages[*other] == self.stages[group];
                median(all.clone().filter(|other| !met.contains(other)).filter(fits).map(level))
            };
            let of_stage = others(true);
            let usual = if of_stage.is_finite() { of_stage } else { others(false) };
            let taken = level(group);
            if taken > TELLING_FACTOR * usual {
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
            let mut groups: Vec<usize> = ranks.iter().map(|&rank| self.group_of[rank]).collect();
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
        let told = excess[best] > TELLING_FACTOR.ln() && (0..ends.len()).all(clear);
        told.then(|| (best, excess[best].exp()))
    }
}
