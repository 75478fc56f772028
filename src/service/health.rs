//! How the polls go: what tells whether the states are of now.

use crate::source::Micros;

/// How the polls go.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Health {
    /// Polls that succeeded.
    pub polls: u64,
    /// Polls that failed.
    pub failures: u64,
    /// Failures since the last that succeeded.
    pub failures_in_a_row: u32,
    /// When the last one succeeded.
    pub last_success: Option<Micros>,
    /// Seconds that the last one took.
    pub last_seconds: f64,
    /// Why the last one failed, where it did.
    pub error: Option<String>,
}

impl Health {
    /// A poll brought what is new.
    pub(super) fn succeeded(&mut self, now: Micros, seconds: f64) {
        self.polls += 1;
        self.failures_in_a_row = 0;
        self.last_success = Some(now);
        self.last_seconds = seconds;
        self.error = None;
    }

    /// A poll brought nothing.
    pub(super) fn failed(&mut self, why: String) {
        self.failures += 1;
        self.failures_in_a_row = self.failures_in_a_row.saturating_add(1);
        self.error = Some(why);
    }
}
