//! Places from the timers alone, for jobs whose rows and callers state none.
//!
//! The schedule tells the stage: the first one never receives activations, the last never sends any. Ranks of one
//! tensor-parallel group leave every pass together, which tells who works with whom. Interleaved schedules fire the
//! same fused timers on every stage and tell nothing.

use std::collections::BTreeMap;

use super::super::timer_table::TimerTable;
use super::{Place, Topology, TopologyOrigin};
use crate::contract::timers::{
    ATTENTION_QKV, BACKWARD_COMPUTE, BACKWARD_RECV, BACKWARD_SEND, BACKWARD_SEND_FORWARD_RECV, FORWARD_COMPUTE,
    FORWARD_RECV, FORWARD_SEND, FORWARD_SEND_BACKWARD_RECV, INTERLEAVED_TRANSFERS, INTERVAL_TIME,
};

/// Timers that only a rank with a stage before its own has.
const FROM_BEFORE: [&str; 3] = [FORWARD_RECV, BACKWARD_SEND, BACKWARD_SEND_FORWARD_RECV];
/// Timers that only a rank with a stage after its own has.
const FROM_AFTER: [&str; 3] = [FORWARD_SEND, BACKWARD_RECV, FORWARD_SEND_BACKWARD_RECV];
/// Timers that tensor-parallel peers leave together, the more telling first.
const COMPUTE: [&str; 2] = [BACKWARD_COMPUTE, FORWARD_COMPUTE];
/// Timers that are written alone too: next to no others, the absence of point-to-point timers tells nothing.
const ALONE: [&str; 4] = [BACKWARD_COMPUTE, FORWARD_COMPUTE, INTERVAL_TIME, ATTENTION_QKV];

/// Share of the ranks whose timers must fit the stages.
const STAGES_FIT: f64 = 0.9;
/// Share of the neighbours whose computing times must fit groups of more than one rank.
const UNITS_FIT: f64 = 0.9;
/// What is less sure is not used.
const LIKELY: f64 = 0.5;
/// Difference of two ranks' times (log) below which they are equal: what the clocks leave between peers.
const EQUAL: f64 = 3e-4;
/// The same as a share of what the nearest members of different groups differ by.
const EQUAL_SHARE: f64 = 0.1;

/// Blocks of consecutive ranks: `stage(r) = r / block mod stages`.
#[derive(Debug, Clone, Copy)]
struct Grid {
    stages: u64,
    block: u64,
}

impl Grid {
    fn stage(self, rank: u32) -> u64 {
        u64::from(rank) / self.block % self.stages
    }
}

