//! Why a rank, a node or a link was or was not named, from what a result folder holds.

mod gates;
mod link;
mod text;

use schemars::JsonSchema;
use serde::Serialize;

pub use self::link::LinkExplanation;
pub use self::text::text;
use super::stored::{Stored, StoredError};
use crate::verdict::comparison::RankComparison;
use crate::verdict::words;

/// What is asked about.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Asked {
    /// A rank.
    Rank(u32),
    /// All ranks of a node.
    Node(String),
    /// Both directions between two ranks.
    Link(u32, u32),
}

/// The answer.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct Explanation {
    /// Version of this layout.
    pub schema_version: u32,
    /// Job id.
    pub job: String,
    /// Who or what was asked about.
    pub about: String,
    /// Whether it is among the anomalies.
    pub named: bool,
    /// Ranks with their gates; empty for a link.
    pub ranks: Vec<RankExplanation>,
    /// Directions of a link; empty for ranks and nodes.
    pub links: Vec<LinkExplanation>,
    /// What the findings say of it.
    pub findings: Vec<String>,
}

/// A rank with its gates.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct RankExplanation {
    /// The rank.
    pub rank: u32,
    /// Its node.
    pub node: String,
    /// Its pipeline stage.
    pub stage: u32,
    /// Its replica.
    pub replica: u32,
    /// Whether it is among the anomaly ranks.
    pub named: bool,
    /// What it had to pass, in order.
    pub gates: Vec<GateExplanation>,
    /// What each algorithm calls it: slow or fast; empty where there was no vote.
    pub labels: Vec<LabelExplanation>,
    /// What would have been needed to name it; null where it is named.
    pub needed: Option<String>,
    /// Its factor over time beside its peers'.
    pub course: Vec<CoursePoint>,
}

/// One thing to pass.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct GateExplanation {
    /// Its name.
    pub gate: String,
    /// Whether it was passed; null where it was not asked.
    pub passed: Option<bool>,
    /// What was measured; null where nothing was.
    pub measured: Option<f64>,
    /// What was needed; null where that is no number.
    pub needed: Option<f64>,
    /// Both in words.
    pub says: String,
}

/// What an algorithm calls a rank.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct LabelExplanation {
    /// The algorithm.
    pub algorithm: String,
    /// Whether it calls it slow.
    pub slow: bool,
}

/// A rank beside its peers in some iterations.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct CoursePoint {
    /// First of the iterations.
    pub iteration: i64,
    /// Its factor; null where it is not known.
    pub factor: Option<f64>,
    /// The one in the middle of its peers'.
    pub peers_middle: Option<f64>,
    /// The lowest of its peers'.
    pub peers_low: Option<f64>,
    /// The highest.
    pub peers_high: Option<f64>,
}

/// Version of the layout.
pub const EXPLANATION_VERSION: u32 = 1;

/// Explains.
///
/// # Errors
/// A folder without what was asked for.
pub fn explain(stored: &Stored, asked: &Asked) -> Result<Explanation, StoredError> {
    let summary = &stored.summary;
    let mut explanation = Explanation {
        schema_version: EXPLANATION_VERSION,
        job: summary.job.clone(),
        about: String::new(),
        named: false,
        ranks: Vec::new(),
        links: Vec::new(),
        findings: Vec::new(),
    };
    match asked {
        Asked::Rank(rank) => {
            let found = ranks(stored, |known| known.rank == *rank)?;
            let there = || format!("its ranks are {}", all_ranks(stored));
            explanation.about = format!("rank {rank}");
            explanation.ranks = found.map_err(|()| stored.lacks(explanation.about.clone(), there()))?;
            explanation.named = summary.anomaly_ranks.contains(rank);
        }
        Asked::Node(node) => {
            let found = ranks(stored, |known| &known.node == node)?;
            let there = || format!("its nodes are {}", words::nodes(&all_nodes(stored)));
            explanation.about = format!("node {node}");
            explanation.ranks = found.map_err(|()| stored.lacks(explanation.about.clone(), there()))?;
            explanation.named = summary.anomaly_nodes.contains(node);
        }
        Asked::Link(from, to) => {
            explanation.about = format!("the link between ranks {from} and {to}");
            explanation.links = link::directions(stored, *from, *to)?;
            explanation.named = explanation.links.iter().any(|link| link.slow);
        }
    }
    let concerns = |finding: &&crate::verdict::Finding| match asked {
        Asked::Rank(rank) => finding.ranks.contains(rank),
        Asked::Node(node) => finding.nodes.contains(node),
        Asked::Link(from, to) => finding
            .links
            .iter()
            .any(|link| (link.sender, link.receiver) == (*from, *to) || (link.sender, link.receiver) == (*to, *from)),
    };
    explanation.findings = summary
        .findings
        .iter()
        .filter(concerns)
        .map(|finding| finding.says.clone())
        .collect();
    Ok(explanation)
}

/// The explained ranks that are wanted; the inner error says that there is none.
fn ranks(
    stored: &Stored,
    wanted: impl Fn(&RankComparison) -> bool,
) -> Result<Result<Vec<RankExplanation>, ()>, StoredError> {
    let no_comparison = || {
        let why = match (&stored.summary.unjudged, stored.summary.windows.as_slice()) {
            (Some(why), _) => format!("nothing was compared ({why})"),
            (None, []) => "the rules were not the peer rules, or no timer of computing is there".to_owned(),
            (None, windows) => {
                let folders: Vec<String> = windows
                    .iter()
                    .map(|part| format!("window-{}-{}", part.window.first_iteration, part.window.last_iteration))
                    .collect();
                format!("each slow window has a folder of its own: {}", folders.join(", "))
            }
        };
        stored.lacks("a comparison of ranks".to_owned(), why)
    };
    let comparison = stored.comparison.as_ref().ok_or_else(no_comparison)?;
    let found: Vec<RankExplanation> = comparison
        .ranks
        .iter()
        .filter(|rank| wanted(rank))
        .map(|rank| gates::explained(&stored.summary, comparison, rank))
        .collect();
    Ok(if found.is_empty() { Err(()) } else { Ok(found) })
}

fn all_ranks(stored: &Stored) -> String {
    let ranks: Vec<u32> = stored
        .comparison
        .iter()
        .flat_map(|comparison| comparison.ranks.iter().map(|rank| rank.rank))
        .collect();
    words::ranks(&ranks)
        .trim_start_matches("ranks ")
        .trim_start_matches("rank ")
        .to_owned()
}

fn all_nodes(stored: &Stored) -> Vec<String> {
    let nodes: std::collections::BTreeSet<&String> = stored
        .comparison
        .iter()
        .flat_map(|comparison| comparison.ranks.iter().map(|rank| &rank.node))
        .collect();
    nodes.into_iter().cloned().collect()
}
