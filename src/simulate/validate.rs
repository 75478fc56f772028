//! Which scenarios are possible. Every refusal names the flag, the value and what is allowed.

use super::error::ScenarioError;
use super::scenario::Scenario;
use crate::job::rank_order::{Coordinates, Layout};

const MAX_RANKS: usize = 1 << 17;
const MAX_FACTOR: f64 = 1000.0;

impl Scenario {
    /// Checks all values.
    ///
    /// # Errors
    /// The first value that cannot be simulated.
    pub fn validate(&self) -> Result<(), ScenarioError> {
        self.validate_names()?;
        self.validate_shape()?;
        self.validate_levels()?;
        let layout = Layout::new(&self.order, self.sizes())?;
        self.validate_experts(&layout)?;
        self.validate_faults(&layout)?;
        self.validate_times()
    }

    fn validate_names(&self) -> Result<(), ScenarioError> {
        let plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '_' | '-');
        if self.job.is_empty() || self.job.len() > 128 || self.job.starts_with('.') || !self.job.chars().all(plain) {
            return Err(ScenarioError::new(
                "--job",
                format!("`{}` cannot name a file", self.job),
                "1 to 128 of A-Z a-z 0-9 . _ -, not starting with a dot",
            ));
        }
        Ok(())
    }

    fn validate_shape(&self) -> Result<(), ScenarioError> {
        for (flag, value, most) in [
            ("--tp", self.tp, MAX_RANKS),
            ("--pp", self.pp, 256),
            ("--dp", self.dp, MAX_RANKS),
            ("--cp", self.cp, MAX_RANKS),
            ("--ep", self.ep, MAX_RANKS),
            ("--ranks-per-node", self.ranks_per_node, MAX_RANKS),
            ("--microbatches", self.microbatches, 4096),
            ("--iterations", self.iterations as usize, 1_000_000),
        ] {
            if value < 1 || value > most {
                return Err(out_of_range(flag, value, format!("1 to {most}")));
            }
        }
        if self.ranks() > MAX_RANKS {
            return Err(ScenarioError::new(
                "--dp",
                format!("tp x cp x dp x pp is {} ranks", self.ranks()),
                format!("at most {MAX_RANKS} ranks"),
            ));
        }
        let most = i32::MAX as u32 - 1_000_000;
        if self.first_iteration > most {
            let allowed = format!("0 to {most}");
            return Err(out_of_range("--first-iteration", self.first_iteration, allowed));
        }
        Ok(())
    }

    fn validate_levels(&self) -> Result<(), ScenarioError> {
        for (flag, value, least, most) in [
            ("--stage-seconds", self.stage_seconds, 1e-5, 3600.0),
            ("--transfer-seconds", self.transfer_seconds, 0.0, 3600.0),
            ("--noise", self.noise, 0.0, 0.3),
            ("--rank-spread", self.rank_spread, 0.0, 0.3),
            ("--outliers", self.outliers, 0.0, 0.5),
            ("--startup", self.startup, 0.0, 100.0),
            ("--sequence-spread", self.sequence_spread, 0.0, 3.0),
            ("--expert-spread", self.expert_spread, 0.0, 3.0),
            ("--dirty", self.dirty, 0.0, 0.5),
            ("--transfer-noise", self.transfer_noise, 0.0, 1.0),
            ("--transfer-outliers", self.transfer_outliers, 0.0, 0.5),
            ("--link-spread", self.link_spread, 0.0, 0.3),
            ("--dirty-trace", self.dirty_trace, 0.0, 0.5),
        ] {
            between(flag, value, least, most)?;
        }
        if let Some(seconds) = self.intra_node_seconds {
            between("--intra-node-seconds", seconds, 0.0, 3600.0)?;
        }
        // Dates that every reader of the files can hold.
        if !(0..=32_503_680_000).contains(&self.start) {
            return Err(out_of_range("--start", self.start, "years 1970 to 2999".into()));
        }
        Ok(())
    }

    fn validate_experts(&self, layout: &Layout) -> Result<(), ScenarioError> {
        if self.ep == 1 {
            return Ok(());
        }
        let bad = |problem: &str, allowed: &str| ScenarioError::new("--ep", format!("{}: {problem}", self.ep), allowed);
        if !(self.cp * self.dp).is_multiple_of(self.ep) {
            return Err(bad("does not divide cp x dp", "a divisor of cp x dp"));
        }
        if !self.ep.is_multiple_of(self.cp) && !self.cp.is_multiple_of(self.ep) {
            return Err(bad(
                "expert and context groups overlap in part",
                "a multiple or a divisor of cp",
            ));
        }
        let experts = Layout::new(&self.order, self.expert_sizes())?;
        let agree = (0..self.ranks()).all(|rank| {
            let (dense, expert) = (layout.coordinates(rank), experts.coordinates(rank));
            dense.pp == expert.pp && dense.tp == expert.tp
        });
        if !agree {
            return Err(bad(
                "the expert grid has other pipeline groups than the dense one in this order",
                "with an order in which dp comes after pp: ep equal to cp",
            ));
        }
        Ok(())
    }

    fn validate_faults(&self, layout: &Layout) -> Result<(), ScenarioError> {
        let ranks = self.ranks();
        let known = |flag, rank: usize| below(flag, "rank", rank, ranks);
        for (flag, list) in [
            ("--slow-rank", &self.slow_ranks),
            ("--slow-send", &self.slow_send),
            ("--slow-recv", &self.slow_recv),
        ] {
            for fault in list {
                known(flag, fault.rank)?;
                between(flag, fault.factor, 1.0, MAX_FACTOR)?;
            }
        }
        for (flag, list) in [
            ("--slow-node", &self.slow_nodes),
            ("--slow-node-network", &self.slow_node_networks),
        ] {
            for fault in list {
                below(flag, "node", fault.node, self.nodes())?;
                between(flag, fault.factor, 1.0, MAX_FACTOR)?;
            }
        }
        for fault in &self.heavy_stages {
            below("--heavy-stage", "stage", fault.stage, self.pp)?;
            between("--heavy-stage", fault.factor, 0.1, MAX_FACTOR)?;
        }
        for (flag, list) in [
            ("--slow-link", &self.slow_links),
            ("--slow-link-one-way", &self.slow_links_one_way),
        ] {
            for fault in list {
                known(flag, fault.a)?;
                known(flag, fault.b)?;
                between(flag, fault.factor, 1.0, MAX_FACTOR)?;
                self.validate_link(layout, flag, fault.a, fault.b)?;
            }
        }
        for fault in &self.slow_loaders {
            known("--slow-loader", fault.rank)?;
            between("--slow-loader", fault.seconds, 0.0, 3600.0)?;
            let at = layout.coordinates(fault.rank);
            if at.tp != 0 || (at.pp != 0 && at.pp + 1 != self.pp) {
                return Err(ScenarioError::new(
                    "--slow-loader",
                    format!("rank {} loads no data", fault.rank),
                    "tensor-parallel rank 0 of the first or the last stage",
                ));
            }
        }
        for fault in &self.transients {
            known("--transient", fault.rank)?;
            between("--transient", fault.factor, 1.0, MAX_FACTOR)?;
            self.within("--transient", fault.from)?;
        }
        Ok(())
    }

    fn validate_link(&self, layout: &Layout, flag: &'static str, a: usize, b: usize) -> Result<(), ScenarioError> {
        let at = layout.coordinates(a);
        let mut partners = Vec::new();
        if at.pp > 0 {
            partners.push(Coordinates { pp: at.pp - 1, ..at });
        }
        if at.pp + 1 < self.pp {
            partners.push(Coordinates { pp: at.pp + 1, ..at });
        }
        let partners: Vec<usize> = partners.into_iter().map(|at| layout.rank(at)).collect();
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
            flag,
            format!("ranks {a} and {b} are no pipeline neighbours"),
            allowed,
        ))
    }

    fn validate_times(&self) -> Result<(), ScenarioError> {
        let govern = [
            ("--onset", self.onset.is_some()),
            ("--until", self.until.is_some()),
            ("--flaky", self.flaky.is_some()),
        ];
        for (flag, set) in govern {
            if set && !self.has_lasting_fault() {
                return Err(ScenarioError::new(
                    flag,
                    "there is no fault that it could govern",
                    "together with a fault that lasts: --slow-rank, --slow-node, --slow-send, --slow-recv, \
                     --slow-link, --slow-link-one-way, --slow-node-network or --slow-loader",
                ));
            }
        }
        if let Some(onset) = self.onset {
            self.within("--onset", onset)?;
        }
        if let Some(until) = self.until {
            self.within("--until", until)?;
            if let Some(onset) = self.onset.filter(|onset| *onset > until) {
                let allowed = format!("{onset} (the onset) or later");
                return Err(out_of_range("--until", until, allowed));
            }
        }
        if let Some(share) = self.flaky {
            between("--flaky", share, 0.0, 1.0)?;
        }
        for stall in &self.stalls {
            self.within("--stall", stall.iteration)?;
            between("--stall", stall.seconds, 0.0, 1e6)?;
        }
        if let Some(rerun) = self.rerun {
            self.within("--rerun", rerun.from)?;
            if let Some(lost) = rerun.lost {
                below("--rerun", "rank", lost.rank, self.ranks())?;
                between("--rerun", lost.factor, 1.0, MAX_FACTOR)?;
            }
        }
        Ok(())
    }

    fn within(&self, flag: &'static str, iteration: u32) -> Result<(), ScenarioError> {
        let (first, last) = (self.first_iteration, self.last_iteration());
        if (first..=last).contains(&iteration) {
            return Ok(());
        }
        Err(ScenarioError::new(
            flag,
            format!("iteration {iteration} is not in the job"),
            format!("{first} to {last}"),
        ))
    }
}

