//! The samples of one task: a time series for each metric and machine.

use rustc_hash::FxHashMap;

use super::error::MachinesError;
use super::names::Names;

/// Samples of one metric on one machine, in order of time, one a moment.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Series {
    /// Milliseconds since [`Task::start_ms`].
    pub times_ms: Vec<i32>,
    /// The readings, as many as times; all finite.
    pub values: Vec<f32>,
}

/// One metric of all machines.
#[derive(Debug, Clone, PartialEq)]
pub struct Metric {
    /// Canonical name (`names.toml`), or the file's own.
    pub name: String,
    /// A series a machine, in the order of [`Task::nodes`]; empty where the machine has none.
    pub series: Vec<Series>,
}

/// What was left out or mended while the samples were read.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, serde::Serialize)]
pub struct Quality {
    /// Samples that were kept.
    pub samples: u64,
    /// Rows of other jobs.
    pub other_jobs: u64,
    /// Rows outside of the judged minutes.
    pub outside_window: u64,
    /// Rows without a time, node, metric or finite value.
    pub unreadable: u64,
    /// Samples of a moment that the series already had; the last one was kept.
    pub duplicates: u64,
    /// Counters that fell (a reset); the step was left out.
    pub counter_resets: u64,
}

/// Machine metrics of one training task.
#[derive(Debug, Clone, PartialEq)]
pub struct Task {
    /// Job id; empty when the files have none.
    pub job: String,
    /// Milliseconds since 1970-01-01 UTC of the window's start.
    pub start_ms: i64,
    /// Length of the window in milliseconds.
    pub length_ms: i32,
    /// Machines, sorted by name.
    pub nodes: Vec<String>,
    /// Metrics, sorted by name.
    pub metrics: Vec<Metric>,
    /// What was left out.
    pub quality: Quality,
}

impl Task {
    /// The task as it was between two moments, in milliseconds since its start, both ends included.
    #[must_use]
    pub fn part(&self, from_ms: i32, end_ms: i32) -> Self {
        let part = |series: &Series| {
            let first = series.times_ms.partition_point(|&time| time < from_ms);
            let last = series.times_ms.partition_point(|&time| time <= end_ms).max(first);
            Series {
                times_ms: series.times_ms[first..last].iter().map(|time| time - from_ms).collect(),
                values: series.values[first..last].to_vec(),
            }
        };
        let metric = |metric: &Metric| Metric {
            name: metric.name.clone(),
            series: metric.series.iter().map(part).collect(),
        };
        Self {
            job: self.job.clone(),
            start_ms: self.start_ms + i64::from(from_ms),
            length_ms: end_ms - from_ms,
            nodes: self.nodes.clone(),
            metrics: self.metrics.iter().map(metric).collect(),
            quality: self.quality,
        }
    }

    /// Keeps some machines only.
    #[must_use]
    pub fn of_machines(mut self, keep: &dyn Fn(&str) -> bool) -> Self {
        let kept: Vec<bool> = self.nodes.iter().map(|node| keep(node)).collect();
        for metric in &mut self.metrics {
            let mut kept = kept.iter();
            metric.series.retain(|_| kept.next().copied().unwrap_or(false));
        }
        let mut kept = kept.into_iter();
        self.nodes.retain(|_| kept.next().unwrap_or(false));
        self
    }
}

/// Which samples are judged.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Minutes {
    /// The last so many before the last sample; all when `None`.
    pub last: Option<f64>,
    /// Milliseconds since 1970 of the first moment.
    pub from_ms: Option<i64>,
    /// Milliseconds since 1970 of the last moment.
    pub to_ms: Option<i64>,
}

impl Minutes {
    /// The last so many.
    #[must_use]
    pub fn last(minutes: f64) -> Self {
        Self {
            last: Some(minutes),
            ..Self::default()
        }
    }

    /// All between two moments.
    #[must_use]
    pub fn between(from_ms: i64, to_ms: i64) -> Self {
        Self {
            last: None,
            from_ms: Some(from_ms),
            to_ms: Some(to_ms),
        }
    }

    fn hold(self, time_ms: i64) -> bool {
        self.from_ms.is_none_or(|from| time_ms >= from) && self.to_ms.is_none_or(|to| time_ms <= to)
    }
}

