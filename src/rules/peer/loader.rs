//! Slow data loaders: units whose `batch-generator` takes longer than their peers' in the same steps, and loading that is
//! slow on all of them, which is nobody's.
//!
//! Loading is told as a share of the usual computing, less what the faster peers of the stage load in that step: slow
//! storage slows all alike and accuses nobody. Who is slow then, and when, is decided as for computing.

use std::ops::Range;

use super::common::FASTER_ROWS;
use super::cost::StepModel;
use super::nodes::told_by_their_node;
use super::own_factor::OwnFactors;
use super::rows_by_step::RowsByStep;
use super::settings::PeerSettings;
use super::slowness::{Fault, Rows, judge};
use super::stretches::stretches;
use super::tensor_groups::{RankTimes, TensorGroups};
use crate::contract::constant::constants;
use crate::stats::{MAD_TO_SD, lower, mean, median};
use crate::verdict::{Lasting, lasting};

constants! {
    /// Share of the longest loading from which a member loads as long. One of a tensor-parallel group loads, the first, and
    /// the others wait for its broadcast in the same timer: which of them is the longest is chance.
    AS_LONG: f64 = 0.98;
    /// Usual lasting spread of loaders that are well, as a share of the computing: they take little of it.
    USUAL_SPREAD: f64 = 0.003;
    /// How many times what it was before all ranks' loading must be to have grown.
    GROWN: f64 = 1.5;
    /// Penalty of a change of all ranks' loading, in variances of a step by the logarithm of the steps: loading wanders.
    PENALTY: f64 = 12.0;
    /// Quantile of the ranks that must load long too for all to be said to,
    ALL_RANKS: f64 = 0.1;
    /// and the share of the usual loading that is long.
    ALIKE: f64 = 0.5;
    /// Least noise of all ranks' loading, as a share: repeated values do not make noise vanish.
    LEAST_NOISE: f64 = 1e-6;
}

/// What the loaders show.
#[derive(Debug, Default)]
pub(super) struct Loading {
    /// Tensor groups with a slow loader.
    pub slow: Vec<SlowLoader>,
    /// What is slow on all of them.
    pub on_all: Option<LoadingOfAll>,
    /// Seconds that the shares are of,
    pub usual_seconds: f64,
    /// and what takes them.
    pub of: &'static str,
}

/// A unit with a slow loader.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct SlowLoader {
    pub unit: usize,
    /// The member (position of a rank) that loads: of those that take the longest the first.
    pub rank: usize,
    /// Excess over the peers' loading, as a share of what [`Loading::of`] names.
    pub fault: Fault,
}

/// Loading that is slow on all ranks.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct LoadingOfAll {
    /// Share of what [`Loading::of`] names.
    pub share: f64,
    /// What it was before, where it grew.
    pub before: Option<f64>,
    /// Whether it is slow in each step.
    pub slow: Vec<bool>,
    /// Whether nearly all ranks load so long, and not most of them only.
    pub alike: bool,
    /// Share of the step that it takes beyond what it was before; without that, all of it.
    pub cost: f64,
}

