//! Which of two models an op trace is replayed by.

/// Which edges the graph has.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Model {
    /// Those that replay real traces best.
    #[default]
    Measured,
    /// Those of the publication, for its numbers.
    Published,
}
