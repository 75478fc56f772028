//! The service over HTTP: polls, analyses and alerts behind it, answers in front.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use axum::Router;
use axum::extract::{DefaultBodyLimit, Path, Request, State as Shared};
use axum::http::header::{
    AUTHORIZATION, CONTENT_SECURITY_POLICY, CONTENT_TYPE, WWW_AUTHENTICATE, X_CONTENT_TYPE_OPTIONS,
};
use axum::http::{HeaderValue, StatusCode};
use axum::middleware::{self, Next};
use axum::response::{Html, IntoResponse, Json, Response};
use axum::routing::get;
use serde::Serialize;
use serde_json::json;
use subtle::ConstantTimeEq;
use tokio::net::TcpListener;
use tokio::sync::{Semaphore, mpsc};

use super::alerts::Alerts;
use super::analysis::Analyst;
use super::answers::{HistoryAnswer, JobAnswer, JobLine, ServiceAnswer};
use super::error::ServiceError;
use super::feed::Feed;
use super::known::Due;
use super::state::StateFolder;
use super::watched::Watched;
use super::watcher::{News, Watcher};
use super::{openapi, page, prometheus};
use crate::source::Micros;
use crate::source::clickhouse::Secret;

/// Analyses side by side; each uses every processor for a few seconds.
const ANALYSES_AT_ONCE: usize = 2;
/// Requests side by side; more wait.
const REQUESTS_AT_ONCE: usize = 256;
/// The longest that a request may take.
const REQUEST_LIMIT: Duration = Duration::from_secs(30);
/// The largest body: none is needed.
const MOST_BODY: usize = 16 << 10;
/// The longest wait between polls that fail.
const LONGEST_BACKOFF: Duration = Duration::from_secs(300);
/// Longest job id that is watched, in bytes.
const MOST_ID: usize = 1024;

/// What a service is made of.
pub struct Service {
    /// The watched jobs.
    pub watcher: Watcher,
    /// Where their steps come from.
    pub feed: Box<dyn Feed>,
    /// How slow windows are analysed.
    pub analyst: Analyst,
    /// Who is told.
    pub alerts: Alerts,
    /// What survives a restart.
    pub state: StateFolder,
    /// Time between polls.
    pub check_interval: Duration,
    /// What a request must bring, where anything.
    pub token: Option<Secret>,
    /// Tells the operator; one line each.
    pub log: Box<dyn Fn(&str) + Send + Sync>,
    /// Analyses that ended.
    pub analyses: AtomicU64,
}

fn now() -> Micros {
    chrono::Utc::now().timestamp_micros()
}

/// Serves until the process ends; `ready` is told the address that is listened at.
///
/// # Errors
/// An address that can't be listened at, a system without threads.
pub fn serve(service: Service, listen: SocketAddr, ready: impl FnOnce(SocketAddr)) -> Result<(), ServiceError> {
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build()
        .map_err(ServiceError::Threads)?;
    let service = Arc::new(service);
    runtime.block_on(async {
        let unheard = |source| ServiceError::Listen {
            address: listen.to_string(),
            source,
        };
        let listener = TcpListener::bind(listen).await.map_err(unheard)?;
        ready(listener.local_addr().map_err(unheard)?);
        watch(&service);
        axum::serve(listener, router(service)).await.map_err(unheard)
    })
}

/// Starts polls, analyses and alerts.
pub fn watch(service: &Arc<Service>) {
    let (due_to, due) = mpsc::unbounded_channel();
    let (news_to, news) = mpsc::unbounded_channel();
    tokio::spawn(analyses(Arc::clone(service), due, news_to.clone()));
    tokio::spawn(alerts(Arc::clone(service), news));
    let service = Arc::clone(service);
    // Queries wait on a runtime of their own, so that a thread must.
    std::thread::spawn(move || {
        loop {
            let wait = poll(&service, &due_to, &news_to);
            std::thread::sleep(wait);
        }
    });
}

/// One poll; gives how long to wait for the next.
fn poll(service: &Service, due: &mpsc::UnboundedSender<Due>, news: &mpsc::UnboundedSender<News>) -> Duration {
    let begin = std::time::Instant::now();
    let wait = match service.watcher.poll(&*service.feed, now()) {
        Ok(polled) => {
            // Receivers go with the process.
            polled.due.into_iter().for_each(|one| drop(due.send(one)));
            polled.news.into_iter().for_each(|one| drop(news.send(one)));
            service.check_interval
        }
        Err(error) => {
            (service.log)(&format!("the poll failed, the next one follows: {error}"));
            let failures = service.watcher.health().failures_in_a_row.min(16);
            service
                .check_interval
                .saturating_mul(1 << failures.saturating_sub(1))
                .min(LONGEST_BACKOFF.max(service.check_interval))
        }
    };
    keep(service);
    wait.saturating_sub(begin.elapsed())
}