/// Judges the loaders of a job.
pub(super) fn look(
    units: &TensorGroups,
    times: &RankTimes,
    model: &StepModel,
    slow_windows: &[Range<usize>],
    settings: &PeerSettings,
) -> Loading {
    let (Some(loader), Some(by_rank)) = (&units.loader, &times.loader) else {
        return Loading::default();
    };
    let known = usual_seconds(units, model);
    // Without anything to hold them against, loaders are held against each other alone.
    let (usual, of) = known.unwrap_or_else(|| (median(loader.cells()), "usual loading"));
    let mut share = loader.clone();
    share.change(|_, cells| cells.iter_mut().for_each(|cell| *cell /= usual));
    let common: Vec<Vec<f64>> = units
        .places
        .stages
        .iter()
        .map(|rows| {
            let of_step = |step: usize| lower(rows.iter().map(|&row| share.row(row)[step]), FASTER_ROWS.get());
            (0..share.columns()).map(of_step).collect()
        })
        .collect();
    let mut excess = share.clone();
    excess.change(|row, cells| {
        let common = &common[units.places.stage_of[row]];
        cells.iter_mut().zip(common).for_each(|(cell, common)| *cell -= common);
    });
    let rows = Rows {
        factors: &excess,
        residual: None,
        logs: &excess,
        stages: &units.places.stages,
        stage_of: &units.places.stage_of,
        slow_windows,
    };
    let settings = &PeerSettings {
        usual_spread: USUAL_SPREAD.get(),
        ..settings.clone()
    };
    let verdicts = judge(&rows, &|_| Vec::new(), settings);
    let mut own = OwnFactors {
        factors: excess,
        verdicts,
    };
    for (unit, fault) in told_by_their_node(&own, &units.places, slow_windows, settings) {
        own.verdicts.rows[unit].fault = Some(fault);
    }
    let slow_loader = |unit: usize| {
        let fault = own.verdicts.rows[unit].fault.clone()?;
        let rank = who_loads(&units.members[unit], by_rank)?;
        Some(SlowLoader { unit, rank, fault })
    };
    Loading {
        slow: (0..units.len()).filter_map(slow_loader).collect(),
        usual_seconds: usual * units.unit_seconds,
        of,
        on_all: loading_of_all(&share, &common, known.is_some(), model, settings),
    }
}

/// What the shares are of, and its name: the usual computing; where forward and backward do not tell it the usual step.
fn usual_seconds(units: &TensorGroups, model: &StepModel) -> Option<(f64, &'static str)> {
    let is_told = |(seconds, _): &(f64, &str)| seconds.is_finite() && *seconds > 0.0;
    let passes = units.forward.is_some() || units.backward.is_some();
    let computing = passes
        .then(|| (median(units.work.cells()), "computing"))
        .filter(is_told);
    computing.or_else(|| Some((model.usual_step() / units.unit_seconds, "step")).filter(is_told))
}

fn who_loads(members: &[usize], by_rank: &RowsByStep) -> Option<usize> {
    let loading = |&rank: &usize| median(by_rank.row(rank).iter().copied());
    let longest = members.iter().map(loading).fold(f64::NAN, f64::max);
    members
        .iter()
        .copied()
        .find(|rank| loading(rank) >= AS_LONG.get() * longest)
}

/// Loading that takes a large share on all ranks, or has grown on all of them.
fn loading_of_all(
    share: &RowsByStep,
    common: &[Vec<f64>],
    shares_are_known: bool,
    model: &StepModel,
    settings: &PeerSettings,
) -> Option<LoadingOfAll> {
    // Stages without a loader have none; of the others the slowest holds up the job.
    let series = common
        .iter()
        .filter(|series| series.iter().any(|share| share.is_finite()))
        .max_by(|a, b| median(a.iter().copied()).total_cmp(&median(b.iter().copied())))?;
    let known: Vec<usize> = (0..series.len()).filter(|&step| series[step].is_finite()).collect();
    let told: Vec<f64> = known.iter().map(|&step| series[step]).collect();
    let (before, slow_told) = grown(&told, settings).unzip();
    let mut slow = vec![slow_told.is_none(); series.len()];
    if let Some(told) = slow_told {
        known.iter().zip(told).for_each(|(&step, is_slow)| slow[step] = is_slow);
    }
    let in_slow_steps = |of_step: &dyn Fn(usize) -> f64| mean((0..slow.len()).filter(|&step| slow[step]).map(of_step));
    let now = in_slow_steps(&|step| series[step]);
    let large = shares_are_known && median(told.iter().copied()) > settings.loader_floor;
    if before.is_none() && !large {
        return None;
    }
    let few = in_slow_steps(&|step| lower((0..share.rows()).map(|row| share.row(row)[step]), ALL_RANKS.get()));
    let count = slow.iter().filter(|&&slow| slow).count() as f64 / slow.len().max(1) as f64;
    let beyond = now - before.unwrap_or(0.0);
    Some(LoadingOfAll {
        share: now,
        before,
        alike: few > ALIKE.get() * now,
        cost: model.at_most_what_steps_show(count * beyond / (1.0 + now), &slow),
        slow,
    })
}

