//! `serve`: jobs watched while they run, over HTTP.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::atomic::AtomicU64;
use std::time::Duration;

use clap::Args;

use super::clickhouse::{ClickHouseArgs, password_of};
use super::exit::{ArgumentError, Exit};
use super::source::open_table;
use super::stdout::tell;
use super::sweep::duration;
use crate::contract::defaults::{SLOWDOWN_THRESHOLD, WARMUP_ITERATIONS};
use crate::contract::printable::on_one_line;
use crate::interrupt;
use crate::service::alerts::Alerts;
use crate::service::analysis::Analyst;
use crate::service::http::{Service, serve};
use crate::service::state::{FAREWELL, StateFolder};
use crate::service::watched::WatchSettings;
use crate::service::watcher::{Discovery, Watcher};
use crate::source::Micros;

/// Arguments of `serve`.
#[derive(Debug, Args)]
pub struct ServeArgs {
    /// Address and port to listen at; any but this machine's own (127.0.0.1, ::1) needs --token-file
    #[arg(long, value_name = "ADDR:PORT", default_value = "127.0.0.1:8080")]
    listen: SocketAddr,
    /// Folder that keeps the registered jobs, what is known of them and the verdicts
    #[arg(long, value_name = "DIR", default_value = "mt_detector_state")]
    state: PathBuf,
    /// File whose first line every request must bring as `Authorization: Bearer ...`; /healthz and /readyz need none
    #[arg(long, value_name = "FILE")]
    token_file: Option<PathBuf>,
    /// Watch every job that writes rows
    #[arg(long)]
    watch_all: bool,
    /// Watch the jobs whose id matches, e.g. 'prod-*' (repeatable)
    #[arg(long, value_name = "PATTERN", conflicts_with = "watch_all")]
    watch: Vec<String>,
    /// Send a JSON to this address when a job's state changes
    #[arg(long, value_name = "URL")]
    webhook: Option<String>,
    /// Run this command with `sh -c` when somebody is detected; MT_DETECTOR_JOB, _RESULT, _RANKS, _NODES and _CAUSE tell it what
    #[arg(long, value_name = "CMD")]
    on_detect: Option<String>,
    #[command(flatten)]
    pub(super) pace: PaceArgs,
    #[command(flatten, next_help_heading = "ClickHouse")]
    clickhouse: ClickHouseArgs,
}

/// How often is looked, and what makes a step slow and a job hang.
#[derive(Debug, Args)]
#[group(skip)]
pub(super) struct PaceArgs {
    /// Time between polls: a number with s, m or h
    #[arg(long, value_name = "TIME", default_value = "30s")]
    pub check_interval: String,
    /// Share beyond the usual step from which one is slow; five slow ones in a row are analysed
    #[arg(long, value_name = "SHARE", default_value_t = SLOWDOWN_THRESHOLD)]
    slowdown_threshold: f64,
    /// Normal steps whose median is the usual step
    #[arg(long, value_name = "N", default_value_t = 5)]
    history_size: usize,
    /// Time without a new iteration after which a job hangs
    #[arg(long, value_name = "TIME", default_value = "60s")]
    hang_threshold: String,
    /// Time without a new iteration after which a job is over
    #[arg(long, value_name = "TIME", default_value = "1h")]
    finish_threshold: String,
    /// Iterations at the beginning of every run that are start-up
    #[arg(long, value_name = "N", default_value_t = WARMUP_ITERATIONS)]
    warmup: u32,
    /// Time for each analysis
    #[arg(long, value_name = "TIME", default_value = "10m")]
    analysis_time_limit: String,
}

