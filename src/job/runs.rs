//! Restarts: which run an iteration counts from, and where each run's start-up ends.

use schemars::JsonSchema;
use serde::Serialize;

use super::collected_rows::RunExtent;
use crate::source::timestamp;

/// One run of the job: from a start or restart to the next.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Run {
    /// Its `rerun_uuid`; empty where the rows name none.
    pub uuid: String,
    /// First iteration that it wrote.
    pub first_iteration: i64,
    /// Last iteration that it wrote.
    pub last_iteration: i64,
    /// Time of its first row, UTC.
    pub first_time: String,
    /// Time of its last row, UTC.
    pub last_time: String,
}

/// The runs of a job in the order in which they came.
#[derive(Debug, Default)]
pub(super) struct Runs {
    /// For the report, in order.
    pub runs: Vec<Run>,
    /// Code of a run -> its place in the order.
    pub order: Vec<Option<usize>>,
    /// Place in the order -> first iteration that is past the run's start-up.
    pub first_counted: Vec<i64>,
}

impl Runs {
    /// Orders runs by the time of their first row; a tie goes by last row, then by name.
    pub fn new(names: &[String], extents: &[Option<RunExtent>], warmup: u32) -> Self {
        let mut known: Vec<(usize, &RunExtent)> = extents
            .iter()
            .enumerate()
            .filter_map(|(code, extent)| extent.as_ref().map(|extent| (code, extent)))
            .collect();
        known.sort_by_key(|&(code, extent)| (extent.first_time, extent.last_time, names[code].as_str()));
        let mut order = vec![None; names.len()];
        let mut runs = Vec::with_capacity(known.len());
        let mut first_counted = Vec::with_capacity(known.len());
        for (place, (code, extent)) in known.into_iter().enumerate() {
            order[code] = Some(place);
            first_counted.push(extent.first_iteration.saturating_add(i64::from(warmup)));
            runs.push(Run {
                uuid: names[code].clone(),
                first_iteration: extent.first_iteration,
                last_iteration: extent.last_iteration,
                first_time: timestamp::format(extent.first_time),
                last_time: timestamp::format(extent.last_time),
            });
        }
        Self {
            runs,
            order,
            first_counted,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn runs_are_ordered_by_when_they_began() {
        let extent = |first_time, first_iteration| {
            Some(RunExtent {
                first_time,
                last_time: 99,
                first_iteration,
                last_iteration: 50,
            })
        };
        let names = ["late".to_owned(), "unseen".to_owned(), "early".to_owned()];
        let runs = Runs::new(&names, &[extent(5, 20), None, extent(1, 0)], 10);
        assert_eq!(runs.order, [Some(1), None, Some(0)]);
        assert_eq!(runs.first_counted, [10, 30]);
        assert_eq!(runs.runs[1].uuid, "late");
    }
}
