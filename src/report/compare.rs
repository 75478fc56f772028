//! Two results side by side: who became slow or recovered, which timers moved, steps and cost.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;

use schemars::JsonSchema;
use serde::Serialize;

use super::headline::seconds;
use super::stored::{Stored, StoredSummary};
use crate::contract::printable::on_one_line;
use crate::verdict::{Status, words};

/// Version of the layout.
pub const DIFFERENCE_VERSION: u32 = 1;
/// Timers that are told in words.
const TIMERS: usize = 10;

/// What is different in B from A.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct Difference {
    /// Version of this layout.
    pub schema_version: u32,
    /// The first result.
    pub a: Side,
    /// The second.
    pub b: Side,
    /// Ranks that are named in B and not in A.
    pub became_slow: Vec<RankChange>,
    /// Ranks that are named in A and not in B.
    pub recovered: Vec<RankChange>,
    /// Ranks that are named in both.
    pub still_slow: Vec<RankChange>,
    /// Nodes that are named in B and not in A.
    pub nodes_became_slow: Vec<String>,
    /// Nodes that are named in A and not in B.
    pub nodes_recovered: Vec<String>,
    /// Timers whose median moved by the threshold or more, the largest change first.
    pub timers: Vec<TimerChange>,
    /// Timers of A that B lacks.
    pub timers_gone: Vec<String>,
    /// Timers of B that A lacks.
    pub timers_new: Vec<String>,
    /// Share by which a timer's median must move to be told.
    pub threshold: f64,
    /// Mean step of B over that of A; null where either is not known.
    pub step_factor: Option<f64>,
    /// Whether B is worse: a rank or a node became slow, or its status is `fault` and A's is not.
    pub worse: bool,
}

/// One of two results.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct Side {
    /// Its folder.
    pub folder: String,
    /// Job id.
    pub job: String,
    /// What it comes to.
    pub status: Status,
    /// What costs the job most.
    pub cause: String,
    /// First iteration.
    pub first_iteration: i64,
    /// Last iteration.
    pub last_iteration: i64,
    /// When the first was over, UTC.
    pub first_time: Option<String>,
    /// When the last was over, UTC.
    pub last_time: Option<String>,
    /// Iterations.
    pub iterations: usize,
    /// Ranks.
    pub ranks: usize,
    /// Mean step, or the usual one where the mean is not known, seconds.
    pub step_seconds: Option<f64>,
    /// Growth of the steps over those with all faults mended.
    pub faults_share: Option<f64>,
    /// Seconds of the window that the faults cost.
    pub fault_seconds: Option<f64>,
    /// The same times the ranks, hours.
    pub fault_gpu_hours: Option<f64>,
}

/// A rank in both results.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct RankChange {
    /// The rank.
    pub rank: u32,
    /// Its node in A; null where it is not known.
    pub node_a: Option<String>,
    /// Its node in B.
    pub node_b: Option<String>,
    /// Its factor in A; null where it was not compared.
    pub factor_a: Option<f64>,
    /// Its factor in B.
    pub factor_b: Option<f64>,
}

/// A timer in both results.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct TimerChange {
    /// Name of the timer.
    pub timer: String,
    /// Median over the ranks of their means in A, seconds.
    pub seconds_a: f64,
    /// In B.
    pub seconds_b: f64,
    /// The second over the first.
    pub factor: f64,
}

/// Holds two results side by side; timers are told that moved by `threshold` (0.02 is 2 %) or more.
#[must_use]
pub fn compare(a: &Stored, b: &Stored, threshold: f64) -> Difference {
    let (slow_a, slow_b) = (named(&a.summary.anomaly_ranks), named(&b.summary.anomaly_ranks));
    let (nodes_a, nodes_b) = (named(&a.summary.anomaly_nodes), named(&b.summary.anomaly_nodes));
    let (known_a, known_b) = (Known::of(a), Known::of(b));
    let change = |rank: &u32| RankChange {
        rank: *rank,
        node_a: known_a.node(*rank),
        node_b: known_b.node(*rank),
        factor_a: known_a.factor(*rank),
        factor_b: known_b.factor(*rank),
    };
    let (side_a, side_b) = (side(a), side(b));
    let became_slow: Vec<RankChange> = slow_b.difference(&slow_a).map(change).collect();
    let nodes_became_slow: Vec<String> = nodes_b.difference(&nodes_a).cloned().collect();
    let worse_status = side_b.status == Status::Fault && side_a.status != Status::Fault;
    let (timers, timers_gone, timers_new) = timers(&a.summary, &b.summary, threshold);
    Difference {
        schema_version: DIFFERENCE_VERSION,
        step_factor: side_a
            .step_seconds
            .zip(side_b.step_seconds)
            .map(|(a, b)| b / a)
            .filter(|factor| factor.is_finite()),
        worse: worse_status || !became_slow.is_empty() || !nodes_became_slow.is_empty(),
        a: side_a,
        b: side_b,
        became_slow,
        recovered: slow_a.difference(&slow_b).map(change).collect(),
        still_slow: slow_a.intersection(&slow_b).map(change).collect(),
        nodes_became_slow,
        nodes_recovered: nodes_a.difference(&nodes_b).cloned().collect(),
        timers,
        timers_gone,
        timers_new,
        threshold,
    }
}

