//! Transfers and collectives that are as fast as elsewhere.

use super::{Delta, Mender};
use crate::whatif::middle;

impl Mender<'_> {
    /// `meets` tells from the workers of its two ends whether a transfer is mended.
    pub(super) fn mend_transfers(&self, meets: &dyn Fn(usize, usize) -> bool, shows: &[bool], deltas: &mut [Delta]) {
        let work = self.work;
        let lanes = work.workers.lanes;
        let mut ends = vec![None; work.schedule.ways];
        for transfer in &work.schedule.transfers {
            ends[transfer.way] = Some((transfer.from.stage, transfer.to.stage));
        }
        let mended: Vec<bool> = (0..ends.len() * lanes)
            .map(|place| {
                let (way, lane) = (place / lanes, place % lanes);
                ends[way].is_some_and(|(from, to)| meets(work.workers.at(from, lane), work.workers.at(to, lane)))
            })
            .collect();
        let usual_of = |place: usize, step: usize| middle(work.way(place / lanes, place % lanes, step));
        let over = |places: &[usize], steps: &dyn Fn(usize) -> bool| {
            let steps = (0..shows.len()).filter(|&step| steps(step));
            middle(steps.flat_map(|step| places.iter().filter_map(move |&place| usual_of(place, step))))
        };
        let sound: Vec<usize> = (0..mended.len()).filter(|&place| !mended[place]).collect();
        let anywhere = over(&sound, &|step| shows[step]);
        for place in (0..mended.len()).filter(|&place| mended[place]) {
            let way = place / lanes;
            let peers: Vec<usize> = sound.iter().copied().filter(|peer| peer / lanes == way).collect();
            let usual = over(&peers, &|step| shows[step])
                .or(anywhere)
                .or_else(|| over(&[place], &|step| !shows[step]));
            let Some(usual) = usual else { continue };
            for step in (0..shows.len()).filter(|&step| shows[step]) {
                if let Some(own) = usual_of(place, step).filter(|own| *own > usual) {
                    deltas[step].transfer.push((place, usual / own));
                }
            }
        }
    }

    /// Collectives of groups with slow members take as long as those of the other groups.
    pub(super) fn mend_collectives(&self, places: &[usize], shows: &[bool], deltas: &mut [Delta]) {
        let work = self.work;
        let members = work.behind.reduction.members;
        let slow: Vec<bool> = (0..work.workers.stages * members)
            .map(|group| {
                let lanes = 0..work.workers.lanes;
                let ranks = lanes
                    .filter_map(|lane| work.workers.ranks[work.workers.at(group / members, lane)].get(group % members));
                ranks.into_iter().any(|rank| places.contains(rank))
            })
            .collect();
        for (collective, gathers) in [(&work.behind.reduction, false), (&work.behind.gathering, true)] {
            let of = |group: usize, step: usize| collective.seconds[group][work.picked[step]];
            for step in (0..shows.len()).filter(|&step| shows[step]) {
                let sound = (0..slow.len())
                    .filter(|&group| !slow[group])
                    .map(|group| of(group, step));
                let usual = middle(sound.filter(|seconds| !seconds.is_nan()));
                for group in (0..slow.len()).filter(|&group| slow[group]) {
                    let outside = || {
                        let steps = (0..shows.len()).filter(|&step| !shows[step]);
                        middle(steps.map(|step| of(group, step)).filter(|seconds| !seconds.is_nan()))
                    };
                    if let Some(usual) = usual.or_else(outside).filter(|usual| *usual < of(group, step)) {
                        let list = if gathers {
                            &mut deltas[step].gathering
                        } else {
                            &mut deltas[step].reduction
                        };
                        list.push((group, usual));
                    }
                }
            }
        }
    }
}
