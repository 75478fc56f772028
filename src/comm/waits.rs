//! What each rank does with its time: compute, transfer, wait, and for whom it waits most.
//!
//! Of two calls that meet, the longer one's excess over the shorter is waiting for the other rank: victims wait long, the
//! one that all wait for hardly at all.

use super::links::Link;
use super::transfers::Measured;
use crate::contract::timers::PASSES;
use crate::job::Job;
use crate::stats::mean;

/// A rank's time, seconds an iteration.
#[derive(Debug, Clone, PartialEq)]
pub struct Waits {
    /// Forward and backward passes; NaN where no timer tells.
    pub compute: f64,
    /// Transfers.
    pub transfer: f64,
    /// Waiting for neighbours in the pipeline.
    pub waiting: f64,
    /// The rank (position) that it waits for most; `None` where it does not wait.
    pub waits_for: Option<usize>,
}

/// The time of every rank.
#[must_use]
pub fn waits(job: &Job, links: &[Link], measured: &[Measured]) -> Vec<Waits> {
    let mut waits: Vec<Waits> = (0..job.ranks.len())
        .map(|rank| Waits {
            compute: compute(job, rank),
            transfer: 0.0,
            waiting: 0.0,
            waits_for: None,
        })
        .collect();
    let mut longest = vec![0.0; job.ranks.len()];
    for (link, measured) in links.iter().zip(measured) {
        for (spent, rank, other) in [
            (measured.spent[0], link.up, link.down),
            (measured.spent[1], link.down, link.up),
        ] {
            let row = &mut waits[rank];
            row.transfer += spent.transfer;
            row.waiting += spent.waiting;
            if spent.waiting > longest[rank] {
                longest[rank] = spent.waiting;
                row.waits_for = Some(other);
            }
        }
    }
    waits
}

fn compute(job: &Job, rank: usize) -> f64 {
    let tables: Vec<_> = PASSES.iter().filter_map(|name| job.timer(name)).collect();
    let sums = tables.iter().map(|timer| mean(timer.seconds.row(rank).iter().copied()));
    let sum: f64 = sums.filter(|seconds| seconds.is_finite()).sum();
    if tables.is_empty() { f64::NAN } else { sum }
}
