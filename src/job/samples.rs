//! Jobs for tests: their shape in one place, timers and calls as the tests say.

use ndarray::Array2;

use super::{DataQuality, Job, JobWide, Place, TimerTable, Topology, TopologyOrigin};

/// Microseconds between two iterations of a sample.
const STEP: i64 = 10_000_000;

impl Job {
    /// A job without timers: `stages` x `pipelines` ranks, `per_node` a node, iterations from 0, one every ten seconds.
    /// Rank = stage x pipelines + pipeline.
    pub(crate) fn sample(stages: usize, pipelines: usize, per_node: usize, iterations: usize) -> Self {
        let ranks = stages * pipelines;
        let place = |rank: usize| Place {
            stage: (rank / pipelines) as u32,
            pipeline: (rank % pipelines) as u32,
            member: 0,
        };
        Self {
            id: "j".to_owned(),
            ranks: (0..ranks as u32).collect(),
            nodes: (0..ranks).map(|rank| format!("n{}", rank / per_node)).collect(),
            iterations: (0..iterations as i64).collect(),
            iteration_times: (0..iterations as i64).map(|step| step * STEP).collect(),
            timers: Vec::new(),
            calls: Vec::new(),
            topology: Topology {
                sizes: [("dp".to_owned(), pipelines as u32), ("pp".to_owned(), stages as u32)].into(),
                origin: TopologyOrigin::Rows,
                places: (0..ranks).map(place).collect(),
            },
            runs: Vec::new(),
            quality: DataQuality::default(),
            moves: Vec::new(),
            reduced: None,
            job_wide: JobWide::default(),
        }
    }

    /// The job with a timer of `seconds(rank, step)`, drawn rank by rank.
    pub(crate) fn with_timer(mut self, name: &str, mut seconds: impl FnMut(usize, usize) -> f64) -> Self {
        let shape = (self.ranks.len(), self.iterations.len());
        self.timers.push(TimerTable {
            name: name.to_owned(),
            seconds: Array2::from_shape_fn(shape, |(rank, step)| seconds(rank, step)),
        });
        self.timers.sort_by(|a, b| a.name.cmp(&b.name));
        self
    }
}