fn keep(service: &Service) {
    if let Err(error) = service.state.keep_changes(&service.watcher) {
        (service.log)(&error.to_string());
    }
}

async fn analyses(service: Arc<Service>, mut due: mpsc::UnboundedReceiver<Due>, news: mpsc::UnboundedSender<News>) {
    let places = Arc::new(Semaphore::new(ANALYSES_AT_ONCE));
    while let Some(due) = due.recv().await {
        let Ok(place) = Arc::clone(&places).acquire_owned().await else {
            return;
        };
        let (service, news) = (Arc::clone(&service), news.clone());
        tokio::task::spawn_blocking(move || {
            let detection = service.analyst.analyse(&due);
            service.analyses.fetch_add(1, Ordering::Relaxed);
            if let Some(told) = service.watcher.detected(&due.job, detection) {
                drop(news.send(told));
            }
            keep(&service);
            drop(place);
        });
    }
}

async fn alerts(service: Arc<Service>, mut news: mpsc::UnboundedReceiver<News>) {
    while let Some(news) = news.recv().await {
        (service.log)(&line(&news));
        if service.alerts.concern(&news) {
            let service = Arc::clone(&service);
            tokio::spawn(async move {
                for failure in service.alerts.tell(&news).await {
                    (service.log)(&failure);
                }
            });
        }
    }
}

/// `job: active -> detected: ranks [5] on gpu-000`.
fn line(news: &News) -> String {
    let mut line = format!("{}: {} -> {}", news.job, news.before.name(), news.now.name());
    if let Some(detection) = &news.detection {
        line += &match &detection.error {
            Some(error) => format!(": no verdict: {error}"),
            None => format!(": ranks {:?} on [{}]", detection.ranks, detection.nodes.join(", ")),
        };
    }
    line
}

/// Every path of the service.
pub fn router(service: Arc<Service>) -> Router {
    let limited = middleware::from_fn_with_state(Arc::new(Semaphore::new(REQUESTS_AT_ONCE)), within_limits);
    let open = Router::new()
        .route("/healthz", get(async || "ok\n"))
        .route("/readyz", get(readyz));
    let guarded = Router::new()
        .route("/", get(about))
        .route("/metrics", get(figures))
        .route("/status", get(status))
        .route("/openapi.json", get(async || Json(openapi::document())))
        .route("/jobs", get(jobs))
        .route("/detect/{*job}", get(detect))
        .route("/undetect/{*job}", get(undetect))
        .route("/jobs/{job}", get(job).put(detect).delete(undetect))
        .route("/jobs/{job}/report", get(report))
        .route("/jobs/{job}/history", get(history))
        .route("/{*job}", get(job))
        .layer(middleware::from_fn_with_state(Arc::clone(&service), with_token));
    open.merge(guarded)
        .with_state(service)
        .layer(limited)
        .layer(DefaultBodyLimit::max(MOST_BODY))
}

