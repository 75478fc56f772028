//! Who is told when a job's state changes: a webhook and a command, each tried again for a while, none of which holds up the watching.

use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::time::Duration;

use bytes::Bytes;
use http::header::CONTENT_TYPE;
use http::{Method, Request, Uri};
use hyper_rustls::{ConfigBuilderExt, HttpsConnectorBuilder};
use hyper_util::client::legacy::Client;
use hyper_util::rt::TokioExecutor;
use rustls::ClientConfig;
use rustls::crypto::ring::default_provider;
use serde::Serialize;

use super::known::State;
use super::watcher::News;
use crate::source::timestamp;

/// Attempts to reach a webhook.
const ATTEMPTS: u32 = 5;
/// The first wait between them; each further one doubles.
const FIRST_WAIT: Duration = Duration::from_secs(1);
/// How long one attempt, or the command, may take.
const LIMIT: Duration = Duration::from_secs(20);

/// Who is told.
#[derive(Debug, Clone, Default)]
pub struct Alerts {
    /// An address that gets a JSON for each change of a state.
    pub webhook: Option<Uri>,
    /// A command, run by the shell when somebody is detected.
    pub on_detect: Option<String>,
    /// The folder that result folders are told from.
    pub state: PathBuf,
}

/// What a webhook is sent.
#[derive(Debug, Serialize)]
struct Message<'a> {
    job_id: &'a str,
    state: State,
    previous_state: State,
    time: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    straggler_rank: Option<&'a [u32]>,
    #[serde(skip_serializing_if = "Option::is_none")]
    straggler_node: Option<&'a [String]>,
    #[serde(skip_serializing_if = "Option::is_none")]
    cause: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    cost: Option<f64>,
    findings: &'a [String],
}

impl Alerts {
    /// Whether anybody is to be told of a change.
    #[must_use]
    pub fn concern(&self, news: &News) -> bool {
        let changed = news.before != news.now;
        (changed && self.webhook.is_some()) || (self.on_detect.is_some() && names_somebody(news))
    }

    /// Tells them; what fails is given back in words, one for each.
    pub async fn tell(&self, news: &News) -> Vec<String> {
        let mut failures = Vec::new();
        if let Some(address) = self.webhook.as_ref().filter(|_| news.before != news.now)
            && let Err(reason) = post(address, message(news)).await
        {
            failures.push(format!("the webhook was not reached in {ATTEMPTS} attempts: {reason}"));
        }
        if let Some(command) = self.on_detect.as_ref().filter(|_| names_somebody(news)) {
            let (command, news, alerts) = (command.clone(), news.clone(), self.clone());
            let run = tokio::task::spawn_blocking(move || alerts.run(&command, &news)).await;
            let run = run.unwrap_or_else(|_| Err("it could not be started".to_owned()));
            failures.extend(
                run.err()
                    .map(|reason| format!("the command on a detection failed: {reason}")),
            );
        }
        failures
    }

    fn run(&self, command: &str, news: &News) -> Result<(), String> {
        let Some(detection) = &news.detection else {
            return Ok(());
        };
        let ranks: Vec<String> = detection.ranks.iter().map(u32::to_string).collect();
        let folder = detection
            .folder
            .as_ref()
            .map(|folder| self.state.join(folder))
            .unwrap_or_default();
        let mut child = Command::new("sh")
            .arg("-c")
            .arg(command)
            .env("MT_DETECTOR_JOB", news.job.replace('\0', ""))
            .env("MT_DETECTOR_STATE", news.now.name())
            .env("MT_DETECTOR_RESULT", folder)
            .env("MT_DETECTOR_RANKS", ranks.join(","))
            .env("MT_DETECTOR_NODES", detection.nodes.join(",").replace('\0', ""))
            .env("MT_DETECTOR_CAUSE", &detection.cause)
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .spawn()
            .map_err(|error| error.to_string())?;
        let begin = std::time::Instant::now();
        loop {
            match child.try_wait().map_err(|error| error.to_string())? {
                Some(status) if status.success() => return Ok(()),
                Some(status) => return Err(status.to_string()),
                None if begin.elapsed() > LIMIT => {
                    let _ = child.kill();
                    let _ = child.wait();
                    return Err(format!("ended after {} s", LIMIT.as_secs()));
                }
                None => std::thread::sleep(Duration::from_millis(50)),
            }
        }
    }
}

fn names_somebody(news: &News) -> bool {
    news.detection.as_ref().is_some_and(|detection| !detection.is_empty())
}

fn message(news: &News) -> String {
    let detection = news.detection.as_ref();
    let message = Message {
        job_id: &news.job,
        state: news.now,
        previous_state: news.before,
        time: timestamp::format(news.time),
        straggler_rank: detection.map(|detection| detection.ranks.as_slice()),
        straggler_node: detection.map(|detection| detection.nodes.as_slice()),
        cause: detection.map(|detection| detection.cause.as_str()),
        cost: detection.and_then(|detection| detection.cost),
        findings: detection.map_or(&[], |detection| detection.findings.as_slice()),
    };
    // Texts and finite numbers always make JSON.
    serde_json::to_string(&message).unwrap_or_default()
}

/// Sends a JSON until it is taken.
async fn post(address: &Uri, json: String) -> Result<(), String> {
    let tls = ClientConfig::builder_with_provider(std::sync::Arc::new(default_provider()))
        .with_safe_default_protocol_versions()
        .map_err(|error| error.to_string())?;
    let tls = if address.scheme_str() == Some("https") {
        tls.with_native_roots().map_err(|error| error.to_string())?
    } else {
        tls.with_root_certificates(rustls::RootCertStore::empty())
    };
    let connector = HttpsConnectorBuilder::new()
        .with_tls_config(tls.with_no_client_auth())
        .https_or_http()
        .enable_http1()
        .build();
    let client: Client<_, axum::body::Body> = Client::builder(TokioExecutor::new()).build(connector);
    let mut wait = FIRST_WAIT;
    let mut attempt = 1;
    loop {
        let request = Request::builder()
            .method(Method::POST)
            .uri(address)
            .header(CONTENT_TYPE, "application/json")
            .body(axum::body::Body::from(Bytes::from(json.clone())))
            .map_err(|error| error.to_string())?;
        let reason = match tokio::time::timeout(LIMIT, client.request(request)).await {
            Ok(Ok(answer)) if answer.status().is_success() => return Ok(()),
            Ok(Ok(answer)) => format!("it answered {}", answer.status()),
            Ok(Err(error)) => error.to_string(),
            Err(_) => format!("no answer within {} s", LIMIT.as_secs()),
        };
        if attempt == ATTEMPTS {
            return Err(reason);
        }
        attempt += 1;
        tokio::time::sleep(wait).await;
        wait *= 2;
    }
}
