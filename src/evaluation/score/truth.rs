//! What is true about a job, from labels that may lack what no verdict is held against.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::contract::defaults::WARMUP_ITERATIONS;
use crate::contract::rank_order::{Coordinates, Layout, Sizes};
use crate::evaluation::simulate::{DEFAULT_ORDER, Label};
use crate::verdict::Cause;

/// The part of a label that a verdict is held against; [`Label`]s hold it and more.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Truth {
    /// Kind of job.
    pub kind: String,
    /// Ranks that are slow, ascending.
    #[serde(default)]
    pub slow_ranks: Vec<u32>,
    /// Ranks that the timers can't tell from them, these included; empty where they stand for themselves.
    #[serde(default)]
    pub same_as: Vec<u32>,
    /// Nodes of the ranks with a fault.
    #[serde(default)]
    pub slow_nodes: Vec<String>,
    /// Nodes that may be named beside them.
    #[serde(default)]
    pub also_nodes: Vec<String>,
    /// Nodes of which each must be named for the network; empty where its cause can be told and no member can.
    #[serde(default)]
    pub network_nodes: Option<Vec<String>>,
    /// Whether nodes that are named beside the true ones are false alarms.
    #[serde(default = "yes")]
    pub judge_nodes: bool,
    /// The cause in one word.
    pub cause: String,
    /// Whether any cause is right, as where two cost about the same.
    #[serde(default)]
    pub any_cause: bool,
    /// What the verdict's status should be, where the label says it.
    #[serde(default)]
    pub status: Option<String>,
    /// Largest factor of the faults.
    #[serde(default)]
    pub strength: Option<f64>,
    /// Ranks whose network is at fault beside others that are slow themselves.
    #[serde(default)]
    pub network_ranks: Vec<u32>,
    /// The places of the network's faults where there are several or another fault: of each the nodes that are right.
    #[serde(default)]
    pub network_places: Vec<Vec<String>>,
    /// Both ends of the slow links.
    #[serde(default)]
    pub slow_links: Vec<[u32; 2]>,
    /// Ranks that were slow only in a run that was lost.
    #[serde(default)]
    pub lost_ranks: Vec<u32>,
    /// Tensor-parallel size.
    #[serde(default = "one")]
    pub tp: usize,
    /// Context-parallel size.
    #[serde(default = "one")]
    pub cp: usize,
    /// Data-parallel size.
    #[serde(default = "one")]
    pub dp: usize,
    /// Pipeline-parallel size.
    #[serde(default = "one")]
    pub pp: usize,
    /// Virtual stages a rank; above 1 the last stage sends to the first.
    #[serde(default = "one")]
    pub virtual_stages: usize,
    /// Order of the axes in the rank number.
    #[serde(default = "default_order")]
    pub order: String,
    /// Iterations to drop at the beginning of every run.
    #[serde(default = "default_warmup")]
    pub warmup: u32,
}

fn yes() -> bool {
    true
}

fn one() -> usize {
    1
}

fn default_order() -> String {
    DEFAULT_ORDER.to_owned()
}

fn default_warmup() -> u32 {
    WARMUP_ITERATIONS
}

impl From<&Label> for Truth {
    fn from(label: &Label) -> Self {
        let ranks = |ranks: &[usize]| ranks.iter().map(|&rank| rank as u32).collect();
        Self {
            kind: label.kind.clone(),
            slow_ranks: ranks(&label.slow_ranks),
            same_as: ranks(&label.same_as),
            slow_nodes: label.slow_nodes.clone(),
            also_nodes: label.also_nodes.clone(),
            network_nodes: label.network_nodes.clone(),
            judge_nodes: true,
            any_cause: false,
            status: Some(label.status.clone()),
            cause: label.cause.clone(),
            strength: label.strength,
            slow_links: label
                .slow_links
                .iter()
                .map(|ends| ends.map(|rank| rank as u32))
                .collect(),
            lost_ranks: ranks(&label.lost_ranks),
            network_ranks: ranks(&label.network_ranks),
            network_places: label.network_places.clone(),
            virtual_stages: label.virtual_stages,
            tp: label.tp,
            cp: label.cp,
            dp: label.dp,
            pp: label.pp,
            order: label.order.clone(),
            warmup: WARMUP_ITERATIONS,
        }
    }
}

impl Truth {
    /// Whether the network is at fault.
    #[must_use]
    pub fn has_network_fault(&self) -> bool {
        self.network_alone() || !self.network_ranks.is_empty()
    }

    /// Whether the network is at fault and nothing else is.
    #[must_use]
    pub fn network_alone(&self) -> bool {
        self.network_ranks.is_empty() && self.cause == Cause::Network.name()
    }

    /// The ranks that are slow themselves.
    #[must_use]
    pub fn computing(&self) -> &[u32] {
        if self.network_alone() { &[] } else { &self.slow_ranks }
    }

    /// The ranks that timers can't tell from those that are slow themselves, these included.
    #[must_use]
    pub fn alike(&self) -> &[u32] {
        if self.network_alone() || self.same_as.is_empty() {
            self.computing()
        } else {
            &self.same_as
        }
    }

