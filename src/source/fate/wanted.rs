//! The metrics of which an analysis takes rows, and which rows of each.

use crate::contract::metrics::{GROUPS, TIMERS, TRACE};
use crate::contract::timers::TRACED;

/// A metric whose rows are wanted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct WantedMetric {
    /// Its `metric_name`.
    pub name: &'static str,
    /// Whether the start and the iterations apply to its rows, or only the end.
    pub windowed: bool,
    /// The subnames of which rows are wanted, with all of their values; rows of others, and rows without a value, are not
    /// needed. `None`: rows of every subname are wanted, with their first value.
    pub lists: Option<&'static [&'static str]>,
    /// Whether the first value must be a duration.
    pub durations: bool,
}

/// The metrics that an analysis takes; rows of others are counted.
pub const WANTED: [WantedMetric; 3] = [
    WantedMetric {
        name: TIMERS,
        windowed: true,
        lists: None,
        durations: true,
    },
    // Written once, at a run's beginning: neither the start nor the iterations apply to them.
    WantedMetric {
        name: GROUPS,
        windowed: false,
        lists: None,
        durations: false,
    },
    WantedMetric {
        name: TRACE,
        windowed: true,
        lists: Some(&TRACED),
        durations: false,
    },
];

/// Places in [`WANTED`].
pub mod place {
    /// Of durations.
    pub const TIMERS: usize = 0;
    /// Of positions in parallel groups.
    pub const GROUPS: usize = 1;
    /// Of single calls.
    pub const TRACE: usize = 2;
}
