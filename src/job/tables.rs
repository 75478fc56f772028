//! A job's window as tables, ready for analysis: what every later stage works on.

use std::collections::BTreeSet;

use super::calls::CallTable;
use super::job_wide::JobWide;
use super::moves::Move;
use super::quality::DataQuality;
use super::reduced::Reduced;
use super::runs::Run;
use super::timer_table::TimerTable;
use super::topology::Topology;
use crate::contract::metrics::UNKNOWN_NODE;
use crate::source::Micros;

/// One job's window, ready for analysis.
#[derive(Debug)]
pub struct Job {
    /// Job id.
    pub id: String,
    /// Ranks with a timer row in the window, ascending.
    pub ranks: Vec<u32>,
    /// Node of each rank: that of its latest row.
    pub nodes: Vec<String>,
    /// Ranks that restarts moved to other nodes, by rank and iteration.
    pub moves: Vec<Move>,
    /// Iterations with a timer row in the window, ascending.
    pub iterations: Vec<i64>,
    /// Time of the latest row of each iteration, parallel to `iterations`.
    pub iteration_times: Vec<Micros>,
    /// Timers, by name.
    pub timers: Vec<TimerTable>,
    /// Single calls of the timers around transfers, by name; none where the job has no trace rows.
    pub calls: Vec<CallTable>,
    /// Parallel groups.
    pub topology: Topology,
    /// Runs up to `--end`, in the order in which they came.
    pub runs: Vec<Run>,
    /// What was read and left out.
    pub quality: DataQuality,
    /// What is known beside the tables where their columns put several iterations together.
    pub reduced: Option<Box<Reduced>>,
    /// What is known of no single rank.
    pub job_wide: JobWide,
}

impl Job {
    /// The table of a timer.
    #[must_use]
    pub fn timer(&self, name: &str) -> Option<&TimerTable> {
        let place = self
            .timers
            .binary_search_by(|timer| timer.name.as_str().cmp(name))
            .ok()?;
        self.timers.get(place)
    }

    /// Iterations that a column of the tables stands for: 1 unless the job was reduced where its rows are kept.
    #[must_use]
    pub fn iterations_per_column(&self) -> usize {
        self.reduced.as_ref().map_or(1, |reduced| reduced.length)
    }

    /// How many iterations were analysed.
    #[must_use]
    pub fn iteration_count(&self) -> usize {
        self.iterations_in(0..self.iterations.len())
    }

    /// How many iterations some columns stand for.
    #[must_use]
    pub fn iterations_in(&self, columns: impl IntoIterator<Item = usize>) -> usize {
        let of_column = |column: usize| self.reduced.as_ref().map_or(1, |reduced| reduced.counts[column]);
        columns.into_iter().map(of_column).sum()
    }

    /// The last iteration of a column.
    #[must_use]
    pub fn last_iteration_of(&self, column: usize) -> i64 {
        let last = self.reduced.as_ref().map(|reduced| reduced.last_iterations[column]);
        last.unwrap_or(self.iterations[column])
    }

    /// The node of a rank (position) in an iteration; `None` where it is not known.
    #[must_use]
    pub fn node_in(&self, rank: usize, iteration: i64) -> Option<&str> {
        let number = self.ranks[rank];
        let from = self
            .moves
            .partition_point(|known| (known.rank, known.iteration) <= (number, iteration));
        let node = match self.moves.get(from).filter(|known| known.rank == number) {
            Some(later) => &later.from,
            None => &self.nodes[rank],
        };
        Some(node.as_str()).filter(|&node| node != UNKNOWN_NODE)
    }

    /// The nodes of ranks (positions) in the columns that are set, each once, sorted. Ranks whose node is not known have
    /// none.
    #[must_use]
    pub fn nodes_in(&self, ranks: &[usize], columns: &[bool]) -> Vec<String> {
        let mut nodes = BTreeSet::new();
        for &rank in ranks {
            let moved = self
                .moves
                .binary_search_by_key(&self.ranks[rank], |known| known.rank)
                .is_ok();
            if moved {
                let there = (0..columns.len()).filter(|&column| columns[column]);
                nodes.extend(there.filter_map(|column| self.node_in(rank, self.iterations[column])));
            } else {
                nodes.extend(self.node_in(rank, i64::MAX));
            }
        }
        nodes.into_iter().map(str::to_owned).collect()
    }
}
