//! What a sweep found, job by job.

use std::path::PathBuf;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::job::JobEntry;
use crate::report::Headline;
use crate::verdict;

/// Version of the layout of `sweep.json`; it grows when a field changes its meaning or goes.
pub const LEDGER_VERSION: u32 = 2;

/// How a job came out.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Status {
    /// Analysed; the verdict stands in its folder.
    Analysed,
    /// It has rows, and none of them counts: a job that is still starting up.
    NoRows,
    /// The analysis failed.
    Failed,
    /// It was ended when its time was up.
    OutOfTime,
    /// The sweep's time was up before its turn came.
    NotReached,
}

impl Status {
    /// The word for it in tables.
    #[must_use]
    pub fn word(self) -> &'static str {
        match self {
            Self::Analysed => "analysed",
            Self::NoRows => "no-rows",
            Self::Failed => "failed",
            Self::OutOfTime => "out-of-time",
            Self::NotReached => "not-reached",
        }
    }

    /// Whether something is broken.
    #[must_use]
    pub fn is_broken(self) -> bool {
        matches!(self, Self::Failed | Self::OutOfTime | Self::NotReached)
    }
}

/// What the faults of a job cost.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct JobCost {
    /// Growth of the steps over those with all faults mended: 0.35 is 35 % longer.
    pub share: f64,
    /// Seconds of the window that mending them saves.
    pub seconds: f64,
    /// The same times the ranks of the job, hours.
    pub gpu_hours: f64,
}

/// How a job differs from the sweep before.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum News {
    /// A fault that was not there, or that names others than before.
    Fault,
    /// It could not be analysed.
    Broken,
    /// A fault that was there is gone.
    Recovered,
    /// Another word than before, and no fault: it became uneven, or can no longer be judged.
    Changed,
}

impl News {
    /// What a result is beside the one before; a healthy job that was not there before is none.
    #[must_use]
    pub fn of(result: &JobResult, before: Option<&JobResult>) -> Option<Self> {
        if result.status.is_broken() {
            return Some(Self::Broken);
        }
        let named = |result: &JobResult| {
            (
                result.anomaly_ranks.clone(),
                result.anomaly_nodes.clone(),
                result.cause.clone(),
            )
        };
        match before {
            None => result.is_fault().then_some(Self::Fault),
            Some(before) if result.is_fault() => {
                (!before.is_fault() || named(before) != named(result)).then_some(Self::Fault)
            }
            // Of a job that is gone from the span, or is starting up again, nothing is known.
            Some(before) if before.is_fault() => (result.status == Status::Analysed).then_some(Self::Recovered),
            Some(before) => (result.status == Status::Analysed
                && before.status == Status::Analysed
                && before.verdict != result.verdict)
                .then_some(Self::Changed),
        }
    }

    /// The word in tables.
    #[must_use]
    pub fn word(self) -> &'static str {
        match self {
            Self::Fault => "fault",
            Self::Broken => "broken",
            Self::Recovered => "recovered",
            Self::Changed => "changed",
        }
    }
}

/// One job of a sweep.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct JobResult {
    /// Job id.
    pub job: String,
    /// How it came out.
    pub status: Status,
    /// Its result folder, beside the ledger; `None` where there is no verdict.
    pub folder: Option<String>,
    /// What the verdict comes to; `None` without one.
    #[serde(default)]
    pub verdict: Option<verdict::Status>,
    /// The ranks that stand out.
    pub anomaly_ranks: Vec<u32>,
    /// Their nodes.
    pub anomaly_nodes: Vec<String>,
    /// What costs the job most; empty without a verdict.
    pub cause: String,
    /// What was found, put together for people; those of all slow windows.
    pub headlines: Vec<Headline>,
    /// What all faults cost; null where it is not known.
    pub cost: Option<JobCost>,
    /// How it differs from the sweep before; null where it does not.
    pub news: Option<News>,
    /// What went wrong.
    pub error: Option<String>,
    /// What the result rests on: the source, rows, times and iterations of the job within the span, the flags and the
    /// version. A job of which this has not changed need not be analysed again.
    pub fingerprint: String,
}

impl JobResult {
    /// A job without a verdict.
    #[must_use]
    pub fn without(job: &str, status: Status, error: Option<String>, fingerprint: String) -> Self {
        Self {
            job: job.to_owned(),
            status,
            folder: None,
            verdict: None,
            anomaly_ranks: Vec::new(),
            anomaly_nodes: Vec::new(),
            cause: String::new(),
            headlines: Vec::new(),
            cost: None,
            news: None,
            error,
            fingerprint,
        }
    }

