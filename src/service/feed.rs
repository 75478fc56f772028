//! What is new of the watched jobs.

use crate::source::SourceError;
use crate::source::clickhouse::{LastSeen, LiveStep, Since, Table};

/// Where new iterations come from; a table, or a test's script.
pub trait Feed: Send + Sync {
    /// The iterations of some jobs from a time of each on.
    ///
    /// # Errors
    /// A source that fails for good.
    fn steps(&self, jobs: &[Since]) -> Result<Vec<LiveStep>, SourceError>;

    /// Where each rank of a job was last seen since a time.
    ///
    /// # Errors
    /// A source that fails for good.
    fn last_seen(&self, since: &Since) -> Result<Vec<LastSeen>, SourceError>;

    /// The jobs with rows since a time, sorted.
    ///
    /// # Errors
    /// A source that fails for good.
    fn jobs(&self, since: i64) -> Result<Vec<String>, SourceError>;
}

impl Feed for Table {
    fn steps(&self, jobs: &[Since]) -> Result<Vec<LiveStep>, SourceError> {
        self.live_steps(jobs)
    }

    fn last_seen(&self, since: &Since) -> Result<Vec<LastSeen>, SourceError> {
        Table::last_seen(self, since)
    }

    fn jobs(&self, since: i64) -> Result<Vec<String>, SourceError> {
        self.live_jobs(since)
    }
}
