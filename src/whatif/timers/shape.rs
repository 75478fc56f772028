//! The workers of a job and the shape of its pipelines.

use std::collections::BTreeMap;

use crate::contract::timers::INTERLEAVED_TRANSFERS;
use crate::job::{CallTable, Job};

/// Chunks a stage that are tried where nothing tells them.
const MOST_CHUNKS: usize = 8;
/// Microbatches that are tried where nothing tells them: these and multiples of the number of stages.
const MICROBATCHES: [usize; 12] = [1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64];
/// Multiples of the number of stages that are tried.
const MOST_ROUNDS: usize = 16;

/// What the caller knows of the schedule.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Asked {
    /// Microbatches a step and replica.
    pub microbatches: Option<usize>,
    /// Model chunks a stage.
    pub chunks: Option<usize>,
}

/// The workers: `[stage][lane]`, each with the places of its ranks in the job.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Workers {
    /// Ranks of each worker, `stage * lanes + lane`, by their number in it.
    pub ranks: Vec<Vec<usize>>,
    /// Number of stages.
    pub stages: usize,
    /// Number of pipelines.
    pub lanes: usize,
    /// Pipelines that lack a stage and are left out.
    pub left_out: usize,
}

impl Workers {
    /// The workers of all whole pipelines.
    ///
    /// # Errors
    /// No pipeline is whole, in words.
    pub fn new(job: &Job) -> Result<Self, String> {
        let stages = job.topology.places.iter().map(|place| place.stage as usize + 1).max();
        let stages = stages.unwrap_or(1).max(job.topology.pipeline_stages() as usize);
        let mut pipelines = BTreeMap::<u32, Vec<Vec<(u32, usize)>>>::new();
        for (rank, place) in job.topology.places.iter().enumerate() {
            let pipeline = pipelines
                .entry(place.pipeline)
                .or_insert_with(|| vec![Vec::new(); stages]);
            pipeline[place.stage as usize].push((place.member, rank));
        }
        let all = pipelines.len();
        pipelines.retain(|_, stages| stages.iter().all(|ranks| !ranks.is_empty()));
        let lanes = pipelines.len();
        if lanes == 0 {
            return Err(format!("none of {all} pipelines has ranks on all {stages} stages"));
        }
        let mut ranks = vec![Vec::new(); stages * lanes];
        for (lane, pipeline) in pipelines.into_values().enumerate() {
            for (stage, mut members) in pipeline.into_iter().enumerate() {
                members.sort_unstable();
                ranks[stage * lanes + lane] = members.into_iter().map(|(_, rank)| rank).collect();
            }
        }
        Ok(Self {
            ranks,
            stages,
            lanes,
            left_out: all - lanes,
        })
    }

    /// Number of the worker of a stage and lane.
    #[must_use]
    pub fn at(&self, stage: usize, lane: usize) -> usize {
        stage * self.lanes + lane
    }
}

/// Shape of the pipelines.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Shape {
    /// Number of stages.
    pub stages: usize,
    /// Model chunks a stage; 1 is the plain 1F1B schedule.
    pub chunks: usize,
    /// Microbatches a step.
    pub microbatches: usize,
    /// Activations and gradients move in calls of their own.
    pub overlap: bool,
}

/// The shapes that a job may have, the likeliest first; one where its calls or the caller tell.
///
/// # Errors
/// Timers that fit no schedule, in words.
pub fn shapes(job: &Job, workers: &Workers, asked: Asked) -> Result<Vec<Shape>, String> {
    let stages = workers.stages;
    let plain = |microbatches| Shape {
        stages,
        chunks: 1,
        microbatches,
        overlap: false,
    };
    if stages == 1 {
        return Ok(vec![plain(1)]);
    }
    let fires = |name: &str| {
        job.timer(name)
            .is_some_and(|timer| timer.seconds.iter().any(|seconds| *seconds > 0.0))
            || job.calls.iter().any(|table| table.name == name)
    };
    let interleaved = INTERLEAVED_TRANSFERS.into_iter().any(fires);
    let overlap = interleaved && !fires(INTERLEAVED_TRANSFERS[2]);
    let passes = usual_calls(job, "forward-compute").or_else(|| {
        let [send, fused] =
            ["forward-send", "forward-send-backward-recv"].map(|name| first_stage_calls(job, workers, name));
        (!interleaved).then_some(())?;
        Some(send.unwrap_or_default() + fused?)
    });
    if !interleaved {
        if let Some(microbatches) = asked.microbatches.or(passes).filter(|count| *count > 0) {
            return Ok(vec![plain(microbatches)]);
        }
        let mut counts: Vec<usize> = MICROBATCHES.to_vec();
        counts.extend((1..=MOST_ROUNDS).map(|round| round * stages));
        counts.sort_unstable();
        counts.dedup();
        return Ok(counts.into_iter().map(plain).collect());
    }
    let chunks: Vec<usize> = asked.chunks.map_or((2..=MOST_CHUNKS).collect(), |chunks| vec![chunks]);
    let rounds = |chunks: usize| -> Vec<usize> {
        match (asked.microbatches, passes) {
            (Some(microbatches), _) => vec![microbatches],
            (None, Some(passes)) if passes % chunks == 0 => vec![passes / chunks],
            (None, Some(_)) => Vec::new(),
            (None, None) => (1..=MOST_ROUNDS).map(|round| round * stages).collect(),
        }
    };
    let shapes: Vec<Shape> = chunks
        .into_iter()
        .flat_map(|chunks| {
            rounds(chunks)
                .into_iter()
                .map(move |microbatches| (chunks, microbatches))
        })
        .filter(|(chunks, microbatches)| *chunks > 1 && *microbatches > 0 && microbatches % stages == 0)
        .map(|(chunks, microbatches)| Shape {
            stages,
            chunks,
            microbatches,
            overlap,
        })
        .collect();
    if shapes.is_empty() {
        return Err(match passes {
            Some(passes) => format!("{passes} forward calls a step fit no interleaved schedule of {stages} stages"),
            None => "no interleaved schedule fits the microbatches".to_owned(),
        });
    }
    Ok(shapes)
}

/// The commonest number of calls of a timer over ranks and iterations that have some.
fn usual_calls(job: &Job, name: &str) -> Option<usize> {
    let table = job.calls.iter().find(|table| table.name == name)?;
    commonest(job, table, 0..table.ranks())
}

fn first_stage_calls(job: &Job, workers: &Workers, name: &str) -> Option<usize> {
    let table = job.calls.iter().find(|table| table.name == name)?;
    commonest(job, table, workers.ranks[..workers.lanes].iter().flatten().copied())
}

fn commonest(job: &Job, table: &CallTable, ranks: impl Iterator<Item = usize>) -> Option<usize> {
    let mut counts = BTreeMap::<usize, usize>::new();
    for rank in ranks {
        for step in 0..job.iterations.len() {
            *counts.entry(table.of(rank, step).len()).or_default() += 1;
        }
    }
    counts.remove(&0);
    counts
        .into_iter()
        .max_by_key(|&(_, times)| times)
        .map(|(count, _)| count)
}