fn named<T: Ord + Clone>(items: &[T]) -> BTreeSet<T> {
    items.iter().cloned().collect()
}

fn side(stored: &Stored) -> Side {
    let summary = &stored.summary;
    let cost = summary.what_if.as_ref().filter(|cost| cost.is_told());
    Side {
        folder: stored.path.display().to_string(),
        job: summary.job.clone(),
        status: summary.status,
        cause: summary.cause.clone(),
        first_iteration: summary.window.first_iteration,
        last_iteration: summary.window.last_iteration,
        first_time: summary.window.first_time.clone(),
        last_time: summary.window.last_time.clone(),
        iterations: summary.window.iterations,
        ranks: summary.window.ranks,
        step_seconds: summary
            .what_if
            .as_ref()
            .and_then(|cost| cost.step_seconds)
            .or(summary.step_times.baseline_seconds),
        faults_share: cost.and_then(|cost| cost.faults_share),
        fault_seconds: cost.and_then(|cost| cost.seconds),
        fault_gpu_hours: cost.and_then(|cost| cost.gpu_hours),
    }
}

/// What a result knows of single ranks.
struct Known<'a> {
    stored: &'a Stored,
    position: BTreeMap<u32, usize>,
}

impl<'a> Known<'a> {
    fn of(stored: &'a Stored) -> Self {
        let ranks = stored
            .comparison
            .iter()
            .flat_map(|comparison| comparison.ranks.iter().enumerate());
        Self {
            stored,
            position: ranks.map(|(position, rank)| (rank.rank, position)).collect(),
        }
    }

    fn node(&self, rank: u32) -> Option<String> {
        let position = *self.position.get(&rank)?;
        self.stored
            .comparison
            .as_ref()
            .map(|comparison| comparison.ranks[position].node.clone())
    }

    /// The factor of the finding that names it, else that of the whole window.
    fn factor(&self, rank: u32) -> Option<f64> {
        let names = |finding: &&crate::verdict::Finding| finding.named && finding.ranks.contains(&rank);
        let of_finding = self
            .stored
            .summary
            .findings
            .iter()
            .filter(names)
            .filter_map(|finding| finding.factor)
            .reduce(f64::max);
        of_finding.or_else(|| {
            let position = *self.position.get(&rank)?;
            self.stored.comparison.as_ref()?.ranks[position].window.factor
        })
    }
}

fn timers(a: &StoredSummary, b: &StoredSummary, threshold: f64) -> (Vec<TimerChange>, Vec<String>, Vec<String>) {
    let of = |summary: &StoredSummary| -> BTreeMap<String, f64> {
        let known = summary
            .timers
            .iter()
            .filter_map(|timer| Some((timer.timer.clone(), timer.median_seconds?)));
        known.collect()
    };
    let (a, b) = (of(a), of(b));
    let mut moved: Vec<TimerChange> = a
        .iter()
        .filter_map(|(timer, &seconds_a)| {
            let seconds_b = *b.get(timer)?;
            let factor = seconds_b / seconds_a;
            (factor.is_finite() && (factor - 1.0).abs() >= threshold).then(|| TimerChange {
                timer: timer.clone(),
                seconds_a,
                seconds_b,
                factor,
            })
        })
        .collect();
    let change = |timer: &TimerChange| (timer.seconds_b - timer.seconds_a).abs();
    moved.sort_by(|a, b| change(b).total_cmp(&change(a)).then_with(|| a.timer.cmp(&b.timer)));
    let only = |here: &BTreeMap<String, f64>, there: &BTreeMap<String, f64>| {
        here.keys()
            .filter(|timer| !there.contains_key(*timer))
            .cloned()
            .collect()
    };
    (moved, only(&a, &b), only(&b, &a))
}

