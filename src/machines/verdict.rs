//! What is said of a task.

use schemars::JsonSchema;
use serde::Serialize;

use super::samples::Quality;

/// Version of the verdict's JSON.
pub const SCHEMA_VERSION: u32 = 1;

/// Outcome in a word.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Status {
    /// A machine is named.
    Fault,
    /// All machines could be compared and none stands out.
    Healthy,
    /// The machines could not be compared; the reason says why.
    CannotTell,
}

/// What is wrong with a machine.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Kind {
    /// A metric lies away from the peers', lastingly.
    Different,
    /// A metric kept its value while the peers' went on changing.
    Stuck,
}

/// A machine that is named, by the metric that named it.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct Finding {
    /// The machine.
    pub node: String,
    /// What is wrong.
    pub kind: Kind,
    /// The metric that named it.
    pub metric: String,
    /// The metric's unit; empty when unknown.
    pub unit: String,
    /// Whether its values lie `higher` or `lower` than the peers', or `constant`.
    pub direction: &'static str,
    /// Start, UTC.
    pub since: String,
    /// End, UTC; of the window when it still lasted.
    pub until: String,
    /// Length in seconds.
    pub seconds: f64,
    /// Whether it lasted to the end of the window.
    pub lasts_to_end: bool,
    /// Size-free score; see `threshold`. For a stuck sensor: how unlikely its run is.
    pub score: f64,
    /// Smallest score that names a machine.
    pub threshold: f64,
    /// Mean value of the machine meanwhile; of a stuck sensor its one value.
    pub value: f64,
    /// Mean of the peers' median meanwhile.
    pub peers: f64,
    /// By how much healthy machines' means differ over the same time.
    pub usual_difference: f64,
    /// Other metrics in which the machine differs too.
    pub seen_in: Vec<SeenIn>,
    /// The machine beside its peers.
    pub curve: Curve,
}

/// Another metric that shows the same machine.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct SeenIn {
    /// The metric.
    pub metric: String,
    /// Its score.
    pub score: f64,
}

/// A machine's values beside its peers' over the window.
#[derive(Debug, Clone, Default, PartialEq, Serialize, JsonSchema)]
pub struct Curve {
    /// Seconds between points.
    pub every_seconds: f64,
    /// The machine; nothing where it has no samples.
    pub machine: Vec<Option<f32>>,
    /// Median of all machines.
    pub peers_median: Vec<Option<f32>>,
    /// Lowest of the other machines.
    pub peers_low: Vec<Option<f32>>,
    /// Highest of the other machines.
    pub peers_high: Vec<Option<f32>>,
}

/// A machine without samples.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct Missing {
    /// The machine.
    pub node: String,
    /// Its last sample, UTC; nothing if it has none in the window.
    pub last_sample: Option<String>,
}

/// A machine that a later metric shows beside the one that decided: told, not blamed.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct AlsoDifferent {
    /// The machine.
    pub node: String,
    /// The metric.
    pub metric: String,
    /// Its score.
    pub score: f64,
}

/// What is said of a task.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct Verdict {
    /// [`SCHEMA_VERSION`].
    pub schema_version: u32,
    /// The job.
    pub job: String,
    /// Outcome.
    pub status: Status,
    /// Why nothing can be told.
    pub reason: Option<String>,
    /// The faulty machines, sorted.
    pub anomaly_nodes: Vec<String>,
    /// What to take out of service: the same machines, as one argument by commas.
    pub cordon: String,
    /// Machines that sent nothing for long; they are missing, not different.
    pub missing_nodes: Vec<Missing>,
    /// Start of the window, UTC.
    pub start: String,
    /// End of the window, UTC.
    pub end: String,
    /// Number of machines.
    pub machines: usize,
    /// Metrics in the order in which they were asked.
    pub metrics: Vec<String>,
    /// How machines were compared.
    pub method: &'static str,
    /// Smallest score that names a machine.
    pub threshold: f64,
    /// Probability that chance names a machine of a healthy task, at most; only where the scores' distribution is known.
    pub false_alarm_rate: Option<f64>,
    /// A finding a named machine.
    pub findings: Vec<Finding>,
    /// Machines that only other metrics show.
    pub also_different: Vec<AlsoDifferent>,
    /// What the reader should know.
    pub warnings: Vec<String>,
    /// What was left out of the samples.
    #[schemars(skip)]
    pub quality: Quality,
}