/// Collects samples in any order.
#[derive(Debug, Default)]
pub struct Collector {
    job_wanted: Option<String>,
    minutes: Minutes,
    jobs: Vec<String>,
    nodes: Vec<String>,
    node_of: FxHashMap<String, u32>,
    metrics: Vec<String>,
    metric_of: FxHashMap<String, u32>,
    series_of: FxHashMap<(u32, u32), u32>,
    series: Vec<Series>,
    keys: Vec<(u32, u32)>,
    base_ms: Option<i64>,
    quality: Quality,
}

impl Collector {
    /// Collects the samples of one job, or of the only one there is.
    #[must_use]
    pub fn new(job: Option<&str>, minutes: Minutes) -> Self {
        Self {
            job_wanted: job.map(str::to_owned),
            minutes,
            ..Self::default()
        }
    }

    /// Whether rows of this job are wanted; they are counted when not. Rows without a job are of the one that is asked for.
    pub fn wants_job(&mut self, job: &str) -> bool {
        if let Some(wanted) = &self.job_wanted
            && wanted != job
            && !job.is_empty()
        {
            self.quality.other_jobs += 1;
            return false;
        }
        if self.jobs.last().is_none_or(|last| last != job) && !self.jobs.iter().any(|known| known == job) {
            self.jobs.push(job.to_owned());
        }
        true
    }

    /// Counts a row that can't be used.
    pub fn unreadable(&mut self) {
        self.quality.unreadable += 1;
    }

    /// The number of a machine.
    pub fn node(&mut self, name: &str) -> u32 {
        number_of(name, &mut self.node_of, &mut self.nodes)
    }

    /// The number of a metric.
    pub fn metric(&mut self, name: &str) -> u32 {
        number_of(name, &mut self.metric_of, &mut self.metrics)
    }

    /// The number of the series of a metric on a machine.
    pub fn series(&mut self, metric: u32, node: u32) -> u32 {
        let next = self.series.len() as u32;
        let number = *self.series_of.entry((metric, node)).or_insert(next);
        if number == next {
            self.series.push(Series::default());
            self.keys.push((metric, node));
        }
        number
    }

    /// Adds a sample.
    pub fn push(&mut self, series: u32, time_ms: i64, value: f64) {
        if !self.minutes.hold(time_ms) {
            self.quality.outside_window += 1;
            return;
        }
        let base = *self.base_ms.get_or_insert(time_ms);
        let value = value as f32;
        match i32::try_from(time_ms - base) {
            Ok(time) if value.is_finite() => {
                let series = &mut self.series[series as usize];
                series.times_ms.push(time);
                series.values.push(value);
                self.quality.samples += 1;
            }
            Ok(_) => self.quality.unreadable += 1,
            Err(_) => self.quality.outside_window += 1,
        }
    }

