//! Which rows of the window count, told from sums: nothing of them has travelled yet.

use std::collections::BTreeSet;

use super::super::collect::Collector;
use super::super::collected_rows::{RunExtent, StepOfRun, StepTally};
use super::super::counting_rows::{CountedRuns, CountedSteps};
use super::super::quality::DataQuality;
use super::super::runs::Runs;
use super::super::window::Selection;
use crate::source::clickhouse::{Placed, Tally};

/// The rows of the window that count, by iteration.
pub(super) struct CountedWindow {
    pub runs: Runs,
    pub run_names: Vec<String>,
    pub steps: CountedSteps,
}

impl CountedWindow {
    pub fn new(
        tallies: &[Tally],
        collector: &mut Collector<'_>,
        selection: &Selection,
        quality: &mut DataQuality,
    ) -> Self {
        let mut steps = Vec::with_capacity(tallies.len());
        for tally in tallies {
            let extent = RunExtent {
                first_time: tally.first_seen,
                last_time: tally.last_seen,
                first_iteration: tally.iteration_number,
                last_iteration: tally.iteration_number,
            };
            collector.note_extent(&tally.run, extent);
            quality.rows_read += tally.rows();
            quality.missing_values += tally.missing;
            quality.not_finite += tally.not_finite;
            quality.negative += tally.negative;
            let step = StepOfRun {
                run: collector.run_code(&tally.run),
                iteration: tally.iteration_number,
            };
            let usable = StepTally {
                rows: tally.usable,
                first_time: tally.first_time,
                last_time: tally.last_time,
            };
            steps.push((step, usable));
        }
        let run_names = collector.runs.names.clone();
        let runs = Runs::new(&run_names, &collector.extents, selection.warmup);
        let usable = steps.iter().filter(|(_, tally)| tally.rows > 0);
        let usable = usable.map(|(step, _)| (step.run, step.iteration));
        let counts = CountedRuns::new(usable, &runs, selection.rerun.as_ref(), &run_names);
        let steps = CountedSteps::new(steps.iter().map(|(step, tally)| (*step, tally)), &counts, quality);
        Self { runs, run_names, steps }
    }

    /// Tells the collector the nodes of ranks, and returns those that have one in a run that counts.
    pub fn note_nodes(&self, placed: Vec<Placed>, collector: &mut Collector<'_>) -> BTreeSet<u32> {
        let mut known = BTreeSet::new();
        for Placed {
            run,
            rank_number,
            node_name,
            last_time,
            answer_rows: _,
        } in placed
        {
            let run = collector.run_code(&run);
            if self.steps.runs.contains(&run) {
                known.insert(rank_number);
            }
            collector.note_node(run, rank_number, last_time, &node_name);
        }
        known
    }
}
