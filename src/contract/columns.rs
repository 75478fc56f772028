//! The columns of `megatron_metrics`.

/// The columns that must be there.
pub const REQUIRED: [&str; 7] = [
    "timestamp",
    "job",
    "metric_name",
    "subname",
    "rank",
    "iteration",
    "metric_values",
];
/// The columns that may be missing.
pub const OPTIONAL: [&str; 2] = ["node", "rerun_uuid"];
/// Further ones that may be missing, which a table stores and no analysis needs.
pub const STORED: [&str; 2] = ["cluster", "attributes"];