async fn within_limits(Shared(places): Shared<Arc<Semaphore>>, request: Request, next: Next) -> Response {
    let answered = async {
        let _place = places.acquire().await;
        next.run(request).await
    };
    let mut answer = match tokio::time::timeout(REQUEST_LIMIT, answered).await {
        Ok(answer) => answer,
        Err(_) => failure(StatusCode::SERVICE_UNAVAILABLE, "too busy; try again"),
    };
    answer
        .headers_mut()
        .insert(X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
    answer
}

async fn with_token(Shared(service): Shared<Arc<Service>>, request: Request, next: Next) -> Response {
    let Some(token) = &service.token else {
        return next.run(request).await;
    };
    let given = request
        .headers()
        .get(AUTHORIZATION)
        .map(HeaderValue::as_bytes)
        .and_then(|given| given.strip_prefix(b"Bearer "));
    // In a time that does not tell how much of it is right.
    if given.is_some_and(|given| given.ct_eq(token.reveal().as_bytes()).into()) {
        return next.run(request).await;
    }
    let mut answer = failure(StatusCode::UNAUTHORIZED, "a token is needed: Authorization: Bearer ...");
    answer
        .headers_mut()
        .insert(WWW_AUTHENTICATE, HeaderValue::from_static("Bearer"));
    answer
}

fn failure(status: StatusCode, why: &str) -> Response {
    (status, Json(json!({ "error": why }))).into_response()
}

fn unknown(job: &str) -> Response {
    failure(
        StatusCode::NOT_FOUND,
        &format!("no job `{job}` is watched; GET /detect/<job> watches one"),
    )
}

async fn about(Shared(service): Shared<Arc<Service>>) -> Json<ServiceAnswer> {
    Json(ServiceAnswer::new(
        service.watcher.jobs(BTreeMap::len),
        &service.watcher.health(),
    ))
}

async fn readyz(Shared(service): Shared<Arc<Service>>) -> Response {
    let health = service.watcher.health();
    match (&health.error, health.last_success) {
        (Some(error), _) => (
            StatusCode::SERVICE_UNAVAILABLE,
            format!("the table was not reached: {error}\n"),
        )
            .into_response(),
        (None, None) => (StatusCode::SERVICE_UNAVAILABLE, "no poll has ended yet\n").into_response(),
        (None, Some(_)) => "ready\n".into_response(),
    }
}

async fn figures(Shared(service): Shared<Arc<Service>>) -> Response {
    let analyses = service.analyses.load(Ordering::Relaxed);
    let health = service.watcher.health();
    let text = service
        .watcher
        .jobs(|jobs| prometheus::metrics(jobs, &health, analyses, now()));
    ([(CONTENT_TYPE, "text/plain; version=0.0.4; charset=utf-8")], text).into_response()
}

async fn status(Shared(service): Shared<Arc<Service>>) -> Response {
    let health = service.watcher.health();
    let page = service.watcher.jobs(|jobs| page::page(jobs, &health));
    (
        [(CONTENT_SECURITY_POLICY, "default-src 'none'; style-src 'unsafe-inline'")],
        Html(page),
    )
        .into_response()
}

async fn jobs(Shared(service): Shared<Arc<Service>>) -> Json<Vec<JobLine>> {
    Json(service.watcher.jobs(|jobs| jobs.values().map(JobLine::from).collect()))
}

async fn job(Shared(service): Shared<Arc<Service>>, Path(job): Path<String>) -> Response {
    answer(&service, &job, |watched| JobAnswer::from(watched))
}

/// What `look` makes of a watched job, as JSON.
fn answer<T: Serialize>(service: &Service, job: &str, look: impl FnOnce(&Watched) -> T) -> Response {
    match service.watcher.job(job, look) {
        Some(answer) => Json(answer).into_response(),
        None => unknown(job),
    }
}

async fn detect(Shared(service): Shared<Arc<Service>>, Path(job): Path<String>) -> Response {
    if job.is_empty() || job.len() > MOST_ID {
        return failure(StatusCode::BAD_REQUEST, &format!("a job id has 1 to {MOST_ID} bytes"));
    }
    if service.watcher.register(&job, now()) {
        let service = Arc::clone(&service);
        // Whoever registered a job can rely on it.
        let _ = tokio::task::spawn_blocking(move || keep(&service)).await;
    }
    answer(&service, &job, |watched| JobAnswer::from(watched))
}

async fn undetect(Shared(service): Shared<Arc<Service>>, Path(job): Path<String>) -> Response {
    if !service.watcher.unregister(&job) {
        return unknown(&job);
    }
    let keeping = Arc::clone(&service);
    let _ = tokio::task::spawn_blocking(move || keep(&keeping)).await;
    Json(json!({ "job_id": job, "status": "unregistered" })).into_response()
}

async fn history(Shared(service): Shared<Arc<Service>>, Path(job): Path<String>) -> Response {
    answer(&service, &job, |watched| HistoryAnswer::from(watched))
}

/// The page of the last verdict, or its text where the result folder holds no page.
async fn report(Shared(service): Shared<Arc<Service>>, Path(job): Path<String>) -> Response {
    let last_result = |watched: &Watched| {
        let mut newest_first = watched.history.iter().rev();
        newest_first.find_map(|detection| detection.folder.clone())
    };
    let Some(last) = service.watcher.job(&job, last_result) else {
        return unknown(&job);
    };
    let Some(folder) = last.map(|folder| service.state.path().join(folder)) else {
        return failure(StatusCode::NOT_FOUND, "there is no verdict on this job yet");
    };
    let read = |name: &'static str| -> Option<Vec<u8>> { std::fs::read(PathBuf::from(&folder).join(name)).ok() };
    if let Some(page) = read("report.html") {
        return ([(CONTENT_TYPE, "text/html; charset=utf-8")], page).into_response();
    }
    match read("summary.txt") {
        Some(text) => ([(CONTENT_TYPE, "text/plain; charset=utf-8")], text).into_response(),
        None => failure(StatusCode::NOT_FOUND, "the result of the last verdict is gone"),
    }
}