fn out_of_range(flag: &'static str, value: impl ToString, allowed: String) -> ScenarioError {
    ScenarioError::new(flag, format!("{} is out of range", value.to_string()), allowed)
}

fn between(flag: &'static str, value: f64, least: f64, most: f64) -> Result<(), ScenarioError> {
    // A NaN is in no range.
    if (least..=most).contains(&value) {
        return Ok(());
    }
    Err(out_of_range(flag, value, format!("{least} to {most}")))
}

fn below(flag: &'static str, what: &str, value: usize, end: usize) -> Result<(), ScenarioError> {
    if value < end {
        return Ok(());
    }
    Err(ScenarioError::new(
        flag,
        format!("there is no {what} {value}"),
        format!("{what}s 0 to {}", end - 1),
    ))
}

#[cfg(test)]
mod tests {
    use super::super::faults::*;
    use super::*;

    fn flag(change: impl FnOnce(&mut Scenario)) -> &'static str {
        let mut scenario = Scenario::default();
        change(&mut scenario);
        scenario.validate().map_or_else(|error| error.flag, |()| "")
    }

    #[test]
    fn the_default_is_possible() {
        assert_eq!(flag(|_| ()), "");
    }

    #[test]
    fn refusals_name_the_flag() {
        let rank = |rank, factor| RankFactor { rank, factor };
        assert_eq!(flag(|s| s.job = "../x".into()), "--job");
        assert_eq!(flag(|s| s.tp = 0), "--tp");
        assert_eq!(flag(|s| s.dp = usize::MAX), "--dp");
        assert_eq!(flag(|s| s.order = "tp-dp".into()), "--order");
        assert_eq!(flag(|s| s.noise = f64::NAN), "--noise");
        assert_eq!(flag(|s| s.slow_ranks = vec![rank(32, 2.0)]), "--slow-rank");
        assert_eq!(flag(|s| s.slow_send = vec![rank(0, 0.5)]), "--slow-send");
        assert_eq!(flag(|s| s.onset = Some(5)), "--onset");
        assert_eq!(flag(|s| s.ep = 3), "--ep");
        let seconds = 0.1;
        let loader = RankSeconds { rank: 1, seconds };
        assert_eq!(flag(|s| s.slow_loaders = vec![loader]), "--slow-loader");
        let stall = Stall { iteration: 41, seconds };
        assert_eq!(flag(|s| s.stalls = vec![stall]), "--stall");
        let rerun = Rerun { from: 0, lost: None };
        assert_eq!(flag(|s| s.rerun = Some(rerun)), "--rerun");
    }

    #[test]
    fn links_join_neighbouring_stages() {
        let link = |a, b| LinkFactor { a, b, factor: 9.0 };
        assert_eq!(flag(|s| s.slow_links = vec![link(0, 8)]), "");
        let scenario = Scenario {
            slow_links: vec![link(8, 9)],
            ..Scenario::default()
        };
        let message = scenario.validate().unwrap_err().to_string();
        assert!(message.contains("for rank 8: 0 or 16"), "{message}");
    }

    #[test]
    fn expert_groups_fit_the_default_order() {
        assert_eq!(flag(|s| s.ep = 4), "");
        let swapped = |s: &mut Scenario| {
            s.ep = 4;
            s.order = "tp-cp-ep-pp-dp".into();
        };
        assert_eq!(flag(swapped), "--ep");
    }
}
