//! Interleaved schedules: the transfers of a step that are not mixed with others.
//!
//! *Forward*: every rank but those of the first stage begins a step with one plain `forward-recv`, which ends when the
//! first activations arrive. What it lasts longer than those of the stage before (whose ranks begin to compute when the
//! last of them has its activations) is one computing and one transfer, so that the pipelines beside each other tell
//! the transfer: a slow link shows at its own stage and at no other. What the computing of the rank above takes longer
//! than its peers' in that iteration is taken out.
//!
//! *Backward*: the last `backward-send-backward-recv` of a step on every stage but the first sends the last gradients
//! and receives nothing; the stage before receives them in its last call but one. The shorter of the two is at most the
//! transfer, held against the pipelines beside, for a heavy stage lets all of them wait.

use std::collections::BTreeMap;

use rayon::prelude::*;

use super::flows::{Comparison, SlowFlow, logs};
use super::thresholds::{FEWEST, LEAST_ARRIVAL, STEADY};
use crate::contract::timers::{BACKWARD_SEND_BACKWARD_RECV, FORWARD_COMPUTE, FORWARD_RECV};
use crate::job::{CallTable, Job, TimerTable};
use crate::stats::{low_median, median};
use crate::verdict::Persistence;

/// The call in which the first activations arrive.
const FIRST: &str = FORWARD_RECV;
/// The timer of the computing before it.
const COMPUTING: &str = FORWARD_COMPUTE;
/// The calls of which the last sends the last gradients.
const LAST: &str = BACKWARD_SEND_BACKWARD_RECV;
/// A link that is slow in one direction.
#[derive(Debug, Clone)]
pub(super) struct SlowLink {
    /// Rank (position) that sends.
    pub sender: usize,
    /// Rank (position) that receives.
    pub receiver: usize,
    /// By how much, and when.
    pub slow: SlowFlow,
}

/// A transfer by iteration, seconds; NaN where it can't be told.
struct Transfer {
    lane: usize,
    sender: usize,
    receiver: usize,
    seconds: Vec<f64>,
}

impl Transfer {
    /// Notes an iteration's time; what can't be told stays NaN.
    fn set(&mut self, step: usize, seconds: f64, usual: f64) {
        if seconds.is_finite() {
            self.seconds[step] = seconds.max(LEAST_ARRIVAL.get() * usual);
        }
    }
}

/// The slow links of each lane (ranks by stage); `usual` is the usual transfer in seconds. `O(ranks x iterations)`.
pub(super) fn slow_links(job: &Job, lanes: &[Vec<usize>], usual: f64, persistence: &Persistence) -> Vec<Vec<SlowLink>> {
    let mut found: Vec<Vec<SlowLink>> = vec![Vec::new(); lanes.len()];
    for transfers in [first_transfers(job, lanes, usual), last_transfers(job, lanes, usual)] {
        let rows: Vec<Vec<f64>> = transfers.par_iter().map(|transfer| logs(&transfer.seconds)).collect();
        let rows: Vec<&[f64]> = rows.iter().map(Vec::as_slice).collect();
        let known = rows.iter().filter(|row| row.iter().any(|log| log.is_finite())).count();
        let Some(comparison) = Comparison::new(&rows).filter(|_| known >= FEWEST.get()) else {
            continue;
        };
        for (place, transfer) in transfers.iter().enumerate() {
            if let Some(slow) = comparison.slow(place, persistence).filter(is_steady) {
                found[transfer.lane].push(SlowLink {
                    sender: transfer.sender,
                    receiver: transfer.receiver,
                    slow,
                });
            }
        }
    }
    found
}

/// Whether nearly every step is slow from the first slow one to the last: computing that took longer by chance does not
/// come in every step, a slow link does.
fn is_steady(slow: &SlowFlow) -> bool {
    let Some((first, last)) = slow.steps.ends() else {
        return false;
    };
    slow.steps.count() as f64 >= STEADY.get() * (last + 1 - first) as f64
}

fn last_transfers(job: &Job, lanes: &[Vec<usize>], usual: f64) -> Vec<Transfer> {
    let Some(calls) = job.calls.iter().find(|table| table.name == LAST) else {
        return Vec::new();
    };
    let from_end = |rank: usize, step: usize, place: usize| {
        let calls = calls.of(rank, step);
        let at = calls.len().checked_sub(place);
        at.map_or(f64::NAN, |at| calls[at])
    };
    let taken = |transfer: &Transfer, step: usize| {
        let (sent, received) = (from_end(transfer.sender, step, 1), from_end(transfer.receiver, step, 2));
        if sent > received { received } else { sent }
    };
    between_stages(
        job,
        lanes,
        |stage| [stage, stage - 1],
        |transfers| {
            for step in 0..job.iterations.len() {
                let taken: Vec<f64> = transfers.iter().map(|transfer| taken(transfer, step)).collect();
                let usually_taken = low_median(taken.iter().copied());
                for (transfer, taken) in transfers.iter_mut().zip(taken) {
                    transfer.set(step, usual + taken - usually_taken, usual);
                }
            }
        },
    )
}

