//! The answer for a job.

use schemars::JsonSchema;
use serde::Serialize;

/// What the durations were read from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Basis {
    /// Single calls: the job's own schedule, call by call.
    Calls,
    /// Sums of an iteration: the microbatches of a step are taken as alike.
    Sums,
}

/// What one fault costs.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, JsonSchema)]
pub struct FaultCost {
    /// Growth of the steps over the steps with it alone mended: 0.35 is 35 % longer.
    pub growth: f64,
    /// Seconds of the window that mending it alone saves.
    pub seconds: f64,
    /// The same times the ranks of the job, hours.
    pub gpu_hours: f64,
    /// Its part of what mending all findings saves, seconds: the mean over all orders of mending up to six findings,
    /// beyond the mean of mending it first and last. The parts of all findings add up up to six.
    pub part_seconds: f64,
}

/// The answer for a job.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct WhatIf {
    /// What the durations were read from.
    pub basis: Basis,
    /// Why there are no numbers; null where there are.
    pub reason: Option<String>,
    /// Mean difference of the replayed steps from the measured ones, of the measured; null where steps were not measured.
    pub replay_error: Option<f64>,
    /// Mean measured step, seconds.
    pub step_seconds: Option<f64>,
    /// Microbatches a step.
    pub microbatches: usize,
    /// Model chunks a stage.
    pub chunks: usize,
    /// Steps that were replayed, of all of the window.
    pub replayed_steps: usize,
    /// Steps that were left out of the comparison as pauses of the whole job.
    pub pauses: usize,
    /// Pipelines without ranks on some stage, which were left out.
    pub pipelines_left_out: usize,
    /// Durations that were lost and filled in with usual ones.
    pub filled: u64,
    /// Growth of the steps over those with all faults mended: 0.35 is 35 % longer. This and what follows is null where
    /// there are no numbers.
    pub faults_share: Option<f64>,
    /// Seconds of the window that mending all faults saves.
    pub seconds: Option<f64>,
    /// The same times the ranks of the job, hours.
    pub gpu_hours: Option<f64>,
    /// Of these seconds those that no fault's mending alone saves, but that of several at once: faults that hide each other.
    pub only_together_seconds: Option<f64>,
    /// Mean step with all faults mended, seconds.
    pub mended_step_seconds: Option<f64>,
    /// Growth of the steps, with the faults mended, over those with stages of the same work besides.
    pub stages_share: Option<f64>,
    /// The same over those with the same load for all in every step besides.
    pub data_share: Option<f64>,
    /// What is left over ideal steps: noise, single slow calls.
    pub unexplained_share: Option<f64>,
    /// Each fault, in the order of the question; empty where there are no numbers.
    #[serde(skip)]
    pub faults: Vec<FaultCost>,
}

impl WhatIf {
    pub(super) fn unknown(basis: Basis) -> Self {
        Self {
            basis,
            reason: None,
            replay_error: None,
            step_seconds: None,
            microbatches: 0,
            chunks: 0,
            replayed_steps: 0,
            pauses: 0,
            pipelines_left_out: 0,
            filled: 0,
            faults_share: None,
            seconds: None,
            gpu_hours: None,
            only_together_seconds: None,
            mended_step_seconds: None,
            stages_share: None,
            data_share: None,
            unexplained_share: None,
            faults: Vec::new(),
        }
    }

    pub(super) fn refused(basis: Basis, reason: String) -> Self {
        Self {
            reason: Some(reason),
            ..Self::unknown(basis)
        }
    }
}

/// Sums over windows, seconds, of steps as they are and with more and more mended.
#[derive(Debug, Default)]
struct Totals {
    steps: usize,
    measured: f64,
    mended: f64,
    even_stages: f64,
    even_data: f64,
    ideal: f64,
    /// Steps times their error.
    error: f64,
}