    /// Whether there is nobody to name: nothing is wrong, or nobody is to blame.
    #[must_use]
    pub fn names_nobody(&self) -> bool {
        self.slow_ranks.is_empty() && !self.has_network_fault()
    }

    /// Nodes that are named and stand beside the true ones. Labels that name ranks and no nodes can't tell.
    #[must_use]
    pub fn false_nodes(&self, named: &[String]) -> usize {
        if !self.judge_nodes || (self.slow_nodes.is_empty() && !self.slow_ranks.is_empty()) {
            return 0;
        }
        let right = |node: &&String| self.slow_nodes.contains(node) || self.also_nodes.contains(node);
        named.iter().filter(|node| !right(node)).count()
    }

    /// The places of the network's faults, of each the nodes that are right.
    #[must_use]
    pub fn places(&self) -> Vec<Vec<String>> {
        if let Some(nodes) = &self.network_nodes {
            nodes.iter().map(|node| vec![node.clone()]).collect()
        } else if !self.network_places.is_empty() {
            self.network_places.clone()
        } else if self.has_network_fault() {
            vec![self.slow_nodes.clone()]
        } else {
            Vec::new()
        }
    }

    /// The ranks that the network's faults show at: those at fault and their pipeline neighbours; of a link only its
    /// ends.
    #[must_use]
    pub fn near(&self) -> Vec<u32> {
        let sizes = Sizes {
            tp: self.tp,
            cp: self.cp,
            ep: 1,
            dp: self.dp,
            pp: self.pp,
        };
        let at_fault = if self.network_ranks.is_empty() {
            &self.slow_ranks
        } else {
            &self.network_ranks
        };
        let mut near = at_fault.clone();
        let Ok(layout) = Layout::new(&self.order, sizes) else {
            return near;
        };
        let wraps = self.virtual_stages > 1;
        for &rank in at_fault {
            if self.slow_links.iter().flatten().any(|&end| end == rank) {
                continue;
            }
            let at = layout.coordinates(rank as usize);
            let before = at.pp.checked_sub(1).or(wraps.then_some(self.pp - 1));
            let after = Some(at.pp + 1).filter(|&stage| stage < self.pp).or(wraps.then_some(0));
            near.extend(before.into_iter().chain(after).map(|pp| {
                let end = Coordinates { pp, ..at };
                layout.rank(end) as u32
            }));
        }
        near
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::evaluation::simulate::Scenario;

    #[test]
    fn a_short_label_is_enough() {
        let truth: Truth = serde_json::from_str(r#"{"kind":"healthy","cause":"none","note":1}"#).expect("a truth");
        assert_eq!((truth.warmup, truth.pp, truth.order.as_str()), (10, 1, DEFAULT_ORDER));
        assert!(serde_json::from_str::<Truth>(r#"{"kind":"healthy"}"#).is_err());
    }

    #[test]
    fn a_simulated_label_says_the_same_through_its_file() {
        let scenario = Scenario {
            slow_ranks: vec!["13:1.35".parse().expect("a fault")],
            qkv: false,
            ..Scenario::default()
        };
        let label = Label::of(&scenario).expect("a label");
        let file = serde_json::to_string(&label).expect("JSON");
        assert_eq!(
            serde_json::from_str::<Truth>(&file).expect("a truth"),
            Truth::from(&label)
        );
    }

    #[test]
    fn neighbours_follow_the_order_of_the_axes() {
        let truth = |order: &str, rank| Truth {
            slow_ranks: vec![rank],
            order: order.to_owned(),
            ..serde_json::from_str(r#"{"kind":"nic-send","cause":"network","tp":2,"dp":4,"pp":4}"#).expect("a truth")
        };
        assert_eq!(truth("tp-dp-pp", 9).near(), [9, 1, 17]);
        assert_eq!(truth("tp-dp-pp", 1).near(), [1, 9]);
        assert_eq!(truth("tp-pp-dp", 11).near(), [11, 9, 13]);
        let mut link = truth("tp-dp-pp", 9);
        link.slow_ranks = vec![9, 17];
        link.slow_links = vec![[9, 17]];
        assert_eq!(link.near(), [9, 17]);
        let mut wrapped = truth("tp-dp-pp", 1);
        wrapped.virtual_stages = 2;
        assert_eq!(wrapped.near(), [1, 25, 9]);
    }

    #[test]
    fn the_network_alone_and_beside_a_slow_rank() {
        let truth = |text: &str| serde_json::from_str::<Truth>(text).expect("a truth");
        let alone = truth(r#"{"kind":"x","cause":"network","slow_ranks":[9],"same_as":[9],"slow_nodes":["a"]}"#);
        assert!(alone.network_alone() && alone.computing().is_empty() && alone.alike().is_empty());
        assert_eq!(alone.places(), [["a"]]);
        let beside = Truth {
            network_ranks: vec![3],
            ..alone
        };
        assert!(!beside.network_alone() && beside.has_network_fault());
        assert_eq!((beside.computing(), beside.near()), (&[9][..], vec![3]));
    }
}
