//! Tables of text or numbers, row by row: long (a row a sample) or wide (a column a machine).

use std::path::Path;

use crate::machines::error::MachinesError;
use crate::machines::samples::Collector;
use crate::source::timestamp;

const TIMES: [&str; 4] = ["timestamp", "time", "ts", "Time"];
const NODES: [&str; 5] = ["node", "instance", "host", "hostname", "machine"];
const METRICS: [&str; 4] = ["metric", "metric_name", "name", "__name__"];
const VALUES: [&str; 2] = ["value", "metric_value"];

/// Which columns of a table hold what.
#[derive(Debug, Clone, PartialEq)]
pub enum Layout {
    /// A row a sample.
    Long {
        /// Place of the time.
        time: usize,
        /// Place of the job, if there is one.
        job: Option<usize>,
        /// Place of the machine.
        node: usize,
        /// Place of the metric.
        metric: usize,
        /// Place of the reading.
        value: usize,
    },
    /// A time and a column a machine.
    Wide {
        /// Place of the time.
        time: usize,
        /// Places of the machines.
        nodes: Vec<usize>,
    },
}

/// Reads the layout from the names of the columns.
///
/// # Errors
/// A table that is neither.
pub fn layout(path: &Path, names: &[String]) -> Result<Layout, MachinesError> {
    let place = |known: &[&str]| names.iter().position(|name| known.contains(&name.as_str()));
    let Some(time) = place(&TIMES) else {
        let reason = format!("no column `timestamp` among: {}", names.join(", "));
        return Err(MachinesError::content(path, reason));
    };
    let job = place(&["job", "job_id"]);
    let (node, metric, value) = (place(&NODES), place(&METRICS), place(&VALUES));
    match (node, metric, value) {
        (Some(node), Some(metric), Some(value)) => Ok(Layout::Long {
            time,
            job,
            node,
            metric,
            value,
        }),
        (None, None, None) => {
            let nodes: Vec<usize> = (0..names.len())
                .filter(|&place| place != time && Some(place) != job)
                .collect();
            if nodes.is_empty() {
                return Err(MachinesError::content(path, "a time column and no column of a machine"));
            }
            Ok(Layout::Wide { time, nodes })
        }
        _ => {
            let lacks = [("node", node), ("metric", metric), ("value", value)];
            let lacks: Vec<&str> = lacks
                .iter()
                .filter(|(_, place)| place.is_none())
                .map(|(name, _)| *name)
                .collect();
            let reason = format!("no column `{}` among: {}", lacks.join("`, `"), names.join(", "));
            Err(MachinesError::content(path, reason))
        }
    }
}

/// Name of the metric of a wide file: the file's name without its ending.
pub fn metric_of_file(path: &Path) -> String {
    path.file_stem()
        .map(|stem| stem.to_string_lossy().into_owned())
        .unwrap_or_default()
}

/// Milliseconds of a time as text.
pub fn time_ms(text: &str) -> Option<i64> {
    Some(timestamp::parse(text)?.div_euclid(1000))
}

/// Adds samples of a long table; remembers the last series, for rows of one series follow each other.
#[derive(Debug)]
pub struct LongRows<'a> {
    collector: &'a mut Collector,
    job: (String, bool),
    node: (String, u32),
    metric: (String, u32),
    last: Option<(u32, u32, u32)>,
}

impl<'a> LongRows<'a> {
    /// Starts with nothing known.
    pub fn new(collector: &'a mut Collector) -> Self {
        Self {
            collector,
            job: (String::new(), false),
            node: (String::new(), u32::MAX),
            metric: (String::new(), u32::MAX),
            last: None,
        }
    }

    /// Adds a row.
    pub fn add(
        &mut self,
        time_ms: Option<i64>,
        job: Option<&str>,
        node: Option<&str>,
        metric: Option<&str>,
        value: Option<f64>,
    ) {
        let Some(job) = job else {
            return self.collector.unreadable();
        };
        if !self.job.1 || self.job.0 != job {
            if !self.collector.wants_job(job) {
                return;
            }
            self.job = (job.to_owned(), true);
        }
        let (Some(time_ms), Some(node), Some(metric), Some(value)) = (time_ms, node, metric, value) else {
            return self.collector.unreadable();
        };
        if node.is_empty() || metric.is_empty() {
            return self.collector.unreadable();
        }
        if self.node.1 == u32::MAX || self.node.0 != node {
            self.node = (node.to_owned(), self.collector.node(node));
        }
        if self.metric.1 == u32::MAX || self.metric.0 != metric {
            self.metric = (metric.to_owned(), self.collector.metric(metric));
        }
        let series = match self.last {
            Some((metric, node, series)) if metric == self.metric.1 && node == self.node.1 => series,
            _ => self.collector.series(self.metric.1, self.node.1),
        };
        self.last = Some((self.metric.1, self.node.1, series));
        self.collector.push(series, time_ms, value);
    }
}