impl PaceArgs {
    /// What is typed, checked.
    ///
    /// # Errors
    /// Times and shares that make no sense.
    pub fn settings(&self) -> Result<WatchSettings, ArgumentError> {
        let micros = |flag: &'static str, text: &str| -> Result<Micros, ArgumentError> {
            let time = duration(flag, text)?;
            Ok(Micros::try_from(time.as_micros())
                .unwrap_or(Micros::MAX / 4)
                .min(Micros::MAX / 4))
        };
        if !(self.slowdown_threshold > 0.0 && self.slowdown_threshold.is_finite()) {
            let reason = format!("{} is not above 0", self.slowdown_threshold);
            return Err(ArgumentError::new("--slowdown-threshold", reason));
        }
        if !(1..=1000).contains(&self.history_size) {
            return Err(ArgumentError::new(
                "--history-size",
                format!("{} is not between 1 and 1000", self.history_size),
            ));
        }
        let hang = micros("--hang-threshold", &self.hang_threshold)?;
        let finish = micros("--finish-threshold", &self.finish_threshold)?;
        if finish <= hang {
            return Err(ArgumentError::new(
                "--finish-threshold",
                "it must be longer than --hang-threshold",
            ));
        }
        Ok(WatchSettings {
            slowdown_threshold: self.slowdown_threshold,
            history_size: self.history_size,
            hang,
            finish,
            warmup: self.warmup,
        })
    }

    /// Time between polls.
    ///
    /// # Errors
    /// A text that is no time.
    pub fn interval(&self) -> Result<Duration, ArgumentError> {
        duration("--check-interval", &self.check_interval)
    }

    /// How slow windows are analysed, with results below `state`.
    ///
    /// # Errors
    /// A connection or a time that makes no sense.
    pub fn analyst(&self, state: PathBuf, clickhouse: &ClickHouseArgs) -> Result<Analyst, ArgumentError> {
        let handed_on = clickhouse.handed_on()?;
        Ok(Analyst {
            state,
            input: Vec::new(),
            arguments: handed_on.flags,
            environment: handed_on.environment,
            limit: duration("--analysis-time-limit", &self.analysis_time_limit)?,
        })
    }
}

/// Runs `serve`; it ends when it is told to.
///
/// # Errors
/// Bad arguments, a server or state that can't be read, an address that can't be listened at.
pub fn run(args: &ServeArgs) -> anyhow::Result<Exit> {
    let settings = args.pace.settings()?;
    let check_interval = args.pace.interval()?;
    let token = args
        .token_file
        .as_ref()
        .map(|path| password_of("--token-file", path))
        .transpose()?;
    if token.as_ref().is_some_and(|token| token.reveal().is_empty()) {
        return Err(ArgumentError::new("--token-file", "its first line is empty").into());
    }
    if token.is_none() && !args.listen.ip().is_loopback() {
        let reason = format!(
            "{} can be reached from other machines: name a --token-file",
            args.listen
        );
        return Err(ArgumentError::new("--listen", reason).into());
    }
    let patterns: Vec<&str> = match args.watch_all {
        true => vec!["*"],
        false => args.watch.iter().map(String::as_str).collect(),
    };
    let pattern = |text: &&str| {
        glob::Pattern::new(text)
            .map_err(|error| ArgumentError::new("--watch", format!("`{text}` is no pattern: {error}")))
    };
    let discovery = Discovery {
        patterns: patterns.iter().map(pattern).collect::<Result<_, _>>()?,
    };
    let webhook = args.webhook.as_ref().map(|text| webhook(text)).transpose()?;
    let state = StateFolder::open(&args.state)?;
    let jobs = state.load()?;
    let feed = open_table(&args.clickhouse)?;
    interrupt::farewell(FAREWELL);
    let service = Service {
        watcher: Watcher::new(settings, discovery, jobs),
        feed: Box::new(feed),
        analyst: args.pace.analyst(args.state.clone(), &args.clickhouse)?,
        alerts: Alerts {
            webhook,
            on_detect: args.on_detect.clone(),
            state: args.state.clone(),
        },
        state,
        check_interval,
        token,
        log: Box::new(|line| tell(format_args!("{}", on_one_line(line)))),
        analyses: AtomicU64::new(0),
    };
    serve(service, args.listen, |address| {
        tell(format_args!("listening at http://{address}"))
    })?;
    Ok(Exit::Success)
}

fn webhook(text: &str) -> Result<http::Uri, ArgumentError> {
    let wrong = |why: &str| ArgumentError::new("--webhook", format!("it is no address: {why}"));
    let address: http::Uri = text
        .parse()
        .map_err(|error: http::uri::InvalidUri| wrong(&error.to_string()))?;
    match address.scheme_str() {
        Some("http" | "https") if address.host().is_some() => Ok(address),
        _ => Err(wrong("it must begin with http:// or https://")),
    }
}
