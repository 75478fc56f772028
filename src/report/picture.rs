//! What pictures show of a job that its verdict does not hold: how long each step took, and where ranks stand.

use crate::job::Job;
use crate::source::timestamp;

/// Steps that are kept one by one; of more the longest of neighbours.
const STEPS: usize = 2_000;

/// A job as pictures need it.
#[derive(Debug, Default, Clone)]
pub(super) struct Picture {
    /// First iteration of each kept step.
    pub iterations: Vec<i64>,
    /// When it was over, UTC.
    pub times: Vec<String>,
    /// Its length, seconds; of steps put together the longest; NaN where no timer tells.
    pub seconds: Vec<f64>,
    /// Stage and replica of each rank; empty where stages are not known.
    pub places: Vec<(u32, u32)>,
}

impl Picture {
    /// Takes what is needed.
    pub fn of(job: &Job) -> Self {
        let (_, seconds) = job.step_seconds();
        let together = job.iterations.len().div_ceil(STEPS).max(1);
        let known = |rank: usize| job.topology.stage(rank).is_some();
        let places = if (0..job.ranks.len()).all(known) {
            job.topology
                .places
                .iter()
                .map(|place| (place.stage, place.pipeline))
                .collect()
        } else {
            Vec::new()
        };
        Self {
            iterations: job.iterations.chunks(together).map(|steps| steps[0]).collect(),
            times: job
                .iteration_times
                .chunks(together)
                .map(|times| timestamp::format(times[0]))
                .collect(),
            seconds: seconds
                .chunks(together)
                .map(|steps| steps.iter().copied().fold(f64::NAN, f64::max))
                .collect(),
            places,
        }
    }
}
