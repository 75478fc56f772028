//! Which rows of the window count, told from sums: nothing of them has travelled yet.

use std::collections::{BTreeMap, BTreeSet};

use super::super::collect::Collector;
use super::super::counted::{CountedRuns, Fate};
use super::super::kept::{RunExtent, keep_latest};
use super::super::quality::DataQuality;
use super::super::runs::Runs;
use super::super::window::Selection;
use crate::source::Micros;
use crate::source::clickhouse::{Placed, Tally};

/// The rows of the window that count, by timer and iteration.
pub(super) struct CountedWindow {
    pub runs: Runs,
    pub run_names: Vec<String>,
    /// Runs with a row that counts.
    pub kept: BTreeSet<u32>,
    pub iterations: Vec<i64>,
    /// Run of each iteration.
    pub run_of: Vec<u32>,
    /// Time of the first and of the last row of each iteration.
    pub times: Vec<(Micros, Micros)>,
    /// Rows of each iteration.
    pub rows: Vec<u64>,
}

impl CountedWindow {
    pub fn new(
        tallies: &[Tally],
        collector: &mut Collector<'_>,
        selection: &Selection,
        quality: &mut DataQuality,
    ) -> Self {
        for tally in tallies {
            let extent = RunExtent {
                first_time: tally.first_seen,
                last_time: tally.last_seen,
                first_iteration: tally.iteration_number,
                last_iteration: tally.iteration_number,
            };
            collector.note_extent(&tally.run, extent);
            quality.rows_read += tally.rows();
        }
        let codes: Vec<u32> = tallies.iter().map(|tally| collector.run_code(&tally.run)).collect();
        let run_names = collector.runs.names.clone();
        let runs = Runs::new(&run_names, &collector.extents, selection.warmup);
        let usable = tallies.iter().zip(&codes).filter(|(tally, _)| tally.usable > 0);
        let rows = usable.map(|(tally, &run)| (run, tally.iteration_number));
        let counts = CountedRuns::new(rows, &runs, selection.rerun.as_ref(), &run_names);
        let mut iterations = BTreeMap::<i64, (u32, (Micros, Micros), u64)>::new();
        for (tally, &run) in tallies.iter().zip(&codes) {
            quality.missing_values += tally.missing;
            quality.not_finite += tally.not_finite;
            quality.negative += tally.negative;
            let fate = counts.fate(run, tally.iteration_number);
            fate.count(tally.usable, quality);
            if fate == Fate::Counts && tally.usable > 0 {
                let times = (tally.first_time, tally.last_time);
                let (_, known, rows) = iterations.entry(tally.iteration_number).or_insert((run, times, 0));
                *known = (known.0.min(times.0), known.1.max(times.1));
                *rows += tally.usable;
            }
        }
        Self {
            kept: iterations.values().map(|&(run, ..)| run).collect(),
            run_of: iterations.values().map(|&(run, ..)| run).collect(),
            times: iterations.values().map(|&(_, times, _)| times).collect(),
            rows: iterations.values().map(|&(.., rows)| rows).collect(),
            iterations: iterations.into_keys().collect(),
            runs,
            run_names,
        }
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
            if self.kept.contains(&run) {
                known.insert(rank_number);
            }
            keep_latest(&mut collector.nodes, (run, rank_number), last_time, node_name);
        }
        known
    }
}