    /// Sorts the samples, keeps the last minutes where so many are asked for, and gives metrics their canonical names.
    ///
    /// # Errors
    /// [`MachinesError::SeveralJobs`], or [`MachinesError::NoSamples`].
    pub fn finish(mut self, names: &Names) -> Result<Task, MachinesError> {
        if self.job_wanted.is_none() && self.jobs.len() > 1 {
            self.jobs.sort();
            let mut first = self.jobs.iter().take(5).cloned().collect::<Vec<_>>().join(", ");
            if self.jobs.len() > 5 {
                first += ", ...";
            }
            return Err(MachinesError::SeveralJobs {
                count: self.jobs.len(),
                names: first,
            });
        }
        let Some(base) = self.base_ms.filter(|_| self.quality.samples > 0) else {
            let of = self.job_wanted.map(|job| format!(" of job {job}")).unwrap_or_default();
            let mut more = match self.quality.other_jobs {
                0 => String::new(),
                rows => format!("; {rows} rows are of other jobs"),
            };
            if self.quality.outside_window > 0 {
                more += &format!("; {} samples are of other times", self.quality.outside_window);
            }
            return Err(MachinesError::NoSamples(format!(
                "no machine metrics{of} in the files{more}"
            )));
        };
        let last = self.series.iter().flat_map(|series| series.times_ms.iter().max()).max();
        let first = self.series.iter().flat_map(|series| series.times_ms.iter().min()).min();
        let (last, mut first) = (last.copied().unwrap_or(0), first.copied().unwrap_or(0));
        if let Some(minutes) = self.minutes.last {
            let length = (minutes * 60_000.0).clamp(0.0, f64::from(i32::MAX)) as i32;
            first = first.max(last.saturating_sub(length));
        }
        let mut quality = self.quality;
        let mut order: Vec<usize> = (0..self.nodes.len()).collect();
        order.sort_by(|&a, &b| self.nodes[a].cmp(&self.nodes[b]));
        let mut place = vec![0; order.len()];
        for (new, &old) in order.iter().enumerate() {
            place[old] = new;
        }
        let mut metrics: std::collections::BTreeMap<String, Vec<Series>> = std::collections::BTreeMap::new();
        for (&(metric, node), series) in self.keys.iter().zip(std::mem::take(&mut self.series)) {
            let mapped = names.canonical(&self.metrics[metric as usize]);
            let series = tidy(series, first, &mapped, &mut quality);
            let all = metrics
                .entry(mapped.name.to_owned())
                .or_insert_with(|| vec![Series::default(); self.nodes.len()]);
            let slot = &mut all[place[node as usize]];
            if slot.times_ms.is_empty() {
                *slot = series;
            } else {
                quality.duplicates += series.times_ms.len() as u64;
            }
        }
        let metrics = metrics
            .into_iter()
            .filter(|(_, series)| series.iter().any(|series| !series.times_ms.is_empty()))
            .map(|(name, series)| Metric { name, series });
        Ok(Task {
            job: self.job_wanted.or_else(|| self.jobs.pop()).unwrap_or_default(),
            start_ms: base + i64::from(first),
            length_ms: last.saturating_sub(first),
            nodes: order.iter().map(|&old| self.nodes[old].clone()).collect(),
            metrics: metrics.collect(),
            quality,
        })
    }
}

fn number_of(name: &str, known: &mut FxHashMap<String, u32>, names: &mut Vec<String>) -> u32 {
    if let Some(&number) = known.get(name) {
        return number;
    }
    let number = names.len() as u32;
    known.insert(name.to_owned(), number);
    names.push(name.to_owned());
    number
}

/// Sorts by time from `first` on, keeps the last sample of a moment, makes a rate of a counter, applies the scale.
fn tidy(mut series: Series, first: i32, mapped: &super::names::Mapped<'_>, quality: &mut Quality) -> Series {
    if !series.times_ms.is_sorted() {
        let mut order: Vec<u32> = (0..series.times_ms.len() as u32).collect();
        order.sort_by_key(|&row| series.times_ms[row as usize]);
        series = Series {
            times_ms: order.iter().map(|&row| series.times_ms[row as usize]).collect(),
            values: order.iter().map(|&row| series.values[row as usize]).collect(),
        };
    }
    let mut tidy = Series {
        times_ms: Vec::with_capacity(series.times_ms.len()),
        values: Vec::with_capacity(series.values.len()),
    };
    for (&time, &value) in series.times_ms.iter().zip(&series.values) {
        if time < first {
            quality.outside_window += 1;
            quality.samples -= 1;
            continue;
        }
        if tidy.times_ms.last() == Some(&(time - first)) {
            quality.duplicates += 1;
            quality.samples -= 1;
            if let Some(last) = tidy.values.last_mut() {
                *last = value * mapped.scale;
            }
            continue;
        }
        tidy.times_ms.push(time - first);
        tidy.values.push(value * mapped.scale);
    }
    if mapped.counter { rate(&tidy, quality) } else { tidy }
}

/// Increase per second between neighbouring samples; a fall is a reset and makes no sample.
fn rate(series: &Series, quality: &mut Quality) -> Series {
    let mut rates = Series::default();
    for pair in 1..series.times_ms.len() {
        let seconds = (series.times_ms[pair] - series.times_ms[pair - 1]) as f32 / 1000.0;
        let increase = series.values[pair] - series.values[pair - 1];
        if increase < 0.0 {
            quality.counter_resets += 1;
            continue;
        }
        rates.times_ms.push(series.times_ms[pair]);
        rates.values.push(increase / seconds);
    }
    rates
}
