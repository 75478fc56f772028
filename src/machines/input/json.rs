//! JSON: lines of long rows, and Prometheus' answers to `query_range`.

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader};
use std::path::Path;

use serde::Deserialize;
use serde_json::Value;

use super::table::{LongRows, time_ms};
use crate::machines::error::MachinesError;
use crate::machines::samples::Collector;
use crate::source::timestamp;

#[derive(Deserialize)]
struct Row<'a> {
    #[serde(alias = "time", alias = "ts")]
    timestamp: Value,
    #[serde(default, alias = "job_id")]
    job: std::borrow::Cow<'a, str>,
    #[serde(alias = "instance", alias = "host", alias = "hostname", alias = "machine")]
    node: std::borrow::Cow<'a, str>,
    #[serde(alias = "metric_name", alias = "name")]
    metric: std::borrow::Cow<'a, str>,
    value: Option<f64>,
}

/// Reads long rows, a JSON object a line. Lines that are none are counted.
///
/// # Errors
/// A file that can't be read, or without a single good line.
pub fn read_lines(path: &Path, collector: &mut Collector) -> Result<(), MachinesError> {
    let file = std::fs::File::open(path).map_err(MachinesError::read(path))?;
    let mut rows = LongRows::new(collector);
    let (mut good, mut reason) = (0_u64, None);
    let mut line = Vec::new();
    let mut reader = BufReader::new(file);
    loop {
        line.clear();
        if reader.read_until(b'\n', &mut line).map_err(MachinesError::read(path))? == 0 {
            break;
        }
        if line.iter().all(u8::is_ascii_whitespace) {
            continue;
        }
        match serde_json::from_slice::<Row<'_>>(&line) {
            Ok(row) => {
                good += 1;
                rows.add(
                    time_of(&row.timestamp),
                    Some(&row.job),
                    Some(&row.node),
                    Some(&row.metric),
                    row.value,
                );
            }
            Err(error) => {
                reason.get_or_insert(error.to_string());
                rows.add(None, None, None, None, None);
            }
        }
    }
    match reason {
        Some(reason) if good == 0 => Err(MachinesError::content(path, format!("no line is a sample: {reason}"))),
        _ => Ok(()),
    }
}

fn time_of(value: &Value) -> Option<i64> {
    match value {
        Value::String(text) => time_ms(text),
        Value::Number(number) => Some(timestamp::from_epoch(number.as_f64()?)?.div_euclid(1000)),
        _ => None,
    }
}

#[derive(Deserialize)]
struct Answer {
    status: Option<String>,
    error: Option<String>,
    data: Option<Data>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Data {
    result_type: String,
    result: Vec<Matrix>,
}

#[derive(Deserialize)]
struct Matrix {
    metric: BTreeMap<String, String>,
    #[serde(default)]
    values: Vec<(f64, String)>,
}

/// Labels that name a machine, the best first.
const NODE_LABELS: [&str; 6] = ["node", "Hostname", "hostname", "host", "kubernetes_node", "instance"];

/// Reads the answer of Prometheus to a `query_range`. Several series of a machine (its GPUs) become their mean.
///
/// # Errors
/// A file that can't be read or is no such answer; series without the label of a machine or without a name.
pub fn read_matrix(path: &Path, collector: &mut Collector) -> Result<(), MachinesError> {
    let bytes = std::fs::read(path).map_err(MachinesError::read(path))?;
    let wrong = |reason: String| MachinesError::content(path, reason);
    let answer: Answer = serde_json::from_slice(&bytes)
        .map_err(|error| wrong(format!("no answer of Prometheus to query_range: {error}")))?;
    let data = match answer.data {
        Some(data) if answer.status.as_deref() != Some("error") => data,
        _ => return Err(wrong(format!("Prometheus said: {}", answer.error.unwrap_or_default()))),
    };
    if data.result_type != "matrix" {
        let reason = format!(
            "resultType is `{}`; a matrix is needed (query_range, not query)",
            data.result_type
        );
        return Err(wrong(reason));
    }
    collector.wants_job("");
    let mut merged: BTreeMap<(String, String), BTreeMap<i64, (f64, u32)>> = BTreeMap::new();
    for series in &data.result {
        let Some(node) = NODE_LABELS.iter().find_map(|label| series.metric.get(*label)) else {
            let labels = series.metric.keys().cloned().collect::<Vec<_>>().join(", ");
            return Err(wrong(format!(
                "a series has no label `node`, `Hostname` or `instance`, only: {labels}"
            )));
        };
        // An expression drops the name: the file's name stands for it then.
        let stem = || {
            path.file_stem()
                .map(|stem| stem.to_string_lossy().into_owned())
                .unwrap_or_default()
        };
        let metric = series.metric.get("__name__").cloned().unwrap_or_else(stem);
        let host = node.rsplit_once(':').map_or(node.as_str(), |(host, _)| host);
        let times = merged.entry((metric, host.to_owned())).or_default();
        for (seconds, text) in &series.values {
            let Some(value) = text.parse::<f64>().ok().filter(|value| value.is_finite()) else {
                collector.unreadable();
                continue;
            };
            let slot = times.entry((seconds * 1000.0).round() as i64).or_insert((0.0, 0));
            *slot = (slot.0 + value, slot.1 + 1);
        }
    }
    for ((metric, node), times) in merged {
        let (metric, node) = (collector.metric(&metric), collector.node(&node));
        let series = collector.series(metric, node);
        for (time, (sum, count)) in times {
            collector.push(series, time, sum / f64::from(count));
        }
    }
    Ok(())
}
