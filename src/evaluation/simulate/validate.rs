//! Which scenarios are possible. Every refusal names the setting, the value and what is allowed.

use super::error::ScenarioError;
use super::scenario::Scenario;
use crate::contract::rank_order::Layout;

const MAX_RANKS: usize = 1 << 17;

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
                "job",
                format!("`{}` cannot name a file", self.job),
                "1 to 128 of A-Z a-z 0-9 . _ -, not starting with a dot",
            ));
        }
        Ok(())
    }

    fn validate_shape(&self) -> Result<(), ScenarioError> {
        for (setting, value, most) in [
            ("tp", self.tp, MAX_RANKS),
            ("pp", self.pp, 256),
            ("dp", self.dp, MAX_RANKS),
            ("cp", self.cp, MAX_RANKS),
            ("ep", self.ep, MAX_RANKS),
            ("ranks-per-node", self.ranks_per_node, MAX_RANKS),
            ("virtual-stages", self.virtual_stages, 64),
            ("microbatches", self.microbatches, 4096),
            ("iterations", self.iterations as usize, 1_000_000),
        ] {
            if value < 1 || value > most {
                return Err(out_of_range(setting, value, format!("1 to {most}")));
            }
        }
        if self.ranks() > MAX_RANKS {
            return Err(ScenarioError::new(
                "dp",
                format!("tp x cp x dp x pp is {} ranks", self.ranks()),
                format!("at most {MAX_RANKS} ranks"),
            ));
        }
        self.validate_schedule()?;
        let most = i32::MAX as u32 - 1_000_000;
        if self.first_iteration > most {
            let allowed = format!("0 to {most}");
            return Err(out_of_range("first-iteration", self.first_iteration, allowed));
        }
        Ok(())
    }

    /// What Megatron-LM asks of an interleaved schedule.
    fn validate_schedule(&self) -> Result<(), ScenarioError> {
        if !self.interleaved() {
            if self.overlap_p2p {
                let problem = "only an interleaved schedule overlaps its transfers";
                return Err(ScenarioError::new(
                    "overlap-p2p",
                    problem,
                    "with virtual-stages 2 or more",
                ));
            }
            return Ok(());
        }
        // Without overlap two stages would exchange two messages each way in one call.
        let (least, allowed) = if self.overlap_p2p {
            (2, "with pp 2 or more")
        } else {
            (3, "with pp 3 or more, with overlap-p2p 2 or more")
        };
        if self.pp < least {
            let problem = format!("{} model chunks a rank with {} stages", self.virtual_stages, self.pp);
            return Err(ScenarioError::new("virtual-stages", problem, allowed));
        }
        if !self.microbatches.is_multiple_of(self.pp) {
            return Err(ScenarioError::new(
                "microbatches",
                format!("{} in an interleaved schedule of {} stages", self.microbatches, self.pp),
                format!("a multiple of {}", self.pp),
            ));
        }
        Ok(())
    }

    fn validate_levels(&self) -> Result<(), ScenarioError> {
        for (setting, value, least, most) in [
            ("stage-seconds", self.stage_seconds, 1e-5, 3600.0),
            ("transfer-seconds", self.transfer_seconds, 0.0, 3600.0),
            ("noise", self.noise, 0.0, 0.3),
            ("rank-spread", self.rank_spread, 0.0, 0.3),
            ("outliers", self.outliers, 0.0, 0.5),
            ("startup", self.startup, 0.0, 100.0),
            ("sequence-spread", self.sequence_spread, 0.0, 3.0),
            ("expert-spread", self.expert_spread, 0.0, 3.0),
            ("dirty", self.dirty, 0.0, 0.5),
            ("transfer-noise", self.transfer_noise, 0.0, 1.0),
            ("transfer-outliers", self.transfer_outliers, 0.0, 0.5),
            ("link-spread", self.link_spread, 0.0, 0.3),
            ("dirty-trace", self.dirty_trace, 0.0, 0.5),
        ] {
            between(setting, value, least, most)?;
        }
        if let Some(seconds) = self.intra_node_seconds {
            between("intra-node-seconds", seconds, 0.0, 3600.0)?;
        }
        // Dates that every reader of the files can hold.
        if !(0..=32_503_680_000).contains(&self.start) {
            return Err(out_of_range("start", self.start, "years 1970 to 2999".into()));
        }
        Ok(())
    }

    fn validate_experts(&self, layout: &Layout) -> Result<(), ScenarioError> {
        if self.ep == 1 {
            return Ok(());
        }
        let bad = |problem: &str, allowed: &str| ScenarioError::new("ep", format!("{}: {problem}", self.ep), allowed);
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
}

pub(super) fn out_of_range(setting: &'static str, value: impl ToString, allowed: String) -> ScenarioError {
    ScenarioError::new(setting, format!("{} is out of range", value.to_string()), allowed)
}

pub(super) fn between(setting: &'static str, value: f64, least: f64, most: f64) -> Result<(), ScenarioError> {
    // A NaN is in no range.
    if (least..=most).contains(&value) {
        return Ok(());
    }
    Err(out_of_range(setting, value, format!("{least} to {most}")))
}

