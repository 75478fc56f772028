//! The kinds of rows of `megatron_metrics`, by `metric_name`.

/// One duration a timer, rank and iteration, seconds.
pub const TIMERS: &str = "megatron_timers";
/// Start and end of each call of a timer in an iteration, seconds.
pub const TRACE: &str = "megatron_timers_trace";
/// A rank's position in a parallel group.
pub const GROUPS: &str = "megatron_parallel_group_rank";
/// The node of a rank whose rows name none.
pub const UNKNOWN_NODE: &str = "unknown";
