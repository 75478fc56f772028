//! The thresholds of the rules as flags.

use std::collections::{BTreeMap, BTreeSet};

use clap::Args;

use super::exit::ArgumentError;
use crate::comm::classic as comm;
use crate::rules::classic::ClassicSettings;
use crate::rules::peer::PeerSettings;
use crate::verdict::Persistence;

#[derive(Debug, Args)]
pub(super) struct PeerThresholds {
    /// Least lasting excess over the peers that is a fault, as a share [default: 0.025]
    #[arg(long, value_name = "SHARE")]
    effect_floor: Option<f64>,
    /// Chance that noise alone passes the noise floor in a healthy job [default: 0.00003]
    #[arg(long, value_name = "SHARE")]
    false_alarm_rate: Option<f64>,
    /// Share of the iterations that a fault which ended must cover [default: 0.333]
    #[arg(long, value_name = "SHARE")]
    lasting_share: Option<f64>,
}

#[derive(Debug, Args)]
pub(super) struct ClassicThresholds {
    /// Smallest (max - min) / mean of the rank means at which a timer is clustered [default: 0.03]
    #[arg(long, value_name = "SHARE")]
    min_spread: Option<f64>,
    /// A further timer that counts as computing (repeatable)
    #[arg(long, value_name = "TIMER")]
    compute_timer: Vec<String>,
    /// Weight of a timer in the vote (repeatable) [default: 3 for self-attention-linear-qkv, else 1]
    #[arg(long, value_name = "TIMER=WEIGHT")]
    timer_weight: Vec<String>,
    /// With pipeline stages: times the fastest rank's compute time that a slow rank takes at least [default: 1.3]
    #[arg(long, value_name = "FACTOR")]
    gate_factor: Option<f64>,
    /// With pipeline stages: how many of the slowest iterations that is measured on [default: 10]
    #[arg(long, value_name = "N")]
    gate_iterations: Option<usize>,
    /// Communication: times the fastest pipeline's first call that a suspect call takes; of two stages, a slow iteration
    /// over a fast one [default: 1.3]
    #[arg(long, value_name = "FACTOR")]
    comm_threshold: Option<f64>,
    /// Communication: times the baseline that a suspect's last calls take [default: 2]
    #[arg(long, value_name = "FACTOR")]
    comm_baseline_factor: Option<f64>,
    /// Communication: times the call before it that a suspect call takes [default: 2]
    #[arg(long, value_name = "FACTOR")]
    comm_jump_factor: Option<f64>,
}

impl PeerThresholds {
    /// The first flag that was given.
    pub(super) fn given(&self) -> Option<&'static str> {
        first_given(&[
            ("--effect-floor", self.effect_floor.is_some()),
            ("--false-alarm-rate", self.false_alarm_rate.is_some()),
            ("--lasting-share", self.lasting_share.is_some()),
        ])
    }

    pub(super) fn settings(&self) -> Result<PeerSettings, ArgumentError> {
        let usual = PeerSettings::default();
        let effect_floor = self.effect_floor.unwrap_or(usual.effect_floor);
        let false_alarm_rate = self.false_alarm_rate.unwrap_or(usual.false_alarm_rate);
        let lasting_share = self.lasting_share.unwrap_or(usual.persistence.lasting_share);
        if !(false_alarm_rate > 0.0 && false_alarm_rate <= 1.0) {
            let reason = format!("{false_alarm_rate} is not above 0 and at most 1");
            return Err(ArgumentError::new("--false-alarm-rate", reason));
        }
        if !(0.0..=1.0).contains(&lasting_share) {
            let reason = format!("{lasting_share} is not between 0 and 1");
            return Err(ArgumentError::new("--lasting-share", reason));
        }
        Ok(PeerSettings {
            effect_floor: at_least("--effect-floor", effect_floor, 0.0)?,
            false_alarm_rate,
            persistence: Persistence {
                lasting_share,
                ..usual.persistence
            },
            ..usual
        })
    }
}

impl ClassicThresholds {
    /// The first flag that was given.
    pub(super) fn given(&self) -> Option<&'static str> {
        first_given(&[
            ("--min-spread", self.min_spread.is_some()),
            ("--compute-timer", !self.compute_timer.is_empty()),
            ("--timer-weight", !self.timer_weight.is_empty()),
            ("--gate-factor", self.gate_factor.is_some()),
            ("--gate-iterations", self.gate_iterations.is_some()),
            ("--comm-threshold", self.comm_threshold.is_some()),
            ("--comm-baseline-factor", self.comm_baseline_factor.is_some()),
            ("--comm-jump-factor", self.comm_jump_factor.is_some()),
        ])
    }

    pub(super) fn settings(&self) -> Result<ClassicSettings, ArgumentError> {
        let usual = ClassicSettings::default();
        let mut compute_timers: BTreeSet<String> = usual.compute_timers;
        compute_timers.extend(self.compute_timer.iter().cloned());
        let mut timer_weights: BTreeMap<String, f64> = usual.timer_weights;
        for pair in &self.timer_weight {
            let malformed = || ArgumentError::new("--timer-weight", format!("`{pair}` is not TIMER=WEIGHT"));
            let (timer, weight) = pair.rsplit_once('=').ok_or_else(malformed)?;
            let weight = weight.parse().map_err(|_| malformed())?;
            timer_weights.insert(timer.to_owned(), at_least("--timer-weight", weight, 0.0)?);
        }
        if self.gate_iterations == Some(0) {
            return Err(ArgumentError::new("--gate-iterations", "at least 1 is needed"));
        }
        Ok(ClassicSettings {
            compute_timers,
            min_spread: at_least("--min-spread", self.min_spread.unwrap_or(usual.min_spread), 0.0)?,
            timer_weights,
            gate_factor: at_least("--gate-factor", self.gate_factor.unwrap_or(usual.gate_factor), 1.0)?,
            gate_iterations: self.gate_iterations.unwrap_or(usual.gate_iterations),
            communication: self.communication(usual.communication)?,
        })
    }
}

impl ClassicThresholds {
    fn communication(&self, usual: comm::ClassicThresholds) -> Result<comm::ClassicThresholds, ArgumentError> {
        let factor = |flag, given: Option<f64>, usual| at_least(flag, given.unwrap_or(usual), 1.0);
        Ok(comm::ClassicThresholds {
            threshold: factor("--comm-threshold", self.comm_threshold, usual.threshold)?,
            baseline_factor: factor(
                "--comm-baseline-factor",
                self.comm_baseline_factor,
                usual.baseline_factor,
            )?,
            jump_factor: factor("--comm-jump-factor", self.comm_jump_factor, usual.jump_factor)?,
        })
    }
}

fn first_given(flags: &[(&'static str, bool)]) -> Option<&'static str> {
    flags.iter().find(|(_, given)| *given).map(|&(flag, _)| flag)
}

fn at_least(flag: &'static str, value: f64, least: f64) -> Result<f64, ArgumentError> {
    if value.is_finite() && value >= least {
        Ok(value)
    } else {
        Err(ArgumentError::new(
            flag,
            format!("{value} is not a finite number of at least {least}"),
        ))
    }
}
