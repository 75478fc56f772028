//! Exit codes, and which error has which.

use std::borrow::Cow;
use std::process::ExitCode;

use thiserror::Error;

use crate::evaluation::score::ScoreError;
use crate::evaluation::simulate::{self, ScenarioError};
use crate::job::JobError;
use crate::machines::MachinesError;
use crate::report::WriteError;
use crate::service::ServiceError;
use crate::source::SourceError;
use crate::source::clickhouse::Failure;
use crate::sweep::SweepError;
use crate::whatif::WhatIfError;

/// How the program ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Exit {
    /// 0: done; with `--exit-code`: done and the status is not `fault`.
    Success,
    /// 1: with `--exit-code`, the status is `fault`.
    AnomaliesFound,
    /// 1: with `score --fail-under`, too few jobs are exact.
    BelowTarget,
    /// 2: arguments that make no sense.
    BadArguments,
    /// 3: no rows for that job, window or time.
    NoRows,
    /// 4: the source failed.
    SourceFailed,
    /// 5: the results could not be written.
    NotWritten,
}

impl From<Exit> for ExitCode {
    fn from(exit: Exit) -> Self {
        Self::from(match exit {
            Exit::Success => 0,
            Exit::AnomaliesFound | Exit::BelowTarget => 1,
            Exit::BadArguments => 2,
            Exit::NoRows => 3,
            Exit::SourceFailed => 4,
            Exit::NotWritten => 5,
        })
    }
}

/// The table of exit codes for `--help`.
pub(super) const HELP: &str = "\
Exit codes:
  0  done (with --exit-code: and the status is not fault; whether it is healthy or cannot-tell the summary says)
  1  with --exit-code: the status is fault; with score --fail-under: too few jobs are exact
  2  bad arguments
  3  no rows for that job, window or time
  4  the source failed: server, credentials, unreadable file, wrong columns; sweep: a job failed
  5  the results could not be written
  130  interrupted; nothing half-written is left";

/// An argument that parses and makes no sense.
#[derive(Debug, Error)]
#[error("{flag}: {reason}")]
pub struct ArgumentError {
    /// The flag.
    pub flag: Cow<'static, str>,
    /// What is wrong with its value, and what would do.
    pub reason: String,
}

impl ArgumentError {
    pub(super) fn new(flag: impl Into<Cow<'static, str>>, reason: impl Into<String>) -> Self {
        Self {
            flag: flag.into(),
            reason: reason.into(),
        }
    }

    /// What a scenario has against one of its settings.
    pub(super) fn of_scenario(error: &ScenarioError) -> Self {
        let reason = format!("{} (allowed: {})", error.problem, error.allowed);
        Self::new(format!("--{}", error.setting), reason)
    }
}

/// The exit code of an error.
#[must_use]
pub fn exit_of(error: &anyhow::Error) -> Exit {
    for cause in error.chain() {
        if cause.is::<ArgumentError>() || cause.is::<ScenarioError>() {
            return Exit::BadArguments;
        }
        match cause.downcast_ref::<WhatIfError>() {
            Some(WhatIfError::NothingToMend { .. }) => return Exit::BadArguments,
            Some(WhatIfError::NothingToReplay(_)) => return Exit::NoRows,
            _ => {}
        }
        match cause.downcast_ref() {
            Some(MachinesError::NoSamples(_)) => return Exit::NoRows,
            Some(MachinesError::SeveralJobs { .. }) => return Exit::BadArguments,
            Some(MachinesError::Write { .. }) => return Exit::NotWritten,
            Some(MachinesError::Read { .. } | MachinesError::Content { .. }) => return Exit::SourceFailed,
            None => {}
        }
        let job = cause.downcast_ref::<JobError>();
        if let Some(JobError::Topology(_)) = job {
            return Exit::BadArguments;
        }
        let source = match job {
            Some(JobError::Source(source)) => Some(source),
            _ => cause.downcast_ref::<SourceError>(),
        };
        if let Some(source) = source {
            return match source {
                SourceError::Server(error) if matches!(error.what, Failure::File(_)) => Exit::NotWritten,
                source if source.is_no_rows() => Exit::NoRows,
                _ => Exit::SourceFailed,
            };
        }
        if cause.is::<WriteError>() || cause.is::<SweepError>() {
            return Exit::NotWritten;
        }
        match cause.downcast_ref() {
            Some(ServiceError::Listen { .. }) => return Exit::BadArguments,
            Some(ServiceError::State { .. } | ServiceError::Threads(_)) => return Exit::NotWritten,
            None => {}
        }
        if matches!(cause.downcast_ref(), Some(ScoreError::Nothing(_))) {
            return Exit::NoRows;
        }
        if cause.is::<simulate::WriteError>() {
            return Exit::NotWritten;
        }
    }
    Exit::SourceFailed
}
