//! How much of each row is read, and how many rows at once: an analysis keeps little of a row, a table stores all of it.

use crate::contract::columns::{OPTIONAL, REQUIRED, STORED};

/// Rows of a batch at most: enough to spread fixed costs, small beside the window.
const ROWS: usize = 1 << 18;
/// The same where all of a row is kept.
const STORED_ROWS: usize = 1 << 17;
/// Bytes of such a batch, about: the arrays of a trace and the attributes have any length.
const STORED_BYTES: usize = 32 << 20;

/// Which columns of the contract are read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Columns {
    /// Those that an analysis needs; of `metric_values` all elements only where a row tells the calls of a transfer.
    Analysed,
    /// Those that a table stores, `cluster` and `attributes` too, with all of `metric_values`.
    Stored,
}

impl Columns {
    /// Whether all of a row is read.
    pub(super) fn all(self) -> bool {
        self == Self::Stored
    }

    /// The columns that may be there, those that must be first.
    pub(super) fn known(self) -> impl Iterator<Item = &'static str> + Clone {
        let stored = if self.all() { &STORED[..] } else { &[] };
        REQUIRED.iter().chain(&OPTIONAL).chain(stored).copied()
    }

    /// How many batches are worked on at once: whole rows are many bytes and little work.
    pub(super) fn at_once(self) -> usize {
        match self {
            Self::Analysed => rayon::current_num_threads(),
            Self::Stored => 1,
        }
    }

    /// Whether a batch of so many rows, read from so many bytes, is full.
    pub(super) fn is_full(self, rows: usize, bytes: u64) -> bool {
        match self {
            Self::Analysed => rows >= ROWS,
            Self::Stored => rows >= STORED_ROWS || bytes >= STORED_BYTES as u64,
        }
    }

    /// How many of a file's rows make a batch, where so many of them decode to so many bytes.
    pub(super) fn batch(self, rows: usize, bytes: usize) -> usize {
        match self {
            Self::Analysed => ROWS,
            Self::Stored => (rows.saturating_mul(STORED_BYTES) / bytes.max(1)).clamp(1, STORED_ROWS),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_rows_make_small_batches_where_all_of_them_is_kept() {
        assert_eq!(Columns::Stored.batch(1_000_000, 1_000_000), STORED_ROWS);
        assert_eq!(Columns::Stored.batch(1_000, 1_000 * STORED_BYTES), 1);
        assert_eq!(Columns::Stored.batch(0, 0), 1);
        assert_eq!(Columns::Analysed.batch(1_000, usize::MAX), ROWS);
        assert!(Columns::Stored.is_full(1, STORED_BYTES as u64) && !Columns::Analysed.is_full(1, u64::MAX));
    }
}
