//! Rows of the table `megatron_metrics`, collected into data frames.

use polars::prelude::*;

use super::scenario::Scenario;

/// Kind of a row, the column `metric_name`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub enum Metric {
    /// Position in a parallel group.
    Group,
    /// Duration of a timer in an iteration.
    Timer,
    /// Calls of a timer in an iteration.
    Trace,
}

impl Metric {
    /// The `metric_name`.
    pub fn name(self) -> &'static str {
        match self {
            Self::Group => "megatron_parallel_group_rank",
            Self::Timer => "megatron_timers",
            Self::Trace => "megatron_timers_trace",
        }
    }
}

/// What all rows of an iteration share.
#[derive(Debug, Clone, Copy)]
pub struct Stamp {
    /// Milliseconds since 1970 (UTC), whole seconds.
    pub timestamp: i64,
    /// The iteration.
    pub iteration: u32,
    /// Number of the run.
    pub run: usize,
}

/// Rows waiting to become a frame.
#[derive(Debug)]
pub struct Rows {
    job: String,
    cluster: String,
    nodes: Vec<String>,
    ranks_per_node: usize,
    timestamp: Vec<i64>,
    metric: Vec<Metric>,
    subname: Vec<&'static str>,
    rank: Vec<i32>,
    iteration: Vec<i32>,
    run: Vec<u8>,
    values: Vec<f64>,
    ends: Vec<usize>,
}

impl Rows {
    /// No rows yet.
    pub fn new(scenario: &Scenario) -> Self {
        Self {
            job: scenario.job.clone(),
            cluster: scenario.cluster.clone(),
            nodes: (0..scenario.nodes())
                .map(|node| scenario.node_name(node * scenario.ranks_per_node))
                .collect(),
            ranks_per_node: scenario.ranks_per_node,
            timestamp: Vec::new(),
            metric: Vec::new(),
            subname: Vec::new(),
            rank: Vec::new(),
            iteration: Vec::new(),
            run: Vec::new(),
            values: Vec::new(),
            ends: Vec::new(),
        }
    }

    /// Number of rows waiting.
    pub fn len(&self) -> usize {
        self.rank.len()
    }

    /// Whether no row is waiting.
    pub fn is_empty(&self) -> bool {
        self.rank.is_empty()
    }

    /// Adds a row; numbers are kept to the microsecond.
    pub fn push(
        &mut self,
        stamp: Stamp,
        metric: Metric,
        subname: &'static str,
        rank: usize,
        values: impl IntoIterator<Item = f64>,
    ) {
        self.timestamp.push(stamp.timestamp);
        self.metric.push(metric);
        self.subname.push(subname);
        // Ranks and iterations are validated to fit.
        self.rank.push(rank as i32);
        self.iteration.push(stamp.iteration as i32);
        self.run.push(stamp.run as u8);
        self.values.extend(values.into_iter().map(|v| (v * 1e6).round() / 1e6));
        self.ends.push(self.values.len());
    }

    /// Takes the waiting rows out as a frame with the columns of `megatron_metrics`.
    ///
    /// # Errors
    /// The frame could not be built.
    pub fn take(&mut self) -> PolarsResult<DataFrame> {
        let height = self.len();
        let node = |rank: &i32| self.nodes[*rank as usize / self.ranks_per_node].as_str();
        let run = |run: &u8| if *run == 0 { "r0" } else { "r1" };
        let mut lists = ListPrimitiveChunkedBuilder::<Float64Type>::new(
            "metric_values".into(),
            height,
            self.values.len(),
            DataType::Float64,
        );
        let mut begin = 0;
        for &end in &self.ends {
            lists.append_slice(&self.values[begin..end]);
            begin = end;
        }
        let timestamp =
            Int64Chunked::from_slice("timestamp".into(), &self.timestamp).into_datetime(TimeUnit::Milliseconds, None);
        let columns = vec![
            timestamp.into_series().into_column(),
            text("job", (0..height).map(|_| self.job.as_str())),
            text("metric_name", self.metric.iter().map(|m| m.name())),
            text("subname", self.subname.iter().copied()),
            Column::new("rank".into(), self.rank.as_slice()),
            Column::new("iteration".into(), self.iteration.as_slice()),
            text("node", self.rank.iter().map(node)),
            text("cluster", (0..height).map(|_| self.cluster.as_str())),
            lists.finish().into_series().into_column(),
            text("attributes", (0..height).map(|_| "{}")),
            text("rerun_uuid", self.run.iter().map(run)),
        ];
        let frame = DataFrame::new(height, columns)?;
        self.timestamp.clear();
        self.metric.clear();
        self.subname.clear();
        self.rank.clear();
        self.iteration.clear();
        self.run.clear();
        self.values.clear();
        self.ends.clear();
        Ok(frame)
    }
}

fn text<'a>(name: &str, values: impl ExactSizeIterator<Item = &'a str>) -> Column {
    let mut builder = StringChunkedBuilder::new(name.into(), values.len());
    for value in values {
        builder.append_value(value);
    }
    builder.finish().into_series().into_column()
}