/// The difference in words.
#[must_use]
pub fn difference_in_words(difference: &Difference) -> String {
    let mut out = String::new();
    let mut line = |key: &str, value: String| {
        // Writing to a string can't fail.
        let _ = writeln!(out, "{}", on_one_line(&format!("{key:<6}{value}")));
    };
    for (key, side) in [("A", &difference.a), ("B", &difference.b)] {
        let step = side
            .step_seconds
            .map_or(String::new(), |step| format!(", steps {}", seconds(step)));
        let cost = match (side.fault_seconds, side.faults_share) {
            (Some(lost), Some(share)) if lost > 0.0 => {
                format!(", faults cost {} (+{:.1} %)", seconds(lost), 100.0 * share)
            }
            _ => String::new(),
        };
        let (first, last) = (side.first_iteration, side.last_iteration);
        line(
            key,
            format!(
                "{}: job {}, iterations {first}-{last}: {}, cause {}{step}{cost}",
                side.folder,
                side.job,
                side.status.name(),
                side.cause
            ),
        );
    }
    let changes = [
        ("SLOW", "became slow", &difference.became_slow),
        ("OK", "recovered", &difference.recovered),
        ("slow", "still slow", &difference.still_slow),
    ];
    for (key, what, ranks) in changes.into_iter().filter(|(_, _, ranks)| !ranks.is_empty()) {
        line(
            key,
            format!(
                "{}: {}",
                what,
                ranks.iter().take(8).map(rank_in_words).collect::<Vec<_>>().join("; ") + &more(ranks.len(), 8)
            ),
        );
    }
    if !difference.nodes_became_slow.is_empty() {
        line(
            "SLOW",
            format!("named now: {}", words::nodes(&difference.nodes_became_slow)),
        );
    }
    if !difference.nodes_recovered.is_empty() {
        line(
            "OK",
            format!("no longer named: {}", words::nodes(&difference.nodes_recovered)),
        );
    }
    if let Some(factor) = difference.step_factor {
        line("steps", format!("{:+.1} %", 100.0 * (factor - 1.0)));
    }
    for timer in difference.timers.iter().take(TIMERS) {
        let percent = 100.0 * (timer.factor - 1.0);
        line(
            "timer",
            format!(
                "{} {} to {} ({percent:+.1} %)",
                timer.timer,
                seconds(timer.seconds_a),
                seconds(timer.seconds_b)
            ),
        );
    }
    if difference.timers.len() > TIMERS {
        line(
            "timer",
            format!("{} further ones moved", difference.timers.len() - TIMERS),
        );
    }
    for (what, timers) in [
        ("only in A", &difference.timers_gone),
        ("only in B", &difference.timers_new),
    ] {
        if !timers.is_empty() {
            line("timer", format!("{what}: {}", timers.join(", ")));
        }
    }
    let nothing = difference.became_slow.is_empty() && difference.recovered.is_empty() && difference.timers.is_empty();
    if nothing && difference.a.status == difference.b.status {
        line(
            "OK",
            format!(
                "nobody became slow or recovered, no timer moved by {:.1} % or more",
                100.0 * difference.threshold
            ),
        );
    }
    out
}

fn more(count: usize, shown: usize) -> String {
    if count > shown {
        format!("; and {} more", count - shown)
    } else {
        String::new()
    }
}

fn rank_in_words(change: &RankChange) -> String {
    let factor = |factor: Option<f64>| factor.map_or("not compared".to_owned(), |factor| format!("{factor:.2} x"));
    let node = match (&change.node_a, &change.node_b) {
        (Some(a), Some(b)) if a == b => format!(" on {a}"),
        (Some(a), Some(b)) => format!(", which moved from {a} to {b}"),
        (Some(node), None) | (None, Some(node)) => format!(" on {node}"),
        (None, None) => String::new(),
    };
    format!(
        "rank {}{node} ({} to {})",
        change.rank,
        factor(change.factor_a),
        factor(change.factor_b)
    )
}
