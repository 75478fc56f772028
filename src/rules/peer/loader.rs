//! Slow data loaders: a unit whose `batch-generator` takes longer than its peers', as a share of the computing.

use super::settings::PeerSettings;
use super::table::Table;
use super::units::{RankTimes, Units};
use crate::stats::exceeded_with;
use crate::stats::{low_median, mad, mean, median, trimmed};

/// Least lasting spread of the loaders' share.
const LEAST_SPREAD: f64 = 0.003;

/// Share of the longest loading from which a member loads as long. One of a tensor-parallel group loads, the first, and
/// the others wait for its broadcast in the same timer: which of them is the longest is chance.
const AS_LONG: f64 = 0.98;

/// What the loaders show.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Loaders {
    /// Nothing.
    Usual,
    /// Each unit with a slow loader.
    Slow(Vec<SlowLoader>),
    /// All alike; they take this share of the computing.
    AllSlow(f64),
}

/// A unit with a slow loader.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct SlowLoader {
    pub unit: usize,
    /// The member (position of a rank) that loads: of those that take the longest the first.
    pub rank: usize,
    /// Share of the usual computing beyond the peers' loading.
    pub excess: f64,
    /// Its mean over all steps: what it costs.
    pub cost: f64,
    /// Whether each step is slow.
    pub slow: Vec<bool>,
}

/// Judges the loaders of a job.
pub(super) fn judge(units: &Units, times: &RankTimes, settings: &PeerSettings) -> Loaders {
    let (Some(loader), Some(by_rank)) = (&units.loader, &times.loader) else {
        return Loaders::Usual;
    };
    let usual_work = median(units.work.cells());
    let mut share = loader.clone();
    share.change(|_, cells| cells.iter_mut().for_each(|cell| *cell /= usual_work));
    let medians = share.row_medians();
    let mut reference = vec![f64::NAN; units.len()];
    for rows in &units.places.stages {
        let usual = low_median(rows.iter().map(|&row| medians[row]));
        rows.iter().for_each(|&row| reference[row] = usual);
    }
    let all = median(share.cells());
    share.subtract_from_rows(&reference);
    let excess = share.map(|_, cells| trimmed(cells, settings.trim));
    let threshold = threshold(&share, &excess, settings);
    let slow: Vec<SlowLoader> = (0..units.len())
        .filter(|&unit| excess[unit] > threshold && excess[unit] > reference[unit])
        .filter_map(|unit| slow_loader(unit, units, by_rank, share.row(unit), excess[unit], settings))
        .collect();
    if !slow.is_empty() {
        Loaders::Slow(slow)
    } else if all > settings.loader_floor {
        Loaders::AllSlow(all)
    } else {
        Loaders::Usual
    }
}

fn threshold(share: &Table, excess: &[f64], settings: &PeerSettings) -> f64 {
    let count = excess.iter().filter(|excess| excess.is_finite()).count().max(1) as f64;
    let quantile = exceeded_with(settings.false_alarm_rate / (2.0 * count)) * (1.0 + 2.0 / count);
    let lasting = mad(excess).max(LEAST_SPREAD);
    let passing = median(share.map(|_, cells| mad(cells))) / (share.columns() as f64).sqrt();
    settings.effect_floor.max(quantile * lasting.hypot(passing))
}

fn slow_loader(
    unit: usize,
    units: &Units,
    by_rank: &Table,
    share: &[f64],
    excess: f64,
    settings: &PeerSettings,
) -> Option<SlowLoader> {
    let slow: Vec<bool> = share.iter().map(|share| *share > 0.5 * excess).collect();
    let count = slow.iter().filter(|&&slow| slow).count();
    // A short window can't show as many.
    let enough = share.len() < 2 * settings.persistence.least_slow_columns()
        || count >= settings.persistence.least_slow_columns();
    if count == 0 || !enough {
        return None;
    }
    let loading = |&rank: &usize| median(by_rank.row(rank).iter().copied());
    let members = &units.members[unit];
    let longest = members.iter().map(loading).fold(f64::NAN, f64::max);
    let as_long = |rank: &&usize| loading(rank) >= AS_LONG * longest;
    let rank = *members.iter().find(as_long)?;
    Some(SlowLoader {
        unit,
        rank,
        excess,
        cost: mean(share.iter().copied()),
        slow,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::job::Place;

    fn judged(loading: impl Fn(usize, usize) -> f64 + Sync) -> Loaders {
        judged_in_groups(1, loading)
    }

    /// Eight ranks in tensor-parallel groups of `size`.
    fn judged_in_groups(size: u32, loading: impl Fn(usize, usize) -> f64 + Sync) -> Loaders {
        let times = RankTimes {
            forward: Some(Table::fill(8, 30, |row, cells| {
                for (t, cell) in cells.iter_mut().enumerate() {
                    *cell = 1.0 + loading(row, t);
                }
            })),
            backward: Some(Table::fill(8, 30, |_, cells| cells.fill(2.0))),
            qkv: None,
            loader: Some(Table::fill(8, 30, |row, cells| {
                for (t, cell) in cells.iter_mut().enumerate() {
                    *cell = loading(row, t);
                }
            })),
        };
        let places: Vec<Place> = (0..8)
            .map(|rank| Place {
                stage: 0,
                pipeline: rank / size,
                member: rank % size,
            })
            .collect();
        let units = Units::new(&times, &places, &[0; 8]).expect("timers");
        judge(&units, &times, &PeerSettings::default())
    }

    #[test]
    fn one_slow_loader_is_named() {
        let Loaders::Slow(slow) = judged(|rank, _| if rank == 5 { 0.9 } else { 0.01 }) else {
            panic!("rank 5 loads for long");
        };
        assert_eq!((slow.len(), slow[0].rank), (1, 5));
        assert!((slow[0].excess - 0.89 / 3.0).abs() < 1e-9);
        assert_eq!(
            judged(|rank, t| if rank == 5 && t < 2 { 0.9 } else { 0.01 }),
            Loaders::Usual
        );
    }

    #[test]
    fn who_waits_for_the_broadcast_is_not_named() {
        for noise in [-1e-4, 1e-4] {
            let loading = |rank: usize, t: usize| match rank {
                4 => 0.9,
                5 => 0.9 + noise * (1 + t % 3) as f64,
                _ => 0.01,
            };
            let Loaders::Slow(slow) = judged_in_groups(2, loading) else {
                panic!("rank 4 loads for long");
            };
            assert_eq!((slow.len(), slow[0].rank), (1, 4), "{noise}");
        }
        // One that does not wait for another loads by itself.
        let Loaders::Slow(slow) = judged_in_groups(2, |rank, _| if rank == 5 { 0.9 } else { 0.01 }) else {
            panic!("rank 5 loads for long");
        };
        assert_eq!((slow.len(), slow[0].rank), (1, 5));
    }

    #[test]
    fn all_alike_names_nobody() {
        assert!(matches!(judged(|_, _| 0.6), Loaders::AllSlow(share) if (share - 0.2).abs() < 1e-9));
        assert_eq!(judged(|_, _| 0.01), Loaders::Usual);
    }
}
