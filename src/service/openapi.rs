//! The description of the HTTP interface, for clients that are generated.

use schemars::{JsonSchema, SchemaGenerator, generate::SchemaSettings};
use serde_json::{Value, json};

use super::answers::{HistoryAnswer, JobAnswer, JobLine, ServiceAnswer};

/// The document, OpenAPI 3.1.
#[must_use]
pub fn document() -> Value {
    let mut generator = SchemaSettings::draft2020_12()
        .with(|settings| settings.definitions_path = "/components/schemas".into())
        .into_generator();
    let job = answer::<JobAnswer>(&mut generator, "The job");
    let list = answer::<Vec<JobLine>>(&mut generator, "The watched jobs, by id");
    let history = answer::<HistoryAnswer>(&mut generator, "The verdicts so far, the newest last");
    let service = answer::<ServiceAnswer>(&mut generator, "The service");
    let text = |what: &str, kind: &str| json!({"description": what, "content": {kind: {"schema": {"type": "string"}}}});
    let unknown = json!({"description": "No such job is watched"});
    let id = json!([{"name": "job", "in": "path", "required": true, "schema": {"type": "string"},
        "description": "Job id, percent-encoded"}]);
    let get = |summary: &str, answer: &Value| json!({"get": {"summary": summary, "responses": {"200": answer}}});
    let of_job = |summary: &str, answer: &Value| json!({"summary": summary, "parameters": id, "responses": {"200": answer, "404": unknown}});
    json!({
        "openapi": "3.1.0",
        "info": {"title": "mt-detector serve", "version": env!("CARGO_PKG_VERSION"),
            "description": "Which ranks of the watched Megatron-LM jobs are slow."},
        "security": [{"token": []}, {}],
        "paths": {
            "/": get("Version and health", &service),
            "/healthz": get("Whether the program runs", &text("ok", "text/plain")),
            "/readyz": {"get": {"summary": "Whether the last poll reached the table", "responses": {
                "200": text("ready", "text/plain"), "503": text("Why not", "text/plain")}}},
            "/metrics": get("Figures for Prometheus", &text("Text format 0.0.4", "text/plain")),
            "/status": get("The status page", &text("A page", "text/html")),
            "/openapi.json": get("This document", &json!({"description": "OpenAPI 3.1", "content": {"application/json": {}}})),
            "/jobs": get("The watched jobs", &list),
            "/detect/{job}": {"get": of_job("Watch a job from now on", &job)},
            "/undetect/{job}": {"get": of_job("Watch it no more", &text("Done", "application/json"))},
            "/{job}": {"get": of_job("The state of a job", &job)},
            "/jobs/{job}": {
                "get": of_job("The state of a job", &job),
                "put": of_job("Watch a job from now on", &job),
                "delete": of_job("Watch it no more", &text("Done", "application/json")),
            },
            "/jobs/{job}/report": {"get": of_job("The report of the last verdict", &text("A page", "text/html"))},
            "/jobs/{job}/history": {"get": of_job("The verdicts so far", &history)},
        },
        "components": {
            "schemas": generator.take_definitions(true),
            "securitySchemes": {"token": {"type": "http", "scheme": "bearer"}},
        },
    })
}

fn answer<T: JsonSchema>(generator: &mut SchemaGenerator, what: &str) -> Value {
    json!({"description": what, "content": {"application/json": {"schema": generator.subschema_for::<T>()}}})
}
