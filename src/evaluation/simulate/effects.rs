//! Which faults act in a given step, and how strongly on each rank.

use super::plan::PlannedStep;
use super::scenario::Scenario;
use crate::stats::random::Random;

/// Multipliers of one step. All vectors hold one value a rank.
#[derive(Debug, Clone)]
pub struct Effects {
    /// Compute time.
    pub compute: Vec<f64>,
    /// Time of what the rank sends.
    pub send: Vec<f64>,
    /// Time of what the rank receives.
    pub recv: Vec<f64>,
    /// Seconds added to the loading of each microbatch.
    pub loader: Vec<f64>,
    /// Slow links: from, to and the factor.
    pub links: Vec<(usize, usize, f64)>,
    /// Time of what goes over the network of the rank's node.
    pub network: Vec<f64>,
    /// Seconds added to the step.
    pub stall: f64,
}

impl Effects {
    /// The effects of `step`.
    pub fn at(scenario: &Scenario, step: PlannedStep) -> Self {
        let ranks = scenario.ranks();
        let mut effects = Self {
            compute: vec![1.0; ranks],
            send: vec![1.0; ranks],
            recv: vec![1.0; ranks],
            loader: vec![0.0; ranks],
            links: Vec::new(),
            network: vec![1.0; ranks],
            stall: 0.0,
        };
        let lost_fault = scenario.rerun.and_then(|rerun| rerun.lost).filter(|_| step.lost);
        if let Some(fault) = lost_fault {
            effects.compute[fault.rank] *= fault.factor;
        } else if acts(scenario, step) {
            effects.add_lasting(scenario);
        }
        for t in &scenario.transients {
            if step.iteration >= t.from && step.iteration - t.from < t.count {
                effects.compute[t.rank] *= t.factor;
            }
        }
        for stall in &scenario.stalls {
            if stall.iteration == step.iteration {
                effects.stall += stall.seconds;
            }
        }
        effects
    }

    fn add_lasting(&mut self, scenario: &Scenario) {
        for fault in &scenario.slow_ranks {
            self.compute[fault.rank] *= fault.factor;
        }
        for fault in &scenario.slow_nodes {
            for compute in &mut self.compute[scenario.ranks_of_node(fault.node)] {
                *compute *= fault.factor;
            }
        }
        for fault in &scenario.slow_send {
            self.send[fault.rank] *= fault.factor;
        }
        for fault in &scenario.slow_recv {
            self.recv[fault.rank] *= fault.factor;
        }
        for fault in &scenario.slow_loaders {
            self.loader[fault.rank] += fault.seconds;
        }
        for fault in &scenario.slow_node_networks {
            for network in &mut self.network[scenario.ranks_of_node(fault.node)] {
                *network *= fault.factor;
            }
        }
        for fault in &scenario.slow_links {
            self.links.push((fault.a, fault.b, fault.factor));
            self.links.push((fault.b, fault.a, fault.factor));
        }
        for fault in &scenario.slow_links_one_way {
            self.links.push((fault.a, fault.b, fault.factor));
        }
    }

    /// Multiplier of a transfer from one rank to another.
    pub fn transfer(&self, scenario: &Scenario, from: usize, to: usize) -> f64 {
        let link: f64 = self
            .links
            .iter()
            .filter(|(a, b, _)| (*a, *b) == (from, to))
            .map(|(_, _, factor)| factor)
            .product();
        if scenario.over_network(from, to) {
            self.send[from] * self.recv[to] * self.network[from].max(self.network[to]) * link
        } else {
            link
        }
    }

    /// Multiplier of a collective: a ring is as fast as its slowest member. Alone, or inside a node with links of its
    /// own, nothing goes over the network.
    pub fn collective(&self, scenario: &Scenario, members: &[usize]) -> f64 {
        let inside = |pair: &[usize]| !scenario.over_network(pair[0], pair[1]);
        if members.windows(2).all(inside) {
            return 1.0;
        }
        members
            .iter()
            .map(|&rank| self.send[rank].max(self.recv[rank]).max(self.network[rank]))
            .fold(1.0, f64::max)
    }
}

/// Whether the lasting faults act in `step`.
pub fn acts(scenario: &Scenario, step: PlannedStep) -> bool {
    let begun = scenario.onset.is_none_or(|onset| step.iteration >= onset);
    let over = scenario.until.is_some_and(|until| step.iteration > until);
    let drawn = scenario.flaky.is_none_or(|share| {
        let position = [step.run as u64, u64::from(step.iteration)];
        Random::stream(scenario.seed, "flaky", &position).uniform() < share
    });
    begun && !over && drawn
}
