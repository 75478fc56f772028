//! `analyze`: one job in, a verdict out.

mod args;

use anyhow::Context;

pub use self::args::AnalyzeArgs;
use self::args::{Format, Request, RulesName};
use super::exit::{ArgumentError, Exit};
use super::source::Source;
use super::stdout::{print, tell};
use crate::job::{Job, JobError, Selection, SlowWindow, StepTimes, slow_windows};
use crate::report::{Asked, Report, WriteError, json_line, prometheus};
use crate::rules;
use crate::verdict::Status;

/// Timers that the classic rules take: Megatron has some dozens, and each costs seconds where ranks are many.
const MOST_CLASSIC_TIMERS: usize = 5_000;

/// Runs `analyze`.
///
/// # Errors
/// Bad arguments, a source that fails or holds no such rows, results that can't be written.
pub fn run(args: &AnalyzeArgs) -> anyhow::Result<Exit> {
    let request = args.request()?;
    if let Some(threads) = args.threads {
        rayon::ThreadPoolBuilder::new()
            .num_threads(threads)
            .build_global()
            .with_context(|| format!("failed to start {threads} threads"))?;
    }
    let source = Source::open(&args.input, &args.clickhouse)?;
    let mut source = source.with_logs(&args.logs)?.with_reading(&args.reading)?;
    let progress = source.progress();
    let job = source.load(&request.selection, request.reduction, &|rows| progress.rows(rows))?;
    let timers = job.timers.len();
    if args.rules == RulesName::Classic && timers > MOST_CLASSIC_TIMERS {
        let reason = format!(
            "the job has {timers} timers, and the classic rules, which cluster each of them six times, take \
             {MOST_CLASSIC_TIMERS} at most; --rules peer takes any number"
        );
        return Err(ArgumentError::new("--rules", reason).into());
    }
    progress.now("analysing");
    let step_times = slow_windows(&job, request.slowdown_threshold);
    let asked = Asked {
        source: source.names(),
        files_passed_over: source.passed_over(),
        settings: &request.settings,
        iterations: request.asked_iterations(&step_times),
        warmup: request.selection.warmup,
        step_times: &step_times,
    };
    let mut report = request.analyse(&source, &job, &asked)?;
    if args.trace_view {
        report = report.with_trace_view(&job);
    }
    let summary = &report.summary;
    // A verdict that can't be kept is told all the same: it may have taken an hour.
    let kept = request.folder.as_ref().map(|folder| {
        progress.now("writing");
        folder.write(&report)
    });
    drop(progress);
    match args.format {
        Format::Text => print(&args.screen.printed(summary)?)?,
        Format::Json => print(&(json_line(summary)? + "\n"))?,
    }
    if let Some(file) = &args.prometheus {
        let metrics = prometheus(summary, chrono::Utc::now().timestamp());
        crate::building::replace_file(file, metrics.as_bytes()).map_err(WriteError::io(file))?;
    }
    if let Some(folder) = kept.transpose()?
        && !args.screen.is_quiet()
    {
        tell(format_args!("results in {}", folder.display()));
    }
    Ok(if args.exit_code && summary.status == Status::Fault {
        Exit::AnomaliesFound
    } else {
        Exit::Success
    })
}

impl Request {
    /// Judges the job, or each slow window of it where that was asked for.
    fn analyse(&self, source: &Source, job: &Job, asked: &Asked<'_>) -> Result<Report, JobError> {
        let judge = |job: &Job| {
            let verdict = rules::judge(job, &self.settings, &self.algorithms);
            Report::new(job, verdict, asked.clone())
        };
        let windows = if self.auto {
            asked.step_times.windows.as_slice()
        } else {
            &[]
        };
        match windows {
            [] => Ok(judge(job)),
            [window] => Ok(judge(&self.part(source, job, window)?)),
            windows => {
                let windows = windows
                    .iter()
                    .map(|window| Ok(judge(&self.part(source, job, window)?)))
                    .collect::<Result<_, JobError>>()?;
                Ok(Report::of_windows(job, windows, asked.clone()))
            }
        }
    }

    /// The job's part in a window. Columns that stand for several iterations can't be cut in between: they are made anew.
    fn part(&self, source: &Source, job: &Job, window: &SlowWindow) -> Result<Job, JobError> {
        if job.iterations_per_column() == 1 {
            return Ok(job.window(window.range()));
        }
        let selection = Selection {
            iterations: window.range(),
            ..self.selection.clone()
        };
        source.load(&selection, self.reduction, &|_| ())
    }

    /// The asked iterations in words.
    fn asked_iterations(&self, step_times: &StepTimes) -> String {
        match (self.auto, step_times.windows.len()) {
            (false, _) => self.selection.iterations.to_string(),
            (true, 0) => "auto, no slow window, so all".to_owned(),
            (true, 1) => "auto, the slow window".to_owned(),
            (true, count) => format!("auto, {count} slow windows"),
        }
    }
}
