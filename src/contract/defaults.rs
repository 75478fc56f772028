//! Numbers that more than one folder goes by, each with its one home here.

/// Iterations at the beginning of every run that are start-up: compilation, allocation, warming caches.
pub const WARMUP_ITERATIONS: u32 = 10;
/// Share beyond the usual step from which a step is slow.
pub const SLOWDOWN_THRESHOLD: f64 = 0.25;
/// Slow steps in a row that are no accident: they open a slow window, and make a fault of what slows them.
pub const SLOW_STEPS_IN_A_ROW: usize = 5;
