//! Where each rank stands: its pipeline stage, its pipeline, and its place among the ranks that share both.
//!
//! From `megatron_parallel_group_rank` rows; without them from which point-to-point timers never run (the first stage
//! never receives forward) and from which neighbours show equal compute times (tensor-parallel peers).

use std::collections::BTreeMap;

use super::robust::{median, quantile, sorted};
use crate::job::{Job, TimerTable};

/// A rank's place in the job.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Place {
    /// Pipeline stage.
    pub stage: u32,
    /// Pipeline (replica).
    pub pipeline: u32,
    /// Place among the ranks of this stage and pipeline.
    pub member: u32,
}

/// The place of each rank of the job.
pub(super) fn places(job: &Job) -> Vec<Place> {
    let groups = &job.topology.positions;
    if groups.contains_key("pp") || groups.contains_key("dp") || groups.contains_key("tp") {
        from_rows(job)
    } else {
        inferred(job)
    }
}

fn from_rows(job: &Job) -> Vec<Place> {
    let at = |group: &str, rank: usize| match job.topology.positions.get(group) {
        None => 0,
        Some(positions) => positions.get(rank).copied().flatten().unwrap_or(u32::MAX),
    };
    let numbered = !job.topology.positions.contains_key("dp");
    let mut next = BTreeMap::new();
    (0..job.ranks.len())
        .map(|rank| {
            let (stage, member) = (at("pp", rank), at("tp", rank));
            let pipeline = if numbered {
                let next = next.entry((stage, member)).or_insert(0);
                *next += 1;
                *next - 1
            } else {
                at("dp", rank)
            };
            Place {
                stage,
                pipeline,
                member,
            }
        })
        .collect()
}

fn inferred(job: &Job) -> Vec<Place> {
    let runs = |names: &[&str], rank: usize| {
        names.iter().any(|name| {
            job.timer(name)
                .is_some_and(|timer| timer.seconds.row(rank).iter().any(|&seconds| seconds > 0.0))
        })
    };
    let first_stage: Vec<u32> = (0..job.ranks.len())
        .filter(|&rank| {
            runs(&["forward-send", "backward-recv", "forward-send-backward-recv"], rank)
                && !runs(&["forward-recv", "backward-send", "backward-send-forward-recv"], rank)
        })
        .map(|rank| job.ranks[rank])
        .collect();
    let count = job.ranks.len() as u32;
    let world = job.ranks.last().map_or(1, |&rank| rank.saturating_add(1));
    let firsts = first_stage.len() as u32;
    let (mut stages, mut block, mut striped) = (1, world, false);
    if firsts > 0 && firsts < count && world.is_multiple_of(firsts) {
        let run = first_stage
            .windows(2)
            .position(|pair| pair[1] - pair[0] != 1)
            .map_or(firsts, |at| at as u32 + 1);
        let pipelines = world / firsts;
        if run == firsts && first_stage[0] == 0 {
            (stages, block) = (pipelines, firsts);
        } else if firsts.is_multiple_of(run)
            && first_stage
                .iter()
                .copied()
                .eq((0..world).filter(|rank| rank % (run * pipelines) < run))
        {
            (stages, block, striped) = (pipelines, run, true);
        }
    }
    let size = if striped {
        block
    } else if world == count {
        tensor_size(job, block)
    } else {
        1
    };
    let place = |&rank: &u32| {
        if striped {
            Place {
                stage: rank / size % stages,
                pipeline: rank / (size * stages),
                member: rank % size,
            }
        } else {
            let per_stage = world / stages;
            Place {
                stage: rank / per_stage,
                pipeline: rank % per_stage / size,
                member: rank % size,
            }
        }
    };
    job.ranks.iter().map(place).collect()
}

/// Tensor-parallel peers show equal forward and backward in every step: the length of runs of equal neighbours.
fn tensor_size(job: &Job, block: u32) -> u32 {
    let Some(timer) = job.timer("backward-compute").or_else(|| job.timer("forward-compute")) else {
        return 1;
    };
    if block < 2 {
        return 1;
    }
    let far: Vec<f64> = (1..job.ranks.len()).map(|rank| apart(timer, rank)).collect();
    let inner = |pair: usize| pair as u32 % block != block - 1;
    let usual = sorted((0..far.len()).filter(|&pair| inner(pair)).map(|pair| far[pair]));
    if usual.is_empty() {
        return 1;
    }
    let limit = (0.1 * quantile(&usual, 0.9)).max(3e-4);
    let share_equal = |pairs: &dyn Fn(usize) -> bool| {
        let chosen: Vec<usize> = (0..far.len()).filter(|&pair| pairs(pair)).collect();
        chosen.iter().filter(|&&pair| far[pair] < limit).count() as f64 / chosen.len() as f64
    };
    (2..=block)
        .rev()
        .filter(|size| block.is_multiple_of(*size))
        .find(|&size| {
            let inside = |pair: usize| pair as u32 % size != size - 1;
            share_equal(&inside) > 0.95 && (size == block || share_equal(&|pair| !inside(pair) && inner(pair)) < 0.2)
        })
        .unwrap_or(1)
}

/// Median over the steps of how far a rank lies from the one before it (log).
fn apart(timer: &TimerTable, rank: usize) -> f64 {
    let (one, other) = (timer.seconds.row(rank - 1), timer.seconds.row(rank));
    median(one.iter().zip(other).map(|(a, b)| (a.ln() - b.ln()).abs()))
}