/// A transfer of each lane between each stage and the one before; `ends` gives the sender's and the receiver's stage,
/// `fill` the times of all lanes between the same two.
fn between_stages(
    job: &Job,
    lanes: &[Vec<usize>],
    ends: impl Fn(usize) -> [usize; 2],
    fill: impl Fn(&mut [Transfer]),
) -> Vec<Transfer> {
    let stages = lanes.iter().map(Vec::len).max().unwrap_or(0);
    let of_stage = |stage: usize| {
        let [sender, receiver] = ends(stage);
        let complete = lanes.iter().enumerate().filter(|(_, ranks)| stage < ranks.len());
        let transfer = |(lane, ranks): (usize, &Vec<usize>)| Transfer {
            lane,
            sender: ranks[sender],
            receiver: ranks[receiver],
            seconds: vec![f64::NAN; job.iterations.len()],
        };
        let mut transfers: Vec<Transfer> = complete.map(transfer).collect();
        fill(&mut transfers);
        transfers
    };
    (1..stages).flat_map(of_stage).collect()
}

fn first_transfers(job: &Job, lanes: &[Vec<usize>], usual: f64) -> Vec<Transfer> {
    let Some(calls) = job.calls.iter().find(|table| table.name == FIRST) else {
        return Vec::new();
    };
    let arrivals = Arrivals::new(job, calls);
    let computing = job.timer(COMPUTING);
    between_stages(
        job,
        lanes,
        |stage| [stage - 1, stage],
        |transfers| arrivals.fill(transfers, computing, usual),
    )
}

/// When the first activations come.
struct Arrivals<'a> {
    calls: &'a CallTable,
    /// Ranks of one stage and pipeline: they wait for each other before they compute.
    units: Vec<Vec<usize>>,
    unit_of: Vec<usize>,
    stages: Vec<u32>,
}

impl<'a> Arrivals<'a> {
    fn new(job: &Job, calls: &'a CallTable) -> Self {
        let mut units = BTreeMap::<(u32, u32), Vec<usize>>::new();
        for (rank, place) in job.topology.places.iter().enumerate() {
            units.entry((place.pipeline, place.stage)).or_default().push(rank);
        }
        let units: Vec<Vec<usize>> = units.into_values().collect();
        let mut unit_of = vec![0; job.ranks.len()];
        for (unit, ranks) in units.iter().enumerate() {
            ranks.iter().for_each(|&rank| unit_of[rank] = unit);
        }
        Self {
            calls,
            units,
            unit_of,
            stages: job.topology.places.iter().map(|place| place.stage).collect(),
        }
    }

    fn of(&self, rank: usize, step: usize) -> f64 {
        self.calls.of(rank, step).first().copied().unwrap_or(f64::NAN)
    }

    /// When a rank's unit begins to compute, seconds from the beginning of the step; the first stage at once.
    fn begins(&self, rank: usize, step: usize) -> f64 {
        if self.stages[rank] == 0 {
            return 0.0;
        }
        let unit = &self.units[self.unit_of[rank]];
        unit.iter()
            .map(|&member| self.of(member, step))
            .fold(f64::NAN, f64::max)
    }

    /// Fills in the transfers between two stages.
    fn fill(&self, transfers: &mut [Transfer], computing: Option<&TimerTable>, usual: f64) {
        let steps = transfers.first().map_or(0, |transfer| transfer.seconds.len());
        for step in 0..steps {
            let taken = |transfer: &Transfer| self.of(transfer.receiver, step) - self.begins(transfer.sender, step);
            let computed = |transfer: &Transfer| {
                let seconds = computing.map(|table| table.seconds[(transfer.sender, step)]);
                seconds.filter(|seconds| *seconds > 0.0).unwrap_or(f64::NAN)
            };
            let taken: Vec<f64> = transfers.iter().map(taken).collect();
            let computed: Vec<f64> = transfers.iter().map(computed).collect();
            let usually_taken = low_median(taken.iter().copied());
            let usually_computed = median(computed.iter().copied());
            for (place, transfer) in transfers.iter_mut().enumerate() {
                let more = computed[place] / usually_computed - 1.0;
                let more = if more.is_finite() { more } else { 0.0 };
                let of_computing = more * (usually_taken - usual).max(0.0);
                let seconds = usual + taken[place] - usually_taken - of_computing;
                transfer.set(step, seconds, usual);
            }
        }
    }
}
