//! Which faults a scenario can have, and when.

use super::error::ScenarioError;
use super::scenario::Scenario;
use super::validate::{below, between, out_of_range};
use crate::contract::rank_order::{Coordinates, Layout};

const MAX_FACTOR: f64 = 1000.0;

impl Scenario {
    pub(super) fn validate_faults(&self, layout: &Layout) -> Result<(), ScenarioError> {
        let ranks = self.ranks();
        let known = |setting, rank: usize| below(setting, "rank", rank, ranks);
        for (setting, list) in [
            ("slow-rank", &self.slow_ranks),
            ("slow-send", &self.slow_send),
            ("slow-recv", &self.slow_recv),
        ] {
            for fault in list {
                known(setting, fault.rank)?;
                between(setting, fault.factor, 1.0, MAX_FACTOR)?;
            }
        }
        for (setting, list) in [
            ("slow-node", &self.slow_nodes),
            ("slow-node-network", &self.slow_node_networks),
        ] {
            for fault in list {
                below(setting, "node", fault.node, self.nodes())?;
                between(setting, fault.factor, 1.0, MAX_FACTOR)?;
            }
        }
        for fault in &self.heavy_stages {
            below("heavy-stage", "stage", fault.stage, self.pp)?;
            between("heavy-stage", fault.factor, 0.1, MAX_FACTOR)?;
        }
        for (setting, list) in [
            ("slow-link", &self.slow_links),
            ("slow-link-one-way", &self.slow_links_one_way),
        ] {
            for fault in list {
                known(setting, fault.a)?;
                known(setting, fault.b)?;
                between(setting, fault.factor, 1.0, MAX_FACTOR)?;
                self.validate_link(layout, setting, fault.a, fault.b)?;
            }
        }
        for fault in &self.slow_loaders {
            known("slow-loader", fault.rank)?;
            between("slow-loader", fault.seconds, 0.0, 3600.0)?;
            let at = layout.coordinates(fault.rank);
            if at.tp != 0 || (at.pp != 0 && at.pp + 1 != self.pp) {
                return Err(ScenarioError::new(
                    "slow-loader",
                    format!("rank {} loads no data", fault.rank),
                    "tensor-parallel rank 0 of the first or the last stage",
                ));
            }
        }
        for fault in &self.transients {
            known("transient", fault.rank)?;
            between("transient", fault.factor, 1.0, MAX_FACTOR)?;
            self.within("transient", fault.from)?;
        }
        Ok(())
    }

    fn validate_link(&self, layout: &Layout, setting: &'static str, a: usize, b: usize) -> Result<(), ScenarioError> {
        let at = layout.coordinates(a);
        let mut partners = Vec::new();
        if at.pp > 0 {
            partners.push(Coordinates { pp: at.pp - 1, ..at });
        } else if self.interleaved() {
            partners.push(Coordinates { pp: self.pp - 1, ..at });
        }
        if at.pp + 1 < self.pp {
            partners.push(Coordinates { pp: at.pp + 1, ..at });
        } else if self.interleaved() {
            partners.push(Coordinates { pp: 0, ..at });
        }
        let mut partners: Vec<usize> = partners.into_iter().map(|at| layout.rank(at)).collect();
        // Of two interleaved stages each is before and after the other.
        partners.dedup();
        if partners.contains(&b) {
            return Ok(());
        }
        let allowed = if partners.is_empty() {
            "a job with at least 2 stages".to_owned()
        } else {
            let names: Vec<String> = partners.iter().map(usize::to_string).collect();
            format!("for rank {a}: {}", names.join(" or "))
        };
        Err(ScenarioError::new(
            setting,
            format!("ranks {a} and {b} are no pipeline neighbours"),
            allowed,
        ))
    }

    pub(super) fn validate_times(&self) -> Result<(), ScenarioError> {
        let govern = [
            ("onset", self.onset.is_some()),
            ("until", self.until.is_some()),
            ("flaky", self.flaky.is_some()),
        ];
        for (setting, set) in govern {
            if set && !self.has_lasting_fault() {
                return Err(ScenarioError::new(
                    setting,
                    "there is no fault that it could govern",
                    "together with a fault that lasts: slow-rank, slow-node, slow-send, slow-recv, \
                     slow-link, slow-link-one-way, slow-node-network or slow-loader",
                ));
            }
        }
        if let Some(onset) = self.onset {
            self.within("onset", onset)?;
        }
        if let Some(until) = self.until {
            self.within("until", until)?;
            if let Some(onset) = self.onset.filter(|onset| *onset > until) {
                let allowed = format!("{onset} (the onset) or later");
                return Err(out_of_range("until", until, allowed));
            }
        }
        if let Some(share) = self.flaky {
            between("flaky", share, 0.0, 1.0)?;
        }
        for stall in &self.stalls {
            self.within("stall", stall.iteration)?;
            between("stall", stall.seconds, 0.0, 1e6)?;
        }
        if let Some(rerun) = self.rerun {
            self.within("rerun", rerun.from)?;
            if let Some(lost) = rerun.lost {
                below("rerun", "rank", lost.rank, self.ranks())?;
                between("rerun", lost.factor, 1.0, MAX_FACTOR)?;
            }
        }
        Ok(())
    }

    fn within(&self, setting: &'static str, iteration: u32) -> Result<(), ScenarioError> {
        let (first, last) = (self.first_iteration, self.last_iteration());
        if (first..=last).contains(&iteration) {
            return Ok(());
        }
        Err(ScenarioError::new(
            setting,
            format!("iteration {iteration} is not in the job"),
            format!("{first} to {last}"),
        ))
    }
}
