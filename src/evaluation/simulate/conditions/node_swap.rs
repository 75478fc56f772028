//! A restart after which the ranks of a node go on on another one.

use std::ops::Range;

use serde::{Deserialize, Serialize};

use super::super::culprits::Fault;
use super::super::effects::Effects;
use super::super::error::ScenarioError;
use super::super::plan::PlannedStep;
use super::super::scenario::Scenario;
use super::super::validate::{below, between};
use super::{Acting, Condition, Guilt};

/// A node that is replaced by a spare one; without a factor above 1 the spare is sound and nobody is to blame.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct NodeSwap {
    /// Number of the node that is left.
    pub node: usize,
    /// Multiplier of the compute time on the new node.
    #[serde(default = "sound")]
    pub factor: f64,
    /// First iteration after the restart; none is lost.
    pub from: u32,
    /// Name of the new node.
    #[serde(default = "spare")]
    pub to: String,
}

fn sound() -> f64 {
    1.0
}

fn spare() -> String {
    "gpu-spare".to_owned()
}

impl Condition for NodeSwap {
    fn validate(&self, scenario: &Scenario) -> Result<(), ScenarioError> {
        below("condition", "node", self.node, scenario.nodes())?;
        between("condition", self.factor, 1.0, 1000.0)?;
        let names = (0..scenario.nodes()).map(|node| scenario.node_name(node * scenario.ranks_per_node));
        if self.to.is_empty() || names.into_iter().any(|name| name == self.to) {
            let problem = format!("`{}` can't be the spare node's name", self.to);
            return Err(ScenarioError::new(
                "condition",
                problem,
                "a name that no node of the job has",
            ));
        }
        scenario.within("condition", self.from)
    }

    fn prepare(&self, _scenario: &Scenario) -> Box<dyn Acting> {
        Box::new(self.clone())
    }

    fn guilt(&self, scenario: &Scenario) -> Guilt {
        if self.factor > 1.0 {
            Guilt::of(Fault::Compute, scenario.ranks_of_node(self.node), Some(self.factor))
        } else {
            Guilt::default()
        }
    }

    fn restart(&self) -> Option<u32> {
        Some(self.from)
    }

    fn moved(&self, scenario: &Scenario) -> Option<(Range<usize>, &str)> {
        Some((scenario.ranks_of_node(self.node), &self.to))
    }
}

impl Acting for NodeSwap {
    fn act(&self, scenario: &Scenario, at: PlannedStep, effects: &mut Effects) {
        if at.run > 0 {
            for compute in &mut effects.compute[scenario.ranks_of_node(self.node)] {
                *compute *= self.factor;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::super::super::{Scenario, simulate};

    #[test]
    fn rows_and_label_name_the_node_of_the_time() {
        let scenario = Scenario {
            pp: 1,
            tp: 1,
            dp: 16,
            iterations: 30,
            trace: false,
            conditions: vec![
                "node-swap:node=1,factor=1.4,from=16,to=spare-7"
                    .parse()
                    .expect("a swap"),
            ],
            ..Scenario::default()
        };
        let job = simulate(&scenario).expect("a job");
        let text = |name| job.frame.column(name).expect("a column").str().expect("text");
        let (nodes, runs) = (text("node"), text("rerun_uuid"));
        let iterations = job.frame.column("iteration").expect("a column").i32().expect("numbers");
        let mut seen = BTreeSet::new();
        for ((node, run), iteration) in nodes.iter().zip(runs.iter()).zip(iterations.iter()) {
            let late = iteration.expect("an iteration") >= 16;
            seen.insert((late, run.expect("a run"), node.expect("a node")));
        }
        let told = [
            (false, "r0", "gpu-000"),
            (false, "r0", "gpu-001"),
            (true, "r1", "gpu-000"),
            (true, "r1", "spare-7"),
        ];
        assert_eq!(seen, BTreeSet::from(told));
        assert_eq!(job.label.slow_nodes, ["spare-7"]);
        assert_eq!(job.label.slow_ranks, (8..16).collect::<Vec<_>>());
    }

    #[test]
    fn a_second_restart_and_a_known_name_are_refused() {
        let swap = |text: &str| Scenario {
            conditions: vec![text.parse().expect("a swap")],
            ..Scenario::default()
        };
        let taken = swap("node-swap:node=1,from=16,to=gpu-002")
            .validate()
            .expect_err("a known name");
        assert!(taken.to_string().contains("gpu-002"), "{taken}");
        let mut twice = swap("node-swap:node=1,from=16");
        twice.rerun = Some("20".parse().expect("a rerun"));
        assert!(
            twice
                .validate()
                .expect_err("two restarts")
                .to_string()
                .contains("more than once")
        );
    }
}
