//! Counts of what was read, kept and left out.

use schemars::JsonSchema;
use serde::Serialize;

use crate::source::fate::{Fate, place};

/// Rows by what became of them; nothing is left out of an analysis without being counted here.
///
/// The rows of the job are `timer_rows_used`, `trace_rows` and every count from `group_rows` on but for
/// `ranks_not_placed` and `ranks_on_several_nodes`, which are ranks.
#[derive(Debug, Default, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct DataQuality {
    /// Rows that were read, of any job.
    pub rows_read: u64,
    /// Rows in parts of files that were not read because their statistics rule out the job or the window.
    pub rows_not_read: u64,
    /// Rows of other jobs.
    pub other_jobs: u64,
    /// Timer rows that the analysis rests on.
    pub timer_rows_used: u64,
    /// Kept rows whose duration is 0: the timer did not run on that rank in that iteration.
    pub zero_durations: u64,
    /// `megatron_timers_trace` rows: single calls. They are counted here alone, and split up in the next three.
    pub trace_rows: u64,
    /// Of them those that communication is judged by.
    pub trace_rows_used: u64,
    /// Of them those of timers around no transfer, which are not needed, and those without a call.
    pub trace_rows_not_needed: u64,
    /// Of them those that are unreadable, outside of the window, of start-up iterations, of another or a repeated run,
    /// of a rank without timer rows, or repeated.
    pub trace_rows_left_out: u64,
    /// Calls in the used trace rows whose times can be right.
    pub calls_used: u64,
    /// Calls in the used trace rows whose times can't be right: no end, an end before the start, overlap with the call
    /// above, not finite.
    pub bad_calls: u64,
    /// `megatron_parallel_group_rank` rows: they give the topology.
    pub group_rows: u64,
    /// Rows of reports that name ranks: they give candidates.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub report_rows: u64,
    /// Iterations that the recorder lost: what found its queue full.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub recorder_lost_iterations: u64,
    /// Rows that the recorder lost: a disk or server that was away too long.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub recorder_lost_rows: u64,
    /// Calls that the recorder lost: the device never reached them.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub recorder_lost_calls: u64,
    /// Rows with another metric name.
    pub other_metrics: u64,
    /// Rows without a readable timestamp, timer name, rank or iteration.
    pub unreadable_rows: u64,
    /// Timer rows without a value.
    pub missing_values: u64,
    /// Durations that are NaN or infinite.
    pub not_finite: u64,
    /// Durations below 0.
    pub negative: u64,
    /// Rows before `--start` or after `--end`.
    pub outside_time: u64,
    /// Rows outside of `--iterations`.
    pub outside_iterations: u64,
    /// Rows of another run than `--rerun` asks for.
    pub other_runs: u64,
    /// Rows of an iteration that a later run repeated.
    pub superseded_by_rerun: u64,
    /// Rows of the start-up iterations of a run.
    pub warmup: u64,
    /// Rows that repeat (run, timer, rank, iteration) of a later row.
    pub duplicates: u64,
    /// Ranks (not rows) without `megatron_parallel_group_rank` rows where others have them, in a job of which no rank
    /// order explains those of the others: they count as a pipeline of their own.
    pub ranks_not_placed: u64,
    /// Ranks (not rows) whose rows of one run name more than one node: that of the latest row is told. A rank that was moved without
    /// a new `rerun_uuid`, or a damaged name. Counted in files.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub ranks_on_several_nodes: u64,
}

/// Most sources hold none: the count is shown where there are some.
fn is_zero(count: &u64) -> bool {
    *count == 0
}

impl DataQuality {
    /// Counts rows of a wanted metric (its place in [`WANTED`](crate::source::fate::WANTED)) by their fate. Those that are
    /// taken are counted where they are used, but for those of the trace, of which all are.
    pub(super) fn leave_out(&mut self, metric: usize, fate: Fate, rows: u64) {
        if metric == place::TRACE {
            self.trace_rows += rows;
        }
        if let Some(counter) = self.counter(metric, fate) {
            *counter += rows;
        }
    }

    /// The count of the rows of a metric that have a fate.
    fn counter(&mut self, metric: usize, fate: Fate) -> Option<&mut u64> {
        let counter = match (fate, metric) {
            (Fate::Taken, _) => return None,
            (Fate::NotNeeded, _) => &mut self.trace_rows_not_needed,
            (_, place::TRACE) => &mut self.trace_rows_left_out,
            (Fate::Unreadable, _) => &mut self.unreadable_rows,
            (Fate::AfterEnd | Fate::BeforeStart, _) => &mut self.outside_time,
            (Fate::OtherIteration, _) => &mut self.outside_iterations,
            (Fate::MissingValue, _) => &mut self.missing_values,
            (Fate::NotFinite, _) => &mut self.not_finite,
            (Fate::Negative, _) => &mut self.negative,
        };
        Some(counter)
    }

    /// Adds the counts of another batch.
    pub fn add(&mut self, other: &Self) {
        let mine = self.counts_mut();
        for ((_, mine), (_, other)) in mine.into_iter().zip(other.clone().counts_mut()) {
            *mine += *other;
        }
    }

    /// Every count with its name, in the order of the report.
    #[must_use]
    pub fn counts(&self) -> Vec<(&'static str, u64)> {
        let mut copy = self.clone();
        copy.counts_mut()
            .into_iter()
            .map(|(name, count)| (name, *count))
            .collect()
    }

    fn counts_mut(&mut self) -> [(&'static str, &mut u64); 29] {
        [
            ("rows_read", &mut self.rows_read),
            ("rows_not_read", &mut self.rows_not_read),
            ("other_jobs", &mut self.other_jobs),
            ("timer_rows_used", &mut self.timer_rows_used),
            ("zero_durations", &mut self.zero_durations),
            ("trace_rows", &mut self.trace_rows),
            ("trace_rows_used", &mut self.trace_rows_used),
            ("trace_rows_not_needed", &mut self.trace_rows_not_needed),
            ("trace_rows_left_out", &mut self.trace_rows_left_out),
            ("calls_used", &mut self.calls_used),
            ("bad_calls", &mut self.bad_calls),
            ("group_rows", &mut self.group_rows),
            ("report_rows", &mut self.report_rows),
            ("recorder_lost_iterations", &mut self.recorder_lost_iterations),
            ("recorder_lost_rows", &mut self.recorder_lost_rows),
            ("recorder_lost_calls", &mut self.recorder_lost_calls),
            ("other_metrics", &mut self.other_metrics),
            ("unreadable_rows", &mut self.unreadable_rows),
            ("missing_values", &mut self.missing_values),
            ("not_finite", &mut self.not_finite),
            ("negative", &mut self.negative),
            ("outside_time", &mut self.outside_time),
            ("outside_iterations", &mut self.outside_iterations),
            ("other_runs", &mut self.other_runs),
            ("superseded_by_rerun", &mut self.superseded_by_rerun),
            ("warmup", &mut self.warmup),
            ("duplicates", &mut self.duplicates),
            ("ranks_not_placed", &mut self.ranks_not_placed),
            ("ranks_on_several_nodes", &mut self.ranks_on_several_nodes),
        ]
    }
}
