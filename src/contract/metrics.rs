//! The kinds of rows of `megatron_metrics`, by `metric_name`.

/// One duration a timer, rank and iteration, seconds.
pub const TIMERS: &str = "megatron_timers";
/// Start and end of each call of a timer in an iteration, seconds.
pub const TRACE: &str = "megatron_timers_trace";
/// A rank's position in a parallel group.
pub const GROUPS: &str = "megatron_parallel_group_rank";
/// The node of a rank whose rows name none.
pub const UNKNOWN_NODE: &str = "unknown";
/// The least and the greatest duration of any rank in an iteration, seconds: `[min, max]`, rank -1. Where only the greatest
/// is told the first is missing; a single value is that of one rank, which is not told.
pub const SUMMARY: &str = "megatron_timers_summary";
/// A duration that is part of no step: set-up, evaluation, checkpoints.
pub const OUTSIDE: &str = "megatron_timers_outside";
/// What a program that looks for slow ranks says of a rank.
pub const REPORT: &str = "straggler_report";
/// What the recorder lost on its way, totals of a rank.
pub const RECORDER: &str = "megatron_recorder";
/// `subname` of the [`SUMMARY`] row that says of how many iterations the other rows of its run are the means.
pub const LOG_INTERVAL: &str = "log-interval";