pub(super) fn below(setting: &'static str, what: &str, value: usize, end: usize) -> Result<(), ScenarioError> {
    if value < end {
        return Ok(());
    }
    Err(ScenarioError::new(
        setting,
        format!("there is no {what} {value}"),
        format!("{what}s 0 to {}", end - 1),
    ))
}

#[cfg(test)]
mod tests {
    use super::super::faults::*;
    use super::*;

    fn setting(change: impl FnOnce(&mut Scenario)) -> &'static str {
        let mut scenario = Scenario::default();
        change(&mut scenario);
        scenario.validate().map_or_else(|error| error.setting, |()| "")
    }

    #[test]
    fn the_default_is_possible() {
        assert_eq!(setting(|_| ()), "");
    }

    #[test]
    fn refusals_name_the_flag() {
        let rank = |rank, factor| RankFactor { rank, factor };
        assert_eq!(setting(|s| s.job = "../x".into()), "job");
        assert_eq!(setting(|s| s.tp = 0), "tp");
        assert_eq!(setting(|s| s.dp = usize::MAX), "dp");
        assert_eq!(setting(|s| s.order = "tp-dp".into()), "order");
        assert_eq!(setting(|s| s.noise = f64::NAN), "noise");
        assert_eq!(setting(|s| s.slow_ranks = vec![rank(32, 2.0)]), "slow-rank");
        assert_eq!(setting(|s| s.slow_send = vec![rank(0, 0.5)]), "slow-send");
        assert_eq!(setting(|s| s.onset = Some(5)), "onset");
        assert_eq!(setting(|s| s.ep = 3), "ep");
        let seconds = 0.1;
        let loader = RankSeconds { rank: 1, seconds };
        assert_eq!(setting(|s| s.slow_loaders = vec![loader]), "slow-loader");
        let stall = Stall { iteration: 41, seconds };
        assert_eq!(setting(|s| s.stalls = vec![stall]), "stall");
        let rerun = Rerun { from: 0, lost: None };
        assert_eq!(setting(|s| s.rerun = Some(rerun)), "rerun");
    }

    #[test]
    fn links_join_neighbouring_stages() {
        let link = |a, b| LinkFactor { a, b, factor: 9.0 };
        assert_eq!(setting(|s| s.slow_links = vec![link(0, 8)]), "");
        let scenario = Scenario {
            slow_links: vec![link(8, 9)],
            ..Scenario::default()
        };
        let message = scenario.validate().unwrap_err().to_string();
        assert!(message.contains("for rank 8: 0 or 16"), "{message}");
    }

    #[test]
    fn interleaved_schedules_ask_for_stages_and_whole_groups_of_microbatches() {
        let shape = |pp, virtual_stages, microbatches, overlap_p2p| {
            setting(|s| {
                (s.pp, s.virtual_stages) = (pp, virtual_stages);
                (s.microbatches, s.overlap_p2p) = (microbatches, overlap_p2p);
            })
        };
        assert_eq!(shape(4, 2, 8, false), "");
        assert_eq!(shape(4, 2, 6, false), "microbatches");
        assert_eq!(shape(2, 2, 8, false), "virtual-stages");
        assert_eq!(shape(2, 2, 8, true), "");
        assert_eq!(shape(1, 2, 8, true), "virtual-stages");
        assert_eq!(shape(4, 1, 8, true), "overlap-p2p");
        assert_eq!(shape(4, 0, 8, false), "virtual-stages");
        let wrapped = |s: &mut Scenario| {
            s.virtual_stages = 2;
            s.slow_links = vec![LinkFactor {
                a: 24,
                b: 0,
                factor: 9.0,
            }];
        };
        assert_eq!(setting(wrapped), "");
    }

    #[test]
    fn faults_of_the_network_are_checked() {
        let node = |node, factor| NodeFactor { node, factor };
        assert_eq!(setting(|s| s.slow_node_networks = vec![node(3, 8.0)]), "");
        assert_eq!(
            setting(|s| s.slow_node_networks = vec![node(4, 8.0)]),
            "slow-node-network"
        );
        assert_eq!(
            setting(|s| s.slow_node_networks = vec![node(3, 0.5)]),
            "slow-node-network"
        );
        let link = |a, b| LinkFactor { a, b, factor: 9.0 };
        assert_eq!(setting(|s| s.slow_links_one_way = vec![link(8, 0)]), "");
        assert_eq!(
            setting(|s| s.slow_links_one_way = vec![link(8, 24)]),
            "slow-link-one-way"
        );
        assert_eq!(setting(|s| s.intra_node_seconds = Some(f64::NAN)), "intra-node-seconds");
        assert_eq!(setting(|s| s.transfer_outliers = 2.0), "transfer-outliers");
        assert_eq!(setting(|s| s.dirty_trace = -0.1), "dirty-trace");
    }

    #[test]
    fn expert_groups_fit_the_default_order() {
        assert_eq!(setting(|s| s.ep = 4), "");
        let swapped = |s: &mut Scenario| {
            s.ep = 4;
            s.order = "tp-cp-ep-pp-dp".into();
        };
        assert_eq!(setting(swapped), "ep");
    }
}
