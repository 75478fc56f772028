//! What was measured of every rank, as plain data for whoever asks why a rank was or was not named.

use super::detector::Seen;
use super::own_factor::OwnFactors;
use super::slowness::Judged;
use crate::job::Job;
use crate::verdict::comparison::{Comparison, Gate, RankComparison, SlowSpell, steps_per_column, thousandths};
use crate::verdict::runs;

/// Every rank beside its peers.
pub(super) fn compared(seen: &Seen<'_>) -> Comparison {
    let (job, units, evidence) = (seen.job, seen.units, seen.evidence);
    let together = steps_per_column(job.ranks.len(), job.iterations.len());
    let mut suspect_of = vec![None; units.len()];
    for suspect in seen.candidates {
        suspect_of[suspect.unit] = Some(suspect);
    }
    let rank = |position: usize| {
        let unit = units.unit_of[position];
        let members = &units.members[unit];
        let by_unit = &evidence.units.verdicts.rows[unit];
        let own = evidence.ranks.as_ref().filter(|_| members.len() > 1);
        let own_row = own.map(|ranks| &ranks.verdicts.rows[position]);
        let fault_of_suspect = suspect_of[unit].filter(|suspect| suspect.ranks.contains(&position));
        let row = own.filter(|ranks| ranks.factors.row(position).iter().any(|cell| cell.is_finite()));
        let factors = match row {
            Some(ranks) => factors(ranks, position, units.places.stage_of[unit], together),
            None => factors(&evidence.units, unit, units.places.stage_of[unit], together),
        };
        let voted_by = seen
            .votes
            .algorithms
            .iter()
            .filter(|algorithm| algorithm.ranks[position].slow);
        RankComparison {
            rank: job.ranks[position],
            node: job.nodes[position].clone(),
            stage: units.stages[unit],
            replica: units.pipelines[unit],
            waits_with: members.iter().map(|&member| job.ranks[member]).collect(),
            peers: units.places.stages[units.places.stage_of[unit]].len(),
            window: gate(by_unit),
            own_work: own_row.map(gate),
            fault: fault_of_suspect
                .map(|suspect| &suspect.fault)
                .or(by_unit.fault.as_ref())
                .map(|fault| SlowSpell {
                    lasting: fault.lasting,
                    gate: Gate::of_logs(fault.excess.excess, fault.excess.threshold),
                    to_itself: fault.to_itself,
                    spells: runs(&fault.slow).into_iter().map(|run| ends(job, &run)).collect(),
                }),
            passing: by_unit.passing.iter().map(|stretch| ends(job, stretch)).collect(),
            suspect: fault_of_suspect.is_some(),
            one_of_group: fault_of_suspect.is_some_and(|suspect| suspect.one_of),
            voted_by: voted_by.map(|algorithm| algorithm.name.to_owned()).collect(),
            factors,
        }
    };
    Comparison {
        effect_floor: seen.settings.effect_floor.exp_m1(),
        least_slow_iterations: seen.settings.persistence.least_slow_iterations,
        voters: seen.votes.voters,
        iterations: job.iterations.chunks(together).map(|steps| steps[0]).collect(),
        steps_per_column: together,
        ranks: (0..job.ranks.len()).map(rank).collect(),
    }
}

fn gate(row: &Judged) -> Gate {
    Gate::of_logs(row.whole.excess, row.whole.threshold)
}

/// A row's factors over the level of its stage.
fn factors(own: &OwnFactors, row: usize, stage: usize, together: usize) -> Vec<Option<u32>> {
    let level = own.verdicts.levels.get(stage).copied().unwrap_or(f64::NAN);
    thousandths(own.factors.row(row).iter().map(|cell| cell - level), together)
}

/// First and last iteration of a stretch of columns.
fn ends(job: &Job, stretch: &std::ops::Range<usize>) -> (i64, i64) {
    (job.iterations[stretch.start], job.last_iteration_of(stretch.end - 1))
}