/// The topology that explains the timers of `ranks` (ascending), or nothing where they tell none.
///
/// Where only every n-th rank wrote rows, the grid is that of the ranks that did.
///
/// Time O(ranks x iterations), besides O(ranks x divisors of the number of ranks).
pub(super) fn infer(ranks: &[u32], timers: &[TimerTable]) -> Option<Topology> {
    let table = |name: &str| timers.iter().find(|timer| timer.name == name);
    let fires = |names: &[&str]| {
        let mut fires = vec![false; ranks.len()];
        for timer in names.iter().filter_map(|name| table(name)) {
            for (fires, row) in fires.iter_mut().zip(timer.seconds.rows()) {
                *fires |= row.iter().any(|&seconds| seconds > 0.0);
            }
        }
        fires
    };
    let stride = stride(ranks);
    let written = ranks;
    let ranks: &[u32] = &written.iter().map(|rank| rank / stride).collect::<Vec<_>>();
    let world = u64::from(*ranks.last()?) + 1;
    if fires(&INTERLEAVED_TRANSFERS).contains(&true) {
        return None;
    }
    let ends: Vec<(bool, bool)> = fires(&FROM_BEFORE).into_iter().zip(fires(&FROM_AFTER)).collect();
    let compute: Vec<&TimerTable> = COMPUTE.iter().filter_map(|name| table(name)).collect();
    let iterations = timers.iter().map(|timer| timer.seconds.ncols()).max()?;

    let (grid, stages_fit, stages_from) = if ends.iter().all(|&end| end == (false, false)) {
        // These timers are of one log level: computing without sending means that there is nobody to send to.
        let computing = fires(&COMPUTE).into_iter().filter(|&fires| fires).count();
        let others = timers.iter().map(|timer| timer.name.as_str());
        let others: Vec<&str> = others.filter(|name| !ALONE.contains(name)).collect();
        if computing == 0 || !fires(&others).contains(&true) {
            return None;
        }
        let one = Grid {
            stages: 1,
            block: world,
        };
        let from = format!("no point-to-point timer on the {computing} ranks that compute");
        (one, computing as f64 / ranks.len() as f64, from)
    } else {
        let (grid, fitting) = best_grid(ranks, &ends, world)?;
        let fit = kinds_fit(ranks, &ends, grid);
        let from = format!(
            "point-to-point timers of {fitting} of {} ranks fit {} stages in blocks of {}",
            ranks.len(),
            grid.stages,
            grid.block
        );
        (grid, fit, from)
    };
    let repeated = grid.stages * grid.block < world;
    let (unit, units_fit, units_from) = match neighbours(ranks, &compute, grid.block) {
        // Blocks that come again hold one unit each.
        Some(pairs) => pairs.unit(grid.block, repeated),
        None if repeated || grid.block == 1 => (grid.block, 1.0, "nobody has a neighbour to compare with".to_owned()),
        None => (1, 0.5, "no computing timer tells who works together".to_owned()),
    };

    // Laplace's rule of succession: what held in n of n iterations holds in the next with (n + 1) / (n + 2).
    let seen = (iterations as f64 + 1.0) / (iterations as f64 + 2.0);
    // A grid that is as likely wrong would set ranks apart that are peers, and hide who is slow among them.
    if stages_fit * seen < LIKELY || (unit > 1 && units_fit * seen < LIKELY) {
        return None;
    }
    let units = grid.block / unit;
    let place = |&rank: &u32| {
        let rank_number = u64::from(rank);
        // All are below the number of ranks.
        Place {
            stage: grid.stage(rank) as u32,
            pipeline: (rank_number / (grid.block * grid.stages) * units + rank_number % grid.block / unit) as u32,
            member: (rank_number % unit) as u32,
        }
    };
    let sizes = [("dp", world / (grid.stages * unit)), ("pp", grid.stages), ("tp", unit)];
    Some(Topology {
        sizes: sizes
            .map(|(group, size)| (group.to_owned(), u32::try_from(size).unwrap_or(u32::MAX)))
            .into_iter()
            .collect::<BTreeMap<_, _>>(),
        origin: TopologyOrigin::Inferred {
            sure: stages_fit * units_fit * seen,
            from: match stride {
                1 => format!("{stages_from}; {units_from}; {iterations} iterations"),
                // Commonly one rank of each tensor-parallel group.
                _ => format!("{stages_from}; {units_from}; {iterations} iterations; one rank in {stride} wrote rows"),
            },
        },
        places: ranks.iter().map(place).collect(),
    })
}

/// Whether a rank has a stage (before, after) its own.
fn ends_at(grid: Grid, rank: u32) -> (bool, bool) {
    let stage = grid.stage(rank);
    (stage > 0, stage + 1 < grid.stages)
}

/// The grid that the most ranks fit, fewer stages and larger blocks first, and how many do.
fn best_grid(ranks: &[u32], ends: &[(bool, bool)], world: u64) -> Option<(Grid, usize)> {
    let mut best: Option<(Grid, usize)> = None;
    let divisors = divisors(world);
    for &stages in divisors.iter().filter(|&&stages| stages > 1) {
        let blocks = divisors.iter().rev();
        for &block in blocks.filter(|&&block| (world / stages).is_multiple_of(block)) {
            let grid = Grid { stages, block };
            let limit = best.map_or(ranks.len(), |(_, misfits)| misfits);
            let misfits = ranks
                .iter()
                .zip(ends)
                .filter(|&(&rank, &end)| ends_at(grid, rank) != end)
                // A grid that is worse already need not be counted out.
                .take(limit)
                .count();
            if misfits < limit {
                best = Some((grid, misfits));
            }
        }
    }
    let (grid, misfits) = best?;
    let fitting = ranks.len() - misfits;
    (fitting as f64 >= STAGES_FIT * ranks.len() as f64).then_some((grid, fitting))
}

/// The smallest agreement among first, middle and last stages: ranks of a kind by timers and by grid, over those of
/// the kind by either. (The middle of a deep pipeline would hide that its ends do not fit.)
fn kinds_fit(ranks: &[u32], ends: &[(bool, bool)], grid: Grid) -> f64 {
    let agreement = |kind: (bool, bool)| {
        let (mut both, mut either) = (0u32, 0u32);
        for (&rank, &end) in ranks.iter().zip(ends) {
            let by_grid = ends_at(grid, rank);
            both += u32::from(end == kind && by_grid == kind);
            either += u32::from(end == kind || by_grid == kind);
        }
        if either == 0 {
            1.0
        } else {
            f64::from(both) / f64::from(either)
        }
    };
    [(false, true), (true, true), (true, false)]
        .map(agreement)
        .into_iter()
        .fold(1.0, f64::min)
}

