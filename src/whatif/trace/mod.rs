//! Op traces: one row an operation of a worker in a step, from the file to a table with a column an operation.
//!
//! Data flows [`OpRows::read`] (rows) -> [`OpTable::new`] (operations x lanes, step after step, holes filled) -> the
//! graph and the replay.

mod fill;
mod kind;
mod mend;
mod meta;
mod read;
mod table;
mod take_apart;
mod values;

pub use kind::Kind;
pub use meta::Meta;
pub use read::OpRows;
pub use table::{Op, OpTable, TraceQuality};
pub use values::Values;
