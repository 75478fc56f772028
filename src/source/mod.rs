//! Where rows come from: files of `megatron_metrics` in four formats, read in batches that a [`Scan`] digests.
//!
//! Data flows [`discover()`] -> [`scan()`] -> [`Rows`] -> whatever implements [`Scan`]. A source other than files
//! makes [`Rows`] too and feeds the same scans.

mod arrow;
mod attributes;
mod bounded;
mod calls;
pub mod clickhouse;
mod columns;
mod csv;
mod discover;
mod error;
mod frame;
pub(crate) mod guard;
mod ndjson;
mod parquet;
mod rows;
mod scan;
pub mod timestamp;

pub use calls::{INTERLEAVED_TIMERS, Lists, TRACE, TRANSFER_TIMERS, is_transfer};
pub use columns::Columns;
pub use discover::{Discovered, ENDINGS, Format, SourceFile, discover};
pub use error::SourceError;
pub(crate) use frame::rows_of;
pub use rows::{OPTIONAL, REQUIRED, Rows, STORED, TextColumn};
pub use scan::{Need, PartStatistics, Scan, scan};
pub use timestamp::Micros;
