//! How long transfers take by themselves.
//!
//! A send and its receive end together, and whichever is posted earlier waits for the other: the shorter of both is at
//! most the transfer, and no clock is needed. The ranks of a worker wait for each other after it: the longest of theirs
//! counts.

use super::collectives::ran;
use super::schedule::{End, Schedule};
use super::shape::Workers;
use crate::contract::Timer;
use crate::job::{CallTable, Job};
use crate::whatif::middle;

/// Calls of each timer by its number.
pub struct Calls<'a>(Vec<Option<&'a CallTable>>);

impl<'a> Calls<'a> {
    pub fn new(job: &'a Job) -> Self {
        let table = |timer: Timer| job.calls.iter().find(|table| table.name == timer.name());
        Self(Timer::ALL.into_iter().map(table).collect())
    }

    pub fn of(&self, timer: Timer, rank: usize, step: usize) -> &'a [f64] {
        self.0[timer as usize].map_or(&[], |table| table.of(rank, step))
    }
}

/// The transfers of a step from its calls, `[transfer][lane]`; NaN where an end is lost.
pub fn from_calls(calls: &Calls<'_>, schedule: &Schedule, workers: &Workers, step: usize) -> Vec<f64> {
    let of = |end: &End, rank: usize| {
        let calls = calls.of(end.timer, rank, step);
        calls.get(end.call).copied().unwrap_or(f64::NAN)
    };
    let mut seconds = Vec::with_capacity(schedule.transfers.len() * workers.lanes);
    for transfer in &schedule.transfers {
        for lane in 0..workers.lanes {
            let from = &workers.ranks[workers.at(transfer.from.stage, lane)];
            let to = &workers.ranks[workers.at(transfer.to.stage, lane)];
            let members = from.iter().zip(to).map(|(&from, &to)| {
                // NaN of one end leaves the other, which may have waited: better than nothing.
                of(&transfer.from, from).min(of(&transfer.to, to))
            });
            seconds.push(members.fold(f64::NAN, f64::max));
        }
    }
    seconds
}

/// The shortest usual call around transfers of each lane in a step; infinite where none is known.
///
/// In an interleaved schedule nearly every call waits for both neighbours, so that both ends of a transfer may have waited
/// for somebody else. But somebody in the pipeline comes last all the time, and waits for nobody.
pub fn shortest_usual(
    job: &Job,
    calls: Option<&Calls<'_>>,
    schedule: &Schedule,
    workers: &Workers,
    step: usize,
) -> Vec<f64> {
    let counts = schedule.calls_of_timers();
    let usual = |stage: usize, rank: usize| {
        let timers = Timer::ALL
            .into_iter()
            .filter(|timer| counts.contains_key(&(stage, *timer as usize)));
        match calls {
            Some(calls) => {
                let calls = timers.flat_map(|timer| calls.of(timer, rank, step));
                middle(calls.copied().filter(|seconds| !seconds.is_nan()))
            }
            None => {
                let sums = timers.filter_map(|timer| {
                    let seconds = ran(job.timer(timer.name()), rank, step)?;
                    Some((seconds, counts[&(stage, timer as usize)]))
                });
                let (seconds, calls) = sums.fold((0.0, 0), |all, one| (all.0 + one.0, all.1 + one.1));
                (calls > 0).then(|| seconds / calls as f64)
            }
        }
    };
    let of_lane = |lane: usize| {
        let ranks = (0..workers.stages).flat_map(|stage| {
            workers.ranks[workers.at(stage, lane)]
                .iter()
                .map(move |&rank| (stage, rank))
        });
        ranks
            .filter_map(|(stage, rank)| usual(stage, rank))
            .fold(f64::INFINITY, f64::min)
    };
    (0..workers.lanes).map(of_lane).collect()
}

/// The mean transfer of a step on each way from the sums of its timers, `[way][lane]`; NaN where none is known.
pub fn from_sums(job: &Job, schedule: &Schedule, workers: &Workers, step: usize) -> Vec<f64> {
    let timers: Vec<_> = Timer::ALL.into_iter().map(|timer| job.timer(timer.name())).collect();
    // Timers that carry a way on each of its ends, with the calls of a step.
    let mut ends: Vec<[Vec<End>; 2]> = vec![[Vec::new(), Vec::new()]; schedule.ways];
    let counts = schedule.calls_of_timers();
    for transfer in &schedule.transfers {
        for (end, known) in [transfer.from, transfer.to].iter().zip(&mut ends[transfer.way]) {
            if !known.iter().any(|known| known.timer == end.timer) {
                known.push(*end);
            }
        }
    }
    let mean = |end: &End, rank: usize| {
        let calls = counts.get(&(end.stage, end.timer as usize)).copied().unwrap_or(1);
        ran(timers[end.timer as usize], rank, step).map(|seconds| seconds / calls as f64)
    };
    let mut seconds = Vec::with_capacity(schedule.ways * workers.lanes);
    for ends in &ends {
        for lane in 0..workers.lanes {
            let [from, to] = [0, 1].map(|side: usize| {
                let stage = ends[side].first().map_or(0, |end| end.stage);
                &workers.ranks[workers.at(stage, lane)]
            });
            let members = from.iter().zip(to).map(|(&from, &to)| {
                let of_side = |side: usize, rank: usize| ends[side].iter().filter_map(move |end| mean(end, rank));
                of_side(0, from).chain(of_side(1, to)).fold(f64::NAN, f64::min)
            });
            seconds.push(members.fold(f64::NAN, f64::max));
        }
    }
    seconds
}
