//! The detector of data loaders: ranks that load longer than their peers, and loading that is slow on all of them.

use super::detector::{Detector, Seen, how_often, who};
use super::loader::{LoadingOfAll, SlowLoader};
use crate::contract::timers::BATCH_GENERATOR;
use crate::stats::{low_median, mean};
use crate::verdict::{Cause, Finding, FindingKind, TimerEvidence, words};

/// Finds slow loaders.
pub(super) struct SlowLoaders;

impl Detector for SlowLoaders {
    fn find(&self, seen: &Seen<'_>) -> Vec<Finding> {
        let slow = together(seen).into_iter().map(|loaders| slow_loaders(seen, &loaders));
        let on_all = seen.loading.on_all.iter().map(|loading| on_all(seen, loading));
        slow.chain(on_all).collect()
    }
}

/// Loaders of one node that are slow in about the same steps are one finding.
fn together<'a>(seen: &Seen<'a>) -> Vec<Vec<&'a SlowLoader>> {
    let mut groups: Vec<Vec<&SlowLoader>> = Vec::new();
    let first = |loader: &SlowLoader| loader.fault.slow.iter().position(|&slow| slow).unwrap_or(0);
    for loader in &seen.loading.slow {
        let node = |loader: &SlowLoader| &seen.job.nodes[loader.rank];
        let like = |group: &&mut Vec<&SlowLoader>| {
            node(group[0]) == node(loader)
                && first(group[0]).abs_diff(first(loader)) < seen.settings.least_slow_columns()
        };
        match groups.iter_mut().find(like) {
            Some(group) => group.push(loader),
            None => groups.push(vec![loader]),
        }
    }
    groups
}

fn slow_loaders(seen: &Seen<'_>, loaders: &[&SlowLoader]) -> Finding {
    let mut finding = seen.finding(FindingKind::SlowRank, Cause::DataLoading);
    finding.named = true;
    let ranks: Vec<usize> = loaders.iter().map(|loader| loader.rank).collect();
    let mut by_excess = loaders.to_vec();
    by_excess.sort_by(|a, b| {
        a.fault
            .excess
            .excess
            .total_cmp(&b.fault.excess.excess)
            .then(a.unit.cmp(&b.unit))
    });
    let speaks = by_excess[by_excess.len() / 2];
    let slow = &speaks.fault.slow;
    seen.accuse(&mut finding, &ranks, slow);
    seen.shows_in(&mut finding, slow);
    finding.lasting = Some(speaks.fault.lasting);
    let share = slow.iter().filter(|&&slow| slow).count() as f64 / slow.len().max(1) as f64;
    // The job waits for the longest of them.
    let longest = by_excess[by_excess.len() - 1].fault.excess.excess;
    let lost = share * longest / (1.0 + longest);
    finding.cost = Some(seen.model.at_most_what_steps_show(lost, slow));
    finding.timers = loading(seen, speaks).into_iter().collect();
    finding.factor = finding.timers.first().map(|timer| timer.factor);
    finding.onset = slow
        .first()
        .is_some_and(|slow| !slow)
        .then_some(finding.first_iteration)
        .flatten();
    let since = finding
        .onset
        .map_or(String::new(), |onset| format!(", since iteration {onset}"));
    let loaders = if finding.ranks.len() == 1 {
        "its data loader takes"
    } else {
        "their data loaders take"
    };
    finding.says = format!(
        "{}: {loaders} {} a step longer than the other ranks'{since}, {}",
        who(&finding),
        words::seconds(speaks.fault.excess.excess * seen.loading.usual_seconds),
        how_often(&finding)
    );
    finding
}

/// The loader's time beside its peers', in its slow steps.
fn loading(seen: &Seen<'_>, loader: &SlowLoader) -> Option<TimerEvidence> {
    let timer = seen.job.timer(BATCH_GENERATOR)?;
    let seconds = |rank: usize| {
        let ran = timer.seconds.row(rank);
        let cells = ran
            .iter()
            .zip(&loader.fault.slow)
            .filter(|&(&seconds, &slow)| slow && seconds > 0.0);
        mean(cells.map(|(&seconds, _)| seconds))
    };
    let units = &seen.units;
    let accused: Vec<usize> = seen.loading.slow.iter().map(|loader| loader.unit).collect();
    let stage = &units.places.stages[units.places.stage_of[loader.unit]];
    let others = stage.iter().filter(|unit| accused.binary_search(unit).is_err());
    let longest = |&unit: &usize| {
        units.members[unit]
            .iter()
            .map(|&rank| seconds(rank))
            .fold(f64::NAN, f64::max)
    };
    let (mean_seconds, reference_seconds) = (seconds(loader.rank), low_median(others.map(longest)));
    (mean_seconds.is_finite() && reference_seconds.is_finite()).then(|| TimerEvidence {
        timer: BATCH_GENERATOR.to_owned(),
        mean_seconds,
        reference_seconds,
        factor: mean_seconds / reference_seconds,
        slow_by: Vec::new(),
    })
}

fn on_all(seen: &Seen<'_>, loading: &LoadingOfAll) -> Finding {
    let mut finding = seen.finding(FindingKind::JobWide, Cause::DataLoading);
    finding.cost = Some(loading.cost);
    let ranks = if loading.alike { "all ranks alike" } else { "most ranks" };
    let share = 100.0 * loading.share;
    let seconds = |share: f64| words::seconds(share * seen.loading.usual_seconds);
    let now = seconds(loading.share);
    finding.says = match loading.before {
        None => format!(
            "loading data takes {now} a step on {ranks}, {share:.1} % of the {}",
            seen.loading.of
        ),
        Some(before) => {
            seen.shows_in(&mut finding, &loading.slow);
            finding.onset = finding.first_iteration;
            finding.factor = Some(loading.share / before);
            let onset = finding
                .onset
                .map_or(String::new(), |onset| format!(" since iteration {onset}"));
            format!(
                "loading data takes {now} a step on {ranks}{onset}, {} before: storage or network got slower, no single \
                 rank did, {}",
                seconds(before),
                how_often(&finding)
            )
        }
    };
    finding
}