/// What all ranks' loading was before it grew lastingly, and in which steps it is what it is now.
fn grown(series: &[f64], settings: &PeerSettings) -> Option<(f64, Vec<bool>)> {
    let differences = series.windows(2).map(|pair| (pair[1] - pair[0]).abs());
    let noise = MAD_TO_SD * median(differences) / std::f64::consts::SQRT_2;
    let penalty = PENALTY.get() * (series.len().max(2) as f64).ln() * noise.max(LEAST_NOISE.get()).powi(2);
    let parts = stretches(series, penalty);
    let level = |part: &Range<usize>| median(series[part.clone()].iter().copied());
    let long = |part: &&Range<usize>| part.len() >= settings.least_slow_columns();
    let before = parts.iter().filter(long).map(level).fold(f64::INFINITY, f64::min);
    let has_grown =
        |part: &Range<usize>| level(part) > GROWN.get() * before && level(part) - before > settings.effect_floor;
    let mut slow = vec![false; series.len()];
    for part in parts.iter().filter(|part| has_grown(part)) {
        slow[part.clone()].fill(true);
    }
    let lasts = matches!(
        lasting(&slow, &[], &settings.persistence),
        Some(Lasting::Long | Lasting::ToTheEnd | Lasting::Recurring)
    );
    (before.is_finite() && lasts).then_some((before, slow))
}

#[cfg(test)]
mod tests {
    use super::super::samples::{job, verdict};
    use crate::job::{Job, TimerTable};
    use crate::verdict::{Cause, FindingKind};

    /// A job of 16 ranks, eight a node, whose loaders take so many seconds beside 3 s of computing.
    fn loading(of: impl Fn(u32, usize) -> f64) -> Job {
        let mut job = job(1, 16, 60, |_, _| 1.0);
        let seconds = ndarray::Array2::from_shape_fn((16, 60), |(rank, step)| {
            of(rank as u32, step) * (1.0 + 0.1 * ((rank * 31 + step * 17) % 13) as f64 / 13.0)
        });
        job.timers.push(TimerTable {
            name: "batch-generator".to_owned(),
            seconds: seconds.clone(),
        });
        let forward = job
            .timers
            .iter_mut()
            .find(|timer| timer.name == "forward-compute")
            .expect("a timer");
        forward.seconds += &seconds;
        job.timers.sort_by(|a, b| a.name.cmp(&b.name));
        job
    }

    #[test]
    fn a_rank_that_loads_longer_than_its_peers_is_named() {
        let verdict = verdict(&loading(|rank, _| if rank == 5 { 0.4 } else { 0.05 }));
        assert_eq!((verdict.anomalies, verdict.cause), (vec![5], Cause::DataLoading));
        assert_eq!(verdict.findings[0].timers[0].timer, "batch-generator");
    }

    #[test]
    fn loading_that_grows_for_all_names_nobody() {
        let verdict = verdict(&loading(|_, step| if step >= 30 { 0.5 } else { 0.05 }));
        assert_eq!((verdict.anomalies, verdict.cause), (vec![], Cause::DataLoading));
        let finding = &verdict.findings[0];
        assert_eq!((finding.kind, finding.onset), (FindingKind::JobWide, Some(30)));
        assert!(
            finding.says.contains("on all ranks alike since iteration 30"),
            "{}",
            finding.says
        );
    }

    #[test]
    fn a_node_that_loads_longer_while_all_load_longer_is_found() {
        let of = |rank, step| {
            let all = if step >= 30 { 0.3 } else { 0.05 };
            if rank >= 8 && step >= 30 { 2.0 * all } else { all }
        };
        let verdict = verdict(&loading(of));
        assert_eq!(
            (verdict.anomalies, verdict.cause),
            ((8..16).collect::<Vec<_>>(), Cause::DataLoading)
        );
        assert_eq!(verdict.findings[0].nodes, ["n1"]);
    }

    #[test]
    fn quick_loaders_are_no_finding() {
        assert!(verdict(&loading(|_, _| 0.05)).findings.is_empty());
    }
}