/// Neighbours (r, r + 1) inside of blocks: r, and how far apart their times are (log, the median iteration).
struct Neighbours {
    pairs: Vec<(u32, f64)>,
}

impl Neighbours {
    /// The size of the groups that agrees best with who is equal to whom, the share of pairs that agree, and words.
    ///
    /// Each size sets its own scale: members are equal by what the neighbours across its borders differ by.
    fn unit(&self, block: u64, fixed: bool) -> (u64, f64, String) {
        let agreeing = |unit: u64| {
            let border = |&rank: &u32| (u64::from(rank) + 1).is_multiple_of(unit);
            let across = self.pairs.iter().filter(|(rank, _)| border(rank));
            let mut across: Vec<f64> = across.map(|&(_, far)| far).collect();
            let usual = quantile(&mut across, 0.5).unwrap_or(0.0);
            let limit = EQUAL.max(EQUAL_SHARE * usual);
            self.pairs
                .iter()
                .filter(|(rank, far)| (*far < limit) != border(rank))
                .count()
        };
        let candidates = if fixed { vec![block] } else { divisors(block) };
        let (mut unit, mut agree) = (block, 0);
        for candidate in candidates {
            let count = agreeing(candidate);
            if count > agree {
                (unit, agree) = (candidate, count);
            }
        }
        let all = self.pairs.len();
        let share = |count: usize| count as f64 / all as f64;
        if !fixed && unit > 1 && share(agree) < UNITS_FIT {
            let single = agreeing(1);
            let from = format!("computing times of only {agree} of {all} neighbours fit groups of {unit}, none taken");
            return (1, share(single), from);
        }
        let from = format!("computing times of {agree} of {all} neighbours fit groups of {unit}");
        (unit, share(agree), from)
    }
}

fn neighbours(ranks: &[u32], compute: &[&TimerTable], block: u64) -> Option<Neighbours> {
    let mut far = Vec::new();
    let mut differences = Vec::new();
    for (row, pair) in ranks.windows(2).enumerate() {
        let &[rank, next] = pair else { continue };
        if rank + 1 != next || u64::from(next).is_multiple_of(block) {
            continue;
        }
        // A timer that one of both lacks tells nothing of the pair; then the other may.
        let typical = compute.iter().find_map(|timer| {
            differences.clear();
            let both = timer.seconds.row(row).into_iter().zip(timer.seconds.row(row + 1));
            differences.extend(
                both.filter(|&(&mine, &other)| mine > 0.0 && other > 0.0)
                    .map(|(mine, other)| (mine / other).ln().abs()),
            );
            quantile(&mut differences, 0.5)
        });
        far.extend(typical.map(|typical| (rank, typical)));
    }
    (!far.is_empty()).then_some(Neighbours { pairs: far })
}

/// The value below which a share of the values lies; the lower one between two.
fn quantile(values: &mut [f64], share: f64) -> Option<f64> {
    let at = (share * values.len().checked_sub(1)? as f64) as usize;
    Some(*values.select_nth_unstable_by(at, f64::total_cmp).1)
}

/// The greatest step that leads from 0 to every rank.
pub(super) fn stride(ranks: &[u32]) -> u32 {
    let common = |a: u32, b: u32| {
        let (mut a, mut b) = (a, b);
        while b > 0 {
            (a, b) = (b, a % b);
        }
        a
    };
    match ranks {
        [_, _, ..] => ranks.iter().copied().fold(0, common).max(1),
        _ => 1,
    }
}

/// Ascending.
fn divisors(number: u64) -> Vec<u64> {
    let mut small: Vec<u64> = (1..)
        .take_while(|divisor| divisor * divisor <= number)
        .filter(|divisor| number.is_multiple_of(*divisor))
        .collect();
    let large = small.iter().rev().map(|divisor| number / divisor);
    let large: Vec<u64> = large.filter(|divisor| divisor * divisor > number).collect();
    small.extend(large);
    small
}

#[cfg(test)]
#[path = "inferred_tests.rs"]
mod tests;
