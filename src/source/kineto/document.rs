//! A trace's file, event by event: what is no step and no kernel is passed over.

use std::collections::BTreeMap;
use std::io::{BufReader, Read};

use serde::Deserialize;

use super::steps::{Interval, Step, StepTimes, times_of};
use crate::source::compressed;
use crate::source::discover::SourceFile;
use crate::source::error::SourceError;
use crate::source::json::values::{Broken, JsonValues};

/// Kernels of a trace: more are damage, and would take all memory.
const MOST_KERNELS: usize = 1 << 26;

/// What is taken of a trace.
#[derive(Debug, Default)]
pub(super) struct Trace {
    pub rank: Option<i64>,
    /// Position of the rank in each parallel group, where the trace lists the groups' ranks.
    pub positions: BTreeMap<&'static str, i64>,
    /// Steps as the host ran them, by number.
    pub steps: BTreeMap<i64, Step>,
    /// The same as the device ran them, where it says so.
    device_steps: BTreeMap<i64, Step>,
    computing: Vec<Interval>,
    communicating: Vec<Interval>,
    /// Nanoseconds since 1970 at which the trace's times begin.
    base: f64,
}

#[derive(Deserialize)]
struct Event<'a> {
    ph: Option<&'a str>,
    #[serde(borrow)]
    cat: Option<std::borrow::Cow<'a, str>>,
    #[serde(borrow)]
    name: Option<std::borrow::Cow<'a, str>>,
    ts: Option<Number<'a>>,
    dur: Option<Number<'a>>,
}

/// A number, which some writers put in quotes.
#[derive(Deserialize)]
#[serde(untagged)]
enum Number<'a> {
    Plain(f64),
    Text(&'a str),
}

impl Number<'_> {
    fn get(&self) -> Option<f64> {
        let number = match self {
            Self::Plain(number) => Some(*number),
            Self::Text(text) => text.parse().ok(),
        };
        number.filter(|number| number.is_finite())
    }
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct DistributedInfo {
    rank: Option<i64>,
    pg_config: Vec<ProcessGroup>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct ProcessGroup {
    pg_desc: String,
    ranks: Vec<i64>,
}

/// What Megatron-LM calls its process groups.
const GROUPS: [(&str, &str); 4] = [
    ("TENSOR_MODEL_PARALLEL_GROUP", "tp"),
    ("PIPELINE_MODEL_PARALLEL_GROUP", "pp"),
    ("DATA_PARALLEL_GROUP", "dp"),
    ("CONTEXT_PARALLEL_GROUP", "cp"),
];

/// Reads a file.
///
/// # Errors
/// One that can't be read, or is no JSON.
pub(super) fn read(file: &SourceFile) -> Result<Trace, SourceError> {
    let path = file.path.as_path();
    let input: Box<dyn Read + Send> = compressed::open(file)?;
    let mut values = JsonValues::new(BufReader::with_capacity(1 << 18, input));
    let mut trace = Trace::default();
    trace
        .members(&mut values)
        .map_err(|Broken { line, reason }| SourceError::corrupt(path, format!("line {line}"), reason))?;
    Ok(trace)
}

type Values = JsonValues<BufReader<Box<dyn Read + Send>>>;

impl Trace {
    fn members(&mut self, values: &mut Values) -> Result<(), Broken> {
        let mut value = Vec::new();
        values.expect(b'{')?;
        loop {
            if values.peek()? == Some(b'}') {
                return Ok(());
            }
            values.value(&mut value)?;
            let key: String = serde_json::from_slice(&value).map_err(|_| Broken {
                line: values.line(),
                reason: "the name of a member is no text".to_owned(),
            })?;
            values.expect(b':')?;
            if key == "traceEvents" {
                self.events(values)?;
            } else {
                values.value(&mut value)?;
                match key.as_str() {
                    "distributedInfo" => self.group(serde_json::from_slice(&value).unwrap_or_default()),
                    "baseTimeNanoseconds" => self.base = serde_json::from_slice(&value).unwrap_or_default(),
                    _ => {}
                }
            }
            match values.peek()? {
                Some(b',') => values.expect(b',')?,
                _ => return values.expect(b'}'),
            }
        }
    }

    fn group(&mut self, info: DistributedInfo) {
        self.rank = info.rank;
        let Some(rank) = info.rank else { return };
        for (described, name) in GROUPS {
            let group = info.pg_config.iter().find(|group| group.pg_desc == described);
            let position = group.and_then(|group| group.ranks.iter().position(|&member| member == rank));
            if let Some(position) = position {
                self.positions.insert(name, position as i64);
            }
        }
    }

    fn events(&mut self, values: &mut Values) -> Result<(), Broken> {
        let mut value = Vec::new();
        values.expect(b'[')?;
        loop {
            if values.peek()? == Some(b']') {
                return values.expect(b']');
            }
            if !values.value(&mut value)? {
                return Err(Broken {
                    line: values.line(),
                    reason: "the file breaks off here".to_owned(),
                });
            }
            self.event(&value);
            if values.peek()? == Some(b',') {
                values.expect(b',')?;
            }
        }
    }

    /// Takes an event; one of another form says nothing of steps or kernels.
    fn event(&mut self, text: &[u8]) {
        let Ok(event) = serde_json::from_slice::<Event<'_>>(text) else {
            return;
        };
        let (Some("X"), Some(name)) = (event.ph, &event.name) else {
            return;
        };
        let (begin, length) = (event.ts.and_then(|ts| ts.get()), event.dur.and_then(|dur| dur.get()));
        let (Some(begin), Some(length)) = (begin, length.filter(|&length| length >= 0.0)) else {
            return;
        };
        let span = Interval {
            begin,
            end: begin + length,
        };
        let category = event.cat.as_deref().unwrap_or_default();
        if let Some(number) = name
            .strip_prefix("ProfilerStep#")
            .and_then(|number| number.parse().ok())
        {
            let steps = if category.starts_with("gpu") {
                &mut self.device_steps
            } else {
                &mut self.steps
            };
            let step = steps.entry(number).or_insert(Step { span });
            step.span.begin = step.span.begin.min(span.begin);
            step.span.end = step.span.end.max(span.end);
            return;
        }
        // Older versions write a capital; copies and settings of memory are the device's work as well.
        let is_device = ["kernel", "gpu_memcpy", "gpu_memset"]
            .iter()
            .any(|known| category.eq_ignore_ascii_case(known));
        if !is_device || self.computing.len() + self.communicating.len() >= MOST_KERNELS {
            return;
        }
        let communicates = ["nccl", "rccl", "ncclDevKernel", "mscclKernel"]
            .iter()
            .any(|known| name.starts_with(known));
        if communicates {
            self.communicating.push(span);
        } else {
            self.computing.push(span);
        }
    }

    /// The times of each step.
    pub fn times(&self) -> Vec<StepTimes> {
        let of_device = !self.device_steps.is_empty();
        times_of(
            &self.steps,
            if of_device { &self.device_steps } else { &self.steps },
            &self.computing,
            &self.communicating,
            self.base / 1e3,
        )
    }
}
