//! Which ranks send to each other along a pipeline.

use std::collections::BTreeMap;

use crate::job::{Job, Place};

/// Which way data moves along a pipeline.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Direction {
    /// Activations, from a stage to the next.
    Forward,
    /// Gradients, from a stage to the one before.
    Backward,
}

impl Direction {
    /// Both, in the order in which flows stand.
    pub const BOTH: [Self; 2] = [Self::Forward, Self::Backward];

    /// The word in tables and findings.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Forward => "forward",
            Self::Backward => "backward",
        }
    }
}

/// Two ranks (positions in the job) of neighbouring stages that exchange data.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Link {
    /// The rank of the earlier stage.
    pub up: usize,
    /// The rank of the later stage; of the first one where the link wraps around.
    pub down: usize,
    /// Stage of `up`.
    pub stage: u32,
    /// Replica of both.
    pub pipeline: u32,
    /// Whether both are on one node.
    pub inside_node: bool,
}

impl Link {
    /// Who sends and who receives.
    #[must_use]
    pub fn ends(&self, direction: Direction) -> (usize, usize) {
        match direction {
            Direction::Forward => (self.up, self.down),
            Direction::Backward => (self.down, self.up),
        }
    }
}

/// The links of a job, by pipeline, number in the stage and stage; none where stages are unknown.
///
/// With `wraps` the last stage also sends to the first, as in interleaved schedules.
#[must_use]
pub fn links(job: &Job, wraps: bool) -> Vec<Link> {
    let places = &job.topology.places;
    let stages = job.topology.pipeline_stages();
    let key = |place: &Place| (place.pipeline, place.member, place.stage);
    let at: BTreeMap<_, usize> = places
        .iter()
        .enumerate()
        .map(|(rank, place)| (key(place), rank))
        .collect();
    let next = |place: &Place| match place.stage.checked_add(1) {
        Some(stage) if stage < stages => Some(stage),
        _ => (wraps && stages > 2).then_some(0),
    };
    let link = |(&(pipeline, member, stage), &up): (&(u32, u32, u32), &usize)| {
        let down = *at.get(&(pipeline, member, next(&places[up])?))?;
        Some(Link {
            up,
            down,
            stage,
            pipeline,
            inside_node: job.nodes[up] == job.nodes[down],
        })
    };
    at.iter().filter_map(link).filter(|link| link.up != link.down).collect()
}