impl WhatIf {
    /// What several windows come to together, each with its number of steps; `None` of no window. Where one of them has no
    /// numbers, all together have none.
    #[must_use]
    pub fn together(windows: &[(&Self, usize)]) -> Option<Self> {
        let (first, _) = windows.first()?;
        let basis = windows
            .iter()
            .find(|(window, _)| window.basis == Basis::Sums)
            .map_or(first.basis, |_| Basis::Sums);
        let sum = |of: fn(&Self) -> Option<f64>| windows.iter().map(|(window, _)| of(window)).sum::<Option<f64>>();
        let count = |of: fn(&Self) -> usize| windows.iter().map(|(window, _)| of(window)).sum::<usize>();
        let mut whole = Self {
            microbatches: first.microbatches,
            chunks: first.chunks,
            replayed_steps: count(|window| window.replayed_steps),
            pauses: count(|window| window.pauses),
            pipelines_left_out: windows.iter().map(|(window, _)| window.pipelines_left_out).max()?,
            filled: windows.iter().map(|(window, _)| window.filled).sum(),
            seconds: sum(|window| window.seconds),
            gpu_hours: sum(|window| window.gpu_hours),
            only_together_seconds: sum(|window| window.only_together_seconds),
            ..Self::unknown(basis)
        };
        let totals = windows.iter().map(|(window, steps)| window.totals(*steps));
        let totals = totals.reduce(|one, other| Some(one?.plus(&other?))).flatten();
        let Some(totals) = totals else {
            whole.reason = Some(
                windows
                    .iter()
                    .find_map(|(window, _)| window.reason.clone())
                    .unwrap_or_else(|| "a slow window has no steps of known length".to_owned()),
            );
            whole.seconds = None;
            whole.gpu_hours = None;
            whole.only_together_seconds = None;
            return Some(whole);
        };
        let growth = |one: f64, other: f64| Some(if other > 0.0 { one / other - 1.0 } else { 0.0 });
        let steps = totals.steps.max(1) as f64;
        whole.replay_error = Some(totals.error / steps);
        whole.step_seconds = Some(totals.measured / steps);
        whole.mended_step_seconds = Some(totals.mended / steps);
        whole.faults_share = growth(totals.measured, totals.mended);
        whole.stages_share = growth(totals.mended, totals.even_stages);
        whole.data_share = growth(totals.even_stages, totals.even_data);
        whole.unexplained_share = growth(totals.even_data, totals.ideal);
        Some(whole)
    }

    fn totals(&self, steps: usize) -> Option<Totals> {
        let measured = self.step_seconds? * steps as f64;
        let mended = measured / (1.0 + self.faults_share?);
        let even_stages = mended / (1.0 + self.stages_share?);
        let even_data = even_stages / (1.0 + self.data_share?);
        Some(Totals {
            steps,
            measured,
            mended,
            even_stages,
            even_data,
            ideal: even_data / (1.0 + self.unexplained_share?),
            error: self.replay_error? * steps as f64,
        })
    }
}

impl Totals {
    fn plus(self, other: &Self) -> Self {
        Self {
            steps: self.steps + other.steps,
            measured: self.measured + other.measured,
            mended: self.mended + other.mended,
            even_stages: self.even_stages + other.even_stages,
            even_data: self.even_data + other.even_data,
            ideal: self.ideal + other.ideal,
            error: self.error + other.error,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn window(step: f64, share: f64, steps: f64) -> WhatIf {
        let mended = step / (1.0 + share);
        WhatIf {
            replay_error: Some(0.01),
            step_seconds: Some(step),
            faults_share: Some(share),
            seconds: Some((step - mended) * steps),
            gpu_hours: Some(1.0),
            only_together_seconds: Some(0.0),
            mended_step_seconds: Some(mended),
            stages_share: Some(0.0),
            data_share: Some(0.25),
            unexplained_share: Some(0.0),
            ..WhatIf::unknown(Basis::Calls)
        }
    }

    #[test]
    fn windows_add_up_by_their_steps() {
        let (one, other) = (window(2.0, 1.0, 10.0), window(1.0, 0.0, 30.0));
        let whole = WhatIf::together(&[(&one, 10), (&other, 30)]).expect("numbers");
        // 20 s and 30 s instead of 10 s and 30 s.
        assert_eq!(whole.faults_share, Some(0.25));
        assert_eq!(whole.seconds, Some(10.0));
        assert_eq!(whole.step_seconds, Some(1.25));
        assert!((whole.data_share.expect("a share") - 0.25).abs() < 1e-12);
        let refused = WhatIf::refused(Basis::Sums, "why".to_owned());
        let whole = WhatIf::together(&[(&one, 10), (&refused, 30)]).expect("a reason");
        assert_eq!(
            (whole.reason.as_deref(), whole.seconds, whole.basis),
            (Some("why"), None, Basis::Sums)
        );
        assert_eq!(WhatIf::together(&[]), None);
    }
}
