//! Rows from a ClickHouse table, over HTTP.
//!
//! [`Table::open`] looks at the table's columns and engine; [`Table::count`] counts a job's rows on the server, by reason.
//! Those of the window come through a [`Scan`] ([`Table::pull`]) or, in slabs of columns, as arrays a timer and rank
//! ([`Table::rank_rows`]), as sums where they are many ([`Table::rank_columns`]). No setting is sent, so that a user with
//! `readonly = 1` will do, but where the user's profile would have answers cut in silence (`profile`). Queries have deadlines, run again when they failed in passing, and an answer that broke off, or
//! that ends well with too few rows, is thrown away. [`Table::load`] writes rows of files, passed through a scan.

mod columns;
mod connect;
mod counts;
mod ddl;
mod encode;
mod error;
mod export;
mod jobs;
mod layout;
mod live;
mod load;
mod machines;
mod profile;
mod pull;
mod replay;
mod session;
mod settings;
mod tally;
mod window;

use super::error::SourceError;
use super::scan::Scan;
use super::timestamp::Micros;
use layout::Layout;
use session::Session;

pub use columns::{ColumnsAsked, Longest, RankColumns, RankRows, Stands};
pub use counts::{CountedRows, sent};
pub use ddl::{Placement, statements};
pub use error::{Failure, ServerError};
pub use export::Exported;
pub use jobs::{JobLine, Metrics};
pub use live::{LastSeen, LiveStep, Since};
pub use load::Loaded;
pub use machines::{MACHINE_TABLE, MachineSamplesAsked, MachineSeries, machine_samples, machine_statement};
pub use pull::Wanted;
pub use replay::{Replay, Replayed};
pub use session::Notice;
pub use settings::{Address, AddressError, DEFAULT_TABLE, Secret, ServerSettings};
pub use tally::{Placed, Tally};

/// A table of `megatron_metrics` on a server.
pub struct Table {
    session: Session,
    layout: Layout,
}

impl Table {
    /// Connects and looks at the table. `notice` is told when a query is sent again.
    ///
    /// # Errors
    /// A server that can't be reached or refuses, a table that is not there or not laid out as it should be.
    pub fn open(settings: ServerSettings, notice: Notice) -> Result<Self, SourceError> {
        let session = Session::new(settings, notice)?;
        session.run("look at the user's settings", async |attempt| {
            profile::overrides(attempt).await.map(drop)
        })?;
        let layout = session.run("look at the table", async |attempt| Layout::ask(attempt).await)?;
        Ok(Self { session, layout })
    }

    /// The table as a report names its source.
    #[must_use]
    pub fn name(&self) -> String {
        let settings = &self.session.settings;
        format!("clickhouse {} {}", settings.url, settings.table_name())
    }

    /// How often a query was sent again so far.
    #[must_use]
    pub fn retried(&self) -> u64 {
        self.session.retried()
    }

    /// Counts the job's rows by reason: all of them, or those beside the window of one metric.
    ///
    /// # Errors
    /// A query that fails for good.
    pub fn count(&self, wanted: &Wanted<'_>, beside: Option<usize>) -> Result<Vec<CountedRows>, SourceError> {
        let counted = self.session.run("count the job's rows", async |attempt| {
            counts::count(attempt, &self.layout, wanted, beside).await
        })?;
        Ok(counted)
    }

    /// Passes the wanted rows of some metrics (places in `wanted`), of which so many were counted, through a scan.
    ///
    /// Batches are absorbed metric by metric in the order of `wanted`, within a metric as the server sends them.
    ///
    /// # Errors
    /// A query that fails for good, or what [`Scan::absorb`] refuses.
    pub fn pull<S: Scan>(
        &self,
        wanted: &Wanted<'_>,
        metrics: &[usize],
        counted: &[CountedRows],
        scan: &mut S,
        progress: &dyn Fn(u64),
    ) -> Result<(), SourceError> {
        pull::pull((&self.session, &self.layout), wanted, metrics, counted, scan, progress)
    }

    /// The jobs with a row between two moments (both included, open where `None`), by id.
    ///
    /// # Errors
    /// A query that fails for good.
    pub fn jobs(
        &self,
        metrics: Metrics,
        between: (Option<Micros>, Option<Micros>),
    ) -> Result<Vec<JobLine>, SourceError> {
        let jobs = self.session.run("list the jobs", async |attempt| {
            jobs::list(attempt, &self.layout, metrics, between).await
        })?;
        Ok(jobs)
    }

    /// The ids of all jobs, sorted.
    ///
    /// # Errors
    /// A query that fails for good.
    pub fn job_ids(&self) -> Result<Vec<String>, SourceError> {
        let ids = self
            .session
            .run("list the jobs", async |attempt| jobs::ids(attempt, &self.layout).await)?;
        Ok(ids)
    }
}
