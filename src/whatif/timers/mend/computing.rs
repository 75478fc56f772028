//! Workers that compute or load data as fast as their peers.

use super::{Delta, Mender, mark, places};
use crate::whatif::middle;

/// Steps on either side over which a factor is taken.
const NEIGHBOURS: usize = 5;
/// A fault that shows in half of its steps by this share of its strength is there all the time.
const LASTING: f64 = 0.6;
/// A step is slow from this share of the fault's strength.
const SLOW: f64 = 0.5;

impl Mender<'_> {
    pub(super) fn mend_computing(&self, ranks: &[u32], factor: Option<f64>, shows: &[bool], deltas: &mut [Delta]) {
        let work = self.work;
        let mut slow = vec![false; self.marked.len()];
        mark(work, ranks, &mut slow);
        let places = places(work, ranks);
        for worker in (0..slow.len()).filter(|&worker| slow[worker]) {
            let ratios = self.own_ratios(worker, shows, factor);
            for (step, slower) in slow_steps(&ratios, shows, factor) {
                deltas[step].compute.push((worker, 1.0 / slower));
                let mended = work.workers.ranks[worker].iter().filter(|rank| places.contains(rank));
                deltas[step].update.extend(mended.map(|&rank| (rank, 1.0 / slower)));
            }
        }
    }

    /// A worker's time over that of its peers in each step.
    fn own_ratios(&self, worker: usize, shows: &[bool], factor: Option<f64>) -> Vec<f64> {
        let lanes = self.work.workers.lanes;
        let (stage, lane) = (worker / lanes, worker % lanes);
        let of = |step: usize, level: f64| self.computing(step, worker) / (level * self.loads[step][lane]);
        if self.levels.iter().all(|levels| levels[stage].is_finite()) {
            return (0..shows.len())
                .map(|step| of(step, self.levels[step][stage]))
                .collect();
        }
        // No sound peer: its own time outside of the fault, by that of the other stages where there are some.
        let elsewhere = |step: usize| {
            let others = self.levels[step].iter().copied().filter(|level| level.is_finite());
            middle(others).unwrap_or(1.0)
        };
        let before = (0..shows.len()).filter(|&step| !shows[step]);
        let usual = middle(before.map(|step| of(step, elsewhere(step))));
        match (usual, factor) {
            (Some(usual), _) => (0..shows.len()).map(|step| of(step, elsewhere(step)) / usual).collect(),
            (None, factor) => vec![factor.unwrap_or(1.0); shows.len()],
        }
    }

    pub(super) fn mend_loading(&self, ranks: &[u32], factor: Option<f64>, shows: &[bool], deltas: &mut [Delta]) {
        let work = self.work;
        let workers = work.workers;
        let mut slow = vec![false; self.marked.len()];
        mark(work, ranks, &mut slow);
        let passes = work.schedule.loading_passes as f64;
        for worker in (0..slow.len()).filter(|&worker| slow[worker]) {
            let stage = worker / workers.lanes;
            for step in (0..shows.len()).filter(|&step| shows[step]) {
                let loading = &work.sums.loading[step];
                let sound = (0..workers.lanes)
                    .map(|lane| workers.at(stage, lane))
                    .filter(|&peer| !slow[peer]);
                let usual = middle(sound.map(|peer| loading[peer]))
                    .or_else(|| Some(loading[worker] / factor.filter(|factor| *factor > 1.0)?))
                    .unwrap_or(loading[worker]);
                let extra = (loading[worker] - usual).min(work.sums.forward[step][worker]);
                if extra > 0.0 {
                    deltas[step].loading.push((worker, extra / passes));
                }
            }
        }
    }
}

/// The steps in which a worker is slow, each with the factor by which it is around then.
fn slow_steps(ratios: &[f64], shows: &[bool], factor: Option<f64>) -> Vec<(usize, f64)> {
    let shown: Vec<usize> = (0..ratios.len())
        .filter(|&step| shows[step] && ratios[step].is_finite())
        .collect();
    let Some(usual) = middle(shown.iter().map(|&step| ratios[step])) else {
        return Vec::new();
    };
    let strength = factor.map_or(usual, |factor| factor.max(1.0)) - 1.0;
    let slow: Vec<usize> = if usual - 1.0 >= LASTING * strength {
        shown
    } else {
        let slow = |step: &usize| ratios[*step] - 1.0 >= SLOW * strength;
        shown.into_iter().filter(slow).collect()
    };
    (0..slow.len())
        .filter_map(|place| {
            let around = &slow[place.saturating_sub(NEIGHBOURS)..slow.len().min(place + NEIGHBOURS + 1)];
            let slower = middle(around.iter().map(|&step| ratios[step]))?;
            (slower > 1.0).then_some((slow[place], slower))
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_fault_that_comes_and_goes_is_mended_where_it_is() {
        let ratios: Vec<f64> = (0..40).map(|step| if step % 2 == 0 { 1.5 } else { 1.01 }).collect();
        let shows = vec![true; 40];
        let slow = slow_steps(&ratios, &shows, Some(1.5));
        assert!(slow.iter().all(|&(step, factor)| step % 2 == 0 && factor == 1.5));
        assert_eq!(slow.len(), 20);
    }

    #[test]
    fn an_unlucky_step_of_a_lasting_fault_keeps_its_bad_luck() {
        let mut ratios = vec![1.2; 30];
        ratios[7] = 2.0;
        let slow = slow_steps(&ratios, &[true; 30], None);
        assert_eq!(slow.len(), 30);
        assert!(slow.iter().all(|&(_, factor)| factor == 1.2));
        let fast = slow_steps(&[0.9; 30], &[true; 30], Some(1.2));
        assert!(fast.is_empty());
    }
}
