//! Which flags would help against an error: the folders below name what is wrong, and no flag.

use crate::evaluation::simulate;
use crate::job::{JobError, TopologyError};
use crate::report::WriteError;
use crate::source::SourceError;
use crate::source::clickhouse::Failure;
use crate::sweep::SweepError;

/// The flags that would help, in half a sentence; `None` where none does.
pub(super) fn of(error: &anyhow::Error) -> Option<&'static str> {
    error.chain().find_map(of_cause)
}

fn of_cause(cause: &(dyn std::error::Error + 'static)) -> Option<&'static str> {
    if let Some(error) = cause.downcast_ref::<JobError>() {
        return match error {
            JobError::Source(error) => of_source(error),
            JobError::Topology(error) => of_topology(error),
        };
    }
    if let Some(error) = cause.downcast_ref::<SourceError>() {
        return of_source(error);
    }
    if let Some(error) = cause.downcast_ref::<WriteError>() {
        return match error {
            WriteError::Exists { .. } => Some("--out names another folder, --force replaces an earlier result"),
            _ => None,
        };
    }
    if let Some(error) = cause.downcast_ref::<SweepError>() {
        return match error {
            SweepError::NotASweep { .. } => Some("--out names another folder"),
            SweepError::Unreadable { .. } => Some("leave out --resume"),
            _ => None,
        };
    }
    match cause.downcast_ref::<simulate::WriteError>() {
        Some(simulate::WriteError::Exists { .. }) => Some("--force replaces it"),
        _ => None,
    }
}

fn of_source(error: &SourceError) -> Option<&'static str> {
    match error {
        SourceError::NoRows(text) if text.contains("start-up iterations") => {
            Some("--warmup 0 keeps them: short logs and traces have few others")
        }
        SourceError::SeveralJobs(_) => Some("--job-id chooses"),
        SourceError::MissingColumn { .. } | SourceError::DoubleColumn { .. } => {
            Some("--column says what a column is called, as in --column node=hostname")
        }
        SourceError::TooSparse { .. } => Some("--iterations, --start and --end narrow it"),
        SourceError::Server(error) => match &error.what {
            Failure::Refused { code, .. } => match code {
                516 | 192 | 193 | 194 => Some("--user, and --password-file or CLICKHOUSE_PASSWORD"),
                60 => Some("--table and --database"),
                81 => Some("--database"),
                158 | 159 | 160 | 241 | 307 | 396 => Some("--iterations, --start and --end narrow the window"),
                _ => None,
            },
            Failure::Gateway(_) => Some("--clickhouse-url"),
            Failure::Network(text) if text.contains("certificate") => Some("--ca-file"),
            Failure::Network(_) => Some("--clickhouse-url"),
            Failure::Deadline(_) => Some("--query-timeout"),
            Failure::Setup(_) => Some("`--help` lists the flags of the connection"),
            _ => None,
        },
        _ => None,
    }
}

fn of_topology(error: &TopologyError) -> Option<&'static str> {
    match error {
        TopologyError::Size { .. } | TopologyError::World { .. } | TopologyError::Open { .. } => {
            Some("--tp, --pp, --dp, --cp and --ep say the sizes")
        }
        TopologyError::NoSizes => Some("add --tp, --pp, --dp or --cp"),
        TopologyError::Position { .. } | TopologyError::Order(_) => Some("--order says the order"),
    }
}