    /// What its verdict comes to, or how it came out without one, in one word.
    #[must_use]
    pub fn word(&self) -> &'static str {
        self.verdict.map_or(self.status.word(), verdict::Status::name)
    }

    /// Whether somebody or something is to blame.
    #[must_use]
    pub fn is_fault(&self) -> bool {
        self.verdict == Some(verdict::Status::Fault)
    }
}

/// All of a sweep; `sweep.json`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Ledger {
    /// Version of this layout.
    pub ledger_version: u32,
    /// Version of the tool.
    pub tool_version: String,
    /// When the sweep was made, UTC.
    pub made: String,
    /// Where the jobs were found.
    pub source: Vec<String>,
    /// First moment, UTC.
    pub start: Option<String>,
    /// Last moment, UTC.
    pub end: Option<String>,
    /// Further flags of `analyze`.
    pub flags: Vec<String>,
    /// Files that could not be read, with the reason: what they hold is in no result.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub unread: Vec<String>,
    /// Jobs by id.
    pub jobs: Vec<JobResult>,
}

/// A job that a sweep is to analyse.
#[derive(Debug, Clone)]
pub struct ListedJob {
    /// What the source holds of it: in the span of the sweep for a table, in all for files.
    pub entry: JobEntry,
    /// Where its rows are, and how the span of the sweep cuts them where `entry` does not tell.
    pub place: String,
    /// The files that hold its rows, where not all of the named ones can be read; `None` leaves it to the arguments.
    pub files: Option<Vec<PathBuf>>,
}

/// What the verdict on a job rests on: where its rows are, what there is of them within the span of the sweep, the flags
/// of `analyze` and the version.
///
/// A span that moves changes this only where it takes other rows of the job in, so that a nightly `--since` analyses no
/// job again that was over before. Of a table the rows in the span are listed; files are listed as a whole, and
/// there the bounds count that lie between the job's first and last row.
#[must_use]
pub(super) fn fingerprint(listed: &ListedJob, flags: &[String]) -> String {
    let entry = &listed.entry;
    let or_none = |text: &Option<String>| text.clone().unwrap_or_default();
    let number = |number: Option<i64>| number.map_or(String::new(), |number| number.to_string());
    format!(
        "{} rows, {} ranks, {} to {}, iterations {}-{}, {} runs; {}; {} {flags:?}",
        entry.rows,
        entry.ranks,
        or_none(&entry.first_time),
        or_none(&entry.last_time),
        number(entry.first_iteration),
        number(entry.last_iteration),
        entry.runs,
        listed.place,
        env!("CARGO_PKG_VERSION"),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn result(verdict: Option<verdict::Status>, ranks: &[u32]) -> JobResult {
        JobResult {
            verdict,
            anomaly_ranks: ranks.to_vec(),
            ..JobResult::without(
                "j",
                if verdict.is_some() {
                    Status::Analysed
                } else {
                    Status::Failed
                },
                None,
                String::new(),
            )
        }
    }

    #[test]
    fn news_is_what_is_different() {
        use verdict::Status::{Fault, Healthy, Imbalance};
        let of = |now: &JobResult, before: Option<&JobResult>| News::of(now, before);
        let (slow, other, well) = (
            result(Some(Fault), &[5]),
            result(Some(Fault), &[6]),
            result(Some(Healthy), &[]),
        );
        assert_eq!(
            (of(&slow, None), of(&slow, Some(&slow)), of(&slow, Some(&other))),
            (Some(News::Fault), None, Some(News::Fault))
        );
        assert_eq!(
            (of(&well, None), of(&well, Some(&well)), of(&well, Some(&slow))),
            (None, None, Some(News::Recovered))
        );
        assert_eq!(of(&result(Some(Imbalance), &[]), Some(&well)), Some(News::Changed));
        let broken = result(None, &[]);
        assert_eq!(
            of(&broken, Some(&broken)),
            Some(News::Broken),
            "what is broken is told every time"
        );
        let young = JobResult::without("j", Status::NoRows, None, String::new());
        assert_eq!((of(&young, Some(&slow)), of(&young, None)), (None, None));
    }
}
