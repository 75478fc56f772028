//! Where rows come from: files of `megatron_metrics` in several formats and logs of training programs, read in batches that a [`Scan`] digests.
//!
//! In: paths, or a server's address. Out: [`Rows`]. May use: `contract`.
//!
//! Data flows [`discover()`] -> [`scan()`] -> [`Rows`] -> whatever implements [`Scan`]. A source other than files
//! makes [`Rows`] too and feeds the same scans.

mod arrow;
mod attributes;
mod bounded;
mod calls;
pub mod clickhouse;
mod columns;
mod compressed;
mod csv;
mod decode;
mod dictionaries;
mod discover;
mod error;
pub mod fate;
pub mod formats;
mod frame;
pub(crate) mod guard;
mod json;
mod kineto;
pub mod logs;
mod messages;
mod names;
mod numbers;
mod pages;
mod parquet;
mod plain;
mod rows;
mod scan;
mod thrift;
pub mod timestamp;
mod unread;
mod write;

pub use calls::Lists;
pub use columns::Columns;
pub use compressed::BytesRead;
pub use discover::{Discovered, Format, ReadOptions, SourceFile, discover};
pub use error::SourceError;
pub(crate) use frame::rows_of;
pub use names::{ColumnNames, NamedColumn, NamedColumnError};
pub use numbers::Numbers;
pub use rows::{Rows, TextColumn};
pub use scan::{Need, PartStatistics, Scan, scan};
pub use timestamp::Micros;
pub use unread::UnreadCells;
pub use write::{WrittenRows, write_parquet};
